"""Semantic patterns: loading them, and finding which fire on which turn.

Belongs here: the form of a pattern file, its compilation, vectorised evaluation, and where exactly
a pattern fired. Does not belong here: wording (``data/patterns/<lang>/*.toml``), which turns may be
read and what becomes of a hit (``semantic``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.signals import rulefiles
from evalpipe.signals.text import BODY_CHARS, HEAD_CHARS, fold

_CLOSER = re.compile(r"[.!?\n]")
ZONES: dict[str, int | None] = {"head": HEAD_CHARS, "body": BODY_CHARS, "whole": None}
#: What a pattern may ask of the moment at which the turn was written.
CONTEXT_FLAGS = ("prev_agent_question", "agent_claimed_done")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One rule: fires where ``any`` matches in its zone and nothing in ``unless`` does.

    Attributes:
        id, lang, signal: Name, language of the turns it reads, signal it emits.
        zone: How much of the prose it sees: head (220 characters), body (420) or whole.
        any: Alternation in the shared dialect.
        unless: Alternation that vetoes the pattern anywhere in the zone; may be empty.
        near: The same, but only in the sentence of the match (``unless_near`` of the pattern, and of its
            file, which holds for all patterns in it); may be empty.
        max_chars: Longest prose that it reads; 0 for any. A state named in the middle of a long message
            is more often part of a description than a report.
        after: Words that undo the match when they follow within ``within`` characters; may be empty.
        context: Flag -> value that it must have.
        confidence: Estimated precision.
        match, no_match: Examples, every one tested.
    """

    id: str
    lang: str
    signal: str
    zone: str
    any: str
    unless: str
    near: str
    max_chars: int
    after: str
    within: int
    context: tuple[tuple[str, bool], ...]
    confidence: float
    match: tuple[str, ...]
    no_match: tuple[str, ...]


@lru_cache(maxsize=1)
def load_patterns() -> tuple[Pattern, ...]:
    """All shipped patterns, sorted by language, signal and id."""
    out: list[Pattern] = []
    for lang in rulefiles.languages():
        shared = rulefiles.load(lang, "shared.toml")
        for path in sorted(rulefiles.patterns_dir().joinpath(lang).glob("*.toml")):
            if path.name != "shared.toml":
                out += _file(rulefiles.load(lang, path.name), shared)
    return tuple(sorted(out, key=lambda p: (p.lang, p.signal, p.id)))


def _file(data: Mapping[str, Any], shared: Mapping[str, Any]) -> list[Pattern]:
    macros = {**shared.get("macros", {}), **data.get("macros", {})}

    def alternation(texts: list[str]) -> str:
        return rulefiles.any_of([folded(rulefiles.expand(text, macros)) for text in texts])

    return [
        Pattern(
            id=row["id"],
            lang=data["lang"],
            signal=data["signal"],
            zone=row.get("zone", "head"),
            any=alternation(row["any"]),
            unless=alternation(row.get("unless", [])),
            near=alternation([*data.get("unless_near", []), *row.get("unless_near", [])]),
            max_chars=row.get("max_chars", data.get("max_chars", 0)),
            after=alternation(shared["words"][row["unless_after"]["words"]]) if "unless_after" in row else "",
            within=row.get("unless_after", {}).get("within", 0),
            context=tuple(sorted(row.get("context", {}).items())),
            confidence=row["confidence"],
            match=tuple(row["match"]),
            no_match=tuple(row.get("no_match", [])),
        )
        for row in data["pattern"]
    ]  # fmt: skip


def folded(pattern: str) -> str:
    """The pattern with its letters folded as those of the text are: it may be written in any script's usual form."""
    return "".join(char if char.isascii() or not char.isalpha() else fold(char) for char in pattern)


@lru_cache(maxsize=4096)
def _python(pattern: str) -> re.Pattern[str]:
    return rulefiles.to_python(pattern)


def _zone_column(zone: str) -> pl.Expr:
    chars = ZONES[zone]
    return pl.col("prose") if chars is None else pl.col("prose").str.head(chars)


def find(turns: pl.DataFrame, languages: tuple[str, ...]) -> pl.DataFrame:
    """Which pattern fires on which turn, before the words that follow are looked at.

    Args:
        turns: Frame with ``row`` (UInt32, unique), ``prose`` (folded), ``lang`` and
            :data:`CONTEXT_FLAGS` (Boolean).
        languages: Languages to read; turns of others give nothing.

    Returns:
        (hits, 2) frame of ``row`` and ``pattern``, an index into :func:`load_patterns`.
    """
    found = [pl.DataFrame(schema={"row": pl.UInt32, "pattern": pl.Int32})]
    patterns = load_patterns()
    for lang in languages:
        own = [(i, p) for i, p in enumerate(patterns) if p.lang == lang]
        mine = turns.filter(pl.col("lang") == lang)
        if not own or mine.is_empty():
            continue
        for zone in ZONES:
            rules = [(i, p) for i, p in own if p.zone == zone]
            if rules:
                found.append(_evaluate(mine, zone, rules))
    return pl.concat(found).sort("row", "pattern")


def _evaluate(turns: pl.DataFrame, zone: str, rules: list[tuple[int, Pattern]]) -> pl.DataFrame:
    # One automaton a pattern: the alternation of all of them overflows the engine's cache of states
    # and is twenty times slower than running them one after the other.
    near = turns.select("row", *CONTEXT_FLAGS, zone=_zone_column(zone), chars=pl.col("prose").str.len_chars())
    fired = near.select(pl.col("zone").str.contains(rulefiles.to_rust(p.any)).alias(f"{i}") for i, p in rules)
    any_fired = fired.select(pl.all().any()).row(0)
    hits = [near.clear().select("row", pattern=pl.lit(0, dtype=pl.Int32))]
    for (i, p), is_found in zip(rules, any_fired, strict=True):
        if not is_found:
            continue
        mine = near[fired[f"{i}"].arg_true()]
        if p.max_chars:
            mine = mine.filter(pl.col("chars") <= p.max_chars)
        if p.unless:
            mine = mine.filter(~pl.col("zone").str.contains(rulefiles.to_rust(p.unless)))
        for flag, value in p.context:
            mine = mine.filter(pl.col(flag) if value else ~pl.col(flag))
        hits.append(mine.select("row", pattern=pl.lit(i, dtype=pl.Int32)))
    return pl.concat(hits)


def locate(pattern: Pattern, prose: str) -> tuple[int, int] | None:
    """Where a pattern fires in a turn's prose; null where its sentence or what follows undoes it.

    Returns:
        (start, end) in the prose, or None.
    """
    chars = ZONES[pattern.zone]
    zone = prose if chars is None else prose[:chars]
    for match in _python(pattern.any).finditer(zone):
        start, end = match.span()
        if start == end:
            continue
        if pattern.near and _python(pattern.near).search(sentence(zone, start, end)):
            continue
        if pattern.after and _python(pattern.after).search(prose[end : end + pattern.within]):
            continue
        return start, end
    return None


def sentence(text: str, start: int, end: int) -> str:
    """The sentence, or sentences, that a span lies in, closing punctuation included."""
    # A match may end on the punctuation that closes its sentence.
    closer = _CLOSER.search(text, max(start, end - 1))
    # Asked of every hit: four searches in C are faster than one loop in Python.
    find = text.rfind
    low = max(find(".", 0, start), find("!", 0, start), find("?", 0, start), find("\n", 0, start)) + 1
    return text[low : closer.end() if closer else len(text)].lstrip()
