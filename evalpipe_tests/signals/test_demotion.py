"""Demotion without text: the same features as extraction without the signal, or a word that says they are unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts.metrics import METRICS
from evalpipe.contracts.signals import SEMANTIC_SIGNALS
from evalpipe.signals import (
    STEPS_READ,
    counted,
    detector_version,
    extract_part,
    session_outcomes,
    session_scores,
    without,
)
from evalpipe.signals.demotion import COURSE_UNKNOWN, END_UNKNOWN
from evalpipe.signals.ledger import empty_ledger
from evalpipe.signals.part import SignalsPart
from evalpipe_tests.signals.build import EXTRACTION, PRICES, Talk, criteria, frames, later

ENGLISH = frozenset((signal, "en") for signal in SEMANTIC_SIGNALS)
#: What is told of a session by what people said, but for how it ended.
SAID = [
    "n_confirmations", "n_praise", "n_complaints", "n_corrections", "n_recovered_corrections", "n_episodes",
    "sum_steerability", "turns_to_confirmation", "calls_to_confirmation", "has_final_confirmation",
    "has_closing_signal",
]  # fmt: skip


def talks() -> list[Talk]:
    mixed = (
        Talk("mixed").user("fix the login bug").bash("ls").agent("Fixed.").user("no, that is wrong, use the other file")
    )
    mixed.agent("Changed.").user("não, está errado, use o outro arquivo").bash("ls").agent("Feito.")
    mixed.user("agora funciona, obrigado")
    happy = Talk("happy").user("fix the login bug").bash("ls").agent("Fixed.").user("It works now, thank you so much")
    angry = Talk("angry").user("fix the login bug").agent("Fixed.").user("it still does not work").agent("Now?")
    quiet = Talk("quiet").user("fix the login bug").agent("Fixed.")
    last = Talk("last").user("fix the login bug").agent("Fixed.").user("it still does not work")
    stopped = (
        Talk("stopped").user("fix it").agent("Fixed.").user("it still does not work").user("[stop]", origin="interrupt")
    )
    return [mixed, happy, angry, quiet, last, stopped]


def demote(gone: frozenset[tuple[str, str]], *, with_steps: bool = True) -> tuple[SignalsPart, pl.DataFrame]:
    sessions, steps = frames(*talks())
    part = extract_part(sessions, steps, EXTRACTION)
    lean = steps.sort("session_id", "seq").select(STEPS_READ)
    lean = lean if with_steps else lean.clear()
    calls = lean.filter(pl.col("kind") == "tool").select("session_id", "seq")
    return part, without(part.session_features, part.semantic, lean, calls, gone)


def test_features_are_those_of_an_extraction_that_never_read_the_language() -> None:
    part, features = demote(ENGLISH)
    sessions, steps = frames(*talks())
    expected = extract_part(sessions, steps, replace(EXTRACTION, languages=("zh", "pt"))).session_features
    assert part.session_features["n_corrections"].sum() > expected["n_corrections"].sum() > 0
    assert features.select("session_id", *SAID).equals(expected.select("session_id", *SAID))
    kept = counted(part.semantic, ENGLISH)
    assert set(kept["lang"]) == {"pt"}


def test_an_end_that_a_demoted_word_decided_is_unknown() -> None:
    _, features = demote(ENGLISH)
    unknown = set(features.filter(END_UNKNOWN)["session_id"])
    assert unknown == {"angry", "last"}, "a session that was interrupted says so itself"
    assert not features[COURSE_UNKNOWN].any()
    _, bare = demote(ENGLISH, with_steps=False)
    assert set(bare.filter(COURSE_UNKNOWN)["session_id"]) == {"mixed", "happy", "angry", "last", "stopped"}


def test_nothing_moves_where_nothing_is_demoted() -> None:
    part, features = demote(frozenset([("praise", "zh")]))
    assert features.drop(END_UNKNOWN, COURSE_UNKNOWN).equals(part.session_features)


def outcomes(gone: frozenset[tuple[str, str]], **session: Any) -> dict[str, dict[str, Any]]:
    sessions, _ = frames(*talks())
    part, features = demote(gone)
    rows = session_outcomes(
        date(2026, 1, 5), sessions.with_columns(**{k: pl.lit(v) for k, v in session.items()}), features,
        counted(part.hard, gone), counted(part.semantic, gone), later(), criteria(), is_settled=True,
        usage=part.session_usage, prices=PRICES, ledger=empty_ledger(), demoted=gone,
    )  # fmt: skip
    return {row["session_id"]: row for row in rows.to_dicts()}


@pytest.mark.parametrize(
    ("signal", "lang", "unknown"),
    [
        ("correction", "en", {"correction", "unrecovered_correction", "steerability"}),
        ("confirm.explicit", "en", {"positive_outcome", "confirmation", "right_first_time", "convergence"}),
        ("complaint.sentiment", "en", {"complaint"}),
        ("command_error", "any", {"right_first_time", "execution_errors", "execution_success", "self_repair"}),
        ("correction", "pt", set()),
    ],
)
def test_a_metric_without_its_signal_is_unknown_and_not_nought(signal: str, lang: str, unknown: set[str]) -> None:
    before, after = outcomes(frozenset())["quiet"], outcomes(frozenset([(signal, lang)]))["quiet"]
    lost = {m.name for m in METRICS if before[f"{m.name}_den"] is not None and after[f"{m.name}_den"] is None}
    assert lost == unknown


def test_what_the_log_states_needs_no_signal() -> None:
    found = outcomes(frozenset([("confirm.explicit", "en")]), is_objective_success=True)
    assert found["quiet"]["positive_outcome_num"] == 1.0
    assert found["last"]["end_status"] != "open"


def test_families_add_up_to_all_signals() -> None:
    sessions, steps = frames(*talks())
    part = extract_part(sessions, steps, EXTRACTION)
    rows = pl.DataFrame([{"session_id": s, "measurement": "m"} for s in sorted(sessions["session_id"])])
    scores = session_scores(rows, part.hard, part.semantic, criteria())
    happy = scores.filter(session_id="happy").row(0, named=True)
    assert (happy["hard_score"], happy["semantic_score"]) == (0.0, pytest.approx(1.5))
    stopped = scores.filter(session_id="stopped").row(0, named=True)
    assert (stopped["hard_score"], stopped["semantic_score"]) == (pytest.approx(-0.2), pytest.approx(-0.6))


def test_a_detector_is_of_a_signal_and_a_language() -> None:
    versions = {detector_version(signal, lang) for signal in ("correction", "praise") for lang in ("en", "pt")}
    assert len(versions) == 4
    assert detector_version("command_error", "any") == detector_version("interrupt", "any")


def test_turns_that_no_pattern_can_read_are_counted_by_reason() -> None:
    talk = Talk().user("fix the login bug").agent("Fixed.").user("```\nfoo\n```").agent("?").user("12345 67890")
    coverage = extract_part(*frames(talk), EXTRACTION).turn_coverage.row(0, named=True)
    assert coverage == {"session_id": "s1", "n_turns": 3, "n_without_prose": 1, "n_unknown_language": 0}
    strange = Talk().user("zxq wvu").agent("?").user("qqq www zzz")
    coverage = extract_part(*frames(strange), EXTRACTION).turn_coverage.row(0, named=True)
    assert (coverage["n_turns"], coverage["n_unknown_language"]) == (2, 2)
