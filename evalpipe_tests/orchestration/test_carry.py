"""What an error leaves in Dagster's history: its code, and a place that names nobody."""

from __future__ import annotations

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.orchestration import carry


def _told(where: str, code: str = "LEDGER_INVALID") -> dict[str, str]:
    failed = carry.failure(EvalpipeError(code, "what", where=where))
    return {name: str(value.value) for name, value in failed.metadata.items()}


@pytest.mark.parametrize(
    "where",
    [
        "/home/lena/consent.csv, row 3", "consent-of-lena.csv", "s3://lena/logs", "C:\\Users\\lena\\key", "lena.py:3",
        "tiers.lena", "day=2026-01-05/lena", "masked.lena", "window lena of 2026-01-05",
    ],
)  # fmt: skip
def test_a_place_that_may_name_somebody_is_told_to_this_process_only(where: str) -> None:
    told = _told(where)
    assert "lena" not in repr(told)
    assert carry._PLACES[told["place"]] == where


@pytest.mark.parametrize(
    "where",
    [
        "masked", "masked.sessions", "day 2026-01-05", "masked/day=2026-01-05", "outcomes/m=3c4d/day=2026-01-05",
        "window 28d of 2026-01-05", "window all of 2026-01-05", "--user", "EVALPIPE_KEY", "carry.py:61", "",
    ],
)  # fmt: skip
def test_a_place_of_the_house_stays(where: str) -> None:
    told = _told(where)
    assert told["where"] == where
    assert "place" not in told


def test_a_source_is_never_told(tmp_path: object) -> None:
    assert _told("masked", "SOURCE_NOT_FOUND")["where"] == "", "a folder may be called so"
