"""Task types in criteria: what may decide one, and what a change of one does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Timing
from evalpipe.contracts.tables import raw
from evalpipe.criteria import Criteria, diff
from evalpipe.criteria.model import TaskType

OUTCOMES = "# ---- outcomes"
SLICES = 'slices = ["scenario"]'
BUGFIX = """[[extraction.task_types]]
name = "bugfix"
text = ['\\bfix\\b']
examples = ["fix it"]
"""
DOCS = """[[extraction.task_types]]
name = "docs"
scenario = ["coding"]
text = ['\\breadme\\b']
examples = ["update the readme"]
"""

Edited = Callable[..., Criteria]


def declared(*blocks: str) -> tuple[str, str]:
    return OUTCOMES, "".join(blocks) + OUTCOMES


def test_types_are_read_in_order(edited: Edited) -> None:
    types = edited(declared(BUGFIX, DOCS)).extraction.task_types
    assert [kind.name for kind in types] == ["bugfix", "docs"]
    assert types[1] == TaskType("docs", text=(r"\breadme\b",), scenario=("coding",), examples=("update the readme",))
    assert edited().extraction.task_types == ()


@pytest.mark.parametrize(
    ("line", "key", "word"),
    [
        ('tools_used = ["Bash"]', "tools_used", "post-treatment"),
        ("n_tool_calls = 3", "n_tool_calls", "post-treatment"),
        ('end_status = ["completed"]', "end_status", "post-treatment"),
        ('output = ["error"]', "output", "post-treatment"),
        ('model = ["m-a"]', "model", "compared"),
        ('agent = ["acme"]', "agent", "compared"),
        ('txet = ["a"]', "txet", "'text'"),
        ("needs_workspace = 1", "needs_workspace", "true or false"),
        ('tools = "Bash"', "tools", "list of strings"),
    ],
)
def test_only_what_was_there_before_the_agent_acted_may_decide(edited: Edited, line: str, key: str, word: str) -> None:
    with pytest.raises(EvalpipeError) as error:
        edited(declared(BUGFIX + line + "\n"))
    assert error.value.code == "CRITERIA_INVALID"
    assert error.value.where.endswith(f": extraction.task_types[0].{key}")
    assert word in f"{error.value.what} {error.value.fix}"


def test_every_post_treatment_column_is_refused_with_its_reason(edited: Edited) -> None:
    for column in raw.SESSIONS:
        if column.timing is Timing.POST:
            with pytest.raises(EvalpipeError, match="post-treatment"):
                edited(declared(BUGFIX + f"{column.name} = 1\n"))


@pytest.mark.parametrize(
    ("block", "key", "word"),
    [
        ('[[extraction.task_types]]\nname = "all"\n', "extraction.task_types[0]", "no evidence"),
        ("[[extraction.task_types]]\ntools = ['a']\n", "extraction.task_types[0].name", "missing"),
        (BUGFIX.replace('examples = ["fix it"]\n', ""), "extraction.task_types[0].examples", "without an example"),
        (BUGFIX.replace('"bugfix"', '"bug fix"'), "extraction.task_types[0].name", "plain name"),
        (BUGFIX + BUGFIX, "extraction.task_types[1].name", "twice"),
        ("[[extraction.task_types]]\nname = 'a'\ntools = ['a']\nexamples = ['b']\n", "extraction.task_types[0].text",
         "no pattern"),
        ("[[extraction.task_types]]\nname = 'a'\ntools = ['a']\nunless = ['b']\n", "extraction.task_types[0].unless",
         "without 'text'"),
        ('[extraction.task_types]\nname = "a"\n', "extraction.task_types", "list of tables"),
    ],
)  # fmt: skip
def test_a_broken_type_names_the_key(edited: Edited, block: str, key: str, word: str) -> None:
    with pytest.raises(EvalpipeError) as error:
        edited(declared(block))
    assert error.value.where.endswith(f"edited.toml: {key}")
    assert word in f"{error.value.what} {error.value.fix}"


def test_a_slice_of_types_needs_types(edited: Edited) -> None:
    by_type = (SLICES, 'slices = ["scenario", "task_type"]')
    with pytest.raises(EvalpipeError, match="no task type is declared"):
        edited(by_type)
    assert edited(by_type, declared(BUGFIX)).estimand.slices == ("scenario", "task_type")


def test_a_changed_type_is_a_new_measurement_and_a_changed_example_is_not(edited: Edited) -> None:
    old = edited(declared(BUGFIX, DOCS))
    narrower = edited(declared(BUGFIX.replace(r"\bfix\b", r"\bfixes\b"), DOCS))
    turned = edited(declared(DOCS, BUGFIX))
    shown = edited(declared(BUGFIX.replace('"fix it"', '"fix that"'), DOCS))
    assert len({criteria.measurement for criteria in (old, narrower, turned, edited())}) == 4
    assert shown.measurement == old.measurement
    assert shown.hash != old.hash
    effects = {name: {c.path: c.effect for c in diff(old, new)} for name, new in
               (("narrower", narrower), ("turned", turned), ("shown", shown))}  # fmt: skip
    assert effects == {
        "narrower": {"extraction.task_types.bugfix.text": "breaks_series"},
        "turned": {"extraction.task_types.order": "breaks_series"},
        "shown": {"extraction.task_types.bugfix.examples": "none"},
    }
