"""Results of Codex' calls: output, exit code and what went wrong.

Belongs here: what a result says. Does not belong here: which call it answers (``codex_lines.py``).
"""

from __future__ import annotations

import re

import orjson

from evalpipe.sources.readers.base import block_text
from evalpipe.sources.session import ERROR, EXIT_CODE, IS_ERROR, OUTPUT, Row, exit_code

_EXIT_TEXT = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,10})$", re.M)
_NOT_RUN = ("execution error:", "failed to parse function arguments", "unsupported call:")
_OUTPUT_MARK = re.compile(r"^Output:\n?", re.M)
# The header of plain-text results; what follows is the program's own output, which may quote anything.
_HEADER_CHARS = 400


def put_output(row: Row, output: object) -> None:
    """Put what a result holds into the step of its call."""
    if type(output) is dict:
        success = output.get("success")
        if type(success) is bool:
            row[IS_ERROR] = not success
        output = output.get("content", output.get("output"))
    text = block_text(output)
    if text is None:
        return
    row[OUTPUT], row[EXIT_CODE] = _unwrapped(text)
    head = text[:200]
    if "rejected by user" in head:
        row[ERROR] = "refused"
    elif head.startswith("aborted"):
        row[ERROR] = "interrupted"
    elif head.startswith("command timed out after"):
        row[ERROR] = "timeout"
    elif head.startswith(_NOT_RUN):
        row[ERROR] = "tool_error"


def _unwrapped(text: str) -> tuple[str, int | None]:
    """What the program printed, and the exit code that was logged around it."""
    if text.startswith("{") and '"metadata"' in text:
        try:
            inner = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text, None
        metadata, output = inner.get("metadata"), inner.get("output")
        if type(metadata) is dict and type(output) is str:
            return output, exit_code(metadata.get("exit_code"))
        return text, None
    mark = _OUTPUT_MARK.search(text, 0, _HEADER_CHARS)
    if mark and (match := _EXIT_TEXT.search(text, 0, mark.start())):
        return text[mark.end() :], exit_code(int(match.group(1)))
    return text, None
