"""tau-bench (v1) results: one JSON array, one object a session.

Belongs here: the fields around the messages. The format has no times, so sessions are undated, and
it names neither the agent's model nor the domain: the model is inferred from the file's name
(``gpt-4o-airline.json``), the domain from the policy's heading, else likewise from the name.
"""

from __future__ import annotations

import re

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOT_A_RECORD, FileContext, Parser, Reader, Record
from evalpipe.sources.readers.openai_messages import add_messages, content_key, is_message_list
from evalpipe.sources.session import Session, number_or_none, small_count

SOURCE = "tau_bench"

#: A reward this close to 1 is full marks; rewards are products of floats.
FULL_MARKS = 1 - 1e-6

DOMAINS = ("airline", "retail", "telecom")
_HEADING = re.compile(r"#+\s*(airline|retail|telecom)\b", re.I)
# The official run names its files "tool-calling-<model>-<temperature>_range_0--1_user-...".
_RUN_NAME = re.compile(r"(?P<agent>tool-calling|act|react|few-shot)-(?P<model>.+?)-\d(?:\.\d+)?_range_")
_TRIAL_SUFFIX = re.compile(r"[._-]trials?\d+\Z")


def success(reward: float | None) -> bool | None:
    """Whether a reward means that the task was solved."""
    return None if reward is None else reward >= FULL_MARKS


class TauParser(Parser):
    """Parser of one results file."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._agent, self._model, self._domain = named_by_file(context.stem)

    def feed(self, record: Record) -> str:
        """Take one session."""
        if "traj" not in record or "task_id" not in record:
            return NOT_A_RECORD
        messages = record["traj"]
        if not is_message_list(messages):
            return BAD_FIELD
        task, trial = record["task_id"], small_count(record.get("trial"))
        if type(task) not in (int, str):
            return BAD_FIELD
        session_id = f"{self._model or 'unknown'}/{task}/{0 if trial is None else trial}/{content_key(messages)}"
        session = Session(SOURCE, session_id, self._agent)
        session.model = self._model
        session.task_id, session.trial = str(task), trial
        session.reward = number_or_none(record.get("reward"))
        session.is_success = success(session.reward)
        session.scenario = _domain_of(messages) or self._domain
        session.harness = SOURCE
        add_messages(session, messages)
        session.n_records = 1
        self.sessions[session_id] = session
        self.current = session
        return KEPT


def named_by_file(stem: str) -> tuple[str, str | None, str | None]:
    """(agent, model, domain) as far as a file name tells."""
    domain = next((d for d in DOMAINS if d in stem.lower()), None)
    if match := _RUN_NAME.match(stem):
        return match["agent"], match["model"], domain
    model = _TRIAL_SUFFIX.sub("", stem)
    if domain is None or not (model := re.sub(rf"[-_.]?{domain}\Z", "", model, flags=re.I)):
        return SOURCE, None, domain
    return SOURCE, model, domain


def _domain_of(messages: list[Record]) -> str | None:
    for message in messages[:1]:
        content = message.get("content")
        if message["role"] == "system" and type(content) is str and (match := _HEADING.search(content[:500])):
            return match.group(1).lower()
    return None


def _hint(head: bytes) -> bool:
    return head.lstrip()[:1] == b"[" and b'"task_id"' in head and (b'"traj"' in head or b'"reward"' in head)


READER = Reader(
    name=SOURCE,
    version="2",
    shape="items",
    recognise=lambda _: False,
    hint=_hint,
    parser=TauParser,
    is_one_record_a_session=True,
)
