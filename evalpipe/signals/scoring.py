"""Right and wrong of extraction on labelled rows, as counts.

Belongs here: what counts as a hit, a miss and a confusion. Does not belong here: reading rows (``labelled``),
running extraction (``replay``), shares and their intervals (the console).

Of turns, a hit on a class is right when the class is among all ``labels`` of the row, and the rows to
find are those whose primary ``label`` it is: a turn with two labels is not two turns to find, and who
finds its second label is not wrong. Negative joined is correction or complaint, positive joined
confirm or praise. Of tool outputs, category and layer are judged on right hits of command errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from evalpipe.signals.labelled import (
    NEGATIVE_CLASSES,
    POSITIVE_CLASSES,
    TURN_CLASSES,
    LabelledCall,
    LabelledTurn,
)
from evalpipe.signals.replay import Judged

NEGATIVE_JOINED, POSITIVE_JOINED = "negative_joined", "positive_joined"
ALL_LANGUAGES = "all"
NOTHING = "nothing"
#: One column of the confusion a turn: the class that would change most what the agent does next.
_BY_WEIGHT = ("correction", "complaint", "confirm", "praise")
_GROUPS: dict[str, frozenset[str]] = {
    **{name: frozenset({name}) for name in TURN_CLASSES},
    NEGATIVE_JOINED: NEGATIVE_CLASSES,
    POSITIVE_JOINED: POSITIVE_CLASSES,
}


@dataclass(slots=True)
class Hits:
    """Counts of one class.

    Attributes:
        emitted: Rows on which it was emitted. right: Of these, rows that have it.
        labelled: Rows to find. found: Of these, rows on which it was emitted.
    """

    emitted: int = 0
    right: int = 0
    labelled: int = 0
    found: int = 0

    def count(self, *, is_emitted: bool, is_true: bool, is_sought: bool) -> None:
        """Count one row."""
        self.emitted += is_emitted
        self.right += is_emitted and is_true
        self.labelled += is_sought
        self.found += is_emitted and is_sought


@dataclass(slots=True)
class TurnScores:
    """Counts over labelled turns: by language and class, confusion by (primary label, emitted)."""

    n_rows: Counter[str] = field(default_factory=Counter)
    hits: dict[tuple[str, str], Hits] = field(default_factory=dict)
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[dict[str, object]] = field(default_factory=list)


def score_turns(turns: Sequence[LabelledTurn], emitted: Sequence[frozenset[str]]) -> TurnScores:
    """Score what was emitted for turns.

    Args:
        turns: (n,) labelled turns.
        emitted: (n,) classes that extraction emitted.

    Returns:
        Counts under every language of the file and under :data:`ALL_LANGUAGES`.
    """
    out = TurnScores()
    for turn, got in zip(turns, emitted, strict=True):
        for lang in (ALL_LANGUAGES, turn.lang):
            out.n_rows[lang] += 1
            for name, members in _GROUPS.items():
                out.hits.setdefault((lang, name), Hits()).count(
                    is_emitted=bool(got & members),
                    is_true=bool(turn.labels & members),
                    is_sought=turn.label in members,
                )
        first = next((name for name in _BY_WEIGHT if name in got), NOTHING)
        out.confusion[turn.label, first] += 1
        if got - turn.labels or (turn.label in TURN_CLASSES and turn.label not in got):
            out.wrong.append(
                {"id": turn.id, "lang": turn.lang, "label": turn.label, "labels": sorted(turn.labels),
                 "emitted": sorted(got)}
            )  # fmt: skip
    return out


@dataclass(slots=True)
class CallScores:
    """Counts over labelled tool outputs.

    Attributes:
        n_rows: Rows.
        is_error: Command errors.
        status: Counts of each status. n_status: Rows that state one. n_status_right: Of these, right ones.
        confusion: Rows by (labelled, judged) status.
        category, layer: (right, judged) right hits of command errors whose row states one.
        categories, layers: Confusion of these hits by (labelled, judged).
        wrong: Rows that are wrong somewhere, without their text.
    """

    n_rows: int = 0
    is_error: Hits = field(default_factory=Hits)
    status: dict[str, Hits] = field(default_factory=dict)
    n_status: int = 0
    n_status_right: int = 0
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)
    categories: Counter[tuple[str, str]] = field(default_factory=Counter)
    layers: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[dict[str, object]] = field(default_factory=list)

    @property
    def category(self) -> tuple[int, int]:
        """Hits with the right category, and all that state one."""
        return _right(self.categories)

    @property
    def layer(self) -> tuple[int, int]:
        """Hits with the right layer, and all that state one."""
        return _right(self.layers)


def _right(pairs: Counter[tuple[str, str]]) -> tuple[int, int]:
    return sum(n for (label, got), n in pairs.items() if label == got), pairs.total()


def score_calls(calls: Sequence[LabelledCall], judged: Sequence[Judged]) -> CallScores:
    """Score what was said of tool outputs.

    Args:
        calls: (n,) labelled calls.
        judged: (n,) what extraction says of them.
    """
    out = CallScores()
    for call, got in zip(calls, judged, strict=True):
        out.n_rows += 1
        is_hit = got.status == "error"
        out.is_error.count(is_emitted=is_hit, is_true=call.is_error, is_sought=call.is_error)
        is_right = is_hit == call.is_error
        if call.status is not None:
            out.n_status += 1
            out.n_status_right += got.status == call.status
            out.confusion[call.status, got.status] += 1
            is_right &= got.status == call.status
            for status in {call.status, got.status}:
                out.status.setdefault(status, Hits()).count(
                    is_emitted=got.status == status, is_true=call.status == status, is_sought=call.status == status
                )
        if is_hit and call.is_error:
            if call.category is not None:
                out.categories[call.category, got.category or NOTHING] += 1
                is_right &= call.category == got.category
            if call.layer is not None:
                out.layers[call.layer, got.layer or NOTHING] += 1
                is_right &= call.layer == got.layer
        if not is_right:
            label = {"status": call.status or ("error" if call.is_error else "not error"), "category": call.category}
            out.wrong.append(
                {"id": call.id, **label, "layer": call.layer, "judged": got.status, "judged_category": got.category,
                 "rule": got.rule_id}
            )  # fmt: skip
    return out
