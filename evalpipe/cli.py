"""The command line: one verb an intent.

Belongs here: options and exit codes. Does not belong here: what a verb does (``console/``,
``steps/``). Dagster is imported by the verbs that run jobs, so that a query answers at once.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from evalpipe import __version__
from evalpipe import settings as settings_module
from evalpipe.console import show
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

Home = Annotated[Path | None, typer.Option("--home", help="Folder of lake, warehouse and reports [.evalpipe].")]
Criteria = Annotated[str | None, typer.Option("--criteria", help="Criteria name or file [default].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Dagster's log and full tracebacks.")]
Window = Annotated[str, typer.Option("--window", help="'all', or a trailing number of days such as 28d.")]


#: As a shell reports a program that a signal ended.
_INTERRUPTED = 130
_PIPE_CLOSED = 141


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def run(
    sources: Annotated[list[Path], typer.Argument(help="Log files or folders.")],
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

    with _handled(as_json, debug):
        settings = _settings(home, criteria)
        _window(window)
        with _runner(settings, debug) as runner:
            done = flow.run_sources(
                settings,
                runner,
                sources,
                days=_days(days),
                undated_as=_day(undated_as) if undated_as else None,
                window=window,
            )
        summary.after_run(settings, done, as_json=as_json)
        if done.red:
            raise typer.Exit(Exit.SOME_SLICES_RED)


@app.command()
def backfill(
    days: Annotated[str, typer.Argument(help="Range A..B of UTC days.")],
    home: Home = None,
    criteria: Criteria = None,
    window: Window = "28d",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Recompute the stale slices of a range, score each of its days, publish."""
    from evalpipe.console import flow, summary

    with _handled(as_json, debug):
        settings = _settings(home, criteria)
        _window(window)
        with _runner(settings, debug) as runner:
            done = flow.make_days(settings, runner, days=_days(days), window=window)
        summary.after_run(settings, done, as_json=as_json)
        if done.red:
            raise typer.Exit(Exit.SOME_SLICES_RED)


@app.command()
def report(
    home: Home = None,
    criteria: Criteria = None,
    style: Annotated[str, typer.Option("--format", help="html (prints the path), md or json.")] = "html",
    candidate: Annotated[str | None, typer.Option(help="Version that may ship.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Version that it is compared with.")] = None,
    window: Annotated[str | None, typer.Option("--window", help="Only this window.")] = None,
    debug: Debug = False,
) -> None:
    """Render the newest analysis and print it, or the path of its page."""
    from evalpipe.steps.analysis import outdated
    from evalpipe.steps.context import open_context
    from evalpipe.steps.report import make_report

    with _handled(False, debug):
        if style not in ("html", "md", "json"):
            raise EvalpipeError("BAD_ARGUMENT", "the format is html, md or json", where="--format")
        if bool(candidate) != bool(baseline):
            raise EvalpipeError("BAD_ARGUMENT", "name both a candidate and a baseline, or neither", where="--candidate")
        with open_context(_settings(home, criteria)) as context:
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
    candidate: Annotated[str, typer.Option(help="Version that may ship.")],
    baseline: Annotated[str, typer.Option(help="Version that it is compared with.")],
    home: Home = None,
    criteria: Criteria = None,
    window: Annotated[str | None, typer.Option("--window", help="Only this window.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """May CANDIDATE replace BASELINE? Exit 0 pass, 1 fail, 3 inconclusive."""
    from evalpipe.console import summary
    from evalpipe.steps.analysis import latest, make_gates
    from evalpipe.steps.context import open_context

    with _handled(as_json, debug):
        settings = _settings(home, criteria)
        with open_context(settings) as context:
            manifest = latest(context, window)
            if manifest is None:
                raise EvalpipeError("NO_RESULT", "nothing is analysed under these criteria", where=str(settings.home))
            decided = make_gates(context, manifest, candidate, baseline)
        raise typer.Exit(summary.after_gate(decided, candidate, baseline, as_json=as_json))


@app.command()
def release(
    version: Annotated[str, typer.Argument(help="Version label, as the report prints it.")],
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Scorecard of one agent version."""
    from evalpipe.console import summary
    from evalpipe.orchestration.assets.analysis import is_partition_key
    from evalpipe.steps.analysis import make_scorecard
    from evalpipe.steps.context import open_context

    with _handled(as_json, debug):
        settings = _settings(home, criteria)
        with open_context(settings) as context:
            manifest = make_scorecard(context, version)
            card = context.lake.read("analysis.scorecard", [manifest])
        if is_partition_key(version):
            with _runner(settings, debug) as runner:
                runner.release(version).require()
        summary.scorecard(card, version, as_json=as_json)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="One read-only statement.")],
    home: Home = None,
    style: Annotated[str, typer.Option("--format", help="table, csv or json (one object a line).")] = "table",
    out: Annotated[Path | None, typer.Option("--out", help="Write to a .parquet or .csv file instead.")] = None,
    debug: Debug = False,
) -> None:
    """Query the warehouse, read-only."""
    from evalpipe.store.warehouse import Warehouse

    with _handled(False, debug):
        if style not in ("table", "csv", "json"):
            raise EvalpipeError("BAD_ARGUMENT", "the format is table, csv or json", where="--format")
        settings = _settings(home, None)
        data = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory).query(query)
        if out is None:
            show.frame(data, style)
        elif out.suffix == ".parquet":
            data.write_parquet(out)
        elif out.suffix == ".csv":
            data.write_csv(out)
        else:
            raise EvalpipeError("BAD_ARGUMENT", "the file's name ends in .parquet or .csv", where=str(out))


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

    with _handled(False, debug):
        demo.write_logs(
            out, sessions=sessions, days=days, start=_day(start), seed=seed, profile=profile, routing=routing, late=late
        )


@app.command()
def demo(
    home: Annotated[Path, typer.Option("--home", help="Folder of the demo's home.")] = Path(".evalpipe-demo"),
    sessions: Annotated[int, typer.Option(help="Number of sessions.")] = 17_000,
    days: Annotated[int, typer.Option(help="Number of days.")] = 14,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    debug: Debug = False,
) -> None:
    """Simulate a fortnight with known truth, run every night of it, show truth beside estimate."""
    from evalpipe.console import demo as demo_flow

    with _handled(False, debug):
        settings = _settings(home, demo_flow.CRITERIA)
        raise typer.Exit(demo_flow.run_demo(settings, sessions=sessions, days=days, seed=seed, debug=debug))


@app.command()
def ui(
    home: Home = None,
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 3000,
    debug: Debug = False,
) -> None:
    """Open Dagster's UI, with its daemon, on a home."""
    from evalpipe.orchestration.runner import serve

    with _handled(False, debug):
        raise typer.Exit(serve(_settings(home, None), port))


@app.command()
def doctor(home: Home = None, criteria: Criteria = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Look at a home: what is stale, what was refused, what is published."""
    from evalpipe.console import summary

    with _handled(as_json, debug):
        summary.doctor(_settings(home, criteria), as_json=as_json)


@criteria_app.command("list")
def criteria_list(as_json: AsJson = False, debug: Debug = False) -> None:
    """Criteria files with their version and hashes."""
    from evalpipe import criteria as files
    from evalpipe.steps.context import load_criteria

    with _handled(as_json, debug):
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

    with _handled(as_json, debug):
        changes = files.diff(load_criteria(old), load_criteria(new))
        rows = [{"key": c.path, "old": str(c.old), "new": str(c.new), "effect": str(c.effect)} for c in changes]
        print(json.dumps(rows)) if as_json else show.table(rows, title="changes")


# ---- helpers


@contextmanager
def _handled(as_json: bool, debug: bool) -> Iterator[None]:
    """Turn an error into one line and its exit code; ``--debug`` adds the traceback and changes no code."""
    try:
        yield
        sys.stdout.flush()
    except EvalpipeError as error:
        if debug:
            traceback.print_exc()
        show.show_error(error, as_json=as_json)
        raise typer.Exit(error.exit) from None
    except KeyboardInterrupt:
        show.note("Interrupted. What was committed stays; run again to go on.")
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of a pipe went away, as `| head` does; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(_PIPE_CLOSED) from None


@contextmanager
def _runner(settings: Settings, debug: bool) -> Iterator[Any]:
    from evalpipe.orchestration.runner import open_runner
    from evalpipe.steps.progress import showing

    with show.Bars() as bars, showing(bars), open_runner(settings, verbosity="DEBUG" if debug else "CRITICAL") as made:
        yield made


def _settings(home: Path | None, criteria: str | None) -> Settings:
    return settings_module.load(home=home, criteria=criteria)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise EvalpipeError("BAD_ARGUMENT", "a day is written YYYY-MM-DD", where=text) from None


def _days(text: str | None) -> tuple[date, date] | None:
    if text is None:
        return None
    first, dots, last = text.partition("..")
    start = _day(first)
    end = _day(last) if dots else start
    if end < start:
        raise EvalpipeError("BAD_ARGUMENT", "a range is written A..B with A before B", where=text)
    return start, end


def _window(text: str) -> None:
    if text != "all" and not (text.endswith("d") and text[:-1].isdigit() and int(text[:-1]) > 0):
        raise EvalpipeError("BAD_ARGUMENT", "a window is 'all', or a number of days such as 28d", where=text)


def main() -> None:
    """Entry point of the ``evalpipe`` command."""
    if "--debug" not in sys.argv:
        # Libraries announce betas and deprecations to their developers, not to the person here.
        warnings.simplefilter("ignore")
    try:
        app()
    except Exception as error:  # noqa: BLE001 - a crash must not look like a failed gate
        # Its message may quote a value, so that only its class and place are shown.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if "--debug" in sys.argv:
            traceback.print_tb(error.__traceback__)
        crash = EvalpipeError(
            "INTERNAL_ERROR", type(error).__name__, where=f"{Path(frame.filename).name}:{frame.lineno}"
        )
        show.show_error(crash, as_json="--json" in sys.argv)
        sys.exit(crash.exit)


if __name__ == "__main__":
    main()
