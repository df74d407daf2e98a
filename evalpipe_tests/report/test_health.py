"""Data health: reading balance, quarantine, masking counts, leak check, design checks."""

from __future__ import annotations

import re

import polars as pl
import pytest

from evalpipe.report import build, to_html, to_markdown
from evalpipe_tests.report import factory


@pytest.fixture(scope="module")
def page() -> str:
    return to_html(factory.report())


def test_health_reconciles_as_printed(page: str) -> None:
    ev = factory.report().evidence
    assert ev.health.sources
    assert [s.source for s in ev.health.sources] == ["claude_code", "codex", "evalpipe_jsonl"]
    assert all(s.is_balanced for s in ev.health.sources)
    assert "1,564,357" in page
    assert page.count("reconciles") == 3
    broken = build(factory.changed(factory.inputs(), "masked.files", rows_kept=pl.col("rows_kept") + 1))
    assert "does not reconcile" in to_html(broken)
    assert "does not reconcile" in to_markdown(broken)


def test_quarantine_and_masking_are_counted_and_no_identifier_is_shown(page: str) -> None:
    assert re.search(r"BAD_JSON</code></th><td>The record is not valid JSON.</td><td[^>]*>11<", page)
    assert "Keys and tokens" in page
    assert "240 of 240 planted canaries were masked" in page
    assert not re.search(r"\bq\d+\b", page.partition("<script")[0])


def test_checks_show_value_and_word_and_the_worst_state_is_the_chip(page: str) -> None:
    assert "p 0.41, at least 0.001 passes &middot; p 0.41 over 3 epochs." in page
    assert "10 checks passed" in page
    bad = to_html(build(factory.inputs(suspect=("balance",))))
    assert "2 of 10 checks suspect" in bad
    assert "first prompt length: Largest gap 0.04 SD." in bad
