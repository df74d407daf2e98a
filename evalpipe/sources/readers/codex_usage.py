"""Tokens of a Codex session, which the log holds as running totals.

Belongs here: totals to what each response used. Does not belong here: which line holds them
(``codex_lines.py``).
"""

from __future__ import annotations

from evalpipe.sources.readers.base import Record
from evalpipe.sources.session import CACHE_WRITE_1H, INPUT, KIND, MODEL, Row, Session, agent_row, count

_NAMES = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
_Counts = tuple[int, ...]
_ZERO: _Counts = (0, 0, 0, 0)


class RunningUsage:
    """The running total of a session, and what each model used of it."""

    def __init__(self) -> None:
        self._total = _ZERO
        self._before = _ZERO
        #: What was used before a fork began, and is its parent's.
        self._copied = _ZERO
        #: Model, the last step before the count, and what was used since the count before.
        self._used: list[tuple[str | None, Row | None, _Counts]] = []

    def note(self, usage: Record, model: str | None, rows: list[Row]) -> None:
        """Take a total.

        Args:
            usage: As logged.
            model: Of the present turn.
            rows: Steps so far; the model's last one gets the tokens, if they are told apart.
        """
        total = _counts(usage)
        # A total that began anew (a resumed process) is added to what came before.
        is_anew = total[0] < self._total[0]
        if is_anew:
            self._before = _added(self._before, self._total)
        since = _ZERO if is_anew else self._total
        used = tuple(max(now - then, 0) for now, then in zip(total, since, strict=True))
        self._total = total
        if any(used):
            row = next((row for row in reversed(rows) if row[KIND] != "user" and row[MODEL] == model), None)
            self._used.append((model, row, used))

    def copied(self, usage: Record) -> None:
        """Take a total that a fork copied from its parent: what follows goes on from it, or begins anew."""
        self._total = self._copied = _counts(usage)

    def settle(self, session: Session) -> None:
        """Put the sum into the session, and the parts into its steps where several models used them."""
        sums = _added(self._before, self._total)
        whole = tuple(max(both - copied, 0) for both, copied in zip(sums, self._copied, strict=True))
        if not any(whole):
            return
        session.stated_tokens = _columns(whole)
        if len({model for model, _, _ in self._used}) < 2:
            return
        taken: set[int] = set()
        for model, row, used in self._used:
            if row is None or id(row) in taken:
                # A response that left no step of its own.
                at = row[0] if row is not None else "start"
                row = agent_row(f"{at}.usage{len(session.rows)}", None, None, model)
                session.rows.append(row)
            taken.add(id(row))
            row[INPUT:CACHE_WRITE_1H] = _columns(used)


def _counts(usage: Record) -> _Counts:
    return tuple(count(usage.get(name)) or 0 for name in _NAMES)


def _added(one: _Counts, other: _Counts) -> _Counts:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _columns(counts: _Counts) -> tuple[int | None, ...]:
    """Counts in the order of the steps' columns; the log's input holds the cached tokens."""
    fresh, cached, output, reasoning = counts
    return max(fresh - cached, 0), output, cached, None, reasoning
