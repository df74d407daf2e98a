"""Session outcomes: features and signals, under criteria, as one pair a metric.

Belongs here: the signal score, how a session ended, and every (numerator, denominator). Vectorised
throughout and free of text, so that criteria can be changed over an archive whose text is gone.
Does not belong here: extraction, estimation.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.metrics import METRICS
from evalpipe.contracts.render import conform, polars_schema
from evalpipe.contracts.signals import BY_NAME, SEMANTIC_SIGNALS
from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.contracts.tables.signals import SESSION_OUTCOMES, SESSION_SCORES
from evalpipe.criteria.model import Criteria, OutcomesCriteria
from evalpipe.signals.demotion import ANY, COURSE_UNKNOWN, END_UNKNOWN, Demoted
from evalpipe.signals.ledger import with_assignment
from evalpipe.signals.prices import Prices, session_costs

# Reasoning is part of the output.
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_ONE = pl.lit(1.0)

#: Metrics of what a person said; without anyone who spoke they are unknown, not 0.
_SPOKEN = frozenset({
    "confirmation", "correction", "complaint", "right_first_time", "unrecovered_correction", "convergence",
})  # fmt: skip
#: Signals without which a metric is unknown: where one is demoted, its absence says nothing.
_EVIDENCE: dict[str, tuple[str, ...]] = {
    "positive_outcome": ("confirm.explicit",),
    "confirmation": ("confirm.explicit",),
    "correction": ("correction",),
    "complaint": ("complaint.sentiment", "complaint.failure_report"),
    "right_first_time": ("confirm.explicit", "command_error"),
    "unrecovered_correction": ("correction",),
    "steerability": ("correction",),
    "convergence": ("confirm.explicit",),
    "execution_errors": ("command_error",),
    "execution_success": ("command_error",),
    "self_repair": ("command_error",),
}
#: Metrics that need the course of a session behind a signal.
_COURSE = frozenset({"unrecovered_correction", "steerability", "convergence"})


def session_outcomes(
    day: date,
    sessions: pl.DataFrame,
    features: pl.DataFrame,
    hard: pl.DataFrame,
    semantic: pl.DataFrame,
    later_starts: pl.DataFrame,
    criteria: Criteria,
    *,
    is_settled: bool,
    usage: pl.DataFrame,
    prices: Prices,
    ledger: pl.DataFrame,
    demoted: Demoted = (),
) -> pl.DataFrame:
    """Rows of signals.session_outcomes for a day.

    Args:
        day: UTC day of the sessions' start.
        sessions: masked.sessions of the day.
        features: signals.session_features of these sessions, those of ``demotion.without`` where signals
            are demoted.
        hard, semantic: Signals of these sessions that are not demoted.
        later_starts: ``user_id, workspace, session_id, started_at`` of sessions around the day, in
            which continuations are looked for.
        criteria: Weights, thresholds, measurement.
        is_settled: Whether the days that abandonment looks ahead to are closed.
        usage: signals.session_usage of these sessions.
        prices: The price table.
        ledger: The assignment ledger (``LEDGER``).
        demoted: Signals that reviews have taken away, as (signal, language): what rests on them is unknown
            in sessions of that language, not absent.

    Returns:
        One row a session, but none for those whose consent is withdrawn: their text is gone, and a
        session in which nobody said anything would count as one without complaint. None either for a
        sub-agent's run that was exported as a session of its own (see :func:`is_sub_agent`): the
        session that started it is the unit, and two rows of one conversation would count it twice.
        Where a metric
        does not apply, numerator and denominator are null (unknown) or 0 (nothing to count).

    Raises:
        EvalpipeError: ``INVALID_OUTCOMES`` when a session has no features.
    """
    rules = criteria.outcomes
    kept = sessions.filter((pl.col("consent").fill_null("") != CONSENT_WITHDRAWN) & ~is_sub_agent())
    features = features.with_columns(
        pl.lit(value=False).alias(name) for name in (END_UNKNOWN, COURSE_UNKNOWN) if name not in features.columns
    )
    rows = with_assignment(kept, ledger)
    rows = rows.join(features, on="session_id", how="left", maintain_order="left", suffix="_counted")
    n_bare = rows["scenario"].null_count()
    if n_bare:
        raise EvalpipeError("INVALID_OUTCOMES", f"{n_bare} sessions have no features", where="signals.session_features")
    rows = rows.join(_scores(hard, semantic, criteria), on="session_id", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("signal_score").fill_null(0.0), pl.col("has_positive").fill_null(value=False))
    rows = _with_end(rows, later_starts, rules, is_settled=is_settled)
    rows = rows.with_columns(_metrics(rules, demoted, is_settled=is_settled))
    tokens = pl.sum_horizontal(_TOKENS)
    told = pl.any_horizontal([pl.col(c).is_not_null() for c in _TOKENS])
    costs = session_costs(usage, rows.select("session_id", day=pl.col("started_at").dt.date()), prices)
    rows = rows.join(costs, on="session_id", how="left", maintain_order="left")
    logged, priced = pl.col("logged_cost_usd"), pl.col("priced_usd")
    source = pl.when(logged.is_not_null()).then(pl.lit("logged")).when(priced.is_not_null()).then(pl.lit("priced"))
    lasted = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds()
    rows = rows.with_columns(
        day=pl.lit(day),
        measurement=pl.lit(criteria.measurement),
        is_settled=pl.lit(is_settled),
        routing_epoch=pl.col("routing_epoch").fill_null("all"),
        duration_ms=lasted.clip(lower_bound=0),
        n_tool_calls=pl.col("n_tool_calls_counted"),
        total_tokens=pl.when(told).then(tokens),
        cost_usd=pl.coalesce(logged, priced),
        cost_source=source,
    )
    out = rows.select(polars_schema(SESSION_OUTCOMES).names())
    return conform(SESSION_OUTCOMES, out).sort(SESSION_OUTCOMES.sort)


def is_sub_agent() -> pl.Expr:
    """Whether a row of masked.sessions is a sub-agent's run: another session started it, and no person
    spoke in it. A fork or a resumed session names a parent too, but people go on in it.
    """
    return pl.col("parent_session_id").is_not_null() & (pl.col("n_turns") == 0)


def event_counts(hard: pl.DataFrame, semantic: pl.DataFrame, criteria: Criteria) -> pl.DataFrame:
    """Events of each signal in a session that outcomes count: ``session_id, signal, n``, capped.

    Args:
        hard, semantic: Signals that are not demoted.
        criteria: Least confidence and cap.
    """
    columns = ["session_id", "signal"]
    sure = pl.col("confidence") >= criteria.extraction.min_confidence
    events = pl.concat([hard.filter(sure).select(columns), semantic.filter(sure).select(columns)])
    return events.group_by(columns).agg(n=pl.len().clip(upper_bound=criteria.outcomes.count_cap))


def _scores(hard: pl.DataFrame, semantic: pl.DataFrame, criteria: Criteria) -> pl.DataFrame:
    """Weighted sum of signals, each capped, and whether a person said something positive."""
    rules = criteria.outcomes
    columns = ["session_id", "signal"]
    counts = event_counts(hard, semantic, criteria)
    worth = {name: BY_NAME[name].polarity * weight for name, weight in sorted(rules.weights.items())}
    positive = [name for name in SEMANTIC_SIGNALS if BY_NAME[name].polarity > 0]
    positive.append("explicit_feedback.positive")
    weight = pl.col("signal").replace_strict(worth, default=0.0, return_dtype=pl.Float64)
    counts = counts.with_columns(part=pl.col("n") * weight)
    # Floating sums depend on order, and signals that cancel must meet the threshold exactly.
    return (
        counts.sort(columns)
        .group_by("session_id", maintain_order=True)
        .agg(signal_score=pl.col("part").sum().round(9), has_positive=pl.col("signal").is_in(positive).any())
    )


def scored(criteria: Criteria) -> frozenset[str]:
    """Signals that outcomes rest on: those with a weight, and those that a metric is made of."""
    weighted = {name for name, weight in criteria.outcomes.weights.items() if weight}
    return frozenset(weighted.union(*_EVIDENCE.values()))


def session_scores(
    outcomes: pl.DataFrame, hard: pl.DataFrame, semantic: pl.DataFrame, criteria: Criteria
) -> pl.DataFrame:
    """Rows of signals.session_scores.

    Args:
        outcomes: signals.session_outcomes of the sessions.
        hard, semantic: Their signals that are not demoted.
        criteria: Least confidence and cap of counts.
    """
    everything = replace(criteria.outcomes, weights={signal.name: signal.strength for signal in BY_NAME.values()})
    criteria = replace(criteria, outcomes=everything)
    rows = outcomes.select("session_id", "measurement")
    for name, family in (("hard_score", (hard, semantic.clear())), ("semantic_score", (hard.clear(), semantic))):
        scored = _scores(*family, criteria).select("session_id", pl.col("signal_score").alias(name))
        rows = rows.join(scored, on="session_id", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("hard_score", "semantic_score").fill_null(0.0))
    return conform(SESSION_SCORES, rows).sort(SESSION_SCORES.sort)


def _with_end(
    rows: pl.DataFrame, later_starts: pl.DataFrame, rules: OutcomesCriteria, *, is_settled: bool
) -> pl.DataFrame:
    """Add ``end_status`` and ``is_continued``.

    What the log states comes first. A session is abandoned when its last task is unresolved, nothing
    closed it, and the same user does not go on in the same folder within the hours of the criteria.
    It is open while that cannot be known yet, or ever: the user is not named, or a signal that is
    demoted decided it.
    """
    rows = _with_continuation(rows, later_starts, rules.abandonment_hours)
    logged = pl.col("end_status_logged")
    unresolved = pl.col("is_last_task_unresolved") & ~pl.col("has_closing_signal")
    unknown = pl.lit(not is_settled) | pl.col("user_id").is_null()
    status = (
        pl.when(logged.is_in(["completed", "error", "timeout"])).then(logged)
        .when(pl.col("is_last_step_error")).then(pl.lit("error"))
        .when(pl.col(END_UNKNOWN)).then(pl.lit("open"))
        .when(unresolved & pl.col("is_continued")).then(pl.lit("interrupted"))
        .when(unresolved & unknown).then(pl.lit("open"))
        .when(unresolved).then(pl.lit("abandoned"))
        .when((logged == "interrupted") | pl.col("is_last_turn_interrupted")).then(pl.lit("interrupted"))
        .otherwise(pl.lit("completed"))
    )  # fmt: skip
    return rows.with_columns(end_status=status)


def _with_continuation(rows: pl.DataFrame, later_starts: pl.DataFrame, hours: float) -> pl.DataFrame:
    place = pl.concat_str(pl.col("user_id"), pl.col("workspace").fill_null(""), separator="\x1f")
    later = later_starts.select("started_at", place=place).filter(pl.col("place").is_not_null())
    later = later.rename({"started_at": "next_start"}).sort("next_start")
    ends = rows.select("session_id", "ended_at", place=place).filter(pl.col("place").is_not_null()).sort("ended_at")
    # A session starts before it ends, so a start after its end is another session's.
    found = ends.join_asof(
        later, left_on="ended_at", right_on="next_start", by="place", strategy="forward",
        allow_exact_matches=False, check_sortedness=False,
    )  # fmt: skip
    within = pl.col("next_start") - pl.col("ended_at") <= pl.duration(seconds=round(hours * 3600))
    found = found.select("session_id", is_continued=within.fill_null(value=False))
    rows = rows.join(found, on="session_id", how="left", maintain_order="left")
    return rows.with_columns(pl.col("is_continued").fill_null(value=False))


def _metrics(rules: OutcomesCriteria, demoted: Demoted, *, is_settled: bool) -> list[pl.Expr]:
    """(numerator, denominator) of every metric of ``contracts/metrics.py`` (methods, section 17)."""
    objective = pl.col("is_objective_success")
    by_signals = (pl.col("signal_score") > rules.score_threshold) & pl.col("has_positive")
    # A run of a benchmark that broke before it had an outcome tells nothing of the agent either.
    broke = pl.col("task_id").is_not_null() & objective.is_null() & pl.col("end_status_logged").eq_missing("error")
    is_told = (pl.col("n_human_turns") > 0) & ~broke
    by_signals = pl.when(is_told & ~_lacks("positive_outcome", demoted)).then(by_signals)
    positive = pl.coalesce(objective, by_signals) if rules.objective_decides else by_signals
    is_work_told = (pl.col("n_human_turns") > 0) | (pl.col("n_tool_calls_counted") > 0)
    confirmed = pl.col("has_final_confirmation")
    clean = (pl.col("n_corrections") == 0) & (pl.col("n_complaints") == 0) & (pl.col("n_command_errors") == 0)
    is_seen = (pl.col("end_status") != "open") & pl.lit(is_settled)
    spent = (pl.col("turns_to_confirmation").cast(pl.Float64) - 1).clip(lower_bound=0.0)
    speed = (1.0 - spent / rules.convergence_turns).clip(lower_bound=0.0)
    pairs: dict[str, tuple[pl.Expr, pl.Expr]] = {
        "positive_outcome": (positive, pl.when(positive.is_not_null()).then(_ONE)),
        "confirmation": (confirmed, _ONE),
        "correction": (pl.col("n_corrections") > 0, _ONE),
        "complaint": (pl.col("n_complaints") > 0, _ONE),
        "abandonment": (pl.when(is_seen).then(pl.col("end_status") == "abandoned"), pl.when(is_seen).then(_ONE)),
        "right_first_time": (confirmed & clean, _ONE),
        "unrecovered_correction": (pl.col("n_recovered_corrections") < pl.col("n_episodes"), _ONE),
        "execution_errors": (
            pl.when(is_work_told).then(pl.col("n_command_errors")),
            pl.when(is_work_told).then(_ONE),
        ),
        "execution_success": (pl.col("n_command_calls") - pl.col("n_command_errors"), pl.col("n_command_calls")),
        "first_try_success": (pl.col("n_first_try_successes"), pl.col("n_logical_commands")),
        "self_repair": (pl.col("n_self_repairs"), pl.col("n_command_errors")),
        "steerability": (pl.col("sum_steerability"), pl.col("n_episodes")),
        "convergence": (pl.when(confirmed).then(speed).otherwise(0.0), _ONE),
        "objective_success": (objective, pl.when(objective.is_not_null()).then(_ONE)),
    }
    out = []
    for metric in METRICS:
        numerator, denominator = pairs[metric.name]
        known = is_told if metric.name in _SPOKEN else pl.lit(value=True)
        if metric.name in _COURSE:
            known = known & ~pl.col(COURSE_UNKNOWN)
        if metric.name != "positive_outcome":  # which the log may state all the same
            known = known & ~_lacks(metric.name, demoted)
        numerator, denominator = pl.when(known).then(numerator), pl.when(known).then(denominator)
        out.append(numerator.cast(pl.Float64).alias(f"{metric.name}_num"))
        out.append(denominator.cast(pl.Float64).alias(f"{metric.name}_den"))
    return out


def _lacks(metric: str, demoted: Demoted) -> pl.Expr:
    """Whether a signal that a metric rests on is demoted in the language of the session."""
    langs = sorted({lang for signal, lang in demoted if signal in _EVIDENCE.get(metric, ())})
    return pl.lit(value=True) if ANY in langs else pl.col("language").is_in(langs)
