"""Resources: typed configuration that opens a home, and the warehouse's connection settings.

Belongs here: turning Dagster configuration into the plain objects that steps take. Does not belong
here: logic; a step never sees a resource.
"""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource

from evalpipe import settings as settings_module
from evalpipe.engines import LocalEngine
from evalpipe.orchestration.carry import coded
from evalpipe.settings import Settings
from evalpipe.steps.context import Context, open_context
from evalpipe.store.warehouse import Warehouse

_ENGINES: dict[int, LocalEngine] = {}


def _engine(workers: int) -> LocalEngine:
    # Starting worker processes costs seconds; the steps of a run share them.
    if workers not in _ENGINES:
        _ENGINES[workers] = LocalEngine(workers)
        atexit.register(_ENGINES[workers].close)
    return _ENGINES[workers]


class HomeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The home that a code location works on.

    Attributes:
        home: Folder; the setting decides where it is empty.
        criteria: Criteria name or path; the setting decides where it is empty.
        as_of: Day on which the run stands (ISO); the last complete UTC day where it is empty.
        workers: Processes; 0 leaves it to the setting.
    """

    home: str = ""
    criteria: str = ""
    as_of: str = ""
    workers: int = 0

    def settings(self) -> Settings:
        """Settings with this resource's values on top."""
        return settings_module.load(
            home=self.home or None, criteria=self.criteria or None, workers=self.workers or None
        )

    def configured(self) -> dict[str, Any]:
        """This resource's own configuration, for a run that changes a part of it."""
        return {"home": self.home, "criteria": self.criteria, "as_of": self.as_of, "workers": self.workers}

    @contextmanager
    def open(self) -> Iterator[Context]:
        """Open the home; the engine stays for the next step of this process, errors leave with their code."""
        with coded():
            settings = self.settings()
            as_of = date.fromisoformat(self.as_of) if self.as_of else None
            with open_context(settings, as_of=as_of, engine=_engine(settings.workers)) as context:
                yield context


class WarehouseResource(DuckDBResource):
    """Connection settings of the warehouse.

    ``DuckDBResource.get_connection`` opens read-write, retries a lock in silence for 102 seconds, and
    keeps the connection open when the body raises. Here a connection reads the published file, never
    waits, and closes on every way out; only :meth:`connect` writes, and only to a draft.
    """

    @contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the published warehouse that cannot write."""
        with coded(), self.warehouse().open_readonly() as connection:
            yield connection

    def connect(
        self, database: str, *, config: dict[str, str | bool | int | float | list[str]]
    ) -> duckdb.DuckDBPyConnection:
        """Open a draft for a build, with this resource's settings on top of the build's own."""
        return duckdb.connect(database, config={**config, **self.connection_config})

    def warehouse(self) -> Warehouse:
        """The published file."""
        return Warehouse(Path(self.database), memory_limit=str(self.connection_config["memory_limit"]))


def warehouse_resource(settings: Settings) -> WarehouseResource:
    """The warehouse of a home."""
    return WarehouseResource(
        database=str(settings.warehouse), connection_config={"memory_limit": settings.duckdb_memory}
    )
