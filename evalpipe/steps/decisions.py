"""What is decided on an analysis: gates, and the scorecard of a release.

Belongs here: reading the newest analysis, refusing one that later sessions have overtaken, committing
what follows from it. Does not belong here: the rules (``analysis``), and making analyses
(``steps/analysis``).
"""

from __future__ import annotations

import re

import polars as pl

from evalpipe import analysis
from evalpipe.steps.analysed import require_latest
from evalpipe.steps.analysis import require_current, tables_of
from evalpipe.steps.context import Context
from evalpipe.store.lake import read_part, stage_part
from evalpipe.store.manifest import Manifest, SliceKey, digest_of


def make_gates(context: Context, manifest: Manifest, candidate: str, baseline: str) -> pl.DataFrame:
    """Decide the gates of the criteria on one analysis, and append the decision.

    Args:
        context: The open home.
        manifest: Analysis to decide on.
        candidate: Version that may ship.
        baseline: Version that it is compared with.

    Returns:
        ``analysis.gates`` rows of this decision.

    Raises:
        EvalpipeError: ``STALE_RESULT`` where later sessions have overtaken the analysis.
    """
    require_current(context, manifest)
    earlier = [read_part("analysis.gates", path, analysis.DECIDED) for path in context.lake.appended("analysis.gates")]
    before = pl.concat(earlier) if earlier else None
    tables = tables_of(context, manifest)
    decided = analysis.decide_gates(tables, context.criteria, candidate, baseline, decided=before)
    context.lake.append("analysis.gates", decided)
    return decided


def make_scorecard(context: Context, version: str) -> Manifest:
    """Make the scorecard of one version from the newest analysis.

    Args:
        context: The open home.
        version: Label of the version.

    Raises:
        EvalpipeError: ``NO_RESULT`` without any analysis, ``UNKNOWN_VERSION`` for another label,
            ``STALE_RESULT`` where later sessions have overtaken the analysis.
    """
    source = require_latest(context)
    card = scorecard_of(context, source, version)
    key = SliceKey("scorecard", source.key.day, (*context.versions.variants["scorecard"], f"v={slug(version)}"))
    code_version = context.versions.code["scorecard"]
    inputs = {"analysis": source.content}
    old = context.lake.manifest(key)
    is_whole = old is not None and context.lake.damage(old) is None
    if old is not None and is_whole and old.code_version == code_version and dict(old.inputs) == inputs:
        return old
    staged = [stage_part("analysis.scorecard", card, context.lake.staging_folder(key), "all")]
    return context.lake.commit(key, staged, inputs=inputs, code_version=code_version, stats={"version": version})


def scorecard_of(context: Context, manifest: Manifest, version: str) -> pl.DataFrame:
    """The scorecard of one version from any analysis; nothing is committed.

    Args:
        context: The open home.
        manifest: Analysis to read.
        version: Label of the version.

    Returns:
        Rows of ``analysis.scorecard``.

    Raises:
        EvalpipeError: ``UNKNOWN_VERSION``, ``STALE_RESULT``.
    """
    require_current(context, manifest)
    return analysis.scorecard(tables_of(context, manifest), version)


def slug(version: str) -> str:
    """A version label as a file name and partition key: letters, digits, dot, dash, underscore.

    Labels that differ only in other characters stay apart by a digest.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", version).strip("_")[:80]
    return plain if plain == version else f"{plain}.{digest_of(version)[:6]}"
