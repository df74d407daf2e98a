"""The error table: every example, the prefilter, commands, and text that only looks like an error."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.taxonomy import CATEGORY_LAYERS
from evalpipe.signals import calls, causes, commands, errors, rulefiles
from evalpipe_tests.signals.build import Talk, frames

EXAMPLES = [(rule, example) for rule in errors.table().rules for example in rule.examples]


def as_call(example: dict[str, Any]) -> errors.Call:
    return errors.Call(
        calls.tool_class(example["tool"]), example.get("command", ""), example["output"], example.get("exit"),
        example.get("flagged", False), example.get("known"),
    )  # fmt: skip


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda v: getattr(v, "id", ""))
def test_examples_of_the_table(rule: errors.Rule, example: dict[str, Any]) -> None:
    (verdict,) = errors.classify_all([as_call(example)])
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
    (verdict,) = errors.classify_all([errors.Call(tool, command, output, code, flagged, known)])
    assert 0 <= verdict.start <= verdict.end <= len(output)


def test_evidence_at_the_end_of_a_long_output_is_placed_there() -> None:
    output = "line\n" * 5000 + "bash: foo: command not found"
    (verdict,) = errors.classify_all([errors.Call("shell", "foo", output, 127, is_flagged=False)])
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
        ("bash -lc 'cd x && pytest -q | tail'", ("cd", "pytest", "tail"), "last_of_chain"),
        ("sudo -u app docker compose exec -T web bundle exec rspec", ("rspec",), "program"),
        ("kubectl exec -it pod-1 -n x -- sh -c 'grep a b'", ("grep",), "program"),
        ("ssh -p 22 host 'make test'", ("make test",), "program"),
        ("for f in *.py; do python $f; done", ("python",), "last_of_chain"),
        ("diff <(sort a | uniq) <(sort b)", ("diff",), "program"),
        ("x=$(grep -c a b | head -1); echo $x", ("echo",), "program"),
        (".\\gradlew.bat test", ("gradlew",), "program"),
        ("# look first\nls -la \\\n  src", ("ls",), "program"),
        ("uv run --with x python -m pytest", ("pytest",), "program"),
        ("env A=1 B=2 npx -y vitest run", ("vitest",), "program"),
        ("make -C lib test", ("make test",), "program"),
    ],
)
def test_commands(command: str, programs: tuple[str, ...], scope: str) -> None:
    line = commands.parse(command)
    assert (line.programs, line.scope) == (programs, scope)


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("diff a b | head; exit ${PIPESTATUS[0]}", "diff"),
        ("grep x f; exit $?", "grep"),
        ("ls | grep x", "grep"),
        ("cat a.txt", "cat"),
    ],
)
def test_an_exit_code_is_that_of_the_last_program(command: str, last: str) -> None:
    assert commands.parse(command).last == last


def test_arguments_of_a_program_stand_behind_its_name() -> None:
    segments = commands.parse("cd /a && /usr/bin/git -C x diff --stat A.py | HEAD -3").segments
    assert [(s.operator, s.text) for s in segments] == [
        ("", "cd /a"), ("&&", "git diff -c x --stat a.py"), ("|", "head -3"),
    ]  # fmt: skip


CAUSES = [(row, example) for row in (*causes.causes().texts, *causes.causes().exits, *causes.causes().loose)
          for example in row.examples]  # fmt: skip


@pytest.mark.parametrize(("row", "example"), CAUSES, ids=lambda v: getattr(v, "id", ""))
def test_examples_of_the_causes(row: causes.Cause, example: dict[str, Any]) -> None:
    category, words = causes.cause(example["text"].lower(), example.get("code"), example.get("last", ""))
    assert category == row.category
    assert words is None or words in example["text"].lower()


def test_the_causes_are_well_formed() -> None:
    rows = [row for name in ("causes_families.toml", "causes.toml") for row in rulefiles.load(name)["cause"]]
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["category"] for row in rows} <= CATEGORY_LAYERS.keys()
    assert all(row["examples"] and ("any" in row) != ("codes" in row) for row in rows)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        # What was printed before may show anything; the exception and the last lines speak.
        ("permission denied is a common error\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\ndone", "runtime_exception"),
        ("cat: x: No such file or directory\n" + "row\n" * 20 + "fatal: Authentication failed for 'y'", "auth"),
        ("Error: boom\n    at f (a.js:1:2)\nCaused by: Error: connect ECONNREFUSED 127.0.0.1:1", "network"),
        ("Traceback (most recent call last):\n  File \"a\"\nValueError: bad\n\nTraceback (most recent call last):\n  File \"b\"\nFileNotFoundError: x", "path_not_found"),
        ("nothing that is known", "runtime_exception"),
    ],
)  # fmt: skip
def test_the_line_that_ended_the_program_speaks_first(text: str, category: str) -> None:
    assert causes.cause(text.lower(), 1)[0] == category


@pytest.mark.parametrize("row", rulefiles.load("tools.toml")["exit_line"], ids=lambda r: r["id"])
def test_exit_codes_in_the_text_of_a_result(row: dict[str, Any]) -> None:
    for text in row["match"]:
        talk = Talk().user("go").tool("shell", text, command="x")
        talk.tool("shell", text, command="x", exit_code=5).tool("Read", text)
        codes = calls.tool_calls(*frames(talk))["exit_code"].to_list()
        assert codes[0] in (1, 2)
        assert codes[1:] == [5, None], "the log's own code counts, and a file may show anything"


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
