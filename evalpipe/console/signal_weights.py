"""The verb ``review weights``: weights of signals proposed from labels of sessions.

Belongs here: its words. Does not belong here: numbers (``review/weights.py``).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalpipe import review
from evalpipe.console import show
from evalpipe.settings import Settings
from evalpipe.steps.context import open_context
from evalpipe.steps.signal_weights import proposed

_WHY = {
    "too_few_labels": "fewer than 200 sessions are labelled",
    "one_outcome": "all labelled sessions ended alike",
    "too_few_events": "fewer than ten sessions of the rarer outcome a signal, or no signal in ten labelled sessions",
    "not_converged": "the regression found no maximum",
    "no_signal": "no signal says anything of success in its own direction",
}


def weights(settings: Settings, labels: Path | None, *, as_json: bool) -> None:
    """Print what weights labelled sessions propose; criteria stay as they are."""
    with open_context(settings) as context:
        found, n_elsewhere = proposed(context, labels)
        criteria = context.criteria.name
    if as_json:
        print(json.dumps(_plain(found) | {"n_elsewhere": n_elsewhere, "toml": review.fragment(found)}))
        return
    rows = [asdict(one) for one in found.weights if one.n_sessions or one.declared]
    show.table(
        [{**row, "log_odds": _null(row["log_odds"])} for row in rows], title=f"weights beside those of {criteria}"
    )
    if n_elsewhere:
        show.line(f"{n_elsewhere} labels are of no session of this home, and were left out.")
    for text in sentences(found):
        show.line(text)
    for text in review.fragment(found).splitlines():
        show.line(text)


def sentences(found: review.Proposal) -> list[str]:
    """What a proposal is worth, in words."""
    n = f"{found.n_labels} labelled sessions, {found.n_success} of them succeeded"
    if found.reason:
        return [f"uncalibrated ({n}): {_WHY[found.reason]}. The weights in force stay."]
    fit = found.calibration
    out = [
        f"{found.status} ({n}), on people whose sessions were not fitted: Brier score {fit.brier:.3f}, log-loss "
        f"{fit.log_loss:.3f}, calibration slope {fit.slope:.2f}, intercept {fit.intercept:+.2f}, calibration error "
        f"(ECE) {fit.ece:.3f}.",
        f"Misjudged: {found.wrong_fitted:.1%} by fitted weights, {found.wrong_declared:.1%} by those in force.",
    ]
    if fit.is_stale:
        out.append("The slope lies outside 0.8 to 1.25: chances are too bold or too shy. Label more sessions.")
    wrong = [one.signal for one in found.weights if one.basis == "wrong_sign"]
    if wrong:
        out.append(f"Fitted against their meaning, to be looked at before anything is shipped: {', '.join(wrong)}.")
    out.append("Nothing was changed. Weights are a new measurement: copy the criteria, raise the version, bridge.")
    return out


def _plain(found: review.Proposal) -> dict[str, Any]:
    row = asdict(found) | {"status": found.status}
    for part in (row, row["calibration"], *row["weights"]):
        part.update({name: _null(value) for name, value in part.items() if isinstance(value, float)})
    return row


def _null(value: float) -> float | None:
    return value if math.isfinite(value) else None
