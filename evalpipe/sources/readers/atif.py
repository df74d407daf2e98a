"""ATIF, the Agent Trajectory Interchange Format 1.0 to 1.8: one JSON document a trajectory.

Belongs here: its steps, observations, metrics and references to sub-agents.

Mapping: ``session_id`` (from 1.7 ``trajectory_id``, since runs share the former) is the id;
``agent.name``, ``version``, ``model_name`` are agent, release, model, and a step may name another
model. A system message at the start is the prompt's version. Steps marked ``is_copied_context``
repeat another trajectory and are not steps of this one. Embedded sub-agents are child steps of the
call that refers to them; one in a file of its own is a session whose parent it names. After a
context summary the next user message was written by the harness: ``compaction``. Prompt tokens
include cached ones. Totals are taken only where no step has metrics, since they hold the tokens of
sub-agents that lie in other files.
"""

from __future__ import annotations

import re
from dataclasses import replace

from evalpipe.sources.readers.agent_text import calls_in, exit_code_in
from evalpipe.sources.readers.base import (
    BAD_FIELD,
    NOT_A_RECORD,
    Record,
    RowParser,
    block_text,
    digest_of,
    json_readers,
    json_text,
    row_reader,
)
from evalpipe.sources.readers.chat_rows import tool_names
from evalpipe.sources.readers.harbor import trial_name
from evalpipe.sources.readers.openai_messages import version_of
from evalpipe.sources.readers.usage import put_usage
from evalpipe.sources.readers.values import add_cost, cost_of
from evalpipe.sources.session import (
    ERROR,
    EXIT_CODE,
    INPUT,
    KIND,
    MODEL,
    ORIGIN,
    OUTPUT,
    OUTPUT_TOKENS,
    STEP_ID,
    TEXT,
    Row,
    Session,
    agent_row,
    count,
    text_or_none,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

SOURCE = "atif"

_VERSION = re.compile(r"ATIF-v(\d{1,3})\.(\d{1,3})")

#: A sub-agent may start sub-agents; deeper than this is no trajectory.
_MAX_DEPTH = 20


class AtifParser(RowParser):
    """Parser of one file, which holds one trajectory or many."""

    def read(self, record: Record) -> Session | str:
        """Take one trajectory."""
        steps = record.get("steps")
        if not _recognise(record):
            return NOT_A_RECORD
        if type(steps) is not list or not all(type(step) is dict for step in steps):
            return BAD_FIELD
        own, run = _key(record), None
        if own and _is_continued(record, steps):
            # From 1.7 on the documents of one run may share its id.
            run, own = (
                own,
                f"{own}/{digest_of(next((s for s in steps if s.get('is_copied_context') is not True), None))}",
            )
        agent = _object(record.get("agent"))
        session = Session(SOURCE, own or digest_of(record), text_or_none(agent.get("name")) or SOURCE)
        session.agent_release = text_or_none(agent.get("version"))
        session.model = text_or_none(agent.get("model_name"))
        session.tools = tool_names(agent.get("tool_definitions"))
        above = self.context.above
        if self.context.stem == "trajectory" and above[-1:] == ("agent",):
            # Harbor keeps it below the folder of the trial, beside the trajectories of summaries.
            session.trial_name = trial_name(above[-2] if len(above) > 1 else None)
        starter = _parent(record, agent)
        parent = starter or run
        session.parent_session_id = f"{SOURCE}:{parent}" if parent else None
        walk = _Walk(session, record, "meta" if starter else "human")
        walk.add(steps, "", None)
        walk.rest()
        _totals(session, record)
        return session


class _Walk:
    """Appends the steps of a trajectory and of those embedded in it."""

    def __init__(self, session: Session, record: Record, origin: str) -> None:
        self.session = session
        self._origin = origin
        self._embedded = _embedded(record)
        self._depth = 0
        self._is_text_only = False

    def add(self, steps: list[Record], prefix: str, parent: str | None, model: str | None = None) -> None:
        """Append steps; ``prefix`` tells those of a sub-agent apart, ``parent`` is the call that started it."""
        is_summed = False
        self._is_text_only = not any(step.get("tool_calls") for step in steps)
        for position, step in enumerate(steps):
            text = block_text(step.get("message")) or None
            source = step.get("source")
            was_summed, is_summed = is_summed, source == "system" and "summariz" in (text or "").lower()
            if step.get("is_copied_context") is True:
                continue
            at = normal_time(step.get("timestamp"))
            if at is not None:
                self.session.see(at)
            number = step.get("step_id")
            step_id = f"{prefix}{number if type(number) in (int, str) else position + 1}"
            rows: list[Row] = []
            if source == "agent":
                rows = self._agent(step, step_id, text, at, parent, model or self.session.model)
            elif source == "user":
                # After a summary the harness hands over to itself; a sub-agent's user is the agent.
                origin = "compaction" if was_summed else self._origin if parent is None else "meta"
                self._say(user_row(step_id, origin, text, at, parent))
            elif source == "system":
                self._system(step_id, text, at, parent, position)
            self._observe(step, step_id, rows, at, parent)
            self.session.n_messages += 1

    def rest(self) -> None:
        """Append embedded trajectories that no observation refers to."""
        while self._embedded:
            key = next(iter(self._embedded))
            self._child(self._embedded.pop(key), key, key)

    def _say(self, row: Row) -> None:
        if row[TEXT]:
            self.session.rows.append(row)

    def _system(self, step_id: str, text: str | None, at: str | None, parent: str | None, position: int) -> None:
        if position == 0 and text:
            if parent is None:
                self.session.prompt_version = version_of(text)
            return
        row = user_row(step_id, "system", text, at, parent)
        row[KIND] = "system"
        self._say(row)

    def _agent(
        self, step: Record, step_id: str, text: str | None, at: str | None, parent: str | None, model: str | None
    ) -> list[Row]:
        row = agent_row(step_id, text, at, text_or_none(step.get("model_name")) or model, parent)
        if step.get("llm_call_count") == 0:
            # Written by the harness in the agent's name.
            row[ORIGIN], row[MODEL] = "synthetic", None
        metrics = _object(step.get("metrics"))
        put_usage(row, metrics)
        add_cost(self.session, metrics.get("cost_usd"), row)
        if text or metrics:
            self.session.rows.append(row)
        calls = [c for c in _list(step.get("tool_calls")) if type(c) is dict]
        rows = [self._call(c, f"{step_id}.{n}", at, parent) for n, c in enumerate(calls)]
        if self._is_text_only and text and (results := _results(step)):
            # Agents whose model gets no tools write their calls into the text.
            found = calls_in(text, block_text(results[0].get("content")) or "")
            rows = [tool_row(f"{step_id}.{n}", *call, at, parent) for n, call in enumerate(found)]
        self.session.rows += rows
        return rows

    @staticmethod
    def _call(call: Record, position: str, at: str | None, parent: str | None) -> Row:
        call_id = text_or_none(call.get("tool_call_id")) or position
        name = text_or_none(call.get("function_name")) or "unknown"
        return tool_row(call_id, name, json_text(call.get("arguments")), at, parent)

    def _observe(self, step: Record, step_id: str, rows: list[Row], at: str | None, parent: str | None) -> None:
        """Put results to their calls; a single one without an id answers all calls of the step together."""
        results = _results(step)
        by_id = {row[STEP_ID]: row for row in rows}
        waiting = list(rows)
        for n, result in enumerate(results):
            call_id = text_or_none(result.get("source_call_id"))
            row = by_id.get(call_id) if call_id else None
            if row is None and call_id is None and waiting:
                row = waiting[-1] if len(results) == 1 else waiting[0]
                waiting = [] if len(results) == 1 else waiting
            output = block_text(result.get("content"))
            if row is None and output is not None:
                row = tool_row(call_id or f"{step_id}.result{n}", None, None, None, parent)
                self.session.rows.append(row)
            if row is not None:
                waiting = [other for other in waiting if other is not row]
                row[OUTPUT] = output
                row[EXIT_CODE] = exit_code_in(output) if output else None
            self._children(result, step_id if row is None else row[STEP_ID])
        for row in waiting:
            row[ERROR] = "no_result"

    def _children(self, result: Record, parent: str) -> None:
        for reference in _list(result.get("subagent_trajectory_ref")):
            key = _key(_object(reference))
            child = self._embedded.pop(key, None) if key else None
            if child is not None:
                self._child(child, key or "", parent)

    def _child(self, child: Record, key: str, parent: str) -> None:
        if self._depth == _MAX_DEPTH:
            return
        self._depth += 1
        is_text_only = self._is_text_only
        self._embedded |= _embedded(child)
        steps = [step for step in _list(child.get("steps")) if type(step) is dict]
        self.add(steps, f"{key}.", parent, text_or_none(_object(child.get("agent")).get("model_name")))
        self._is_text_only = is_text_only
        self._depth -= 1


def _totals(session: Session, record: Record) -> None:
    totals = _object(record.get("final_metrics"))
    if session.cost_usd is None:
        session.cost_usd = cost_of(totals.get("total_cost_usd"))
    elif session.lacks_cost:
        session.cost_usd = None
    if all(row[INPUT] is None and row[OUTPUT_TOKENS] is None for row in session.rows):
        prompt, cached = count(totals.get("total_prompt_tokens")), count(totals.get("total_cached_tokens"))
        uncached = None if prompt is None else max(0, prompt - (cached or 0))
        session.stated_tokens = (uncached, count(totals.get("total_completion_tokens")), cached, None, None)


def _is_continued(record: Record, steps: list[Record]) -> bool:
    """Whether the document goes on where another of the same run ended, and has no id of its own."""
    version = _VERSION.match(record["schema_version"])
    is_shared = version is not None and (int(version[1]), int(version[2])) >= (1, 7)
    is_named = text_or_none(record.get("trajectory_id")) is not None
    return is_shared and not is_named and any(step.get("is_copied_context") is True for step in steps)


def _results(step: Record) -> list[Record]:
    return [r for r in _list(_object(step.get("observation")).get("results")) if type(r) is dict]


def _parent(record: Record, agent: Record) -> str | None:
    for place in (_object(agent.get("extra")), _object(record.get("extra")), record):
        for name in ("parent_trajectory_id", "parent_session_id"):
            if found := text_or_none(place.get(name)):
                return found
    return None


def _embedded(record: Record) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for n, child in enumerate(_list(record.get("subagent_trajectories"))):
        if type(child) is dict:
            found[_key(child) or f"subagent{n}"] = child
    return found


def _key(trajectory: Record) -> str | None:
    return text_or_none(trajectory.get("trajectory_id")) or text_or_none(trajectory.get("session_id"))


def _object(value: object) -> Record:
    return value if type(value) is dict else {}


def _list(value: object) -> list[object]:
    return value if type(value) is list else []


def _recognise(record: Record) -> bool:
    version = record.get("schema_version")
    if type(version) is str and version.startswith("ATIF"):
        return "steps" in record or "agent" in record
    return False


READERS = json_readers(replace(row_reader(SOURCE, _recognise, AtifParser), version="2"))
