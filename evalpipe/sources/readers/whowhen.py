"""Who&When: failures of teams of agents, each with a gold label of whose mistake it was.

Belongs here: the history and who speaks in it. The gold labels (``mistake_agent``, ``mistake_step``,
``mistake_reason``, ``ground_truth``) are answers to the question that an analysis would put, so none of
them becomes text. Undated, and no model is named.

Mapping: ``is_correct`` (in one half ``is_corrected``) is success. In the hand-made half the human speaks
as ``human`` and the orchestrator's thoughts are steps of the agent; in the other half nobody speaks
for the user: the ``question`` is the human turn. The terminal's messages are the results of the code
in the message before them, with the exit code that they begin with.
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
from evalpipe.sources.readers.openai_messages import is_message_list
from evalpipe.sources.session import (
    EXIT_CODE,
    IS_ERROR,
    OUTPUT,
    Session,
    agent_row,
    text_or_none,
    tool_row,
    user_row,
)

SOURCE = "whowhen"

_TERMINALS = frozenset({"computer_terminal", "computerterminal"})
_CODE = re.compile(r"```(?:python|sh|bash|shell|py)?[ \t]*\n(.*?)```", re.S | re.I)
_EXIT = re.compile(r"\s*exitcode: (-?\d{1,9})\b")
#: The terminal found nothing to run, and says so to the team.
_NO_CODE = "There is no code from"


class WhoWhenParser(RowParser):
    """Parser of one file of failures, or of one failure."""

    def read(self, record: Record) -> Session | str:
        """Take one session."""
        if not _recognise(record):
            return NOT_A_RECORD
        history = record["history"]
        if not is_message_list(history):
            return BAD_FIELD
        question_id = text_or_none(record.get("question_ID"))
        team = "hand_crafted" if any(m["role"] == "human" for m in history) else "algorithm_generated"
        session = Session(SOURCE, f"{team}/{question_id}/{digest_of(history)}", team)
        session.harness, session.task_id = SOURCE, question_id
        level = record.get("level")
        session.scenario = f"level_{level}" if type(level) in (int, str) else None
        solved = record.get("is_correct", record.get("is_corrected"))
        session.is_success = solved if type(solved) is bool else None
        question = text_or_none(record.get("question"))
        if team == "algorithm_generated" and question:
            session.rows.append(user_row("question", "human", question, None))
        _add(session, history)
        return session


def _add(session: Session, history: list[Record]) -> None:
    code: str | None = None
    for position, message in enumerate(history):
        text = text_or_none(message.get("content"))
        session.n_messages += 1
        if not text:
            continue
        role, step_id = message["role"], str(position)
        name = (text_or_none(message.get("name")) or role).lower()
        if role == "human":
            session.rows.append(user_row(step_id, "human", text, None))
        elif name in _TERMINALS and (match := _EXIT.match(text)):
            row = tool_row(step_id, "terminal", code, None)
            row[OUTPUT], row[EXIT_CODE] = text, int(match[1])
            row[IS_ERROR] = row[EXIT_CODE] != 0
            session.rows.append(row)
        elif name in _TERMINALS and text.startswith(_NO_CODE):
            session.rows.append(user_row(step_id, "meta", text, None))
        else:
            session.rows.append(agent_row(step_id, text, None, None))
            blocks = _CODE.findall(text)
            code = "\n".join(blocks) if blocks else None


def _recognise(record: Record) -> bool:
    return "history" in record and ("mistake_agent" in record or "mistake_step" in record)


READERS = json_readers(row_reader(SOURCE, _recognise, WhoWhenParser))
