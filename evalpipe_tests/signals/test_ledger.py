"""The assignment ledger against sessions, and which of its rows concern a day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from evalpipe.signals.ledger import (
    LEDGER,
    empty_ledger,
    ledger_receipts,
    routing_arms,
    with_assignment,
    with_epochs,
)
from evalpipe_tests.signals.build import START, Talk, frames


def row(**values: Any) -> dict[str, Any]:
    base = dict.fromkeys(LEDGER) | {"policy": "p", "unit": "user", "starts_at": START - timedelta(days=1), "epoch": "e"}
    return base | values


def ledger(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=LEDGER, orient="row")


def told(*rows: dict[str, Any], **session: Any) -> dict[str, Any]:
    sessions, _ = frames(Talk(**({"model": "m-a"} | session)).user("hi"))
    out = with_assignment(sessions, ledger(*rows))
    assert out.height == 1
    return out.row(0, named=True)


def test_an_assignment_of_the_user_is_put_on_the_session() -> None:
    got = told(row(unit_id="u1", model="m-a", probability=0.25))
    assert (got["assignment_policy"], got["assignment_unit"], got["assignment_probability"]) == ("p", "user", 0.25)
    assert (got["routing_epoch"], got["assignment_source"], got["is_as_assigned"]) == ("e", "ledger", True)


def test_a_unit_that_got_another_version_is_told() -> None:
    assert told(row(unit_id="u1", model="m-b"))["is_as_assigned"] is False
    assert told(row(unit_id="u1", model="m-a", agent="other"))["is_as_assigned"] is False
    assert told(row(unit_id="u1"))["is_as_assigned"] is None


@pytest.mark.parametrize(
    ("values", "matches"),
    [
        ({"unit_id": "u2"}, False),
        ({"unit_id": "s1", "unit": "session"}, True),
        ({"unit_id": "u1", "starts_at": START}, True),
        ({"unit_id": "u1", "starts_at": START + timedelta(seconds=1)}, False),
        ({"unit_id": "u1", "ends_at": START}, False),
        ({"unit_id": "u1", "ends_at": START + timedelta(seconds=1)}, True),
        ({"model": "m-a"}, True),
        ({"model": "m-b"}, False),
        ({"agent": "acme", "model": "m-a"}, True),
        ({"agent": "acme", "agent_release": "2"}, False),
    ],
)
def test_which_rows_hold(values: dict[str, Any], matches: bool) -> None:
    assert (told(row(**values))["assignment_policy"] == "p") is matches


def test_the_row_that_says_most_and_began_last_counts() -> None:
    arm = row(policy="arm", model="m-a", starts_at=START)
    old = row(policy="old", unit_id="u1", starts_at=START - timedelta(days=3))
    new = row(policy="new", unit_id="u1", starts_at=START - timedelta(days=2))
    own = row(policy="own", unit="session", unit_id="s1", starts_at=START - timedelta(days=9))
    assert told(arm, old, new)["assignment_policy"] == "new"
    assert told(new, old, arm, own)["assignment_policy"] == "own"
    assert told(arm)["assignment_policy"] == "arm"


def test_the_order_of_rows_decides_nothing_and_the_more_specific_row_wins() -> None:
    wide, narrow = row(agent="acme", probability=0.5), row(agent="acme", model="m-a", probability=0.25)
    assert [told(*rows)["assignment_probability"] for rows in ((wide, narrow), (narrow, wide))] == [0.25, 0.25]
    one, other = row(unit_id="u1", model="m-a"), row(unit_id="u1", model="m-b")
    assert told(one, other)["is_as_assigned"] == told(other, one)["is_as_assigned"]


def test_the_ledger_replaces_the_log_and_the_log_stays_where_it_is_silent() -> None:
    logged = {"assignment_policy": "log", "assignment_probability": 0.9, "routing_epoch": "x"}
    got = told(row(model="m-a"), **logged)
    assert (got["assignment_policy"], got["assignment_probability"], got["routing_epoch"]) == ("p", None, "e")
    other = told(row(model="m-b"), **logged)
    assert (other["assignment_policy"], other["assignment_source"]) == ("log", "logged")
    assert told(**logged)["assignment_source"] == "logged"
    assert told()["assignment_source"] is None


def test_the_arm_that_a_row_names_is_told() -> None:
    assert told(row(unit_id="u1", model="m-b"))["assigned_arm"] == "* · * · m-b"
    assert told(row(agent="acme", model="m-a"))["assigned_arm"] == "acme · * · m-a"
    assert told(row(unit_id="u1"))["assigned_arm"] is None
    assert told()["assigned_arm"] is None


def receipt(rows: pl.DataFrame, day: date) -> str:
    return ledger_receipts(rows)(day)


def test_rows_of_other_days_leave_a_days_receipt_alone() -> None:
    day = date(2026, 1, 5)
    first = datetime(2026, 1, 5, tzinfo=UTC)
    base = ledger(row(starts_at=first))
    same = receipt(base, day)
    later = row(starts_at=first + timedelta(days=1))
    over = row(starts_at=first - timedelta(days=5), ends_at=first)
    assert receipt(ledger(later, row(starts_at=first), over, over), day) == same
    assert receipt(base, day - timedelta(days=1)) == receipt(empty_ledger(), day)
    assert receipt(ledger(row(starts_at=first, probability=0.5)), day) != same
    assert receipt(base, day) != receipt(empty_ledger(), day)


def test_the_receipt_of_a_day_is_that_of_the_rows_in_force_on_it() -> None:
    """Against the plain definition: equal where and only where the same rows are in force."""
    first = datetime(2026, 1, 5, tzinfo=UTC)
    ends = (None, 5, 26, 49)
    rows = [
        row(unit_id=f"u{n}", starts_at=first + timedelta(hours=7 * n),
            ends_at=None if (end := ends[n % 4]) is None else first + timedelta(hours=7 * n + end))
        for n in range(20)
    ]  # fmt: skip
    receipts = ledger_receipts(ledger(*rows))
    seen: dict[frozenset[str], str] = {}
    for offset in range(-2, 14):
        day = first + timedelta(days=offset)
        here = frozenset(
            r["unit_id"] for r in rows
            if r["starts_at"] < day + timedelta(days=1) and (r["ends_at"] is None or r["ends_at"] > day)
        )  # fmt: skip
        assert seen.setdefault(here, receipts(day.date())) == receipts(day.date())
        assert receipts(day.date()) == receipt(ledger(*[r for r in rows if r["unit_id"] in here]), day.date())
    assert len(set(seen.values())) == len(seen) > 5


def test_an_epoch_ends_where_a_version_gets_another_probability() -> None:
    """Units that are assigned on their first visit share the epoch of the lottery that they drew from."""
    at = [START + timedelta(hours=n) for n in range(5)]
    odds = [("u1", "m-a", 0.5), ("u2", "m-b", 0.5), ("u3", "m-a", 0.5), ("u4", "m-a", 0.4), ("u5", "m-c", 0.2)]
    rows = [
        row(unit_id=unit, model=model, probability=p, starts_at=at[n], epoch=None)
        for n, (unit, model, p) in enumerate(odds)
    ]
    first, second = f"p from {at[0]:%Y-%m-%dT%H:%M}", f"p from {at[3]:%Y-%m-%dT%H:%M}"
    assert with_epochs(ledger(*rows))["epoch"].to_list() == [first] * 3 + [second] * 2
    assert with_epochs(ledger(*rows[::-1]))["epoch"].to_list() == [second] * 2 + [first] * 3
    assert with_epochs(ledger(*rows[:3]))["epoch"].to_list() == [first] * 3, "later rows move no earlier epoch"
    mixed = with_epochs(ledger(row(unit_id="u9", epoch="mine"), row(unit_id="u8", epoch=None, policy="q")))
    assert mixed["epoch"].to_list() == ["mine", f"q from {START - timedelta(days=1):%Y-%m-%dT%H:%M}"]


def test_arms_are_told_whether_or_not_they_served() -> None:
    day = START.date()
    rows = [
        row(model="m-a", probability=0.5),
        row(unit_id="u1", model="m-a", probability=0.5),
        row(unit_id="u2", model="m-b", probability=0.3),
        row(unit_id="u3", model="m-b", probability=0.2),
        row(model="m-c", probability=0.5, starts_at=START + timedelta(days=1)),
        row(unit_id="u4"),
    ]
    arms = routing_arms(ledger(*rows), day)
    assert arms.select("arm", "model", "probability_low", "probability_high").rows() == [
        ("* · * · m-a", "m-a", 0.5, 0.5), ("* · * · m-b", "m-b", 0.2, 0.3),
    ]  # fmt: skip
    assert routing_arms(empty_ledger(), day).is_empty()
