"""One session while it is read, and what is known of it when it is whole.

Belongs here: the row layout that readers fill, and everything that is computed from the rows in the
same way for all formats (turns, sums, model, digest, dates). Does not belong here: any format.

Rows are plain lists, one slot a column, because reading must keep up with the JSON parser: dicts,
objects and per-value conversion each cost more than the parse itself.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from evalpipe.sources.times import parse_time

#: One step: a list with these slots. ``raw.steps`` without day, session_id and seq.
Row = list[Any]

SLOTS = (
    "step_id", "parent_id", "turn", "kind", "origin", "name", "text", "arguments", "output", "exit_code",
    "is_error", "error", "started_at", "ended_at", "first_token_ms", "model",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "cache_write_1h_tokens",
)  # fmt: skip
(
    STEP_ID, PARENT, TURN, KIND, ORIGIN, NAME, TEXT, ARGUMENTS, OUTPUT, EXIT_CODE,
    IS_ERROR, ERROR, START, END, FIRST_TOKEN, MODEL,
    INPUT, OUTPUT_TOKENS, CACHE_READ, CACHE_WRITE, REASONING, CACHE_WRITE_1H,
) = range(len(SLOTS))  # fmt: skip

#: Text written by a person: each opens a turn.
PERSON = frozenset({"human", "queued"})

_MAX_COUNT = 2**53
#: Kinds of tokens that sessions sum up: the first slots behind the model.
_N_SUMMED = REASONING + 1 - INPUT


def user_row(step_id: str, origin: str, text: str | None, at: str | None, parent: str | None = None) -> Row:
    """A step for text that stands in a user message."""
    head = [step_id, parent, 0, "user", origin, None, text, None, None, None, None, None]
    return [*head, at, at, None, None, None, None, None, None, None, None]


def agent_row(step_id: str, text: str | None, at: str | None, model: str | None, parent: str | None = None) -> Row:
    """A step for one response of the agent."""
    head = [step_id, parent, 0, "agent", "agent", None, text, None, None, None, None, None]
    return [*head, at, at, None, model, None, None, None, None, None, None]


def tool_row(step_id: str, name: str | None, arguments: str | None, at: str | None, parent: str | None = None) -> Row:
    """A step for one tool call; its result is put in when it comes."""
    head = [step_id, parent, 0, "tool", "tool", name, None, arguments, None, None, None, None]
    return [*head, at, None, None, None, None, None, None, None, None, None]


def count(value: object) -> int | None:
    """A count as logged, or ``None`` where it is not a whole number that fits."""
    if type(value) is int and 0 <= value < _MAX_COUNT:
        return value
    if type(value) is float and value.is_integer() and 0 <= value < _MAX_COUNT:
        return int(value)
    return None


def small_count(value: object) -> int | None:
    """A count that fits 32 bits, or ``None``."""
    return exit_code(count(value))


def exit_code(value: object) -> int | None:
    """An exit code as logged, or ``None`` where it is not a 32-bit number."""
    return value if type(value) is int and -(2**31) <= value < 2**31 else None


def text_or_none(value: object) -> str | None:
    """The value if it is text."""
    return value if type(value) is str else None


def number_or_none(value: object) -> float | None:
    """The value as a finite float if it is a number."""
    if type(value) is int or type(value) is float:
        as_float = float(value)
        return as_float if abs(as_float) < float("inf") else None
    return None


class TraceText(NamedTuple):
    """The spans of a session: as text, the traces they are of, and what tells each of them (see ``span_text.py``)."""

    text: str
    traces: list[str]
    keys: list[int]
    began: list[int | None]
    is_ended: list[bool]


class Session:
    """A session being read. Readers set the fields that their format states and append rows."""

    def __init__(self, source: str, session_id: str, agent: str) -> None:
        self.session_id = f"{source}:{session_id}"
        self.agent = agent
        self.agent_release: str | None = None
        self.model: str | None = None
        self.user_id: str | None = None
        self.tenant: str | None = None
        self.workspace: str | None = None
        self.parent_session_id: str | None = None
        self.end_status: str | None = None
        self.scenario: str | None = None
        self.task_id: str | None = None
        self.trial: int | None = None
        self.reward: float | None = None
        self.is_success: bool | None = None
        self.harness: str | None = None
        self.tools: list[str] | None = None
        self.prompt_version: str | None = None
        self.retrieval_version: str | None = None
        self.assignment_policy: str | None = None
        self.assignment_unit: str | None = None
        self.assignment_probability: float | None = None
        self.routing_epoch: str | None = None
        self.consent: str | None = None
        self.cost_usd: float | None = None
        #: Whether a response has tokens and no cost.
        self.lacks_cost = False
        #: Totals that the log states itself; ``None`` to add up the steps.
        self.stated_tokens: tuple[int | None, ...] | None = None
        self.n_messages = 0
        self.n_records = 0
        self.rows: list[Row] = []
        #: Of a trace: its spans, so that a part in another file can be joined to it; else ``None``.
        self.trace: TraceText | None = None
        #: Of a trial its name in the harness, where that is made at random: its result file says it too.
        self.trial_name: str | None = None
        #: First and greatest time, as ISO text of one layout.
        self.first_at = ""
        self.greatest_at = ""

    def see(self, at: str) -> None:
        """Note the time of the next record in the log."""
        if at > self.greatest_at:
            self.first_at = self.first_at or at
            self.greatest_at = at

    def dates(self, undated_day: date) -> tuple[datetime, datetime, bool]:
        """(start, end, is_dated). An undated session starts at midnight of the assigned day."""
        start = parse_time(self.first_at) if self.first_at else None
        end = parse_time(self.greatest_at) if self.greatest_at else None
        if start is None or end is None:
            times = [t for row in self.rows for v in (row[START], row[END]) if v and (t := parse_time(v))]
            if not times:
                midnight = datetime(undated_day.year, undated_day.month, undated_day.day, tzinfo=UTC)
                return midnight, midnight, False
            start, end = times[0], max(times)
        return start, max(start, end), True


def summarise(session: Session) -> dict[str, Any]:
    """Number the turns in place, and return what follows from the rows.

    Returns:
        model, n_models, n_turns, n_tool_calls, the five token sums, content_digest, text_bytes, and
        is_clock_repaired.
    """
    turn = n_calls = 0
    answered: dict[str, int] = {}
    last_answer: dict[str, int] = {}
    texts: list[str] = []
    usages: list[list[int | None]] = []
    for row in session.rows:
        (
            _, parent, _, kind, origin, name, text, arguments, output, _, _, _, _, _, _, model,
            *counts,
        ) = row  # fmt: skip
        if kind == "tool":
            if arguments:
                texts.append(arguments)
            if output:
                texts.append(output)
            if name is not None:
                n_calls += 1
        elif kind == "agent":
            usages.append(counts[:_N_SUMMED])
        elif parent is None and origin in PERSON:
            turn += 1
        row[TURN] = turn
        # A model is credited once a turn, and sub-agents never: they run beside the agent.
        if model is not None and parent is None and last_answer.get(model) != turn:
            last_answer[model] = turn
            answered[model] = answered.get(model, 0) + 1
        if text:
            texts.append(text)
    ranked = sorted(answered.items(), key=lambda item: (-item[1], item[0]))
    content = _content(texts)
    digest = hashlib.blake2b(content, digest_size=16)
    digest.update(f"{session.session_id}|{len(session.rows)}|{session.first_at}|{session.greatest_at}".encode())
    return {
        "model": session.model or (ranked[0][0] if ranked else None),
        "n_models": max(len(ranked), int(session.model is not None)),
        "n_turns": turn,
        "n_tool_calls": n_calls,
        "tokens": session.stated_tokens or _sums(usages),
        "content_digest": digest.hexdigest(),
        "text_bytes": len(content),
        "is_clock_repaired": is_clock_repaired(session),
    }


def _content(texts: list[str]) -> bytes:
    # Joined as text only where that is cheap: one wide character would widen all of it.
    if all(map(str.isascii, texts)):
        return "\x1e".join(texts).encode()
    return b"\x1e".join(map(str.encode, texts))


def _sums(usages: list[list[int | None]]) -> tuple[int | None, ...]:
    """Sum of each kind of tokens; ``None`` for a kind that no step states."""
    if not usages:
        return (None,) * 5
    stated = ([value for value in kind if value is not None] for kind in zip(*usages, strict=True))
    return tuple(sum(values) if values else None for values in stated)


def is_clock_repaired(session: Session) -> bool:
    """Whether a step starts before the session, its turn or its parent, or ends before it starts.

    Calls that overlap are logged in any order: that is no fault of the clock.
    """
    turn_at = session.first_at
    children: list[Row] = []
    for row in session.rows:
        start = row[START]
        if start is None:
            continue
        if start < turn_at or (row[END] or start) < start:
            return True
        if row[PARENT] is not None:
            children.append(row)
        elif row[ORIGIN] in PERSON:
            turn_at = start
    if not children:
        return False
    starts = {row[STEP_ID]: row[START] for row in session.rows if row[START] is not None}
    return any(row[START] < starts.get(row[PARENT], "") for row in children)
