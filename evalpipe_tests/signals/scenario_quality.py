"""How often a scenario is told right: accuracy, confusion and accuracy by language on labelled openings.

Belongs here: the measurement, and the tables that ``docs/scenarios.md`` shows. Does not belong here: the
openings (``data/scenario_openings.jsonl``) or what is demanded of the numbers (``test_scenario_set.py``).
``python -m evalpipe_tests.signals.scenario_quality`` prints the tables; ``--wrong`` lists what was told
wrong in the half that rules are tuned on, never in the other.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.signals.scenario import scenarios

OPENINGS = Path(__file__).parent / "data" / "scenario_openings.jsonl"
SCENARIOS = ("coding", "work", "chat")
#: Half of the first openings (tuned on) and the other half, and openings written after the rules were done.
SPLITS = ("dev", "test", "fresh")


@lru_cache(maxsize=1)
def openings() -> tuple[dict[str, Any], ...]:
    """All labelled openings, in the order of the file."""
    with OPENINGS.open(encoding="utf-8") as stream:
        return tuple(json.loads(line) for line in stream)


@dataclass(frozen=True)
class Quality:
    """Labels and what was told, (N,) each."""

    languages: list[str]
    labels: list[str]
    told: list[str]

    @property
    def accuracy(self) -> float:
        return sum(a == b for a, b in zip(self.labels, self.told, strict=True)) / len(self.labels)

    def confusion(self) -> Counter[tuple[str, str]]:
        """Count of each (label, told)."""
        return Counter(zip(self.labels, self.told, strict=True))

    def by_language(self) -> dict[str, float]:
        rows = list(zip(self.languages, self.labels, self.told, strict=True))
        return {
            language: sum(a == b for lang, a, b in rows if lang == language) / self.languages.count(language)
            for language in sorted(set(self.languages))
        }


def told(rows: list[dict[str, Any]]) -> list[str]:
    """The scenario of each opening, as the pipeline tells it."""
    sessions = pl.DataFrame(
        {
            "session_id": [row["id"] for row in rows],
            "scenario_declared": [None for _ in rows],
            "workspace": ["w" if row["has_workspace"] else None for row in rows],
            "tools": [row["tools"] for row in rows],
        },
        schema={
            "session_id": pl.String,
            "scenario_declared": pl.String,
            "workspace": pl.String,
            "tools": pl.List(pl.String),
        },
    )
    turns = pl.DataFrame(
        {
            "session_id": sessions["session_id"],
            "prev_turn_seq": pl.Series([None] * len(rows), dtype=pl.Int32),
            "text": [row["text"] for row in rows],
        }
    )
    return scenarios(sessions, turns)["scenario"].to_list()


def measure(split: str) -> Quality:
    """Quality on one part of the openings, one of ``SPLITS``."""
    rows = [row for row in openings() if row["split"] == split]
    return Quality([row["language"] for row in rows], [row["scenario"] for row in rows], told(rows))


def tables() -> str:
    """The tables of the docs, as Markdown."""
    found = {split: measure(split) for split in SPLITS}
    out = ["| openings | n | told right |", "|---|---|---|"]
    names = {"dev": "tuned on", "test": "held out", "fresh": "written after the rules"}
    out += [f"| {names[s]} | {len(q.labels)} | {100 * q.accuracy:.1f} % |" for s, q in found.items()]
    for split in ("test", "fresh"):
        confusion = found[split].confusion()
        out += ["", f"| {names[split]}: label | told coding | told work | told chat |", "|---|---|---|---|"]
        out += [f"| {a} | " + " | ".join(str(confusion[a, b]) for b in SCENARIOS) + " |" for a in SCENARIOS]
    languages = {split: q.by_language() for split, q in found.items()}
    out += ["", f"| language | {' | '.join(names.values())} |", "|---|---|---|---|"]
    out += [
        f"| `{lang}` | " + " | ".join(f"{100 * languages[s][lang]:.0f} %" for s in SPLITS) + " |"
        for lang in languages["test"]
    ]
    return "\n".join(out)


def wrong() -> str:
    """Openings of the half for tuning that are told wrong, one a line."""
    rows = [row for row in openings() if row["split"] == "dev"]
    return "\n".join(
        f"{row['id']} {row['scenario']:>6} told {got:<6} {len(row['tools'])} tools {row['text'][:90]!r}"
        for row, got in zip(rows, told(rows), strict=True)
        if row["scenario"] != got
    )


if __name__ == "__main__":
    print(wrong() if "--wrong" in sys.argv else tables())
