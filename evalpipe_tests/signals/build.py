"""Small sessions for the tests of the signal layer, as frames of the masked contracts."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from evalpipe.contracts.render import frame
from evalpipe.contracts.tables import masked
from evalpipe.criteria.model import (
    Criteria,
    EstimandCriteria,
    ExtractionCriteria,
    MaskingCriteria,
    OutcomesCriteria,
)
from evalpipe.locations import data_dir
from evalpipe.signals import load_prices

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
PRICES = load_prices(data_dir() / "prices.toml")
EXTRACTION = ExtractionCriteria(("en", "zh", "pt"), 0.75, 160, 10, 3)


class Talk:
    """Writes one session step by step; turn and seq follow by themselves."""

    def __init__(self, session_id: str = "s1", **session: Any) -> None:
        self.session: dict[str, Any] = {
            "session_id": session_id, "source": "evalpipe_jsonl", "reader_version": "1", "file_id": "f", "agent": "acme",
            "n_models": 1, "user_id": "u1", "workspace": "w1", "started_at": START, "ended_at": START + timedelta(hours=1),
            "is_dated": True, "is_clock_repaired": False, "n_turns": 0, "n_steps": 0, "n_tool_calls": 0, "n_messages": 0,
        } | session  # fmt: skip
        self.steps: list[dict[str, Any]] = []
        self.turn = 0

    def _add(self, kind: str, origin: str, **more: Any) -> Talk:
        seq = len(self.steps)
        self.steps.append(
            {"session_id": self.session["session_id"], "seq": seq, "step_id": str(seq), "turn": self.turn, "kind": kind,
             "origin": origin} | more
        )  # fmt: skip
        return self

    def user(self, text: str | None, origin: str = "human", **more: Any) -> Talk:
        self.turn += origin in ("human", "queued")
        return self._add("user", origin, text=text, **more)

    def agent(self, text: str | None, **more: Any) -> Talk:
        return self._add("agent", "agent", text=text, **more)

    def tool(self, name: str, output: str | None = "", **more: Any) -> Talk:
        if "command" in more:
            more["arguments"] = json.dumps({"command": more.pop("command")})
        return self._add("tool", "tool", name=name, output=output, **more)

    def bash(self, command: str, output: str = "", exit_code: int | None = 0, **more: Any) -> Talk:
        return self.tool("Bash", output, command=command, exit_code=exit_code, **more)


def frames(*talks: Talk) -> tuple[pl.DataFrame, pl.DataFrame]:
    sessions = frame(masked.SESSIONS, [talk.session for talk in talks])
    return sessions, frame(masked.STEPS, [step for talk in talks for step in talk.steps])


def criteria(**outcomes: Any) -> Criteria:
    with (data_dir() / "criteria" / "default.toml").open("rb") as stream:
        data = tomllib.load(stream)
    listed = {key: tuple(value) for key, value in data["estimand"].items() if isinstance(value, list)}
    rules = data["outcomes"] | {"compare_by": tuple(data["outcomes"]["compare_by"])} | outcomes
    return Criteria(
        data["name"], data["version"], data["description"], MaskingCriteria(**data["masking"]), EXTRACTION,
        OutcomesCriteria(**rules), EstimandCriteria(**(data["estimand"] | listed)), (), "x",
    )  # fmt: skip


def later(*rows: tuple[str | None, str | None, str, datetime]) -> pl.DataFrame:
    schema = {
        "user_id": pl.String,
        "workspace": pl.String,
        "session_id": pl.String,
        "started_at": pl.Datetime("us", "UTC"),
    }
    return pl.DataFrame(list(rows), schema=schema, orient="row")
