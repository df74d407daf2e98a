"""AgentBench's runs (MedAgentBench among them): one JSON line a task, failures of the harness apart.

Belongs here: the fields of a row and the calls in the text. The time of a row is when it was
written, which dates the session; steps have no times.

Mapping: ``index`` is the task. The model is the row's ``model``, else a folder's or the file's name
(``outputs/<run>/<model>/<task>/runs.jsonl``). The agent writes its calls as text, ``GET <url>`` and
``POST <url> <body>``; the next user message is the result. ``FINISH(…)`` is its answer. Rows of
``error.jsonl``, and others with an ``error``, are the harness' failures: success null, end ``error``.
``scored_status`` says whether the answer was right. Leaving out failed rows flatters a model that fails
often, so they stay sessions.
"""

from __future__ import annotations

import re

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    NOT_A_RECORD,
    FileContext,
    Record,
    RowParser,
    digest_of,
    json_readers,
    row_reader,
    word_of,
)
from evalpipe.sources.readers.openai_messages import is_message_list
from evalpipe.sources.session import (
    ERROR,
    IS_ERROR,
    OUTPUT,
    Row,
    Session,
    agent_row,
    small_count,
    text_or_none,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

SOURCE = "agentbench"

_CALL = re.compile(r"\s*(?P<name>GET|POST)\s+(?P<arguments>\S.*)\Z", re.S)
_FAILED = re.compile(r"Error in sending the (?:GET|POST) request|Invalid (?:GET|POST) request", re.I)
_END_STATUS = {
    "completed": "completed", "task limit reached": "timeout", "agent context limit": "error",
    "agent validation failed": "error", "agent invalid action": "error", "task error": "error",
    "cancelled": "interrupted", "agent failed": "error",
}  # fmt: skip
#: Ends that the agent brought about itself.
_AGENT_ENDS = frozenset({
    "task limit reached", "agent context limit", "agent validation failed", "agent invalid action",
})  # fmt: skip
_FILE = re.compile(r"(?:.*/)?(?P<task>\w+bench)_(?P<model>[\w.@-]+?)(?:\.(?:runs|error))?\Z", re.I)
_PLAIN_NAMES = frozenset({"runs", "error", "overall"})


class AgentBenchParser(RowParser):
    """Parser of one file of runs or of failures."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._scenario: str | None = None
        self._model: str | None = None
        if context.stem in _PLAIN_NAMES and len(context.above) >= 2:
            self._model, self._scenario = context.above[-2:]
        elif match := _FILE.match(context.stem):
            self._model, self._scenario = match["model"], match["task"]

    def read(self, record: Record) -> Session | str:
        """Take one run."""
        if not _recognise(record):
            return NOT_A_RECORD
        output = record.get("output")
        result = output if type(output) is dict else {}
        history = result.get("history")
        if history is not None and not is_message_list(history):
            return BAD_FIELD
        model = text_or_none(record.get("model")) or self._model
        index = record.get("index")
        session = Session(SOURCE, f"{model}/{word_of(index)}/{digest_of([model, record])}", SOURCE)
        session.model, session.harness, session.scenario = model, SOURCE, self._scenario
        session.task_id = str(index) if type(index) in (int, str) else None
        session.trial = small_count(record.get("trial"))
        _outcome(session, record, result)
        time = record.get("time")
        if type(time) is dict and (at := normal_time(time.get("timestamp"))) is not None:
            session.see(at)
        _add(session, history or [])
        return session


def _outcome(session: Session, record: Record, output: Record) -> None:
    status = (text_or_none(output.get("status")) or "").lower()
    session.end_status = _END_STATUS.get(status)
    scored = text_or_none(record.get("scored_status"))
    if scored is not None:
        session.is_success = scored.lower().removeprefix("completed") in ("correct", "success")
    elif status in _AGENT_ENDS:
        session.is_success = False
    if record.get("error"):
        session.end_status, session.is_success = "error", None


def _add(session: Session, history: list[Record]) -> None:
    call: Row | None = None
    for position, message in enumerate(history):
        text = text_or_none(message.get("content"))
        session.n_messages += 1
        if not text:
            continue
        if message["role"] == "user":
            if call is not None:
                call[OUTPUT], is_error = text, _FAILED.match(text) is not None
                call[IS_ERROR], call[ERROR] = is_error, "tool_error" if is_error else None
                call = None
            else:
                # The first holds instructions and question; later ones are the harness' complaints.
                session.rows.append(user_row(str(position), "meta" if session.rows else "human", text, None))
        elif message["role"] in ("agent", "assistant"):
            session.rows.append(agent_row(str(position), text, None, session.model))
            if found := _CALL.match(text):
                call = tool_row(f"{position}.0", found["name"], found["arguments"], None)
                session.rows.append(call)
    if call is not None:
        call[ERROR] = "no_result"


def _recognise(record: Record) -> bool:
    return {"index", "error", "info", "output"} <= record.keys()


READERS = json_readers(row_reader(SOURCE, _recognise, AgentBenchParser))
