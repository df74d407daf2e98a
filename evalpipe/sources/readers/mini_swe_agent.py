"""mini-SWE-agent: one document or line a run, or (the oldest) a bare list of messages.

Belongs here: the run around the messages. Does not belong here: messages (``mini_messages.py``).

``exit_status`` is ``Submitted``, a limit, or the name of the exception that ended the run. Whatever
else it is, the model's interface or the container failed and the agent did not: such runs end with
``error``, and whether the task was solved is unknown. ``resolved`` is what the benchmark's own report
adds to a bundle.
"""

from __future__ import annotations

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    block_text,
    json_readers,
)
from evalpipe.sources.readers.mini_messages import MESSAGE_MARKS, Messages
from evalpipe.sources.readers.values import (
    content_id,
    cost_of,
    flag_of,
    forget_zero_cost,
    id_of,
    id_of_rows,
    object_of,
    text_of,
)
from evalpipe.sources.session import ERROR, KIND, Session, user_row

SOURCE = "mini_swe_agent"
_AGENT = "mini-swe-agent"

_LIMITS = frozenset({"LimitsExceeded", "TimeExceeded", "CostLimitExceeded", "StepLimitExceeded"})


class MiniParser(Parser):
    """Parser of one file of whole runs."""

    def feed(self, record: Record) -> str:
        """Take one run."""
        messages, info = record.get("messages"), record.get("info")
        if messages is None or info is None:
            return NOT_A_RECORD
        if type(info) is not dict or type(messages) is not list or any(type(m) is not dict for m in messages):
            return BAD_FIELD
        config = object_of(info.get("config"))
        model = object_of(config.get("model")).get("model_name")
        task = id_of(record.get("instance_id")) or id_of(info.get("instance_id"))
        session = Session(SOURCE, f"{task or self.context.stem}/{_key(messages, info, model)}", _AGENT)
        session.task_id = task
        session.agent_release = text_of(info.get("mini_version"))
        session.n_records = 1
        reader = Messages(session, _model_name(model))
        for message in messages:
            reader.add(message)
        reader.close()
        if not any(row[KIND] == "agent" for row in session.rows):
            session.model = _model_name(model)
        self._end(session, record, info)
        self.sessions[session.session_id] = session
        self.current = session
        return KEPT

    def _end(self, session: Session, record: Record, info: Record) -> None:
        session.cost_usd = cost_of(object_of(info.get("model_stats")).get("instance_cost"))
        forget_zero_cost(session)
        session.is_success = flag_of(record.get("resolved"))
        status = text_of(info.get("exit_status"))
        if status is None:
            return
        if status == "Submitted":
            session.end_status = "completed"
        elif status in _LIMITS:
            session.end_status = "timeout"
        else:
            session.end_status, session.is_success = "error", None
            row = user_row("exit", "system", text_of(info.get("exception_str")) or status, None)
            row[KIND], row[ERROR] = "system", "api_error"
            session.rows.append(row)


def _model_name(name: object) -> str | None:
    text = text_of(name)
    return text.rpartition("/")[2] if text else None


def _key(messages: list[Record], info: Record, model: object) -> str:
    """What is the same in copies of a run whose long texts were cut: its first response, else its end."""
    for message in messages:
        response = object_of(object_of(message.get("extra")).get("response"))
        if response_id := id_of(response.get("id")):
            return content_id(response_id)
    if any(message.get("role") == "assistant" for message in messages):
        return content_id([block_text(message.get("content")) for message in messages])
    return content_id(model, info.get("exit_status"), info.get("exception_str"))


class MiniListParser(Parser):
    """Parser of a bare list of messages, which is one run."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._messages: Messages | None = None

    def feed(self, record: Record) -> str:
        """Take one message."""
        if type(record.get("role")) is not str or "content" not in record:
            return NOT_A_RECORD
        if self._messages is None:
            session = self.sessions[""] = Session(SOURCE, "", _AGENT)
            self.current = session
            self._messages = Messages(session, None)
        self._messages.session.n_records += 1
        self._messages.add(record)
        return KEPT

    def finish(self, session: Session) -> None:
        """Name the run by what was said."""
        if self._messages is not None:
            self._messages.close()
        session.session_id = f"{SOURCE}:{id_of_rows(session.rows)}"


def _recognise(record: Record) -> bool:
    info = object_of(record.get("info"))
    is_run = "messages" in record and bool({"exit_status", "model_stats", "mini_version"} & info.keys())
    version = record.get("trajectory_format")
    return is_run or (type(version) is str and version.startswith("mini-swe-agent"))


def _recognise_message(record: Record) -> bool:
    text = block_text(record.get("content"))
    return type(record.get("role")) is str and text is not None and any(mark in text for mark in MESSAGE_MARKS)


READERS: tuple[Reader, ...] = (
    *json_readers(
        Reader(
            name=SOURCE,
            version="2",
            shape="lines",
            recognise=_recognise,
            parser=MiniParser,
            is_one_record_a_session=True,
        )
    ),
    Reader(name=SOURCE, version="2", shape="items", recognise=_recognise_message, parser=MiniListParser),
)
