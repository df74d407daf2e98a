"""Ids that a server gives again, as local models and proxies do: none of the calls may be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalpipe_tests.sources.bench_logs import read
from evalpipe_tests.sources.helpers import Claude, Read, call, result, text, write
from evalpipe_tests.sources.test_codex import Codex

USAGE = {"input_tokens": 100, "output_tokens": 1}


def test_claude_responses_without_an_id_are_responses_of_their_own(tmp_path: Path) -> None:
    c = Claude()

    def agent(*blocks: dict[str, Any]) -> dict[str, Any]:
        line = c.agent(*blocks, usage=USAGE)
        line["message"]["id"] = ""
        return line

    lines = [
        c.user("go"),
        agent(text("I look.")),
        agent(call("call_0", command="ls")),  # the same response: nothing came between
        c.user([result("call_0", "one")]),
        agent(call("call_0", command="pwd")),
        c.user([result("call_0", "two")]),
        agent(text("done")),
    ]
    found = Read(write(tmp_path, *lines))
    rows = found.steps.select("kind", "text", "arguments", "output").rows()
    assert rows == [
        ("user", "go", None, None),
        ("agent", "I look.", None, None),
        ("tool", None, '{"command":"ls"}', "one"),
        ("agent", None, None, None),
        ("tool", None, '{"command":"pwd"}', "two"),
        ("agent", "done", None, None),
    ]
    assert found.session["input_tokens"] == 300
    assert found.steps["step_id"].is_unique().all()


def test_a_claude_call_that_is_written_again_is_no_new_call(tmp_path: Path) -> None:
    c = Claude()
    lines = [c.user("go"), c.agent(call("k1", command="ls"), message_id="m"), c.user([result("k1", "one")])]
    again = c.agent(call("k1", command="ls"), text("."), message_id="m")
    assert Read(write(tmp_path, *lines, again)).session["n_tool_calls"] == 1


def test_codex_calls_that_bear_the_id_of_an_answered_one(tmp_path: Path) -> None:
    c = Codex()
    lines = [c.meta(), c.says("user", "go")]
    for command in ("ls", "pwd"):
        lines.append(c.item("function_call", name="shell", arguments=command, call_id="call_0"))
        lines.append(c.item("function_call_output", call_id="call_0", output=f"of {command}"))
    found = Read(write(tmp_path, *lines, *lines[-2:]))
    assert found.steps.filter(kind="tool").select("arguments", "output").rows() == [("ls", "of ls"), ("pwd", "of pwd")]
    assert found.file()["rows_noise"] == 2  # the last call and its result, written again


def test_calls_of_one_message_that_share_an_id_are_answered_in_order(tmp_path: Path) -> None:
    def asked(*names: str) -> dict[str, Any]:
        calls = [{"id": "call_0", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def answered(output: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": "call_0", "content": output}

    messages = [{"role": "user", "content": "q"}, asked("a"), answered("of a"), asked("b", "c", "d")]
    found = read(tmp_path, {"messages": [*messages, answered("of b"), answered("of c")]})
    assert found.rows("name", "output", "error", kind="tool") == [
        ("a", "of a", None), ("b", "of b", None), ("c", "of c", None), ("d", None, "no_result"),
    ]  # fmt: skip
