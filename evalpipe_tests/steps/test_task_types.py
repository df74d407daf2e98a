"""Task types from a criteria file to rows of the analysis, and on their own examples."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from evalpipe import signals
from evalpipe.analysis import score
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria
from evalpipe.locations import data_dir
from evalpipe.signals.ledger import empty_ledger
from evalpipe.steps.context import load_criteria
from evalpipe_tests.signals.build import PRICES, Talk, frames, later

DAY = date(2026, 1, 5)
OUTCOMES = "# ---- outcomes"
TYPES = r"""[[extraction.task_types]]
name = "bugfix"
scenario = ["coding"]
text = ['\bfix\b', 'código quebrado']
unless = ['\bprefix\b']
examples = ["Fix it", "CÓDIGO QUEBRADO"]
counterexamples = ["fix the prefix"]

[[extraction.task_types]]
name = "returns"
tools = ['^return_']

[[extraction.task_types]]
name = "here"
needs_workspace = true

"""


def written(folder: Path, types: str = TYPES) -> str:
    text = (data_dir() / "criteria" / "default.toml").read_text(encoding="utf-8")
    text = text.replace(OUTCOMES, types + OUTCOMES, 1).replace(
        'slices = ["scenario"]', 'slices = ["scenario", "task_type"]'
    )
    path = folder / "mine.toml"
    path.write_text(text.replace('name = "default"', 'name = "mine"'), encoding="utf-8")
    return str(path)


@pytest.fixture
def mine(tmp_path: Path) -> Criteria:
    return load_criteria(written(tmp_path))


def told(criteria: Criteria, *talks: Talk) -> list[str | None]:
    part = signals.extract_part(*frames(*talks), criteria.extraction)
    return part.session_features["task_type"].to_list()


def test_the_first_type_that_holds_is_the_sessions(mine: Criteria) -> None:
    bare = {"workspace": None}
    assert told(
        mine,
        Talk("a", **bare).user("please FIX the api: código quebrado"),
        Talk("b", **bare).user("fix the prefix in main.py"),
        Talk("c", **bare, tools=["Get_Order", "Return_Item"]).user("fix my order"),
        Talk("d", **bare, tools=["no_return_item"]).user("hello"),
        Talk("e").user("hello"),
        Talk("f", **bare),
    ) == ["bugfix", None, "returns", None, "here", None]


def test_what_the_agent_did_changes_no_type(mine: Criteria) -> None:
    quiet = Talk("a", workspace=None).user("hello")
    busy = Talk("a", workspace=None).user("hello").tool("return_item").agent("I fix it").user("fix the bug in a.py")
    assert told(mine, quiet) == told(mine, busy) == [None]


def test_types_become_slices_of_the_analysis(mine: Criteria) -> None:
    talks = [
        Talk(f"s{n:03d}", user_id=f"u{n}", model=f"m-{n % 2}")
        .user("fix the bug in a.py" if n % 4 < 2 else "add a test to b.py")
        .agent("Done.")
        .user("It works now, thank you so much" if n % 3 else "it still does not work")
        for n in range(160)
    ]
    sessions, steps = frames(*talks)
    part = signals.extract_part(sessions, steps, mine.extraction)
    outcomes = signals.session_outcomes(
        DAY, sessions, part.session_features, part.hard, part.semantic, later(), mine,
        is_settled=True, usage=part.session_usage, prices=PRICES, ledger=empty_ledger(),
    )  # fmt: skip
    found = score(outcomes, mine, as_of=DAY, window="all", window_start=DAY, window_end=DAY)
    rows = found["analysis.net_improvement"].filter(metric="positive_outcome")
    assert {"all", "scenario=coding", "task_type=bugfix", "task_type=here"} <= set(rows["slice"])
    bugfix = rows.filter(slice="task_type=bugfix")
    assert bugfix["n_sessions"].sum() == 80
    assert bugfix["estimate"].null_count() == 0


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('examples = ["Fix it"', 'examples = ["Mend it"', "task_types[0].examples"),
        ('counterexamples = ["fix the prefix"]', 'counterexamples = ["fix"]', "task_types[0].counterexamples"),
        (r"\bfix\b", r"\bFix\b", "task_types[0].examples"),
        (r"\bfix\b", r"(fix", "task_types[0].text"),
        (r"\bprefix\b", r"(?<!x)fix", "task_types[0].unless"),
        ("^return_", "[return", "task_types[1].tools"),
    ],
)
def test_a_pattern_is_tried_when_criteria_are_read(tmp_path: Path, old: str, new: str, key: str) -> None:
    path = written(tmp_path, TYPES.replace(old, new, 1))
    with pytest.raises(EvalpipeError) as error:
        load_criteria(path)
    assert error.value.code == "CRITERIA_INVALID"
    assert error.value.where.endswith(f": extraction.{key}")


def test_criteria_without_types_give_none() -> None:
    assert told(load_criteria("default"), Talk().user("fix the bug")) == [None]
