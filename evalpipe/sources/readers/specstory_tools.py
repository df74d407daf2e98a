"""Blocks of tools in SpecStory's Markdown.

Belongs here: one block to one call. The format knows neither arguments nor results as such: it shows
them the way each agent's exporter finds readable. The last fence without a language, or of language
``text``, is taken for the result, and what stands before it for the arguments.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from evalpipe.sources.readers.base import json_text
from evalpipe.sources.readers.claude_text import INTERRUPT_START, failure
from evalpipe.sources.session import END, ERROR, EXIT_CODE, IS_ERROR, OUTPUT, TEXT, Row, Session, exit_code, tool_row

OPEN = "<tool-use data-tool-type="
CLOSE = "</details></tool-use>"

_TAG = re.compile(r'<tool-use data-tool-type="(?P<type>[^"]*)" data-tool-name="(?P<name>[^"]*)">')
_SUMMARY = re.compile(r"<summary>(?:Tool use: \*\*[^\n]*?\*\*)?[ \t]*(?P<inline>[^\n]*?)</summary>", re.S)
_PLAIN = re.compile(r"Tool use: \*\*(?P<name>[^\n*]+)\*\*[ \t]*(?P<inline>[^\n]*)(?:\n|\Z)")
_RESULT_MARK = re.compile(r"^\*\*(Result|Error):\*\*\s*$", re.M)
_FENCE = re.compile(r"(?P<before>.*?)(?P<ticks>```+)(?P<language>[\w+-]*)[ \t]*\Z")
_CODE_SPAN = re.compile(r"(`+)(.+)\1", re.S)
_EXIT_LINE = re.compile(r"^(?:Process exited with code |Exit code: )(-?\d{1,10})$", re.M)
_FAILURE_STARTS = (
    "Exit code ", "The user doesn", "Permission for this tool use was denied", "<tool_use_error>",
    INTERRUPT_START, "Command timed out",
)  # fmt: skip


def blocks(lines: list[str]) -> list[tuple[int, int]]:
    """First and last line of each block of a tool; blocks that a block quotes are part of it.

    A quotation may be cut off and leave its own block open. Then the block around it is taken to
    end at the first closing tag.
    """
    ends: dict[int, int] = {}
    closings: list[int] = []
    opened: list[int] = []
    for at, line in enumerate(lines):
        if line.startswith(OPEN):
            opened.append(at)
        elif line.startswith(CLOSE):
            closings.append(at)
            if opened:
                ends[opened.pop()] = at
    found: list[tuple[int, int]] = []
    for at in sorted([*ends, *opened]):
        if found and at <= found[-1][1]:
            continue
        index = bisect_left(closings, at)
        if at in ends or index < len(closings):
            found.append((at, ends.get(at, closings[index])))
    return found


def plain_tool(text: str) -> str | None:
    """The block of a call that an exporter wrote as plain text, in the form of the others."""
    match = _PLAIN.match(text)
    if match is None:
        return None
    tag = f'{OPEN}"unknown" data-tool-name="{match["name"]}">'
    return f"{tag}\n<summary>{match['inline']}</summary>\n{text[match.end() :]}"


def add_tool(session: Session, step_id: str, block: str, at: str | None, parent: str | None) -> Row:
    """Append the call that a block shows.

    Args:
        session: The session.
        step_id: Id of the step.
        block: From the opening tag to before the closing one.
        at: Time of the message.
        parent: Step that the call belongs to, for calls of a sub-agent.

    Returns:
        The step.
    """
    tag = _TAG.match(block)
    kind, name = (tag["type"], tag["name"]) if tag else ("", "")
    summary = _SUMMARY.search(block[:4096])
    inline = summary["inline"].strip() if summary else ""
    body = block[summary.end() :] if summary else block.partition("\n")[2]
    before, output = _split(body)
    row = tool_row(step_id, name or "unknown", json_text(_arguments(kind, inline, before)), at, parent)
    row[END] = at
    row[OUTPUT] = output
    if (mark := _RESULT_MARK.search(body)) and mark.group(1) == "Error":
        row[IS_ERROR], row[ERROR] = True, "tool_error"
    _state(row)
    session.rows.append(row)
    return row


def _split(body: str) -> tuple[str, str | None]:
    """Arguments and result of a block's body."""
    mark = _RESULT_MARK.search(body)
    head, rest = (body[: mark.start()], body[mark.end() :]) if mark else ("", body)
    lines = rest.split("\n")
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            at += 1
            continue
        if fence["language"] in ("", "text") and not fence["before"].strip():
            # To the last closing fence: results hold fences of their own.
            closings = (i for i in range(len(lines) - 1, at, -1) if lines[i].rstrip() == fence["ticks"])
            last = next(closings, len(lines))
            return "\n".join([head, *lines[:at]]).strip(), "\n".join(lines[at + 1 : last])
        closing = (i for i in range(at + 1, len(lines)) if lines[i].rstrip() == fence["ticks"])
        at = next(closing, len(lines)) + 1
    return f"{head}\n{rest}".strip(), None


def _arguments(kind: str, inline: str, before: str) -> dict[str, str]:
    if kind != "shell":
        text = "\n".join(part for part in (inline, before) if part)
        return {"input": text} if text else {}
    fenced = re.search(r"^```\w*\n(.*?)\n```\s*$", before, re.S | re.M)
    if fenced:
        command, note = fenced.group(1), before[: fenced.start()].strip()
    else:
        command, note = inline, before
        if not command and (paragraphs := [p for p in re.split(r"\n\s*\n", before) if p.strip()]):
            command, note = paragraphs[-1].strip(), "\n".join(paragraphs[:-1]).strip()
    span = _CODE_SPAN.fullmatch(command.strip())
    arguments = {"command": span.group(2) if span else command}
    return {**arguments, "description": note} if note else arguments


def _state(row: Row) -> None:
    """What the text of a result says of its end; only some agents' exporters keep that."""
    text = row[OUTPUT]
    if not text:
        return
    if text.startswith(_FAILURE_STARTS):
        row[ERROR], reason, row[EXIT_CODE] = failure(text)
        row[IS_ERROR] = True
        if row[ERROR] == "refused":
            row[TEXT], row[OUTPUT] = reason, None
    elif match := _EXIT_LINE.search(text[:400]):
        row[EXIT_CODE] = exit_code(int(match.group(1)))
