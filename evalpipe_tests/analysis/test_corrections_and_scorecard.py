from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from evalpipe.analysis import corrections, scorecard
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
A, B, C = "acme · a", "acme · b", "acme · c"


@pytest.fixture
def tables(trial: Trial, run: Run, criteria: Criteria) -> dict[str, pl.DataFrame]:
    return run(trial({"a": 0.3, "b": 0.7, "c": 0.7}, n=1200), criteria)


def test_an_unchanged_result_corrects_nothing(tables: dict[str, pl.DataFrame]) -> None:
    numbers = tables["analysis.net_improvement"]
    assert corrections(numbers, numbers, "r1", "r2").is_empty()


def test_only_moved_numbers_are_corrected(tables: dict[str, pl.DataFrame]) -> None:
    old = tables["analysis.net_improvement"]
    is_one = (pl.col("version") == A) & (pl.col("metric") == "correction") & (pl.col("slice") == "all")
    other_column = old.with_columns(pl.when(is_one).then(0.5).otherwise(pl.col("p_perm")).alias("p_perm"))
    assert corrections(old, other_column, "r1", "r2").is_empty()
    for name, value in (("estimate", 0.25), ("n_sessions", 7)):
        new = old.with_columns(
            pl.when(is_one).then(pl.lit(value)).otherwise(pl.col(name)).cast(old.schema[name]).alias(name)
        )
        row = corrections(old, new, "r1", "r2").row(0, named=True)
        assert (row["version"], row["metric"], row[f"new_{name}"]) == (A, "correction", value)
        assert row[f"old_{name}"] == old.filter(is_one)[name].item()
        assert (row["old_receipt"], row["new_receipt"]) == ("r1", "r2")


def test_a_number_that_comes_or_goes_is_a_correction(tables: dict[str, pl.DataFrame]) -> None:
    full = tables["analysis.net_improvement"]
    fewer = full.filter(pl.col("version") != C)
    came, went = corrections(fewer, full, "r1", "r2"), corrections(full, fewer, "r1", "r2")
    assert came["version"].unique().to_list() == went["version"].unique().to_list() == [C]
    assert came["old_estimate"].null_count() == went["new_estimate"].null_count() == came.height
    withheld = full.with_columns(pl.lit(None, dtype=pl.Float64).alias("estimate"))
    assert corrections(full, withheld, "r1", "r2").height == full.height


def test_a_scorecard_counts_wins_losses_and_ties(tables: dict[str, pl.DataFrame]) -> None:
    def standing(version: str) -> tuple[int, ...]:
        card = scorecard(tables, version)
        row = card.filter((pl.col("metric") == "positive_outcome") & (pl.col("slice") == "all"))
        return row.select("n_better_than", "n_worse_than", "n_tied_with").row(0)

    assert standing(A) == (0, 2, 0)
    assert standing(B) == (1, 0, 1)
    assert scorecard(tables, A).height == 4
    assert scorecard(tables, A)["estimate"].is_not_null().all()


def test_a_version_out_of_the_comparison_beats_nobody(trial: Trial, run: Run, criteria: Criteria) -> None:
    base = trial({"a": 0.3, "b": 0.7, "c": 0.7})
    few = base.filter((pl.col("model") != "c") | ((pl.col("model") == "c").cum_sum() <= 10))
    card = scorecard(run(few, criteria), C)
    assert card.height == 4
    assert card.select(pl.sum("n_better_than", "n_worse_than", "n_tied_with")).row(0) == (0, 0, 0)


def test_an_unknown_version_has_no_scorecard(tables: dict[str, pl.DataFrame]) -> None:
    with pytest.raises(EvalpipeError) as error:
        scorecard(tables, "acme · z")
    assert error.value.code == "UNKNOWN_VERSION"
