"""Rules as data: what is refused, and what each measure says on rows counted by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import empty
from evalpipe.contracts.tables import TABLES
from evalpipe.quality import Rule, load_rules, profile
from evalpipe.quality.rules import MEASURES

GOOD = 'measure = "null_share", of = "user_id", high = 0.5, severity = "warn", why = "w"'


def load(tmp_path: Path, spec: str, table: str = "masked.sessions") -> Rule:
    (tmp_path / "mine.toml").write_text(f'["{table}"]\nc = {{ {spec} }}\n')
    return load_rules(tmp_path)[0]


def test_a_rule_is_read_whole(tmp_path: Path) -> None:
    rule = load(
        tmp_path,
        'measure = "share", of = "is_dated", equal = [true], weight = "n_turns", where = { source = ["a", "b"] }, '
        'low = 0.5, high = 1, severity = "error", why = "Because."',
    )
    expected = Rule(
        table="masked.sessions",
        column="c",
        measure="share",
        severity="error",
        why="Because.",
        of=("is_dated",),
        weight="n_turns",
        equal=(True,),
        where=(("source", ("a", "b")),),
        low=0.5,
        high=1,
    )
    assert rule == expected
    assert rule.bounds == "at least 0.5 and at most 1"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (GOOD.replace("null_share", "mean"), "measure is none of"),
        (GOOD.replace('of = "user_id", ', ""), "of is missing"),
        (GOOD.replace('why = "w"', 'why = ""'), "why is missing"),
        (GOOD.replace('"warn"', '"info"'), "severity is none of"),
        (GOOD.replace("high = 0.5, ", ""), "low or high is missing"),
        (GOOD.replace("high = 0.5", "low = 2, high = 1"), "low is above high"),
        (GOOD.replace("0.5", "true"), "are numbers"),
        (GOOD.replace("0.5", '"1"'), "are numbers"),
        (GOOD.replace("user_id", "nobody"), "has no column nobody"),
        (GOOD + ', over = "n_turns"', "over is not a key of a null_share rule"),
        (GOOD + ", where = { nobody = [1] }", "has no column nobody"),
        (GOOD + ', where = { source = "a" }', "where.source is a list"),
        (GOOD + ", where = { source = [] }", "where.source is a list"),
        (GOOD.replace("null_share", "share"), "equal is missing"),
        (GOOD.replace("null_share", "share") + ', equal = "x"', "equal is a list"),
    ],
)
def test_a_bad_rule_names_its_place(tmp_path: Path, spec: str, message: str) -> None:
    with pytest.raises(EvalpipeError) as caught:
        load(tmp_path, spec)
    assert caught.value.code == "CRITERIA_INVALID"
    assert caught.value.where == "quality/mine.toml: masked.sessions.c"
    assert message in caught.value.what


def test_files_that_cannot_be_rules(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'["masked.sessions"]\ntable = {{ {GOOD} }}\n')
    with pytest.raises(EvalpipeError, match="has a column table already"):
        load_rules(tmp_path)
    with pytest.raises(EvalpipeError, match="no table of that name"):
        load(tmp_path, GOOD, table="masked.nothing")
    (tmp_path / "mine.toml").write_text("a = ")
    with pytest.raises(EvalpipeError, match="not TOML"):
        load_rules(tmp_path)
    load(tmp_path, GOOD)
    (tmp_path / "other.toml").write_text((tmp_path / "mine.toml").read_text())
    with pytest.raises(EvalpipeError, match=r"other\.toml.*rule of that name"):
        load_rules(tmp_path)


def test_the_shipped_rules_can_all_be_computed_and_all_measures_are_used() -> None:
    rules = load_rules()
    for table in {rule.table for rule in rules}:
        row = profile(table, empty(TABLES[table]))
        assert row.columns == ["table", *(rule.column for rule in rules if rule.table == table)]
        assert row["table"].to_list() == [table]
    assert {rule.measure for rule in rules} == set(MEASURES)


def test_duplicates_are_of_the_key_unless_columns_are_named(tmp_path: Path) -> None:
    assert load(tmp_path, 'measure = "duplicate_share", high = 0, severity = "warn", why = "w"').of == ("session_id",)
    named = load(
        tmp_path, 'measure = "duplicate_share", of = ["user_id", "source"], high = 0, severity = "warn", why = "w"'
    )
    assert named.of == ("user_id", "source")


FRAME = pl.DataFrame(
    {
        "k": ["a", "a", "b", None],
        "g": ["x", "x", "y", "y"],
        "n": [1, 2, None, 5],
        "d": [2, 2, 4, None],
        "w": [1, 1, 2, 4],
        "t": [True, None, False, True],
    }
)


@pytest.mark.parametrize(
    ("measure", "more", "all_rows", "where_y", "no_rows"),
    [
        ("rows", {}, 4, 2, 0),
        ("distinct", {"of": ("k",)}, 2, 1, 0),
        ("null_share", {"of": ("n",)}, 0.25, 0.5, None),
        ("duplicate_share", {"of": ("g",)}, 0.5, 0.5, None),
        ("duplicate_share", {"of": ("g", "k")}, 0.25, 0.0, None),
        ("share", {"of": ("t",), "equal": (True,)}, 2 / 3, 0.5, None),
        ("share", {"of": ("k",), "equal": ("a", "z")}, 2 / 3, 0.0, None),
        ("share", {"of": ("t",), "equal": (True,), "weight": "w"}, 5 / 7, 4 / 6, None),
        ("ratio", {"of": ("n",), "over": "d"}, 3 / 4, None, None),
        ("unaccounted", {"of": ("w",), "minus": ("d",)}, 1 + 1 + 2 + 4, 2 + 4, 0),
        ("min", {"of": ("n",)}, 1, 5, None),
        ("median", {"of": ("n",)}, 2, 5, None),
        ("max", {"of": ("d",)}, 4, 4, None),
    ],
)
def test_measures_by_hand(
    measure: str, more: dict[str, object], all_rows: float, where_y: float | None, no_rows: float | None
) -> None:
    for frame, where, expected in (
        (FRAME, (), all_rows),
        (FRAME, (("g", ("y",)),), where_y),
        (FRAME.clear(), (), no_rows),
        (FRAME, (("g", ("absent",)),), no_rows),
    ):
        rule = Rule("t", "c", measure, "warn", "w", where=where, low=0, **more)  # type: ignore[arg-type]
        found = profile("t", frame, [rule])
        assert found.schema == pl.Schema({"table": pl.String, "c": pl.Float64})
        assert found["c"].to_list() == [None if expected is None else pytest.approx(expected)], (where, measure)
        assert profile("t", frame.lazy(), [rule]).equals(found)


def test_a_table_without_rules_has_an_empty_profile() -> None:
    assert profile("signals.tasks", FRAME).rows() == [("signals.tasks",)]
    assert profile("signals.tasks", FRAME.clear()).rows() == [("signals.tasks",)]
