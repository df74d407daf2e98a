"""What a person types after an option, read into values.

Belongs here: days, ranges, windows, version labels. Does not belong here: options themselves
(``cli.py``) or what a verb does with a value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import date

from evalpipe.contracts.errors import EvalpipeError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WINDOW = re.compile(r"[1-9][0-9]{0,3}d")
#: Between the parts of a label; ``/`` and ``:`` stand for it, because no keyboard has a key for it.
_SEPARATOR = re.compile(r"\s*[·/:]\s*")
_YEARS = (1970, 2200)
#: Versions that an error names; a home may hold hundreds.
_NAMED = 12


def day(text: str) -> date:
    """One day.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or not _YEARS[0] <= found.year <= _YEARS[1]:
        what = f"a day is written YYYY-MM-DD, from {_YEARS[0]} to {_YEARS[1]}"
        raise EvalpipeError("BAD_ARGUMENT", what, where=text, fix="Write it as 2026-01-31.")
    return found


def days(text: str) -> tuple[date, date]:
    """A range ``A..B``, or one day.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    first, dots, last = text.partition("..")
    start = day(first)
    end = day(last) if dots else start
    if end < start:
        raise EvalpipeError(
            "BAD_ARGUMENT", "the range ends before it begins", where=text, fix="Write A..B with A before B."
        )
    return start, end


def window(text: str) -> str:
    """A window: ``all``, or a trailing number of days such as ``28d``.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if text != "all" and not _WINDOW.fullmatch(text):
        what = "a window is 'all', or a number of days from 1d to 9999d"
        raise EvalpipeError("BAD_ARGUMENT", what, where=text, fix="Write all, or days such as 28d.")
    return text


def plain_name(text: str) -> str:
    """A name of letters, digits, '_', '.' and '-'.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if not _NAME.fullmatch(text):
        what = "a name holds letters, digits, '_', '.' and '-', and begins with one of the first two"
        raise EvalpipeError("BAD_ARGUMENT", what, where=text, fix="Write it as 2026-q1.")
    return text


def version(text: str, known: Iterable[str]) -> str:
    """The version label that a person means.

    A label as the report prints it always wins. Otherwise letter case does not count, ``/`` and ``:``
    stand for ``·``, and the beginning of a label, or its model alone, is enough where only one label
    has it. A number is never completed: ``m-2`` is not ``m-20``.

    Args:
        text: What was typed.
        known: Labels of the analysis.

    Returns:
        One of the labels.

    Raises:
        EvalpipeError: ``UNKNOWN_VERSION`` for none, ``BAD_ARGUMENT`` for several.
    """
    labels = sorted(set(known))
    if text in labels:
        return text
    typed = _folded(text)
    same = [label for label in labels if _folded(label) == typed]
    found = same or [label for label in labels if typed and _begins(_folded(label), typed)]
    found = found or [label for label in labels if typed in _folded(label).split("·")[1:]]
    if len(found) == 1:
        return found[0]
    if found:
        what = f"{len(found)} versions are meant by it: {_listed(found)}"
        raise EvalpipeError("BAD_ARGUMENT", what, where=text, fix="Write more of the label, or all of it in quotes.")
    if not labels:
        raise EvalpipeError("UNKNOWN_VERSION", "the analysis holds no version", where=text)
    close = difflib.get_close_matches(typed, {_folded(label): label for label in labels}, n=3, cutoff=0.5)
    close_labels = [label for name in close for label in labels if _folded(label) == name]
    fix = f"Did you mean '{close_labels[0]}'?" if close_labels else f"Take a version that is there, as '{labels[0]}'."
    raise EvalpipeError("UNKNOWN_VERSION", "no session of that version in the window", where=text, fix=fix)


def _folded(label: str) -> str:
    return _SEPARATOR.sub("·", " ".join(label.split())).casefold()


def _begins(label: str, typed: str) -> bool:
    rest = label.removeprefix(typed)
    is_within_number = typed[-1].isdigit() and re.match(r"\.?\d", rest) is not None
    return label.startswith(typed) and not is_within_number


def _listed(labels: list[str]) -> str:
    shown = ", ".join(f"'{label}'" for label in labels[:_NAMED])
    return shown + (f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else "")
