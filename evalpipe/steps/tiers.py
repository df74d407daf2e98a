"""Privacy tiers at work: sessions of tier ``vectors`` leave masking with signals in place of text.

Belongs here: extracting beside masking, what a tier adds to the inputs of a slice. Does not belong
here: what a tier is (``contracts/tiers.py``), slices made under a looser tier (``steps/tighten.py``).

Extraction needs text, and a session of tier ``vectors`` stores none; so its signals are extracted in
the same kernel that masks it, and wait as ``masked.vectors`` for the step that writes signals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from evalpipe import signals, sources
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES, masked
from evalpipe.contracts.tiers import Tier, Tiers, withheld
from evalpipe.contracts.vectors import PACKED, pack, unpack
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.masking.keys import MaskingKey
from evalpipe.masking.rekeying import rekey_frame


@dataclass(frozen=True, slots=True)
class TierPlan:
    """What the kernel of masking must know to store no more than a tier allows.

    Attributes:
        tiers: Tier of every source.
        extraction: Criteria of the extraction.
        version: Version of the extraction, as packed signals bear it.
    """

    tiers: Tiers
    extraction: ExtractionCriteria
    version: str

    def textless(self, sources: Iterable[str]) -> list[str]:
        """Those of some sources that store no text, sorted."""
        return sorted({source for source in sources if self.tiers.of(source) is Tier.VECTORS})


def require_known(tiers: Tiers) -> None:
    """Refuse a tier for a source that no reader gives: its text would be stored as if nobody had asked.

    Raises:
        EvalpipeError: ``SETTINGS_INVALID``.
    """
    known = sorted(sources.reader_versions())
    for source, _ in tiers.by_source:
        if source not in known:
            what = f"no source has that name; they are default, {', '.join(known)}"
            raise EvalpipeError("SETTINGS_INVALID", what, where=f"tiers.{source}")


def extracted(sessions: pl.DataFrame, steps: pl.DataFrame, plan: TierPlan) -> pl.DataFrame:
    """Signals of sessions as ``masked.vectors``.

    Args:
        sessions, steps: Masked frames, with the text of the steps.
        plan: Extraction and its version.
    """
    part = signals.extract_part(sessions, steps, plan.extraction)
    return pack({table.full_name: getattr(part, table.name) for table in PACKED}, plan.version)


def withhold(
    sessions: pl.DataFrame, steps: pl.DataFrame, came: pl.DataFrame, plan: TierPlan
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put signals in the place of text, where the tier of a source is ``vectors``.

    Args:
        sessions, steps: Masked frames.
        came: ``masked.vectors`` of sessions that came without text.
        plan: Tiers and extraction.

    Returns:
        The steps, and ``masked.vectors`` of all sessions without text.
    """
    is_textless = pl.col("source").is_in(plan.textless(sessions["source"].unique()))
    inside = sessions.filter(is_textless & ~pl.col("session_id").is_in(came["session_id"].implode()))
    if inside.is_empty():
        return steps, came
    is_inside = pl.col("session_id").is_in(inside["session_id"].implode())
    vectors = extracted(inside, steps.filter(is_inside), plan)
    return without_columns(steps, inside["session_id"]), pl.concat([came, vectors]).sort(masked.VECTORS.sort)


def without_columns(steps: pl.DataFrame, sessions: pl.Series) -> pl.DataFrame:
    """Steps without the columns that tier ``vectors`` withholds, for some sessions."""
    is_gone = pl.col("session_id").is_in(sessions.implode())
    gone = withheld(masked.STEPS, Tier.VECTORS)
    return steps.with_columns(pl.when(~is_gone).then(pl.col(name)).alias(name) for name in gone)


def rekeyed(vectors: pl.DataFrame, old: MaskingKey, new: MaskingKey) -> pl.DataFrame:
    """``masked.vectors`` under the next epoch of the key: what is packed moves like the tables it becomes."""
    if vectors.is_empty():
        return vectors
    moved = [
        pack({name: rekey_frame(TABLES[name], rows, old, new) for name, rows in unpack(same).items()}, str(version))
        for (version,), same in vectors.group_by("extraction", maintain_order=True)
    ]
    return pl.concat(moved).sort(masked.VECTORS.sort)


def opened(vectors: pl.DataFrame, version: str) -> dict[str, pl.DataFrame]:
    """Rows of signals of sessions without text.

    Args:
        vectors: ``masked.vectors``.
        version: Version of the extraction in force.

    Raises:
        EvalpipeError: ``SIGNALS_OUTDATED`` where another extraction made them.
    """
    n_other = vectors.filter(pl.col("extraction") != version).height
    if n_other:
        what = f"signals of {n_other} sessions without text were extracted under other criteria."
        raise EvalpipeError("SIGNALS_OUTDATED", what, where="masked.vectors")
    return unpack(vectors)
