"""The verb ``criteria bridge``: an old measurement beside a new one.

Belongs here: its words. Does not belong here: numbers (``steps/bridge.py``).
"""

from __future__ import annotations

import json
from typing import Any

from evalpipe.console import show
from evalpipe.settings import Settings
from evalpipe.steps.bridge import between
from evalpipe.steps.context import load_criteria, open_context

_COLUMNS = ("version", "n_sessions", "old_level", "new_level", "shift", "shift_lo", "shift_hi", "apart_lo", "apart_hi")
_WHY = {
    "few_sessions": "fewer than 500 sessions were scored under both",
    "few_users": "fewer than 100 users are in the overlap",
    "not_equivalent": "versions were not shown to be moved alike, to within half a point",
    "no_comparator": "fewer than two versions are in the overlap",
}


def bridge(settings: Settings, old: str, *, as_json: bool) -> None:
    """Print the bridge from old criteria to those of the settings."""
    with open_context(settings) as context:
        before = load_criteria(old)
        rows = between(context, before).to_dicts()
        after = context.criteria
    if as_json:
        print(json.dumps(rows, default=str))
        return
    title = f"{before.name} {before.version} to {after.name} {after.version}, {rows[0]['metric']}"
    show.table([{name: row[name] for name in _COLUMNS} for row in rows], title=title)
    show.line(sentence(rows))


def sentence(rows: list[dict[str, Any]]) -> str:
    """What a bridge permits, in words."""
    first = next((row for row in rows if row["mean_shift"] is not None), rows[0])
    if first["is_chained"]:
        moved = f"{100 * first['mean_shift']:+.2f} points (standard error {100 * first['mean_shift_se']:.2f})"
        return f"Series of levels may be chained: the new measurement moves every version alike, by {moved}."
    codes = dict.fromkeys(code for row in rows for code in row["reasons"])
    why = "; ".join(_WHY.get(code, code) for code in codes)
    return f"A break: {why}. Numbers before and after are not compared; the shifts above are the size of the break."
