"""Session features: what extraction says of a whole session.

Belongs here: counting signals and reading how a session ended, without criteria weights. Does not
belong here: metrics and scores (``outcomes``), which a change of criteria recomputes without text.
"""

from __future__ import annotations

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import SESSION_FEATURES
from evalpipe.signals import repairs
from evalpipe.signals.semantic import NEGATIVE
from evalpipe.signals.turns import closing_agent_flags

VERSION = "2"
_COMPLAINTS = ("complaint.sentiment", "complaint.failure_report")
#: Steps that say nothing about how a session ended.
_ASIDE = ("feedback", "meta", "injected", "notification", "compaction", "system", "synthetic")
_API_ERROR = r"(?i)\bapi error\b|rate limit|overloaded|usage limit|quota exceeded|credit balance|internal server error"


def session_features(
    sessions: pl.DataFrame,
    steps: pl.DataFrame,
    turns: pl.DataFrame,
    calls: pl.DataFrame,
    scenario: pl.DataFrame,
    hard: pl.DataFrame,
    semantic: pl.DataFrame,
    found: pl.DataFrame,
    max_fix_steps: int,
) -> pl.DataFrame:
    """Rows of signals.session_features, in the order of the sessions.

    Args:
        sessions, steps: Masked frames.
        turns: Turns with roles. calls: Tool calls. scenario: Scenario and task type of each session.
        hard, semantic: Rows at or above the least confidence.
        found: Correction episodes.
        max_fix_steps: Steps within which a repair counts.
    """
    parts = [
        _turn_counts(turns),
        _call_counts(steps, calls, hard),
        repairs.command_counts(calls),
        _repair_counts(calls, hard, max_fix_steps),
        said(turns, calls, semantic, found),
        _ending(steps, turns, calls),
    ]
    out = scenario
    for part in parts:
        out = out.join(part, on="session_id", how="left", maintain_order="left")
    out = out.with_columns(
        pl.col("language").fill_null("und"), pl.col("^n_.*$").fill_null(0).cast(pl.Int32),
        pl.col("sum_steerability").fill_null(0.0), pl.col("^(has|is)_.*$").fill_null(value=False),
        extractor_version=pl.lit(VERSION),
    )  # fmt: skip
    return out.select(polars_schema(SESSION_FEATURES).names())


def said(turns: pl.DataFrame, calls: pl.DataFrame, semantic: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """What people said, one row a session that has any of it; counts are null where there is nothing to count.

    Args:
        turns: ``session_id, seq`` of turns. calls: ``session_id, seq`` of tool calls.
        semantic: Semantic rows that count.
        found: Correction episodes.
    """
    out = _said(semantic).join(_episodes(found), on="session_id", how="full", coalesce=True)
    return out.join(_confirmation(turns, calls, semantic), on="session_id", how="full", coalesce=True)


def _turn_counts(turns: pl.DataFrame) -> pl.DataFrame:
    return turns.group_by("session_id").agg(n_human_turns=pl.len(), language=pl.col("lang").first())


def _call_counts(steps: pl.DataFrame, calls: pl.DataFrame, hard: pl.DataFrame) -> pl.DataFrame:
    counts = calls.group_by("session_id").agg(n_tool_calls=pl.len())
    names = {
        "n_command_errors": "command_error", "n_check_failures": "check_failure",
        "n_refused_calls": "call.rejected",
    }  # fmt: skip
    events = hard.group_by("session_id").agg(**{c: (pl.col("signal") == s).sum() for c, s in names.items()})
    # A refusal and the stop that the harness logs with it are one signal and two messages; counts are of messages.
    stops = steps.filter((pl.col("origin") == "interrupt") & pl.col("parent_id").is_null())
    stops = stops.group_by("session_id").agg(n_interrupts=pl.len())
    out = counts.join(events, on="session_id", how="full", coalesce=True)
    return out.join(stops, on="session_id", how="full", coalesce=True)


def _repair_counts(calls: pl.DataFrame, hard: pl.DataFrame, max_steps: int) -> pl.DataFrame:
    # Only errors that count can count as repaired, so that the share stays within [0, 1].
    errors = hard.filter(pl.col("signal") == "command_error").select("session_id", "seq")
    fixed = repairs.self_fixes(calls, max_steps).join(errors, on=["session_id", "seq"], how="semi")
    return fixed.group_by("session_id").agg(n_self_repairs=pl.len())


def _said(semantic: pl.DataFrame) -> pl.DataFrame:
    return semantic.group_by("session_id").agg(
        n_confirmations=(pl.col("signal") == "confirm.explicit").sum(),
        n_praise=(pl.col("signal") == "praise").sum(),
        n_complaints=pl.col("signal").is_in(list(_COMPLAINTS)).sum(),
        n_corrections=(pl.col("signal") == "correction").sum(),
    )


def _episodes(found: pl.DataFrame) -> pl.DataFrame:
    return found.group_by("session_id").agg(
        n_episodes=pl.len(),
        n_recovered_corrections=pl.col("k").is_not_null().sum(),
        sum_steerability=(1.0 / pl.col("k")).fill_null(0.0).sum(),
    )


def _confirmation(turns: pl.DataFrame, calls: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """The last explicit confirmation: what it took, and whether an objection came after it.

    An objection in the confirming turn itself ("works, but X is broken") is one after it.
    """
    said = semantic.group_by("session_id").agg(
        confirm_seq=pl.col("seq").filter(pl.col("signal") == "confirm.explicit").max(),
        negative_seq=pl.col("seq").filter(pl.col("signal").is_in(list(NEGATIVE))).max(),
    )
    said = said.filter(pl.col("confirm_seq").is_not_null())
    before = turns.select("session_id", "seq").join(said, on="session_id").filter(pl.col("seq") < pl.col("confirm_seq"))
    spent = before.group_by("session_id").agg(turns_to_confirmation=pl.len().cast(pl.Int32))
    ran = calls.select("session_id", "seq").join(said, on="session_id").filter(pl.col("seq") < pl.col("confirm_seq"))
    used = ran.group_by("session_id").agg(calls_to_confirmation=pl.len().cast(pl.Int32))
    out = said.join(spent, on="session_id", how="left").join(used, on="session_id", how="left")
    return out.select(
        "session_id", "turns_to_confirmation",
        calls_to_confirmation=pl.col("calls_to_confirmation").fill_null(0),
        has_final_confirmation=pl.col("confirm_seq") > pl.col("negative_seq").fill_null(-1),
    )  # fmt: skip


def _ending(steps: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """How a session ended.

    An offer to go on after a claim of completion is courtesy, not an open question.
    """
    # Warm words that open the next task close the one before, not the last.
    said_yes = pl.col("is_confirm") | pl.col("is_praise")
    last_turn = turns.group_by("session_id").agg(
        last_negative=pl.col("is_negative").last(),
        has_closing_signal=(said_yes & ~pl.col("is_negative") & ~pl.col("opens_task")).last(),
    )
    asks = closing_agent_flags(steps).select(
        "session_id", waits=pl.col("prev_agent_question") & ~pl.col("agent_claimed_done")
    )
    last_call = calls.group_by("session_id").agg(last_call=pl.col("status").last(), last_call_seq=pl.col("seq").last())
    telling = steps.filter(~pl.col("origin").is_in(list(_ASIDE)) & pl.col("parent_id").is_null())
    last = telling.group_by("session_id").agg(
        last_seq=pl.col("seq").last(), is_last_turn_interrupted=pl.col("origin").last() == "interrupt"
    )
    broke = pl.col("error").is_in(["api_error", "timeout"]) | (
        pl.col("origin").is_in(["system", "synthetic"]) & pl.col("text").str.contains(_API_ERROR)
    )
    final = steps.group_by("session_id").agg(is_last_step_error=broke.last())
    out = final.join(last, on="session_id", how="left").join(last_turn, on="session_id", how="left")
    out = out.join(asks, on="session_id", how="left").join(last_call, on="session_id", how="left")
    stopped = pl.col("last_call").is_in(["interrupted", "no_result", "refused"]) & (
        (pl.col("last_call_seq") == pl.col("last_seq")) | pl.col("is_last_turn_interrupted")
    )
    unresolved = pl.any_horizontal(
        pl.col("last_negative").fill_null(value=False),
        pl.col("waits").fill_null(value=False),
        stopped.fill_null(value=False),
    )
    return out.select(
        "session_id",
        "has_closing_signal",
        "is_last_turn_interrupted",
        "is_last_step_error",
        is_last_task_unresolved=unresolved,
    )
