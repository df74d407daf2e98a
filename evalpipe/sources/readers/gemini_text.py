"""Who wrote the text of a user message of Gemini CLI, and what the result of a call says.

Belongs here: telling the words of a person from what the harness puts into user messages, and
reading errors and exit codes out of results. Does not belong here: the two files that hold such
messages (``gemini_cli.py``, ``gemini_history.py``).
"""

from __future__ import annotations

import re

from evalpipe.sources.readers.base import json_text
from evalpipe.sources.readers.values import object_of, objects_of
from evalpipe.sources.session import ERROR, EXIT_CODE, IS_ERROR, OUTPUT, Row, exit_code

_BY_START = (
    ("<session_context>", "injected"),
    ("<hook_context>", "injected"),
    ("This is the Gemini CLI. We are setting up the context", "injected"),
    ("<state_snapshot>", "compaction"),
    ("I ran the following shell command:", "local_command"),
    ("System: ", "meta"),
)
#: What the harness says in the user's place when the model stops in the middle.
_GO_ON = "Please continue."
_FILES_START = "\n--- Content from referenced files ---"
_FILES_END = "\n--- End of content ---"

#: What the harness answers for the model after context of its own; no model wrote it.
ACKNOWLEDGEMENTS = frozenset({"Got it. Thanks for the context!", "Got it. Thanks for the additional context!"})

_CANCELLED = re.compile(r"\[Operation Cancelled\]|User cancelled|Tool call cancelled by user", re.I)
_REFUSED = re.compile(r"did not allow tool call|User (?:denied|rejected|declined)|denied by (?:the )?user", re.I)
_EXIT = re.compile(r"^Exit Code: (-?\d{1,10})$", re.M)
_TIMEOUT = re.compile(r"\b(?:timed out|timeout exceeded)\b", re.I)
_RESULT_KEYS = frozenset({"output"})


def user_origin(text: str) -> str:
    """Origin of one text of a user message."""
    if text == _GO_ON:
        return "meta"
    for start, origin in _BY_START:
        if text.startswith(start):
            return origin
    return "human"


def split_parts(texts: list[str]) -> list[tuple[str, str]]:
    """The texts of one user message as (origin, text), neighbours of one origin joined.

    A message that names files holds the user's words first and then the files' content, which is
    ``injected``.
    """
    out: list[tuple[str, str]] = []
    is_file = False
    for text in texts:
        is_file = is_file or text.startswith(_FILES_START)
        origin = "injected" if is_file else user_origin(text)
        if text.startswith(_FILES_END):
            is_file = False
        if out and out[-1][0] == origin:
            out[-1] = (origin, f"{out[-1][1]}\n{text}")
        else:
            out.append((origin, text))
    return [(origin, text) for origin, text in out if text.strip()]


def put_result(row: Row, response: object, status: object = None) -> None:
    """Put the response of a function, and the status that the chat recording gives it, into its call."""
    fields = object_of(response)
    failure = fields.get("error")
    if failure is not None:
        row[OUTPUT] = json_text(failure)
    elif fields.keys() == _RESULT_KEYS:
        row[OUTPUT] = json_text(fields["output"])
    else:
        row[OUTPUT] = json_text(response)
    text = row[OUTPUT] or ""
    if codes := _EXIT.findall(text):
        # The last one: the command may have printed such a line itself.
        row[EXIT_CODE] = exit_code(int(codes[-1]))
    is_cancelled = status == "cancelled" or (failure is not None and _CANCELLED.search(text) is not None)
    is_failed = is_cancelled or status == "error" or failure is not None
    if is_failed or status == "success":
        row[IS_ERROR] = is_failed
    if not is_failed:
        return
    if _REFUSED.search(text):
        row[ERROR] = "refused"
    elif is_cancelled:
        row[ERROR] = "interrupted"
    elif row[EXIT_CODE] is None:
        row[ERROR] = "timeout" if _TIMEOUT.search(text) else "tool_error"


def result_of(parts: object) -> object:
    """The response inside the parts of a result; ``None`` if there is none."""
    if type(parts) is str:
        return {"output": parts}
    if type(parts) is dict:
        parts = [parts]
    for part in objects_of(parts):
        found = part.get("functionResponse")
        if type(found) is dict:
            return found.get("response")
    texts = [part["text"] for part in objects_of(parts) if type(part.get("text")) is str]
    return {"output": "\n".join(texts)} if texts else None


def texts_of(content: object) -> list[str]:
    """Texts of a message's content: text, one part, or a list of either. Thoughts are left out."""
    if type(content) is str:
        return [content]
    if type(content) is dict:
        content = [content]
    if type(content) is not list:
        return []
    texts = []
    for part in content:
        text = part.get("text") if type(part) is dict and part.get("thought") is not True else part
        if type(text) is str:
            texts.append(text)
    return texts
