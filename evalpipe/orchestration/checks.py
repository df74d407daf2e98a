"""Asset checks beside those that the steps carry: the second opinion on profiles.

Belongs here: turning verdicts into check results. Does not belong here: refusing a slice, which a step
does before it commits (``steps/verdicts.py``). Unpartitioned on purpose: a check with partitions loses
its partition in a range run, while this one sees every day of the run.
"""

from typing import Any

import dagster as dg
import polars as pl

from evalpipe.orchestration.assets.layers import asset_key
from evalpipe.orchestration.partitions import days_of
from evalpipe.orchestration.resources import HomeResource
from evalpipe.quality import judge_with_gx, worst
from evalpipe.steps import evidence, rejections, verdicts
from evalpipe.store.manifest import STEP_TABLES
from evalpipe.store.plan import DAY_STEPS

#: Tables that Great Expectations looks at; its import and one validation a table are all that it costs.
PROFILED = ("masked.sessions", "masked.files", "signals.session_features", "signals.session_outcomes")


def _profile_check(table: str) -> dg.AssetChecksDefinition:
    step = next(name for name in DAY_STEPS if table in STEP_TABLES[name])

    @dg.asset_check(
        asset=asset_key(table),
        name="profile_is_within_bounds",
        blocking=True,
        description="Great Expectations judges the profiles of the run's slices. A slice that breaks a rule of "
        "severity error was refused before its commit; one that this check finds all the same stops the run.",
    )
    def check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
        with home.open() as opened:
            days = days_of(context)
            manifests = [m for day in days if (m := opened.lookup(step, day)) is not None]
            refused = {
                str(day): str(entry["what"])
                for day, entry in rejections.rejected(opened.lake).items()
                if day in days and entry["code"] == "PROFILE_OUT_OF_BOUNDS" and entry.get("where") == table
            }
            return _judged(table, verdicts.profiles_of(manifests, table), refused)

    return check


def _judged(table: str, profiles: pl.DataFrame, refused: dict[str, str]) -> dg.AssetCheckResult:
    metadata: dict[str, Any] = {"slices": profiles.height, "refused": refused}
    if profiles.is_empty():
        return dg.AssetCheckResult(passed=not refused, severity=dg.AssetCheckSeverity.WARN, metadata=metadata)
    rules = verdicts.rules()
    judged = judge_with_gx(worst(table, profiles, rules), rules)
    broken = [v for v in judged if v.is_broken]
    blocks = any(v.is_blocking for v in judged)
    return dg.AssetCheckResult(
        passed=not broken and not refused,
        # A refused slice is not committed, so nothing downstream can read it: that stops no other day.
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        metadata={
            **metadata,
            "rules": len(judged),
            "broken": [f"{v.column}: {v.value} outside {v.bounds}. {v.why}" for v in broken],
            # A rule that could not run is not a rule that failed.
            "could_not_run": [v.column for v in judged if not v.could_run],
        },
    )


@dg.asset_check(
    asset=asset_key("signals.session_outcomes"),
    name="demoted_signals_are_not_counted",
    blocking=True,
    description="Outcomes of the run's days leave out what reviews have demoted, and nothing else. A day that "
    "keeps old outcomes, since a check refused it, is named; where one counts a demoted signal the run stops.",
)
def _demotion_check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
    with home.open() as opened:
        days = days_of(context)
        made = [m for day in days if (m := opened.lookup("outcomes", day)) is not None]
        refused = set(rejections.rejected(opened.lake))
        wrong = evidence.overtaken(opened, made)
        held = sorted(str(day) for day in wrong if day in refused)
        left = sorted(str(day) for day in wrong if day not in refused)
        demoted = evidence.demoted_in(made)
    return dg.AssetCheckResult(
        # A run without a signal that it would otherwise count is marked, and goes on.
        passed=not wrong and not demoted,
        severity=dg.AssetCheckSeverity.ERROR if left else dg.AssetCheckSeverity.WARN,
        metadata={"slices": len(made), "demoted": demoted, "counted_all_the_same": left, "held": held},
    )


CHECKS = [_demotion_check, *(_profile_check(table) for table in PROFILED)]
