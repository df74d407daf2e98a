"""Slices, parts and manifests: what a committed slice is made of, and from which inputs.

Belongs here: the value objects and their JSON form. Does not belong here: where files lie
(``store/lake.py``) or which slices are stale (``store/plan.py``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError

#: Version of the layout of a home. A home of another layout is refused, never guessed at.
LAYOUT = 3

#: Steps of the pipeline: each writes the tables of one layer step and commits one manifest a slice.
STEP_TABLES: dict[str, tuple[str, ...]] = {
    "raw": ("raw.sessions", "raw.steps", "raw.quarantine", "raw.files", "raw.copies", "raw.vectors"),
    "masked": (
        "masked.sessions",
        "masked.steps",
        "masked.quarantine",
        "masked.files",
        "masked.copies",
        "masked.redactions",
        "masked.vectors",
        "masked.rescans",
    ),
    "signals": (
        "signals.hard",
        "signals.semantic",
        "signals.candidates",
        "signals.derived",
        "signals.tasks",
        "signals.process",
        "signals.session_features",
        "signals.turn_coverage",
        "signals.session_usage",
    ),
    "outcomes": ("signals.session_outcomes", "signals.session_scores", "signals.routing_arms"),
    "analysis": (
        "analysis.net_improvement",
        "analysis.pairs",
        "analysis.strata",
        "analysis.diagnostics",
        "analysis.ablation",
        "analysis.estimators",
        "analysis.sensitivity",
        "analysis.durations",
        "analysis.nights",
        "analysis.movement",
        "analysis.attempts",
        "analysis.paired_tasks",
        "analysis.drawn_rates",
        "analysis.corrected_rates",
        "analysis.bridges",
        "analysis.recovery_curves",
        "analysis.concordance",
        "analysis.layer_agreement",
    ),
    "scorecard": ("analysis.scorecard",),
}

#: Layer folder of each step.
STEP_LAYERS = {step: tables[0].split(".")[0] for step, tables in STEP_TABLES.items()}


@dataclass(frozen=True, slots=True, order=True)
class SliceKey:
    """One slice: a step, a UTC day, and a variant such as ``("x=1a2b",)`` or ``("m=3c4d", "w=28d")``.

    Variants let criteria versions coexist: a new extraction or measurement writes beside the old.
    """

    step: str
    day: date
    variant: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "/".join((self.step, *self.variant, f"day={self.day}"))


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet part of a slice, named by the digest of its bytes."""

    table: str
    digest: str
    rows: int
    n_bytes: int

    @property
    def file_name(self) -> str:
        """Name inside the slice's folder."""
        return f"{self.digest}.parquet"


@dataclass(frozen=True, slots=True)
class StagedPart:
    """A part that is written but not committed: where it lies now, and what it will be."""

    part: Part
    path: Path


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a slice holds and what it was made from: the truth about staleness.

    Attributes:
        key: The slice.
        inputs: Digest of every input, by name.
        code_version: Version of logic and criteria that made the slice.
        parts: Parts in order.
        stats: Counts that checks and metadata show; plain JSON values, never text of a log.
    """

    key: SliceKey
    inputs: Mapping[str, str]
    code_version: str
    parts: tuple[Part, ...]
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Digest of what the slice holds; equal content means nothing downstream is stale."""
        return digest_of([[part.table, part.digest] for part in self.parts])

    def content_of(self, *tables: str) -> str:
        """Digest of some tables only, for steps that read no more than those."""
        return digest_of([[part.table, part.digest] for part in self.parts if part.table in tables])

    def rows(self, table: str) -> int:
        """Number of rows of a table in the slice."""
        return sum(part.rows for part in self.parts if part.table == table)

    def n_bytes(self, table: str) -> int:
        """Bytes on disk of a table in the slice."""
        return sum(part.n_bytes for part in self.parts if part.table == table)

    def to_json(self) -> str:
        """Canonical JSON, so that equal manifests are equal bytes."""
        return json.dumps(
            {
                "layout": LAYOUT,
                "step": self.key.step,
                "day": self.key.day.isoformat(),
                "variant": list(self.key.variant),
                "inputs": dict(self.inputs),
                "code_version": self.code_version,
                "content": self.content,
                "parts": [[part.table, part.digest, part.rows, part.n_bytes] for part in self.parts],
                "stats": dict(self.stats),
            },
            sort_keys=True,
            indent=1,
        )

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Read back what :meth:`to_json` wrote.

        Raises:
            EvalpipeError: ``HOME_INCOMPATIBLE`` for another layout.
            ValueError, KeyError, TypeError: It is not what was written.
        """
        raw = json.loads(text)
        if raw["layout"] != LAYOUT:
            raise EvalpipeError("HOME_INCOMPATIBLE", f"layout {raw['layout']}, not {LAYOUT}", where="manifest")
        key = SliceKey(raw["step"], date.fromisoformat(raw["day"]), tuple(raw["variant"]))
        parts = tuple(Part(*row) for row in raw["parts"])
        return Manifest(key, raw["inputs"], raw["code_version"], parts, raw["stats"])


def digest_of(value: object) -> str:
    """Digest of a JSON value in canonical form (32 hexadecimal digits)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def digest_of_file(path: Path) -> str:
    """Digest of a file's bytes, streamed (32 hexadecimal digits)."""
    state = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def contiguous(days: Iterable[date]) -> list[tuple[date, date]]:
    """Group days into contiguous runs, in order: what one range run can cover."""
    runs: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if runs and (day - runs[-1][1]).days == 1:
            runs[-1] = (runs[-1][0], day)
        else:
            runs.append((day, day))
    return runs
