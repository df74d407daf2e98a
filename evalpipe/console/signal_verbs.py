"""The verbs of ``evalpipe signals``: eval, train, model, judge.

Belongs here: options. Does not belong here: what a verb does (``signal_eval``, ``borderline``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalpipe import settings as settings_module
from evalpipe.console.entry import handled

app = typer.Typer(help="How right the extracted signals are.", no_args_is_help=True, rich_markup_mode=None)


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


@app.command()
def train(
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", help="Labelled turns to train on (.txt, .jsonl); repeat it [the shipped corpus]."),
    ] = None,
    held: Annotated[
        list[Path] | None,
        typer.Option("--held", help="Labelled turns to measure on; repeat it [held-out part of the shipped corpus]."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File of the weights; the card lies beside it.")] = Path(
        "borderline.npz"
    ),
    licence: Annotated[str | None, typer.Option("--licence", help="Licence of your labels, for the card.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Train the borderline classifier and say what it reaches (docs/borderline.md)."""
    from evalpipe.console import borderline

    with handled(as_json=as_json, debug=debug):
        borderline.train(labels or [], held or [], out, licence=licence, as_json=as_json)


@app.command()
def model(
    file: Annotated[Path, typer.Argument(help="Labelled turns (.txt, .jsonl).")],
    adjudicated: Annotated[
        Path | None, typer.Option("--adjudicated", help="JSON lines of id and final: labels that overrule the file's.")
    ] = None,
    weights: Annotated[Path | None, typer.Option("--weights", help="Weights [the shipped ones].")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    criteria: Annotated[str | None, typer.Option("--criteria", help="Criteria name or file [default].")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """How good the borderline classifier is on labelled turns: on all, and where patterns are silent."""
    from evalpipe.console import borderline

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(criteria=criteria)
        borderline.look(settings, file, adjudicated, weights, as_json=as_json)


@app.command()
def judge(
    items: Annotated[Path, typer.Argument(help="Items of evalpipe review sample (.jsonl): masked turns.")],
    out: Annotated[Path, typer.Option("--out", help="The same items with the judge's labels, for review import.")],
    url: Annotated[
        str, typer.Option("--url", envvar="EVALPIPE_JUDGE_URL", help="Base of an OpenAI-compatible interface (.../v1).")
    ] = "",
    name: Annotated[str, typer.Option("--model", envvar="EVALPIPE_JUDGE_MODEL", help="Model to ask.")] = "",
    retry_invalid: Annotated[
        bool, typer.Option("--retry-invalid", help="Ask again where the answer broke the schema.")
    ] = False,
    home: Annotated[
        Path | None, typer.Option("--home", help="Home of the sample: who was erased since is not sent [.evalpipe].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Ask a model for labels of masked turns. Text leaves this machine: it is off until an endpoint is named."""
    from evalpipe.console import judging

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(home=home)
        # Without a home, a file of items is judged as it is.
        named = settings_module.require_home(settings) if home else settings
        of = named if settings_module.is_home(named.home) else None
        judging.run(items, out, url=url, name=name, as_json=as_json, retry_invalid=retry_invalid, settings=of)
