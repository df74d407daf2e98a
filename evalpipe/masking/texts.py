"""Texts outside the lake: one text or the texts of a session, masked, with the place of every change.

Belongs here: what the command line and the evaluation do with single texts, through the same engine and
the same session dictionary as a slice. Does not belong here: files (``rows``), tables (``kernel``).
"""

from __future__ import annotations

from dataclasses import dataclass

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import dictionary
from evalpipe.masking.decode import is_json, looks_like_json
from evalpipe.masking.engine import Span
from evalpipe.masking.ner import NerPass
from evalpipe.masking.plan import Hit, MaskPlan
from evalpipe.masking.trace import characters


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A replaced part of a text.

    Attributes:
        start, end: Characters of the text as given.
        entity, subtype, rule: What it is, and the id of the rule that says so.
        token: What stands in its place.
    """

    start: int
    end: int
    entity: str
    subtype: str
    rule: str
    token: str


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A masked text and what was replaced in it."""

    text: str
    spans: tuple[TextSpan, ...]


def learn(plan: MaskPlan, text: str, terms: dictionary.Terms) -> None:
    """Pass one over a session: what one text of it teaches.

    Args:
        plan: Key, rule set and limits.
        text: One text.
        terms: Terms of its session; changed in place.
    """
    raw = text.encode("utf-8", "replace")
    dictionary.learn(terms, raw, plan.find(raw) or (), plan.engine)


def mask(plan: MaskPlan, text: str, terms: dictionary.Terms | None = None, tenant: str = "") -> MaskedText:
    """Pass two: mask one text.

    Args:
        plan: Key, rule set and limits.
        text: The text.
        terms: What its session taught; ``None`` for a text without a session.
        tenant: Tenant of the session.

    Returns:
        The masked text. A text that is withheld has one span over all of it.
    """
    raw = text.encode("utf-8", "replace")
    spans = plan.find(raw)
    if spans is None:
        why = "size" if len(raw) > plan.withhold_over_bytes else "budget"
        token, hits = plan.withheld(why, len(raw), document=looks_like_json(raw) and is_json(raw))
        return _all_of(token, hits[0], len(text))
    return _replaced(plan, text, raw, spans, terms, tenant)


def _replaced(
    plan: MaskPlan, text: str, raw: bytes, spans: list[Span], terms: dictionary.Terms | None, tenant: str
) -> MaskedText:
    if plan.ner:
        asked = NerPass(plan.ner)
        named = asked.find([(0, raw, spans)]).get(0, [])
        if asked.n_unread:
            raise EvalpipeError("NER_FAILED", "the text is longer than the model's budget.", where=plan.ner)
        spans = plan.engine.settle(raw, spans + named, plan.key.epoch)
    if terms:
        spans = dictionary.extend(raw, spans, terms, plan.engine, plan.key.epoch)
    if not spans:
        return MaskedText(text, ())
    masked, hits, edits = plan.replace_traced(raw, spans, tenant)
    if edits is None:
        return _all_of(masked, hits[0], len(text))
    starts = characters(raw, [e.start for e in edits])
    ends = characters(raw, [e.end for e in edits])
    places = zip(starts, ends, edits, strict=True)
    found = tuple(
        TextSpan(start, end, *plan.engine.describe(edit.rule)[:3], edit.token.decode()) for start, end, edit in places
    )
    return MaskedText(masked.decode("utf-8", "replace"), found)


def _all_of(token: bytes, hit: Hit, n_characters: int) -> MaskedText:
    span = TextSpan(0, n_characters, hit.entity, hit.subtype, hit.rule_id, token.decode())
    return MaskedText(span.token, (span,))
