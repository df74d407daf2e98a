"""The verbs of ``evalpipe mask``: rows (the one without a name), and eval.

Belongs here: options and exit codes. Does not belong here: what a verb does (``masking``, ``mask_eval``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evalpipe import settings as settings_module
from evalpipe.console import show
from evalpipe.console.entry import handled
from evalpipe.contracts.errors import EvalpipeError

_DEFAULT = "rows"


class _Group(TyperGroup):
    """``evalpipe mask FILE`` is ``evalpipe mask rows FILE``: the file is what most people come with."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the default verb in front, unless a verb or help is asked for."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [_DEFAULT, *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Mask text outside of the pipeline. 'mask FILE.jsonl --field text' masks rows, 'mask --explain TEXT' says why "
    "each place of one text is masked (see: mask rows --help), 'mask eval FOLDER' measures recall and harm.",
)

Home = Annotated[Path | None, typer.Option("--home", help="Home whose key makes the pseudonyms [.evalpipe].")]
Criteria = Annotated[str | None, typer.Option("--criteria", help="Criteria whose rule set is used [default].")]
Ner = Annotated[str | None, typer.Option("--ner", help="Model that looks for names behind the rules [setting ner].")]
Debug = Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")]


@app.command(_DEFAULT)
def rows(
    source: Annotated[
        str | None, typer.Argument(help="JSON lines file, or - for standard input; with --explain, the text.")
    ] = None,
    field: Annotated[list[str] | None, typer.Option("--field", help="Text field to mask; a.b is b inside a.")] = None,
    keep: Annotated[list[str] | None, typer.Option("--keep", help="Field that passes unmasked.")] = None,
    spans: Annotated[bool, typer.Option("--spans", help="Add what was replaced, in characters of the input.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="File to write [standard output].")] = None,
    session_field: Annotated[
        str | None,
        typer.Option("--session-field", help="Field that names a row's session, '' for none [session, session_id]."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each place of one text is masked.")] = False,
    ephemeral_key: Annotated[
        bool, typer.Option("--ephemeral-key", help="Use a key that ends with the command; makes no home.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --explain: print JSON for a script.")] = False,
    home: Home = None,
    criteria: Criteria = None,
    ner: Ner = None,
    debug: Debug = False,
) -> None:
    """Mask the rows of a JSON lines file, or explain one text.

    A row keeps its other fields, masked as text; 'masked' stands for the field. Rows of one session share
    what it teaches: who is named once is hidden in all of them.
    """
    from evalpipe.console import masking
    from evalpipe.masking.rows import RowForm

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(home=home, criteria=criteria, ner=ner)
        if explain:
            text = masking.read_text(source)
            plan = masking.plan_of(settings, ephemeral=ephemeral_key, make=False)
            found = masking.explain(plan, text)
            print(json.dumps(found, ensure_ascii=False)) if as_json else show.table(found, title="what is masked")
            return
        if source is None or not field:
            fix = "Write: evalpipe mask FILE.jsonl --field text"
            raise EvalpipeError("BAD_ARGUMENT", "a file and a field are needed.", where="mask", fix=fix)
        sessions = ("session", "session_id") if session_field is None else (session_field,) if session_field else ()
        form = RowForm(
            tuple(dict.fromkeys(field)), tuple(dict.fromkeys(keep or ())), sessions, spans, settings.max_record_bytes
        )
        both = set(form.fields) & set(form.keep)
        if both:
            raise EvalpipeError("BAD_ARGUMENT", "a field is masked or kept, not both.", where=min(both))
        plan = masking.plan_of(settings, ephemeral=ephemeral_key, make=True)
        masking.mask_rows(plan, source, out, form)


@app.command("eval")
def evaluate(
    folder: Annotated[Path, typer.Argument(help="Folder with positives.jsonl, negatives.jsonl, sessions.jsonl.")],
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Print missed and harmed texts; they may be real.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    home: Home = None,
    criteria: Criteria = None,
    ner: Ner = None,
    debug: Debug = False,
) -> None:
    """Recall and harm of masking on a labelled corpus (docs/masking.md has the layout)."""
    from evalpipe.console import mask_eval, masking

    with handled(as_json=as_json, debug=debug):
        settings = settings_module.load(home=home, criteria=criteria, ner=ner)
        plan = masking.plan_of(settings, ephemeral=True, make=False)
        mask_eval.run(plan, folder, as_json=as_json, show_values=show_values)
