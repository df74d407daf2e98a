"""The verbs of ``evalpipe signals``: eval.

Belongs here: options. Does not belong here: what a verb does (``signal_eval``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalpipe import settings as settings_module
from evalpipe.console.entry import handled

app = typer.Typer(help="How right the extracted signals are.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """A verb must be named, also while there is one only."""


@app.command("eval")
def evaluate(
    file: Annotated[Path, typer.Argument(help="JSON lines of labelled turns or labelled tool outputs.")],
    adjudicated: Annotated[
        Path | None, typer.Option("--adjudicated", help="JSON lines of id and final: labels that overrule the file's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    criteria: Annotated[str | None, typer.Option("--criteria", help="Criteria name or file [default].")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Precision and recall of signals on labelled rows (docs/signal-evaluation.md has the layouts)."""
    from evalpipe.console import signal_eval

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(criteria=criteria)
        signal_eval.run(settings, file, adjudicated, as_json=as_json)
