"""The code location that Dagster loads: ``defs``, assembled by :func:`build_defs`.

Belongs here: assembly. Tests and the command line build the same code location with another home.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import dagster as dg

from evalpipe import settings as settings_module
from evalpipe.orchestration.assets.analysis import analysis_assets, scorecard
from evalpipe.orchestration.assets.layers import asset_key, layer_assets, raw_landing, raw_retention
from evalpipe.orchestration.assets.models import borderline_model
from evalpipe.orchestration.assets.publication import latest_report, publication_asset, refused_days
from evalpipe.orchestration.assets.quality import signal_quality
from evalpipe.orchestration.assets.validation import validate_estimates
from evalpipe.orchestration.checks import CHECKS
from evalpipe.orchestration.jobs import jobs
from evalpipe.orchestration.partitions import daily
from evalpipe.orchestration.resources import HomeResource, warehouse_resource
from evalpipe.orchestration.schedules import nightly_schedule, retention_schedule
from evalpipe.orchestration.sensors import late_days, new_files, new_versions
from evalpipe.settings import Settings, peek_first_day
from evalpipe.steps.context import load_criteria, prices_of
from evalpipe.steps.publish import models as load_models
from evalpipe.steps.versions import code_versions


def build_defs(settings: Settings | None = None, *, as_of: str = "") -> dg.Definitions:
    """Assemble the code location.

    Args:
        settings: Settings; loaded from ``evalpipe.toml`` and the environment by default.
        as_of: Day (ISO) on which runs stand; the last complete UTC day by default.
    """
    settings = settings or settings_module.load()
    criteria = load_criteria(settings.criteria)
    versions = code_versions(criteria, prices_of(settings).digest, settings.ner)
    first_day = peek_first_day(settings)
    days = daily(first_day)
    models = load_models()
    home = HomeResource(**home_config(settings, as_of))
    return dg.Definitions(
        assets=[
            raw_landing,
            raw_retention,
            borderline_model,
            *layer_assets(days, versions),
            *analysis_assets(days, versions),
            signal_quality,
            validate_estimates,
            publication_asset(models),
            latest_report,
            refused_days,
            scorecard,
        ],
        asset_checks=CHECKS,
        jobs=jobs([asset_key(model.name) for model in models]),
        schedules=[nightly_schedule(first_day, partial(home_config, settings)), retention_schedule()],
        sensors=[new_files, late_days, new_versions],
        resources={"home": home, "warehouse": warehouse_resource(settings)},
        # Spawning a process a step costs 3 to 5 s; the engine fans out inside a step instead.
        executor=dg.in_process_executor,
    )


def home_config(settings: Settings, as_of: str = "") -> dict[str, Any]:
    """Configuration of the home resource for these settings.

    Args:
        settings: Settings of the home.
        as_of: Day (ISO) on which runs stand.
    """
    return {
        "home": str(settings.home),
        "criteria": settings.criteria,
        "as_of": as_of,
        "workers": settings.workers,
    }


@dg.definitions
def defs() -> dg.Definitions:
    """What ``dagster dev`` and ``dagster asset materialize`` load."""
    return build_defs()
