"""Labelled dialogues written as text: the layout of ``data/corpus``, read and checked.

Belongs here: that layout, in which a person can write and review. Does not belong here: the layout of
JSON lines (``labelled``), what a label means (``data/corpus/README.md``).

A dialogue opens with ``@ domain=travel register=polite``, with ``weight=3`` where its turns count more in
training; then ``a|`` lines hold the end of what the
agent said and ``u|labels|`` lines what the user said, with the primary label first and complaints as
``complaint.failure_report`` or ``complaint.sentiment``. ``\\n`` stands for a line break.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from evalpipe.signals.labelled import SUBTYPES, TURN_LABELS, BadRowError, LabelledTurn

SUFFIX = ".txt"
_COMPLAINT = "complaint"


def session_of(lang: str, text: str, agent: str | None) -> str:
    """Id of a dialogue: twelve hexadecimal digits of its language and its first turn."""
    return hashlib.sha256((lang + text + (agent or "")).encode()).hexdigest()[:12]


def read_dialogues(path: Path) -> Iterator[tuple[int, LabelledTurn]]:
    """Turns of a file with their line numbers, in order.

    Args:
        path: File whose name holds its language, such as ``pt.train.txt``.

    Raises:
        BadRowError: ``BAD_ENCODING``, or ``BAD_FIELD`` with the line number and what is wrong there.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError:
        raise BadRowError("BAD_ENCODING") from None
    lang = path.name.removesuffix(SUFFIX).split(".")[-1 if path.name.startswith("paraphrases") else 0]
    is_open, session, weight = False, "", 1.0
    said: list[str] = []
    agent: str | None = None
    for number, line in enumerate(lines, 1):
        mark, _, rest = line.partition("|")
        if not line.strip():
            continue
        if line.startswith("@"):
            is_open, session, said, agent = True, "", [], None
            weight = _weight(line, number)
        elif not is_open or mark not in ("a", "u"):
            raise BadRowError("BAD_FIELD", f"line {number}: not a line of a dialogue")
        elif mark == "a":
            agent = _text(rest)
        else:
            names, _, text = rest.partition("|")
            label, labels, subtype = _labels(names, number)
            session = session or session_of(lang, _text(text), agent)
            before = said[-1] if said else None
            yield number, LabelledTurn(
                f"{lang}-{session}-{len(said)}", lang, _text(text), before, agent, before is None and agent is None,
                label, labels, subtype, session, weight,
            )  # fmt: skip
            said.append(_text(text))
            agent = None


def _weight(header: str, number: int) -> float:
    values = [field.removeprefix("weight=") for field in header.split() if field.startswith("weight=")]
    if not values:
        return 1.0
    if not re.fullmatch(r"[1-9][0-9]?", values[0]):
        raise BadRowError("BAD_FIELD", f"line {number}: weight is a whole number from 1 to 99")
    return float(values[0])


def _text(written: str) -> str:
    return written.replace("\\n", "\n").strip()


def _labels(names: str, number: int) -> tuple[str, frozenset[str], str | None]:
    """(primary label, all labels, kind of the primary complaint) of ``complaint.sentiment,praise``."""
    pairs = [name.strip().partition(".") for name in names.split(",")]
    for label, dot, kind in pairs:
        is_known = label in TURN_LABELS and (kind in SUBTYPES if label == _COMPLAINT else not dot)
        if not is_known:
            raise BadRowError("BAD_FIELD", f"line {number}: labels")
    label, _, kind = pairs[0]
    return label, frozenset(pair[0] for pair in pairs), kind or None
