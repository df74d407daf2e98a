"""Rows of ``analysis.corrected_rates``: signals by version, corrected for the detectors' errors by reviews.

Belongs here: which units and labels belong to a version. Does not belong here: corrections
(``inference/labels``), what reviewers said (``review``). Rates are of each version's own work; none
of them ranks or decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.headline import stamped, unweighted
from evalpipe.analysis.population import Population, encode
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.tables.evidence import CORRECTED_RATES
from evalpipe.criteria.model import Criteria
from evalpipe.inference.labels.corrected import Fired, Labels, corrected_rates
from evalpipe.inference.model import Floats

#: Signals that fired, one row a session and signal.
COUNTS = pl.Schema({"session_id": pl.String, "signal": pl.String, "unit": pl.String, "n": pl.Int64})
#: Reviewed units, one row a unit and signal that it could have had.
REVIEWED = pl.Schema({
    "session_id": pl.String, "signal": pl.String, "unit": pl.String, "is_emitted": pl.Boolean, "truth": pl.Float64,
    "inclusion_prob": pl.Float64,
})  # fmt: skip


def corrected(
    outcomes: pl.DataFrame,
    counts: pl.DataFrame,
    reviewed: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
) -> pl.DataFrame:
    """Rows of ``analysis.corrected_rates``.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        counts: Rows of :data:`COUNTS`; a session without one had none of the signal.
        reviewed: Rows of :data:`REVIEWED`.
        criteria: Versions and the level of intervals.
        stamp: The window.

    Returns:
        One row a version and signal that fired, or that a reviewer saw; none without sessions.
    """
    inside = outcomes.filter(stamp.settled)
    population = encode(inside, criteria.outcomes.compare_by, criteria.estimand.strata, (), criteria.estimand.sampling)
    rows = _rows(population, counts, reviewed, criteria.estimand.alpha)
    return stamped(CORRECTED_RATES, stamp, rows if population.weight is None else unweighted(rows))


def _rows(
    population: Population, counts: pl.DataFrame, reviewed: pl.DataFrame, alpha: float
) -> Iterator[Mapping[str, object]]:
    k = len(population.versions)
    codes = sessions_of(population)
    counts = counts.join(codes.select("session_id"), on="session_id", how="semi")
    reviewed = reviewed.join(codes, on="session_id", how="inner", maintain_order="left")
    seen = reviewed.filter((pl.col("truth") > 0) | pl.col("is_emitted"))
    signals = pl.concat([counts.select("signal", "unit"), seen.select("signal", "unit")]).unique().sort("signal")
    n_sessions = np.bincount(population.version, minlength=k)
    for signal, unit in signals.iter_rows():
        units, labels = units_of(codes, counts, reviewed, signal, unit)
        found = corrected_rates(units, labels, k, alpha)
        n_units = np.bincount(population.version, units.size, k)
        n_fired = np.bincount(population.version, units.fired, k)
        for one, version in enumerate(population.versions):
            yield {
                "signal": signal,
                "version": version,
                "unit": unit,
                "n_sessions": int(n_sessions[one]),
                "n_units": n_units[one],
                "n_fired": int(n_fired[one]),
                "n_reviewed": int(found.n_labels[one]),
                "raw_rate": found.rate[one],
                "rate": found.estimate[one],
                "rate_lo": found.lo[one],
                "rate_hi": found.hi[one],
                "method": found.method[one] or None,
                "raw_shift": found.raw_shift[one],
                "shift": found.shift[one],
                "shift_lo": found.shift_lo[one],
                "shift_hi": found.shift_hi[one],
                "error_rate_gap": found.error_rate_gap[one],
                "status": found.status[one],
                "reasons": found.reasons[one],
            }


def sessions_of(population: Population, weight: Floats | None = None) -> pl.DataFrame:
    """Sessions with their codes and units: turns that can have a signal, and calls.

    Args:
        population: Sessions. weight: (N,) what each unit of a session counts for; 1 by default.
    """
    return population.sessions.select(
        "session_id",
        version=pl.Series(population.version, dtype=pl.Int64),
        user=pl.Series(population.cluster, dtype=pl.Int64),
        # The first turn asks; what people say of an answer comes after it.
        turn=(pl.col("n_human_turns") - 1).clip(0).cast(pl.Float64),
        call=pl.col("n_tool_calls").cast(pl.Float64),
        weight=pl.Series(np.ones(population.n) if weight is None else weight, dtype=pl.Float64),
    )


def units_of(
    sessions: pl.DataFrame, counts: pl.DataFrame, reviewed: pl.DataFrame, signal: str, unit: str
) -> tuple[Fired, Labels]:
    """Units of one signal in some sessions, and those that people judged.

    Args:
        sessions: Rows of :func:`sessions_of`.
        counts: Rows of :data:`COUNTS`. reviewed: rows of :data:`REVIEWED` with the columns of ``sessions``.
        signal: Name. unit: ``turn`` or ``call``.
    """
    mine = counts.filter(signal=signal).select("session_id", "n")
    units = sessions.join(mine, on="session_id", how="left", maintain_order="left")
    fired = units["n"].fill_null(0).cast(pl.Float64).to_numpy()
    # A stop is a message of a person and no call; still it interrupts one.
    size = np.maximum(units[unit].to_numpy(), fired)
    weight = units["weight"].to_numpy()
    labels = reviewed.filter(signal=signal)
    return (
        Fired(fired * weight, size * weight, units["version"].to_numpy(), units["user"].to_numpy()),
        Labels(
            truth=labels["truth"].to_numpy(),
            fired=labels["is_emitted"].to_numpy(),
            weight=labels["weight"].to_numpy() / labels["inclusion_prob"].to_numpy(),
            version=labels["version"].to_numpy(),
            user=labels["user"].to_numpy(),
        ),
    )
