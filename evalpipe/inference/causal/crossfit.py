"""Chances of routing and outcomes to expect, each predicted from other people's sessions.

Belongs here: five-fold fits by user on categories that were known before routing. Does not belong
here: what is done with them (``weighting``, ``robust``, ``observational``). Sessions with the same
categories are one row, so that a fit costs as much as there are kinds of work, not sessions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.causal.logistic import fit_counts
from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats

FOLDS = 5
#: Smallest chance that is used: beyond it one session would stand for a hundred.
CLIP = 0.01


@dataclass(frozen=True, slots=True)
class Kinds:
    """Sessions grouped by what was known before routing.

    Attributes:
        X: (R, P) columns of the distinct kinds: an intercept and one a level, the first too:
            the ridge tells them apart, and none is special.
        kind: (N,) kind of each session. fold: (N,) fold of its user.
    """

    X: Floats
    kind: Ints
    fold: Ints


@dataclass(frozen=True, slots=True)
class Chances:
    """Chances of routing (N, K), clipped and scaled to sum to 1.

    Attributes:
        chance: (N, K). clipped: Share of sessions whose own version's chance was raised.
        is_converged: Whether every fold was fitted.
    """

    chance: Floats
    clipped: float
    is_converged: bool


def group_kinds(categories: Ints, user: Ints) -> Kinds:
    """Group sessions by their categories.

    Args:
        categories: (N, P) codes from 0. user: (N,) cluster codes; a user's sessions share a fold.
    """
    distinct, kind = np.unique(categories, axis=0, return_inverse=True)
    columns = [np.ones(len(distinct))]
    for column in distinct.T:
        columns += [(column == level).astype(np.float64) for level in np.unique(column)]
    _, code = np.unique(user, return_inverse=True)
    return Kinds(np.stack(columns, axis=1), kind.reshape(-1).astype(np.int64), code % FOLDS)


def crossfit_chances(kinds: Kinds, label: Ints, n_versions: int) -> Chances:
    """Chances of routing by a ridge multinomial regression (C = 1), fitted on the other folds.

    Args:
        kinds: Grouped sessions. label: (N,) version codes. n_versions: K.
    """
    chance, is_converged = np.empty((len(label), n_versions)), True
    for fold in range(FOLDS):
        here = kinds.fold == fold
        if not here.any():
            continue
        key = kinds.kind[~here] * n_versions + label[~here]
        counts = np.bincount(key, minlength=len(kinds.X) * n_versions).reshape(-1, n_versions).astype(np.float64)
        fit = fit_counts(kinds.X, counts, penalty=_ridge(kinds.X), with_errors=False)
        is_converged &= fit.is_converged
        chance[here] = fit.fitted[kinds.kind[here]]
    own = chance[np.arange(len(label)), label]
    raised = np.maximum(chance, CLIP)
    return Chances(raised / raised.sum(axis=1, keepdims=True), float((own < CLIP).mean()), is_converged)


def crossfit_outcomes(kinds: Kinds, y: Floats, label: Ints, n_versions: int) -> Floats:
    """Outcomes to expect of every session under every version, (N, K), fitted on the other folds.

    Args:
        kinds: Grouped sessions. y: (N,) outcomes: a ridge logistic regression where they lie in
            [0, 1], else a ridge line. label: (N,) version codes. n_versions: K.

    Returns:
        Predictions; NaN for a version without sessions in the other folds.
    """
    out = np.full((len(y), n_versions), np.nan)
    is_rate, ridge = bool((y >= 0).all() and (y <= 1).all()), _ridge(kinds.X)
    for fold in range(FOLDS):
        here = kinds.fold == fold
        for k in range(n_versions):
            used = ~here & (label == k)
            if not here.any() or not used.any():
                continue
            n = tally(kinds.kind[used], np.ones(int(used.sum())), len(kinds.X))
            total = tally(kinds.kind[used], y[used], len(kinds.X))
            if is_rate:
                counts = np.stack((n - total, total), axis=1)
                predicted = fit_counts(kinds.X, counts, penalty=ridge, with_errors=False).fitted[:, 1]
            else:
                gram = kinds.X.T @ (n[:, None] * kinds.X) + np.diag(ridge)
                predicted = kinds.X @ np.linalg.solve(gram, kinds.X.T @ total)
            out[here, k] = predicted[kinds.kind[here]]
    return out


def _ridge(X: Floats) -> Floats:
    return np.concatenate(([0.0], np.ones(X.shape[1] - 1)))
