"""The verbs of ``evalpipe criteria``: list, compare, bridge, freeze.

Belongs here: options and what is printed. Does not belong here: criteria themselves (``criteria``), what
a bridge or frozen weights are (``steps``).
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from evalpipe.console import arguments, show
from evalpipe.console.entry import handled
from evalpipe.console.options import AsJson, Criteria, Debug, Home, existing

app = typer.Typer(help="List and compare criteria files.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def criteria_list(as_json: AsJson = False, debug: Debug = False) -> None:
    """Criteria files with their version and hashes."""
    from evalpipe import criteria as files
    from evalpipe.steps.context import load_criteria

    with handled(as_json=as_json, debug=debug):
        loaded = [load_criteria(name) for name in files.available()]
        rows: list[dict[str, Any]] = [
            {
                "name": item.name,
                "version": item.version,
                "hash": item.hash,
                "measurement": item.measurement,
                "description": item.description,
            }
            for item in loaded
        ]
        print(json.dumps(rows)) if as_json else show.table(rows)


@app.command("diff")
def criteria_diff(
    old: Annotated[str, typer.Argument(help="Name or file.")],
    new: Annotated[str, typer.Argument(help="Name or file.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What differs, and which difference starts a new series."""
    from evalpipe import criteria as files
    from evalpipe.steps.context import load_criteria

    with handled(as_json=as_json, debug=debug):
        changes = files.diff(load_criteria(old), load_criteria(new))
        rows = [{"key": c.path, "old": str(c.old), "new": str(c.new), "effect": str(c.effect)} for c in changes]
        print(json.dumps(rows)) if as_json else show.table(rows, title="changes")


@app.command("bridge")
def criteria_bridge(
    old: Annotated[str, typer.Argument(help="Name or file of the old criteria.")],
    new: Annotated[str, typer.Argument(help="Name or file of the new ones.")],
    home: Home = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What a change of criteria did to the headline.

    On sessions that were scored under both.
    """
    from evalpipe.console import bridge

    with handled(as_json=as_json, debug=debug):
        bridge.bridge(existing(home, new), old, as_json=as_json)


@app.command("freeze")
def criteria_freeze(
    version: Annotated[str, typer.Argument(help="Name of the weights, such as 2026-q1.")],
    days: Annotated[str | None, typer.Option("--days", help="Baseline A..B [all days with sessions].")] = None,
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The mix of work of a baseline, as frozen weights.

    For a criteria file (population fixed:VERSION).
    """
    from evalpipe.console import freeze

    with handled(as_json=as_json, debug=debug):
        span = arguments.days(days) if days else None
        freeze.freeze(existing(home, criteria), arguments.plain_name(version), span, as_json=as_json)
