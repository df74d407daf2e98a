"""Withdrawn consent keeps no text."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from evalpipe.masking.consent import apply_consent, concerning
from evalpipe.steps.ledger import CONSENT

STEP = {"session_id": "a:1", "text": "hello", "arguments": "{}", "output": "out", "exit_code": 1}


def session(**values: Any) -> dict[str, Any]:
    return {"session_id": "a:1", "user_id": "u1", "source": "a", "tenant": None, "consent": None} | values


def applied(*rows: dict[str, Any], **values: Any) -> tuple[str | None, str | None, int]:
    schema = {
        "session_id": pl.String,
        "user_id": pl.String,
        "source": pl.String,
        "tenant": pl.String,
        "consent": pl.String,
    }
    ledger = pl.DataFrame([dict.fromkeys(CONSENT) | row for row in rows], schema=CONSENT, orient="row")
    sessions, steps = apply_consent(pl.DataFrame([session(**values)], schema=schema), pl.DataFrame([STEP]), ledger)
    assert len(set(steps.select("text", "arguments", "output").row(0))) == (1 if steps["text"][0] is None else 3)
    return sessions["consent"][0], steps["text"][0], steps["exit_code"][0]


@pytest.mark.parametrize(
    ("rows", "values", "expected"),
    [
        ((), {}, (None, "hello", 1)),
        ((), {"consent": "terms-3"}, ("terms-3", "hello", 1)),
        ((), {"consent": "withdrawn"}, ("withdrawn", None, 1)),
        (({"user_id": "u1", "status": "withdrawn"},), {}, ("withdrawn", None, 1)),
        (({"user_id": "u2", "status": "withdrawn"},), {}, (None, "hello", 1)),
        (({"user_id": "Ann@X.org", "status": "withdrawn"},), {"user_id": "ann@x.ORG "}, ("withdrawn", None, 1)),
        (({"user_id": "U1", "status": "withdrawn"},), {}, (None, "hello", 1)),
        (({"user_id": "u1", "status": "withdrawn"},), {"tenant": "t"}, ("withdrawn", None, 1)),
        (({"user_id": "u1", "tenant": "x", "status": "withdrawn"},), {"tenant": "t"}, (None, "hello", 1)),
        (({"source": "a", "tenant": "x", "status": "withdrawn"},), {"tenant": "t"}, (None, "hello", 1)),
        (
            (
                {"source": "a", "status": "granted", "legal_basis": "b"},
                {"user_id": "u1", "status": "granted", "legal_basis": "z"},
            ),
            {},
            ("z", "hello", 1),
        ),
        (({"user_id": "u1", "tenant": "t", "status": "withdrawn"},), {"tenant": "t"}, ("withdrawn", None, 1)),
        (({"source": "a", "status": "withdrawn"},), {"user_id": None}, ("withdrawn", None, 1)),
        (({"user_id": "u1", "status": "granted", "legal_basis": "contract"},), {}, ("contract", "hello", 1)),
        (({"user_id": "u1", "status": "granted"},), {"consent": "withdrawn"}, ("withdrawn", None, 1)),
        (
            ({"user_id": "u1", "status": "granted"}, {"source": "a", "status": "withdrawn"}),
            {},
            ("withdrawn", None, 1),
        ),
    ],
)
def test_consent(rows: tuple[dict[str, Any], ...], values: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert applied(*rows, **values) == expected


def test_rows_that_concern_a_day_are_found_among_many_people_of_several_tenants() -> None:
    people = pl.DataFrame(
        [
            {"user_id": f"U{i}@x.org", "tenant": tenant, "source": "a"}
            for _ in range(4)
            for i in range(500)
            for tenant in ("t1", "t2", "t3", None)
        ]
    )
    told = [
        {"user_id": f"u{i}@X.org", "tenant": f"t{i % 5}", "status": "withdrawn"}  # nobody is of t4, and t0 is no tenant
        for i in range(500)
    ]
    ledger = pl.DataFrame([dict.fromkeys(CONSENT) | row for row in told], schema=CONSENT, orient="row")
    found = concerning(ledger, people)
    assert set(found["user_id"]) == {f"u{i}@X.org" for i in range(500) if i % 5 in (1, 2, 3)}
