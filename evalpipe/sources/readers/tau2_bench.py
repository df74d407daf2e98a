"""tau2-bench results: an object with header and simulations, a bare list of simulations, or one
simulation a line with the run's header folded in under ``_config``.

Belongs here: the fields around the messages. Times are local without a zone and are taken for UTC.
The agent is the implementation named in the header and the model its language model, so that two
systems over the same model stay apart. Headers can be wrong at the source; they are not corrected.
"""

from __future__ import annotations

import re
from dataclasses import replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    word_of,
)
from evalpipe.sources.readers.openai_messages import add_messages, content_key, is_message_list
from evalpipe.sources.readers.tau_bench import DOMAINS, success
from evalpipe.sources.session import Session, number_or_none, small_count, text_or_none
from evalpipe.sources.times import normal_time

SOURCE = "tau2_bench"

_END_STATUS = {
    "user_stop": "completed",
    "agent_stop": "completed",
    "max_steps": "timeout",
    "timeout": "timeout",
    "too_many_errors": "error",
    "agent_error": "error",
    "user_error": "error",
    "infrastructure_error": "error",
}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)


class Tau2Parser(Parser):
    """Parser of one results file, in any of the three layouts."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._agent = "tau2_bench"
        self._model: str | None = None
        self._domain = next((d for d in DOMAINS if d in context.stem.lower()), None)

    def header(self, value: Record) -> None:
        """Take ``info`` of a results file."""
        agent = value.get("agent_info")
        if type(agent) is dict:
            self._agent = text_or_none(agent.get("implementation")) or self._agent
            self._model = text_or_none(agent.get("llm"))
        environment = value.get("environment_info")
        if type(environment) is dict:
            self._domain = text_or_none(environment.get("domain_name")) or self._domain

    def feed(self, record: Record) -> str:
        """Take one simulation."""
        messages = record.get("messages")
        if messages is None or ("reward_info" not in record and "termination_reason" not in record):
            return NOT_A_RECORD
        if not is_message_list(messages):
            return BAD_FIELD
        config = record.get("_config")
        if type(config) is dict:
            self._agent = text_or_none(config.get("agent_impl")) or "tau2_bench"
            self._model = text_or_none(config.get("agent_model"))
            self._domain = text_or_none(config.get("domain"))
        task, trial = record.get("task_id"), small_count(record.get("trial"))
        session_id = record.get("id")
        if type(session_id) is not str or not _UUID.fullmatch(session_id):
            # Not unique beyond its run, so what was said makes it so.
            session_id = (
                f"{word_of(session_id)}/{word_of(task)}/{0 if trial is None else trial}/{content_key(messages)}"
            )
        session = Session(SOURCE, session_id, self._agent)
        session.model, session.scenario, session.harness = self._model, self._domain, SOURCE
        session.task_id = str(task) if type(task) in (int, str) else None
        session.trial = trial
        _outcome(record, session)
        if (start := normal_time(record.get("start_time"))) is not None:
            session.see(start)
        add_messages(session, messages)
        if (end := normal_time(record.get("end_time"))) is not None:
            session.greatest_at = max(session.greatest_at, end)
        session.n_records = 1
        self.sessions[session_id] = session
        self.current = session
        return KEPT


def _outcome(record: Record, session: Session) -> None:
    reward = record.get("reward_info")
    session.reward = number_or_none(reward.get("reward")) if type(reward) is dict else None
    session.is_success = success(session.reward)
    reason = record.get("termination_reason")
    session.end_status = _END_STATUS.get(reason) if type(reason) is str else None
    cost = number_or_none(record.get("agent_cost"))
    session.cost_usd = cost if cost is not None and cost >= 0 else None


def _hint(head: bytes) -> bool:
    start = head.lstrip()[:1]
    if start == b"{":
        is_header = b'"info"' in head and (b'"agent_info"' in head or b'"num_trials"' in head)
        return is_header or b'"simulations"' in head
    return start == b"[" and b'"messages"' in head and (b'"reward_info"' in head or b'"termination_reason"' in head)


READER = Reader(
    name=SOURCE,
    version="2",
    shape="items",
    recognise=lambda _: False,
    hint=_hint,
    parser=Tau2Parser,
    lists=frozenset({"simulations"}),
    header_key="info",
    is_one_record_a_session=True,
)

LINES_READER = replace(
    READER,
    shape="lines",
    recognise=lambda record: "messages" in record and "reward_info" in record,
    hint=lambda head: b'"reward_info"' in head and b'"messages"' in head,
)
