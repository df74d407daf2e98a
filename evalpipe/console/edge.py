"""The verb ``edge``: extraction beside the agent.

Belongs here: its options and what it prints. Does not belong here: what it does (``steps/edge.py``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from evalpipe import settings as settings_module
from evalpipe.console import arguments, show
from evalpipe.console.entry import handled
from evalpipe.contracts.errors import EvalpipeError


def edge(
    sources: Annotated[list[str], typer.Argument(help="Log files, folders, quoted patterns, s3://bucket/prefix.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, such as edge.jsonl.zst.")],
    home: Annotated[
        Path | None, typer.Option("--home", help="Home whose key is used, if no other is given [.evalpipe].")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="File with the masking key; EVALPIPE_KEY wins over it.")
    ] = None,
    criteria: Annotated[
        str | None, typer.Option("--criteria", help="Criteria name or file, as where the file is read [default].")
    ] = None,
    undated_as: Annotated[
        str | None, typer.Option("--undated-as", help="Day for sessions without a date [today].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Mask and extract beside the agent, for evalpipe run.

    Only signals and pseudonymised metadata are written.

    No text, no snippet and no path is in the file. Nothing is written where the leak check is red.
    """
    from evalpipe.console.progress import Bars
    from evalpipe.steps.edge import existing_key, make_edge
    from evalpipe.steps.land import require_sources
    from evalpipe.steps.progress import showing

    with handled(as_json=as_json, debug=debug):
        if out.is_dir():
            raise EvalpipeError("BAD_ARGUMENT", "that is a folder; name a file", where="--out")
        undated = arguments.day(undated_as) if undated_as else None
        require_sources(sources)
        settings = settings_module.load(home=home, criteria=criteria)
        key = existing_key(settings, os.environ, key_file)
        with Bars() as bars, showing(bars):
            made = make_edge(settings, sources, out, key, undated_as=undated)
        if as_json:
            shown = {
                "out": str(out),
                "files": made.n_files,
                "sessions": made.n_sessions,
                "first_day": str(made.days[0]),
                "last_day": str(made.days[-1]),
                "redactions": made.n_redactions,
                "quarantine": dict(sorted(made.quarantine.items())),
                "bytes": made.n_bytes,
            }
            print(json.dumps(shown))
            return
        show.note(
            f"{made.n_sessions:,} sessions of {made.n_files:,} files ({made.days[0]} to {made.days[-1]}), "
            f"{made.n_redactions:,} places masked, written to {out} ({made.n_bytes:,} bytes)"
        )
        for code, n in sorted(made.quarantine.items()):
            show.note(f"{n:,} records could not be read: {code}")
        show.note("Read it where results are made: evalpipe run FILE")
