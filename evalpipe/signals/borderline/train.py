"""Fitting the classifier: one logistic regression, the same result for the same rows.

Belongs here: the fit and its calibration. Does not belong here: reading labels (``labels``), what is said of
the result (``measure``), files (``steps/borderline.py``). Rows are put in order first; nothing is drawn.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar

from evalpipe.signals.borderline import features
from evalpipe.signals.borderline.classes import CLASSES, class_of, targets
from evalpipe.signals.borderline.model import Model, quantised
from evalpipe.signals.labelled import LabelledTurn

#: Weight of the squares of all weights in the mean loss of a row.
PENALTY = 5e-5
ITERATIONS = 100
#: One session in so many is left out of a first fit, and tells how sure the second one may be.
_CALIBRATE_ONE_IN = 5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trained:
    """A model and what it was made of.

    Attributes:
        model: The model. labels: Digest of the labelled rows.
        n_rows: Rows. n_iterations: Steps of the last fit.
    """

    model: Model
    labels: str
    n_rows: int
    n_iterations: int


def moments_of(turns: list[LabelledTurn]) -> pl.DataFrame:
    """Labelled turns in the form in which features read them."""
    return features.moments(
        [turn.text for turn in turns], [turn.prev_user for turn in turns], [turn.prev_agent_tail for turn in turns]
    )


def labels_digest(turns: list[LabelledTurn]) -> str:
    """Twelve hexadecimal digits of the rows, whatever their order."""
    rows = sorted("\x1f".join(map(str, _decisive(turn))) for turn in turns)
    return hashlib.blake2b("\x1e".join(rows).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _decisive(t: LabelledTurn) -> tuple[object, ...]:
    return (t.text, t.prev_user or "", t.prev_agent_tail or "", t.label, t.subtype or "", t.weight, *sorted(t.labels))


def with_moments(turns: list[LabelledTurn]) -> list[LabelledTurn]:
    """Turns, openings of a dialogue with what came before some other turn of their language.

    Extraction reads no opening, and all openings are neutral: left as they are, they would teach that a turn
    without a moment is, and nothing of their words. Which turn lends its moment is decided by their texts.
    """
    by_language: dict[str, list[LabelledTurn]] = {}
    for turn in turns:
        if not turn.is_opener:
            by_language.setdefault(turn.lang, []).append(turn)
    out = []
    for turn in turns:
        lenders = by_language.get(turn.lang)
        if turn.is_opener and lenders:
            lender = lenders[_number(turn.text) % len(lenders)]
            turn = replace(turn, prev_user=lender.prev_user, prev_agent_tail=lender.prev_agent_tail)
        out.append(turn)
    return out


def train(turns: list[LabelledTurn], *, iterations: int = ITERATIONS) -> Trained:
    """Fit a model.

    Args:
        turns: Labelled turns in any order; the session of each keeps it on one side of the calibration.
        iterations: Steps at most.

    Returns:
        The model, with probabilities that are calibrated on sessions that a first fit did not see.
    """
    turns = sorted(turns, key=lambda t: (t.session, t.id, t.text))
    x, y = features.features(moments_of(with_moments(turns))).matrix(), targets(turns)
    counts = np.array([turn.weight for turn in turns])
    aside = np.array([_is_aside(turn.session) for turn in turns])
    temperature = 1.0
    if 0 < aside.sum() < len(turns):
        weights, bias, _ = _fit(x[~aside], y[~aside], counts[~aside], iterations)
        seen = np.array([class_of(turn) for turn, out in zip(turns, aside, strict=True) if out])
        temperature = _temperature(x[aside] @ weights + bias, seen)
    weights, bias, n = _fit(x, y, counts, iterations)
    return Trained(quantised(weights, bias, temperature), labels_digest(turns), len(turns), n)


def _is_aside(session: str) -> bool:
    return _number(session) % _CALIBRATE_ONE_IN == 0


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest())


def _fit(x: sp.csr_matrix, y: Floats, counts: Floats, iterations: int) -> tuple[Floats, Floats, int]:
    """(weights, bias, steps) of the least mean cross-entropy, rows counted so often, with a penalty on squares."""
    # A column without a value keeps the weight 0, and most columns of few rows have none.
    used = np.unique(x.indices)
    whole = np.zeros((x.shape[1], len(CLASSES)))
    x = x[:, used]
    d, k = x.shape[1], len(CLASSES)
    share = (counts / counts.sum())[:, None]
    across = x.T.tocsr()

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights, bias = flat[: d * k].reshape(d, k), flat[d * k :]
        logits = x @ weights + bias
        logits -= logits.max(axis=1, keepdims=True)
        raised = np.exp(logits)
        total = raised.sum(axis=1, keepdims=True)
        value = -(share * y * (logits - np.log(total))).sum() + 0.5 * PENALTY * (weights * weights).sum()
        residual = (raised / total - y) * share
        return value, np.concatenate([(across @ residual + PENALTY * weights).ravel(), residual.sum(axis=0)])

    found = minimize(
        loss, np.zeros(d * k + k), jac=True, method="L-BFGS-B", options={"maxiter": iterations, "maxcor": 10}
    )
    whole[used] = found.x[: d * k].reshape(d, k)
    return whole, found.x[d * k :], int(found.nit)


def _temperature(logits: Floats, seen: npt.NDArray[np.int64]) -> float:
    """What logits must be divided by for the least cross-entropy."""

    def loss(log_temperature: float) -> float:
        scaled = logits / np.exp(log_temperature)
        scaled = scaled - scaled.max(axis=1, keepdims=True)
        return float((np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(len(seen)), seen]).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x))
