"""Messages typed while the agent works, each counted once.

Belongs here: the queue of one Claude Code session. Does not belong here: lines and steps.

A queued message leaves the queue in one of three ways: it is delivered in the middle of a turn
(logged as ``remove``, and nowhere else), it becomes an ordinary user message (``dequeue``), or the
user pulls it back to edit it (``popAll``). Only the first kind may stay a step of its own.
"""

from __future__ import annotations

from evalpipe.sources.session import KIND, Row

#: Kind of a row that turned out to be told elsewhere; such rows are dropped at the end.
DROPPED = ""


class Queue:
    """Queued messages with the rows that stand for them."""

    def __init__(self) -> None:
        self._waiting: list[Row] = []
        self._texts: list[tuple[str, Row]] = []
        #: What was delivered in the middle of a turn: the same words in an ordinary message are said anew.
        self._delivered: set[str] = set()

    def put(self, text: str, row: Row) -> None:
        """A message was queued."""
        self._waiting.append(row)
        self._texts.append((text.strip(), row))

    def take(self, *, is_delivered: bool) -> bool:
        """The oldest message left the queue, to the agent or to become an ordinary message; False if there was none."""
        if not self._waiting:
            return False
        row = self._waiting.pop(0)
        if is_delivered:
            self._delivered.update(text for text, queued in self._texts if queued is row)
            self._texts = [entry for entry in self._texts if entry[1] is not row]
        return True

    def pull_back(self) -> bool:
        """All waiting messages went back to the prompt: what is sent later is another message."""
        was_waiting = bool(self._waiting)
        for row in self._waiting:
            self._drop(row)
        self._waiting.clear()
        return was_waiting

    def holds(self, text: str) -> bool:
        """Whether such a message was queued."""
        wanted = text.strip()
        return wanted in self._delivered or any(queued == wanted for queued, _ in self._texts)

    def arrived(self, text: str) -> None:
        """An ordinary message holds this text: the rows of the same queued text are dropped."""
        if not self._texts:
            return
        wanted = text.strip()
        for first in range(len(self._texts)):
            # Several queued messages are sent as one, each on its own line.
            joined = ""
            for last in range(first, len(self._texts)):
                queued = self._texts[last][0]
                joined = f"{joined}\n{queued}" if joined else queued
                if joined == wanted:
                    for _, row in list(self._texts[first : last + 1]):
                        self._drop(row)
                    return
                if not wanted.startswith(joined):
                    break

    def _drop(self, row: Row) -> None:
        row[KIND] = DROPPED
        self._texts = [entry for entry in self._texts if entry[1] is not row]
