"""The command line: one verb an intent.

Belongs here: options and exit codes. Does not belong here: what a verb does (``console/``,
``steps/``). Dagster is imported by the verbs that run jobs, so that a query answers at once.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from evalpipe import __version__
from evalpipe import settings as settings_module
from evalpipe.console import arguments, key_verbs, mask_verbs, review_verbs, show, signal_verbs
from evalpipe.console import board as board_verb
from evalpipe.console import edge as edge_verb
from evalpipe.console import power as power_verb
from evalpipe.console import validate as validate_verb
from evalpipe.console.entry import analysis_of, handled, known_error, running, version_in
from evalpipe.contracts.errors import EXIT_MEANINGS, EvalpipeError, Exit
from evalpipe.settings import Settings

app = typer.Typer(
    name="evalpipe",
    help="Net improvement of agent versions, estimated from the logs of real sessions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: " + "; ".join(f"{code.value} {meaning}" for code, meaning in EXIT_MEANINGS.items()) + ".",
)
criteria_app = typer.Typer(help="List and compare criteria files.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(criteria_app, name="criteria")
app.add_typer(mask_verbs.app, name="mask")
app.add_typer(signal_verbs.app, name="signals")
app.command()(edge_verb.edge)
app.command()(validate_verb.validate)
app.command()(board_verb.board)
app.command()(power_verb.power)
app.add_typer(key_verbs.app, name="keys")
app.add_typer(review_verbs.app, name="review")

Home = Annotated[Path | None, typer.Option("--home", help="Folder of lake, warehouse and reports [.evalpipe].")]
Criteria = Annotated[str | None, typer.Option("--criteria", help="Criteria name or file [default].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Dagster's log and full tracebacks.")]
Window = Annotated[
    str, typer.Option("--window", help="What to score: 'all', or a trailing number of days such as 28d.")
]
Scored = Annotated[
    str | None,
    typer.Option("--window", help="Which analysis: 'all', or days such as 28d [that of the newest as-of day]."),
]
Candidate = "Version that may ship: its label, with / or : for the dot, or a beginning that only it has."
Baseline = "Version that it is compared with, written likewise."


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
    """The main job: read logs, run all layers for the days they touch, publish, report."""
    from evalpipe.console import flow, summary

    with handled(as_json=as_json, debug=debug):
        settings = _settings(home, criteria)
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
    """Recompute the stale slices of a range, score each of its days, publish."""
    from evalpipe.console import flow, preview, summary

    with handled(as_json=as_json, debug=debug):
        settings = _existing(home, criteria)
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
    candidate: Annotated[str | None, typer.Option(help=Candidate)] = None,
    baseline: Annotated[str | None, typer.Option(help=Baseline)] = None,
    window: Scored = None,
    debug: Debug = False,
) -> None:
    """Render the newest analysis and print it, or the path of its page.

    A shift keeps the sign of its metric: +5 pp of complaints is worse. The gate turns signs so that + is better.
    """
    from evalpipe.steps.analysis import outdated, versions_of
    from evalpipe.steps.context import open_context
    from evalpipe.steps.report import make_report

    with handled(as_json=False, debug=debug):
        if style not in ("html", "md", "json"):
            raise EvalpipeError("BAD_ARGUMENT", "the format is html, md or json", where="--format")
        if bool(candidate) != bool(baseline):
            raise EvalpipeError("BAD_ARGUMENT", "name both a candidate and a baseline, or neither", where="--candidate")
        settings = _existing(home, criteria)
        window = arguments.window(window) if window else None
        with open_context(settings) as context:
            if candidate and baseline:
                known = versions_of(context, analysis_of(context, window))
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
    candidate: Annotated[str, typer.Option(help=Candidate)],
    baseline: Annotated[str, typer.Option(help=Baseline)],
    home: Home = None,
    criteria: Criteria = None,
    window: Scored = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """May CANDIDATE replace BASELINE? Exit 0 pass, 1 fail, 3 inconclusive.

    Differences are turned so that + is better for every metric; the report leaves each metric its own sign.
    """
    from evalpipe.console import summary
    from evalpipe.steps.analysis import versions_of
    from evalpipe.steps.context import open_context
    from evalpipe.steps.decisions import make_gates

    with handled(as_json=as_json, debug=debug):
        settings = _existing(home, criteria)
        with open_context(settings) as context:
            manifest = analysis_of(context, arguments.window(window) if window else None)
            known = versions_of(context, manifest)
            candidate, baseline = version_in(candidate, known), version_in(baseline, known)
            decided = make_gates(context, manifest, candidate, baseline)
        raise typer.Exit(summary.after_gate(decided, candidate, baseline, as_json=as_json))


@app.command()
def release(
    version: Annotated[str, typer.Argument(help=Candidate.replace("that may ship", "to show"))],
    home: Home = None,
    criteria: Criteria = None,
    slices: Annotated[bool, typer.Option("--slices", help="Show the slices of traffic too.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Scorecard of one agent version."""
    from evalpipe.console import summary
    from evalpipe.orchestration.assets.analysis import is_partition_key
    from evalpipe.steps.analysis import versions_of
    from evalpipe.steps.context import open_context
    from evalpipe.steps.decisions import make_scorecard

    with handled(as_json=as_json, debug=debug):
        settings = _existing(home, criteria)
        with open_context(settings) as context:
            version = version_in(version, versions_of(context, analysis_of(context, None)))
            manifest = make_scorecard(context, version)
            card = context.lake.read("analysis.scorecard", [manifest])
        if is_partition_key(version):
            with running(settings, debug=debug) as runner:
                runner.release(version).require()
        summary.scorecard(card, version, with_slices=slices, as_json=as_json)


@app.command()
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
        settings = _existing(home, None)
        data = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory).query(query)
        if out is None:
            frames.frame(data, style)
        else:
            frames.write(data, out)


@app.command()
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
        with open_context(_existing(home, criteria)) as context:
            n_sessions, n_steps = write(context, style, out, days=span, sessions=frozenset(session or ()))
        show.note(f"{n_sessions:,} sessions with {n_steps:,} steps written to {out}")


@app.command()
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


@app.command()
def demo(
    home: Annotated[Path, typer.Option("--home", help="Folder of the demo's home.")] = Path(".evalpipe-demo"),
    sessions: Annotated[int, typer.Option(help="Number of sessions.")] = 17_000,
    days: Annotated[int, typer.Option(help="Number of days.")] = 14,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete a demo that lies there, and begin anew.")] = False,
    debug: Debug = False,
) -> None:
    """Simulate a fortnight with known truth, run every night of it, show truth beside estimate.

    A demo that lies there already is shown again.
    """
    from evalpipe.console import demo as demo_flow

    with handled(as_json=False, debug=debug):
        settings = _settings(home, demo_flow.CRITERIA)
        raise typer.Exit(
            demo_flow.run_demo(settings, sessions=sessions, days=days, seed=seed, fresh=fresh, debug=debug)
        )


@app.command()
def ui(
    home: Home = None,
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 3000,
    debug: Debug = False,
) -> None:
    """Open Dagster's UI, with its daemon, on a home."""
    from evalpipe.orchestration.serve import serve

    with handled(as_json=False, debug=debug):
        raise typer.Exit(serve(_settings(home, None), port, show.note, is_loud=debug))


@app.command()
def erase(
    user: Annotated[str | None, typer.Option("--user", help="Id of the person as the logs have it.")] = None,
    token: Annotated[
        str | None, typer.Option("--token", help="Or the pseudonym, as in masked.sessions.user_id.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only in this tenant [in all].")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only sessions of this reader [of all].")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and do nothing.")] = False,
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Erase one person from every file of a home, for good, and leave them out of all later logs."""
    from evalpipe.console import erasure

    with handled(as_json=as_json, debug=debug):
        subject = erasure.subject_of(user, token, tenant, source)
        erasure.erase(_existing(home, criteria), subject, dry_run=dry_run, as_json=as_json)


@app.command()
def retention(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Take away text that has been kept for long enough (data/retention.toml); every run does so at its end."""
    from evalpipe.console import erasure

    with handled(as_json=as_json, debug=debug):
        erasure.expire(_existing(home, None), as_json=as_json)


@app.command()
def doctor(home: Home = None, criteria: Criteria = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Look at a home: what is stale, what was refused, what is published."""
    from evalpipe.console import doctor as look

    with handled(as_json=as_json, debug=debug):
        look.doctor(_existing(home, criteria), as_json=as_json)


@criteria_app.command("list")
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


@criteria_app.command("diff")
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


@criteria_app.command("bridge")
def criteria_bridge(
    old: Annotated[str, typer.Argument(help="Name or file of the old criteria.")],
    new: Annotated[str, typer.Argument(help="Name or file of the new ones.")],
    home: Home = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What a change of criteria did to the headline, on sessions that were scored under both."""
    from evalpipe.console import bridge

    with handled(as_json=as_json, debug=debug):
        bridge.bridge(_existing(home, new), old, as_json=as_json)


@criteria_app.command("freeze")
def criteria_freeze(
    version: Annotated[str, typer.Argument(help="Name of the weights, such as 2026-q1.")],
    days: Annotated[str | None, typer.Option("--days", help="Baseline A..B [all days with sessions].")] = None,
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The mix of work of a baseline, as weights for a criteria file (population fixed:VERSION)."""
    from evalpipe.console import freeze

    with handled(as_json=as_json, debug=debug):
        span = arguments.days(days) if days else None
        freeze.freeze(_existing(home, criteria), arguments.plain_name(version), span, as_json=as_json)


# ---- helpers


def _settings(home: Path | None, criteria: str | None) -> Settings:
    return settings_module.load(home=home, criteria=criteria)


def _existing(home: Path | None, criteria: str | None) -> Settings:
    """Settings of a home that is there already: what only reads makes none."""
    return settings_module.require_home(_settings(home, criteria))


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
