"""What a verb prints when it is done.

Belongs here: choosing and ordering what is shown. Numbers come from the lake and the warehouse;
nothing is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from evalpipe import report as report_module
from evalpipe.console import review, show
from evalpipe.console.flow import Summary
from evalpipe.contracts.errors import ERROR_CODES, QUARANTINE_CODES, EvalpipeError, Exit
from evalpipe.settings import Settings
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import found
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.report import render
from evalpipe.store.warehouse import Warehouse

_BY_FORMAT = """
SELECT f.source AS format, f.files, coalesce(s.sessions, 0) AS sessions, coalesce(s.turns, 0) AS turns,
       coalesce(s.calls, 0) AS calls, f.rows, f.kept, f.noise, f.quarantined
FROM (SELECT source, count(*)::BIGINT AS files, sum(rows_read)::BIGINT AS rows, sum(rows_kept)::BIGINT AS kept,
             sum(rows_noise)::BIGINT AS noise, sum(rows_quarantined)::BIGINT AS quarantined
      FROM masked.files GROUP BY source) AS f
LEFT JOIN (SELECT source, count(*)::BIGINT AS sessions, sum(n_turns)::BIGINT AS turns,
                  sum(n_tool_calls)::BIGINT AS calls
           FROM masked.sessions GROUP BY source) AS s USING (source)
ORDER BY format
"""

#: A session that other copies were read of is one session; this says how many copies, and why.
_COPIES = """
SELECT CASE rule WHEN 'same_session' THEN 'a larger copy under the same id'
                 WHEN 'merged' THEN 'together with other parts of the session'
                 WHEN 'same_id' THEN 'the same id in ' || counted_source
                 WHEN 'same_trial' THEN 'its outcome with the steps in ' || counted_source
                 WHEN 'same_words' THEN 'the same words at the same time in ' || counted_source END AS counted_by,
       source AS format, n_copies AS copies, n_sessions AS sessions
FROM analysis.session_copies
ORDER BY ALL
"""

_BY_CODE = "SELECT code, source AS format, count(*)::BIGINT AS records FROM masked.quarantine GROUP BY ALL ORDER BY ALL"


#: Places of what could not be read that a run lists; the warehouse has them all.
_PLACES = 15


def after_run(settings: Settings, done: Summary, *, sources: Sequence[str | Path], as_json: bool) -> int:
    """What was read, what was refused, the answer, and where the report lies.

    Args:
        settings: Settings of the home.
        done: What the run did.
        sources: What was to be read; none for a run over what had landed.
        as_json: Print JSON for a script; it names no file.

    Returns:
        Exit code: ``NOTHING_READ``'s where sources hold no session that could be read.
    """
    warehouse = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory)
    formats = warehouse.query(_BY_FORMAT).to_dicts()
    codes = warehouse.query(_BY_CODE).to_dicts()
    copies = warehouse.query(_COPIES).to_dicts()
    for row in codes:
        row["fix"] = QUARANTINE_CODES[str(row["code"])].fix
    answer, page, groups, assigned = _answer(settings, done, n_sessions=sum(row["sessions"] for row in formats))
    red = {day.isoformat(): {"code": code, "what": what} for day, (code, what) in sorted(done.red.items())}
    with open_context(settings) as context:
        days = _days_with_sessions(context, done.days)
        files = found.locate(sources)
        needed = context.criteria.estimand.min_sessions_per_version
        is_nothing = bool(sources) and found.holds_no_session(context, files)
        places = found.unread(context, files, sources) if files and not as_json else []
    nothing = ERROR_CODES["NOTHING_READ"]
    if as_json:
        shown = {
            "days_made": [day.isoformat() for day in days],
            "days_refused": red,
            "formats": formats,
            "quarantine": codes,
            "copies": copies,
            "days_scored": [day.isoformat() for day in done.scored],
            "as_of": done.as_of.isoformat() if done.as_of else None,
            "window": done.window,
            "headline": answer,
            "assignment": assigned,
            "groups": groups,
            "report": page,
            "signals": review.alarms(settings),
        }
        if is_nothing:
            shown |= {"error": nothing.name, "what": nothing.meaning, "fix": nothing.fix}
        print(json.dumps(shown, ensure_ascii=False))
        return int(nothing.exit if is_nothing else Exit.OK)
    show.table(formats, title="What this home holds")
    if copies:
        show.line()
        show.table(copies, title="Copies that are counted once: which copy counts instead")
    if codes:
        show.line()
        show.table(codes, title="What could not be read")
    _places(places)
    show.line()
    span = f", {days[0]} to {days[-1]}" if days else ""
    # A run scores one as-of day, and says which below; a range scores each of its days.
    scored = f", days scored: {len(done.scored)}" if not sources else ""
    show.line(f"Days made: {len(days)}{span}{scored}")
    for day, entry in red.items():
        show.line(f"Day {day} refused: {entry['code']}: {entry['what']}")
    if is_nothing:
        where = ", ".join(map(str, sources))
        show.show_error(EvalpipeError(nothing.name, "no file there holds a session that could be read.", where=where))
        return int(nothing.exit)
    show.line(f"Answer: {answer}")
    if page and answer.startswith("No comparison"):
        show.line(f"Next: a comparison needs {needed} sessions of each of two versions on the same kind of work.")
    if assigned:
        show.line(f"Assignment: {assigned}")
    _show_groups(groups)
    review.show_alarms(review.alarms(settings))
    if page:
        show.line(f"Report: {page}")
    return int(Exit.OK)


def _show_groups(groups: list[dict[str, Any]]) -> None:
    """Lines and not a table: leading sets and labels are longer than any column."""
    if groups:
        show.line()
        show.line("Who can be told apart, by the work they share")
    for group in groups:
        told = group["told_apart"]
        show.line(
            f"{group['work']}: {len(group['versions'])} versions, {group['sessions']:,} sessions, "
            f"{len(told)} of {group['pairs']} pairs told apart"
        )
        show.line(f"  leading set: {', '.join(group['leading'])}")
        for better, worse, difference in told:
            show.line(f"  {better} is ahead of {worse}: {difference}")


def _days_with_sessions(context: Context, days: Sequence[date]) -> list[date]:
    # What could not be read has no day of its own and waits under the day on which it landed.
    return [day for day in days if (made := context.lookup("masked", day)) and made.rows("masked.sessions")]


def _places(unread: Sequence[found.Unread]) -> None:
    """Where the records lie that could not be read: file, line and byte, never their text."""
    if not unread:
        return
    show.line()
    rows = [
        {
            "file": item.name,
            "line": item.line or "whole file",
            "byte": item.byte,
            "code": item.code,
            "records": item.records,
        }
        for item in unread[:_PLACES]
    ]
    show.table(rows, title="Where: the first record of each code in a file", numeric=["line", "byte", "records"])
    if len(unread) > _PLACES:
        show.line(f"and {len(unread) - _PLACES:,} more; by line and byte: evalpipe sql 'from masked.quarantine'")
    strange = [item for item in unread[:_PLACES] if item.like]
    if strange:
        show.line()
        show.line("Files of no known format")
        for item in strange:
            show.line(f"  {item.name}: {item.like}")
        show.line("  To map a format of your own: docs/formats.md, 'A format that is not listed'.")


#: Headline, path of the report, groups, and what is known of the assignment.
_Answer = tuple[str, str | None, list[dict[str, Any]], str | None]


def _answer(settings: Settings, done: Summary, *, n_sessions: int) -> _Answer:
    if n_sessions == 0:
        return "No comparison: this home holds no session.", None, [], None
    with open_context(settings) as context:
        key = analysis_step.analysis_key(context, done.as_of, done.window) if done.as_of else None
        manifest = context.lake.manifest(key) if key else None
        if manifest is None:
            settle = timedelta(days=context.criteria.estimand.settle_days)
            return f"No comparison: {_unscored(done, settle)}", None, [], None
        made = render(context, manifest)
    return (
        report_module.headline(made.report),
        str(made.html),
        report_module.groups(made.report),
        report_module.assignment(made.report),
    )


def _unscored(done: Summary, settle: timedelta) -> str:
    """Why there is nothing to score."""
    if done.asked is None:
        return "no day is settled yet (outcomes look three days ahead)."
    if done.window == "all":
        return "no session can be scored yet."
    length, end = done.window.removesuffix("d"), done.asked - settle
    later = f"Sessions of {done.asked} count from {done.asked + settle} on."
    return f"days are up to date, with no settled session in the {length} days up to {end}. {later}"
