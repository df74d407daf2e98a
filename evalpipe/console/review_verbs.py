"""The verbs of ``evalpipe review``.

Belongs here: options and exit codes. Does not belong here: what a verb does (``console/review.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalpipe import settings as settings_module
from evalpipe.console import arguments
from evalpipe.console.entry import handled
from evalpipe.contracts.errors import EvalpipeError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Let people judge what the detectors find. Draw a sample, label it, import the labels (docs/review.md).",
)

Home = Annotated[Path | None, typer.Option("--home", help="Home that is reviewed [.evalpipe].")]
Criteria = Annotated[str | None, typer.Option("--criteria", help="Criteria whose signals are reviewed [default].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")]


@app.command()
def sample(
    size: Annotated[int, typer.Option("--size", help="Items at most.", min=1, max=100_000)] = 200,
    out: Annotated[Path, typer.Option("--out", help="File for reviewers: .jsonl or .csv.")] = Path("review.jsonl"),
    days: Annotated[str | None, typer.Option("--days", help="Only sessions that start from A to B: A..B.")] = None,
    again: Annotated[
        str | None, typer.Option("--again", help="Write the file of a sample that was drawn before.")
    ] = None,
    force: Force = False,
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Draw turns and calls for review, those without a signal too, and write their masked text.

    The file names no model and not what the detector said; the home keeps both.
    """
    from evalpipe.console import review

    with handled(as_json=as_json, debug=debug):
        review.check_out(out, force=force)
        span = arguments.days(days) if days else None
        settings = settings_module.require_home(settings_module.load(home=home, criteria=criteria))
        review.sample(settings, size, out, days=span, again=again, as_json=as_json)


@app.command()
def page(
    file: Annotated[Path, typer.Argument(help="A .jsonl or .csv file of 'review sample'.")],
    out: Annotated[Path | None, typer.Option("--out", help="Page to write [beside the file, .html].")] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Write a page that labels a sample with the keyboard: one file, opened in a browser, without any network."""
    from evalpipe.console import review

    with handled(as_json=False, debug=debug):
        review.page(file, out or file.with_suffix(".html"), force=force)


@app.command("import")
def take_in(
    files: Annotated[list[Path], typer.Argument(help="Labelled .jsonl or .csv files.")],
    reviewer: Annotated[str, typer.Option("--reviewer", help="Label that the reviewer goes by; it is published.")],
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Import labels, all of them or none; publish the precision that they give."""
    from evalpipe.console import review

    with handled(as_json=as_json, debug=debug):
        if not files:
            raise EvalpipeError("BAD_ARGUMENT", "name a file", where="FILE")
        settings = settings_module.require_home(settings_module.load(home=home, criteria=criteria))
        review.take_in(settings, files, reviewer, as_json=as_json)


@app.command()
def quality(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show precision, recall and status of every signal, as published last."""
    from evalpipe.console import review

    with handled(as_json=as_json, debug=debug):
        review.quality(settings_module.require_home(settings_module.load(home=home)), as_json=as_json)


@app.command()
def weights(
    labels: Annotated[
        Path | None,
        typer.Argument(
            help="A .csv or .jsonl file with session_id, success and, where drawn unequally, inclusion_prob "
            "[sessions whose log states success or failure]."
        ),
    ] = None,
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Propose weights of signals from labels of whole sessions, with their calibration; nothing is changed."""
    from evalpipe.console import signal_weights

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.require_home(settings_module.load(home=home, criteria=criteria))
        signal_weights.weights(settings, labels, as_json=as_json)
