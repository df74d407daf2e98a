"""Which session the spans of a trace belong to.

Belongs here: ids of sessions. Does not belong here: gathering spans (``spans.py``), their steps
(``span_steps.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalpipe.contracts.ids import is_long_id

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span

#: Between an id that several users bear, and the trace that tells theirs apart.
OF_USER = "@trace:"


class Users:
    """Sessions of a file under short ids, such as numbers, which two users may bear at once.

    One person's words must not be taken for another's, nor erased or kept with them.
    """

    def __init__(self) -> None:
        #: Names of the sessions of each user, by the id that they share.
        self._names: dict[str, dict[str, str]] = {}

    def key(self, session_id: str, trace_id: str, members: Sequence[Span]) -> str:
        """What the spans that a trace has of a session are gathered under."""
        user = next((span.user_id for span in members if span.user_id), None)
        if user is None or is_long_id(session_id):
            return session_id
        names = self._names.setdefault(session_id, {})
        name = names.setdefault(user, f"{session_id}{OF_USER}{trace_id}")
        return session_id if name == next(iter(names.values())) else name

    def name(self, key: str) -> str:
        """Name of the session that was gathered under a key, now that all traces are known."""
        names = self._names.get(key, {})
        return next(iter(names.values())) if len(names) > 1 else key


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
