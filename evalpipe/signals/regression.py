"""The golden set against the last version: what extraction reads otherwise than it did.

Belongs here: reading the golden set (held-out dialogues of the corpus, examples of the error table) under the
rules in force, and comparing with what the last version read, which is recorded in ``data/golden``. Does not
belong here: precision of the patterns' own examples (``golden``), reviews.

A change of rules shows in the record's own difference, turn by turn. It is written with ``python -m
evalpipe.signals.regression --write``, which refuses where a class of a language loses more than two points of
precision or recall, unless ``--accept`` says that this is meant.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.locations import data_dir
from evalpipe.signals import rulefiles
from evalpipe.signals.calls import tool_class
from evalpipe.signals.dialogues import SUFFIX, read_dialogues
from evalpipe.signals.errors import Call, classify_all, table
from evalpipe.signals.labelled import LabelledTurn
from evalpipe.signals.replay import extracted_classes
from evalpipe.signals.scoring import Hits, score_turns

#: Most that precision or recall of a class of a language may fall, as a share.
MOST_LOST = 0.02
#: Fewer rows than these say nothing of a share.
LEAST_ROWS = 20
#: Least confidence, length of snippets, steps of a repair, length of a loop: the shipped criteria.
_MEASURES = (0.75, 160, 10, 3)


@dataclass(frozen=True, slots=True)
class Change:
    """One row of the golden set that is read otherwise; null where it was or is not in the set."""

    id: str
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A share of a class of a language that fell by more than :data:`MOST_LOST`."""

    lang: str
    name: str
    share: str
    was: float
    now: float


def record_path() -> Path:
    """Where the last version's reading is recorded."""
    return data_dir() / "golden" / "signals.json"


@cache
def turns() -> tuple[LabelledTurn, ...]:
    """Labelled turns of the golden set: dialogues that no training saw."""
    files = sorted((data_dir() / "corpus" / "turns").glob(f"*.held{SUFFIX}"))
    return tuple(turn for path in files for _, turn in read_dialogues(path))


def reading() -> dict[str, str]:
    """What the rules in force say of each row of the golden set, by its id: classes, or status and category."""
    extraction = ExtractionCriteria(rulefiles.languages(), *_MEASURES)
    classes = extracted_classes(list(turns()), extraction)
    out = {turn.id: "+".join(sorted(got)) for turn, got in zip(turns(), classes, strict=True)}
    examples = [(f"call:{rule.id}:{i}", e) for rule in table().rules for i, e in enumerate(rule.examples)]
    calls = [
        Call(
            tool_class(e["tool"]),
            e.get("command", ""),
            e["output"],
            e.get("exit"),
            e.get("flagged", False),
            e.get("known"),
        )
        for _, e in examples
    ]
    for (name, _), verdict in zip(examples, classify_all(calls), strict=True):
        out[name] = ":".join(part for part in (verdict.status, verdict.category) if part)
    return dict(sorted(out.items()))


def recorded() -> dict[str, str]:
    """What the last version said; empty where nothing is recorded."""
    path = record_path()
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def changes(was: Mapping[str, str], now: Mapping[str, str]) -> list[Change]:
    """Rows that two versions read otherwise, by id."""
    return [Change(i, was.get(i), now.get(i)) for i in sorted({*was, *now}) if was.get(i) != now.get(i)]


def losses(was: Mapping[str, str], now: Mapping[str, str], labelled: Sequence[LabelledTurn]) -> list[Loss]:
    """Shares that fell by more than :data:`MOST_LOST`, on the turns that both versions read.

    Args:
        was, now: Readings by id.
        labelled: Turns with their labels.
    """
    both = [turn for turn in labelled if turn.id in was and turn.id in now]
    before, after = (_hits(both, reading_) for reading_ in (was, now))
    out = []
    for (lang, name), old in sorted(before.items()):
        new = after[lang, name]
        for share, (a, n), (b, m) in (
            ("precision", (old.right, old.emitted), (new.right, new.emitted)),
            ("recall", (old.found, old.labelled), (new.found, new.labelled)),
        ):
            if n < LEAST_ROWS or (m and b / m >= a / n - MOST_LOST):
                continue
            if m or share == "recall":
                out.append(Loss(lang, name, share, a / n, b / m))
    return out


def _hits(labelled: Sequence[LabelledTurn], read: Mapping[str, str]) -> dict[tuple[str, str], Hits]:
    return score_turns(labelled, [frozenset(read[turn.id].split("+")) - {""} for turn in labelled]).hits


def main() -> int:
    """Print what changed; write the record if asked. 1 if something changed or may not be written."""
    asked = argparse.ArgumentParser(
        prog="python -m evalpipe.signals.regression", description="Golden set against the last version."
    )
    asked.add_argument("--write", action="store_true", help="record what is read now")
    asked.add_argument("--accept", action="store_true", help="record it also where precision or recall fell")
    options = asked.parse_args()
    was, now = recorded(), reading()
    changed, lost = changes(was, now), losses(was, now, turns())
    for change in changed:
        print(f"{change.id}: {change.was} -> {change.now}")
    for loss in lost:
        print(f"{loss.name}@{loss.lang}: {loss.share} fell from {loss.was:.3f} to {loss.now:.3f}")
    print(f"{len(changed)} of {len(now)} rows are read otherwise, {len(lost)} shares fell")
    if options.write and (options.accept or not lost):
        record_path().write_text(json.dumps(now, ensure_ascii=False, indent=0) + "\n", "utf-8")
        return 0
    return int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
