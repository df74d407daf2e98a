"""The verbs of ``evalpipe keys``: show and rotate.

Belongs here: options and what is printed. Does not belong here: the rotation (``steps/rotation.py``). A
key itself is never printed: only the name of its epoch and its fingerprint.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evalpipe import settings as settings_module
from evalpipe.console import show
from evalpipe.console.entry import handled

app = typer.Typer(
    help="The masking key of a home: which epoch it is in, and a new one.", no_args_is_help=True, rich_markup_mode=None
)

Home = Annotated[Path | None, typer.Option("--home", help="Folder of lake, warehouse and reports [.evalpipe].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")]


@app.command("show")
def show_key(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Epoch and fingerprint of the key, and how many slices are under it. The key is not shown."""
    from evalpipe.steps import epochs

    with handled(as_json=as_json, debug=debug):
        state = asdict(epochs.state(settings_module.require_home(settings_module.load(home=home)), os.environ))
        if as_json:
            print(json.dumps(state))
            return
        show.table([{"what": name.replace("_", " "), "state": str(value)} for name, value in state.items()])
        if state["is_rotating"] or state["slices_of_earlier_epochs"]:
            show.line("A rotation is not finished: run  evalpipe keys rotate")


@app.command()
def adopt(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Go on under a key that has nothing to do with the home's slices: every user becomes a new person.

    For a home whose key is lost. The next run makes the days anew whose text is still there; the others stay under
    the lost key, and no window may mix both.
    """
    from evalpipe.steps import epochs

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.require_home(settings_module.load(home=home))
        n_slices = epochs.adopt(settings, os.environ)
        if as_json:
            print(json.dumps({"stale_slices": n_slices}))
            return
        show.line(f"The home goes on under this key; {n_slices} slices are stale: run  evalpipe backfill A..B")


@app.command()
def rotate(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Give the home a new epoch of its key, and move every slice to it without raw text.

    Nothing else may work on the home meanwhile. A rotation that was killed goes on when it is run again.
    """
    from evalpipe.console.progress import Bars
    from evalpipe.steps import rotation
    from evalpipe.steps.progress import showing

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(home=home)
        with Bars() as bars, showing(bars):
            done = rotation.rotate(settings, os.environ)
        if as_json:
            print(json.dumps(asdict(done)))
            return
        show.line(f"The key is in epoch {done.new_epoch}, after {done.old_epoch}; {done.slices} slices were moved.")
        if done.left:
            show.line(f"{done.left} slices are of an unrelated key and stale: run  evalpipe backfill A..B")
