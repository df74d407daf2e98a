"""Times in all spellings that logs use."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.sources.times import normal_time, parse_time, time_column

NOON = "2026-01-05T12:00:00.000Z"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (NOON, NOON),
        ("2026-01-05T12:00:00Z", NOON),
        ("2026-01-05T12:00:00z", NOON),
        ("2026-01-05t12:00:00.000z", NOON),
        ("2026-01-05 12:00", NOON),
        ("2026-01-05T13:30:00+01:30", NOON),
        ("20260105T120000Z", NOON),
        ("2026-01-05T12:00:00.123456Z", "2026-01-05T12:00:00.123456Z"),
        ("2026-01-05T12:00:00.123000", "2026-01-05T12:00:00.123000Z"),
        ("2026-01-05T24:00:00Z", "2026-01-06T00:00:00.000Z"),
        ("2026-01-05T24:00", "2026-01-06T00:00:00.000Z"),
        ("20260105T240000.000+01:00", "2026-01-05T23:00:00.000Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
        ("2016-12-31T15:59:60.500-08:00", "2017-01-01T00:00:00.500Z"),
        ("2026-01-05 12:00:00 UTC", NOON),  # BigQuery, Ruby
        ("2026-01-05 12:00:00.123456 UTC", "2026-01-05T12:00:00.123456Z"),
        ("2026-01-05 12:00:00 GMT", NOON),
        ("2026-01-05 13:00:00 +0100 CET", NOON),  # Go
        ("2026-01-05 12:00:00.5 +0000 UTC m=+0.01", "2026-01-05T12:00:00.500Z"),
        ("2026-01-05T12:00:00Z[UTC]", NOON),  # Java
        ("2026-01-05T13:00:00+01:00[Europe/Berlin]", NOON),
        ("2026/01/05 12:00:00", NOON),
        ("2026/01/05 13:00:00 +01:00", NOON),
        ("Mon, 05 Jan 2026 12:00:00 GMT", NOON),
        ("5 Jan 2026 13:00:00 +0100", NOON),
        ("1767614400.25", "2026-01-05T12:00:00.250Z"),
        (1767614400, NOON),
        (1767614400.25, "2026-01-05T12:00:00.250Z"),
        (1767614400000, NOON),
        ("1767614400000", NOON),
        (1767614400000001, "2026-01-05T12:00:00.000001Z"),
        ("1767614400000000000", "2026-01-05T12:00:00.000000Z"),
        (1767614400123456789, "2026-01-05T12:00:00.123456Z"),
    ],
)
def test_what_is_a_time(written: object, read: str) -> None:
    assert normal_time(written) == read
    again = parse_time(read)
    assert again is not None
    assert normal_time(read) == read


@pytest.mark.parametrize(
    "written",
    [
        "", "soon", "2026-13-01T00:00:00Z", "2026-01-05T25:00:00Z", "2026-01-05T24:00:01Z", "2026-01-05T24:00:00.5Z",
        "2026-01-05T12:00:60Z", "2026-01-05T23:59:61Z", "9999-12-31T24:00:00Z", 0, 1, -1767614400, 20260105, 10**20,
        float("nan"), float("inf"), True, None, [], "17676144000", "17676144.5", "1767614400.",
        # Nothing was set: the zero of Go and .NET.
        "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00+01:00", "0001-01-01 00:00:00 +0000 UTC",
        "2026-01-05 12:00:00 EST", "2026/13/05 12:00:00", "Mon, 05 Foo 2026 12:00:00 GMT", "01/05/2026 12:00:00",
    ],
)  # fmt: skip
def test_what_is_none(written: object) -> None:
    assert normal_time(written) is None


# Before 2001 a number of seconds has nine digits, which as text are no time.
@given(st.datetimes(datetime(2002, 1, 1), datetime(2100, 1, 1)))
def test_every_unit_gives_the_same_moment(moment: datetime) -> None:
    micros = round((moment - datetime(1970, 1, 1)).total_seconds() * 10**6)
    whole = micros // 10**6 * 10**6
    texts = {
        parse_time(normal_time(written) or "")
        for written in (whole // 10**6, whole // 10**3, whole, whole * 10**3, str(whole * 10**3))
    }
    assert texts == {moment.replace(microsecond=0, tzinfo=UTC)}
    assert parse_time(normal_time(moment.isoformat()) or "") == moment.replace(tzinfo=UTC)


@given(st.lists(st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)), min_size=2, max_size=5))
def test_times_of_one_log_sort_as_they_run(moments: list[datetime]) -> None:
    written = [moment.isoformat(timespec="microseconds") for moment in moments]
    assert sorted(map(str, map(normal_time, written))) == [normal_time(text) for text in sorted(written)]


@pytest.mark.parametrize(
    "values",
    [
        ["2026-01-05T10:00:00.123Z", None, "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"],
        ["2026-01-05T10:00:00.123456Z", "0001-01-01T00:00:00.000001Z"],
        ["2026-01-05T10:00:00.123Z", "2026-01-05T10:00:00.123456Z"],
        ["2026-02-30T10:00:00.123Z", "2026-01-05T10:00:00.123Z"],
        ["2026-01-05T10:00:60.000Z", "2026-01-05T24:00:00.000Z", "2026-01-05T10:00:00,123Z"],
        ["2026-01-05T10:00:00.12éZ", "x" * 24, "2026-01-05 10:00:00.123Z"],
        ["2026-01-05T10:00:00.123Z" + "2", "026-01-05T10:00:00.123Z"],
        [None, None],
        [],
    ],
)
def test_a_column_of_times_is_what_each_text_is(values: list[str | None]) -> None:
    column = time_column("at", values)
    assert column.dtype == pl.Datetime("us", "UTC")
    assert column.name == "at"
    assert column.to_list() == [None if value is None else parse_time(value) for value in values]
