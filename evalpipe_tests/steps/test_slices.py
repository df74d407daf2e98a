"""Kernels that fail: nothing of a log leaves them, and an error with a code keeps its code."""

from __future__ import annotations

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.slices import run_quietly

CANARY = "the words of a person"


def _cast(text: str) -> object:
    return pl.DataFrame({"text": [text]}).with_columns(pl.col("text").cast(pl.Int64))


def _refuse(_: str) -> object:
    raise EvalpipeError("LEAK_FOUND", "day 2026-01-05")


def test_a_librarys_message_quotes_the_log_and_is_not_passed_on() -> None:
    with pytest.raises(pl.exceptions.PolarsError) as loud:
        _cast(CANARY)
    assert CANARY in str(loud.value)
    with pytest.raises(EvalpipeError) as quiet:
        run_quietly(_cast, CANARY)
    assert quiet.value.code == "RUN_FAILED"
    assert CANARY not in str(quiet.value)
    assert quiet.value.__cause__ is None
    assert quiet.value.__suppress_context__


def test_an_error_with_a_code_keeps_it() -> None:
    with pytest.raises(EvalpipeError) as caught:
        run_quietly(_refuse, CANARY)
    assert caught.value.code == "LEAK_FOUND"
