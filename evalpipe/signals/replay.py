"""Labelled rows as small sessions, run through the pipeline's own extraction.

Belongs here: what extraction says of each row, in the words of the labels. Does not belong here: the
rows (``labelled``), whether it is right (``scoring``). Texts are taken as they are: a labelled file
is redacted already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from evalpipe.contracts.render import frame
from evalpipe.contracts.tables import masked
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.signals.calls import tool_calls, tool_class
from evalpipe.signals.labelled import LabelledCall, LabelledTurn
from evalpipe.signals.part import extract_part

_CLASS_OF = {
    "confirm.explicit": "confirm",
    "praise": "praise",
    "complaint.sentiment": "complaint",
    "complaint.failure_report": "complaint",
    "correction": "correction",
}
_STATUS_OF = {"benign": "benign_nonzero", "refused": "interaction", "interrupted": "interaction"}
_AT = datetime(2026, 1, 1, tzinfo=UTC)


def extracted_classes(turns: list[LabelledTurn], extraction: ExtractionCriteria) -> list[frozenset[str]]:
    """Classes that extraction emits for each turn, read as the last turn of a session of its own.

    Of rows that tell nothing of what came before, something did all the same, but for openers.

    Args:
        turns: (n,) labelled turns.
        extraction: Languages, least confidence.

    Returns:
        (n,) sets of labels of turns.
    """
    steps: list[dict[str, Any]] = []
    last: dict[str, int] = {}
    for i, turn in enumerate(turns):
        name = f"s{i:09}"
        said = [] if turn.is_opener else [("user", turn.prev_user, 1), ("agent", turn.prev_agent_tail, 1)]
        said.append(("user", turn.text, len(said) // 2 + 1))
        last[name] = len(said) - 1
        for seq, (kind, text, number) in enumerate(said):
            origin = "human" if kind == "user" else kind
            steps.append(_step(name, seq, kind, origin) | {"turn": number, "text": text})
    rows = extract_part(_sessions(list(last)), frame(masked.STEPS, steps), extraction).semantic
    found: list[set[str]] = [set() for _ in turns]
    for session, seq, signal in rows.select("session_id", "seq", "signal").iter_rows():
        if seq == last[session] and signal in _CLASS_OF:
            found[int(session[1:])].add(_CLASS_OF[signal])
    return [frozenset(classes) for classes in found]


@dataclass(frozen=True, slots=True)
class Judged:
    """What extraction says of one call, in the words of the labels."""

    status: str
    category: str | None
    layer: str | None
    rule_id: str | None


def extracted_status(calls: list[LabelledCall]) -> list[Judged]:
    """What extraction says of each call, read as the only call of a session of its own.

    Args:
        calls: (n,) labelled calls.
    """
    steps, offered = [], []
    for i, call in enumerate(calls):
        # A file tool names its file where another names its command.
        key = "file_path" if tool_class(call.tool) in {"edit", "read"} else "command"
        steps.append(
            _step(f"s{i:09}", 0, "tool", "tool")
            | {"turn": 1, "name": call.tool, "arguments": json.dumps({key: call.command}, ensure_ascii=False),
               "output": call.output, "exit_code": call.exit_code, "is_error": call.is_flagged}
        )  # fmt: skip
        offered.append({"tools": list(call.tools)} if call.tools else {})
    names = [step["session_id"] for step in steps]
    found = tool_calls(_sessions(names, offered), frame(masked.STEPS, steps))
    return [
        Judged(_STATUS_OF.get(status, status), category, layer, rule)
        for status, category, layer, rule in found.select("status", "category", "layer", "rule_id").iter_rows()
    ]


def _step(session: str, seq: int, kind: str, origin: str) -> dict[str, Any]:
    return {"session_id": session, "seq": seq, "step_id": str(seq), "kind": kind, "origin": origin}


def _sessions(names: list[str], more: Iterable[dict[str, Any]] | None = None) -> pl.DataFrame:
    common = {
        "source": "labelled", "reader_version": "1", "file_id": "labelled", "agent": "", "n_models": 1,
        "started_at": _AT, "ended_at": _AT, "is_dated": False, "is_clock_repaired": False, "n_turns": 0, "n_steps": 0,
        "n_tool_calls": 0, "n_messages": 0,
    }  # fmt: skip
    extra: Iterator[dict[str, Any]] = iter(more or [{}] * len(names))
    return frame(masked.SESSIONS, [common | {"session_id": name} | next(extra) for name in names])
