"""How Claude Code writes down a tool result: as text for the model and, beside it, structured.

Belongs here: the two forms of one result. Does not belong here: the line around them
(``claude_code.py``).
"""

from __future__ import annotations

from typing import Any

from evalpipe.simulate.calls import Call

_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
_CASCADE = "<tool_use_error>Sibling tool call errored</tool_use_error>"


def content_of(call: Call) -> str:
    """Text of the ``tool_result`` block."""
    if call.error == "refused":
        return _REFUSED + call.reason
    if call.error == "cascade":
        return _CASCADE
    if call.exit_code:
        return f"Exit code {call.exit_code}\n{call.output}" if call.output else f"Exit code {call.exit_code}"
    if call.name == "Read":
        return "\n".join([f"{n:6d}→{line}" for n, line in enumerate(call.output.split("\n"), call.first_line)])
    return call.output


def outcome_of(call: Call) -> dict[str, Any]:
    """The structured copy of a result that Claude Code keeps beside its text."""
    arguments, output = call.arguments, call.output
    if call.name == "Bash":
        return {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    if call.name == "Read":
        n, first = output.count("\n") + 1, call.first_line
        place = {"numLines": n, "startLine": first, "totalLines": first + n}
        return {"type": "text", "file": {"filePath": arguments["file_path"], "content": output, **place}}
    if call.name == "Edit":
        old, new = arguments["old_string"], arguments["new_string"]
        patch = [{"oldStart": 1, "oldLines": old.count("\n") + 1, "newStart": 1, "newLines": new.count("\n") + 1}]
        flags = {"userModified": False, "replaceAll": False, "structuredPatch": patch}
        return {"filePath": arguments["file_path"], "oldString": old, "newString": new, **flags}
    if call.name == "Write":
        return {"type": "create", **arguments, "structuredPatch": []}
    if call.name in ("Grep", "Glob"):
        names = output.split("\n")
        found = {"filenames": names[:20], "numFiles": len(names), "truncated": len(names) > 20}
        return {**found, "durationMs": call.duration}
    return {"result": output, "durationMs": call.duration}
