"""The report as JSON, schema ``evalpipe.report/1``: the object that everything is drawn from.

Belongs here: turning :class:`~evalpipe.report.model.Report` into text. Long lists of alike rows
(estimates, pairs) are tables of ``columns`` and ``rows``, which halves the file and loads straight
into a data frame. Keys are sorted and there is no clock: the same report gives the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any

from evalpipe.report.model import Report, Run, plain
from evalpipe.report.records import Estimate, Pair

_TABLES: dict[str, type[Estimate] | type[Pair]] = {"estimates": Estimate, "pairs": Pair}


def to_json(report: Report) -> str:
    """The report as one line of JSON, keys sorted, null where evidence is missing."""
    return json.dumps(_value(report), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def for_script(text: str) -> str:
    """JSON that may stand inside a script element: nothing in it can close the element."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _value(value: Any) -> Any:
    if is_dataclass(value):
        names = [f.name for f in fields(value) if not f.name.startswith("_")]
        return {name: _field(name, getattr(value, name)) for name in names}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        if value and isinstance(value[0], Run):
            return plain(value)
        return [_value(item) for item in value]
    return value


def _field(name: str, value: Any) -> Any:
    if name not in _TABLES:
        return _value(value)
    names = [f.name for f in fields(_TABLES[name])]
    return {"columns": names, "rows": [[_value(getattr(row, n)) for n in names] for row in value]}
