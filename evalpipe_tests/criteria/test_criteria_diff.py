from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.criteria import Change, Criteria, diff
from evalpipe.criteria.load import build
from evalpipe.criteria.validate import problems
from evalpipe.locations import data_dir

DEFAULT = (data_dir() / "criteria" / "default.toml").read_text(encoding="utf-8")


def test_equal_criteria_do_not_differ(edited: Callable[..., Criteria]) -> None:
    assert diff(edited(), edited()) == []


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ('"praise" = 0.5', '"praise" = 0.4', Change("outcomes.weights.praise", 0.5, 0.4, "breaks_series")),
        ("snippet_chars = 160", "snippet_chars = 80", Change("extraction.snippet_chars", 160, 80, "breaks_series")),
        ('"traffic"', '"equal"', Change("estimand.population", "traffic", "equal", "breaks_series")),
        ('ruleset = "default"', 'ruleset = "own"', Change("masking.ruleset", "default", "own", "bridge")),
        ("margin = 0.05", "margin = 0.01", Change("gates.outcome_no_worse.margin", 0.05, 0.01, "none")),
        ('version = "1.2"', 'version = "1.3"', Change("version", "1.2", "1.3", "none")),
    ],
)  # fmt: skip
def test_each_change_has_its_effect(edited: Callable[..., Criteria], old: str, new: str, change: Change) -> None:
    assert diff(edited(), edited((old, new))) == [change]


def test_changed_extractors_break_the_series(edited: Callable[..., Criteria]) -> None:
    assert diff(edited(extractors="a"), edited(extractors="b")) == [Change("extractors", "a", "b", "breaks_series")]


def test_a_gate_that_comes_or_goes_is_named(edited: Callable[..., Criteria]) -> None:
    renamed = edited(('name = "outcome_no_worse"', 'name = "outcome_holds"'))
    paths = {(change.path, change.old is None) for change in diff(edited(), renamed)}
    assert ("gates.outcome_holds.margin", True) in paths
    assert ("gates.outcome_no_worse.margin", False) in paths
    assert all(change.effect == "none" for change in diff(edited(), renamed))


def test_what_breaks_a_series_comes_first(edited: Callable[..., Criteria]) -> None:
    changed = edited(
        ('version = "1.2"', 'version = "2"'),
        ('ruleset = "default"', 'ruleset = "own"'),
        ("alpha = 0.05", "alpha = 0.1"),
    )
    assert [change.effect for change in diff(edited(), changed)] == ["breaks_series", "bridge", "none"]


EDITS: list[tuple[str, str, Any]] = [
    ("masking", "withhold_over_bytes", 5),
    ("extraction", "min_confidence", 0.5),
    ("extraction", "languages", ["en"]),
    ("outcomes", "count_cap", 2),
    ("outcomes", "compare_by", ["model"]),
    ("estimand", "reference", "model:a"),
    ("estimand", "slices", []),
    ("", "description", "another"),
    ("", "version", "9"),
    ("", "gates", []),
]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(range(len(EDITS)))))
def test_a_series_breaks_exactly_when_the_measurement_differs(chosen: set[int]) -> None:
    data = tomllib.loads(DEFAULT)
    for index in chosen:
        section, key, value = EDITS[index]
        (data[section] if section else data)[key] = value
    assert problems(data) == []
    old, new = build(tomllib.loads(DEFAULT), extractors="x"), build(data, extractors="x")
    changes = diff(old, new)
    assert any(c.effect == "breaks_series" for c in changes) == (old.measurement != new.measurement)
    assert bool(changes) == (old.hash != new.hash) == bool(chosen)
    assert {c.path for c in changes} == {c.path for c in diff(new, old)}
