"""Labelled turns and labelled tool outputs: rows of JSON lines, read and checked.

Belongs here: the two layouts (docs/signal-evaluation.md), told apart by their fields. Does not belong
here: what extraction says of a row (``replay``), counting right and wrong (``scoring``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalpipe.contracts.json_lines import BadLineError, json_object

#: Labels of turns; the first four are what extraction emits.
TURN_CLASSES = ("confirm", "praise", "complaint", "correction")
TURN_LABELS = (*TURN_CLASSES, "requirement_iteration", "neutral")
NEGATIVE_CLASSES = frozenset({"complaint", "correction"})
POSITIVE_CLASSES = frozenset({"confirm", "praise"})
#: Kinds of complaint.
SUBTYPES = ("failure_report", "sentiment")
#: Labels of tool outputs.
STATUS_LABELS = ("error", "check_failure", "benign_nonzero", "interaction", "cascade", "ok")


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """A user turn with its labels.

    Attributes:
        id: The row's id, else ``line N``.
        lang: Language that the row states; ``und`` where it states none.
        text, prev_user, prev_agent_tail: The turn, the request before it, the end of the agent's answer.
        is_opener: The row says that nothing came before.
        label: Primary label. labels: All that apply, the primary one among them.
        subtype: Kind of a complaint, where the row states one.
        session: Session of the row; the row's own id where it states none.
        weight: What the row counts in training.
    """

    id: str
    lang: str
    text: str
    prev_user: str | None
    prev_agent_tail: str | None
    is_opener: bool
    label: str
    labels: frozenset[str]
    subtype: str | None = None
    session: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class LabelledCall:
    """A tool output with its labels; a label that the row does not state is null.

    Attributes:
        id: The row's id, else ``line N``.
        tool, command, output, exit_code: The call as logged.
        is_flagged: Whether the log marks the result as an error; null where it does not say.
        tools: Tools that the session offered; empty where they are not told.
        is_error: Whether the command or tool failed itself.
        status, category, layer: What the failure was.
    """

    id: str
    tool: str
    command: str
    output: str
    exit_code: int | None
    is_flagged: bool | None
    tools: tuple[str, ...]
    is_error: bool
    status: str | None
    category: str | None
    layer: str | None


class BadRowError(ValueError):
    """A row that cannot be scored: a quarantine code, and the field where one is to blame."""

    def __init__(self, code: str, field: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.field = field


def read_row(line: bytes, number: int) -> LabelledTurn | LabelledCall:
    """One line as a labelled row.

    Args:
        line: Bytes of a line that is not blank.
        number: Its number in the file, from 1.

    Raises:
        BadRowError: ``BAD_ENCODING``, ``BAD_JSON``, ``TOO_DEEP``, ``NOT_A_RECORD`` or ``BAD_FIELD``.
    """
    row = _object(line)
    name = row.get("id")
    known = str(name) if isinstance(name, (str, int)) else f"line {number}"
    if "output" in row:
        return _call(row, known)
    if "text" in row:
        return _turn(row, known)
    raise BadRowError("BAD_FIELD", "text or output")


def read_final(line: bytes) -> tuple[str, str]:
    """One line of a file of adjudications: (id, final label).

    Raises:
        BadRowError: as :func:`read_row`.
    """
    row = _object(line)
    name, final = row.get("id"), row.get("final")
    if not isinstance(name, (str, int)):
        raise BadRowError("BAD_FIELD", "id")
    if final not in TURN_LABELS and final not in STATUS_LABELS:
        raise BadRowError("BAD_FIELD", "final")
    return str(name), final


def adjudicated(row: LabelledTurn | LabelledCall, final: Mapping[str, str]) -> LabelledTurn | LabelledCall:
    """The row with its final label over the one that was given.

    The label that was overruled leaves ``labels``; further labels stay. A final label of the other
    layout changes nothing.
    """
    label = final.get(row.id)
    if isinstance(row, LabelledTurn):
        if label not in TURN_LABELS or label is None:
            return row
        return replace(row, label=label, labels=row.labels - {row.label} | {label})
    if label not in STATUS_LABELS or label is None:
        return row
    kept = label == row.status
    return replace(
        row, status=label, is_error=label == "error", category=row.category if kept else None,
        layer=row.layer if kept else None,
    )  # fmt: skip


def _object(line: bytes) -> dict[str, Any]:
    try:
        return json_object(line)
    except BadLineError as error:
        raise BadRowError(error.code) from None


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is None or isinstance(value, str):
        return value
    raise BadRowError("BAD_FIELD", name)


def _choice(row: Mapping[str, Any], name: str, allowed: Iterable[str]) -> str | None:
    value = _text(row, name)
    if value is not None and value not in allowed:
        raise BadRowError("BAD_FIELD", name)
    return value


def _flag(row: Mapping[str, Any], name: str) -> bool | None:
    value = row.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise BadRowError("BAD_FIELD", name)


def _names(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = row.get(name)
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadRowError("BAD_FIELD", name)
    return tuple(values)


def _turn(row: Mapping[str, Any], name: str) -> LabelledTurn:
    text, label = _text(row, "text"), _choice(row, "label", TURN_LABELS)
    if text is None or label is None:
        raise BadRowError("BAD_FIELD", "text" if text is None else "label")
    labels = frozenset(_names(row, "labels")) | {label}
    if not labels <= set(TURN_LABELS):
        raise BadRowError("BAD_FIELD", "labels")
    before = _text(row, "prev_user"), _text(row, "prev_agent_tail")
    opener = before == (None, None) and row.get("turn") == 0
    session = row.get("session")
    return LabelledTurn(
        name, _text(row, "lang") or "und", text, *before, opener, label, labels, _subtype(row),
        str(session) if isinstance(session, (str, int)) else name,
    )  # fmt: skip


def _subtype(row: Mapping[str, Any]) -> str | None:
    """Kind of a complaint; files name further kinds of other labels, which decide nothing here."""
    value = _text(row, "subtype")
    return value if value in SUBTYPES else None


def _call(row: Mapping[str, Any], name: str) -> LabelledCall:
    status, is_error = _choice(row, "status", STATUS_LABELS), _flag(row, "is_command_error")
    if status is None and is_error is None:
        raise BadRowError("BAD_FIELD", "status")
    if status is not None and is_error not in (None, status == "error"):
        raise BadRowError("BAD_FIELD", "is_command_error")
    tool, code = _text(row, "tool"), row.get("exit_code")
    if tool is None:
        raise BadRowError("BAD_FIELD", "tool")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool) or abs(code) >= 2**31):
        raise BadRowError("BAD_FIELD", "exit_code")
    return LabelledCall(
        name, tool, _text(row, "command") or "", _text(row, "output") or "", code, _flag(row, "is_error"),
        _names(row, "tools"), status == "error" if status else bool(is_error), status, _text(row, "category"),
        _text(row, "layer"),
    )  # fmt: skip
