"""The kernel of layer 3: one part of masked sessions in, all tables of signals out.

Belongs here: the order of work. Runs in worker processes: plain arguments, no I/O beyond the shipped
rule files, memory bounded by the part.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from evalpipe.contracts.model import Table
from evalpipe.contracts.render import conform
from evalpipe.contracts.signals import CANDIDATE_SIGNALS
from evalpipe.contracts.tables import signals as tables
from evalpipe.contracts.tables.process import PROCESS
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.signals import episodes, tasks
from evalpipe.signals.borderline.candidates import borderline_rows
from evalpipe.signals.calls import tool_calls
from evalpipe.signals.features import session_features
from evalpipe.signals.hard import hard_rows
from evalpipe.signals.overrides import with_overrides
from evalpipe.signals.process import process
from evalpipe.signals.promises import repeats
from evalpipe.signals.roles import structural_rows, with_roles
from evalpipe.signals.scenario import scenarios
from evalpipe.signals.semantic import semantic_rows
from evalpipe.signals.task_types import with_task_types
from evalpipe.signals.turns import human_turns, turn_coverage
from evalpipe.signals.usage import session_usage


@dataclass(frozen=True, slots=True)
class SignalsPart:
    """The tables of layer 3 for one part, each of its contract, in its contract's order."""

    hard: pl.DataFrame
    semantic: pl.DataFrame
    candidates: pl.DataFrame
    derived: pl.DataFrame
    tasks: pl.DataFrame
    process: pl.DataFrame
    session_features: pl.DataFrame
    turn_coverage: pl.DataFrame
    session_usage: pl.DataFrame


def extract_part(sessions: pl.DataFrame, steps: pl.DataFrame, extraction: ExtractionCriteria) -> SignalsPart:
    """Extract all signals of a part.

    Args:
        sessions: masked.sessions, whole sessions.
        steps: masked.steps of these sessions, in any order.
        extraction: Languages, least confidence, lengths.

    Returns:
        The tables; the same rows in whatever order the input comes.
    """
    sessions = sessions.sort("session_id")
    steps = steps.sort("session_id", "seq")
    turns = human_turns(steps)
    found = with_overrides(semantic_rows(turns, extraction), turns, steps, extraction)
    likely = borderline_rows(turns, found, extraction.snippet_chars)
    enough = pl.col("confidence") >= extraction.min_confidence
    sure = enough & ~pl.col("signal").is_in(list(CANDIDATE_SIGNALS))
    turns = with_roles(turns, found.filter(sure))
    found = pl.concat([found, structural_rows(turns, found.filter(sure), extraction.snippet_chars)])
    calls = tool_calls(sessions, steps)
    hard = hard_rows(sessions, steps, calls, extraction)
    by_turn = tasks.with_task_ids(tasks.task_turns(sessions, steps, turns))
    found, hard = tasks.assign(found, by_turn), tasks.assign(hard, by_turn)
    likely = tasks.assign(likely, by_turn)
    semantic, counted = found.filter(sure), hard.filter(sure)
    runs = episodes.episodes(turns, steps, semantic)
    heard = ["session_id", "seq", "turn", "signal", "signal_id"]
    first = episodes.first_time(turns, by_turn, pl.concat([counted.select(heard), semantic.select(heard)]), calls)
    broken = repeats(turns, steps, calls, counted, semantic)
    of_sessions, of_tasks = process(
        sessions, steps, turns, calls, counted, semantic, by_turn, extraction.self_fix_steps
    )
    return SignalsPart(
        hard=_table(tables.HARD, hard),
        semantic=_table(tables.SEMANTIC, semantic),
        candidates=_table(tables.CANDIDATES, pl.concat([found.filter(~sure), likely])),
        derived=_table(
            tables.DERIVED, episodes.derived_rows(runs, first, broken, by_turn.select("session_id", "turn", "task_id"))
        ),
        tasks=_table(tables.TASKS, tasks.task_table(by_turn, turns, calls, found, of_tasks)),
        process=_table(PROCESS, of_sessions),
        session_features=_table(
            tables.SESSION_FEATURES,
            session_features(
                sessions,
                steps,
                turns,
                calls,
                with_task_types(scenarios(sessions, turns), sessions, turns, extraction.task_types),
                counted,
                semantic,
                runs,
                extraction.self_fix_steps,
            ),
        ),
        turn_coverage=_table(tables.TURN_COVERAGE, turn_coverage(turns)),
        session_usage=_table(tables.SESSION_USAGE, session_usage(sessions, steps)),
    )


def _table(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    return conform(table, rows).sort(table.sort)
