"""Numbers that do not exist are null with a reason, and never 0."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.analysis import score
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
Number = Callable[..., dict[str, Any]]
Check = Callable[..., dict[str, Any]]
A, B, C = "acme · a", "acme · b", "acme · c"
NUMBERS = ("estimate", "lo", "hi", "se", "p_perm", "n_permutations", "rank_lo", "rank_hi", "letters", "theta", "mde")


def is_withheld(row: dict[str, Any]) -> bool:
    return row["status"] == "unavailable" and all(row[name] is None for name in NUMBERS)


def test_no_sessions_leave_diagnostics_only(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}).clear(), criteria)
    assert [name for name, table in tables.items() if not table.is_empty()] == ["analysis.diagnostics"]
    assert check(tables, "sessions")["status"] == "unavailable"
    assert check(tables, "missing_user")["value"] is None


def test_a_zero_denominator_is_null(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    n = 600
    outcomes = trial({"a": 0.5, "b": 0.5}, n=n, correction_num=[0.0] * n, correction_den=[0.0] * n)
    row = number(run(outcomes, criteria), A, "correction")
    assert is_withheld(row)
    assert row["raw_rate"] is None
    assert row["reasons"] == ["zero_denominator"]
    assert row["n_sessions"] > 0
    assert row["missing_share"] == 0


def test_unknown_outcomes_are_left_out_and_reported(
    trial: Trial, run: Run, criteria: Criteria, number: Number, check: Check
) -> None:
    """Open sessions of one kind of work: they carry no weight either, as if they had not been."""
    base = trial({"a": 0.3, "b": 0.5}, scenarios={"coding": 0.0, "chat": 0.4})
    is_open = (pl.col("model") == "a") & (pl.col("scenario") == "chat") & (pl.int_range(pl.len()) % 2 == 0)
    pair = ("positive_outcome_num", "positive_outcome_den")
    tables = run(base.with_columns(pl.when(~is_open).then(pl.col(name)).alias(name) for name in pair), criteria)
    alone = run(base.filter(~is_open), criteria)
    assert number(tables, A)["missing_share"] == pytest.approx(0.25, abs=0.05)
    assert number(tables, B)["missing_share"] == 0
    assert number(tables, A)["estimate"] == pytest.approx(number(alone, A)["estimate"])
    assert number(tables, A)["n_sessions"] > number(alone, A)["n_sessions"]
    assert check(tables, "differential_missingness")["status"] == "suspect"
    assert check(tables, "missing_outcome")["value"] == pytest.approx(0.125, abs=0.03)


def test_a_version_whose_outcomes_are_all_unknown(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    base = trial({"a": 0.5, "b": 0.5, "c": 0.5})
    pair = ("positive_outcome_num", "positive_outcome_den")
    tables = run(
        base.with_columns(pl.when(pl.col("model") != "c").then(pl.col(name)).alias(name) for name in pair), criteria
    )
    row = number(tables, C)
    assert is_withheld(row)
    assert (row["reasons"], row["missing_share"], row["raw_rate"]) == (["no_outcome"], 1.0, None)
    assert number(tables, A)["status"] == "ok"


def test_too_few_sessions_leave_the_comparison_and_keep_a_row(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    base = trial({"a": 0.5, "b": 0.6, "c": 0.7})
    few = base.filter((pl.col("model") != "c") | (pl.col("model") == "c").cum_sum().le(19))
    tables = run(few, criteria)
    row = number(tables, C)
    assert is_withheld(row)
    assert (row["reasons"], row["n_sessions"]) == (["too_few_sessions"], 19)
    assert row["raw_rate"] is not None
    assert number(tables, A)["estimate"] == pytest.approx(-number(tables, B)["estimate"])
    assert C not in tables["analysis.pairs"]["version"].to_list()


def test_one_version_has_no_comparator(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    tables = run(trial({"a": 0.5}), criteria)
    row = number(tables, A)
    assert row["status"] == "unavailable"
    assert row["estimate"] is None
    assert "no_comparator" in row["reasons"]
    assert tables["analysis.pairs"].is_empty()


def test_a_version_absent_from_a_slice(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    base = trial({"a": 0.5, "b": 0.6, "c": 0.6}, scenarios={"coding": 0.0, "chat": 0.0})
    tables = run(base.filter((pl.col("model") != "c") | (pl.col("scenario") == "coding")), criteria)
    row = number(tables, C, slice_name="scenario=chat")
    assert is_withheld(row)
    assert (row["reasons"], row["n_sessions"], row["missing_share"]) == (["absent"], 0, None)


def test_an_absent_reference_withholds_everything(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], number: Number
) -> None:
    criteria = with_estimand(reference="model:acme · gone")
    row = number(run(trial({"a": 0.5, "b": 0.6}), criteria), A)
    assert is_withheld(row)
    assert row["reasons"] == ["reference_unavailable"]
    assert row["raw_rate"] is not None


def test_outcomes_without_variation_have_no_interval(
    make_outcomes: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    row = number(run(make_outcomes(["a", "b"] * 60, np.ones(120)), criteria), A)
    assert (row["estimate"], row["lo"], row["p_perm"]) == (0.0, None, None)
    assert (row["status"], row["reasons"]) == ("inconclusive", ["no_variation"])


def test_a_small_slice_is_underpowered_and_unranked(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    base = trial({"a": 0.3, "b": 0.8}, n=900)
    mixed = base.with_columns(
        pl.when(pl.int_range(pl.len()) % 10 == 0).then(pl.lit("rare")).otherwise(pl.lit("coding")).alias("scenario")
    )
    tables = run(mixed, criteria)
    small, large = (number(tables, A, slice_name=f"scenario={name}") for name in ("rare", "coding"))
    assert small["mde"] > 0.10 > large["mde"]
    assert "underpowered" in small["reasons"]
    assert [small[name] for name in ("rank_lo", "rank_hi", "letters", "raw_rank")] == [None] * 4
    assert small["estimate"] is not None
    assert large["rank_lo"] == 2
    assert "underpowered" not in large["reasons"]


def test_all_traffic_keeps_its_rank_set_however_small(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    row = number(run(trial({"a": 0.5, "b": 0.5}, n=80), criteria), A)
    assert row["reasons"][-1] == "underpowered"
    assert (row["rank_lo"], row["rank_hi"]) == (1, 2)


def test_sessions_without_one_model_are_counted_and_left_out(
    trial: Trial, run: Run, criteria: Criteria, number: Number, check: Check
) -> None:
    base = trial({"a": 0.5, "b": 0.5}, n=900)
    at = pl.int_range(pl.len())
    odd = base.with_columns(
        pl.when(at % 30 > 0).then(pl.col("model")).alias("model"),
        pl.when(at % 10 == 1).then(2).otherwise(1).cast(pl.Int32).alias("n_models"),
    )
    tables = run(odd, criteria)
    assert check(tables, "missing_model")["value"] == pytest.approx(30 / 900)
    assert check(tables, "missing_model")["status"] == "ok"
    assert check(tables, "mixed_models")["value"] == pytest.approx(90 / 900)
    assert check(tables, "mixed_models")["status"] == "suspect"
    assert number(tables, A)["n_sessions"] + number(tables, B)["n_sessions"] == 900 - 30 - 90


def test_unsettled_sessions_and_other_days_are_left_out(
    trial: Trial, run: Run, criteria: Criteria, number: Number, check: Check
) -> None:
    base = trial({"a": 0.5, "b": 0.5}, n=900)
    halved = base.with_columns((pl.int_range(pl.len()) % 2 == 0).alias("is_settled"))
    tables = run(halved, criteria)
    assert check(tables, "unsettled")["value"] == pytest.approx(0.5)
    assert check(tables, "sessions")["value"] == 450
    one_day = run(base, criteria, window_end=date(2026, 1, 5))
    assert check(one_day, "sessions")["value"] == base.filter(pl.col("day") == date(2026, 1, 5)).height


@pytest.mark.parametrize(
    ("change", "column", "word"),
    [
        ({"session_id": pl.lit("s")}, "session_id", "more than once"),
        ({"positive_outcome_num": pl.lit(float("nan"))}, "positive_outcome_num", "NaN"),
        ({"positive_outcome_den": pl.lit(float("inf"))}, "positive_outcome_den", "infinity"),
        ({"positive_outcome_num": pl.lit(-1.0)}, "positive_outcome_num", "below 0"),
        ({"positive_outcome_num": pl.lit(2.0)}, "positive_outcome_num", "exceed"),
        ({"positive_outcome_den": pl.lit(-1.0)}, "positive_outcome_den", "negative"),
        ({"positive_outcome_num": pl.lit(None, dtype=pl.Float64)}, "positive_outcome_num", "no numerator"),
        (
            {"positive_outcome_num": pl.lit(1.0), "positive_outcome_den": pl.lit(0.0)},
            "positive_outcome_num",
            "denominator of 0",
        ),
    ],
)
def test_illegal_outcomes_stop_everything(
    trial: Trial, run: Run, criteria: Criteria, change: dict[str, pl.Expr], column: str, word: str
) -> None:
    outcomes = trial({"a": 0.5, "b": 0.5}, n=60)
    bad = outcomes.with_columns(
        pl.when(pl.int_range(pl.len()) < 2).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in change.items()
    )
    with pytest.raises(EvalpipeError) as error:
        run(bad, criteria)
    assert error.value.code == "INVALID_OUTCOMES"
    assert error.value.where == f"signals.session_outcomes.{column}"
    assert word in error.value.what


def test_outcomes_of_other_criteria_are_refused(trial: Trial, with_estimand: Callable[..., Criteria]) -> None:
    outcomes = trial({"a": 0.5, "b": 0.5}, n=60)
    day = date(2026, 2, 4)
    with pytest.raises(EvalpipeError) as error:
        score(outcomes, with_estimand(population="equal"), as_of=day, window="28d", window_start=day, window_end=day)
    assert error.value.code == "MIXED_MEASUREMENTS"
    assert "backfill 2026-01-05..2026-01-24" in error.value.fix
