"""Files that go to reviewers and come back: CSV or JSON lines, written and checked.

Belongs here: their form and its faults. Does not belong here: which items exist and what they are
(``steps/review_import.py``).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables.reviews import ITEM_KINDS
from evalpipe.review.rules import Guide

#: Columns of a file for reviewers. Only ``item_id``, ``labels`` and ``note`` are read back.
COLUMNS = ("item_id", "kind", "lang", "previous_request", "agent_tail", "shown", "labels", "note")
STYLES = (".jsonl", ".csv")
MAX_NOTE_CHARS = 500
_REVIEWER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a reviewer said of one item.

    Attributes:
        item_id: Item.
        labels: The primary one first.
        note: Remark, or empty.
        where: File and row, for errors.
    """

    item_id: str
    labels: tuple[str, ...]
    note: str
    where: str


def check_reviewer(name: str) -> str:
    """The label of a reviewer.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if not _REVIEWER.fullmatch(name):
        what = "a reviewer goes by at most 40 letters, digits, dots, dashes and underscores"
        raise EvalpipeError("BAD_ARGUMENT", what, where="--reviewer")
    return name


def write_items(items: Iterable[Mapping[str, Any]], style: str) -> str:
    """Items as the text of a file.

    Args:
        items: Rows of :data:`COLUMNS`, ``labels`` and ``note`` empty.
        style: ``.jsonl`` or ``.csv``.
    """
    if style == ".jsonl":
        return "".join(json.dumps(dict(item), ensure_ascii=False) + "\n" for item in items)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for item in items:
        texts = {name: _inert(item[name]) for name in ("previous_request", "agent_tail", "shown")}
        writer.writerow({**item, **texts, "labels": ";".join(item["labels"])})
    return stream.getvalue()


def _inert(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def read_labels(paths: Sequence[Path], guide: Guide) -> list[Labelled]:
    """Labels of reviewed files; items without a label are left out.

    Args:
        paths: Files that end in .jsonl or .csv.
        guide: Labels that there are.

    Raises:
        EvalpipeError: ``REVIEW_INVALID`` with file and row; ``FILE_FAILED``. One wrong row refuses all
            files: a sample of which a part is left out is not the sample that was drawn.
    """
    known = {label.name for label in guide.labels}
    out: dict[str, Labelled] = {}
    for path in paths:
        for number, row in enumerate(_rows(path), 1):
            found = _labelled(row, f"{path.name}, row {number}", known, guide.alone)
            if found is None:
                continue
            if found.item_id in out and out[found.item_id].labels != found.labels:
                raise _invalid("the item has other labels further up", found.where)
            out.setdefault(found.item_id, found)
    return list(out.values())


def read_items(path: Path, guide: Guide) -> list[dict[str, Any]]:
    """Items of a sample with what a reviewer has said of them so far, in the order of the file.

    Args:
        path: A file of :func:`write_items`, labelled or not.
        guide: Labels that there are.

    Raises:
        EvalpipeError: ``REVIEW_INVALID``, ``FILE_FAILED``.
    """
    said = {one.item_id: one for one in read_labels([path], guide)}
    out = []
    for number, row in enumerate(_rows(path), 1):
        texts = {name: row.get(name) for name in ("item_id", "kind", "lang", "previous_request", "agent_tail", "shown")}
        if not all(isinstance(value, str) for value in texts.values()) or texts["kind"] not in ITEM_KINDS:
            raise _invalid("it is no item of a sample", f"{path.name}, row {number}")
        one = said.get(str(texts["item_id"]))
        out.append({**texts, "labels": list(one.labels) if one else [], "note": one.note if one else ""})
    return out


def _labelled(row: Mapping[str, Any], where: str, known: set[str], alone: frozenset[str]) -> Labelled | None:
    item_id, note = row.get("item_id"), row.get("note") or ""
    if not isinstance(item_id, str) or not item_id.strip():
        raise _invalid("it has no item_id", where)
    labels = _labels(row.get("labels"), where)
    if not labels:
        return None
    for label in labels:
        if label not in known:
            raise _invalid(f"a label is unknown; known are {', '.join(sorted(known))}", where)
    if len(labels) > 1 and alone & set(labels):
        raise _invalid(f"{', '.join(sorted(alone & set(labels)))} stands alone", where)
    if not isinstance(note, str) or len(note) > MAX_NOTE_CHARS:
        raise _invalid(f"note must be text of at most {MAX_NOTE_CHARS} characters", where)
    return Labelled(item_id.strip(), labels, note.strip(), where)


def _labels(value: Any, where: str) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    parts = re.split(r"[;,\s]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise _invalid("labels must be a list of names, or names parted by semicolons", where)
    return tuple(dict.fromkeys(part for part in parts if part))


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix.lower() not in STYLES:
        raise _invalid(f"it must end in {' or '.join(STYLES)}", path.name)
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise _invalid("it is not UTF-8", path.name) from None
    if path.suffix.lower() == ".csv":
        reader = csv.DictReader(io.StringIO(text, newline=""))
        if "item_id" not in (reader.fieldnames or ()) or "labels" not in (reader.fieldnames or ()):
            raise _invalid("it has no columns item_id and labels", path.name)
        return list(reader)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise _invalid("it is not a JSON object", f"{path.name}, line {number}")
        rows.append(row)
    return rows


def _invalid(what: str, where: str) -> EvalpipeError:
    return EvalpipeError("REVIEW_INVALID", f"{what}.", where=where)
