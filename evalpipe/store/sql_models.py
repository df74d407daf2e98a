"""SQL models: one SELECT a file under ``dbt_like_sql/<layer>/``, each a table or view of the warehouse.

Belongs here: loading and checking the files, the order in which they run, and which columns a column
comes from. Does not belong here: the SQL itself, taking it apart (``store/sql_parse.py``), or running it on
data (``store/warehouse.py``).

A file begins with its header, in comments::

    -- description: One sentence.
    -- materialized: table
    -- column n_sessions: What the column says, on one line.

Everything else about a model is read from the SELECT: what it depends on (sqlglot), and the names and
types of its columns (DuckDB, on empty tables of the contracts, so that a model that cannot run is a
load error and not a failed night). That takes a second and forty megabytes in every process, so what
was read is kept beside the shipped files (``catalog.json``, ``make docs``) and holds as long as
neither they nor the tables nor DuckDB have changed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import duckdb_type
from evalpipe.contracts.tables import TABLES
from evalpipe.store import ddl, meta
from evalpipe.store.manifest import digest_of

#: Output column to the (table, column) pairs directly upstream.
Lineage = dict[str, list[tuple[str, str]]]
#: What reading the models of a folder gave.
CATALOG = "catalog.json"
#: Version of what is read from a file and how; catalogs of another are passed over.
_CATALOG_VERSION = 1
_HEADER = re.compile(r"--\s*(?:(?P<key>description|materialized)|column\s+(?P<column>\w+))\s*:\s*(?P<value>.*)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ModelColumn:
    """One output column: its DuckDB type, and the comment of the file's header (or empty)."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True)
class SqlModel:
    """One SQL model.

    Attributes:
        name: Full name, such as ``analysis.leaderboard``: folder and file.
        path: The file.
        description: One sentence, from the header.
        is_table: Whether it is stored; a view otherwise.
        sql: The SELECT, as written.
        depends_on: Full names of the tables and models that it reads, sorted.
        columns: Output columns in order.
        sources: Its lineage where that is known already.
    """

    name: str
    path: Path
    description: str
    is_table: bool
    sql: str
    depends_on: tuple[str, ...]
    columns: tuple[ModelColumn, ...] = ()
    sources: Lineage | None = field(default=None, compare=False, repr=False)

    @property
    def layer(self) -> str:
        """Schema that holds the model."""
        return self.name.split(".")[0]

    @property
    def digest(self) -> str:
        """Digest of all that decides the model's rows and comments."""
        comments = [[c.name, c.comment] for c in self.columns]
        return digest_of([self.name, self.description, self.is_table, self.sql, comments])


def load_models(directory: Path) -> list[SqlModel]:
    """Load every model under a folder and check it against the contracts.

    Args:
        directory: Folder of ``<layer>/<name>.sql`` files, such as :func:`evalpipe.locations.sql_dir`.

    Returns:
        The models in an order in which they can run; ties by name.

    Raises:
        EvalpipeError: ``SQL_MODEL_INVALID`` naming the file: no description, not one SELECT, a table
            that is not published or not qualified, a name that a contract has, a reserved word as a
            column, a comment on a column that does not exist, a cycle, or SQL that cannot be bound.
    """
    texts = _texts(directory)
    try:
        document = json.loads((directory / CATALOG).read_text("utf-8"))
        if document["stamp"] == _stamp(texts):
            return [_from_catalog(directory, row) for row in document["models"]]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or one that was cut or merged badly: the files say it all, a second later
    return list(_load(texts))


def write_catalog(directory: Path) -> None:
    """Write down what reading the models of a folder gives, for :func:`load_models`."""
    texts = _texts(directory)
    models = _load(texts)
    rows = [
        {
            "name": model.name,
            "description": model.description,
            "is_table": model.is_table,
            "sql": model.sql,
            "depends_on": model.depends_on,
            "columns": [[c.name, c.type, c.comment] for c in model.columns],
            "sources": lineage(model, models),
        }
        for model in models
    ]
    document = {"stamp": _stamp(texts), "models": rows}
    (directory / CATALOG).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _texts(directory: Path) -> tuple[tuple[Path, str], ...]:
    return tuple((path, path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*/*.sql")))


def _stamp(texts: tuple[tuple[Path, str], ...]) -> str:
    files = [[path.parent.name, path.name, text] for path, text in texts]
    return digest_of(
        [files, {name: dict(columns) for name, columns in _contract_columns().items()}, duckdb.__version__]
    )


def _from_catalog(directory: Path, row: Mapping[str, Any]) -> SqlModel:
    layer, name = row["name"].split(".")
    return SqlModel(
        row["name"],
        directory / layer / f"{name}.sql",
        row["description"],
        row["is_table"],
        row["sql"],
        tuple(row["depends_on"]),
        tuple(ModelColumn(*column) for column in row["columns"]),
        {column: [(table, source) for table, source in pairs] for column, pairs in row["sources"].items()},
    )


@lru_cache(maxsize=8)
def _load(texts: tuple[tuple[Path, str], ...]) -> tuple[SqlModel, ...]:
    parsed = [_parse(path, text) for path, text in texts]
    known = _contract_columns().keys() | {model.name for model in parsed}
    for model in parsed:
        for name in model.depends_on:
            if name not in known:
                raise _invalid(model.path, f"there is no published table or model {name}")
    return tuple(_bound(in_order(parsed)))


def in_order(models: Iterable[SqlModel]) -> list[SqlModel]:
    """The models so that each stands behind those that it reads; ties by name.

    Raises:
        EvalpipeError: ``SQL_MODEL_INVALID`` naming the files of a cycle.
    """
    by_name = {model.name: model for model in sorted(models, key=lambda m: m.name)}
    graph = TopologicalSorter({n: [d for d in m.depends_on if d in by_name] for n, m in by_name.items()})
    try:
        graph.prepare()
    except CycleError as error:
        names = " -> ".join(error.args[1])
        raise _invalid(by_name[error.args[1][0]].path, f"models read each other in a circle: {names}") from None
    order: list[SqlModel] = []
    while graph.is_active():
        ready = sorted(graph.get_ready())
        order += [by_name[name] for name in ready]
        graph.done(*ready)
    return order


def lineage(model: SqlModel, models: Sequence[SqlModel]) -> Lineage:
    """Which columns each column of a model comes from; found once a process.

    Args:
        model: The model.
        models: All models, since a model may read another.

    Returns:
        For each output column the (table, column) pairs directly upstream, sorted: a table is a
        contract's or another model's full name. A count of rows comes from no column.
    """
    return _lineage(model, tuple(models)) if model.sources is None else model.sources


@lru_cache(maxsize=256)
def _lineage(model: SqlModel, models: tuple[SqlModel, ...]) -> Lineage:
    from evalpipe.store import sql_parse

    schema: dict[str, dict[str, dict[str, str]]] = {}
    known = {**_contract_columns(), **{m.name: {c.name: c.type for c in m.columns} for m in models}}
    for name, columns in known.items():
        layer, table = name.split(".")
        schema.setdefault(layer, {})[table] = dict(columns)
    return sql_parse.lineage(model.sql, [column.name for column in model.columns], schema)


def _invalid(path: Path, what: str) -> EvalpipeError:
    return EvalpipeError("SQL_MODEL_INVALID", f"{what}.", where=f"{path.parent.name}/{path.name}")


def _parse(path: Path, text: str) -> SqlModel:
    name = f"{path.parent.name}.{path.stem}"
    if not _NAME.fullmatch(path.stem):
        raise _invalid(path, "the file's name is not a lower-case SQL name")
    if name in TABLES:
        raise _invalid(path, f"{name} is a table of the contracts")
    header, comments = _header(text)
    if not header.get("description"):
        raise _invalid(path, "the header has no description")
    materialized = header.get("materialized", "view")
    if materialized not in ("table", "view"):
        raise _invalid(path, f"materialized is {materialized}, not table or view")
    # Not above: most processes find everything in the catalog and never take SQL apart.
    from evalpipe.store import sql_parse

    try:
        depends_on = sql_parse.tables(text)
    except sql_parse.RefusedError as error:
        raise _invalid(path, str(error)) from None
    # Columns are filled by _bound; until then they carry the header's comments.
    columns = tuple(ModelColumn(column, "", comment) for column, comment in comments.items())
    statement = text.strip().rstrip(";").rstrip()
    is_table = materialized == "table"
    return SqlModel(name, path, header["description"], is_table, statement, depends_on, columns)


def _header(text: str) -> tuple[dict[str, str], dict[str, str]]:
    header: dict[str, str] = {}
    comments: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if found := _HEADER.fullmatch(line.strip()):
            target, key = (comments, found["column"]) if found["column"] else (header, found["key"])
            target[key] = found["value"].strip()
    return header, comments


@cache
def _contract_columns() -> Mapping[str, Mapping[str, str]]:
    """Columns and types of everything that a model may read, other models aside."""
    out: dict[str, Mapping[str, str]] = {
        table.full_name: {c.name: duckdb_type(c) for c in ddl.published_columns(table)}
        for table in ddl.published_tables()
    }
    out |= {f"meta.{name}": {c: dtype for c, dtype, _ in columns} for name, columns in meta.TABLES.items()}
    return out


def _bound(models: Sequence[SqlModel]) -> list[SqlModel]:
    """Fill in columns by creating every model on empty tables."""
    out: list[SqlModel] = []
    with closing(duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})) as connection:
        connection.execute("SET enable_external_access = false")
        for layer in sorted({name.split(".")[0] for name in [*_contract_columns(), *(m.name for m in models)]}):
            connection.execute(f"CREATE SCHEMA {ddl.quoted(layer)}")
        for table in ddl.published_tables():
            connection.execute(ddl.create_table(table))
        meta.create(connection)
        words = connection.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
        reserved = {row[0] for row in words.fetchall()}
        for model in models:
            try:
                connection.execute(f"CREATE VIEW {ddl.dotted(model.name)} AS {model.sql}")
                rows = connection.execute(f"DESCRIBE {ddl.dotted(model.name)}").fetchall()
            except duckdb.Error as error:
                # Safe to show: the tables are empty, so the message speaks of the statement only.
                what = " ".join(str(error).split("\n\n")[0].split())
                raise _invalid(model.path, what) from None
            out.append(_with_columns(model, [(row[0], row[1]) for row in rows], reserved))
    return out


def _with_columns(model: SqlModel, found: Sequence[tuple[str, str]], reserved: set[str]) -> SqlModel:
    names = [name for name, _ in found]
    for name in names:
        if name.lower() in reserved:
            raise _invalid(model.path, f"column {name} is a reserved word of SQL")
        if not _NAME.fullmatch(name):
            raise _invalid(model.path, f"column {name} has no lower-case SQL name; give it an alias")
    comments = {column.name: column.comment for column in model.columns}
    for name in comments:
        if name not in names:
            raise _invalid(model.path, f"the header comments on column {name}, which the SELECT does not give")
    columns = tuple(ModelColumn(name, dtype, comments.get(name, "")) for name, dtype in found)
    return replace(model, columns=columns)


if __name__ == "__main__":
    write_catalog(Path(sys.argv[1]))
