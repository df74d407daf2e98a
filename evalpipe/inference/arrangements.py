"""Exact enumeration of label arrangements, for small samples.

Belongs here: counting and listing arrangements. Does not belong here: sampling them. Every distinct
arrangement of labels within a block is equally likely, so the p-value is a plain fraction.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import comb, lgamma, log

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats
from evalpipe.inference.studentize import Layout, plain_statistic, ratio_statistic

MAX_ARRANGEMENTS = 50_000


def count_session_arrangements(layout: Layout) -> int:
    """Arrangements of session labels within strata; stops counting above the limit."""
    return _count(layout.counts().T)


def count_arrangements(block: Ints, label: Ints) -> int:
    """Arrangements of labels within blocks; stops counting above the limit.

    Args:
        block: Codes, (U,). label: Codes, (U,).
    """
    _, block_code = np.unique(block, return_inverse=True)
    n_labels = int(label.max()) + 1
    counts = np.bincount(block_code * n_labels + label, minlength=(block_code.max() + 1) * n_labels)
    return _count(counts.reshape(-1, n_labels))


def all_labels(block: Ints, label: Ints) -> Iterator[Ints]:
    """Every distinct arrangement of labels within blocks, (U,) each."""
    places = [np.flatnonzero(block == b) for b in np.unique(block)]
    options = [_permutations(label[place]) for place in places]
    for choice in product(*(range(len(option)) for option in options)):
        out = label.copy()
        for place, option, at in zip(places, options, choice, strict=True):
            out[place] = option[at]
        yield out


def session_sums(layout: Layout) -> tuple[Floats, ...]:
    """Sums of t, m, t^2, t m and m^2 in each cell for every arrangement, each (A, C)."""
    t, m = layout.t, layout.m
    values = np.stack((t, m, t * t, t * m, m * m), axis=1)
    per_stratum: list[Floats] = []
    for s in range(layout.n_strata):
        place = np.flatnonzero(layout.stratum == s)
        labels = _permutations(layout.version[place])
        is_version = labels[:, None, :] == np.arange(layout.n_versions)[None, :, None]
        per_stratum.append(is_version.astype(float) @ values[place])
    sizes = [len(sums) for sums in per_stratum]
    choice = np.unravel_index(np.arange(int(np.prod(sizes))), sizes)
    stacked = np.stack([sums[at] for sums, at in zip(per_stratum, choice, strict=True)], axis=2)
    return tuple(stacked[..., i].reshape(len(stacked), -1) for i in range(values.shape[1]))


def session_statistics(layout: Layout) -> Iterator[Floats]:
    """The statistic of every arrangement, as one block (A, K)."""
    sums = session_sums(layout)
    n = layout.counts().ravel()
    if layout.is_plain:
        yield plain_statistic(sums[0], sums[2], n, layout.ell)
    else:
        yield ratio_statistic(sums, n, layout.ell)


def _count(counts: Ints) -> int:
    """Product over blocks of multinomial coefficients; counts is (blocks, labels)."""
    total = 1
    for block in counts:
        left = int(block.sum())
        for count in block:
            # The logarithm first: the exact number may have a million digits.
            if _log_comb(left, int(count)) > log(10 * MAX_ARRANGEMENTS):
                return 10 * MAX_ARRANGEMENTS
            total *= comb(left, int(count))
            left -= int(count)
            if total > MAX_ARRANGEMENTS:
                return total
    return total


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _permutations(labels: Ints) -> Ints:
    """Distinct arrangements of a multiset of labels, (A, n), in lexicographic order of places."""
    kinds, counts = np.unique(labels, return_counts=True)

    def place(free: tuple[int, ...], kind: int) -> Iterator[dict[int, int]]:
        if kind == len(kinds):
            yield {}
            return
        for chosen in combinations(free, int(counts[kind])):
            rest = tuple(i for i in free if i not in chosen)
            for tail in place(rest, kind + 1):
                yield {**dict.fromkeys(chosen, kind), **tail}

    found = [[at[i] for i in range(len(labels))] for at in place(tuple(range(len(labels))), 0)]
    return np.asarray(kinds[np.array(found, dtype=np.int64)])
