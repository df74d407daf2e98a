"""The label guide and the limits of the review loop, read from ``data/review``.

Belongs here: their form. Does not belong here: any label, threshold or share, which is data.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from evalpipe.contracts.signals import BY_NAME
from evalpipe.locations import data_dir

UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Label:
    """One label: a signal's name, or what is none.

    Attributes:
        name: Name in files and tables.
        kinds: Kinds of items that it is for.
        key: Its key on the page.
        title, help: What a reviewer reads.
    """

    name: str
    kinds: tuple[str, ...]
    key: str
    title: str
    help: str


@dataclass(frozen=True, slots=True)
class Guide:
    """What reviewers are asked.

    Attributes:
        version: Kept with every review.
        labels: In the order in which they are shown.
        alone: Labels that no other stands beside.
    """

    version: str
    labels: tuple[Label, ...]
    alone: frozenset[str]

    def of(self, kind: str) -> tuple[Label, ...]:
        """Labels for a kind of item."""
        return tuple(label for label in self.labels if kind in label.kinds)

    def signals(self, kind: str) -> tuple[str, ...]:
        """Signals that a reviewer can tell from a kind of item."""
        return tuple(label.name for label in self.of(kind) if label.name in BY_NAME)


@dataclass(frozen=True, slots=True)
class Limits:
    """When reviews demote a signal, how a sample is divided, and when detectors have drifted.

    Attributes:
        min_reviewed: Reviewed rows under which nothing is said.
        unproven_counts: Whether outcomes count what is unproven.
        thresholds: Threshold by family of signals.
        joined: Signals that are also looked at together, by name.
        judged_as: Signals whose rows are right if a label of that group holds.
        models, sample, drift: The tables of these names.
    """

    min_reviewed: int
    unproven_counts: bool
    thresholds: Mapping[str, float]
    joined: Mapping[str, tuple[str, ...]]
    judged_as: Mapping[str, str]
    models: Mapping[str, float]
    sample: Mapping[str, float]
    drift: Mapping[str, float]

    def threshold(self, name: str) -> float | None:
        """Threshold of a signal, or of a group of signals."""
        first = self.joined[name][0] if name in self.joined else name
        return self.thresholds.get(BY_NAME[first].family.value)

    def members(self, name: str) -> frozenset[str]:
        """Signals that a name stands for: itself, or a group."""
        return frozenset(self.joined.get(name, (name,)))

    def right(self, name: str) -> frozenset[str]:
        """Labels that make a row of a signal, or of a group, right."""
        return self.members(self.judged_as.get(name, name))


@cache
def guide() -> Guide:
    """The shipped label guide."""
    data = _read("guide.toml")
    labels = tuple(
        Label(
            row["name"],
            ("turn", "call") if row["on"] == "both" else (row["on"],),
            row["key"],
            row["title"],
            row["help"],
        )
        for row in data["label"]
    )
    return Guide(data["version"], labels, frozenset(data["alone"]))


@cache
def limits() -> Limits:
    """The shipped limits."""
    data = _read("limits.toml")
    joined = {name: tuple(members) for name, members in data["joined"].items()}
    return Limits(**(data | {"joined": joined}))


def _read(name: str) -> dict[str, Any]:
    with (data_dir() / "review" / name).open("rb") as stream:
        return tomllib.load(stream)
