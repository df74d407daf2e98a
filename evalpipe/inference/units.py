"""Permutation of assignment units, for designs in which a user keeps a version.

Belongs here: (user, epoch) units that travel whole, and NI / se_CR0 of a labelling. Does not
belong here: designs that assign each session. Permuting sessions of sticky users rejects a true
null 40 times in 100; permuting the users rejects it 5 times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints, group, tally
from evalpipe.inference.model import Bools, Floats
from evalpipe.inference.studentize import Layout, quotient

CHUNK = 100
MAX_MIXED = 0.05
_MAX_TRIES = 2


@dataclass(frozen=True, slots=True)
class UnitTable:
    """Assignment units and their (unit, stratum) sums.

    A user who saw two versions in one epoch forms one unit a version: each still travels whole.

    Attributes:
        label, epoch, user: Per unit, (U,), sorted by epoch, then user, then version.
        row_unit, row_stratum, m, t: Per (unit, stratum) with data, (R,).
        first, second: Ordered pairs of units of one user, each unit with itself included.
        ell, contrast, weights: As in the layout.
        mixed_share: Share of (user, epoch) pairs that saw several versions.
        varies: Whether outcomes differ at all.
    """

    label: Ints
    epoch: Ints
    user: Ints
    row_unit: Ints
    row_stratum: Ints
    m: Floats
    t: Floats
    first: Ints
    second: Ints
    ell: Floats
    contrast: Floats | None
    weights: Floats | None
    mixed_share: float
    varies: bool

    @classmethod
    def build(cls, layout: Layout) -> UnitTable:
        """Group a layout's sessions into units."""
        n_versions, n_strata = layout.n_versions, layout.n_strata
        n_users = int(layout.user.max()) + 1
        key = (layout.epoch * n_users + layout.user) * n_versions + layout.version
        units, unit = np.unique(key, return_inverse=True)
        rows = group(unit, layout.stratum, layout.m, layout.t, n_strata)
        place, label = np.divmod(units, n_versions)
        epoch, user = np.divmod(place, n_users)
        first, second = _same_user_pairs(user)
        n_places = len(np.unique(place))
        return cls(
            label=label,
            epoch=epoch,
            user=user,
            row_unit=rows.user,
            row_stratum=rows.cell,
            m=rows.m,
            t=rows.t,
            first=first,
            second=second,
            ell=layout.ell,
            contrast=layout.contrast,
            weights=layout.weights,
            mixed_share=float((np.bincount(np.unique(place, return_inverse=True)[1]) > 1).sum() / n_places),
            varies=layout.varies,
        )

    @property
    def n_rows(self) -> int:
        """R."""
        return len(self.m)

    def statistic(self, label: Ints) -> Floats:
        """(K,) NI / se_CR0 under a labelling; NaN if nothing varies or the version is its own reference."""
        n_cells, n_versions = self.ell.shape
        n_strata = n_cells // n_versions
        row_label = label[self.row_unit]
        cell = row_label * n_strata + self.row_stratum
        D = tally(cell, self.m, n_cells)
        mean = tally(cell, self.t, n_cells) / D
        influence = (self.t - mean[cell] * self.m) / D[cell]
        if self.contrast is not None and self.weights is not None:
            by_unit = tally(self.row_unit, self.weights[self.row_stratum] * influence, len(label))
            pair = label[self.first] * n_versions + label[self.second]
            products = by_unit[self.first] * by_unit[self.second]
            gram = tally(pair, products, n_versions**2).reshape(n_versions, n_versions)
            variance = np.einsum("kj,ji,ki->k", self.contrast, gram, self.contrast)
        else:
            by_row = self.ell[cell] * influence[:, None]
            psi = np.zeros((int(self.user.max()) + 1, n_versions))
            np.add.at(psi, self.user[self.row_unit], by_row)
            variance = (psi**2).sum(axis=0)
        scale = np.abs(mean) @ np.abs(self.ell)
        statistic = quotient(mean @ self.ell, np.maximum(variance, 0.0), scale)
        return np.where((self.ell != 0).any(axis=0) & self.varies, statistic, np.nan)

    def is_complete(self, label: Ints) -> bool:
        """Whether a labelling leaves no kept cell empty."""
        return bool(self._filled(label).all())

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Up to n replicates (n, K); fewer if most labellings empty a kept cell."""
        out: list[Floats] = []
        edges = np.flatnonzero(np.diff(self.epoch)) + 1
        slices = list(zip([0, *edges], [*edges, len(self.label)], strict=True))
        for _ in range(_MAX_TRIES * n):
            label = self.label.copy()
            for lo, hi in slices:
                rng.shuffle(label[lo:hi])
            if self.is_complete(label):
                out.append(self.statistic(label))
                if len(out) == n:
                    break
        return np.array(out).reshape(-1, self.ell.shape[1])

    def _filled(self, label: Ints) -> Bools:
        n_cells, n_versions = self.ell.shape
        n_strata = n_cells // n_versions
        filled = np.zeros(n_cells, dtype=bool)
        filled[label[self.row_unit] * n_strata + self.row_stratum] = True
        return filled


def _same_user_pairs(user: Ints) -> tuple[Ints, Ints]:
    """All ordered pairs of units of one user, each unit paired with itself too."""
    order = np.argsort(user, kind="stable")
    ordered = user[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    sizes = np.searchsorted(ordered, ordered, side="right") - starts
    first = np.repeat(np.arange(len(user)), sizes)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    second = np.repeat(starts, sizes) + offset
    return order[first], order[second]
