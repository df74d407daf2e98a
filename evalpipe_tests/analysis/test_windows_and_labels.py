from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.analysis import require_one_measurement, version_labels, window_bounds
from evalpipe.analysis.labels import unlabelled
from evalpipe.contracts.errors import EvalpipeError

DAY = date(2026, 2, 4)
DAYS = st.lists(st.dates(date(2025, 12, 1), date(2026, 3, 1)), max_size=20)


@given(DAYS, st.integers(1, 60), st.integers(0, 5))
def test_a_trailing_window_has_its_length_and_only_settled_days(days: list[date], length: int, settle: int) -> None:
    bounds = window_bounds(DAY, f"{length}d", settle, days)
    end = DAY - timedelta(days=settle)
    inside = [day for day in days if end - timedelta(days=length) < day <= end]
    if not inside:
        assert bounds is None
    else:
        assert bounds is not None
        start, last = bounds
        assert ((last - start).days + 1, last) == (length, end)


@given(DAYS)
def test_the_whole_archive_ends_at_the_as_of_day(days: list[date]) -> None:
    past = [day for day in days if day <= DAY]
    assert window_bounds(DAY, "all", 3, days) == ((min(past), max(past)) if past else None)


@pytest.mark.parametrize("window", ["28", "0d", "d", "-3d", "28D", "ALL", "", "10000d"])
def test_another_form_of_window_is_refused(window: str) -> None:
    with pytest.raises(EvalpipeError) as error:
        window_bounds(DAY, window, 3, [DAY])
    assert error.value.code == "BAD_ARGUMENT"


def test_labels_join_the_parts_in_order(trial: Callable[..., pl.DataFrame]) -> None:
    outcomes = trial({"m-1": 0.5}, n=3)
    assert version_labels(outcomes, ("agent", "model")).to_list() == ["acme · m-1"] * 3
    assert version_labels(outcomes, ("model", "agent", "agent_release")).to_list() == ["m-1 · acme · 1.0"] * 3


def test_a_session_without_a_part_has_no_version(trial: Callable[..., pl.DataFrame]) -> None:
    outcomes = trial({"m": 0.5}, n=4).with_columns(
        model=pl.Series([None, "m", "m", None], dtype=pl.String),
        agent_release=pl.Series(["1", None, "1", None], dtype=pl.String),
        n_models=pl.Series([0, 1, 2, 2], dtype=pl.Int32),
    )
    by = ("agent", "agent_release", "model")
    assert version_labels(outcomes, ("agent",)).null_count() == 0
    assert version_labels(outcomes, ("agent", "model")).to_list() == [None, "acme · m", None, None]
    assert version_labels(outcomes, by).null_count() == 4
    counts = unlabelled(outcomes, by)
    assert counts == {"missing_release": 2, "missing_model": 1, "mixed_models": 1}
    assert unlabelled(outcomes, ("agent",)) == {}


def frame(*rows: tuple[str, date]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"measurement": pl.String, "day": pl.Date}, orient="row")


def test_one_measurement_is_returned() -> None:
    assert require_one_measurement(frame(("m1", DAY), ("m1", DAY))) == "m1"
    assert require_one_measurement(frame()) == ""


def test_two_measurements_are_refused_with_the_days_to_compute_anew() -> None:
    rows = frame(("m1", DAY), ("m1", DAY + timedelta(days=4)), ("m2", DAY + timedelta(days=5)))
    with pytest.raises(EvalpipeError) as error:
        require_one_measurement(rows)
    assert error.value.code == "MIXED_MEASUREMENTS"
    assert "m1 (2026-02-04 to 2026-02-08), m2 (2026-02-09 to 2026-02-09)" in error.value.what
    assert error.value.fix.endswith("evalpipe backfill 2026-02-04..2026-02-08")
    with pytest.raises(EvalpipeError) as error:
        require_one_measurement(rows.select("measurement"))
    assert "m1, m2" in error.value.what
