"""The two judges: bounds by hand, and agreement of the plain one with Great Expectations."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys

import polars as pl
import pytest

from evalpipe.quality import Rule, judge, judge_with_gx, load_rules, profile

# Great Expectations 1.24 imports modules of the standard library that Python 3.11 deprecates.
pytestmark = pytest.mark.filterwarnings(r"ignore:module 'sre_\w+' is deprecated:DeprecationWarning")


def rule(column: str, low: float | None = None, high: float | None = None, severity: str = "warn") -> Rule:
    return Rule("t", column, "rows", severity, "why", low=low, high=high)


def row(**values: float | None) -> pl.DataFrame:
    numbers = {name: pl.Series([value], dtype=pl.Float64) for name, value in values.items()}
    return pl.DataFrame({"table": ["t"], **numbers})


@pytest.mark.parametrize(
    ("value", "low", "high", "passed"),
    [
        (0.5, 0, 1, True),
        (0.0, 0, 1, True),
        (1.0, 0, 1, True),
        (1.0000001, 0, 1, False),
        (-0.1, 0, None, False),
        (5.0, 0, None, True),
        (5.0, None, 4, False),
        (3.0, 3, 3, True),
    ],
)
def test_bounds_are_inclusive(value: float, low: float | None, high: float | None, passed: bool) -> None:
    (found,) = judge(row(a=value), [rule("a", low, high, "error")])
    assert (found.passed, found.could_run, found.is_broken, found.is_blocking) == (passed, True, not passed, not passed)
    assert (found.table, found.column, found.value, found.low, found.high, found.why) == (
        "t",
        "a",
        value,
        low,
        high,
        "why",
    )


def test_a_rule_that_could_not_run_is_not_broken_and_did_not_pass() -> None:
    rules = [rule("null", 0, 1, "error"), rule("absent", 0, 1, "error")]
    for verdicts in (judge(row(null=None), rules), judge_with_gx(row(null=None), rules)):
        assert [(v.value, v.passed, v.could_run, v.is_broken, v.is_blocking) for v in verdicts] == [
            (None, False, False, False, False)
        ] * 2


def test_a_warning_does_not_block() -> None:
    (found,) = judge(row(a=2), [rule("a", high=1)])
    assert found.is_broken
    assert not found.is_blocking


def test_both_judges_agree_on_many_profiles() -> None:
    draw = random.Random(7)
    for _ in range(25):
        count = draw.randint(1, 8)
        rules, values = [], {}
        for n in range(count):
            low, high = sorted(draw.choice([-1.0, 0.0, 0.25, 1.0, 7.0]) for _ in "ab")
            kind = draw.randint(0, 3)
            rules.append(rule(f"c{n}", None if kind == 0 else low, None if kind == 1 else high))
            if draw.random() < 0.9:
                values[f"c{n}"] = draw.choice([None, low, high, 0.0, 0.5, -3.0, 1e9])
        others = [Rule("another", "c0", "rows", "error", "why", low=1e12)]
        found = judge(row(**values), [*others, *rules])
        assert len(found) == count
        assert judge_with_gx(row(**values), [*others, *rules]) == found


def test_both_judges_agree_on_shipped_rules() -> None:
    frame = pl.DataFrame(
        {"source": ["a", "a"], "n_bytes": [1, 9], "rows_read": [5, 8], "rows_kept": [4, 3], "rows_noise": [1, 1]}
    ).with_columns(rows_quarantined=pl.Series([0, 2]))
    rules = load_rules()
    found = judge(profile("masked.files", frame), rules)
    assert [(v.column, v.value, v.passed) for v in found] == [
        ("unaccounted_rows", 2.0, False),
        ("quarantined_share", pytest.approx(2 / 13), False),
        ("unknown_share", 0.0, True),
    ]
    assert [v.is_blocking for v in found] == [True, False, False]
    assert judge_with_gx(profile("masked.files", frame), rules) == found


def test_great_expectations_reaches_no_network_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    assert judge_with_gx(row(a=1), [rule("a", 0, 1)])[0].passed
    assert os.listdir(tmp_path) == []
    assert capsys.readouterr() == ("", "")
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"


def test_importing_quality_loads_neither_great_expectations_nor_pandas() -> None:
    code = "import sys, evalpipe.quality; sys.exit(bool({'great_expectations', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
