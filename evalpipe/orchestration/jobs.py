"""Jobs: what runs together. Partitioned and unpartitioned assets mix; two partitionings never do.

Belongs here: selections. Does not belong here: when a job runs (``schedules.py``, ``sensors.py``).
"""

from __future__ import annotations

import dagster as dg

from evalpipe.orchestration.assets.layers import LANDING, RETENTION
from evalpipe.orchestration.assets.models import BORDERLINE
from evalpipe.orchestration.assets.publication import PUBLICATION, REFUSED, REPORT
from evalpipe.orchestration.assets.validation import VALIDATION
from evalpipe.steps import quality
from evalpipe.store.manifest import STEP_TABLES

_SLICES = [table.split(".") for step in ("raw", "masked", "signals", "outcomes") for table in STEP_TABLES[step]]
_ANALYSIS = [table.split(".") for table in STEP_TABLES["analysis"]]


def jobs(model_keys: list[dg.AssetKey]) -> list[dg.UnresolvedAssetJobDefinition]:
    """All jobs.

    Args:
        model_keys: Asset keys of the SQL models, which are built with the warehouse.
    """
    judged = (dg.AssetKey(table.split(".")) for table in quality.TABLES)
    publish = dg.AssetSelection.assets(*judged, PUBLICATION, *model_keys, REPORT)
    warehouse = dg.AssetSelection.assets(PUBLICATION, *model_keys)
    slices = dg.AssetSelection.assets(*(dg.AssetKey(key) for key in _SLICES))
    analysis = dg.AssetSelection.assets(*(dg.AssetKey(key) for key in _ANALYSIS))
    landing = dg.AssetSelection.assets(LANDING)
    # Last in every job that makes slices: it ends the run red where a day was refused.
    refused = dg.AssetSelection.assets(REFUSED)
    return [
        dg.define_asset_job("landing", landing, description="Parse files that were not seen before."),
        dg.define_asset_job("slices", slices | refused, description="Make the slices of some days: raw to outcomes."),
        dg.define_asset_job("score", analysis | publish, description="Score as-of days, publish, report."),
        dg.define_asset_job("publish", publish, description="Rebuild the warehouse and the report."),
        dg.define_asset_job(
            "nightly",
            landing | slices | analysis | publish | refused,
            description="Everything, for the days of a night.",
        ),
        dg.define_asset_job(
            "late",
            slices | analysis | publish | refused,
            description="Days that late files made stale, up to the published report.",
        ),
        dg.define_asset_job(
            "retention",
            dg.AssetSelection.assets(RETENTION),
            description="Take away raw rows, text and snippets that have been kept for long enough.",
        ),
        dg.define_asset_job(
            "train_borderline",
            dg.AssetSelection.assets(BORDERLINE),
            description="Train a classifier of borderline turns from labelled files.",
        ),
        dg.define_asset_job(
            "validate",
            dg.AssetSelection.assets(VALIDATION) | warehouse,
            description="How often intervals cover and gates err, in simulated worlds and on this home's sessions.",
        ),
        dg.define_asset_job(
            "release_scorecard",
            dg.AssetSelection.assets(dg.AssetKey(["analysis", "scorecard"])),
            description="The scorecard of one agent version.",
        ),
    ]
