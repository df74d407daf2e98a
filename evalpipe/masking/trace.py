"""Edits of a text, led back to the text that they began with.

Belongs here: offsets across the rounds of a replacement, and bytes to characters. Does not belong here:
finding or naming what is replaced.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """Bytes ``start`` to ``end`` of a text became ``token``; ``rule`` is the span's rule number."""

    start: int
    end: int
    token: bytes
    rule: int


def original(rounds: Sequence[Sequence[Edit]]) -> list[Edit]:
    """Edits of all rounds as edits of the first text.

    Args:
        rounds: Edits of each round, disjoint and in order, in offsets of the text of that round.

    Returns:
        Disjoint edits in order, in offsets of the first text. Where a later round took what an earlier
        one had put there, both are one edit under the later name.
    """
    out: list[Edit] = list(rounds[0]) if rounds else []
    for at, edits in enumerate(rounds[1:], 1):
        for edit in edits:
            start, end = edit.start, edit.end
            for before in reversed(rounds[:at]):
                start, end = _back(before, start, end)
            touched = [o for o in out if o.start < end and start < o.end]
            out = [o for o in out if o not in touched]
            low = min([start, *(o.start for o in touched)])
            out.append(Edit(low, max([end, *(o.end for o in touched)]), edit.token, edit.rule))
        out.sort()
    return out


def _back(edits: Sequence[Edit], start: int, end: int) -> tuple[int, int]:
    """A span of the text after some edits as a span of the text before; what was put in is taken whole."""
    first, last, shift = start, end, 0
    for edit in edits:
        at = edit.start + shift
        shift += len(edit.token) - (edit.end - edit.start)
        after = at + len(edit.token)
        if start >= after:
            first = start - shift
        elif start > at:
            first = edit.start
        if end >= after:
            last = end - shift
        elif end > at:
            last = edit.end
    return first, last


def characters(raw: bytes, offsets: Iterable[int]) -> list[int]:
    """Byte offsets of a UTF-8 text as character offsets.

    Args:
        raw: The text.
        offsets: Offsets at borders of characters.
    """
    if raw.isascii():
        return list(offsets)
    starts = [at for at, byte in enumerate(raw) if byte & 0xC0 != 0x80]
    return [bisect_right(starts, offset - 1) for offset in offsets]
