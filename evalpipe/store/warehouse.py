"""The warehouse: one DuckDB file, derived from the lake, replaced whole and never written in place.

Belongs here: building the file aside under a lock, swapping it in, and knowing what is published.
Does not belong here: what a table looks like (``store/ddl.py``), SQL models (``store/sql_models.py``),
reading (``store/readonly.py``), or which parts are current (manifests of the lake).

A DuckDB file has one writing process at a time, and a writer shuts readers out. So no one writes the
published file: a build goes to a draft beside it and is renamed over it. A reader keeps the version
that it opened, a killed builder leaves the old version, and the lock falls with the process.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import duckdb
import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Table
from evalpipe.contracts.tables import TABLES
from evalpipe.store import ddl, meta, readonly
from evalpipe.store.files import locked, move_durably
from evalpipe.store.manifest import digest_of
from evalpipe.store.meta import Provenance
from evalpipe.store.sql_models import SqlModel, in_order

#: The oldest DuckDB that can read a published file; 2.x would otherwise write what 1.5 cannot open.
STORAGE_VERSION = "v1.5.0"


class Connect(Protocol):
    """What opens a DuckDB file for a build; ``duckdb.connect`` is one."""

    def __call__(self, database: str, *, config: readonly.Settings) -> duckdb.DuckDBPyConnection:
        """Open ``database`` with these settings."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What the published file says of itself: ``build`` covers all that it was made from."""

    fingerprint: str
    build: str
    tables: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Outcome of one publish.

    Attributes:
        skipped: True if the same build was published already; nothing was written then.
        tables: Rows of every table and of every SQL model, by full name.
        rows: Rows of contract tables together.
        seconds: Time taken, waiting for the lock included.
    """

    skipped: bool
    tables: Mapping[str, int]
    rows: int
    seconds: float


@dataclass(frozen=True)
class Warehouse:
    """The warehouse at ``path``, such as ``<home>/warehouse.duckdb``.

    Args:
        path: The published file. Its lock (``warehouse.lock``) and draft lie beside it.
        memory_limit: DuckDB's memory limit for a build and for a reader.
        threads: Threads of a build and of a reader.
    """

    path: Path
    memory_limit: str = "512MB"
    threads: int = 2

    @property
    def draft(self) -> Path:
        """The file that a build writes; only the holder of the lock touches it."""
        return self.path.with_name(f"{self.path.stem}.draft.duckdb")

    def publish(
        self,
        sources: Mapping[str, Sequence[Path]],
        models: Sequence[SqlModel],
        fingerprint: str,
        provenance: Provenance,
        *,
        connect: Connect = duckdb.connect,
    ) -> PublishResult:
        """Build the warehouse and swap it in, unless the same build is published already.

        Args:
            sources: Parquet parts of each table, by full contract name; a table that is not named
                is published empty.
            models: SQL models, run inside the build in dependency order.
            fingerprint: Digest of the manifests that ``sources`` comes from.
            provenance: What ``meta.*`` says of the file; part of what decides a skip.
            connect: Opens the draft; given by an orchestrator that carries connection settings.

        Returns:
            What was published, or that it was there already.

        Raises:
            EvalpipeError: ``CONTRACT_BROKEN`` for a table that may not be published or a part that
                does not have its columns; ``SQL_MODEL_INVALID`` for a model that cannot be run.
        """
        begun = time.monotonic()
        tables = ddl.published_tables()
        _only_published(sources, tables)
        build = _build_digest(tables, models, fingerprint, provenance)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_name(f"{self.path.stem}.lock")):
            published = self.published()
            skipped = published is not None and published.build == build
            if published is None or not skipped:
                self._discard_draft()  # what a killed builder left behind
                try:
                    counts = self._build(sources, tables, models, connect, (fingerprint, build, provenance))
                    move_durably([(self.draft, self.path)])
                finally:
                    self._discard_draft()
            else:
                counts = dict(published.tables)
        rows = sum(n for name, n in counts.items() if name in TABLES)
        return PublishResult(skipped, counts, rows, time.monotonic() - begun)

    def published(self) -> Publication | None:
        """What is published, or ``None`` if there is no file that this version of evalpipe made.

        The file is derived: one that cannot be read is as good as none, and is built anew.
        """
        try:
            with self.open_readonly() as connection:
                head = connection.execute("SELECT fingerprint, build FROM meta.publication").fetchone()
                counts = connection.execute("SELECT table_name, n_rows FROM meta.contents ORDER BY 1").fetchall()
        except (EvalpipeError, duckdb.Error):
            return None
        return None if head is None else Publication(head[0], head[1], dict(counts))

    @contextmanager
    def open_readonly(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own to the published file, read-only, closed on leaving.

        It never waits for a builder and keeps the version that it opened. It cannot reach any other
        file, nor change its own settings.

        Raises:
            EvalpipeError: ``NO_WAREHOUSE``.
        """
        with closing(readonly.connect(self.path, self.memory_limit, self.threads)) as connection:
            yield connection

    def query(self, sql: str, limit: int | None = None) -> pl.DataFrame:
        """Run one read-only statement on the published file.

        Args:
            sql: One SELECT, or what DuckDB treats as one: WITH, FROM, VALUES, PIVOT, SHOW, DESCRIBE,
                SUMMARIZE, EXPLAIN.
            limit: At most so many rows.

        Returns:
            The result; repeated column names are numbered, intervals are text.

        Raises:
            EvalpipeError: ``NO_WAREHOUSE``, ``SQL_REFUSED`` or ``SQL_FAILED``.
        """
        with self.open_readonly() as connection:
            return readonly.run(connection, sql, limit)

    def _build(
        self,
        sources: Mapping[str, Sequence[Path]],
        tables: Sequence[Table],
        models: Sequence[SqlModel],
        connect: Connect,
        made_from: tuple[str, str, Provenance],
    ) -> dict[str, int]:
        config: readonly.Settings = {
            "storage_compatibility_version": STORAGE_VERSION,
            "autoinstall_known_extensions": "false",
            "memory_limit": self.memory_limit,
            "threads": str(self.threads),
        }
        with closing(connect(str(self.draft), config=config)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            _create(connection, tables, models)
            counts = {t.full_name: _load(connection, t, sources.get(t.full_name, ())) for t in tables}
            # The sum of a column of floats depends on the order in which threads add it.
            connection.execute("SET threads = 1")
            fingerprint, build, provenance = made_from
            meta.write(connection, fingerprint, build, provenance)
            for model in in_order(models):
                counts[model.name] = _run_model(connection, model)
            connection.executemany("INSERT INTO meta.contents VALUES (?, ?)", sorted(counts.items()))
            connection.execute("CHECKPOINT")
        return counts

    def _discard_draft(self) -> None:
        for left in self.path.parent.glob(f"{self.draft.name}*"):  # with .wal and the spill folder .tmp
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()


def _only_published(sources: Mapping[str, Sequence[Path]], tables: Sequence[Table]) -> None:
    known = {t.full_name for t in tables}
    for name in sources:
        if name not in known:
            what = "the table is not published" if name in TABLES else "there is no contract of that name"
            raise EvalpipeError("CONTRACT_BROKEN", what, where=name)


def _build_digest(tables: Sequence[Table], models: Sequence[SqlModel], fingerprint: str, provenance: Provenance) -> str:
    shape = [[ddl.create_table(t), ddl.insert_parts(t), ddl.table_comments(t)] for t in tables]
    return digest_of([STORAGE_VERSION, fingerprint, shape, sorted(m.digest for m in models), asdict(provenance)])


def _create(connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], models: Sequence[SqlModel]) -> None:
    connection.begin()  # some hundred statements: a commit each would take longer than the rest
    for layer in dict.fromkeys(["meta", *(t.layer for t in tables), *(m.layer for m in models)]):
        connection.execute(f"CREATE SCHEMA {ddl.quoted(layer)}")
    for table in tables:
        for statement in (ddl.create_table(table), *ddl.table_comments(table)):
            connection.execute(statement)
    connection.commit()


def _load(connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[Path]) -> int:
    if parts:
        try:
            _insert(connection, table, parts)
        except duckdb.Error as error:
            # DuckDB's message may quote a value, so it goes no further.
            raise _bad_part(table, parts, type(error).__name__) from None
    return _count(connection, table.full_name)


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[Path]) -> None:
    try:
        connection.execute(ddl.insert_parts(table), [[str(part) for part in parts]])
    except duckdb.Error:
        # Some part lacks a column. Footers are looked at then only: a home has thousands of parts.
        groups: dict[frozenset[str], list[str]] = defaultdict(list)
        for part in parts:
            try:
                later = render.later_columns(table, pl.read_parquet_schema(part))
            except (OSError, pl.exceptions.PolarsError):
                raise _bad_part(table, parts, "IOException") from None
            groups[frozenset(later)].append(str(part))
        if set(groups) == {frozenset()}:
            raise
        connection.execute(ddl.insert_parts(table, list(groups)), list(groups.values()))


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {ddl.dotted(name)}").fetchone()
    return int(row[0]) if row else 0


def _bad_part(table: Table, parts: Sequence[Path], kind: str) -> EvalpipeError:
    """Name the first part that is at fault, once a load has failed."""
    fix = "Recompute the slice: evalpipe backfill A..B"
    for part in parts:
        try:
            names = pl.read_parquet_schema(part)
        except (OSError, pl.exceptions.PolarsError):
            what = "a part of the table is missing or not Parquet"
            return EvalpipeError("CONTRACT_BROKEN", what, where=f"{table.full_name}: {part}", fix=fix)
        for column in ddl.published_columns(table):
            if column.name not in names:
                where = f"{table.full_name}.{column.name}: {part}"
                return EvalpipeError("CONTRACT_BROKEN", "a part lacks the column", where=where, fix=fix)
    return EvalpipeError("CONTRACT_BROKEN", f"its parts cannot be loaded ({kind})", where=table.full_name, fix=fix)


def _run_model(connection: duckdb.DuckDBPyConnection, model: SqlModel) -> int:
    kind = "TABLE" if model.is_table else "VIEW"
    try:
        connection.execute(f"CREATE {kind} {ddl.dotted(model.name)} AS {model.sql}")
        connection.execute(ddl.comment_on(kind, model.name, model.description))
        for column in model.columns:
            if column.comment:
                connection.execute(ddl.comment_on("COLUMN", f"{model.name}.{column.name}", column.comment))
        return _count(connection, model.name)
    except duckdb.Error as error:
        what = f"the model cannot be run ({type(error).__name__})"
        raise EvalpipeError("SQL_MODEL_INVALID", what, where=model.path.name) from None
