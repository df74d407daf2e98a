"""Recall and harm of a masking plan on a labelled corpus.

Belongs here: what counts as found and as harmed. Does not belong here: reading a corpus (``corpus``),
intervals and tables (``console``). Results hold ids and places, never a text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from evalpipe.masking import dictionary, texts
from evalpipe.masking.corpus import Corpus, Label, Sample
from evalpipe.masking.plan import MaskPlan
from evalpipe.masking.texts import TextSpan

#: Share of a value's letters and digits that must be gone for it to count as found.
FOUND_FROM = 0.9
#: Negatives of this tier are debatable: masking them is no error.
SOFT = "soft"


@dataclass(frozen=True, slots=True)
class Found:
    """One labelled place: where, what, and whether it is hidden."""

    id: str
    part: str
    start: int
    end: int
    entity: str
    subtype: str
    tier: str
    lang: str
    carrier: str
    line: str
    is_found: bool


@dataclass(frozen=True, slots=True)
class Harm:
    """Characters that were replaced although nothing there had to be hidden."""

    id: str
    part: str
    start: int
    end: int
    entity: str
    subtype: str
    rule: str
    tier: str
    lang: str
    carrier: str
    line: str


@dataclass(slots=True)
class Evaluation:
    """What a plan does on a corpus.

    Attributes:
        places: Every labelled place of positives and sessions.
        harms: Replaced characters outside of labels.
        n_negatives: Negative texts that must stay as they are; those of tier ``soft`` are not among them.
        touched, touched_soft: Ids of negative texts that changed.
        n_inside, n_outside: Characters in labels, and replaced characters outside of them, in positives.
        tokens: Tokens by value, for values that are told: one person must be one token.
    """

    places: list[Found] = field(default_factory=list)
    harms: list[Harm] = field(default_factory=list)
    n_negatives: int = 0
    touched: list[str] = field(default_factory=list)
    touched_soft: list[str] = field(default_factory=list)
    n_inside: int = 0
    n_outside: int = 0
    tokens: dict[tuple[str, str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def count(self, keep: Callable[[Found], bool]) -> tuple[int, int]:
        """(found, all) of the places that a predicate keeps."""
        kept = [place for place in self.places if keep(place)]
        return sum(place.is_found for place in kept), len(kept)

    def count_by(self, name: str, keep: Callable[[Found], bool]) -> dict[str, tuple[int, int]]:
        """(found, all) by an attribute of a place, such as ``entity`` or ``lang``."""
        groups: dict[str, list[bool]] = defaultdict(list)
        for place in self.places:
            if keep(place):
                groups[getattr(place, name) or "-"].append(place.is_found)
        return {key: (sum(found), len(found)) for key, found in sorted(groups.items())}


def evaluate(plan: MaskPlan, corpus: Corpus, on_text: Callable[[int], None] = lambda _: None) -> Evaluation:
    """Mask every text of a corpus and compare.

    Args:
        plan: Key, rule set and limits.
        corpus: Labelled texts.
        on_text: Told how many texts are done.

    Returns:
        Places, harms and counts.
    """
    out = Evaluation()
    for sample in corpus.positives:
        spans = texts.mask(plan, sample.text).spans
        _judge(out, sample, spans, "positives", scope="")
        outside = _outside(sample, spans)
        out.n_outside += sum(end - start for start, end, _ in outside)
        out.n_inside += len({at for label in sample.labels for at in range(label.start, label.end)})
        on_text(1)
    for sample in corpus.negatives:
        masked = texts.mask(plan, sample.text)
        is_soft = sample.tier == SOFT
        out.n_negatives += not is_soft
        if masked.text != sample.text:
            (out.touched_soft if is_soft else out.touched).append(sample.id)
            if not is_soft:
                _judge(out, sample, masked.spans, "negatives", scope="")
        on_text(1)
    for session in corpus.sessions:
        terms = dictionary.Terms()
        for turn in session.turns:
            texts.learn(plan, turn.text, terms)
        for turn in session.turns:
            _judge(out, turn, texts.mask(plan, turn.text, terms).spans, "sessions", scope=session.id)
            on_text(1)
    return out


def _judge(out: Evaluation, sample: Sample, spans: Sequence[TextSpan], part: str, *, scope: str) -> None:
    """Add one text: which labels are hidden, under which token, and what else was replaced."""
    about = (sample.tier, sample.lang, sample.carrier, sample.line)
    covered = _covered(sample.text, spans)
    for label in sample.labels:
        found = _is_found(sample.text, label, covered)
        out.places.append(
            Found(sample.id, part, label.start, label.end, label.entity, label.subtype, *about, is_found=found)
        )
        tokens = {s.token for s in spans if s.start < label.end and label.start < s.end}
        if label.canon and found and len(tokens) == 1 and ":" in next(iter(tokens)):
            out.tokens[scope, label.entity, label.canon] |= tokens
    for start, end, span in _outside(sample, spans):
        out.harms.append(Harm(sample.id, part, start, end, span.entity, span.subtype, span.rule, *about))


def _covered(text: str, spans: Iterable[TextSpan]) -> bytearray:
    covered = bytearray(len(text))
    for span in spans:
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
    return covered


def _is_found(text: str, label: Label, covered: bytearray) -> bool:
    where = [at for at in range(label.start, label.end) if text[at].isalnum()]
    where = where or list(range(label.start, label.end))
    return sum(covered[at] for at in where) >= FOUND_FROM * len(where)


def _outside(sample: Sample, spans: Iterable[TextSpan]) -> list[tuple[int, int, TextSpan]]:
    """Replaced runs outside of all labels, with the span that took them."""
    labelled = _covered(sample.text, (TextSpan(lb.start, lb.end, "", "", "", "") for lb in sample.labels))
    out: list[tuple[int, int, TextSpan]] = []
    for span in spans:
        at = span.start
        while at < span.end:
            if labelled[at]:
                at += 1
                continue
            start = at
            while at < span.end and not labelled[at]:
                at += 1
            out.append((start, at, span))
    return out
