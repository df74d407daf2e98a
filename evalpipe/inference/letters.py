"""Compact letters: versions that share a letter cannot be told apart.

Belongs here: insert-and-absorb. Does not belong here: which pairs are told apart
(``simultaneous``). The relation is not transitive, so letters overlap and are not tiers.
"""

from __future__ import annotations

import string

import numpy as np

from evalpipe.inference.model import Bools, Floats

_ALPHABET = string.ascii_lowercase + string.ascii_uppercase


def compact_letters(score: Floats, is_distinct: Bools) -> list[str]:
    """Letters by insert-and-absorb (Piepho, 2004).

    Args:
        score: (K,) order of the versions, larger first; it decides which letters come first.
        is_distinct: (K, K) symmetric, whether two versions are told apart.

    Returns:
        (K,) strings; two versions share a letter exactly if they are not told apart.
    """
    n = len(score)
    order = [int(i) for i in np.argsort(-score, kind="stable")]
    place = {version: at for at, version in enumerate(order)}
    groups: list[frozenset[int]] = [frozenset(range(n))] if n else []
    for a in range(n):
        for b in range(a + 1, n):
            if is_distinct[order[a], order[b]]:
                groups = _absorb(_split(groups, order[a], order[b]))
    groups.sort(key=lambda group: sorted(place[version] for version in group))
    marks = [_mark(i) for i in range(len(groups))]
    return ["".join(mark for mark, group in zip(marks, groups, strict=True) if k in group) for k in range(n)]


def _split(groups: list[frozenset[int]], one: int, other: int) -> list[frozenset[int]]:
    out: list[frozenset[int]] = []
    for group in groups:
        if one in group and other in group:
            out += [group - {other}, group - {one}]
        else:
            out.append(group)
    return out


def _absorb(groups: list[frozenset[int]]) -> list[frozenset[int]]:
    kept: list[frozenset[int]] = []
    for group in sorted(set(groups), key=lambda g: (-len(g), sorted(g))):
        if not any(group <= other for other in kept):
            kept.append(group)
    return kept


def _mark(index: int) -> str:
    """a..z, A..Z, then single letters of the Latin Extended block: always one character."""
    return _ALPHABET[index] if index < len(_ALPHABET) else chr(0x100 + index - len(_ALPHABET))
