"""Reviews of a home: the samples that were drawn, what people said of them, and what that demotes.

Belongs here: reading and appending the tables that only grow, and what leaves them when a person is
erased, withdraws, or text expires. Does not belong here: drawing (``review_sample.py``), estimates
(``review``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from evalpipe import review, signals
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import empty, frame
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.contracts.tables.reviews import REVIEW_FRAMES, REVIEW_ITEMS, REVIEWS
from evalpipe.masking import MaskPlan
from evalpipe.review import Labelled
from evalpipe.store.files import locked
from evalpipe.store.lake import Lake, read_part
from evalpipe.store.rewrite import Change, rewrite_appended

if TYPE_CHECKING:  # the context asks here what is demoted
    from evalpipe.steps.context import Context

ITEMS, FRAMES, OPINIONS = REVIEW_ITEMS.full_name, REVIEW_FRAMES.full_name, REVIEWS.full_name
#: Tables of reviews that grow by appended files.
APPENDED = (ITEMS, FRAMES, OPINIONS)


#: Items from which on two reviewers who never differ are rather one.
_ALIKE = 10


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Attributes:
        n_items: Items with a label in the files.
        n_new: Opinions that were appended; those that the home had already are not.
        n_changed: Among them, opinions that replace one of the same reviewer.
        n_gone: Items of a sample of this home that are not there any more: erased, or consent is withdrawn.
        n_rows: Items in the files, those without a label among them.
        same_as: Reviewer who had labelled all these items alike, where this one is new; else empty.
        demoted, promoted: (signal, language) that outcomes count no longer, or count again.
    """

    n_items: int
    n_new: int
    n_changed: int
    n_gone: int
    n_rows: int
    same_as: str
    demoted: tuple[tuple[str, str], ...]
    promoted: tuple[tuple[str, str], ...]


@contextmanager
def alone(lake: Lake) -> Iterator[None]:
    """Keep others from drawing and importing."""
    with locked(lake.root / "signals" / ".reviews.lock"):
        yield


def read(lake: Lake, table: str, *, past_damage: bool = False) -> pl.DataFrame:
    """All rows of one of :data:`APPENDED`.

    Args:
        lake: The home's lake.
        table: Its name.
        past_damage: Leave out files that cannot be read; :func:`damaged` names them.

    Raises:
        EvalpipeError: ``HOME_DAMAGED`` naming the file that cannot be read.
    """
    whole = empty(TABLES[table])
    broken = set(damaged(lake)) if past_damage else set[Path]()
    files = [_read(table, path, whole.columns) for path in lake.appended(table) if path not in broken]
    return pl.concat(files) if files else whole


def damaged(lake: Lake) -> list[Path]:
    """Files of reviews that cannot be read."""
    out = []
    for table in APPENDED:
        columns = empty(TABLES[table]).columns
        for path in lake.appended(table):
            try:
                _read(table, path, columns)
            except EvalpipeError:
                out.append(path)
    return out


def _read(table: str, path: Path, columns: Sequence[str]) -> pl.DataFrame:
    try:
        return read_part(table, path, columns)
    except EvalpipeError:
        fix = "Restore the file, or delete it and import the files of its reviewers again."
        what = "a file of reviews cannot be read."
        raise EvalpipeError("HOME_DAMAGED", what, where=str(path), fix=fix) from None


def pooled(lake: Lake, *, past_damage: bool = False) -> pl.DataFrame:
    """What reviewers said by the guide in force, each item with its probability to be drawn and labelled at all."""
    opinions = read(lake, OPINIONS, past_damage=past_damage).filter(pl.col("guide_version") == review.guide().version)
    if opinions.is_empty():
        return opinions
    items = read(lake, ITEMS, past_damage=past_damage)
    wanted = opinions.select("session_id", "seq").unique()
    frames = read(lake, FRAMES, past_damage=past_damage).join(wanted, on=["session_id", "seq"], how="semi")
    return review.pooled(opinions, items, review.chances(items, frames))


def demoted(lake: Lake, *, past_damage: bool = False) -> frozenset[tuple[str, str]]:
    """Signals that outcomes must not count, as (signal, language): what the reviews of a home say now."""
    opinions = pooled(lake, past_damage=past_damage)
    limits = review.limits()
    if opinions.is_empty() and limits.unproven_counts:
        return frozenset()
    return review.demoted(opinions, limits, signals.detector_version)


def add(context: Context, paths: Sequence[Path], reviewer: str) -> Imported:
    """Append the labels of reviewed files, all of them or none.

    Args:
        context: The open home.
        paths: Files of :func:`evalpipe.review.read_labels`.
        reviewer: Label of the reviewer.

    Raises:
        EvalpipeError: ``REVIEW_INVALID``, ``BAD_ARGUMENT``, ``FILE_FAILED``.
    """
    guide = review.guide()
    reviewer = reviewer.casefold()
    labelled, n_rows = review.read_files(paths, guide)
    for one in labelled:
        if one.reviewer and one.reviewer.casefold() != reviewer:
            what = "the file says that another reviewer gave this label."
            raise EvalpipeError("REVIEW_INVALID", what, where=one.where)
    lake = context.lake
    with alone(lake):
        before = demoted(lake)
        items = {row["item_id"]: row for row in read(lake, ITEMS).iter_rows(named=True)}
        opinions = review.last_opinions(read(lake, OPINIONS))
        last = {row["item_id"]: row for row in opinions.filter(reviewer=reviewer).to_dicts()}
        same_as = "" if last else twin(opinions, labelled)
        sizes = _sizes(lake, items.values())
        rows, n_changed, n_gone = [], 0, 0
        for one in labelled:
            item = items.get(one.item_id)
            if item is None and was_drawn(one.item_id, sizes):
                n_gone += 1
                continue
            if item is None:
                raise EvalpipeError("REVIEW_INVALID", "no sample of this home has that item.", where=one.where)
            allowed = {label.name for label in guide.of(item["kind"])}
            if not allowed.issuperset(one.labels):
                raise EvalpipeError("REVIEW_INVALID", f"a label is not for a {item['kind']}.", where=one.where)
            old = last.get(one.item_id)
            note = _masked(one, context.mask_plan)
            now = one.labels, note, guide.version
            if old is not None and (tuple(old["labels"]), old["note"], old["guide_version"]) == now:
                continue
            n_changed += old is not None
            revision = old["revision"] + 1 if old is not None else 1
            said = {"reviewer": reviewer, "revision": revision, "labels": list(one.labels), "note": note}
            rows.append(item | said | {"guide_version": guide.version})
        lake.append(OPINIONS, frame(REVIEWS, rows))
        after = demoted(lake)
    moved = tuple(sorted(after - before)), tuple(sorted(before - after))
    return Imported(len(labelled), len(rows), n_changed, n_gone, n_rows, same_as, *moved)


def twin(opinions: pl.DataFrame, labelled: Sequence[Labelled]) -> str:
    """Reviewer who gave all of some items the labels that a file gives them; empty where nobody did.

    Args:
        opinions: Last opinions.
        labelled: Labels of a file; fewer than ten may be alike by chance.
    """
    mine = {one.item_id: list(one.labels) for one in labelled}
    for (name,), rows in opinions.group_by("reviewer", maintain_order=True):
        theirs = dict(rows.select("item_id", "labels").iter_rows())
        if len(mine) >= _ALIKE and all(theirs.get(item) == labels for item, labels in mine.items()):
            return str(name)
    return ""


def _sizes(lake: Lake, items: Iterable[Mapping[str, Any]]) -> dict[str, int | None]:
    """Items that each sample held when it was drawn; ``None`` where that was not kept."""
    sizes: dict[str, int | None] = {row["sample_id"]: None for row in items}
    return sizes | dict(read(lake, FRAMES).select("sample_id", "n_drawn").unique().iter_rows())


def gone(lake: Lake, item_ids: Iterable[str]) -> frozenset[str]:
    """Items that a sample of the home held and that are not there any more: erased, or consent is withdrawn.

    Args:
        lake: The home's lake.
        item_ids: Numbers of items, as a file has them.
    """
    there = {row["item_id"]: row for row in read(lake, ITEMS).select("item_id", "sample_id").iter_rows(named=True)}
    sizes = _sizes(lake, there.values())
    return frozenset(name for name in item_ids if name not in there and was_drawn(name, sizes))


def was_drawn(item_id: str, sizes: Mapping[str, int | None]) -> bool:
    """Whether a sample held an item of that number, as it was written.

    Args:
        item_id: Number of an item, as a file has it.
        sizes: Items of each sample; ``None`` where it is not known.
    """
    sample_id, _, number = item_id.replace(".", "-").rpartition("-")
    if sample_id not in sizes or not number.isdecimal() or number != f"{int(number):04d}":
        return False
    size = sizes[sample_id]
    return int(number) >= 1 and (size is None or int(number) <= size)


def _masked(one: Labelled, plan: MaskPlan) -> str | None:
    # A remark may say what masking hid.
    return plan.mask_text(one.note)[0] if one.note else None


def take_away(lake: Lake, change: Change) -> int:
    """Write the tables of reviews anew with the rows that stay; the number of files that were changed."""
    return sum(rewrite_appended(lake, table, change) for table in APPENDED)


def without_notes(lake: Lake, sessions: Iterable[str]) -> None:
    """Empty the remarks on some sessions, whose text has expired."""
    gone = sorted(sessions)

    def change(table: str, rows: pl.DataFrame) -> pl.DataFrame:
        if table != OPINIONS or not gone:
            return rows
        return rows.with_columns(note=pl.when(~pl.col("session_id").is_in(gone)).then("note"))

    take_away(lake, change)


def follow(context: Context) -> None:
    """Drop reviews of sessions whose consent is withdrawn since, and remarks on sessions of a tier without text."""
    days = pl.concat([read(context.lake, table)["day"] for table in (ITEMS, FRAMES)]).unique()
    manifests = [m for day in days if (m := context.lookup("masked", day)) is not None]
    sessions = context.lake.read("masked.sessions", manifests, ["session_id", "consent", "source"])
    gone = sessions.filter(pl.col("consent") == CONSENT_WITHDRAWN)["session_id"].implode()
    textless = context.tier_plan.textless(sessions["source"].unique())
    silent = sessions.filter(pl.col("source").is_in(textless))["session_id"]

    def change(table: str, rows: pl.DataFrame) -> pl.DataFrame:
        del table
        is_gone = pl.col("session_id").is_in(gone)
        return rows.filter(~is_gone) if rows.select(is_gone.any()).item() else rows

    if not days.is_empty():
        take_away(context.lake, change)
        without_notes(context.lake, silent)
