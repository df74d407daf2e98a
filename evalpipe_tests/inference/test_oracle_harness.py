"""The comparison with reference results must be able to fail."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.inference import test_oracles
from evalpipe_tests.inference.oracles.case import Between, Case, Check, answer, cases, differences
from evalpipe_tests.inference.oracles.parameters import (
    level,
    relative_tolerance,
    stated_count,
    stated_level,
    stated_model,
    stated_shifts,
    stated_truth,
)


def check(
    expected: Any, tolerance: float | None = 0.01, source: str = "R", name: str = "x", kind: str = "01_none"
) -> Check:
    return Check(Case(Path(kind)), "expected_r", name, expected, tolerance, source)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1.005, 1.0),
        ({"a": [1, 2.0], "more": 9}, {"a": [1.0, 2]}),
        ((1.0, 2.0), [1.0, None]),
        (nan, None),
        ("ok", "ok"),
        (Between(0.5, 2.0), 1.0),
        (Between(1.005, 2.0), 1.0),
    ],
)
def test_what_agrees(found: Any, expected: Any) -> None:
    assert differences(found, check(expected)) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1.02, 1.0),
        (nan, 1.0),
        (None, 1.0),
        ({"a": 1.0}, {"a": 1.0, "b": 1.0}),
        ([1.0], [1.0, 1.0]),
        (1.0, {"a": 1.0}),
        ("pass", "fail"),
        (Between(1.02, 2.0), 1.0),
    ],
)
def test_what_does_not(found: Any, expected: Any) -> None:
    assert len(differences(found, check(expected))) == 1


def test_without_an_absolute_tolerance_the_source_decides() -> None:
    assert differences(5, check(5, None, "exact integers")) == []
    assert differences(5.0001, check(5, None, "exact integers")) != []
    assert differences(104.0, check(100.0, None, "compare with relative tolerance 5%")) == []
    assert differences(106.0, check(100.0, None, "compare with relative tolerance 5%")) != []
    assert relative_tolerance("relative tolerance 1e-8.") == 1e-8


def test_parameters_are_read_from_words() -> None:
    assert level("95") == stated_level("beta, 95%; rule") == stated_level("no level") == 0.05
    assert stated_level("score, 90 %") == 0.1
    assert stated_count("run with 1,500 user resamples", "resamples") == 1_500
    assert stated_shifts("mixture over delta={.5,1}") == (0.5, 1.0)
    assert stated_model("R lm(score~model+stratum+age, weights=w)") == ("score", "age")
    assert stated_truth("b", "a against human_success=1, b against human_success=0") is False
    with pytest.raises(LookupError):
        stated_count("no number", "resamples")


def test_an_unknown_check_or_case_fails_instead_of_being_passed_over(tmp_path: Path) -> None:
    case = tmp_path / "99_sessions"
    case.mkdir()
    checks = {"checks": {"never_heard_of": {"expected": 1, "tolerance_abs": 0, "source": "R"}}}
    (case / "expected_r.json").write_text(json.dumps(checks))
    (unknown,) = cases(tmp_path)[0].checks()
    with pytest.raises(LookupError, match="0 functions answer 99_sessions: never_heard_of"):
        answer(unknown)
    with pytest.raises(LookupError, match="0 functions"):
        answer(check(1, kind="98_no_such_case", name="observed"))


def test_every_check_of_the_folder_is_a_test_of_its_own() -> None:
    on_disk = sum(len(case.checks()) for case in cases())
    assert len(test_oracles.CHECKS) == on_disk
    assert len({(c.case.path, c.file, c.name) for c in test_oracles.CHECKS}) == on_disk
