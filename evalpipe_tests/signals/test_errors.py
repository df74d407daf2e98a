"""The error table: every example, the prefilter, commands, and text that only looks like an error."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.signals import CATEGORY_LAYERS
from evalpipe.signals import calls, commands, errors, rulefiles
from evalpipe_tests.signals.build import Talk, frames

EXAMPLES = [(rule, example) for rule in errors.table().rules for example in rule.examples]


def as_call(example: dict[str, Any]) -> errors.Call:
    return errors.Call(
        calls.tool_class(example["tool"]), example.get("command", ""), example["output"], example.get("exit"),
        example.get("flagged", False), example.get("known"),
    )  # fmt: skip


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda v: getattr(v, "id", ""))
def test_examples_of_the_table(rule: errors.Rule, example: dict[str, Any]) -> None:
    verdict = errors.classify(as_call(example))
    assert verdict.rule_id == rule.id
    assert example["output"][verdict.start : verdict.end] or rule.any is None or not example["output"].strip()


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda v: getattr(v, "id", ""))
def test_the_prefilter_lets_every_example_through(rule: errors.Rule, example: dict[str, Any]) -> None:
    more = {"command": example["command"]} if "command" in example else {"arguments": json.dumps({"file_path": "a"})}
    tools = ["Read"] if example.get("known") is False else None
    talk = Talk(tools=tools).user("go")
    talk.tool(
        example["tool"], example["output"], exit_code=example.get("exit"), is_error=example.get("flagged"), **more
    )
    found = calls.tool_calls(*frames(talk))
    assert found["status"].item() == rule.status
    if rule.status != "ok":
        assert found["rule_id"].item() == rule.id


def test_the_table_is_well_formed() -> None:
    rules = errors.table().rules
    assert len({rule.id for rule in rules}) == len(rules)
    assert [rule.step for rule in rules] == sorted(rule.step for rule in rules)
    for rule in rules:
        assert rule.examples, rule.id
        assert rule.category in {None, errors.BY_CAUSE, *CATEGORY_LAYERS}, rule.id
        assert (rule.status in errors.FAILURES) <= (rule.category is not None), rule.id


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["shell", "edit", "read", "other"]), st.text(max_size=60), st.text(max_size=200),
    st.none() | st.integers(-20, 300), st.booleans(), st.sampled_from([None, True, False]),
)  # fmt: skip
def test_some_row_holds_for_every_call(
    tool: str, command: str, output: str, code: int | None, flagged: bool, known: bool | None
) -> None:
    verdict = errors.classify(errors.Call(tool, command, output, code, flagged, known))
    assert 0 <= verdict.start <= verdict.end <= len(output)


def test_evidence_at_the_end_of_a_long_output_is_placed_there() -> None:
    output = "line\n" * 5000 + "bash: foo: command not found"
    verdict = errors.classify(errors.Call("shell", "foo", output, 127, is_flagged=False))
    assert output[verdict.start : verdict.end] == "command not found"


@pytest.mark.parametrize(
    ("command", "programs", "scope"),
    [
        ("ls -la", ("ls",), "program"),
        ("cd a && FOO=1 go test ./... ", ("cd", "go test"), "program"),
        ("pytest -q | tail -5", ("pytest", "tail"), "last_of_chain"),
        ("make; ls", ("make", "ls"), "last_of_chain"),
        ("rm x || true", ("rm", "true"), "masked"),
        ("set -o pipefail; make | tee log", ("set", "make", "tee"), "program"),
        ("git -C x diff | grep 'a|b;c'", ("git diff", "grep"), "last_of_chain"),
        ("timeout -k 1 60 npx jest", ("jest",), "program"),
        ("poetry run python -m pytest", ("pytest",), "program"),
        ("cat > a.py <<'EOF'\nimport os; os.x()\nEOF\npython a.py", ("cat", "python"), "last_of_chain"),
        ("npm run build", ("npm build",), "program"),
        ("", (), "program"),
    ],
)
def test_commands(command: str, programs: tuple[str, ...], scope: str) -> None:
    line = commands.parse(command)
    assert (line.programs, line.scope) == (programs, scope)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="abc '\"|&;<>EOF\n\\$(){}=-", max_size=80))
def test_any_command_line_can_be_cut(command: str) -> None:
    assert commands.parse(command).scope in {"program", "last_of_chain", "masked"}


@pytest.mark.parametrize("row", rulefiles.load("tools.toml")["class"], ids=lambda r: r["name"])
def test_examples_of_tool_classes(row: dict[str, Any]) -> None:
    assert [calls.tool_class(name) for name in row["match"]] == [row["name"]] * len(row["match"])
    assert row["name"] not in [calls.tool_class(name) for name in row["no_match"]]


@pytest.mark.parametrize("row", rulefiles.load("commands.toml")["command"], ids=lambda r: r["id"])
def test_examples_of_version_control(row: dict[str, Any]) -> None:
    def fires(command: str) -> bool:
        series = pl.Series([command])
        return bool(
            series.str.contains(rulefiles.to_rust(row["any"])).item()
            and not series.str.contains(rulefiles.to_rust(row["unless"])).item()
        )

    assert [c for c in row["match"] if not fires(c)] == []
    assert [c for c in row["no_match"] if fires(c)] == []


def test_commands_are_read_from_words_and_other_keys() -> None:
    talk = Talk().user("go")
    talk.tool("shell", arguments=json.dumps({"command": ["bash", "-lc", 'echo "a"\nls']}))
    talk.tool("exec_command", arguments=json.dumps({"cmd": "ls -a"}))
    talk.tool("Bash", arguments="not json")
    talk.tool("Bash", arguments=None)
    talk.tool("make_report", "boom", arguments=json.dumps({"command": "x"}), exit_code=2)
    found = calls.tool_calls(*frames(talk))
    assert found["command"].to_list() == ['echo "a"\nls', "ls -a", "not json", "", "x"]
    assert found["tool"].to_list() == ["shell"] * 5
    assert found["status"].to_list() == ["ok"] * 4 + ["error"]


def test_the_log_speaks_first() -> None:
    talk = Talk().user("go")
    for error in ("refused", "interrupted", "cascade", "no_result", "api_error", "tool_error", "timeout"):
        talk.tool("Bash", "FAIL", command="ls", error=error)
    found = calls.tool_calls(*frames(talk))
    assert found["status"].to_list() == [
        "refused",
        "interrupted",
        "cascade",
        "no_result",
        "no_result",
        "error",
        "error",
    ]
    assert found["category"].to_list()[-1] == "timeout"
    assert found["is_command"].to_list() == [False] * 5 + [True] * 2
