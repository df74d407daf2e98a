"""Messages of mini-SWE-agent to steps.

Belongs here: commands and their results, in both ways to write them. Does not belong here: the run
(``mini_swe_agent.py``).

The agent gives commands either as calls, or as one fenced block in its text. The result is the next
message, of role ``tool`` or ``user``, and begins with the exit code in a tag. Other ``user`` messages
after the task are the harness's: that the format was wrong, that a command ran out of time; or those of
a person who watches, in the harness's frame.
"""

from __future__ import annotations

import re

from evalpipe.sources.readers.base import Record, block_text, json_text
from evalpipe.sources.readers.values import (
    add_counts,
    id_of,
    object_of,
    objects_of,
    openai_counts,
    text_digest,
    text_of,
)
from evalpipe.sources.session import (
    END,
    ERROR,
    EXIT_CODE,
    OUTPUT,
    TEXT,
    Row,
    Session,
    agent_row,
    exit_code,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

#: What only this agent's messages hold.
MESSAGE_MARKS = ("mswea_bash_command", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")

_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n?```", re.S)
_RETURN_CODE = re.compile(r"\s*(?:<exception>.*?</exception>\s*)?<returncode>\s*(-?\d{1,10})\s*</returncode>\s*", re.S)
_OUTPUT = re.compile(r"\s*<output>\n?(.*?)\n?</output>\s*\Z", re.S)
_REFUSED = re.compile(
    r"\s*Command not executed\. (?:The user rejected your command with the following message:(.*)|Switching to)", re.S
)
_INTERRUPTED = re.compile(r"\s*Interrupted by user:(.*)", re.S)
_NEW_TASK = re.compile(r"\s*The user added a new task:(.*)", re.S)
_TIMEOUT = re.compile(r"timed out", re.I)
_SUBMIT = re.compile(r"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT")


class Messages:
    """Appends the messages of one run to its session."""

    def __init__(self, session: Session, model: str | None) -> None:
        self.session = session
        self._model = model
        self._open: dict[str, Row] = {}
        self._submit: Row | None = None
        self._has_task = False
        self._n = 0

    def add(self, message: Record) -> None:
        """Append one message."""
        key = str(self._n)
        self._n += 1
        self.session.n_messages += 1
        extra = object_of(message.get("extra"))
        at = normal_time(extra.get("timestamp"))
        if at is not None:
            self.session.see(at)
        role, text = message.get("role"), block_text(message.get("content"))
        if role == "system":
            if text and self.session.prompt_version is None:
                self.session.prompt_version = text_digest(text)
        elif role == "assistant":
            self._agent(key, message, extra, text, at)
        elif role in ("user", "tool"):
            self._told(key, message, extra, text, at)
        elif role == "exit" and self._submit is not None:
            self._submit[OUTPUT], self._submit[ERROR] = text, None
            self._open = {k: row for k, row in self._open.items() if row is not self._submit}

    def close(self) -> None:
        """Note the commands that nothing answered."""
        for row in self._open.values():
            row[ERROR] = "no_result"

    def _agent(self, key: str, message: Record, extra: Record, text: str | None, at: str | None) -> None:
        response = object_of(extra.get("response"))
        row = agent_row(key, text or None, at, text_of(response.get("model")) or self._model)
        add_counts(row, openai_counts(object_of(response.get("usage"))))
        self.session.rows.append(row)
        for index, (call_id, name, command) in enumerate(_commands(message, extra, text)):
            step_id = call_id or f"{key}.{index}"
            call = tool_row(step_id, name, json_text({"command": command}), at)
            self.session.rows.append(call)
            self._open[step_id] = call
            if type(command) is str and _SUBMIT.search(command):
                self._submit = call

    def _told(self, key: str, message: Record, extra: Record, text: str | None, at: str | None) -> None:
        if not self._has_task and message.get("role") == "user":
            self._has_task = True
            if text:
                self.session.rows.append(user_row(key, "human", text, at))
            return
        if message.get("role") == "user" and text and self._steered(key, text, at):
            return
        code, output = _result(text or "", extra)
        call_id = id_of(message.get("tool_call_id"))
        is_answer = code is not None or call_id is not None or _TIMEOUT.search((text or "")[:2000]) is not None
        row = self._open.pop(call_id, None) if call_id else None
        if row is None and call_id is None and self._open and (is_answer or self._submit in self._open.values()):
            row = self._open.pop(next(iter(self._open)))
        if row is None and call_id is not None:
            row = tool_row(call_id, None, None, None)
            self.session.rows.append(row)
        if row is None:
            if text:
                self.session.rows.append(user_row(key, "meta", text, at))
            return
        row[OUTPUT], row[END] = output, at
        problem = text_of(extra.get("exception_info")) or (text if code is None else "") or ""
        if _TIMEOUT.search(problem[:2000]):
            row[ERROR] = "timeout"
        elif text_of(extra.get("exception_info")):
            row[ERROR] = "tool_error"
        if row[ERROR] is None:
            # With an exception the code is the harness's own.
            row[EXIT_CODE] = code

    def _steered(self, key: str, text: str, at: str | None) -> bool:
        """Take what a person said; whether it was one."""
        rows = self.session.rows
        if match := _REFUSED.match(text):
            for row in self._open.values():
                row[ERROR], row[TEXT] = "refused", (match.group(1) or "").strip() or None
        elif match := _INTERRUPTED.match(text):
            for row in self._open.values():
                row[ERROR] = "interrupted"
            rows.append(user_row(f"{key}.stop", "interrupt", None, at))
            if words := match.group(1).strip():
                rows.append(user_row(key, "human", words, at))
        elif match := _NEW_TASK.match(text):
            rows.append(user_row(key, "human", match.group(1).strip(), at))
            return True
        else:
            return False
        self._open.clear()
        return True


def _commands(message: Record, extra: Record, text: str | None) -> list[tuple[str | None, str, object]]:
    """(call id, tool, command) of each command that a message gives."""
    found: list[tuple[str | None, str, object]] = [
        (id_of(action.get("tool_call_id")), "bash", action["command"])
        for action in objects_of(extra.get("actions"))
        if "command" in action
    ]
    if found:
        return found
    for call in objects_of(message.get("tool_calls")):
        function = object_of(call.get("function"))
        found.append((id_of(call.get("id")), text_of(function.get("name")) or "bash", function.get("arguments")))
    if found:
        return found
    blocks = _COMMAND.findall(text or "")
    # Several blocks, or none, are refused by the harness: nothing is run.
    return [(None, "bash", blocks[0])] if len(blocks) == 1 else []


def _result(text: str, extra: Record) -> tuple[int | None, str]:
    code = exit_code(extra.get("returncode"))
    match = _RETURN_CODE.match(text)
    if match is None:
        return code, text
    rest = text[match.end() :]
    output = _OUTPUT.match(rest)
    stated = exit_code(int(match.group(1)))
    return (stated if code is None else code), output.group(1) if output else rest
