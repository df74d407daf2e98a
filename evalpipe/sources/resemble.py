"""What a file of no known format resembles, for the person who has to map it.

Belongs here: the outward form of a file, and the marks by which each format can be told. Does not
belong here: recognising a format (``registry.py``): what resembles is not read. Only names of our
own list are ever said; nothing of the file's content is repeated.
"""

from __future__ import annotations

import csv
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic_core import from_json

from evalpipe.sources.containers import open_file
from evalpipe.sources.registry import HEAD_BYTES
from evalpipe.sources.streams import BLOCK, STREAM_ERRORS

#: Names of keys that records of a format hold, at whatever depth.
MARKS: dict[str, frozenset[str]] = {
    name: frozenset(keys.split())
    for name, keys in {
        "evalpipe_jsonl": "evalpipe type session_id kind text agent",
        "claude_code": "sessionId uuid parentUuid type message cwd version",
        "codex": "payload type timestamp call_id cwd model_provider",
        "gemini_cli": "sessionId projectHash messages toolCalls startTime lastUpdated",
        "gemini_history": "role parts functionCall functionResponse text",
        "opencode": "sessionID messageID part callID providerID modelID",
        "pi_agent": "type id parentId message toolCallId stopReason",
        "openhands": "id source action observation args tool_call_metadata",
        "swe_agent": "trajectory history info observation thought action",
        "mini_swe_agent": "messages info exit_status submission instance_id model_stats",
        "otlp": "resourceSpans scopeSpans spans traceId spanId attributes",
        "phoenix": "context attributes span_kind parent_id status_code openinference",
        "langfuse": "observations traceId parentObservationId startTime usageDetails sessionId",
        "langsmith": "run_type dotted_order trace_id inputs outputs parent_run_id",
        "mlflow": "info data spans trace_id assessments request_id",
        "coze_loop": "root_step agent_steps steps basic_info model_info",
        "tau_bench": "task_id reward traj trial info",
        "tau2_bench": "task_id simulations messages reward_info termination_reason seed",
        "atif": "schema_version session_id agent steps tool_calls observation source",
        "inspect": "eval plan samples status version scores",
        "terminal_bench": "task_id is_resolved failure_mode parser_results trial_name results",
        "toolbench": "tree answer_generation query available_tools final_answer",
        "agentbench": "index output history status result",
        "whowhen": "history question mistake_agent mistake_step is_correct",
        "openai_messages": "messages role content tool_calls tool_call_id",
        "sharegpt": "conversations from value",
        "wildchat": "conversation_hash conversation model hashed_ip turn",
        "lmsys_chat": "conversation_id conversation model turn language",
    }.items()
}

#: Fewer marks than this resemble nothing.
_FEW = 2
_DEPTH = 5
_MANY = 20_000


@dataclass(frozen=True, slots=True)
class Likeness:
    """What an unknown file is like.

    Attributes:
        form: Its outward form, in words.
        format: Name of the format that it resembles most; empty where it resembles none.
        found, missing: Marks of that format that its head holds, and those that it does not.
    """

    form: str
    format: str = ""
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.format:
            return f"{self.form}; like no known format"
        text = f"{self.form}; most like {self.format}: it has {', '.join(self.found)}"
        return f"{text}, and lacks {', '.join(self.missing)}" if self.missing else text


def likeness(head: bytes) -> Likeness:
    """What a file is like that begins with these bytes.

    Args:
        head: Its first bytes (``registry.HEAD_BYTES``), decompressed.
    """
    form, value = _form(head)
    names: set[str] = set()
    _collect(value, names, 0)
    ranked = sorted(
        ((len(marks & names), len(marks & names) / len(marks), name) for name, marks in MARKS.items()),
        key=lambda item: (-item[1], -item[0], item[2]),
    )
    n_found, _, best = ranked[0]
    if n_found < _FEW:
        return Likeness(form)
    return Likeness(form, best, tuple(sorted(MARKS[best] & names)), tuple(sorted(MARKS[best] - names)))


def resemble(path: Path, member: str) -> Likeness | None:
    """What one file, or one member of an archive, is like; ``None`` where it cannot be opened.

    Args:
        path: The file.
        member: Name inside the archive; empty for the file itself.
    """
    with ExitStack() as stack:
        try:
            for found in open_file(path, stack):
                if found.name == member and found.stream is not None:
                    return likeness(found.stream.peek(HEAD_BYTES))
                while found.stream is not None and found.stream.read(BLOCK):
                    pass
        except STREAM_ERRORS:
            return None
    return None


def _form(head: bytes) -> tuple[str, Any]:
    """The outward form, and what of it is JSON."""
    body = head.lstrip()
    if not body:
        return "an empty file", None
    if body[:1] in b"[{":
        lines = [line for line in head.splitlines() if line.strip()]
        parsed = [value for line in lines[:50] if (value := _loads(line)) is not None]
        if len(parsed) >= max(1, len(lines[:50]) - 1) and type(parsed[0]) is dict:
            return "JSON lines", parsed
        value = _partial(body)
        if value is not None:
            return "one JSON document" if type(value) is dict else "one JSON array", value
        return "damaged JSON", None
    if b"\0" in head[:4096]:
        return "a binary file", None
    text = head[:4096].decode("utf-8", "replace")
    if body[:1] == b"<":
        return "XML or HTML", None
    if body[:2] in (b"# ", b"##", b"--") or "\n## " in text:
        return "Markdown or other text", None
    return ("a table in text" if _is_table(text) else "plain text"), None


def _is_table(text: str) -> bool:
    try:
        dialect = csv.Sniffer().sniff(text, ",;\t|")
    except csv.Error:
        return False
    widths = {len(row) for row in csv.reader(text.splitlines()[:20], dialect)}
    return len(widths) <= _FEW and max(widths) > 1


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _partial(data: bytes) -> Any:
    try:
        return from_json(data, allow_partial="trailing-strings")
    except ValueError:
        return None


def _collect(value: Any, names: set[str], depth: int) -> None:
    """Names of keys, near the top."""
    if depth > _DEPTH or len(names) > _MANY:
        return
    if type(value) is dict:
        for name, inner in value.items():
            names.add(name)
            names.update(name.split(".")[:1])
            _collect(inner, names, depth + 1)
    elif type(value) is list:
        for inner in value[:50]:
            _collect(inner, names, depth + 1)
