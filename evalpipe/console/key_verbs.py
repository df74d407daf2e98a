"""The verbs of ``evalpipe keys``: show and rotate.

Belongs here: options and what is printed. Does not belong here: the rotation (``steps/rotation.py``). A
key itself is never printed: only the name of its epoch and its fingerprint.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import typer

from evalpipe.console import show
from evalpipe.console.entry import handled
from evalpipe.console.options import AsJson, Debug, Home, existing, settings_of

app = typer.Typer(
    help="The masking key of a home: its epoch, and a new one.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("show")
def show_key(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Epoch and fingerprint of the key; the key is not shown.

    And how many slices are under it.
    """
    from evalpipe.steps import epochs

    with handled(as_json=as_json, debug=debug):
        state = asdict(epochs.state(existing(home, None), os.environ))
        if as_json:
            print(json.dumps(state))
            return
        show.table([{"what": name.replace("_", " "), "state": str(value)} for name, value in state.items()])
        if state["is_rotating"] or state["slices_of_earlier_epochs"]:
            show.line("A rotation is not finished: run  evalpipe keys rotate")


@app.command()
def adopt(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Go on under an unrelated key; every user is a new person.

    For a home whose key is lost. The next run makes the days anew whose text is still there; the others stay under
    the lost key, and no window may mix both.
    """
    from evalpipe.steps import epochs

    with handled(as_json=as_json, debug=debug):
        settings = existing(home, None)
        n_slices = epochs.adopt(settings, os.environ)
        if as_json:
            print(json.dumps({"stale_slices": n_slices}))
            return
        show.line(f"The home goes on under this key; {n_slices} slices are stale: run  evalpipe backfill A..B")


@app.command()
def rotate(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Give the home a new epoch of its key.

    Every slice is moved to it without raw text. Nothing else may work on the home meanwhile.
    A rotation that was killed goes on when it is run again.
    """
    from evalpipe.console.progress import Bars
    from evalpipe.steps import rotation
    from evalpipe.steps.progress import showing

    with handled(as_json=as_json, debug=debug):
        settings = settings_of(home, None)
        with Bars() as bars, showing(bars):
            done = rotation.rotate(settings, os.environ)
        if as_json:
            print(json.dumps(asdict(done)))
            return
        show.line(f"The key is in epoch {done.new_epoch}, after {done.old_epoch}; {done.slices} slices were moved.")
        if done.left:
            show.line(f"{done.left} slices are of an unrelated key and stale: run  evalpipe backfill A..B")
