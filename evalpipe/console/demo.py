"""The demo: logs with known truth, every night of a fortnight, truth beside estimate.

Belongs here: the order of the demo and what it shows. Does not belong here: the simulator, which
imports nothing that reads logs or estimates, so that agreement between the two is evidence.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.console import show
from evalpipe.console.doctor import stale_analyses
from evalpipe.console.flow import run_sources
from evalpipe.console.progress import Bars
from evalpipe.contracts.errors import EvalpipeError, Exit
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import format as fmt
from evalpipe.settings import Settings, open_home
from evalpipe.simulate import Spec, Truth, simulate
from evalpipe.simulate.truth import METRICS
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps.context import open_context
from evalpipe.steps.progress import showing
from evalpipe.store.files import write_atomically
from evalpipe.store.plan import LOOK_AHEAD_DAYS

#: Criteria of the demo: they declare the assignment, which most simulated formats cannot state.
CRITERIA = "demo"
_MB = 1_000_000
_START = date(2026, 1, 5)
#: Says what a demo's home was made from, and whether it is whole.
_STATE = "demo.json"


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


def run_demo(settings: Settings, *, sessions: int, days: int, seed: int, fresh: bool, debug: bool) -> int:
    """Run the demo, or show the one that lies there.

    Args:
        settings: Settings with the demo's home.
        sessions: Sessions to simulate.
        days: Days to simulate.
        seed: Seed of the simulation.
        fresh: Delete a demo that lies there, and begin anew.
        debug: Show Dagster's own log.

    Returns:
        Exit code: 1 where a planted effect of the headline metric lies outside its interval.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` where something else lies in the home, or a demo of other numbers.
    """
    wanted = {"sessions": sessions, "days": days, "seed": seed}
    home, logs = settings.home, settings.home / "logs"
    is_there = home.exists() and (not home.is_dir() or any(home.iterdir()))
    if is_there and not _is_demo(home):
        what = "something else than a demo lies there"
        raise EvalpipeError("BAD_ARGUMENT", what, where=str(home), fix="Name another folder with --home.")
    if is_there and fresh:
        shutil.rmtree(home)
    elif is_there and _state(home) == {**wanted, "is_done": True}:
        show.note(f"This demo was made before; --fresh begins anew: {home}")
        return _compare(settings)
    elif is_there:
        what = "an unfinished demo lies there, or one of other numbers"
        fix = "Add --fresh to delete it and begin anew, or name another folder with --home."
        raise EvalpipeError("BAD_ARGUMENT", what, where=str(home), fix=fix)
    open_home(settings)
    write_atomically(home / _STATE, json.dumps({**wanted, "is_done": False}))
    write_logs(
        logs, sessions=sessions, days=days, start=_START, seed=seed, profile="demo", routing="session", late=True
    )
    _run_nights(settings, logs, days, debug=debug)
    write_atomically(home / _STATE, json.dumps({**wanted, "is_done": True}))
    return _compare(settings)


def _is_demo(home: Path) -> bool:
    return (home / _STATE).is_file() or (home / "logs" / "truth.json").is_file()


def _state(home: Path) -> object:
    try:
        return json.loads((home / _STATE).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _run_nights(settings: Settings, logs: Path, days: int, *, debug: bool) -> None:
    from evalpipe.orchestration.runner import open_runner

    begun = time.monotonic()
    with (
        Bars() as bars,
        showing(bars),
        open_runner(settings, verbosity="DEBUG" if debug else "CRITICAL") as runner,
    ):
        # A session may cross midnight, so the last folder is that of the day after.
        nights = [_START + timedelta(days=offset) for offset in range(days + LOOK_AHEAD_DAYS + 1)]
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
        # The nights lie too far back for a run to score them anew by itself.
        with open_context(settings, as_of=nights[-1]) as context:
            stale = stale_analyses(context)
        for window, as_of_days in stale.items():
            outcome = runner.score(as_of_days[0], window, nights[-1], until=as_of_days[-1])
            if not outcome.is_success:
                raise EvalpipeError("RUN_FAILED", "; ".join([*outcome.failed_checks, *outcome.errors]))
    show.note(f"Late files done, {time.monotonic() - begun:.0f} s in all")


def _compare(settings: Settings) -> int:
    truth = json.loads((settings.home / "logs" / "truth.json").read_text("utf-8"))
    planted = {metric: truth["metrics"][metric]["net_improvement"] for metric in METRICS}
    with open_context(settings) as context:
        manifest = analysis_step.latest(context, "all")
        if manifest is None:
            fix = "Begin anew: evalpipe demo --fresh"
            raise EvalpipeError("NO_RESULT", "the demo has no analysis", where=str(settings.home), fix=fix)
        numbers = analysis_step.tables_of(context, manifest)["analysis.net_improvement"]
        headline = context.criteria.outcomes.headline
    numbers = numbers.filter(pl.col("slice") == "all")
    n_outside = 0
    for metric in METRICS:
        rows, outside = _metric_rows(numbers.filter(pl.col("metric") == metric), metric, planted[metric])
        n_outside += outside if metric == headline else 0
        title = f"{BY_NAME[metric].title}: planted shift and estimate, 95 % interval for all versions at once"
        show.line()
        show.table(rows, title=title)
    _ranking(numbers.filter(pl.col("metric") == headline), headline, planted[headline])
    show.line()
    show.line(f"Report: {_report_path(settings)}")
    show.line()
    show.line(f"Next, each with this home and the criteria {CRITERIA}:")
    ahead = _by_estimate(numbers.filter(pl.col("metric") == headline), headline)
    for command in commands(settings.home, ahead[0], ahead[-1]):
        show.line(f"  {command}")
    show.line()
    if n_outside:
        show.line(f"{n_outside} planted effects of the headline metric lie outside their interval.")
        return int(Exit.GATE_FAILED)
    show.line("Every planted effect of the headline metric lies inside its interval.")
    return int(Exit.OK)


def commands(home: Path, candidate: str, baseline: str) -> list[str]:
    """What to look at next, ready to paste.

    Args:
        home: Home of the demo.
        candidate: Version to ask the gate for.
        baseline: Version to hold it against.
    """
    here = f"--home {shlex.quote(str(home))}"
    with_criteria = f"{here} --criteria {CRITERIA}"
    candidate, baseline = shlex.quote(candidate), shlex.quote(baseline)
    # The window that this demo shows; the nights made newer ones of the last weeks alone.
    shown = f"{with_criteria} --window all"
    return [
        f"evalpipe report {shown}",
        f"evalpipe gate --candidate {candidate} --baseline {baseline} {shown}",
        f"evalpipe release {candidate} {shown}",
        f"evalpipe doctor {with_criteria}",
        f"evalpipe sql {here} 'from analysis.leaderboard'",
    ]


def _by_estimate(rows: pl.DataFrame, metric: str) -> list[str]:
    """Versions, best estimate first."""
    found: list[str] = rows.sort("estimate", descending=BY_NAME[metric].is_higher_better)["version"].to_list()
    return found


def _metric_rows(rows: pl.DataFrame, metric: str, planted: dict[str, float]) -> tuple[list[dict[str, Any]], int]:
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


def _ranking(rows: pl.DataFrame, metric: str, planted: dict[str, float]) -> None:
    """The raw order, the estimated order and the planted one, side by side."""
    is_better_high = BY_NAME[metric].is_higher_better
    by_estimate = _by_estimate(rows, metric)
    by_raw = rows.sort("raw_rate", descending=is_better_high)["version"].to_list()
    by_truth = sorted(planted, key=lambda name: planted[name], reverse=is_better_high)
    show.line()
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
