"""What a reviewer sees of items: their masked text from the lake.

Belongs here: reading the text of drawn items, and cutting what is long. Does not belong here: which items
are drawn (``review_sample.py``), what the reviewer's file looks like (``review/files.py``).
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import polars as pl

from evalpipe.signals.turns import HUMAN, human_turns
from evalpipe.steps.context import Context
from evalpipe.store.lake import read_part
from evalpipe.store.manifest import Manifest

_ITEM = ("session_id", "seq")
#: Characters of each text that a reviewer sees; of a longer one its beginning and its end.
_REQUEST, _TAIL, _TURN, _ARGUMENTS, _OUTPUT = 1_500, 800, 4_000, 1_500, 4_000


def shown(context: Context, days: dict[date, Manifest], chosen: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """What a reviewer sees of each item, by its key, and the language of the turn itself.

    Args:
        context: The open home.
        days: Slice of masked sessions of each day.
        chosen: Rows ``key, session_id, seq, kind, lang, day``.

    Returns:
        Columns of ``review.files.COLUMNS`` but for the number and what a reviewer says. An item whose text has
        gone is left out.
    """
    wanted = chosen["session_id"].unique().implode()
    out: dict[str, dict[str, Any]] = {}
    for day, masked in days.items():
        mine = chosen.filter(day=day)
        paths = context.lake.paths("masked.steps", [masked])
        if mine.is_empty() or not paths:
            continue
        steps = pl.concat(
            [read_part("masked.steps", path).filter(pl.col("session_id").is_in(wanted)) for path in paths]
        ).sort("session_id", "seq")
        said = {(row[0], row[1]): row[2] for row in human_turns(steps).select(*_ITEM, "lang").iter_rows()}
        for session_id, rows in mine.group_by("session_id", maintain_order=True):
            of_session = steps.filter(pl.col("session_id") == session_id[0]).to_dicts()
            there = {step["seq"] for step in of_session if _has_text(step)}
            for row in rows.iter_rows(named=True):
                if row["seq"] in there:
                    out[row["key"]] = _item(of_session, row, said)
    return out


def _item(steps: list[dict[str, Any]], row: dict[str, Any], langs: dict[tuple[str, int], str]) -> dict[str, Any]:
    before = [step for step in steps if step["seq"] < row["seq"] and step["parent_id"] is None]
    step = next(step for step in steps if step["seq"] == row["seq"])
    asked = next((s for s in reversed(before) if s["kind"] == "user" and s["origin"] in HUMAN and s["text"]), None)
    answered = next((s for s in reversed(before) if s["kind"] == "agent" and s["text"]), None)
    is_turn = row["kind"] == "turn"
    # What a person wrote after the agent's last words is no answer to be judged.
    if is_turn and asked and answered and answered["seq"] < asked["seq"]:
        answered = None
    return {
        "kind": row["kind"],
        "lang": langs.get((row["session_id"], row["seq"]), row["lang"]) if is_turn else row["lang"],
        "previous_request": _cut(asked["text"], _REQUEST) if asked else "",
        "agent_tail": _tail(answered["text"]) if answered else "",
        "shown": _cut(step["text"] or "", _TURN) if is_turn else _call(step),
    }


def _has_text(step: dict[str, Any]) -> bool:
    return any(step[name] for name in ("text", "arguments", "output"))


def _tail(text: str) -> str:
    return text if len(text) <= _TAIL else f"[...] {text[-_TAIL:]}"


def _call(step: dict[str, Any]) -> str:
    parts = [
        step["name"] or "",
        _cut(_command(step["arguments"] or ""), _ARGUMENTS),
        _cut(step["text"] or "", _TURN),
        f"exit code {step['exit_code']}" if step["exit_code"] is not None else "",
        _cut(step["output"] or "", _OUTPUT),
    ]
    return "\n".join(part for part in parts if part)


def _command(arguments: str) -> str:
    """The one text argument of a call without its JSON, where there is only one."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    if isinstance(value, dict) and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    return arguments


def _cut(text: str, chars: int) -> str:
    half = chars // 2
    return text if len(text) <= chars else f"{text[:half]}\n[... {len(text) - chars:,} characters ...]\n{text[-half:]}"
