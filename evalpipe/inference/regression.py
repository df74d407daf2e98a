"""Weighted least squares with user-clustered variance, for models that are more than cell means.

Belongs here: coefficients, CR0 to CR3 for any design matrix, Satterthwaite degrees of freedom. Does
not belong here: cell means, whose variance has a closed form without any inverse (``variance``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats

KINDS = ("CR0", "CR1", "CR1S", "CR2", "CR3")


@dataclass(frozen=True, slots=True)
class Regression:
    """A weighted least squares fit of P columns.

    Attributes:
        coef: (P,). cov: (P, P) clustered. df: (P,) Satterthwaite, of CR2 and CR3; NaN otherwise.
        status: ``ok`` or ``unavailable``. reason: ``collinear`` or ``one_user``.
    """

    coef: Floats
    cov: Floats
    df: Floats
    status: str = "ok"
    reason: str = ""

    @property
    def se(self) -> Floats:
        """(P,) standard errors."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.cov), 0.0)))


def fit_wls(X: Floats, y: Floats, user: Ints, weight: Floats | None = None, kind: str = "CR2") -> Regression:
    """Fit and judge a weighted regression.

    Args:
        X: (N, P) columns. y: (N,) outcomes. user: (N,) cluster codes.
        weight: (N,) positive; 1 by default.
        kind: ``CR0``; ``CR1`` with G/(G - 1); ``CR1S`` with (N - 1)/(N - P) as well; ``CR2`` (Bell
            and McCaffrey, 2002; Pustejovsky and Tipton, 2018) and ``CR3``, under the working model
            of independent sessions of one variance.

    Returns:
        The fit. Where columns are collinear, or all sessions are of one user, there is none.

    Raises:
        ValueError: Unknown kind, shapes that do not fit, or a number that is NaN or infinite.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    if X.ndim != 2 or y.shape != (len(X),) or w.shape != y.shape or len(user) != len(y):
        raise ValueError(f"X has shape {X.shape}, y {y.shape}, weight {w.shape}, user {np.shape(user)}")
    if not (np.isfinite(X).all() and np.isfinite(y).all() and np.isfinite(w).all() and (w > 0).all()):
        raise ValueError("X, y and weight must be finite, and weight positive")
    n_rows, n_columns = X.shape
    _, code = np.unique(user, return_inverse=True)
    n_users = int(code.max(initial=-1)) + 1
    nan = np.full(n_columns, np.nan)
    if n_rows == 0 or np.linalg.matrix_rank(X) < n_columns:
        return Regression(nan, np.full((n_columns,) * 2, np.nan), nan, "unavailable", "collinear")
    bread: Floats = np.linalg.inv(X.T @ (w[:, None] * X)).astype(np.float64)
    coef = bread @ (X.T @ (w * y))
    if n_users < 2:
        return Regression(coef, np.full((n_columns,) * 2, np.nan), nan, "unavailable", "one_user")
    residual = y - X @ coef
    order = np.argsort(code, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
    middle = bread @ (X.T @ (w[:, None] ** 2 * X)) @ bread
    scores = np.empty((n_users, n_columns))
    pieces: list[tuple[Floats, Floats, Floats]] = []
    for g, rows in enumerate(groups):
        adjust = _adjustment(X[rows], w[rows], bread, middle, kind)
        scores[g] = X[rows].T @ (w[rows] * (adjust @ residual[rows]))
        if kind in ("CR2", "CR3"):
            # Columns: what each coefficient reads of the adjusted residuals of this user.
            a = adjust.T @ (w[rows, None] * X[rows] @ bread)
            pieces.append((a, X[rows].T @ a, X[rows].T @ (w[rows, None] * a)))
    cov = bread @ (scores.T @ scores) @ bread
    if kind.startswith("CR1"):
        cov = cov * n_users / (n_users - 1.0) * ((n_rows - 1.0) / (n_rows - n_columns) if kind == "CR1S" else 1.0)
    df = _satterthwaite(pieces, bread, middle) if pieces else nan
    return Regression(coef, np.asarray(cov), df)


def _adjustment(X: Floats, w: Floats, bread: Floats, middle: Floats, kind: str) -> Floats:
    """Matrix that undoes the shrinking of one user's residuals."""
    n = len(X)
    if kind not in ("CR2", "CR3"):
        return np.eye(n)
    hat = X @ bread @ (X.T * w)
    if kind == "CR3":
        return np.asarray(np.linalg.pinv(np.eye(n) - hat))
    values, vectors = np.linalg.eigh(np.eye(n) - hat - hat.T + X @ middle @ X.T)
    root = np.where(values > 1e-10, 1.0 / np.sqrt(np.where(values > 1e-10, values, 1.0)), 0.0)
    return np.asarray((vectors * root) @ vectors.T)


def _satterthwaite(pieces: list[tuple[Floats, Floats, Floats]], bread: Floats, middle: Floats) -> Floats:
    """(P,) degrees of freedom: squared mean over variance of the variance, under the working model."""
    n_columns = len(bread)
    df = np.empty(n_columns)
    own = np.stack([(a**2).sum(axis=0) for a, _, _ in pieces])
    plain = np.stack([b for _, b, _ in pieces])
    weighted = np.stack([d for _, _, d in pieces])
    for p in range(n_columns):
        b, d = plain[:, :, p], weighted[:, :, p]
        cross = d @ bread @ b.T
        product = np.diag(own[:, p]) - cross - cross.T + b @ middle @ b.T
        df[p] = np.trace(product) ** 2 / (product**2).sum()
    return df
