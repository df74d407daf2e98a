"""The parser of formats whose sessions are made only when the whole file is read.

Belongs here: gathering by session in bounded memory. Does not belong here: any format.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from evalpipe.sources.readers.base import FileContext, Parser
from evalpipe.sources.session import Session
from evalpipe.sources.spool import Spool


class GatheringParser(Parser):
    """Gathers what belongs to each session; formats put it into ``gathered`` by the session's id in the log."""

    #: Name of the source, set by each format.
    source = ""
    is_gathering = True

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self.gathered = Spool(context.spool)
        self._groups = self.gathered.groups()
        self._items: dict[str, list[Any]] = {}

    @abstractmethod
    def assemble(self, session: Session, items: list[Any]) -> None:
        """Make a session of what was gathered for it, in the order in which it was put."""

    def name_of(self, key: str) -> str:
        """The id of a session, from the key that it was gathered under."""
        return key

    def spill(self) -> None:
        """Put what was gathered on disk."""
        self.gathered.spill()

    def close(self) -> int:
        """Fill ``sessions`` with the first that can be held together."""
        self._groups = self.gathered.groups()
        self._next_group()
        return 0

    def rest(self) -> Iterator[None]:
        """Fill ``sessions`` group by group."""
        yield
        while self._next_group():
            yield

    def _next_group(self) -> bool:
        group, too_large = next(self._groups, (None, []))
        if group is None:
            return False
        for key, items in group.items():
            name = self.name_of(key)
            session = self.sessions[name] = Session(self.source, name, self.source)
            self._items[session.session_id] = items
        self.too_large += [self.name_of(session.key) for session in too_large]
        return True

    def finish(self, session: Session) -> None:
        """Make the steps of a session."""
        self.assemble(session, self._items.pop(session.session_id, []))

    def forget(self) -> None:
        """Let go of all that was gathered."""
        super().forget()
        self.gathered = Spool(None)
