"""Weights of signals, proposed from labels of whole sessions.

Belongs here: reading such labels, which signals are regressed, what is proposed and as what text. Does not
belong here: the regression and its calibration (``inference``), where signals lie (``steps``).

A proposal changes nothing: weights are part of what is measured, so a person writes them into criteria,
raises their version, and begins a new series. A signal that speaks for the agent and is fitted against it
(or the other way round) is an error to look at: a detector that fires on the wrong text, or one that
follows another signal. It is named and gets no weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evalpipe.contracts.signals import BY_NAME, DERIVED_SIGNALS, SEMANTIC_SIGNALS
from evalpipe.inference.labels.signal_weights import (
    MIN_EVENTS_PER_SIGNAL,
    MIN_LABELS,
    Calibration,
    calibration,
    crossfit_utilities,
    signal_weights,
)
from evalpipe.inference.model import Bools, Floats
from evalpipe.inference.survey import inclusion_weights
from evalpipe.review.files import invalid, read_rows

#: Labels of sessions; a session that was not drawn with a known probability has 1.
LABELS = pl.Schema({"session_id": pl.String, "success": pl.Boolean, "inclusion_prob": pl.Float64})
#: Said of a signal beside its weight.
FITTED, RARE, WRONG_SIGN, DECLARED = "fitted", "rare", "wrong_sign", "declared"
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Weight:
    """What is proposed for one signal.

    Attributes:
        n_sessions: Labelled sessions that have it. declared: Weight in force.
        log_odds: Fitted change of the log-odds of success by one event; NaN where it was not fitted.
        weight: Proposed, 0 to 1; its sign is the signal's own.
        basis: :data:`FITTED`; :data:`RARE` (too few labelled sessions have it) and :data:`DECLARED` (nothing
            was fitted), which keep the weight in force; :data:`WRONG_SIGN`, which has none.
    """

    signal: str
    n_sessions: int
    declared: float
    log_odds: float
    weight: float
    basis: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Weights with what they are worth.

    Attributes:
        weights: One a signal, as the catalogue orders them.
        n_labels, n_success: Labelled sessions, and those that succeeded.
        reason: Why weights are not fitted (``uncalibrated``), or empty.
        threshold: Score above which success is likelier than not, on the scale of the weights; NaN likewise.
        calibration: Of chances that were fitted on other people's sessions; NaN likewise.
        wrong_declared, wrong_fitted: Share of labelled sessions that weights in force, and fitted ones, misjudge.
    """

    weights: tuple[Weight, ...]
    n_labels: int
    n_success: int
    reason: str
    threshold: float
    calibration: Calibration
    wrong_declared: float
    wrong_fitted: float

    @property
    def status(self) -> str:
        """``uncalibrated``, ``recalibrate`` where predicted chances are too bold or too shy, else ``calibrated``."""
        if self.reason:
            return "uncalibrated"
        return "recalibrate" if self.calibration.is_stale else "calibrated"


def read_session_labels(path: Path) -> pl.DataFrame:
    """Labels of whole sessions, rows of :data:`LABELS`; sessions without a label are left out.

    Args:
        path: A .csv or .jsonl file with ``session_id``, ``success`` (1 or 0, true or false, yes or no) and,
            where sessions were drawn with unequal probabilities, ``inclusion_prob``.

    Raises:
        EvalpipeError: ``REVIEW_INVALID`` with file and row; one wrong row refuses the file.
    """
    found: dict[str, tuple[str, bool, float]] = {}
    for number, row in enumerate(read_rows(path, ("session_id", "success")), 1):
        where = f"{path.name}, row {number}"
        session = str(row.get("session_id") or "").strip()
        if not session:
            raise invalid("it has no session_id", where)
        said = str("" if row.get("success") is None else row["success"]).strip().casefold()
        if not said:
            continue
        if said not in _WORDS:
            raise invalid("success must be 1 or 0, true or false, yes or no", where)
        one = (session, _WORDS[said], _probability(row, where))
        if found.setdefault(session, one) != one:
            raise invalid("the session has another label further up", where)
    return pl.DataFrame(list(found.values()), schema=LABELS, orient="row")


def _probability(row: Mapping[str, Any], where: str) -> float:
    written = row.get("inclusion_prob")
    if written is None or written == "":
        return 1.0
    try:
        value = float(written)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value <= 1.0:
        raise invalid("inclusion_prob must lie above 0 and be at most 1", where)
    return value


def regressed() -> tuple[str, ...]:
    """Signals that may have a weight, but for what a log states of success: that is the outcome itself."""
    return tuple(
        name
        for name, signal in BY_NAME.items()
        if signal.polarity and name not in DERIVED_SIGNALS and not name.startswith("objective.")
    )


def propose(labels: pl.DataFrame, events: pl.DataFrame, declared: Mapping[str, float], threshold: float) -> Proposal:
    """Weights from labelled sessions.

    Args:
        labels: Rows of :data:`LABELS` with ``user``, a code of the session's user.
        events: ``session_id, signal, n`` of these sessions, counted as outcomes count them.
        declared: Weights in force. threshold: Score that an outcome needs under them.

    Returns:
        Fitted weights, scaled so that the largest is 1: only their proportions decide. With fewer labels
        than can tell, those in force and why.
    """
    names = regressed()
    X = _counts(labels["session_id"].to_list(), events, names)
    success, v = labels["success"].to_numpy(), inclusion_weights(labels["inclusion_prob"].to_numpy())
    n = (X > 0).sum(axis=0)
    often = n >= MIN_EVENTS_PER_SIGNAL
    found = signal_weights(X[:, often], success, weight=v)
    reason = found.reason or ("too_few_events" if not often.any() else "")
    sign = np.array([BY_NAME[name].polarity for name in names], dtype=np.float64)
    log_odds = np.full(len(names), np.nan)
    log_odds[often] = found.coef
    right = np.nan_to_num(log_odds * sign, nan=0.0)
    if not reason and not (right > 0).any():
        reason = "no_signal"
    scale = float(right.max(initial=0.0)) if not reason else math.nan
    rows = [
        _weight(name, int(n[j]), declared.get(name, 0.0), float(log_odds[j]), float(right[j]), scale, is_often=often[j])
        for j, name in enumerate(names)
    ]
    said_well = X[:, [name in SEMANTIC_SIGNALS and s > 0 for name, s in zip(names, sign, strict=True)]].any(axis=1)
    old = X @ (sign * [declared.get(name, 0.0) for name in names])
    is_wrong = ((old > threshold) & said_well) != success
    predicted = np.full(len(success), np.nan)
    if not reason:
        predicted = crossfit_utilities(X[:, often], success, labels["user"].to_numpy(), weight=v)
    told = np.isfinite(predicted)
    return Proposal(
        weights=tuple(rows),
        n_labels=len(success),
        n_success=int(success.sum()),
        reason=reason,
        threshold=-found.intercept / scale,
        calibration=calibration(predicted[told], success[told], weight=v[told]),
        wrong_declared=_share(is_wrong, v),
        wrong_fitted=_share((predicted > 0.5)[told] != success[told], v[told]),
    )


def _counts(sessions: Sequence[str], events: pl.DataFrame, names: Sequence[str]) -> Floats:
    row, column = ({name: i for i, name in enumerate(places)} for places in (sessions, names))
    X = np.zeros((len(sessions), len(names)))
    for session, signal, n in events.select("session_id", "signal", "n").iter_rows():
        if session in row and signal in column:
            X[row[session], column[signal]] = n
    return X


def _weight(
    name: str, n: int, declared: float, log_odds: float, right: float, scale: float, *, is_often: bool
) -> Weight:
    if math.isnan(scale):
        return Weight(name, n, declared, math.nan, declared, DECLARED)
    if not is_often:
        return Weight(name, n, declared, math.nan, declared, RARE)
    if right <= 0:
        return Weight(name, n, declared, log_odds, 0.0, WRONG_SIGN)
    return Weight(name, n, declared, log_odds, round(right / scale, _DIGITS), FITTED)


def _share(is_wrong: Bools, v: Floats) -> float:
    return float(v[is_wrong].sum() / v.sum()) if len(v) else math.nan


def fragment(proposal: Proposal) -> str:
    """The proposal as TOML for a criteria file, with what speaks against a weight beside it."""
    lines = [f"# {proposal.status}: {proposal.n_labels} labelled sessions, {proposal.n_success} of them succeeded."]
    if proposal.reason:
        lines.append(f"# {proposal.reason}: the weights in force. {MIN_LABELS} labels are the least that fit any.")
    else:
        lines.append(f"# Half of such sessions succeed at score_threshold = {round(proposal.threshold, _DIGITS)}.")
    lines.append("[outcomes.weights]")
    for one in proposal.weights:
        beside = {
            RARE: f"   # in force: {one.n_sessions} labelled sessions have it",
            WRONG_SIGN: f"   # fitted against its meaning (log-odds {one.log_odds:+.2f}): look at it first",
        }.get(one.basis, "")
        if one.weight or one.declared or one.basis == WRONG_SIGN:
            lines.append(f'"{one.signal}" = {one.weight}{beside}')
    return "\n".join(lines) + "\n"
