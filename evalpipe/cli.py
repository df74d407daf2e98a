"""The command line: one verb an intent.

Belongs here: options and exit codes. Does not belong here: what a verb does (``console/``,
``steps/``). Dagster is imported by the verbs that run jobs, so that a query answers at once.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Annotated

import typer

from evalpipe import __version__
from evalpipe.console import (
    arguments,
    criteria_verbs,
    data_verbs,
    demo_verbs,
    home_verbs,
    key_verbs,
    mask_verbs,
    review_verbs,
    show,
    signal_verbs,
)
from evalpipe.console import board as board_verb
from evalpipe.console import edge as edge_verb
from evalpipe.console import power as power_verb
from evalpipe.console import validate as validate_verb
from evalpipe.console.entry import handled, known_error, running, version_in
from evalpipe.console.options import (
    BASELINE,
    CANDIDATE,
    AsJson,
    Criteria,
    Debug,
    Home,
    Scored,
    Window,
    existing,
    settings_of,
)
from evalpipe.contracts.errors import EXIT_MEANINGS, SIGNAL_MEANINGS, EvalpipeError, Exit

_EXITS = {code.value: meaning for code, meaning in EXIT_MEANINGS.items()} | SIGNAL_MEANINGS

app = typer.Typer(
    name="evalpipe",
    help="Net improvement of agent versions, estimated from the logs of real sessions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in _EXITS.items()) + ".",
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def run(
    sources: Annotated[
        list[str], typer.Argument(help="Log files, folders, quoted patterns ('logs/**/*.jsonl'), s3://bucket/prefix.")
    ],
    home: Home = None,
    criteria: Criteria = None,
    days: Annotated[str | None, typer.Option("--days", help="Only days A..B (UTC days of a session's start).")] = None,
    undated_as: Annotated[
        str | None, typer.Option("--undated-as", help="Day for sessions without a date [today].")
    ] = None,
    window: Window = "all",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read logs, score their versions, publish, report.

    All layers run for the days that the logs touch."""
    from evalpipe.console import flow, summary

    with handled(as_json=as_json, debug=debug):
        settings = settings_of(home, criteria)
        span = arguments.days(days) if days else None
        undated = arguments.day(undated_as) if undated_as else None
        window = arguments.window(window)
        with running(settings, debug=debug) as runner:
            done = flow.run_sources(settings, runner, sources, days=span, undated_as=undated, window=window)
        code = summary.after_run(settings, done, sources=sources, as_json=as_json)
        if done.red or code:
            raise typer.Exit(Exit.SOME_SLICES_RED if done.red else code)


@app.command()
def backfill(
    days: Annotated[str, typer.Argument(help="Range A..B of UTC days.")],
    home: Home = None,
    criteria: Criteria = None,
    window: Window = "28d",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be made and what new masking rules would add; make nothing."),
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make stale days of a range anew and score each day.

    The warehouse is published at the end."""
    from evalpipe.console import flow, preview, summary

    with handled(as_json=as_json, debug=debug):
        settings = existing(home, criteria)
        span, window = arguments.days(days), arguments.window(window)
        if dry_run:
            preview.preview(settings, span, as_json=as_json)
            return
        with running(settings, debug=debug) as runner:
            done = flow.make_days(settings, runner, days=span, window=window)
        summary.after_run(settings, done, sources=[], as_json=as_json)
        if done.red:
            raise typer.Exit(Exit.SOME_SLICES_RED)


@app.command()
def report(
    home: Home = None,
    criteria: Criteria = None,
    style: Annotated[str, typer.Option("--format", help="html (prints the path), md or json.")] = "html",
    candidate: Annotated[str | None, typer.Option(help=CANDIDATE)] = None,
    baseline: Annotated[str | None, typer.Option(help=BASELINE)] = None,
    window: Scored = None,
    debug: Debug = False,
) -> None:
    """Render the newest analysis: a page, or text.

    Prints the path of the page, or the text itself.

    A shift keeps the sign of its metric, the gate's too: +5 pp of complaints is worse.
    """
    from evalpipe.steps.analysed import require_latest
    from evalpipe.steps.analysis import outdated, versions_of
    from evalpipe.steps.context import open_context
    from evalpipe.steps.report import make_report

    with handled(as_json=False, debug=debug):
        if style not in ("html", "md", "json"):
            raise EvalpipeError("BAD_ARGUMENT", "the format is html, md or json", where="--format")
        if bool(candidate) != bool(baseline):
            raise EvalpipeError("BAD_ARGUMENT", "name both a candidate and a baseline, or neither", where="--candidate")
        settings = existing(home, criteria)
        window = arguments.window(window) if window else None
        with open_context(settings) as context:
            if candidate and baseline:
                known = versions_of(context, require_latest(context, window))
                candidate, baseline = version_in(candidate, known), version_in(baseline, known)
            made = make_report(context, candidate=candidate, baseline=baseline, window=window)
            reason = outdated(context, made.manifest)
        if reason:
            show.note(f"Outdated: {reason}. Run: evalpipe run SOURCE..., or evalpipe backfill A..B")
        if style == "html":
            print(made.html)
        else:
            print((made.markdown if style == "md" else made.json).read_text("utf-8"), end="")


@app.command()
def gate(
    candidate: Annotated[str, typer.Option(help=CANDIDATE)],
    baseline: Annotated[str, typer.Option(help=BASELINE)],
    home: Home = None,
    criteria: Criteria = None,
    window: Scored = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """May CANDIDATE replace BASELINE?

    Exit 0 pass, 1 fail, 3 inconclusive.

    The table keeps each metric's own sign and says which side is better; with --json, as in analysis.gates,
    signs are turned so that + is better for every metric.
    """
    from evalpipe.console import decided as shown
    from evalpipe.steps.analysed import require_latest
    from evalpipe.steps.analysis import sessions_of, versions_of
    from evalpipe.steps.context import open_context
    from evalpipe.steps.decisions import make_gates

    with handled(as_json=as_json, debug=debug):
        settings = existing(home, criteria)
        with open_context(settings) as context:
            manifest = require_latest(context, arguments.window(window) if window else None)
            known = versions_of(context, manifest)
            candidate, baseline = version_in(candidate, known), version_in(baseline, known)
            decided = make_gates(context, manifest, candidate, baseline)
            counts, needed = sessions_of(context, manifest), context.criteria.estimand.min_sessions_per_version
        code = shown.after_gate(decided, candidate, baseline, as_json=as_json, counts=counts, needed=needed)
        raise typer.Exit(code)


@app.command()
def release(
    version: Annotated[str, typer.Argument(help=CANDIDATE.replace("that may ship", "to show"))],
    home: Home = None,
    criteria: Criteria = None,
    window: Scored = None,
    slices: Annotated[bool, typer.Option("--slices", help="Show the slices of traffic too.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Scorecard of one agent version.

    Kept with the home, except where --window asks for one analysis.
    """
    from evalpipe.console import decided as shown
    from evalpipe.orchestration.assets.analysis import is_partition_key
    from evalpipe.steps.analysed import require_latest
    from evalpipe.steps.analysis import versions_of
    from evalpipe.steps.context import open_context
    from evalpipe.steps.decisions import make_scorecard, scorecard_of

    with handled(as_json=as_json, debug=debug):
        settings = existing(home, criteria)
        with open_context(settings) as context:
            manifest = require_latest(context, arguments.window(window) if window else None)
            version = version_in(version, versions_of(context, manifest))
            if window:
                card = scorecard_of(context, manifest, version)
            else:
                card = context.lake.read("analysis.scorecard", [make_scorecard(context, version)])
        if not window and is_partition_key(version):
            with running(settings, debug=debug) as runner:
                runner.release(version).require()
        shown.scorecard(card, version, with_slices=slices, as_json=as_json)


# Help lists verbs in the order of their registration: after the first hour's come those for now and then.
app.command()(data_verbs.sql)
app.command()(data_verbs.export)
app.command()(home_verbs.doctor)
app.command("status", hidden=True)(home_verbs.doctor)
app.command()(validate_verb.validate)
app.command()(power_verb.power)
app.command()(edge_verb.edge)
app.command()(board_verb.board)
app.command()(demo_verbs.simulate)
app.command()(demo_verbs.demo)
app.command()(home_verbs.ui)
app.command()(home_verbs.erase)
app.command()(home_verbs.retention)
app.add_typer(criteria_verbs.app, name="criteria")
app.add_typer(review_verbs.app, name="review")
app.add_typer(mask_verbs.app, name="mask")
app.add_typer(signal_verbs.app, name="signals")
app.add_typer(key_verbs.app, name="keys")


def main() -> None:
    """Entry point of the ``evalpipe`` command."""
    if "--debug" not in sys.argv:
        # Libraries announce betas and deprecations to their developers, not to the person here.
        warnings.simplefilter("ignore")
    try:
        app()
    except Exception as error:  # noqa: BLE001 - a crash must not look like a failed gate
        if "--debug" in sys.argv:
            traceback.print_tb(error.__traceback__)
        crash = known_error(error)
        show.show_error(crash, as_json="--json" in sys.argv)
        sys.exit(crash.exit)


if __name__ == "__main__":
    main()
