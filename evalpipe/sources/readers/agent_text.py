"""Tool calls that an agent writes into its message text, because its model gets no tools.

Belongs here: the three notations that harnesses use. Does not belong here: calls that a log holds
apart from the text. The text stays as it is; the calls are found beside it.
"""

from __future__ import annotations

import re

import orjson

from evalpipe.sources.readers.base import json_text

#: (name, arguments as JSON text)
Call = tuple[str, str | None]

_FUNCTION = re.compile(r"<function=([\w.-]{1,100})>(.*?)(?:</function>|\Z)", re.S)
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,100})>(.*?)(?:</parameter>|\Z)", re.S)
_TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)
_CALL_END = re.compile(r"\}\s*</tool_call>")
_REJECTED = "Previous response had parsing errors"
_EXIT_CODE = re.compile(r"\[The command completed with exit code (-?\d{1,9})\.\]")


def calls_in(text: str, answer: str = "") -> list[Call]:
    """Calls in ``<function=…>``, ``<tool_call>{…}</tool_call>`` or Terminus' JSON with ``commands``.

    Args:
        text: What the agent wrote.
        answer: What it was answered; if the harness could not read the text, nothing was called.
    """
    if answer.startswith(_REJECTED):
        return []
    if "<function=" in text:
        return [
            (match[1], json_text({p[1]: p[2].strip() for p in _PARAMETER.finditer(match[2])}))
            for match in _FUNCTION.finditer(text)
        ]
    if "<tool_call>" in text:
        # Behind the last call that ends none does, and it would be sought from every beginning.
        n_ended = max((match.end() for match in _CALL_END.finditer(text)), default=0)
        return [call for match in _TOOL_CALL.finditer(text, 0, n_ended) if (call := _named(match[1]))]
    if '"commands"' in text:
        return _commands(text)
    return []


def exit_code_in(output: str) -> int | None:
    """The exit code that OpenHands writes at the end of a command's output."""
    found = _EXIT_CODE.search(output[-500:])
    return int(found[1]) if found else None


def _named(text: str) -> Call | None:
    value = _parsed(text)
    if type(value) is not dict or type(value.get("name")) is not str:
        return None
    return value["name"], json_text(value.get("arguments"))


def _commands(text: str) -> list[Call]:
    start, end = text.find("{"), text.rfind("}")
    value = _parsed(text[start : end + 1]) if start >= 0 else None
    commands = value.get("commands") if type(value) is dict else None
    found = [c for c in commands if type(c) is dict] if type(commands) is list else []
    calls: list[Call] = [("bash_command", json_text(command)) for command in found if "keystrokes" in command]
    if type(value) is dict and value.get("task_complete") is True:
        calls.append(("mark_task_complete", "{}"))
    return calls


def _parsed(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
