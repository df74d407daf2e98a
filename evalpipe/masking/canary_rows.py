"""Rows of layer 1 that carry canaries: one builder a table.

Belongs here: what a canary row holds beside its value. Does not belong here: values (``canary_grid``),
what is planted on a day (``canaries``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

#: Source of canary rows; no reader is called so.
CANARY_SOURCE = "canary"
#: Tenants of canary rows: whatever one of them holds has another token in the other.
CANARY_TENANT, OTHER_TENANT = "canary", "canary.other"
#: Columns of short labels that the field policy masks, by table.
SESSION_LABELS = (
    "agent",
    "agent_release",
    "model",
    "scenario_declared",
    "task_id",
    "harness",
    "prompt_version",
    "retrieval_version",
    "assignment_policy",
    "routing_epoch",
    "consent",
    "tools",
)
STEP_LABELS = ("name", "model")
#: Column of ``raw.steps`` that a place lies in.
COLUMN = {"text": "text", "arguments": "arguments", "key": "arguments", "nested": "output", "output": "output"}


def content(place: str, text: str) -> dict[str, object]:
    """The column of a step that holds a text at a place."""
    match place:
        case "arguments":
            value = json.dumps({"command": text})
        case "key":
            value = json.dumps({text: 1})
        case "nested":
            value = json.dumps({"body": json.dumps({"note": text})})
        case _:
            value = text
    return {COLUMN[place]: value}


def session(
    session_id: str, tenant: str, user: str, at: datetime, n: int, labels: Mapping[str, str]
) -> dict[str, object]:
    """A session of somebody, with ``n`` steps."""
    shown: dict[str, object] = {name: [value] if name == "tools" else value for name, value in labels.items()}
    counts = dict.fromkeys(("n_steps", "n_tool_calls", "n_messages"), n)
    return {
        "session_id": session_id,
        "source": CANARY_SOURCE,
        "reader_version": "1",
        "file_id": f"{CANARY_SOURCE}-{user}",
        "agent": "canary",
        "model": "canary",
        "n_models": 1,
        "user_id": f"{user}@example.com",
        "tenant": tenant,
        "workspace": f"/home/{user}/app",
        "parent_session_id": f"{CANARY_SOURCE}:{user}",
        "started_at": at,
        "ended_at": at,
        "is_dated": True,
        "is_clock_repaired": False,
        "n_turns": 1,
        "content_digest": session_id,
        **counts,
        **shown,
    }


def step(session_id: str, seq: int, row: Mapping[str, object], user: str, at: datetime) -> dict[str, object]:
    """A step whose ids are made of the user's name."""
    is_text = "text" in row
    return {
        "session_id": session_id,
        "seq": seq,
        "step_id": f"{user}:{seq}",
        "parent_id": f"{user}:0",
        "turn": 1,
        "kind": "user" if is_text else "tool",
        "origin": "human" if is_text else "tool",
        "name": None if is_text else "Bash",
        "started_at": at,
        **row,
    }


def _place(owner: str) -> dict[str, object]:
    """A file in somebody's folder, and a member of it that is named after the same person."""
    path = f"/home/{owner}/export.zip"
    return {"file_id": f"{CANARY_SOURCE}:{path}", "source_file": path, "member": f"{owner}@example.com.jsonl"}


def file(owner: str) -> dict[str, object]:
    """A file that was read, in somebody's folder."""
    counts = dict.fromkeys(("n_bytes", "rows_read", "rows_kept", "rows_noise", "rows_quarantined", "n_sessions"), 0)
    return {**_place(owner), "source": CANARY_SOURCE, "reader_version": "1", **counts}


def bad_record(owner: str) -> dict[str, object]:
    """A record that could not be read, of a file in somebody's folder."""
    return {
        **_place(owner),
        "source": CANARY_SOURCE,
        "byte_offset": 0,
        "line": 1,
        "code": "BAD_JSON",
        "session_id": f"{CANARY_SOURCE}:{owner}",
        "n_bytes": 0,
        "digest": f"{CANARY_SOURCE}:{owner}",
    }


def copy(owner: str) -> dict[str, object]:
    """A copy whose ids are made of a name, as ids of files named after people are."""
    at = f"{CANARY_SOURCE}:{owner}@example.com"
    ids = dict.fromkeys(("session_id", "file_id", "counted_session_id"), at)
    counts = {"copy": 0, "n_messages": 0, "counted_n_messages": 0}
    return {**ids, **counts, "source": CANARY_SOURCE, "rule": "same_id", "counted_source": CANARY_SOURCE}
