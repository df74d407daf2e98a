"""Canaries: sessions of a reserved tenant whose personal data and secrets must not survive masking.

Belongs here: planting them, knowing what was planted, taking them out again. Does not belong here:
rules; values come from ``data/masking/canaries.toml`` alone, so that a lost rule shows.
"""

from __future__ import annotations

import hmac
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import raw
from evalpipe.locations import data_dir
from evalpipe.masking.templates import expand

if TYPE_CHECKING:
    from evalpipe.masking.plan import MaskPlan

#: Tenant and source of canary rows; no reader is called so.
CANARY_TENANT = "canary"
CANARY_SOURCE = "canary"
_FIELDS = ("text", "arguments", "output")
_ZERO_WIDTH = "\u200b"


@dataclass(frozen=True, slots=True)
class CanaryValue:
    """One planted value.

    Attributes:
        canary, encoding: Which entry of the data file, and how it was hidden.
        field: Column it was planted in, such as ``steps.output``; counts are expected there.
        entity, subtype: What the audit must count it as.
        value: The value itself; never shown.
        is_short: Too short to be searched for in other rows without false alarms.
    """

    canary: str
    encoding: str
    field: str
    entity: str
    subtype: str
    value: str
    is_short: bool = False

    def __repr__(self) -> str:
        return f"CanaryValue({self.canary}, {self.encoding}, {self.field})"


@dataclass(frozen=True, slots=True)
class Canaries:
    """Raw canary rows of each table of layer 1, and the values in them."""

    sessions: pl.DataFrame
    steps: pl.DataFrame
    files: pl.DataFrame
    quarantine: pl.DataFrame
    copies: pl.DataFrame
    values: tuple[CanaryValue, ...]


@lru_cache(maxsize=1)
def _entries() -> tuple[Mapping[str, Any], ...]:
    document = tomllib.loads((data_dir() / "masking" / "canaries.toml").read_text("utf-8"))
    return tuple(document["canary"])


def plant_canaries(plan: MaskPlan, day: date) -> Canaries:
    """Make the canary sessions of a slice.

    Args:
        plan: Values follow from its key and rule set, so that they are fresh per slice and the same
            in every run.
        day: Day of the slice; the sessions start on it.

    Returns:
        Frames of the tables of ``raw``, to be masked together with the slice's rows.
    """
    secret = plan.key.subkey("canary")
    where = f"{day.isoformat()}\0{plan.ruleset_digest()}"

    def seed(*parts: str) -> bytes:
        return hmac.digest(secret, "\0".join((where, *parts)).encode(), "sha256")

    at = datetime.combine(day, time(12), UTC)
    values: list[CanaryValue] = []
    steps: list[dict[str, object]] = []
    sessions: list[dict[str, object]] = []
    for field in _FIELDS:
        session_id = f"{CANARY_SOURCE}:{day.isoformat()}:{field}"
        rows = []
        for entry in _entries():
            for i, carrier in enumerate(entry["carriers"]):
                for encoding in entry.get("encodings", ("plain",)):
                    value = expand(entry["value"], seed(field, entry["id"], str(i), encoding)).text
                    # The carrier's own slots are joined before the value is put in.
                    text = carrier.replace("<~>", "").replace("{}", _hide(value, encoding, entry.get("hidden", "")))
                    values.append(
                        CanaryValue(
                            entry["id"],
                            encoding,
                            f"steps.{field}",
                            entry["entity"],
                            entry.get("subtype", ""),
                            value,
                            entry.get("short", False),
                        )
                    )
                    rows.append({field: json.dumps({"command": text}) if field == "arguments" else text})
        user = expand("q{a8}{d3}", seed(field, "owner")).text
        values.append(CanaryValue("workspace", "plain", "sessions.workspace", "", "", user))
        sessions.append(_session(session_id, field, user, at, len(rows)))
        steps += [_step(session_id, n, row, at) for n, row in enumerate(rows)]
    owner = expand("q{a8}{d3}", seed("files", "owner")).text
    values += [
        CanaryValue("path", "plain", field, "", "", owner)
        for field in ("files.member", "quarantine.member", "copies.session_id")
    ]
    return Canaries(
        render.frame(raw.SESSIONS, sessions),
        render.frame(raw.STEPS, steps),
        render.frame(raw.FILES, [_file(owner)]),
        render.frame(raw.QUARANTINE, [_bad_record(owner)]),
        render.frame(raw.COPIES, [_copy(owner)]),
        tuple(values),
    )


def _place(owner: str) -> dict[str, object]:
    """A file in somebody's folder, and a member of it that is named after the same person."""
    path = f"/home/{owner}/export.zip"
    return {"file_id": f"{CANARY_SOURCE}:{path}", "source_file": path, "member": f"{owner}@example.com.jsonl"}


def _file(owner: str) -> dict[str, object]:
    counts = dict.fromkeys(("n_bytes", "rows_read", "rows_kept", "rows_noise", "rows_quarantined", "n_sessions"), 0)
    return {**_place(owner), "source": CANARY_SOURCE, "reader_version": "1", **counts}


def _bad_record(owner: str) -> dict[str, object]:
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


def _copy(owner: str) -> dict[str, object]:
    """A copy whose ids are made of a name, as ids of files named after people are."""
    place = f"{CANARY_SOURCE}:{owner}@example.com"
    ids = dict.fromkeys(("session_id", "file_id", "counted_session_id"), place)
    counts = {"copy": 0, "n_messages": 0, "counted_n_messages": 0}
    return {**ids, **counts, "source": CANARY_SOURCE, "rule": "same_id", "counted_source": CANARY_SOURCE}


def _session(session_id: str, field: str, user: str, at: datetime, n: int) -> dict[str, object]:
    return {
        "session_id": session_id,
        "source": CANARY_SOURCE,
        "reader_version": "1",
        "file_id": f"{CANARY_SOURCE}-{field}",
        "agent": "canary",
        "model": "canary",
        "n_models": 1,
        "user_id": f"{user}@example.com",
        "tenant": CANARY_TENANT,
        "workspace": f"/home/{user}/app",
        "started_at": at,
        "ended_at": at,
        "is_dated": True,
        "is_clock_repaired": False,
        "n_turns": 1,
        "n_steps": n,
        "n_tool_calls": n,
        "n_messages": n,
        "content_digest": session_id,
    }


def _step(session_id: str, seq: int, row: dict[str, str], at: datetime) -> dict[str, object]:
    is_text = "text" in row
    return {
        "session_id": session_id,
        "seq": seq,
        "step_id": f"{session_id}:{seq}",
        "turn": 1,
        "kind": "user" if is_text else "tool",
        "origin": "human" if is_text else "tool",
        "name": None if is_text else "Bash",
        "started_at": at,
        **row,
    }


def _hide(value: str, encoding: str, mark: str) -> str:
    match encoding:
        case "plain":
            return value
        case "fullwidth":
            return re.sub("[0-9]", lambda d: chr(ord(d.group()) + 0xFEE0), value)
        case "json":
            return value.replace(mark, f"\\u{ord(mark):04x}")
        case "percent":
            return value.replace(mark, f"%{ord(mark):02X}")
        case "entity":
            return value.replace(mark, f"&#{ord(mark)};")
        case "zerowidth":
            return value.replace(mark, mark + _ZERO_WIDTH)
        case other:
            raise ValueError(f"unknown encoding {other}")


def drop_canaries(sessions: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take the canary rows out of masked (or raw) frames before they are published."""
    planted = sessions.filter(pl.col("source") == CANARY_SOURCE)["session_id"]
    return sessions.filter(pl.col("source") != CANARY_SOURCE), steps.filter(
        ~pl.col("session_id").is_in(planted.implode())
    )


def drop_canary_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Take the canaries' rows out of a table other than sessions and steps; all of them name a source."""
    return frame.filter(pl.col("source") != CANARY_SOURCE)
