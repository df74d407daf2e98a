"""The recorder: one file a process, one line a record, written at once.

Belongs here: opening the file, writing lines, surviving what happens to disks and processes. Does
not belong here: what is recorded of a session (``session.py``).
"""

from __future__ import annotations

import json
import os
import threading
import uuid
import warnings
import weakref
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalpipe.collect.session import RecordedSession, now

_ASSIGNMENT = frozenset({"policy", "unit", "probability", "epoch"})


#: All recorders of this process, for the child of a fork.
_RECORDERS: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _unlock_in_child() -> None:
    """A lock that another thread held at the fork would stay locked in the child for ever."""
    for recorder in list(_RECORDERS):
        recorder._lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock_in_child)


class Recorder:
    """Writes the sessions of one process to one file in a folder.

    Args:
        folder: Where files go; made if absent. Give it to ``evalpipe run``.
        agent: Agent or harness.
        agent_release: Its release.
        harness: Runtime, if named apart from the agent.
        is_durable: Whether each line is forced to the disk, so that it survives a power cut too.
            Costs about a millisecond a line.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        agent: str,
        agent_release: str | None = None,
        harness: str | None = None,
        is_durable: bool = False,
    ) -> None:
        self.agent = agent
        self.agent_release = agent_release
        self.harness = harness
        #: Records that could not be written.
        self.n_lost = 0
        self._folder = Path(folder)
        self._is_durable = is_durable
        self._lock = threading.Lock()
        _RECORDERS.add(self)
        self._file = -1
        self._pid = 0
        self._is_torn = False

    def session(
        self,
        session_id: str | None = None,
        *,
        model: str | None = None,
        user_id: str | None = None,
        tenant: str | None = None,
        workspace: str | None = None,
        parent_session_id: str | None = None,
        scenario: str | None = None,
        task_id: str | None = None,
        trial: int | None = None,
        tools: list[str] | None = None,
        prompt_version: str | None = None,
        retrieval_version: str | None = None,
        assignment: Mapping[str, Any] | None = None,
        consent: str | None = None,
    ) -> RecordedSession:
        """Begin a session. One that goes on from another process is a new one, with a parent.

        Args:
            session_id: Id of the conversation; a new one by default.
            model: Model that answers, if it is one for the whole session.
            user_id, tenant: Who. Sessions of one user are not independent.
            workspace: Folder or project.
            parent_session_id: Session that this one goes on from.
            scenario: Kind of work, if it is known before the agent acts.
            task_id, trial: Task of a controlled set, and its repeat from 0.
            tools: Names of the tools offered.
            prompt_version, retrieval_version: What else a result depends on.
            assignment: ``policy``, ``unit`` ("session" or "user"), ``probability``, ``epoch``.
            consent: Consent or legal basis.

        Raises:
            ValueError: Unknown keys in ``assignment``.
        """
        if assignment is not None and (unknown := set(assignment) - _ASSIGNMENT):
            raise ValueError(f"assignment has unknown keys: {sorted(unknown)}")
        name = session_id or str(uuid.uuid4())
        facts = {
            "evalpipe": 1, "agent": self.agent, "agent_release": self.agent_release, "harness": self.harness,
            "model": model, "user_id": user_id, "tenant": tenant, "workspace": workspace,
            "parent_session_id": parent_session_id, "started_at": now(), "scenario": scenario, "task_id": task_id,
            "trial": trial, "tools": tools, "prompt_version": prompt_version, "retrieval_version": retrieval_version,
            "assignment": dict(assignment) if assignment is not None else None, "consent": consent,
        }  # fmt: skip
        self.write("session", name, facts)
        return RecordedSession(self, name, model)

    def write(self, kind: str, session_id: str, fields: Mapping[str, Any]) -> None:
        """Write one record; fields that are ``None`` are left out.

        Args:
            kind: ``session``, ``step``, ``result`` or ``end``.
            session_id: Session of the record.
            fields: Its fields. Values that JSON does not know are written as they print.
        """
        record = {"type": kind, "session_id": session_id, **{k: v for k, v in fields.items() if v is not None}}
        try:
            # Escapes keep the line readable for every parser, whatever characters the text holds.
            line = (json.dumps(record, default=str, skipkeys=True, separators=(",", ":")) + "\n").encode("ascii")
            with self._lock:
                self._append(line)
        except Exception as error:  # noqa: BLE001 - whatever a value raises while it prints, the agent goes on
            self.n_lost += 1
            if self.n_lost == 1:
                reason = getattr(error, "strerror", None) or "a value cannot be written as JSON"
                with suppress(Warning):
                    warnings.warn(f"evalpipe.collect loses records: {reason}", RuntimeWarning, stacklevel=3)

    def _append(self, line: bytes) -> None:
        if self._pid != os.getpid():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = f"{datetime.now(UTC):%Y-%m-%d}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
            self._file = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
            self._pid, self._is_torn = os.getpid(), False
        data = b"\n" + line if self._is_torn else line
        self._is_torn = True
        n_written = os.write(self._file, data)
        if n_written < len(data):
            # The disk is full in the middle of the line: the next one begins after a line break.
            raise OSError(0, "the disk is full")
        self._is_torn = False
        if self._is_durable:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file; the recorder opens a new one if it is used again."""
        with self._lock:
            if self._pid == os.getpid():
                os.close(self._file)
            self._pid, self._file = 0, -1

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
