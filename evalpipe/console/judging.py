"""What ``evalpipe signals judge`` does: items of a file in, the same items with labels out.

Belongs here: files and what is printed. Does not belong here: the question or the judge (``steps/judge.py``).
The output is a file for ``evalpipe review import``; items without labels are left out there.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.json_lines import BadLineError, json_object, lines
from evalpipe.settings import Settings
from evalpipe.steps import judge as judges
from evalpipe.steps import reviews
from evalpipe.store.lake import Lake

KEY = "EVALPIPE_JUDGE_KEY"


def run(
    items: Path,
    out: Path,
    *,
    url: str,
    name: str,
    as_json: bool,
    retry_invalid: bool = False,
    settings: Settings | None = None,
) -> None:
    """Judge the turns of a sample; those that ``out`` has already are not asked about again.

    Args:
        items: JSON lines of items. out: JSON lines to append to, one as soon as it is judged.
        url, name: Endpoint and model; the key comes from the environment alone.
        retry_invalid: Ask again about items whose answer broke the schema.
        as_json: Counts as JSON in place of a line.
        settings: Settings of the home that the sample is of; items that are gone from it, because somebody was
            erased or withdrew, are not sent.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``LABELS_INVALID``, ``JUDGE_UNUSABLE``.
    """
    about = judges.question()
    ask = judges.endpoint(url, name, os.environ.get(KEY, ""), about)
    rows = list(_rows(items))
    before = list(_rows(out, may_break_off=True)) if out.exists() else []
    done = {row["item_id"] for row in before if not (retry_invalid and _is_invalid(row))}
    done |= {row["item_id"] for row in before if row.get("labels")}
    left = reviews.gone(Lake(settings.lake), [row["item_id"] for row in rows]) if settings else frozenset[str]()
    turns = [row for row in rows if row.get("kind", "turn") == "turn" and row["item_id"] not in left]
    asked = [row for row in turns if row["item_id"] not in done]
    counts: Counter[str] = Counter()
    with _appending(out) as file:
        for one in judges.judge(asked, ask, about):
            counts[one.state] += 1
            note = f"judge {name}, question {about.version}: {one.state}"[:500]
            file.write(json.dumps({**one.item, "labels": list(one.labels), "note": note}, ensure_ascii=False) + "\n")
            file.flush()
    told = {state: counts[state] for state in (judges.LABELLED, judges.INVALID, judges.WITHHELD)}
    told |= {"judged_before": len(done), "not_turns": sum(row.get("kind", "turn") != "turn" for row in rows)}
    if left:
        told |= {"gone": len(left)}
    if as_json:
        print(json.dumps(told))
    else:
        show.line(", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in told.items()))
        command = f"evalpipe review import {shlex.quote(str(out))} --reviewer HANDLE"
        show.note(f"Import them as the opinion of a reviewer: {command}")


def _is_invalid(row: dict[str, Any]) -> bool:
    return str(row.get("note", "")).endswith(f": {judges.INVALID}")


def _appending(out: Path) -> TextIO:
    """The file to append to, readable by the owner only, without a last line that a killed run broke off."""
    handle = os.open(out, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(handle, 0o600)
    data = out.read_bytes()
    last = data[data.rfind(b"\n") + 1 :]
    if last and _item(last) is None:
        os.ftruncate(handle, len(data) - len(last))
        last = b""
    os.lseek(handle, 0, os.SEEK_END)
    file = os.fdopen(handle, "w", encoding="utf-8")
    if last:
        file.write("\n")
    return file


def _rows(path: Path, *, may_break_off: bool = False) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise EvalpipeError("SOURCE_NOT_FOUND", "the file does not exist.", where=str(path))
    data = path.read_bytes()
    n_lines = data.count(b"\n") + 1
    for number, line in lines(data):
        row = _item(line)
        if row is None and may_break_off and number == n_lines:
            continue
        if row is None:
            raise EvalpipeError("LABELS_INVALID", "it is no item of a sample.", where=f"{path}:{number}")
        yield row


def _item(line: bytes) -> dict[str, Any] | None:
    try:
        row = json_object(line)
    except BadLineError:
        return None
    return row if isinstance(row.get("item_id"), str) and row.get("shown") else None
