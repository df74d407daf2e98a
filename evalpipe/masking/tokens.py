"""Tokens of masking in a text: which are its own, and what of a span lies outside of them.

Belongs here: the form of a token and the subtraction of spans. Does not belong here: making tokens
(``plan``), what a value is (``validators``). Whoever writes a log can write ``<SECRET:hunter2>`` into it, so a
token is one only with a subtype that the rule set has, and none protects what stands beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

#: Reasons for which a field is withheld whole.
WITHHELD_REASONS = ("budget", "json", "leak", "size", "unstable")
_WORD = re.compile(rb"[A-Za-z0-9\x80-\xff]")


def pattern(pseudonymised: Iterable[str], masked: Iterable[tuple[str, str]]) -> re.Pattern[bytes]:
    """The tokens of a rule set: ``entity`` and ``epoch`` name those of a pseudonym.

    Args:
        pseudonymised: Entities with keyed tokens.
        masked: (entity, subtype) of all others; an entity may stand without its subtype.
    """
    kinds: dict[str, set[str]] = {}
    for entity, subtype in masked:
        kinds.setdefault(entity, set()).add(subtype)
    forms = [
        f"{entity}(?::(?:{'|'.join(map(re.escape, sorted(names - {''}))) or '$^'}))?"
        for entity, names in sorted(kinds.items())
    ]
    keyed = "|".join(sorted(pseudonymised))
    return re.compile(f"<(?:(?P<entity>{keyed}):(?P<epoch>[a-p]{{4}}):[a-p]{{20}}|(?:{'|'.join(forms)}))>".encode())


def foreign(pseudonymised: Iterable[str]) -> re.Pattern[bytes]:
    """Whatever the leak check would take for a pseudonym: well formed or not, of any key."""
    return re.compile(f"<(?P<entity>{'|'.join(sorted(pseudonymised))}):[a-p]{{4}}:[a-z]{{1,200}}>".encode())


def outside(raw: bytes, start: int, end: int, tokens: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of a span lies outside of tokens and holds a letter or digit.

    Args:
        raw: The text.
        start, end: The span in bytes.
        tokens: Disjoint tokens in order.

    Returns:
        Disjoint spans in order; none where the span begins inside of a token, since it was found by the
        token's own letters.
    """
    at = bisect_right([stop for _, stop in tokens], start)
    if at < len(tokens) and tokens[at][0] < start:
        return []
    out = []
    for first, stop in [*(token for token in tokens[at:] if token[0] < end), (end, end)]:
        if start < min(first, end) and _WORD.search(raw, start, min(first, end)):
            out.append((start, min(first, end)))
        start = max(start, stop)
    return out
