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

from evalpipe.collect.arguments import count_of, number_of, said, text_of
from evalpipe.collect.session import RecordedSession, now

_ASSIGNMENT = frozenset({"policy", "unit", "probability", "epoch"})


#: All recorders of this process, for the child of a fork.
_RECORDERS: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _unlock_in_child() -> None:
    """A lock that another thread held at the fork would stay locked in the child for ever."""
    for recorder in list(_RECORDERS):
        recorder._lock = threading.RLock()
        # What waits there is written by the parent.
        recorder._waiting, recorder._is_writing = [], False


os.register_at_fork(after_in_child=_unlock_in_child)


def _assignment(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if unknown := set(value) - _ASSIGNMENT:
        raise ValueError(f"assignment has unknown keys: {sorted(unknown)}")
    probability = number_of("probability", value.get("probability"))
    if probability is not None and not 0 <= probability <= 1:
        raise ValueError("the probability of an assignment lies from 0 to 1")
    if value.get("unit") not in (None, "session", "user"):
        raise ValueError("the unit of an assignment is session or user")
    texts = {key: text_of(key, value.get(key)) for key in ("policy", "unit", "epoch")}
    return {k: v for k, v in (texts | {"probability": probability}).items() if v is not None}


class Recorder:
    """Writes the sessions of one process to one file in a folder.

    Args:
        folder: Where files go; made if absent. Give it to ``evalpipe run``.
        agent: Agent or harness.
        agent_release: Its release.
        harness: Runtime, if named apart from the agent.
        is_durable: Whether each line is forced to the disk, so that it survives a power cut too.
            Costs about a millisecond a line.

    Raises:
        ValueError: No agent is named. TypeError: A name is no text.
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
        self.agent = text_of("agent", agent)
        if not self.agent:
            raise ValueError("agent is empty")
        self.agent_release = text_of("agent_release", agent_release)
        self.harness = text_of("harness", harness)
        #: Records that could not be written.
        self.n_lost = 0
        self._folder = Path(folder)
        self._is_durable = is_durable
        # A signal handler that records while this very thread writes a line must not wait for itself.
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []
        self._is_writing = False
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
            ValueError: Unknown keys or values in ``assignment``. TypeError: A value that the log has no form for;
                ids may be text, whole numbers or UUIDs.
        """
        texts = {
            "model": model, "user_id": user_id, "tenant": tenant, "workspace": workspace,
            "parent_session_id": parent_session_id, "scenario": scenario, "task_id": task_id,
            "prompt_version": prompt_version, "retrieval_version": retrieval_version,
        }  # fmt: skip
        name = text_of("session_id", session_id) or str(uuid.uuid4())
        if isinstance(tools, str):
            raise TypeError("tools is a list of names")
        offered = None if tools is None else [str(text_of("tools", tool)) for tool in tools]
        facts = {
            "evalpipe": 1, "agent": self.agent, "agent_release": self.agent_release, "harness": self.harness,
            **{key: text_of(key, value) for key, value in texts.items()}, "started_at": now(),
            "trial": count_of("trial", trial), "tools": offered, "assignment": _assignment(assignment),
            "consent": said("consent", consent),
        }  # fmt: skip
        self.write("session", name, facts)
        return RecordedSession(self, name, text_of("model", model))

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
                self._waiting.append(line)
                while self._waiting and not self._is_writing:
                    self._write_all()
        except Exception as error:  # noqa: BLE001 - whatever a value raises while it prints, the agent goes on
            self.n_lost += 1
            if self.n_lost == 1:
                reason = getattr(error, "strerror", None) or "a value cannot be written as JSON"
                with suppress(Warning):
                    warnings.warn(f"evalpipe.collect loses records: {reason}", RuntimeWarning, stacklevel=3)

    def _write_all(self) -> None:
        """Write what waits, what a signal handler adds meanwhile included: no line stands within another."""
        self._is_writing = True
        try:
            while self._waiting:
                self._append(self._waiting.pop(0))
        finally:
            self._is_writing = False

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
            if self._waiting and not self._is_writing:
                with suppress(OSError):
                    self._write_all()
            if self._pid == os.getpid():
                os.close(self._file)
            self._pid, self._file = 0, -1

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
