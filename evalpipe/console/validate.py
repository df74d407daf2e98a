"""What ``evalpipe validate`` prints: every quantity beside its target, and what the run comes to.

Belongs here: the table, its summary and its exit code. Does not belong here: validating (``steps``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from evalpipe import settings as settings_module
from evalpipe.console import show
from evalpipe.console.entry import handled, running
from evalpipe.contracts.errors import Exit
from evalpipe.settings import Settings, is_home

REPLICATIONS = 2_000


def validate(
    replications: Annotated[
        int, typer.Option("--replications", help="Replications of a scenario; A/A replays are a quarter of them.")
    ] = REPLICATIONS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed; equal seeds give equal numbers.")] = 1,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="Home whose sessions are replayed; it keeps the table [.evalpipe]."),
    ] = None,
    criteria: Annotated[str | None, typer.Option("--criteria", help="Criteria with the gates [default].")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show Dagster's log and full tracebacks.")] = False,
) -> None:
    """Do intervals cover, and do tests hold their level?

    In simulated worlds, and by A/A replay of a home's sessions.

    Exit 0: every target is met; 1: one is missed; 3: more replications are needed to say. Without --home
    and where no .evalpipe lies here, the simulated worlds are run and nothing is written.
    """
    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(home=home, criteria=criteria)
        if home is not None:
            settings_module.require_home(settings)
        is_here = is_home(settings.home)
        rows = _in_home(settings, replications, seed, debug=debug) if is_here else _simulated(replications, seed)
        if as_json:
            print(json.dumps(summary(rows)))
        else:
            _print(rows)
            if not is_here:
                show.note("There is no home here: no sessions were replayed, and nothing was written.")
        raise typer.Exit(exit_code(rows))


def _in_home(settings: Settings, replications: int, seed: int, *, debug: bool) -> pl.DataFrame:
    """Run the job, which publishes too, and read what it published."""
    from evalpipe.steps.validation import TABLE, require_replications
    from evalpipe.store.warehouse import Warehouse

    require_replications(replications)
    with running(settings, debug=debug) as runner:
        runner.validate(replications, seed).require()
    return Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory).query(f"select * from {TABLE}")


def _simulated(replications: int, seed: int) -> pl.DataFrame:
    from evalpipe.console.progress import Bars
    from evalpipe.steps.progress import showing
    from evalpipe.steps.validation import simulate

    with Bars() as bars, showing(bars):
        return simulate(replications, seed)


def summary(rows: pl.DataFrame) -> dict[str, Any]:
    """The run as one object of plain values: counts, and its rows."""
    asked = rows.filter(pl.col("target_lo").is_not_null())
    other = asked.filter(~pl.col("is_known"))
    return {
        "n_met": int(asked["is_met"].fill_null(value=False).sum()),
        "n_missed": int((~other["is_met"]).sum()),
        "n_open": other["is_met"].null_count(),
        "n_known": asked.height - other.height,
        "rows": rows.to_dicts(),
    }


def exit_code(rows: pl.DataFrame) -> Exit:
    """What the run comes to; a replay without data is no failure, nor is a limit that is documented."""
    asked = rows.filter(pl.col("target_lo").is_not_null() & pl.col("estimate").is_not_null() & ~pl.col("is_known"))
    if (~asked["is_met"]).any():
        return Exit.GATE_FAILED
    return Exit.INCONCLUSIVE if asked["is_met"].null_count() else Exit.OK


def _print(rows: pl.DataFrame) -> None:
    for part, title in _TITLES.items():
        mine = rows.filter(pl.col("part") == part)
        for scenario in mine["scenario"].unique(maintain_order=True):
            here = mine.filter(pl.col("scenario") == scenario)
            shown = [_line(row) for row in here.iter_rows(named=True)]
            show.table(shown, title=f"{title}: {scenario}", numeric=("value", "n"))
            for note in here["note"].unique(maintain_order=True):
                if note:
                    show.line(f"  {note}")
    found = summary(rows)
    known = f", {found['n_known']} known limits" if found["n_known"] else ""
    show.line(f"{found['n_met']} targets met, {found['n_missed']} missed, {found['n_open']} open{known}")


_TITLES = {"grid": "world", "guard": "guard", "replay": "your sessions"}


def _line(row: dict[str, Any]) -> dict[str, object]:
    has = row["estimate"] is not None
    verdict = {True: "met", False: "MISSED", None: "open" if row["target_lo"] is not None else ""}[row["is_met"]]
    verdict = "known limit" if row["is_known"] else verdict
    return {
        "quantity": row["quantity"],
        "value": f"{row['estimate']:.2%}" if has else "-",
        "95 % simulation": f"{row['lo']:.2%} to {row['hi']:.2%}" if has and row["lo"] is not None else "-",
        "target": _target(row["target_lo"], row["target_hi"]),
        "verdict": verdict,
        "n": row["n_trials"],
    }


def _target(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
