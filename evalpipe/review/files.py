"""Files that go to reviewers and come back: CSV or JSON lines, written and checked.

Belongs here: their form and its faults. Does not belong here: which items exist and what they are
(``steps/reviews.py``).
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.json_lines import BadLineError, json_object, lines
from evalpipe.contracts.tables.reviews import ITEM_KINDS
from evalpipe.review.rules import Guide

#: Columns of a file for reviewers. Only ``item_id``, ``labels`` and ``note`` are read back.
COLUMNS = ("item_id", "kind", "lang", "previous_request", "agent_tail", "shown", "labels", "note")
#: What is said of a line that another word fits better than that it is no object.
_WHAT = {"BAD_ENCODING": "it holds half a character (a lone surrogate)"}
STYLES = (".jsonl", ".csv")
_NEEDED = ("item_id", "labels")
MAX_NOTE_CHARS = 500
#: A line that begins like a row: what a quote that is never closed leads into a remark.
_SWALLOWED = re.compile(r"[\r\n]\s*\"?s?[0-9a-f]{8}[-.]\d{4,}\b")
_REVIEWER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a reviewer said of one item.

    Attributes:
        item_id: Item.
        labels: The primary one first.
        note: Remark, or empty.
        where: File and row, for errors.
        reviewer: Who said it, where the file tells; else empty.
    """

    item_id: str
    labels: tuple[str, ...]
    note: str
    where: str
    reviewer: str = ""


def check_reviewer(name: str) -> str:
    """The label of a reviewer, in small letters: Ann and ann are one person.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if not _REVIEWER.fullmatch(name):
        what = "a reviewer goes by at most 40 letters, digits, dots, dashes and underscores"
        raise EvalpipeError("BAD_ARGUMENT", what, where="--reviewer")
    return name.casefold()


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
    """Labels of reviewed files; items without a label are left out. As :func:`read_files`."""
    return read_files(paths, guide)[0]


def read_files(paths: Sequence[Path], guide: Guide) -> tuple[list[Labelled], int]:
    """Labels of reviewed files, and how many items the files hold, those without a label among them.

    Args:
        paths: Files that end in .jsonl or .csv.
        guide: Labels that there are.

    Raises:
        EvalpipeError: ``REVIEW_INVALID`` with file and row; ``FILE_FAILED``. One wrong row refuses all
            files: a sample of which a part is left out is not the sample that was drawn.
    """
    known = {label.name for label in guide.labels}
    out: dict[str, Labelled] = {}
    there = set[str]()
    for path in paths:
        for number, row in enumerate(read_rows(path, _NEEDED), 1):
            found = _labelled(row, f"{path.name}, row {number}", known, guide.alone)
            there.add(str(row["item_id"]).strip())
            if found is None:
                continue
            if found.item_id in out and out[found.item_id].labels != found.labels:
                raise invalid("the item has other labels further up", found.where)
            out.setdefault(found.item_id, found)
    return list(out.values()), len(there)


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
    for number, row in enumerate(read_rows(path, _NEEDED), 1):
        texts = {name: row.get(name) for name in ("item_id", "kind", "lang", "previous_request", "agent_tail", "shown")}
        if not all(isinstance(value, str) for value in texts.values()) or texts["kind"] not in ITEM_KINDS:
            raise invalid("it is no item of a sample", f"{path.name}, row {number}")
        one = said.get(str(texts["item_id"]))
        out.append({**texts, "labels": list(one.labels) if one else [], "note": one.note if one else ""})
    return out


def _labelled(row: Mapping[str, Any], where: str, known: set[str], alone: frozenset[str]) -> Labelled | None:
    item_id, note, reviewer = row.get("item_id"), row.get("note") or "", row.get("reviewer") or ""
    if not isinstance(item_id, str) or not item_id.strip():
        raise invalid("it has no item_id", where)
    labels = _labels(row.get("labels"), where)
    if not labels:
        return None
    for label in labels:
        if label not in known:
            raise invalid(f"a label is unknown; known are {', '.join(sorted(known))}", where)
    if len(labels) > 1 and alone & set(labels):
        raise invalid(f"{', '.join(sorted(alone & set(labels)))} stands alone", where)
    if not isinstance(note, str) or len(note) > MAX_NOTE_CHARS:
        raise invalid(f"note must be text of at most {MAX_NOTE_CHARS} characters", where)
    if _SWALLOWED.search(note):
        raise invalid("note holds a row: a quote before it is not closed", where)
    if not all(_is_text(text) for text in (item_id, note)):
        raise invalid("it holds half a character (a lone surrogate)", where)
    if not isinstance(reviewer, str):
        raise invalid("reviewer must be a name", where)
    return Labelled(item_id.strip(), labels, note.strip(), where, reviewer.strip())


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _labels(value: Any, where: str) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    parts = re.split(r"[;,\s]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise invalid("labels must be a list of names, or names parted by semicolons", where)
    return tuple(dict.fromkeys(part.strip().casefold() for part in parts if part.strip()))


def read_rows(path: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a file of labels.

    Args:
        path: A file that ends in .jsonl or .csv. needed: columns without which a .csv file is none of labels.

    Raises:
        EvalpipeError: ``REVIEW_INVALID``.
    """
    if path.suffix.lower() not in STYLES:
        raise invalid(f"it must end in {' or '.join(STYLES)}", path.name)
    data = path.read_bytes()
    # Spreadsheets save "Unicode text" as UTF-16 with its mark in front.
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise invalid("it is not UTF-8, nor UTF-16 with a byte order mark", path.name) from None
    return _csv_rows(text, path.name, needed) if path.suffix.lower() == ".csv" else _json_rows(text, path.name)


def _json_rows(text: str, name: str) -> list[dict[str, Any]]:
    rows = []
    for number, line in lines(text.encode("utf-8", "surrogatepass")):
        try:
            rows.append(json_object(line))
        except BadLineError as error:
            what = _WHAT.get(error.code, "it is not a JSON object")
            raise invalid(what, f"{name}, line {number}") from None
    return rows


def _csv_rows(text: str, name: str, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a spreadsheet, whose cells are parted by what parts the names of its columns."""
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[dict[str, Any]] = []
    names: list[str] | None = None
    try:
        for cells in reader:
            where = f"{name}, line {reader.line_num}"
            if names is None:
                names = [cell.strip().casefold() for cell in cells]
                if not set(needed) <= set(names):
                    raise invalid(f"it has no columns {' and '.join(needed)}", name)
                if len(set(names)) != len(names):
                    raise invalid("a column is there twice", name)
            elif [cell.strip().casefold() for cell in cells] == names:
                raise invalid("the names of the columns are there again", where)
            elif any(cells):
                if len(cells) != len(names):
                    raise invalid(f"it has {len(cells)} cells where the file has {len(names)} columns", where)
                rows.append(dict(zip(names, cells, strict=True)))
    except csv.Error:
        raise invalid("a quote is not closed, or a cell is too long", f"{name}, line {reader.line_num}") from None
    if names is None:
        raise invalid(f"it has no columns {' and '.join(needed)}", name)
    return rows


def invalid(what: str, where: str) -> EvalpipeError:
    """The error of a file of labels that cannot be read."""
    return EvalpipeError("REVIEW_INVALID", f"{what}.", where=where)
