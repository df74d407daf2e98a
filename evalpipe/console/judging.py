"""What ``evalpipe signals judge`` does: items of a file in, the same items with labels out.

Belongs here: files and what is printed. Does not belong here: the question or the judge (``steps/judge.py``).
The output is a file for ``evalpipe review import``; items without labels are left out there.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps import judge as judges

KEY = "EVALPIPE_JUDGE_KEY"


def run(items: Path, out: Path, *, url: str, name: str, as_json: bool) -> None:
    """Judge the turns of a sample; those that ``out`` has already are not asked about again.

    Args:
        items: JSON lines of items. out: JSON lines to append to, one as soon as it is judged.
        url, name: Endpoint and model; the key comes from the environment alone.
        as_json: Counts as JSON in place of a line.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``LABELS_INVALID``, ``JUDGE_UNUSABLE``.
    """
    about = judges.question()
    ask = judges.endpoint(url, name, os.environ.get(KEY, ""), about)
    rows = list(_rows(items))
    done = {row["item_id"] for row in _rows(out)} if out.exists() else set()
    asked = [row for row in rows if row.get("kind", "turn") == "turn" and row["item_id"] not in done]
    counts: Counter[str] = Counter()
    with out.open("a", encoding="utf-8") as file:
        for one in judges.judge(asked, ask, about):
            counts[one.state] += 1
            note = f"judge {name}, question {about.version}: {one.state}"[:500]
            file.write(json.dumps({**one.item, "labels": list(one.labels), "note": note}, ensure_ascii=False) + "\n")
            file.flush()
    told = {state: counts[state] for state in (judges.LABELLED, judges.INVALID, judges.WITHHELD)}
    told |= {"judged_before": len(done), "not_turns": sum(row.get("kind", "turn") != "turn" for row in rows)}
    if as_json:
        print(json.dumps(told))
    else:
        show.line(", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in told.items()))
        show.note(f"Import them as the opinion of a reviewer: evalpipe review import {out}")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise EvalpipeError("SOURCE_NOT_FOUND", "the file does not exist.", where=str(path))
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("item_id"), str) or not row.get("shown"):
            raise EvalpipeError("LABELS_INVALID", "it is no item of a sample.", where=f"{path}:{number}")
        yield row
