"""Rows that hold messages of one conversation: which rows go together, and what each of them adds.

Belongs here: the comparison of the messages of rows. Does not belong here: the fields of a row
(``chat_rows.py``), what a message means (``openai_messages.py``), or the calls of a trace, whose
spellings differ far more (``thread.py``).

A conversation may lie in rows of one turn each, in snapshots that grow, or in logged requests, of
which each holds the history so far. Messages are compared by what they say; prompts of the system
are not, since clients put the time of day into them.

People say the same again ("yes", "continue"), and clients write a turn more than once: while its answer
grows, when it is made anew, when a row is delivered twice. A row of one turn that repeats a question is a
turn of its own only where rows say so: none of the conversation holds history, and the two differ in id or
time, or other turns lie between them and the answers differ. An open question that comes again with an
answer is completed in its place. All else is another version of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalpipe.sources.readers.base import Record
from evalpipe.sources.readers.row_messages import (
    SYSTEM,
    bodies_of,
    is_grown,
    message_key,
    n_asked,
    paths_of,
    question_of,
    step,
)
from evalpipe.sources.readers.thread import overlap


@dataclass(frozen=True, slots=True)
class Row:
    """The messages of one row.

    Attributes:
        messages: The messages, the response last.
        is_request: Whether the row is a logged request: its history was said before, and its answer
            is a call of the model of its own.
        is_answered: Whether a response stood beside the messages.
        row_id: Id of the row, unless it is that of the conversation.
        at: When it says it was made.
        model: Which model it names.
    """

    messages: list[Record]
    is_request: bool
    is_answered: bool
    row_id: str | None = None
    at: str | None = None
    model: str | None = None


class Threads:
    """Conversations of logged requests, which name none: a request belongs to the one whose history it resends."""

    def __init__(self) -> None:
        #: Name of the conversation that stood where a row ended, the latest of several.
        self._after: dict[bytes, str] = {}
        self._names: dict[str, str] = {}

    def name(self, row: Row, new_name: str, user: str | None, response: str | None) -> str:
        """Name of the conversation of a logged request.

        Args:
            row: The request.
            new_name: Its name, if it begins a conversation.
            user: Who asked, as far as that is logged; requests of two people are never joined.
            response: Id of the response, which is the same where a row was delivered twice.
        """
        bodies = bodies_of(row.messages)
        paths = paths_of(bodies, (user or "").encode("utf-8", "replace"))
        found = self._names.get(response) if response else None
        n_asked = len(bodies) - row.is_answered
        for place in range(min(n_asked, len(bodies) - 1), 0, -1) if found is None else ():
            name = self._after.get(paths[place - 1])
            # Without an answer in it, a beginning may be anyone's.
            if name is not None and any(body.get("role") == "assistant" for body in bodies[: min(place + 1, n_asked)]):
                found = name
                break
        name = found or new_name
        if paths:
            self._after[paths[-1]] = name
        if response:
            self._names[response] = name
        return name


@dataclass(slots=True)
class _Asked:
    """The rows of one turn that asked one question so far."""

    place: int
    bodies: list[Record]
    row_ids: set[str | None] = field(default_factory=set)
    times: set[str | None] = field(default_factory=set)
    models: set[str | None] = field(default_factory=set)
    #: What the conversation holds of the question, while it has no answer.
    open_piece: list[list[Record]] | None = None


class Conversation:
    """What the rows of one conversation told, in order.

    Args:
        rows: All of its rows, since later ones tell what earlier ones were; each is to be added in order.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        #: Of each row that told something new what it told, and what later rows completed it by.
        self._pieces: list[list[list[Record]]] = []
        self._keys: list[bytes] = []
        #: All ways through the conversation that some row took, and where it stands: as a whole, and as the
        #: last row that went on tells it, which may hold no history.
        self._known: set[bytes] = set()
        self._tip = b""
        self._row_tip = b""
        self._system: object = None
        #: Ids and times of the rows, each with the end of its way.
        self._seen: set[tuple[str | None, str | None, bytes]] = set()
        self._asked: dict[bytes, _Asked] = {}
        self._n_rows = 0
        bodies = [bodies_of(row.messages) for row in rows]
        self._holds_history = any(n_asked(one) > 1 for one in bodies)
        questions = {question_of(paths_of(one), one) for one in bodies if n_asked(one) == 1}
        #: Whether rows go on without any history.
        self._is_by_turn = len(questions) > 1 and not self._holds_history
        self._models = {row.model for row in rows}
        # A day, or the time of an export, that all rows state tells none from another.
        self._is_timed = len({row.at for row in rows}) > 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet."""
        return not self._pieces

    @property
    def messages(self) -> list[Record]:
        """Each message once."""
        return [message for piece in self._pieces for part in piece for message in part]

    def add(self, row: Row) -> list[Record] | None:
        """Take the messages of a row.

        Returns:
            Those that are new, as the list that :attr:`messages` is made of, so that they can be replaced in
            it; ``None`` for another version of the conversation, of which nothing was taken.
        """
        bodies = bodies_of(row.messages)
        keys = [message_key(body) for body in bodies]
        paths = paths_of(bodies)
        self._n_rows += 1
        marked = (row.row_id, row.at, paths[-1] if paths else b"")
        is_delivered_again = (row.row_id or row.at) is not None and marked in self._seen
        self._seen.add(marked)
        if is_delivered_again:
            return []
        question = None if self._holds_history or n_asked(bodies) != 1 else question_of(paths, bodies)
        asked = self._asked.get(question) if question is not None else None
        n_known = next((place for place in range(len(paths), 0, -1) if paths[place - 1] in self._known), 0)
        is_own = asked is not None and self._is_own_turn(row, bodies, n_known, asked)
        if asked is not None and self._is_answered_now(paths, asked):
            # Also where the same was answered before.
            is_own, n_known = False, len(asked.bodies)
        is_late = asked is not None and not is_own and self._is_late_answer(bodies, n_known, asked)
        new: list[Record] | None
        if is_late and asked is not None and asked.open_piece is not None:
            new = bodies[n_known:]
            asked.open_piece.append(new)
            asked.open_piece = None
            self._known.update(paths)
        else:
            new = self._go_on(row, bodies, keys, paths, 0 if is_own else n_known, is_own=is_own)
        if question is not None:
            self._note(question, row, bodies, new)
        return new

    def _go_on(
        self, row: Row, bodies: list[Record], keys: list[bytes], paths: list[bytes], n_known: int, *, is_own: bool
    ) -> list[Record] | None:
        """Take what a row adds to the end of the conversation."""
        is_more = True
        if n_known:
            is_more = n_known < len(bodies)
            if is_more and not row.is_request and paths[n_known - 1] not in (self._tip, self._row_tip):
                return None
            tip = paths[-1] if is_more else self._tip
        else:
            # Turns that come again are no overlap of windows.
            n_known = 0 if is_own else overlap(self._keys, keys)
            tip = self._tip
            for key in keys[n_known:]:
                tip = step(tip, key)
                self._known.add(tip)
        self._known.update(paths)
        self._tip = tip
        if is_more and paths:
            self._row_tip = paths[-1]
        self._keys += keys[n_known:]
        new = self._systems(row) + bodies[n_known:]
        if new:
            self._pieces.append([new])
        return new

    def _is_own_turn(self, row: Row, bodies: list[Record], n_known: int, asked: _Asked) -> bool:
        """Whether a row of one turn whose question was asked before is a turn of its own all the same."""
        at = row.at if self._is_timed else None
        if (row.row_id is not None and row.row_id in asked.row_ids) or (at is not None and at in asked.times):
            return False
        is_marked = (row.row_id is not None and None not in asked.row_ids) or (
            at is not None and None not in asked.times
        )
        is_whole = n_known == len(bodies)
        is_longer = not is_whole and any(body.get("role") == "assistant" for body in bodies[:n_known])
        is_next = asked.place == self._n_rows - 1
        is_more_of_it = is_whole or is_longer or is_grown(asked.bodies, bodies)
        if not self._is_by_turn:
            # One question that two models were asked has two answers, and a request may be made again.
            if row.at is not None and row.at in asked.times:
                return False
            return is_marked and not is_more_of_it and not row.is_request and self._models == {row.model}
        if is_marked:
            return is_whole or not (is_longer or (is_next and is_more_of_it))
        return not (is_next or is_more_of_it or asked.open_piece is not None) and asked.models == {row.model}

    def _is_answered_now(self, paths: Sequence[bytes], asked: _Asked) -> bool:
        """Whether a row answers the open question of the row before it."""
        n_open = len(asked.bodies)
        is_next = asked.open_piece is not None and asked.place == self._n_rows - 1
        return is_next and n_open < len(paths) and paths[n_open - 1] == self._row_tip

    def _is_late_answer(self, bodies: list[Record], n_known: int, asked: _Asked) -> bool:
        """Whether a row answers a question that stands open, and after which others were asked."""
        is_open = asked.open_piece is not None and asked.open_piece is not self._pieces[-1]
        return is_open and n_known < len(bodies) and bodies[n_known - 1].get("role") == "user"

    def _note(self, question: bytes, row: Row, bodies: list[Record], new: list[Record] | None) -> None:
        """Keep what tells a row of one turn from a later one with its question."""
        asked = self._asked.setdefault(question, _Asked(self._n_rows, bodies))
        asked.place, asked.bodies = self._n_rows, bodies
        asked.row_ids.add(row.row_id)
        asked.times.add(row.at)
        asked.models.add(row.model)
        if bodies[-1].get("role") != "user":
            asked.open_piece = None
        elif new:
            asked.open_piece = self._pieces[-1]

    def _systems(self, row: Row) -> list[Record]:
        """The prompt of the row, where it is another than before."""
        systems = [message for message in row.messages if message.get("role") in SYSTEM]
        said = [message.get("content") for message in systems]
        if not said or said == self._system:
            return []
        self._system = said
        return systems
