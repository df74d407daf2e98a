"""terminal-bench: results of trials, one a file and all of a run in one file.

Belongs here: the fields of a trial. The terminal itself is not in these files, so a session has no
steps: it is the outcome of a trial, with its times and tokens.

Mapping: ``id`` is the id, and where older files have none, everything else the row says; so a
trial counts once, though the run's file repeats it. ``is_resolved`` is success. A failure before
the agent could act is the infrastructure's: success is null, the end ``error``. Tests that ran out of
time are no end of the session. Agent and model are the row's (``agent_name``, ``model_name``) where
it names them, else those of a folder above the file, ``<date>_<agent>_<model>``, as the leaderboard
keeps them. Tokens of 0 on both sides were not counted.
"""

from __future__ import annotations

import re
from dataclasses import replace

from evalpipe.sources.readers.base import (
    NOT_A_RECORD,
    FileContext,
    Record,
    RowParser,
    digest_of,
    json_readers,
    row_reader,
)
from evalpipe.sources.session import Session, count, text_or_none
from evalpipe.sources.times import normal_time

SOURCE = "terminal_bench"

_INFRASTRUCTURE = frozenset({
    "agent_installation_failed", "installation_failed", "unknown_harness_error", "harness_error", "docker_error",
    "environment_error", "build_failed",
})  # fmt: skip
_TIMEOUTS = frozenset({"agent_timeout", "timeout"})
_NO_FAILURE = frozenset({"none", "unset", "test_timeout"})
_FOLDER = re.compile(r"\d{8}_(?P<agent>[^_]+)_(?P<model>[^_]+)\Z")
_TRIAL = re.compile(r"\.(\d+)-of-\d+\.")


class TerminalBenchParser(RowParser):
    """Parser of one results file."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        found = next((match for name in reversed(context.above) if (match := _FOLDER.match(name))), None)
        self._agent: str = found["agent"] if found else SOURCE
        self._model: str | None = found["model"] if found else None

    def read(self, record: Record) -> Session | str:
        """Take one trial."""
        task = record.get("task_id")
        if not _is_trial(record) or type(task) is not str:
            return NOT_A_RECORD
        own = text_or_none(record.get("id"))
        if own is None:
            own = f"{task}/{digest_of({k: v for k, v in record.items() if k not in ('id', 'instruction')})}"
        agent = text_or_none(record.get("agent_name")) or text_or_none(record.get("agent")) or self._agent
        session = Session(SOURCE, own, agent)
        session.model = text_or_none(record.get("model_name")) or text_or_none(record.get("model")) or self._model
        session.harness, session.task_id = SOURCE, task
        trial = _TRIAL.search(text_or_none(record.get("trial_name")) or "")
        session.trial = int(trial[1]) if trial and len(trial[1]) < 9 else None
        _outcome(session, record)
        tokens = count(record.get("total_input_tokens")), count(record.get("total_output_tokens"))
        if any(tokens):
            session.stated_tokens = (*tokens, None, None, None)
        for name in ("trial_started_at", "agent_started_at", "agent_ended_at", "test_ended_at", "trial_ended_at"):
            if (at := normal_time(record.get(name))) is not None:
                session.see(at)
        return session


def _outcome(session: Session, record: Record) -> None:
    solved = record.get("is_resolved")
    session.is_success = solved if type(solved) is bool else None
    mode = (text_or_none(record.get("failure_mode")) or "none").lower()
    if mode in _TIMEOUTS:
        session.end_status = "timeout"
    elif mode in _NO_FAILURE:
        session.end_status = "completed" if session.is_success is not None else None
    else:
        session.end_status = "error"
    is_broken = mode in _INFRASTRUCTURE or mode.endswith("installation_failed")
    if is_broken and session.is_success is not True:
        session.is_success = None


def _is_trial(record: Record) -> bool:
    return "task_id" in record and "is_resolved" in record and ("failure_mode" in record or "parser_results" in record)


_READER = row_reader(SOURCE, _is_trial, TerminalBenchParser)
_LINES, _ITEMS, _WHOLE = json_readers(_READER)
READERS = (_LINES, replace(_ITEMS, lists=frozenset({"results"})), _WHOLE)
