"""The demo: logs with known truth, every night of a fortnight, truth beside estimate.

Belongs here: the order of the demo and what it shows. Does not belong here: the simulator, which
imports nothing that reads logs or estimates, so that agreement between the two is evidence.
"""

from __future__ import annotations

import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.console import show
from evalpipe.console.flow import run_sources
from evalpipe.contracts.errors import EvalpipeError, Exit
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import format as fmt
from evalpipe.settings import Settings
from evalpipe.simulate import Spec, Truth, simulate
from evalpipe.simulate.truth import METRICS
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps.context import open_context
from evalpipe.steps.progress import showing
from evalpipe.store.plan import LOOK_AHEAD_DAYS

#: Criteria of the demo: they declare the assignment, which most simulated formats cannot state.
CRITERIA = "demo"
_MB = 1_000_000


def write_logs(
    out: Path, *, sessions: int, days: int, start: date, seed: int, profile: str, routing: str, late: bool
) -> Truth:
    """Write simulated logs and say what was written.

    Args:
        out: Folder, made if absent; one that holds something else is refused.
        sessions, days, start, seed, profile, routing, late: See :class:`evalpipe.simulate.Spec`.
    """
    if out.exists() and any(out.iterdir()):
        raise EvalpipeError("BAD_ARGUMENT", "the folder is not empty", where=str(out), fix="Name a new folder.")
    if profile not in ("demo", "real") or routing not in ("session", "sticky"):
        raise EvalpipeError("BAD_ARGUMENT", "the profile is demo or real, the routing session or sticky")
    spec = Spec(
        sessions=sessions,
        days=days,
        start=start,
        seed=seed,
        profile="demo" if profile == "demo" else "real",
        routing="session" if routing == "session" else "sticky",
        late=late,
    )
    begun = time.monotonic()
    truth = simulate(out, spec)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    seconds = time.monotonic() - begun
    show.note(f"Wrote {sessions:,} sessions, {size / _MB:,.0f} MB, in {seconds:.0f} s: {out}")
    return truth


def run_demo(settings: Settings, *, sessions: int, days: int, seed: int, debug: bool) -> int:
    """Run the demo and return its exit code: 1 where a planted effect lies outside its interval.

    Args:
        settings: Settings with the demo's home.
        sessions: Sessions to simulate.
        days: Days to simulate.
        seed: Seed of the simulation.
        debug: Show Dagster's own log.
    """
    from evalpipe.orchestration.runner import open_runner

    logs = settings.home / "logs"
    if settings.home.exists():
        raise EvalpipeError(
            "BAD_ARGUMENT",
            "the demo's home exists",
            where=str(settings.home),
            fix="Remove it, or name another: --home.",
        )
    start = date(2026, 1, 5)
    truth = write_logs(
        logs, sessions=sessions, days=days, start=start, seed=seed, profile="demo", routing="session", late=True
    )
    begun = time.monotonic()
    with (
        show.Bars() as bars,
        showing(bars),
        open_runner(settings, verbosity="DEBUG" if debug else "CRITICAL") as runner,
    ):
        # A session may cross midnight, so the last folder is that of the day after.
        nights = [start + timedelta(days=offset) for offset in range(days + LOOK_AHEAD_DAYS + 1)]
        for night in nights:
            folder = logs / f"day={night}"
            outcome = runner.nightly(night, [folder] if folder.is_dir() else [])
            if not outcome.is_success:
                what = "; ".join([*outcome.failed_checks, *outcome.errors])
                raise EvalpipeError("RUN_FAILED", f"night of {night}: {what}")
            show.note(f"Night of {night} done, {time.monotonic() - begun:.0f} s")
        late = logs / "late"
        done = run_sources(settings, runner, [late] if late.is_dir() else [], days=None, undated_as=None, window="all")
    if done.red or done.as_of is None:
        raise EvalpipeError("RUN_FAILED", f"days refused: {sorted(map(str, done.red))}")
    show.note(f"Late files done, {time.monotonic() - begun:.0f} s in all")
    return _compare(settings, truth)


def _compare(settings: Settings, truth: Truth) -> int:
    with open_context(settings) as context:
        manifest = analysis_step.latest(context, "all")
        if manifest is None:
            raise EvalpipeError("NO_RESULT", "the demo has no analysis", where=str(settings.home))
        numbers = analysis_step.tables_of(context, manifest)["analysis.net_improvement"]
        headline = context.criteria.outcomes.headline
    numbers = numbers.filter(pl.col("slice") == "all")
    n_outside = 0
    for metric in METRICS:
        rows, outside = _metric_rows(numbers.filter(pl.col("metric") == metric), metric, truth)
        n_outside += outside if metric == headline else 0
        title = f"{BY_NAME[metric].title}: planted shift and estimate, 95 % interval for all versions at once"
        show.out.print()
        show.table(rows, title=title)
    _ranking(numbers.filter(pl.col("metric") == headline), headline, truth)
    show.out.print()
    show.out.print(f"Report: {_report_path(settings)}", markup=False, soft_wrap=True)
    show.out.print(
        f"Next: evalpipe sql --home {settings.home} 'from analysis.leaderboard'", markup=False, soft_wrap=True
    )
    show.out.print(f"Verbs that score take --criteria {CRITERIA} in this home.", markup=False, soft_wrap=True)
    if n_outside:
        show.out.print(f"{n_outside} planted effects of the headline metric lie outside their interval.")
        return int(Exit.GATE_FAILED)
    show.out.print("Every planted effect of the headline metric lies inside its interval.")
    return int(Exit.OK)


def _metric_rows(rows: pl.DataFrame, metric: str, truth: Truth) -> tuple[list[dict[str, Any]], int]:
    planted = truth.net_improvement(metric)
    unit = fmt.unit_of(metric)
    out: list[dict[str, Any]] = []
    n_outside = 0
    for row in rows.sort("version").iter_rows(named=True):
        value = planted[row["version"]]
        lo, hi = row["lo_sim"], row["hi_sim"]
        is_inside = lo is not None and lo <= value <= hi
        n_outside += not is_inside
        out.append(
            {
                "version": row["version"],
                "planted": fmt.signed(value, unit, fmt.places_for(lo, hi, unit)),
                "estimate": fmt.estimate(row["estimate"], lo, hi, unit),
                "inside": "yes" if is_inside else "NO",
                "sessions": row["n_sessions"],
            }
        )
    return out, n_outside


def _ranking(rows: pl.DataFrame, metric: str, truth: Truth) -> None:
    """The raw order, the estimated order and the planted one, side by side."""
    is_better_high = BY_NAME[metric].is_higher_better
    planted = truth.net_improvement(metric)
    by_estimate = rows.sort("estimate", descending=is_better_high)["version"].to_list()
    by_raw = rows.sort("raw_rate", descending=is_better_high)["version"].to_list()
    by_truth = sorted(planted, key=lambda name: planted[name], reverse=is_better_high)
    show.out.print()
    show.table(
        [
            {"place": index + 1, "raw mean says": raw, "evalpipe says": estimate, "planted": true}
            for index, (raw, estimate, true) in enumerate(zip(by_raw, by_estimate, by_truth, strict=True))
        ],
        title="Who is better? Hard tasks were routed to the better versions, which turns the raw order around",
    )


def _report_path(settings: Settings) -> Path:
    from evalpipe.steps.report import make_report

    with open_context(settings) as context:
        return make_report(context, window="all").html
