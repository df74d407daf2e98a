"""Versions that share no work with all: groups, their slices and their reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
Number = Callable[..., dict[str, Any]]
A, B, C = "acme · a", "acme · b", "acme · c"


def only(outcomes: pl.DataFrame, kept: dict[str, tuple[str, ...]], column: str = "scenario") -> pl.DataFrame:
    """Sessions whose model was served where ``kept`` says so."""
    allowed = [f"{model} {place}" for model, places in kept.items() for place in places]
    return outcomes.filter(pl.concat_str("model", column, separator=" ").is_in(allowed))


def groups_of(tables: dict[str, pl.DataFrame]) -> dict[str, float]:
    rows = tables["analysis.diagnostics"].filter(pl.col("check_name") == "support_group")
    return dict(rows.select("subject", "value").iter_rows())


def told(tables: dict[str, pl.DataFrame], part: str) -> set[tuple[str, str]]:
    rows = tables["analysis.pairs"].filter(
        (pl.col("metric") == "positive_outcome") & (pl.col("slice") == part) & pl.col("is_better")
    )
    return set(rows.select("version", "other").iter_rows())


KINDS = {"coding": 0.0, "chat": 0.0}
SPLIT = {"a": ("coding",), "b": ("coding", "chat"), "c": ("chat",)}


def test_versions_are_compared_where_they_did_the_same_work(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    base = only(trial({"a": 0.2, "b": 0.8, "c": 0.8}, n=1200, scenarios=KINDS), SPLIT)
    tables = run(base, criteria)
    assert number(tables, A)["reasons"] == ["no_common_support"]
    assert groups_of(tables) == {"scenario=chat": 2.0, "scenario=coding": 2.0}
    assert told(tables, "scenario=coding") == {(B, A)}
    assert told(tables, "scenario=chat") == set()


def test_a_group_that_is_no_slice_gets_one_of_the_headline_alone(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    """a and b in one period, c and d in the next, on the same kinds of work."""
    base = trial({"a": 0.2, "b": 0.8, "c": 0.5, "d": 0.5}, n=2400, scenarios=KINDS, routing_epoch=["e1", "e2"] * 1200)
    base = base.sort("model").group_by("model", "routing_epoch", maintain_order=True).head(250)
    base = only(base, {"a": ("e1",), "b": ("e1",), "c": ("e2",), "d": ("e2",)}, "routing_epoch")
    tables = run(base, criteria)
    assert groups_of(tables) == {"support=routing_epoch e1": 2.0, "support=routing_epoch e2": 2.0}
    assert told(tables, "support=routing_epoch e1") == {(B, A)}
    row = number(tables, A, slice_name="support=routing_epoch e1")
    assert (row["status"], row["support_share"]) == ("ok", 1.0)
    extra = tables["analysis.net_improvement"].filter(pl.col("slice").str.starts_with("support="))
    assert extra["metric"].unique().to_list() == ["positive_outcome"]


def test_no_group_is_made_where_all_are_compared(trial: Trial, run: Run, criteria: Criteria) -> None:
    assert groups_of(run(trial({"a": 0.2, "b": 0.8}, n=900, scenarios=KINDS), criteria)) == {}


def test_versions_that_leave_the_comparison_are_compared_among_themselves(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    """The smaller half leaves for lack of overlap: it is not forgotten."""
    base = trial({"a": 0.2, "b": 0.8, "c": 0.8, "d": 0.2}, n=2400, routing_epoch=["e1", "e2"] * 1200)
    base = only(base, {"a": ("e1",), "b": ("e1",), "c": ("e2",), "d": ("e2",)}, "routing_epoch")
    base = base.filter((pl.col("routing_epoch") == "e1") | (pl.int_range(pl.len()) % 3 > 0))
    tables = run(base, criteria)
    assert number(tables, C)["reasons"] == ["insufficient_overlap"]
    assert told(tables, "all") == {(B, A)}
    assert told(tables, "support=routing_epoch e2") == {(C, "acme · d")}
    assert list(groups_of(tables)) == ["support=routing_epoch e2"]


def test_a_version_with_few_sessions_makes_no_group(trial: Trial, run: Run, criteria: Criteria) -> None:
    base = only(trial({"a": 0.2, "b": 0.8, "c": 0.8}, n=1200, scenarios=KINDS), SPLIT)
    rare = base.filter((pl.col("model") != "c") | ((pl.col("model") == "c").cum_sum() <= 19))
    assert set(groups_of(run(rare, criteria))) <= {"scenario=coding"}


def test_one_user_is_told_as_one_user(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    tables = run(trial({"a": 0.2, "b": 0.8}, n=300).with_columns(user_id=pl.lit("u")), criteria)
    assert number(tables, A)["reasons"] == ["too_few_users"]
    assert groups_of(tables) == {}


def test_metrics_and_slices_beside_it_change_nothing_of_the_headline(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The headline family is the headline over all traffic: exploring more costs it nothing, and helps nothing."""
    monkeypatch.setattr(Stamp, "seed", lambda *_: 7)  # other criteria are another measurement, hence another seed
    outcomes = trial({"a": 0.5, "b": 0.56, "c": 0.6}, n=900, scenarios=KINDS)
    few = run(outcomes, with_estimand(metrics=("positive_outcome",), slices=()))
    many = run(
        outcomes,
        with_estimand(
            metrics=("positive_outcome", "correction", "complaint", "abandonment"), slices=("scenario", "language")
        ),
    )
    apart = ["measurement", "criteria_hash"]
    for name in ("analysis.net_improvement", "analysis.pairs"):
        head = [
            t[name].filter((pl.col("metric") == "positive_outcome") & (pl.col("slice") == "all")).drop(apart)
            for t in (few, many)
        ]
        assert head[0].height
        assert head[0].equals(head[1])
        assert many[name].height > few[name].height


def test_a_gate_refuses_pairs_of_another_measurement(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}), criteria)
    pairs = tables["analysis.pairs"]
    foreign = pairs.with_columns(measurement=pl.lit("other"), difference=pl.lit(-0.9))
    for rows in (pl.concat([foreign, pairs]), foreign):
        with pytest.raises(EvalpipeError) as error:
            analysis.decide_gates(tables | {"analysis.pairs": rows}, criteria, B, A)
        assert error.value.code == "MIXED_MEASUREMENTS"
