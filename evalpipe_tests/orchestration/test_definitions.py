"""The code location: it loads as a server loads it, and its graph changes only on purpose."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from evalpipe.contracts.tables import TABLES
from evalpipe.definitions import build_defs
from evalpipe.orchestration.assets.analysis import is_partition_key
from evalpipe.orchestration.assets.layers import asset_key
from evalpipe.orchestration.partitions import RANGE_END, RANGE_START
from evalpipe.orchestration.runner import ranges
from evalpipe.settings import load
from evalpipe.store.manifest import STEP_TABLES

SNAPSHOT = Path(__file__).with_name("graph.json")


@pytest.fixture(scope="module")
def defs(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    folder = tmp_path_factory.mktemp("defs")
    return build_defs(load(folder=folder, environ={}, home=folder / "home"))


def graph(defs: dg.Definitions) -> dict[str, Any]:
    """Every asset with what a change of it would mean to its users."""
    assets = defs.resolve_asset_graph()
    out: dict[str, Any] = {}
    for key in sorted(assets.get_all_asset_keys(), key=lambda k: k.to_user_string()):
        node = assets.get(key)
        partitions = node.partitions_def
        out[key.to_user_string()] = {
            "group": node.group_name,
            "deps": sorted(parent.to_user_string() for parent in node.parent_keys),
            "partitions": type(partitions).__name__ if partitions else None,
            "checks": sorted(check.name for check in node.check_keys),
        }
    return out


def test_the_graph_is_as_reviewed(defs: dg.Definitions) -> None:
    now = graph(defs)
    if not SNAPSHOT.exists():
        SNAPSHOT.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", "utf-8")
        pytest.fail("the graph was written anew: look at it, commit it, and run again")
    assert now == json.loads(SNAPSHOT.read_text("utf-8")), "look at the change, then delete graph.json and run again"


def test_the_location_loads_as_a_server_loads_it(defs: dg.Definitions) -> None:
    # A job and an op of one name pass every check but this one.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        defs.get_repository_def().load_all_definitions()


def test_every_table_of_a_step_is_an_asset_with_its_schema(defs: dg.Definitions) -> None:
    assets = defs.resolve_asset_graph()
    for step, tables in STEP_TABLES.items():
        for table in tables:
            metadata = assets.get(asset_key(table)).metadata
            schema = metadata["dagster/column_schema"]
            columns = getattr(schema, "schema", schema).columns
            assert [c.name for c in columns] == list(TABLES[table].names), step


def test_all_daily_assets_share_one_range_policy(defs: dg.Definitions) -> None:
    assets = defs.resolve_asset_graph()
    for key in assets.get_all_asset_keys():
        policy = assets.get(key).backfill_policy
        assert policy == dg.BackfillPolicy.single_run(), key.to_user_string()


def test_models_carry_column_lineage(defs: dg.Definitions) -> None:
    assets = defs.resolve_asset_graph()
    lineage = assets.get(dg.AssetKey(["analysis", "leaderboard"])).metadata["dagster/column_lineage"]
    deps = getattr(lineage, "lineage", lineage).deps_by_column
    assert any(dep.asset_key.path[0] == "analysis" for dep in deps["estimate"])


def test_the_night_covers_the_days_that_outcomes_look_over(defs: dg.Definitions) -> None:
    schedule = defs.resolve_schedule_def("nightly_at_two")
    context = dg.build_schedule_context(scheduled_execution_time=datetime(2026, 1, 20, 2, tzinfo=UTC))
    result = schedule(context)
    assert (result.tags[RANGE_START], result.tags[RANGE_END]) == ("2026-01-16", "2026-01-19")
    # However late it is launched, the night stands on the day that ended.
    assert result.run_config["resources"]["home"]["config"]["as_of"] == "2026-01-19"


def test_ranges_keep_days_that_read_each_other_together() -> None:
    days = [date(2026, 1, d) for d in (1, 2, 5, 20)]
    assert list(ranges(days)) == [(date(2026, 1, 1), date(2026, 1, 5)), (date(2026, 1, 20), date(2026, 1, 20))]
    assert list(ranges([])) == []
    long = [date.fromordinal(date(2026, 1, 1).toordinal() + i) for i in range(70)]
    covered = [day for start, end in ranges(long) for day in long if start <= day <= end]
    assert covered == long
    assert all((end - start).days < 31 for start, end in ranges(long))


@pytest.mark.parametrize(("label", "expected"), [("a · b", True), ("a|b", False), ("a/b", False), ("a...b", False)])
def test_some_labels_cannot_be_partitions(label: str, expected: bool) -> None:
    assert is_partition_key(label) is expected
