"""Dagster's history of a home, kept with one connection a database.

Belongs here: how this process reaches the SQLite files that Dagster keeps. Does not belong here: what is
written to them, which is Dagster's own; its server and its commands read and write the same files.

Dagster makes an engine and a connection for every event, and SQLite then waits for the disk at each one.
A night writes hundreds of events, and that was most of the time that a small home took. One connection is
kept here instead, and with a write-ahead log the disk is waited for at checkpoints: if the power fails, the
last lines of the history may be missing. Slices have receipts of their own and never ask the history.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as db
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._serdes import ConfigurableClassData

#: Seconds to wait for another process that writes, as Dagster does.
_BUSY_SECONDS = 30
#: Keys of ``dagster.yaml`` by which somebody chose another place for the history.
_OWN_CHOICE = ("storage:", "run_storage:", "event_log_storage:", "schedule_storage:", "instance_class:")


def open_instance(folder: Path) -> dg.DagsterInstance:
    """Dagster's instance of a home.

    Args:
        folder: Dagster's home, with ``dagster.yaml``.

    Returns:
        The instance. Where ``dagster.yaml`` names a storage, that one holds, untouched.
    """
    configured = (folder / "dagster.yaml").read_text("utf-8").splitlines()
    if any(line.startswith(_OWN_CHOICE) for line in configured):
        return dg.DagsterInstance.from_config(str(folder))
    history = folder / "history"
    overrides = {
        "run_storage": _storage(Runs.__name__, history),
        "event_log_storage": _storage(Events.__name__, history / "runs"),
    }
    return dg.DagsterInstance.local_temp(str(folder), overrides=overrides)


def _storage(name: str, folder: Path) -> dict[str, Any]:
    return {"module": __name__, "class": name, "config": {"base_dir": str(folder)}}


class Runs(SqliteRunStorage):
    """Dagster's table of runs."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engine = _engine(conn_string)
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Runs:
        """Dagster's form of a constructor; its own gives its own class."""
        return cls.from_local(inst_data=inst_data, **config_value)

    @contextmanager
    def connect(self) -> Iterator[db.Connection]:
        """One transaction."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def dispose(self) -> None:
        """Close what is open."""
        self._engine.dispose()
        super().dispose()


class Events(SqliteEventLogStorage):
    """Dagster's events: a database a run, and one index of them all."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        # Dagster's own constructor connects already.
        self._engines: dict[str, db.Engine] = {}
        self._columns: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Events:
        """Dagster's form of a constructor; its own gives its own class."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[db.Connection]:
        with self._db_lock, self._engine_of(shard).connect() as connection, connection.begin():
            yield connection

    def _engine_of(self, shard: str) -> db.Engine:
        # A database that was deleted is made anew, as Dagster makes it.
        is_known = (
            shard in self._engines and shard in self._initialized_dbs and Path(self.path_for_shard(shard)).exists()
        )
        if not is_known:
            # One run at a time is written; connections of those before it are not kept.
            for other in [name for name in self._engines if name == shard or name != INDEX_SHARD_NAME]:
                self._engines.pop(other).dispose()
            engine = _engine(self.conn_string_for_shard(shard))
            self._initdb(engine)
            self._initialized_dbs.add(shard)
            self._engines[shard] = engine
        return self._engines[shard]

    def _has_asset_key_col_on_connection(self, conn: db.Connection, column_name: str) -> bool:
        # A column that is there stays there; Dagster reads the schema anew for every event.
        if column_name not in self._columns and super()._has_asset_key_col_on_connection(conn, column_name):
            self._columns.add(column_name)
        return column_name in self._columns

    def dispose(self) -> None:
        """Close what is open."""
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()
        super().dispose()


def _engine(conn_string: str) -> db.Engine:
    """An engine whose connections are kept, one a thread that asks at once."""
    engine = db.create_engine(
        conn_string, pool_size=1, max_overflow=4,
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False},
    )  # fmt: skip

    @db.event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine
