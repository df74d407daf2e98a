"""Assets without partitions: the warehouse with its SQL models, and the report.

Belongs here: one publish a run, whatever its days. SQL models are assets of their own, with the
dependencies and column lineage that are read from the SQL.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.orchestration.assets.layers import asset_key
from evalpipe.orchestration.partitions import SINGLE_RUN, range_of
from evalpipe.orchestration.resources import HomeResource, WarehouseResource
from evalpipe.steps import rejections
from evalpipe.steps.publish import APPENDED, committed, compare, publish
from evalpipe.steps.report import make_report
from evalpipe.store.sql_models import SqlModel, lineage

PUBLICATION = dg.AssetKey(["warehouse", "publication"])
REPORT = dg.AssetKey(["report", "latest"])
REFUSED = dg.AssetKey(["report", "refused_days"])


def publication_asset(models: Sequence[SqlModel]) -> dg.AssetsDefinition:
    """The multi-asset that builds the warehouse and runs the SQL models inside the build.

    Args:
        models: SQL models as loaded.
    """
    published = [
        asset_key(name)
        for name, table in TABLES.items()
        if table.layer != "raw" and table.is_published and name not in APPENDED
    ]
    # A scorecard is made on demand from what is published, and then published with the next run.
    published.remove(asset_key("analysis.scorecard"))
    specs = [
        dg.AssetSpec(
            PUBLICATION,
            deps=published,
            group_name="warehouse",
            kinds={"duckdb"},
            description="warehouse.duckdb, rebuilt from the slices and swapped in; readers never wait.",
        ),
        *(_model_spec(model, models) for model in models),
    ]

    @dg.multi_asset(
        name="build_warehouse",
        specs=specs,
        check_specs=[
            dg.AssetCheckSpec(
                "publication_matches_the_lake",
                asset=PUBLICATION,
                blocking=True,
                description="The published file holds every committed slice by its digest, and every "
                "published table has the rows of its slices, no fewer and no more.",
            )
        ],
        backfill_policy=SINGLE_RUN,
    )
    def build(home: HomeResource, warehouse: WarehouseResource) -> Iterator[Any]:
        with home.open() as context:
            context.engine.close()  # nothing from here on asks for workers, and each holds a hundred megabytes
            before = committed(context)
            result = publish(context, connect=warehouse.connect)
            with warehouse.get_connection() as connection:
                comparison = compare(context, before, connection)
        yield dg.MaterializeResult(
            asset_key=PUBLICATION,
            metadata={
                "dagster/row_count": result.rows,
                "is_skipped": result.skipped,
                "seconds": round(result.seconds, 3),
                "tables": {name: int(n) for name, n in sorted(result.tables.items())},
            },
        )
        yield dg.AssetCheckResult(
            check_name="publication_matches_the_lake",
            asset_key=PUBLICATION,
            passed=not comparison.differing,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={
                "slices": comparison.slices,
                "tables": comparison.tables,
                "differing": list(comparison.differing),
                "moved_on": comparison.moved_on,
            },
        )
        for model in models:
            yield dg.MaterializeResult(
                asset_key=asset_key(model.name),
                metadata={"dagster/row_count": int(result.tables[model.name]), "dagster/table_name": model.name},
            )

    return build


def _model_spec(model: SqlModel, models: Sequence[SqlModel]) -> dg.AssetSpec:
    columns = lineage(model, models)
    return dg.AssetSpec(
        asset_key(model.name),
        deps=[PUBLICATION, *(asset_key(name) for name in model.depends_on if _is_asset(name))],
        group_name="warehouse",
        kinds={"duckdb", "sql"},
        code_version=model.digest,
        description=model.description,
        metadata={
            "dagster/table_name": model.name,
            "sql": dg.MetadataValue.md(f"```sql\n{model.sql}\n```"),
            "dagster/column_lineage": dg.TableColumnLineage(
                {
                    column: [dg.TableColumnDep(asset_key(table), source) for table, source in sources]
                    for column, sources in columns.items()
                }
            ),
            "dagster/column_schema": dg.TableSchema(columns=[dg.TableColumn(name) for name in columns]),
        },
    )


def _is_asset(table: str) -> bool:
    # Tables of schema ``meta`` are written by the build itself.
    return table not in _NO_ASSET and not table.startswith("meta.")


#: Append-only tables and on-demand tables are not assets of the nightly graph.
_NO_ASSET = (*APPENDED, "analysis.scorecard")


@dg.asset(
    key=REPORT,
    group_name="report",
    deps=[PUBLICATION],
    kinds={"html"},
    backfill_policy=SINGLE_RUN,
    description="The newest comparison as one page that opens offline, with Markdown and JSON beside it.",
)
def latest_report(home: HomeResource) -> dg.MaterializeResult[Any]:
    """Render the newest analysis."""
    from evalpipe import report
    from evalpipe.steps.analysis import latest

    with home.open() as context:
        if latest(context) is None:
            return dg.MaterializeResult(metadata={"state": "nothing is analysed yet: no settled day"})
        rendered = make_report(context)
    return dg.MaterializeResult(
        metadata={
            "headline": report.headline(rendered.report),
            "html": dg.MetadataValue.path(str(rendered.html)),
            "report": dg.MetadataValue.md(report.to_markdown(rendered.report)),
        }
    )


@dg.asset(
    key=REFUSED,
    group_name="report",
    deps=[asset_key("signals.session_outcomes"), REPORT],
    kinds={"json"},
    backfill_policy=SINGLE_RUN,
    description="Days that a check refused. Runs last and ends its run red where a day of the run is among them.",
)
def refused_days(context: dg.AssetExecutionContext, home: HomeResource) -> dg.MaterializeResult[Any]:
    """End a run red for its refused days, once everything else is done.

    A step that fails at a refused day would take the other days of the run down with it.
    """
    with home.open() as opened:
        refused = rejections.rejected(opened.lake)
        start, end = range_of(context.run.tags)
        here = {day: entry for day, entry in refused.items() if start <= day <= end}
        if here:
            first = min(here)
            code, what = here[first]["code"], here[first]["what"]
            more = f"; {len(here) - 1} more days refused" if len(here) > 1 else ""
            raise EvalpipeError(code, f"{what}{more}", where=f"day {first}")
    return dg.MaterializeResult(
        metadata={"dagster/row_count": len(refused), "refused": {str(day): e["code"] for day, e in refused.items()}}
    )
