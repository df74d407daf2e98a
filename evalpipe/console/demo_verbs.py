"""The verbs ``simulate`` and ``demo``: logs with known truth, and a home made from them.

Belongs here: their options. Does not belong here: the demo (``demo.py``), the simulator (``simulate``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalpipe.console import arguments
from evalpipe.console.entry import handled
from evalpipe.console.options import Debug, settings_of


def simulate(
    out: Annotated[Path, typer.Option("--out", help="Folder to write, made if absent.")],
    sessions: Annotated[int, typer.Option(help="Number of sessions.")] = 17_000,
    days: Annotated[int, typer.Option(help="Number of days.")] = 14,
    start: Annotated[str, typer.Option(help="First day.")] = "2026-01-05",
    seed: Annotated[int, typer.Option(help="Seed.")] = 1,
    profile: Annotated[str, typer.Option(help="demo (25 KB a session) or real (470 KB a session).")] = "demo",
    routing: Annotated[str, typer.Option(help="session, or sticky (a user keeps one version).")] = "session",
    late: Annotated[bool, typer.Option(help="Write some sessions into a folder late/.")] = False,
    debug: Debug = False,
) -> None:
    """Write realistic logs in real formats, with known truth."""
    from evalpipe.console import demo

    with handled(as_json=False, debug=debug):
        demo.write_logs(
            out,
            sessions=sessions,
            days=days,
            start=arguments.day(start),
            seed=seed,
            profile=profile,
            routing=routing,
            late=late,
        )


def demo(
    home: Annotated[Path, typer.Option("--home", help="Folder of the demo's home.")] = Path(".evalpipe-demo"),
    sessions: Annotated[int, typer.Option(help="Number of sessions.")] = 17_000,
    days: Annotated[int, typer.Option(help="Number of days.")] = 14,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete a demo that lies there, and begin anew.")] = False,
    debug: Debug = False,
) -> None:
    """Simulate a fortnight with known truth, and estimate it.

    Every night of it is run, and truth is shown beside the estimate.
    A demo that lies there already is shown again.
    """
    from evalpipe.console import demo as demo_flow

    with handled(as_json=False, debug=debug):
        settings = settings_of(home, demo_flow.CRITERIA)
        raise typer.Exit(
            demo_flow.run_demo(settings, sessions=sessions, days=days, seed=seed, fresh=fresh, debug=debug)
        )
