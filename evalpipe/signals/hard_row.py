"""One row of signals.hard, in the order of its contract.

Belongs here: the id, the window of text and the catalogue's numbers of a row. Does not belong here: what
makes a signal (``hard``, ``actions``).
"""

from __future__ import annotations

from typing import Any

from evalpipe.contracts.signals import BY_NAME
from evalpipe.signals.ids import digest, window

EXTRACTOR = "events"
VERSION = "5"


def make(
    signal: str, where: tuple[str, int, int], rule: str, text: str, span: tuple[int, int], chars: int, *,
    confidence: float, category: str | None = None, layer: str | None = None, exit_code: int | None = None,
    exit_scope: str | None = None, is_hidden: bool = False, tool: str | None = None, target_key: str | None = None,
    strength: float | None = None, field: str = "output",
) -> tuple[Any, ...]:  # fmt: skip
    """A row of a signal.

    Args:
        signal: Name in the catalogue.
        where: Session, step, turn.
        rule: Row of the rule table.
        text: Field of the step that holds the evidence; empty if none does.
        span: Place of the evidence in it.
        chars: Longest snippet.
        confidence, category, layer, exit_code, exit_scope, is_hidden, tool, target_key: As in the contract.
        strength: Weight, where it is not the catalogue's.
        field: Name of the field.
    """
    session, seq, turn = where
    start, end = window(text, *span, chars)
    known = BY_NAME[signal]
    name = digest(session, seq, signal, rule, VERSION)
    return (
        name, session, None, turn, seq, signal, known.polarity, known.strength if strength is None else strength,
        confidence, category, layer, exit_code, exit_scope, is_hidden, tool, target_key, rule,
        field if text else None, text[start:end], start, end, EXTRACTOR, VERSION,
    )  # fmt: skip
