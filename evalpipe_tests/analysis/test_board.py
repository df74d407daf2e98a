"""Published boards under declared views."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from evalpipe.analysis.board import Board, board
from evalpipe.cli import app
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.views import load_view, views

SIGNALS = ("task_outcome_explicit", "praise_complaint", "steerability", "bash_recovery_steps", "tool_hallucination")
HEADER = ["model", "net_improvement", "net_improvement_ci", *SIGNALS]
FIELD = Path(__file__).resolve().parents[3] / "shared" / "research" / "field.md"

#: Four invented models: two leaders that nobody can tell apart, one behind them, one far behind.
ROWS = [
    ["low", "-10.02", "1.0", "-10.1", "-15.0", "-9.0", "-12.0", "+4"],
    ["first", "+8.00", "2.0", "+10", "+20", "+6", "+2", "-2"],
    ["second", "+7.0", "2.0", "+9", "+17", "+7", "+1", "-1"],
    ["third", "+1.00", "±1.0", "+1 %", "\N{MINUS SIGN}1", "+2", "+2", "-1"],
]


def table(*rows: list[str], header: list[str] = HEADER) -> pl.DataFrame:
    return pl.DataFrame([dict(zip(header, row, strict=True)) for row in rows])


def test_the_view_gives_the_headline_and_says_which_neighbours_differ() -> None:
    found = board(table(*ROWS), load_view("mean_of_five"))
    assert found.is_reproduced is True
    assert found.largest_gap == pytest.approx(0.0, abs=1e-9)
    assert found.rows["model"].to_list() == ["first", "second", "third", "low"]
    assert found.rows["is_below"].to_list() == [None, False, True, True]
    assert (found.n_adjacent, found.n_told_alone, found.n_told_together) == (3, 2, 2)
    assert found.rows.select("rank_lo", "rank_hi").rows() == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert found.rows["letters"].to_list() == ["a", "a", "b", "c"]
    assert found.interval_of == "published"


def test_rounding_is_told_from_another_view() -> None:
    rounded = [["first", "+8.01", *ROWS[1][2:]], *ROWS[2:]]
    assert board(table(*rounded), load_view("mean_of_five")).is_reproduced is True
    other = [["first", "+8.02", *ROWS[1][2:]], *ROWS[2:]]
    found = board(table(*other), load_view("mean_of_five"))
    assert found.is_reproduced is False
    assert found.largest_gap == pytest.approx(0.02)
    # The published intervals are not those of this view, and signals have none: nothing is ranked.
    assert found.interval_of == ""
    assert found.rows["rank_lo"].null_count() == 3
    assert found.n_adjacent == 0


def test_weights_of_ones_own_rest_on_the_intervals_of_the_signals(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'name = "own"\nversion = "1"\ndescription = "x"\nheadline = "net"\n[weights]\na = 0.5\nb = -0.5\n'
    )
    header = ["model", "a", "b", "a_lo", "a_hi", "b_ci"]
    rows = [["x", "4", "-4", "1", "7", "4"], ["y", "0", "0", "-3", "3", "4"], ["z", "", "0", "", "", "4"]]
    found = board(table(*rows, header=header), load_view(str(tmp_path / "own.toml")))
    assert found.is_reproduced is None
    assert found.interval_of == "signals"
    # Half widths 3 and 4 at weight a half: 2.5.
    assert found.rows.select("view", "lo", "hi").rows()[:2] == [(4.0, 1.5, 6.5), (0.0, -2.5, 2.5)]
    assert found.rows.row(2)[1:] == ("z", None, None, None, None, None, None, None, None, None, None)
    assert (found.n_adjacent, found.n_told_alone) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "header", "where"),
    [
        (ROWS[:1] + ROWS[:1], HEADER, "model, row 2"),
        ([["", *ROWS[0][1:]]], HEADER, "model, row 1"),
        ([[*ROWS[0][:3], "much", *ROWS[0][4:]]], HEADER, "task_outcome_explicit, row 1"),
        ([[*ROWS[0][:3], "nan", *ROWS[0][4:]]], HEADER, "task_outcome_explicit, row 1"),
        ([[ROWS[0][0], "1", "-1", *ROWS[0][3:]]], HEADER, ""),
        ([ROWS[0][:-1]], HEADER[:-1], "tool_hallucination"),
        ([ROWS[0][1:]], HEADER[1:], "model"),
    ],
)
def test_a_board_that_cannot_be_read_names_the_place(rows: list[list[str]], header: list[str], where: str) -> None:
    if not where:
        rows, where = [["m", "0.2", "-1", "1", "0", "0", "0", "0"]], "net_improvement, row 1"
    with pytest.raises(EvalpipeError, match="BOARD_INVALID") as caught:
        board(table(*rows, header=header), load_view("mean_of_five"))
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[weights]\na = 1\n", "description"),
        ('name="a"\nversion="1"\ndescription="d"\nheadline="h"\nmore=1\n[weights]\na=1\n', "more"),
        ('name="a"\nversion=1\ndescription="d"\nheadline="h"\n[weights]\na=1\n', "version"),
        ('name="a"\nversion="1"\ndescription="d"\nheadline="h"\n[weights]\na=nan\n', "weights.a"),
        ('name="a"\nversion="1"\ndescription="d"\nheadline="h"\n[weights]\na=0\n', "weights.a"),
        ('name="a"\nversion="1"\ndescription="d"\nheadline="h"\n[weights]\n', "weights"),
        ("name = [", ""),
    ],
)
def test_a_view_that_breaks_a_rule_names_the_key(text: str, key: str, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(text)
    with pytest.raises(EvalpipeError, match="VIEW_INVALID") as caught:
        load_view(str(tmp_path / "v.toml"))
    assert caught.value.where.endswith(f": {key}" if key else "v.toml")
    with pytest.raises(EvalpipeError, match="mean_of_five"):
        load_view("nope")
    assert all(sum(map(abs, load_view(name).weights.values())) == pytest.approx(1.0) for name in views())


def test_the_verb_says_it_in_words_and_as_data(tmp_path: Path) -> None:
    table(*ROWS).write_csv(tmp_path / "board.csv")
    told = CliRunner().invoke(app, ["board", str(tmp_path / "board.csv")])
    assert told.exit_code == 0, told.output
    assert "gives the published headline of every row" in told.output
    assert "Of 3 pairs of neighbours 2 can be told apart" in told.output
    data = json.loads(CliRunner().invoke(app, ["board", str(tmp_path / "board.csv"), "--json"]).output)
    assert (data["is_reproduced"], data["told_apart_together"], len(data["rows"])) == (True, 2, 4)
    assert CliRunner().invoke(app, ["board", str(tmp_path / "none.csv")]).exit_code == 2


def published() -> pl.DataFrame:
    """The rows that the notes on the field quote, with the names of the data set."""
    if not FIELD.exists():
        pytest.skip("no notes on published boards beside the repository")
    rows = []
    for line in FIELD.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        found = re.fullmatch(r"([+-][\d.]+) ±([\d.]+)", cells[2]) if len(cells) == 9 else None
        if found and cells[0].isdigit():
            rows.append([cells[1], *found.groups(), *cells[3:8]])
    return table(*rows)


def test_a_real_board_is_the_mean_of_its_signals_and_mostly_ties() -> None:
    found: Board = board(published(), load_view("mean_of_five"))
    assert found.rows.height == 28
    assert found.is_reproduced is True
    assert found.largest_gap < 0.01
    assert (found.n_adjacent, found.n_told_alone) == (27, 4)
    assert found.n_told_together <= 4
