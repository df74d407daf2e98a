"""SQL models: one SELECT a file under ``dbt_like_sql/<layer>/``, each a table or view of the warehouse.

Belongs here: loading and checking the files, the order in which they run, and which columns a column
comes from. Does not belong here: the SQL itself, or running it on data (``store/warehouse.py``).

A file begins with its header, in comments::

    -- description: One sentence.
    -- materialized: table
    -- column n_sessions: What the column says, on one line.

Everything else about a model is read from the SELECT: what it depends on (sqlglot), and the names and
types of its columns (DuckDB, on empty tables of the contracts, so that a model that cannot run is a
load error and not a failed night).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot import lineage as sqlglot_lineage
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import duckdb_type
from evalpipe.contracts.tables import TABLES
from evalpipe.store import ddl, meta
from evalpipe.store.manifest import digest_of

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
    """

    name: str
    path: Path
    description: str
    is_table: bool
    sql: str
    depends_on: tuple[str, ...]
    columns: tuple[ModelColumn, ...] = ()

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
    paths = sorted(directory.glob("*/*.sql"))
    return list(_load(tuple((path, path.read_text(encoding="utf-8")) for path in paths)))


@lru_cache(maxsize=8)
def _load(texts: tuple[tuple[Path, str], ...]) -> tuple[SqlModel, ...]:
    # Parsing and binding all of them takes half a second, and every publish asks for them.
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


def lineage(model: SqlModel, models: Sequence[SqlModel]) -> dict[str, list[tuple[str, str]]]:
    """Which columns each column of a model comes from; found once a process.

    Args:
        model: The model.
        models: All models, since a model may read another.

    Returns:
        For each output column the (table, column) pairs directly upstream, sorted: a table is a
        contract's or another model's full name. A count of rows comes from no column.
    """
    return _lineage(model, tuple(models))


@lru_cache(maxsize=256)
def _lineage(model: SqlModel, models: tuple[SqlModel, ...]) -> dict[str, list[tuple[str, str]]]:
    schema: dict[str, dict[str, dict[str, str]]] = {}
    known = {**_contract_columns(), **{m.name: {c.name: c.type for c in m.columns} for m in models}}
    for name, columns in known.items():
        layer, table = name.split(".")
        schema.setdefault(layer, {})[table] = dict(columns)
    nodes = sqlglot_lineage.lineage(None, model.sql, schema=schema, dialect="duckdb")
    if isinstance(nodes, sqlglot_lineage.Node):
        raise TypeError("sqlglot gave one node where a mapping was asked for")
    return {column.name: _leaves(nodes[column.name]) for column in model.columns}


def _leaves(root: sqlglot_lineage.Node) -> list[tuple[str, str]]:
    out: set[tuple[str, str]] = set()
    for node in root.walk():
        if isinstance(node.source, exp.Table) and not node.downstream:
            table = f"{node.source.db}.{node.source.name}"
            column = exp.to_column(node.name).name
            if column != "*":
                out.add((table, column))
    return sorted(out)


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
    query = _one_select(path, text)
    # Columns are filled by _bound; until then they carry the header's comments.
    columns = tuple(ModelColumn(column, "", comment) for column, comment in comments.items())
    statement = text.strip().rstrip(";").rstrip()
    is_table = materialized == "table"
    return SqlModel(name, path, header["description"], is_table, statement, _tables(path, query), columns)


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


def _one_select(path: Path, text: str) -> exp.Query:
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect="duckdb") if statement is not None]
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise _invalid(path, f"it cannot be parsed: {first}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise _invalid(path, "it is not one SELECT")
    return statements[0]


def _tables(path: Path, query: exp.Query) -> tuple[str, ...]:
    found: set[str] = set()
    for scope in traverse_scope(query):
        for table in scope.tables:
            if not table.db and table.name in scope.cte_sources:
                continue
            if not isinstance(table.this, exp.Identifier):
                raise _invalid(path, "it reads a table function; models read tables of the warehouse only")
            if not table.db or table.catalog:
                raise _invalid(path, f"{table.name} is not named as layer.table")
            found.add(f"{table.db}.{table.name}")
    return tuple(sorted(found))


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
