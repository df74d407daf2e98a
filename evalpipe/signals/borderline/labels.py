"""Labelled turns of files, for training and measuring.

Belongs here: reading paths in both layouts. Does not belong here: the layouts themselves (``labelled``,
``dialogues``). One bad row refuses all files: a model that was made without it is not the one asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.signals import dialogues, labelled
from evalpipe.signals.labelled import BadRowError, LabelledTurn


def read(paths: Iterable[Path]) -> list[LabelledTurn]:
    """Labelled turns of files.

    Args:
        paths: Files of dialogues (.txt) or JSON lines (.jsonl).

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, or ``LABELS_INVALID`` with file and line.
    """
    turns: list[LabelledTurn] = []
    for path in paths:
        if not path.is_file():
            raise EvalpipeError("SOURCE_NOT_FOUND", "the file does not exist.", where=str(path))
        turns += _of_file(path)
    if not turns:
        raise EvalpipeError("LABELS_INVALID", "no file holds a labelled turn.", where="--labels")
    return turns


def with_context(turns: Iterable[LabelledTurn]) -> list[LabelledTurn]:
    """Turns that something came before: extraction reads no others, so no others measure it."""
    return [turn for turn in turns if not turn.is_opener]


def to_measure(turns: Iterable[LabelledTurn], where: str) -> list[LabelledTurn]:
    """Turns that something came before, at least one.

    Args:
        turns: Labelled turns.
        where: File or set, for the error.

    Raises:
        EvalpipeError: ``LABELS_INVALID`` where every turn opens a session.
    """
    found = with_context(turns)
    if not found:
        what = "every turn opens a session; only one that something came before can be measured."
        raise EvalpipeError("LABELS_INVALID", what, where=where)
    return found


def adjudicated(turns: Iterable[LabelledTurn], path: Path) -> list[LabelledTurn]:
    """Turns with the final labels of a file of adjudications over their own.

    Raises:
        EvalpipeError: ``LABELS_INVALID`` with the line.
    """
    final: dict[str, str] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if line.strip():
            try:
                name, label = labelled.read_final(line)
            except BadRowError as error:
                raise _invalid(error, f"{path}:{number}") from None
            final[name] = label
    return [_over(turn, final) for turn in turns]


def _over(turn: LabelledTurn, final: Mapping[str, str]) -> LabelledTurn:
    out = labelled.adjudicated(turn, final)
    return out if isinstance(out, LabelledTurn) else turn


def _of_file(path: Path) -> list[LabelledTurn]:
    if path.suffix == dialogues.SUFFIX:
        try:
            return [turn for _, turn in dialogues.read_dialogues(path)]
        except BadRowError as error:
            raise _invalid(error, str(path)) from None
    turns: list[LabelledTurn] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = labelled.read_row(line, number)
        except BadRowError as error:
            raise _invalid(error, f"{path}:{number}") from None
        if not isinstance(row, LabelledTurn):
            raise EvalpipeError("LABELS_INVALID", "it is a tool output, not a turn.", where=f"{path}:{number}")
        turns.append(row)
    return turns


def _invalid(error: BadRowError, where: str) -> EvalpipeError:
    what = f"{error.code}{f' ({error.field})' if error.field else ''}."
    return EvalpipeError("LABELS_INVALID", what, where=where)
