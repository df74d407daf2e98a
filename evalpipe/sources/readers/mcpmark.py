"""MCPMark's outcomes, one row a run: what came of it, without the conversation.

Belongs here: the fields of a row. A session has no steps; it is the outcome of a run of a model at
a task. Undated.

Mapping: ``service`` is the scenario, ``service`` and ``task`` the task, ``run-3`` trial 3. A run with
an ``error_message`` is not the agent's failure (success is null, the end ``error``) unless the message
says that the agent used up its context, turns or time (``failures.py``), or the run succeeded all
the same. The published rates count every such run as a failure.
"""

from __future__ import annotations

import re

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    NOT_A_RECORD,
    Record,
    RowParser,
    digest_of,
    json_readers,
    row_reader,
)
from evalpipe.sources.readers.failures import blame
from evalpipe.sources.session import Session, count, text_or_none

SOURCE = "mcpmark"

_RUN = re.compile(r"run-(\d{1,6})\Z")


class McpMarkParser(RowParser):
    """Parser of one file of outcomes."""

    def read(self, record: Record) -> Session | str:
        """Take one run."""
        if not _recognise(record):
            return NOT_A_RECORD
        model, task, success = record["model"], record["task"], record["success"]
        if type(model) is not str or type(task) is not str or type(success) not in (bool, type(None)):
            return BAD_FIELD
        service, run = text_or_none(record.get("service")), text_or_none(record.get("run"))
        session = Session(SOURCE, f"{model}/{service}/{task}/{run}/{digest_of(record)}", SOURCE)
        session.model, session.harness, session.scenario = model, SOURCE, service
        session.task_id = f"{service}/{task}" if service else task
        trial = _RUN.match(run or "")
        session.trial = int(trial[1]) if trial else None
        session.is_success = success
        session.end_status = "completed" if success is not None else None
        message = record.get("error_message")
        if type(message) is str and message:
            fault = blame(message)
            session.end_status = "timeout" if fault == "timeout" else "error"
            if not success:
                session.is_success = None if fault == "infrastructure" else False
        session.stated_tokens = (
            count(record.get("input_tokens")), count(record.get("output_tokens")), None, None,
            count(record.get("reasoning_tokens")),
        )  # fmt: skip
        return session


def _recognise(record: Record) -> bool:
    return {"model", "task", "success", "error_message"} <= record.keys() and "messages" not in record


READERS = json_readers(row_reader(SOURCE, _recognise, McpMarkParser))
