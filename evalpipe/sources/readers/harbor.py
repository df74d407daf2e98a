"""Harbor: rows of exported traces, and the result file of a trial.

Belongs here: both shapes. Trajectories themselves are ATIF (``atif.py``).

A trace row is the conversation up to one episode, so the rows of a trial repeat each other: they
share an id, and the longest counts. Agent, model, task are the row's; a ``result`` that is a number
is the reward, one that is a name is the exception that ended the trial. Only what stands before the
agent's first message was typed; later user messages are what its commands gave. A result file has
no steps: it is the outcome of a trial, with its tokens, cost and times. A trial that broke before
or beside the agent has no success, and ends in error.
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
    digest_of,
    json_readers,
    row_reader,
)
from evalpipe.sources.readers.chat_rows import tool_names
from evalpipe.sources.readers.openai_messages import is_message_list, version_of
from evalpipe.sources.readers.tau_bench import success
from evalpipe.sources.session import (
    EXIT_CODE,
    ORIGIN,
    OUTPUT,
    Row,
    Session,
    agent_row,
    count,
    number_or_none,
    text_or_none,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

TRACES, TRIALS = "harbor_traces", "harbor_trials"

#: Exceptions by which the agent used up its time; every other one is Harbor's or the environment's.
_TIMEOUTS = frozenset({"AgentTimeoutError", "TimeoutError"})
#: How Harbor names a trial: its task, and letters made at random.
_TRIAL_NAME = re.compile(r"__[0-9A-Za-z]{7}$")
_AGENT_ERRORS = frozenset({"NonZeroAgentExitCodeError", "ContextLengthExceededError", "OutputLengthExceededError"})


class TracesParser(RowParser):
    """Parser of one file of trace rows."""

    def read(self, record: Record) -> Session | str:
        """Take the conversation of one episode."""
        messages = record.get("conversations")
        if messages is None:
            return NOT_A_RECORD
        if not is_message_list(messages):
            return BAD_FIELD
        trial = text_or_none(record.get("trial_name")) or text_or_none(record.get("run_id"))
        run = text_or_none(record.get("run_id"))
        agent = text_or_none(record.get("agent"))
        model = _named(record.get("model"), record.get("model_provider"))
        key = [record.get("task"), run, trial, agent, model]
        # Without a trial's name, what was asked tells trials of one task apart only by their answers.
        session_id = f"{trial or record.get('task')}/{digest_of(key if trial else messages)}"
        session = Session(TRACES, session_id, agent or TRACES)
        session.model, session.harness = model, "harbor"
        session.task_id = text_or_none(record.get("task"))
        session.tools = tool_names(record.get("tool_definitions"))
        _outcome(session, record.get("result"))
        if (at := normal_time(record.get("date"))) is not None:
            session.see(at)
        _add(session, messages)
        return session


def _add(session: Session, messages: list[Record]) -> None:
    open_rows: list[Row] = []
    first = next((n for n, m in enumerate(messages) if m["role"] == "assistant"), len(messages))
    for position, message in enumerate(messages):
        text = text_or_none(message.get("content"))
        session.n_messages += 1
        if not text:
            continue
        if message["role"] == "assistant":
            session.rows.append(agent_row(str(position), text, None, session.model))
            after = text_or_none(messages[position + 1].get("content")) if position + 1 < len(messages) else None
            open_rows = [tool_row(f"{position}.{n}", *call, None) for n, call in enumerate(calls_in(text, after or ""))]
            session.rows += open_rows
        elif message["role"] in ("user", "tool") and position > first:
            row = open_rows[-1] if open_rows else tool_row(str(position), None, None, None)
            if not open_rows:
                session.rows.append(row)
            row[OUTPUT], row[EXIT_CODE] = text, exit_code_in(text)
            open_rows = []
        elif message["role"] == "system" or (position == 0 < first - 1 and text.startswith("You are ")):
            # Several messages before the agent's first: the prompt, the task, and what the harness adds.
            session.prompt_version = version_of(text)
        elif message["role"] == "user":
            is_asked = any(row[ORIGIN] == "human" for row in session.rows)
            session.rows.append(user_row(str(position), "injected" if is_asked else "human", text, None))


class TrialsParser(RowParser):
    """Parser of one result file."""

    def read(self, record: Record) -> Session | str:
        """Take one trial."""
        if not _is_trial(record):
            return NOT_A_RECORD
        info = _object(record.get("agent_info"))
        session = Session(TRIALS, _trial_id(record), text_or_none(info.get("name")) or TRIALS)
        model = _object(info.get("model_info"))
        session.model = _named(model.get("name"), model.get("provider"))
        session.agent_release, session.harness = text_or_none(info.get("version")), "harbor"
        session.task_id = text_or_none(record.get("task_name"))
        session.trial_name = trial_name(record.get("trial_name"))
        session.scenario = text_or_none(record.get("source"))
        spent = _object(record.get("agent_result"))
        total, cached = count(spent.get("n_input_tokens")), count(spent.get("n_cache_tokens"))
        uncached = None if total is None else max(0, total - (cached or 0))
        session.stated_tokens = (uncached, count(spent.get("n_output_tokens")), cached, None, None)
        cost = number_or_none(spent.get("cost_usd"))
        session.cost_usd = cost if cost is not None and cost >= 0 else None
        rewards = _object(_object(record.get("verifier_result")).get("rewards"))
        exception = _object(record.get("exception_info")).get("exception_type")
        _outcome(session, exception)
        if rewards:
            # Of several, one may count tests or seconds.
            alone = next(iter(rewards.values())) if len(rewards) == 1 else None
            session.reward = number_or_none(rewards.get("reward", alone))
            is_blameless = session.end_status == "error" and session.is_success is None
            is_solved = _solved(session.reward)
            session.is_success = None if is_blameless and not is_solved else is_solved
        for name in ("started_at", "finished_at"):
            if (at := normal_time(record.get(name))) is not None:
                session.see(at)
        return session


def _solved(reward: float | None) -> bool | None:
    """Whether a reward is full marks; one beyond 0 to 1 is no share of the task."""
    return success(reward) if reward is not None and 0 <= reward <= 1 else None


def _outcome(session: Session, result: object) -> None:
    """A reward, or the name of the exception that ended the trial."""
    reward = number_or_none(result)
    if reward is None and type(result) is str:
        try:
            reward = number_or_none(float(result))
        except ValueError:
            session.end_status = "timeout" if result in _TIMEOUTS else "error"
            session.is_success = False if result in _TIMEOUTS or result in _AGENT_ERRORS else None
            return
    session.reward = reward
    session.is_success = _solved(reward)


def _trial_id(record: Record) -> str:
    return text_or_none(record.get("id")) or digest_of([record.get("trial_name"), record.get("started_at")])


def trial_name(name: object) -> str | None:
    """A name that Harbor gave a trial, if it is one that no other trial has."""
    return name if type(name) is str and _TRIAL_NAME.search(name) else None


def _named(model: object, provider: object) -> str | None:
    """The model's name as trajectories of the same run write it: with its provider before it."""
    if type(model) is not str:
        return None
    return model if "/" in model or type(provider) is not str or not provider else f"{provider}/{model}"


def _object(value: object) -> Record:
    return value if type(value) is dict else {}


def _is_trace(record: Record) -> bool:
    messages = record.get("conversations")
    first = messages[0] if type(messages) is list and messages else None
    return type(first) is dict and "role" in first and "from" not in first


def _is_trial(record: Record) -> bool:
    return "task_name" in record and "trial_name" in record and ("agent_info" in record or "task_checksum" in record)


READERS = (
    *json_readers(replace(row_reader(TRIALS, _is_trial, TrialsParser), version="2")),
    *json_readers(replace(row_reader(TRACES, _is_trace, TracesParser), version="2")),
)
