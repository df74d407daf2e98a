"""What a verb prints when it is done.

Belongs here: choosing and ordering what is shown. Numbers come from the lake and the warehouse;
nothing is computed here.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from evalpipe import report as report_module
from evalpipe.console import show
from evalpipe.console.flow import Summary
from evalpipe.contracts.errors import QUARANTINE_CODES, Exit
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import format as fmt
from evalpipe.report import gate as gate_card
from evalpipe.settings import Settings
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import rejections
from evalpipe.steps.context import open_context
from evalpipe.steps.report import make_report
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

_BY_CODE = "SELECT code, source AS format, count(*)::BIGINT AS records FROM masked.quarantine GROUP BY ALL ORDER BY ALL"


def after_run(settings: Settings, done: Summary, *, as_json: bool) -> None:
    """What was read, what was refused, the answer, and where the report lies."""
    warehouse = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory)
    formats = warehouse.query(_BY_FORMAT).to_dicts()
    codes = warehouse.query(_BY_CODE).to_dicts()
    for row in codes:
        row["fix"] = QUARANTINE_CODES[str(row["code"])].fix
    answer, page, groups = _answer(settings, done)
    red = {day.isoformat(): {"code": code, "what": what} for day, (code, what) in sorted(done.red.items())}
    if as_json:
        shown = {
            "days_made": [day.isoformat() for day in done.days],
            "days_refused": red,
            "formats": formats,
            "quarantine": codes,
            "as_of": done.as_of.isoformat() if done.as_of else None,
            "window": done.window,
            "headline": answer,
            "groups": groups,
            "report": page,
        }
        print(json.dumps(shown, ensure_ascii=False))
        return
    show.table(formats, title="What this home holds")
    if codes:
        show.out.print()
        show.table(codes, title="What could not be read")
    show.out.print()
    span = f", {done.days[0]} to {done.days[-1]}" if done.days else ""
    show.out.print(f"Days made: {len(done.days)}{span}", markup=False)
    for day, entry in red.items():
        show.out.print(f"Day {day} refused: {entry['code']}: {entry['what']}", markup=False)
    show.out.print(f"Answer: {answer}", markup=False)
    _show_groups(groups)
    if page:
        show.out.print(f"Report: {page}", markup=False, soft_wrap=True)


def _show_groups(groups: list[dict[str, Any]]) -> None:
    """Lines and not a table: leading sets and labels are longer than any column."""
    if groups:
        show.out.print()
        show.out.print("Who can be told apart, by the work they share", style="bold")
    for group in groups:
        told = group["told_apart"]
        show.out.print(
            f"{group['work']}: {len(group['versions'])} versions, {group['sessions']:,} sessions, "
            f"{len(told)} of {group['pairs']} pairs told apart",
            markup=False,
        )
        show.out.print(f"  leading set: {', '.join(group['leading'])}", markup=False, soft_wrap=True)
        for better, worse, difference in told:
            show.out.print(f"  {better} is ahead of {worse}: {difference}", markup=False, soft_wrap=True)


def _answer(settings: Settings, done: Summary) -> tuple[str, str | None, list[dict[str, Any]]]:
    if done.as_of is None:
        return "No comparison: no day is settled yet (outcomes look three days ahead).", None, []
    with open_context(settings) as context:
        if analysis_step.latest(context) is None:
            return "No comparison: no session can be scored yet.", None, []
        made = make_report(context, window=done.window)
    return report_module.headline(made.report), str(made.html), report_module.groups(made.report)


def after_gate(decided: pl.DataFrame, candidate: str, baseline: str, *, as_json: bool) -> int:
    """The verdict of every criterion and the exit code that goes with them."""
    verdicts = decided["verdict"].to_list()
    overall = "fail" if "fail" in verdicts else "pass" if verdicts and set(verdicts) == {"pass"} else "inconclusive"
    code = {"pass": Exit.OK, "fail": Exit.GATE_FAILED, "inconclusive": Exit.INCONCLUSIVE}[overall]
    rows = [_gate_row(row) for row in decided.iter_rows(named=True)]
    if as_json:
        keep = ["criterion", "metric", "kind", "margin", "estimate", "lower", "upper", "df", "verdict", "reasons"]
        shown = {
            "candidate": candidate,
            "baseline": baseline,
            "verdict": overall,
            "sign": "of estimate, lower and upper: positive is better, whatever the metric's own direction",
            "criteria": decided.select(keep).to_dicts(),
            "measurement": decided["measurement"][0] if decided.height else None,
            "window": [str(decided["window_start"][0]), str(decided["window_end"][0])] if decided.height else None,
        }
        print(json.dumps(shown, ensure_ascii=False))
        return int(code)
    if not rows:
        show.out.print("Readiness is not determined: no thresholds were declared before the results.")
    else:
        show.table(rows, title=f"May {candidate} replace {baseline}?")
        show.out.print(f"Verdict: {overall.upper()}", markup=False)
    return int(code)


def _gate_row(row: dict[str, Any]) -> dict[str, object]:
    metric = BY_NAME[row["metric"]]
    unit = fmt.unit_of(row["metric"])
    ends = gate_card.natural_ends(row["metric"], row["estimate"], row["lower"], row["upper"])
    return {
        "criterion": row["criterion"],
        "metric": metric.title,
        "kind": row["kind"].replace("_", " "),
        "margin": fmt.size(row["margin"], unit),
        "better is": gate_card.better_side(row["metric"]),
        "candidate minus baseline, 90 % interval": fmt.estimate(*ends, unit) if ends else fmt.UNAVAILABLE,
        "verdict": row["verdict"].upper(),
        "because": ", ".join(row["reasons"]),
    }


def scorecard(card: pl.DataFrame, version: str, *, as_json: bool) -> None:
    """One version over all metrics, all traffic first."""
    if as_json:
        print(json.dumps(card.to_dicts(), default=str, ensure_ascii=False))
        return
    rows = []
    for row in card.sort("slice", "metric").iter_rows(named=True):
        metric = BY_NAME[row["metric"]]
        rows.append(
            {
                "slice": row["slice"],
                "metric": metric.title,
                "shift, 95 % interval": fmt.estimate(row["estimate"], row["lo"], row["hi"], fmt.unit_of(row["metric"])),
                "better than": row["n_better_than"],
                "worse than": row["n_worse_than"],
                "not told apart": row["n_tied_with"],
                "sessions": row["n_sessions"],
                "status": row["status"],
            }
        )
    first = card.row(0, named=True)
    show.table(
        rows, title=f"{version}: shift against {first['reference']}, {first['window_start']} to {first['window_end']}"
    )


def doctor(settings: Settings, *, as_json: bool) -> None:
    """The state of a home, with the next command where something is amiss."""
    with open_context(settings) as context:
        plan = context.plan()
        red = rejections.rejected(context.lake)
        made = {
            step: len(context.lake.days(step, context.versions.variants[step])) for step in context.versions.variants
        }
        published = Warehouse(settings.warehouse).published()
        latest = analysis_step.latest(context)
        state = {
            "home": str(settings.home),
            "first_day": settings.first_day.isoformat(),
            "criteria": f"{context.criteria.name} {context.criteria.version}",
            "measurement": context.criteria.measurement,
            "files_seen": len(context.landing.known_files(context.readers)),
            "days_made": made["outcomes"],
            "days_stale": [f"{start}..{end}" for start, end in plan.runs],
            "days_refused": {day.isoformat(): entry["code"] for day, entry in red.items()},
            "latest_analysis": str(latest.key) if latest else None,
            "warehouse": "published" if published else "not published",
        }
    if as_json:
        print(json.dumps(state))
        return
    show.table([{"what": name, "state": _brief(value)} for name, value in state.items()])
    for start, end in plan.runs:
        show.out.print(f"Stale: run  evalpipe backfill {start}..{end}", markup=False)


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)
