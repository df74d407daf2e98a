"""Masked sessions as documents for other tools.

Belongs here: choosing sessions, reading their parts one by one, writing whole files. Does not belong
here: the forms themselves (``interchange``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO, Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.interchange import FORMS
from evalpipe.steps.context import Context, today
from evalpipe.store.files import move_durably
from evalpipe.store.lake import read_part


def export(
    context: Context, form: str, out: Path, *, days: tuple[date, date] | None, sessions: frozenset[str]
) -> tuple[int, int]:
    """Write sessions in a form of another tool.

    Args:
        context: The open home.
        form: Name of a form (``evalpipe.interchange.FORMS``).
        out: A ``.jsonl`` file for one document a line, else a folder for one file a session.
        days: Only sessions that start from A to B.
        sessions: Only these ids, tokens as in the warehouse; empty for all.

    Returns:
        Sessions and steps written. Files of that name are replaced, others in the folder stay.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for an unknown form, ``NO_RESULT`` where nothing matches or a
            session is not there, ``STALE_RESULT`` where a masked slice is older than what it is made
            from; nothing is written then.
    """
    if form not in FORMS:
        raise EvalpipeError("BAD_ARGUMENT", f"the format is {' or '.join(FORMS)}", where="--format")
    _require_current(context, days)
    n_sessions = n_steps = 0
    missing = set(sessions)
    with _written(out) as write:
        for session, steps in _found(context, days, sessions):
            missing.discard(session["session_id"])
            write(str(session["session_id"]), FORMS[form](session, steps))
            n_sessions += 1
            n_steps += len(steps)
        if not n_sessions:
            raise EvalpipeError("NO_RESULT", "no masked session matches", where=str(context.settings.home))
        if missing:
            what = f"{len(missing)} of {len(sessions)} sessions are not there, the first {min(missing)}"
            raise EvalpipeError("NO_RESULT", what, where="--session")
    return n_sessions, n_steps


def _found(
    context: Context, days: tuple[date, date] | None, wanted: frozenset[str]
) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Sessions with their steps, part by part: memory is that of one part."""
    for day in context.lake.days("masked"):
        manifest = context.lookup("masked", day)
        if manifest is None or (days is not None and not days[0] <= day <= days[1]):
            continue
        heads = context.lake.paths("masked.sessions", [manifest])
        bodies = context.lake.paths("masked.steps", [manifest])
        for head, body in zip(heads, bodies, strict=True):
            sessions = read_part("masked.sessions", head)
            if wanted:
                sessions = sessions.filter(pl.col("session_id").is_in(list(wanted)))
            if sessions.is_empty():
                continue
            steps = read_part("masked.steps", body).sort("session_id", "seq")
            groups = {key[0]: frame for key, frame in steps.group_by("session_id", maintain_order=True)}
            for row in sessions.iter_rows(named=True):
                own = groups.get(row["session_id"])
                yield row, [] if own is None else own.to_dicts()


def _require_current(context: Context, days: tuple[date, date] | None) -> None:
    """Refuse to export masked slices that would be made anew now: what was landed, or withdrawn, since."""
    first, last = days or (date.min, date.max)
    stale = [
        day
        for day, (step, _) in context.plan().stale.items()
        if step in ("raw", "masked") and first <= day <= min(last, today())
    ]
    if stale:
        what = f"{len(stale)} days changed since their masked sessions were made, the first {stale[0]}"
        fix = f"Run: evalpipe backfill {stale[0]}..{stale[-1]}"
        raise EvalpipeError("STALE_RESULT", what, where="masked.sessions", fix=fix)


@contextmanager
def _written(out: Path) -> Iterator[Any]:
    """A function that writes one document; what is written appears when all of it is whole, or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(mkdtemp(prefix=f".{out.name}.", suffix=".draft", dir=out.parent))
    try:
        if out.suffix == ".jsonl":
            with (draft / out.name).open("w", encoding="utf-8") as file:
                yield lambda _, document: _dump(document, file)
            move_durably([(draft / out.name, out)])
        else:

            def write(name: str, document: dict[str, Any]) -> None:
                with (draft / f"{name}.json").open("w", encoding="utf-8") as file:
                    _dump(document, file)

            yield write
            out.mkdir(exist_ok=True)
            move_durably((path, out / path.name) for path in sorted(draft.iterdir()))
    finally:
        rmtree(draft, ignore_errors=True)


def _dump(document: dict[str, Any], file: IO[str]) -> None:
    # Escapes keep halves of surrogate pairs, which no encoding can write.
    json.dump(document, file)
    file.write("\n")
