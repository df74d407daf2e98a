"""Writes composed sessions as evalpipe JSONL (docs/evalpipe-jsonl.md).

Belongs here: the lines of one session with their times, and the interleaving of several. Does not belong
here: what happens in a session, or where files go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import orjson

from evalpipe.simulate.calls import Call
from evalpipe.simulate.clock import Clock
from evalpipe.simulate.script import Job, Turn
from evalpipe.simulate.text import Draw

Line = tuple[int, bytes]

_POLICY = {"session": "ab-session", "user": "ab-sticky"}
_TOOLS = ["Bash", "Edit", "Glob", "Grep", "Read", "WebFetch", "WebSearch", "Write"]


def session_lines(job: Job, turns: list[Turn], clock: Clock, draw: Draw, release: str) -> list[Line]:
    """The lines of one session as (time in ms, JSON without newline), in order."""
    writer = _Writer(job.session_id, clock, draw)
    writer.add(job.start_ms, _head(job, clock, release))
    for turn in turns:
        writer.message(turn.at, turn.text)
        for number, response in enumerate(turn.responses):
            writer.agent(response.at, response.text, response.model)
            for call in sorted(response.calls, key=lambda c: c.end):
                writer.call(call)
            if number == 0 and turn.queued is not None:
                at = max([response.at, *(call.end for call in response.calls)])
                writer.message(at, turn.queued, origin="queued")
        if turn.interrupted_at is not None:
            writer.message(turn.interrupted_at, "[Request interrupted by user]", origin="interrupt")
    end = writer.lines[-1][0]
    cost = round(writer.tokens * 4.0e-6, 6)
    writer.add(end, {"type": "end", "session_id": job.session_id, "at": clock.iso(end), "cost_usd": cost})
    return writer.lines


def interleave(sessions: Iterable[list[Line]]) -> Iterator[bytes]:
    """The lines of several sessions by time, each session's own order kept."""
    merged: list[Line] = []
    for lines in sessions:
        latest = 0
        for at, line in lines:
            latest = max(latest, at)
            merged.append((latest, line))
    merged.sort(key=itemgetter(0))  # stable: equal times keep their order
    return (line for _, line in merged)


def _head(job: Job, clock: Clock, release: str) -> dict[str, Any]:
    head = {
        "evalpipe": 1,
        "type": "session",
        "session_id": job.session_id,
        "agent": "claude-code",
        "agent_release": release,
        "model": job.models[0],
        "user_id": job.user_id,
        "tenant": job.tenant,
        "workspace": job.cwd,
        "started_at": clock.iso(job.start_ms),
        "harness": "acme-runtime",
        "tools": _TOOLS,
        "prompt_version": "p7",
        "assignment": {
            "policy": _POLICY[job.unit],
            "unit": job.unit,
            "probability": round(job.probability, 9),
            "epoch": job.epoch,
        },
        "consent": "contract",
    }
    if job.declared is not None:
        head["scenario"] = job.declared
    return head


class _Writer:
    __slots__ = ("_clock", "_context", "_draw", "_number", "_session_id", "lines", "tokens")

    def __init__(self, session_id: str, clock: Clock, draw: Draw) -> None:
        self._session_id, self._clock, self._draw = session_id, clock, draw
        self._number, self._context = 0, 9_000
        self.lines: list[Line] = []
        self.tokens = 0

    def add(self, at: int, row: dict[str, Any]) -> None:
        """One line."""
        self.lines.append((at, orjson.dumps(row)))

    def _step(self, kind: str) -> dict[str, Any]:
        self._number += 1
        return {"type": "step", "session_id": self._session_id, "step_id": str(self._number), "kind": kind}

    def message(self, at: int, text: str, *, origin: str | None = None) -> None:
        """What a person said, or a harness in a person's name."""
        row = self._step("user")
        if origin is not None:
            row["origin"] = origin
        row["text"] = text
        row["at"] = self._clock.iso(at)
        self.add(at, row)

    def agent(self, at: int, text: str | None, model: str) -> None:
        """One model response."""
        output = 30 + (len(text) // 4 if text else 0) + self._draw.below(120)
        written = 300 + self._draw.below(1_500)
        row = self._step("agent")
        row["text"] = text
        row["model"] = model
        row["at"] = self._clock.iso(at)
        row["tokens"] = {
            "input": 3,
            "output": output,
            "cache_read": self._context,
            "cache_write": written,
            "reasoning": 0,
        }
        self._context += written
        self.tokens += output + written
        self.add(at, row)

    def call(self, call: Call) -> None:
        """One tool call with its result."""
        row = self._step("tool")
        row["name"] = call.name
        row["arguments"] = call.arguments
        row["output"] = None if call.error else call.output
        row["exit_code"] = call.exit_code
        row["is_error"] = call.is_failed
        row["error"] = call.error
        if call.error == "refused":
            row["text"] = call.reason
        row["started_at"] = self._clock.iso(call.start)
        row["ended_at"] = self._clock.iso(call.end)
        self.add(call.end, row)
