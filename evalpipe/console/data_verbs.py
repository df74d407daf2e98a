"""The verbs that give data out: ``sql`` and ``export``.

Belongs here: their options. Does not belong here: reading and writing (``frames.py``, ``store``, ``steps``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalpipe.console import arguments, show
from evalpipe.console.entry import handled
from evalpipe.console.options import Criteria, Debug, Home, existing
from evalpipe.contracts.errors import EvalpipeError


def sql(
    query: Annotated[str, typer.Argument(help="One read-only statement.")],
    home: Home = None,
    style: Annotated[str, typer.Option("--format", help="table, csv or json (one object a line).")] = "table",
    out: Annotated[Path | None, typer.Option("--out", help="Write to a .parquet, .csv or .json file instead.")] = None,
    debug: Debug = False,
) -> None:
    """Query the warehouse, read-only."""
    from evalpipe.console import frames
    from evalpipe.store.warehouse import Warehouse

    with handled(as_json=False, debug=debug):
        if style not in frames.STYLES:
            raise EvalpipeError("BAD_ARGUMENT", "the format is table, csv or json", where="--format")
        if out is not None:
            frames.check_file(out)
        settings = existing(home, None)
        data = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory).query(query)
        if out is None:
            frames.frame(data, style)
        else:
            frames.write(data, out)


def export(
    out: Annotated[Path, typer.Option("--out", help="A .jsonl file, or a folder for one file a session.")],
    home: Home = None,
    criteria: Criteria = None,
    style: Annotated[str, typer.Option("--format", help="atif, or levels (root_step, agent_steps, steps).")] = "atif",
    days: Annotated[str | None, typer.Option("--days", help="Only sessions that start from A to B: A..B.")] = None,
    session: Annotated[
        list[str] | None, typer.Option("--session", help="Only this session id, as in the warehouse.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write masked sessions in a form that other tools read. The text is masked, and still about persons."""
    from evalpipe.steps.context import open_context
    from evalpipe.steps.export import export as write

    with handled(as_json=False, debug=debug):
        span = arguments.days(days) if days else None
        with open_context(existing(home, criteria)) as context:
            n_sessions, n_steps = write(context, style, out, days=span, sessions=frozenset(session or ()))
        show.note(f"{n_sessions:,} sessions with {n_steps:,} steps written to {out}")
