"""What the verbs of ``evalpipe review`` do and show.

Belongs here: files, and what a person reads when it is done. Does not belong here: options
(``review_verbs.py``), drawing, importing (``steps``).
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from evalpipe import review
from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import Settings
from evalpipe.steps import quality as quality_step
from evalpipe.steps import reviews
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.publish import publish
from evalpipe.steps.review_sample import again as drawn_before
from evalpipe.steps.review_sample import sample as draw_sample
from evalpipe.store.files import move_durably
from evalpipe.store.rewrite import private_write
from evalpipe.store.warehouse import Warehouse

_QUALITY = """
SELECT signal, lang, n_emitted AS emitted, n_reviewed AS reviewed, n_correct AS "right", precision,
       precision_lo AS lower, precision_hi AS upper, recall, threshold, status, is_counted AS counted,
       is_unequal AS unequal
FROM signals.quality WHERE model = 'all' AND is_current ORDER BY ALL
"""
_ALARMS = {
    "demoted": "Signal not counted",
    "unequal": "ALARM, unequal precision",
    "drifted": "ALARM, detector drifted",
    "drifting": "Detector drifts",
}
_AGREEMENT = "FROM signals.agreement WHERE lang = 'all'"


def check_out(out: Path, *, force: bool) -> None:
    """Check that a file for reviewers can be written.

    Args:
        out: The file.
        force: One that is there may be replaced: it may hold labels that nobody has imported.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if out.suffix.lower() not in review.STYLES:
        raise EvalpipeError("BAD_ARGUMENT", f"the name must end in {' or '.join(review.STYLES)}", where="--out")
    if out.is_dir() or not out.parent.is_dir():
        raise EvalpipeError("BAD_ARGUMENT", "it must be a file in a folder that exists", where="--out")
    _check_free(out, force=force)


def _check_free(out: Path, *, force: bool) -> None:
    if out.exists() and not force:
        fix = "Name another file, or replace it with --force."
        raise EvalpipeError("BAD_ARGUMENT", "the file exists, and may hold labels", where="--out", fix=fix)


def sample(
    settings: Settings, size: int, out: Path, *, days: tuple[Any, Any] | None, again: str | None, as_json: bool
) -> None:
    """Draw a sample and write the file for reviewers, readable by the owner only: it holds masked text."""
    # Items are drawn once, so their file must be whole before the home says that they were.
    draft = out.with_name(f".{out.name}.draft")

    def keep(items: list[dict[str, Any]]) -> None:
        private_write(draft, review.write_items(items, out.suffix.lower()))

    try:
        with open_context(settings) as context:
            made = draw_sample(context, size, days, keep) if again is None else drawn_before(context, again)
        if again is not None:
            keep(made.items)
        move_durably([(draft, out)])
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        shown = {
            "sample": made.sample_id,
            "items": len(made.items),
            "frame": made.n_frame,
            "sessions_without_text": made.n_without_text,
            "out": str(out),
        }
        print(json.dumps(shown))
        return
    done = "drawn" if again is None else "shown again"
    show.line(f"{len(made.items):,} of {made.n_frame:,} items {done} (sample {made.sample_id}), written to {out}")
    if made.n_without_text:
        show.note(f"{made.n_without_text:,} sessions could not be drawn: their text has expired or is not kept.")
    show.note(
        f"Label it with: evalpipe review page {shlex.quote(str(out))}, or in any editor; "
        "then: evalpipe review import FILE --reviewer HANDLE"
    )


def page(file: Path, out: Path, *, force: bool) -> None:
    """Write the page of a sample, readable by the owner only: it holds masked text."""
    text = review.page(file, review.guide())
    if out.resolve() == file.resolve() or out.is_dir() or not out.parent.is_dir():
        raise EvalpipeError("BAD_ARGUMENT", "it must be another file, in a folder that exists", where="--out")
    _check_free(out, force=force)
    private_write(out, text)
    show.line(f"Open it in a browser: {out.resolve()}")
    saved = f"{file.stem}.HANDLE.labelled.jsonl"
    show.note(f"With your handle in it, the browser saves {saved} among its downloads; then, in their folder:")
    show.note(f"evalpipe review import {shlex.quote(saved)} --reviewer HANDLE")


def take_in(settings: Settings, files: list[Path], reviewer: str, *, as_json: bool) -> None:
    """Import labels, publish what they say, and name what they move."""
    with open_context(settings) as context:
        # What the last publish showed: labels of an import that was not published count as news.
        shown_before = quality_step.demoted_when_published(context.lake)
        before = reviews.demoted(context.lake) if shown_before is None else shown_before
        done = reviews.add(context, files, review.check_reviewer(reviewer))
        after = reviews.demoted(context.lake)
    if not as_json:
        _taken(done)
    with open_context(settings) as context:
        try:
            publish(context)
        except BaseException:
            show.note("The labels are kept, but not published: the same import again publishes them.")
            raise
        runs = context.plan().runs
        shown: dict[str, Any] = {
            "rows": done.n_rows,
            "items": done.n_items,
            "new": done.n_new,
            "changed": done.n_changed,
            "gone": done.n_gone,
            "same_as": done.same_as,
            "demoted": [f"{signal}@{lang}" for signal, lang in sorted(after - before)],
            "promoted": [f"{signal}@{lang}" for signal, lang in sorted(before - after)],
            "days_stale": [f"{start}..{end}" for start, end in runs],
            "agreement": _query(context, _AGREEMENT),
            "unequal": unequal(context),
        }
    if as_json:
        print(json.dumps(shown, default=str))
        return
    for row in shown["agreement"]:
        both = (
            f"{row['reviewer']} and {row['other']} agree on {row['agreement']:.0%} of {row['n_items']} {row['kind']}s"
        )
        kappa = "" if row["kappa"] is None else f", kappa {row['kappa']:.2f} "
        beside = "" if row["ac1"] is None else f", AC1 {row['ac1']:.2f}"
        show.line(both + (kappa and f"{kappa}({row['kappa_lo']:.2f} to {row['kappa_hi']:.2f}){beside}"))
    for kind, alpha in sorted({(row["kind"], row["alpha"]) for row in shown["agreement"] if row["alpha"] is not None}):
        show.line(f"All reviewers of {kind}s together: Krippendorff's alpha {alpha:.2f}")
    _named("Demoted, outcomes will not count them", shown["demoted"])
    _named("Counted again", shown["promoted"])
    _named("ALARM: precision differs between models", shown["unequal"])
    for span in shown["days_stale"]:
        show.line(f"Stale days: run  evalpipe backfill {span}")


def _taken(done: reviews.Imported) -> None:
    told = f"{done.n_items:,} of {done.n_rows:,} items in the files have a label"
    show.line(f"{told}, {done.n_new:,} of them new, {done.n_changed:,} changed.")
    if done.n_gone:
        show.line(f"{done.n_gone:,} items are not there any more: their sessions were erased or withdrawn.")
    if done.same_as:
        show.line(f"ALARM: {done.same_as} gave all these items the same labels; is this their file?")


def quality(settings: Settings, *, as_json: bool) -> None:
    """What is known of every signal in force, as it was published last."""
    warehouse = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory)
    rows = warehouse.query(_QUALITY).to_dicts()
    if as_json:
        print(json.dumps(rows))
    else:
        show.table(rows, title="Precision of signals, from reviews", numeric=["right", "precision", "lower", "upper"])


def alarms(settings: Settings) -> dict[str, list[str]]:
    """What the published tables say is wrong with signals; nothing where none are published."""
    warehouse = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory)
    published = warehouse.published()
    if published is None or not set(quality_step.TABLES) <= set(published.tables):
        return {}
    return quality_step.alarms({name: warehouse.query(f"FROM {name}") for name in quality_step.TABLES})


def show_alarms(found: dict[str, list[str]]) -> None:
    """One line an alarm, after a run."""
    for name, words in _ALARMS.items():
        for alarm in found.get(name, ()):
            show.line(f"{words}: {alarm}")


def unequal(context: Context) -> list[str]:
    """Signals whose precision differs between models, as published."""
    sql = "SELECT signal, lang FROM signals.quality WHERE is_unequal AND is_current ORDER BY ALL"
    return [f"{row['signal']}@{row['lang']}" for row in _query(context, sql)]


def _query(context: Context, sql: str) -> list[dict[str, Any]]:
    settings = context.settings
    return Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory).query(sql).to_dicts()


def _named(what: str, names: list[str]) -> None:
    if names:
        show.line(f"{what}: {', '.join(names)}")
