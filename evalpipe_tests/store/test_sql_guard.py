"""A query shows the warehouse, not the machine, and its failure shows no value."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.meta import Provenance
from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.store.test_warehouse import part

VALUE = "a-value-of-a-log"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("machine-path")
    made = Warehouse(folder / "warehouse.duckdb")
    sessions = part(folder, "masked.sessions", {"session_id": VALUE})
    made.publish({"masked.sessions": [sessions]}, (), "f", Provenance("0"))
    return made


@pytest.mark.parametrize(
    "sql",
    [
        "FROM duckdb_settings()",
        'FROM "duckdb_settings"()',
        "FROM DuckDB_Settings ( )",
        "SELECT (SELECT value FROM duckdb_settings() LIMIT 1)",
        "FROM duckdb_databases",
        "FROM query('FROM duckdb_settings()')",
        "FROM query /* a comment */ ('FROM duckdb_databases()')",
        "FROM query_table('duckdb_databases')",
        "SELECT current_setting('home_directory')",
        "FROM pg_catalog.pg_settings",
        "FROM pragma_database_list",
    ],
)
def test_the_machine_is_not_shown(house: Warehouse, sql: str) -> None:
    with pytest.raises(EvalpipeError, match="SQL_REFUSED"):
        house.query(sql)


@pytest.mark.parametrize("sql", ["SELECT 'duckdb_settings' AS a", 'SELECT 1 AS "query" -- duckdb_settings'])
def test_a_text_or_a_comment_that_names_it_is_no_matter(house: Warehouse, sql: str) -> None:
    assert house.query(sql).height == 1


def test_no_table_function_or_view_shows_a_path(house: Warehouse) -> None:
    """Whatever a later DuckDB adds is found here."""
    with house.open_readonly() as connection:
        functions = connection.execute(
            "SELECT DISTINCT function_name || '()' FROM duckdb_functions() "
            "WHERE function_type = 'table' AND len(parameters) = 0"
        ).fetchall()
        views = connection.execute("SELECT schema_name || '.' || view_name FROM duckdb_views()").fetchall()
    names = sorted(name for (name,) in [*functions, *views])
    assert len(names) > 40
    for name in names:
        try:
            shown = str(house.query(f"FROM {name}").rows())
        except EvalpipeError:
            continue
        assert str(house.path.parent) not in shown, name
        assert str(Path.home()) + "/" not in shown, name


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(session_id AS INTEGER) FROM masked.sessions",
        "SELECT error(session_id) FROM masked.sessions",
        "SELECT regexp_matches('a', session_id || '(') FROM masked.sessions",
        "SELECT strptime(session_id, '%Y') FROM masked.sessions",
        "SELECT CAST('{' || session_id AS JSON) FROM masked.sessions",
        "SELECT session_id::DATE FROM masked.sessions",
    ],
)
def test_a_failure_quotes_no_value(house: Warehouse, sql: str) -> None:
    with pytest.raises(EvalpipeError, match="SQL_FAILED") as caught:
        house.query(sql)
    assert VALUE not in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("FROM masked.sesions", "masked.sessions"),
        ("FROM sessions", "masked.sessions"),
        ("SELECT sesion_id FROM masked.sessions", "session_id"),
        ("SELECT s.sesion_id FROM masked.sessions AS s", "session_id"),
    ],
)
def test_a_misspelt_name_brings_the_near_ones(house: Warehouse, sql: str, hint: str) -> None:
    with pytest.raises(EvalpipeError, match="SQL_FAILED") as caught:
        house.query(sql)
    assert hint in caught.value.fix


@pytest.mark.parametrize("size", ["lots", "1KB"])
def test_a_bad_memory_setting_is_named(house: Warehouse, size: str) -> None:
    with pytest.raises(EvalpipeError, match=r"SETTINGS_INVALID.*duckdb_memory"):
        Warehouse(house.path, memory_limit=size).query("SELECT 1")
