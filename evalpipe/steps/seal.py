"""Sealed days: text that such a day was made from has expired, so what was made of it is carried on.

Belongs here: which days can still be made, and the rows of an old slice that go on into a new one. Does
not belong here: when text expires (``steps/retention.py``).

A sealed day takes single sessions that come late, and drops single sessions that are erased or lose to
a larger copy elsewhere. It is never rebuilt from input that is not there: where rules, criteria or the
key would ask for it, the old slice stays (``INPUT_EXPIRED``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl

from evalpipe import masking
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import empty
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.store.day_input import DayInput
from evalpipe.store.lake import stage_part
from evalpipe.store.manifest import Manifest, StagedPart

if TYPE_CHECKING:  # the context asks here what it may plan
    from evalpipe.steps.context import Context

#: Tables whose parts pair by position.
_PAIRED = ("masked.sessions", "masked.steps", "masked.vectors")
#: Parts of ``masked.redactions`` that come first and count what has expired.
BASE_REDACTIONS = "n_base_redactions"
#: Tables that hold pieces of text, or what is made of it.
SAID = ("signals.hard", "signals.semantic", "signals.candidates")
#: Landing parts that a sealed masked slice was last made from.
LIVE = "live_parts"


def is_sealed(step: str, item: DayInput | None) -> bool:
    """Whether a step cannot make a day from its input alone any more.

    Args:
        step: ``raw``, ``masked``, ``signals`` or ``outcomes``.
        item: What was landed for the day.
    """
    if item is None:
        return False
    return bool(item.raw_gone) if step == "masked" else bool(item.text_gone) if step == "signals" else False


def is_out_of_reach(context: Context, step: str, day: date, item: DayInput | None) -> bool:
    """Whether a sealed day has nothing to go on from: no slice, a damaged one, or one under another key.

    Args:
        context: The open home.
        step: Step that would make it.
        day: UTC day.
        item: What was landed for the day.
    """
    if not is_sealed(step, item):
        return False
    manifest = context.lookup(step, day)
    return (
        manifest is None
        or context.lake.damage(manifest) is not None
        or manifest.inputs.get("key") != context.key_fingerprint
    )


def out_of_reach(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> list[date]:
    """Days that are sealed and lack a slice that the versions in force ask for, in order."""
    return sorted(
        day for day in days if any(is_out_of_reach(context, s, day, inputs.get(day)) for s in ("masked", "signals"))
    )


def expired(day: date) -> EvalpipeError:
    """The refusal of a day that would have to be made from text that has expired."""
    what = f"day {day}: the text that it would be made from has expired."
    fix = "Keep the old slices as they are, or use the criteria and the key that they were made with."
    return EvalpipeError("INPUT_EXPIRED", what, where=f"day {day}", fix=fix)


def waits(item: DayInput) -> bool:
    """Whether late sessions of a sealed day are still there as they were logged."""
    return bool(item.raw_gone and item.live().parts)


def standing(context: Context, step: str, day: date, item: DayInput | None) -> Manifest | None:
    """A committed slice as a plan shall see it: newer logic alone does not make a sealed one stale.

    But for masked text, which newer rules scan again where it is there still, once no late session is
    waiting as it was logged.
    """
    manifest = context.lookup(step, day)
    if manifest is None or item is None or not is_sealed(step, item) or (step == "masked" and not item.live().parts):
        return manifest
    return replace(manifest, code_version=context.versions.code[step])


@dataclass(frozen=True, slots=True)
class Limits:
    """Which rows of an old masked slice go on into a new one that is made of it.

    Attributes:
        sessions, files: Tokens of those that go on.
        speaking: Sessions whose text goes on.
    """

    sessions: tuple[str, ...]
    files: tuple[str, ...]
    speaking: tuple[str, ...]

    def of(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of a masked table, by its name without its layer, that go on."""
        if name in ("files", "quarantine"):
            return rows.filter(pl.col("file_id").is_in(self.files))
        if name not in ("sessions", "steps", "vectors"):
            return rows
        rows = rows.filter(pl.col("session_id").is_in(self.sessions))
        if name != "steps":
            return rows
        return masking.without_text(
            rows, rows.filter(~pl.col("session_id").is_in(self.speaking))["session_id"].unique()
        )


def limits(context: Context, item: DayInput) -> Limits:
    """What goes on of a sealed masked slice: sessions that still count and did not come anew.

    Args:
        context: The open home.
        item: What was landed for the day.
    """
    files = {context.mask_plan.rekey("f", file) for stem in item.raw_gone for file in item.files.get(stem, ())}
    kept, speaking = tokens(context, item, item.raw_gone), with_text(context, item)
    return Limits(tuple(sorted(kept)), tuple(sorted(files)), tuple(sorted(speaking)))


def is_to_scan_again(context: Context, item: DayInput | None, made: Manifest) -> bool:
    """Whether a sealed masked slice is made of itself by newer rules, as ``rescan`` does.

    Args:
        context: The open home.
        item: What was landed for the day.
        made: The masked slice.
    """
    is_alone = item is not None and is_sealed("masked", item) and not item.live().parts
    return is_alone and made.code_version != context.versions.code["masked"]


def carried_stats(redactions: Sequence[StagedPart], item: DayInput) -> dict[str, Any]:
    """What the manifest of a sealed masked slice tells the next one."""
    return {BASE_REDACTIONS: len(redactions), LIVE: sorted(set(item.live().parts))}


def tokens(context: Context, item: DayInput, stems: Iterable[str]) -> set[str]:
    """Tokens of the sessions that count and lie, whole or in part, in some landing parts of a day."""
    return {context.mask_plan.rekey("s", session_id) for session_id in item.ids_in(frozenset(stems))}


def with_text(context: Context, item: DayInput) -> set[str]:
    """Tokens of the sessions of a day whose masked text has not expired."""
    return tokens(context, item, item.parts) - tokens(context, item, item.text_gone)


def carried_masked(
    context: Context, day: date, item: DayInput, *, has_vectors: bool
) -> tuple[list[StagedPart], list[StagedPart]]:
    """Parts of the old masked slice that go on into the new one of a sealed day.

    Args:
        context: The open home.
        day: A sealed day.
        item: What was landed for it.
        has_vectors: Whether the parts that are new have signals in place of text: then all have.

    Returns:
        Parts of sessions, steps, vectors, files and quarantine, text emptied where it has expired or consent is
        withdrawn; and parts of redactions, which count what has expired.

    Raises:
        EvalpipeError: ``INPUT_EXPIRED``.
    """
    from evalpipe.steps.withdrawal import withdrawn_later

    if is_out_of_reach(context, "masked", day, item):
        raise expired(day)
    manifest = context.lookup("masked", day)
    assert manifest is not None  # it is within reach
    live, goes_on = set(item.live().parts), limits(context, item)
    gone = withdrawn_later(context, day)
    folder = context.lake.staging_folder(manifest.key)
    out: list[StagedPart] = []
    redactions: list[StagedPart] = []
    for index, part in enumerate(manifest.parts):
        if part.table == "masked.copies":
            continue  # the index tells all of them anew
        name = part.table.split(".")[1]
        rows = goes_on.of(name, context.lake.read(part.table, [replace(manifest, parts=(part,))]))
        if name == "steps":
            rows = masking.without_text(rows, gone)
        elif name == "sessions":
            told = pl.when(pl.col("session_id").is_in(gone.implode())).then(pl.lit(CONSENT_WITHDRAWN))
            rows = rows.with_columns(consent=told.otherwise("consent"))
        staged = stage_part(part.table, rows, folder, f"carried-{index:05d}")
        (redactions if name == "redactions" else out).append(staged)
    # Late sessions whose text expired since count with the rest; where some of them are still there, only
    # what was before them counts, so that nothing counts twice.
    n_base = len(redactions)
    if live & set(manifest.stats.get(LIVE, ())):
        n_base = int(manifest.stats.get(BASE_REDACTIONS, 0))
    if has_vectors and all(item.part.table != "masked.vectors" for item in out):
        n_pairs = sum(item.part.table == "masked.sessions" for item in out)
        blank = empty(TABLES["masked.vectors"])
        out += [stage_part("masked.vectors", blank, folder, f"carried-blank-{n:05d}") for n in range(n_pairs)]
    return _without_empty_pairs(out), redactions[:n_base]


def _without_empty_pairs(staged: Sequence[StagedPart]) -> list[StagedPart]:
    """Parts without rows left out; sessions, steps and vectors pair by position and go together."""
    paired = [[item for item in staged if item.part.table == name] for name in _PAIRED]
    pairs = [pair for pair in zip(*filter(None, paired), strict=True) if pair[0].part.rows]
    rest = [item for item in staged if item.part.table not in _PAIRED and item.part.rows]
    return [*(item for same in zip(*pairs, strict=True) for item in same), *rest]


def carried_signals(context: Context, day: date, item: DayInput) -> list[StagedPart]:
    """Parts of the old signal slice that go on into the new one of a day whose text has expired.

    Args:
        context: The open home.
        day: A day whose masked text has expired, in part or all.
        item: What was landed for it.

    Raises:
        EvalpipeError: ``INPUT_EXPIRED``.
    """
    if is_out_of_reach(context, "signals", day, item):
        raise expired(day)
    manifest, masked = context.lookup("signals", day), context.lookup("masked", day)
    assert manifest is not None  # it is within reach
    assert masked is not None  # signals follow masked
    sessions = context.lake.read("masked.sessions", [masked], columns=["session_id", "consent"])
    there = sessions.filter(~pl.col("session_id").is_in(sorted(with_text(context, item))))
    talking = there.filter(pl.col("consent").fill_null("") != CONSENT_WITHDRAWN)["session_id"]
    folder = context.lake.staging_folder(manifest.key)
    out = []
    for index, part in enumerate(manifest.parts):
        rows = context.lake.read(part.table, [replace(manifest, parts=(part,))])
        # What a person said is theirs to withdraw; counts of their sessions stay, as on any other day.
        wanted = talking if part.table in SAID else there["session_id"]
        rows = rows.filter(pl.col("session_id").is_in(wanted.implode()))
        if not rows.is_empty():
            out.append(stage_part(part.table, rows, folder, f"carried-{index:05d}"))
    return out
