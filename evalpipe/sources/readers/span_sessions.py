"""Which session the spans of a trace belong to.

Belongs here: ids of sessions. Does not belong here: gathering spans (``spans.py``), their steps
(``span_steps.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalpipe.contracts.ids import OF_USER, is_long_id

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span


class Users:
    """Sessions of a file under short ids, such as numbers, which two users may bear at once.

    One person's words must not be taken for another's, nor erased or kept with them. Once there is a second
    user, the session of each bears the first of their traces: a bare id would be another person's in another
    file. That a file which has grown names the first user's session so is told by ``store/traces.py``.
    """

    def __init__(self) -> None:
        #: Of each user of a short id the first trace with its place, by the id.
        self._first: dict[str, dict[str, tuple[int, str]]] = {}
        #: The id and the user of each key.
        self._keys: dict[str, tuple[str, str]] = {}

    def key(self, session_id: str, trace_id: str, place: int, members: Sequence[Span]) -> str | None:
        """What the spans that a trace has of a session are gathered under.

        Args:
            session_id: The session.
            trace_id: The trace.
            place: Its place in the file; traces may come in any order.
            members: Its spans of the session.

        Returns:
            The key; ``None`` where that is known with the last trace only (see :meth:`key_of_nobody`).
        """
        if is_long_id(session_id):
            return session_id
        user = next((span.user_id for span in members if span.user_id), None)
        if user is None:
            return None
        traces = self._first.setdefault(session_id, {})
        traces[user] = min(traces.get(user, (place, trace_id)), (place, trace_id))
        key = f"{session_id}{OF_USER}{user}"
        self._keys[key] = (session_id, user)
        return key

    def key_of_nobody(self, session_id: str) -> str:
        """What spans under a short id that name no user are gathered under: what the first user's are."""
        traces = self._first.get(session_id)
        return f"{session_id}{OF_USER}{min(traces, key=traces.__getitem__)}" if traces else session_id

    def name(self, key: str) -> str:
        """Name of the session that was gathered under a key, now that all traces are known."""
        if key not in self._keys:
            return key
        session_id, user = self._keys[key]
        traces = self._first[session_id]
        return session_id if len(traces) == 1 else f"{session_id}{OF_USER}{traces[user][1]}"


def sessions_of(trace_id: str, spans: dict[str, Span]) -> dict[str, list[Span]]:
    """Spans of a trace by session: the id of the highest ancestor that has one, else the trace's only one."""
    found: dict[str, str | None] = {}
    for span in spans.values():
        path = [span]
        seen = {span.span_id}
        while path[-1].span_id not in found and (above := spans.get(path[-1].parent_id or "")) is not None:
            if above.span_id in seen:
                break
            seen.add(above.span_id)
            path.append(above)
        inherited = found.get(path[-1].span_id)
        for member in reversed(path):
            inherited = inherited or member.session_id
            found[member.span_id] = inherited
    named = {session_id for session_id in found.values() if session_id}
    rest = next(iter(named)) if len(named) == 1 else trace_id
    sessions: dict[str, list[Span]] = {}
    for span in spans.values():
        sessions.setdefault(found[span.span_id] or rest, []).append(span)
    return sessions
