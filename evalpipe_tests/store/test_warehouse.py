"""The warehouse: what it carries, that it is swapped whole, and that reading cannot change anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Column, Kind, Sensitivity, Table
from evalpipe.contracts.render import frame, polars_schema
from evalpipe.contracts.tables import ALL, TABLES
from evalpipe.locations import sql_dir
from evalpipe.store import ddl
from evalpipe.store.meta import CriteriaRow, Provenance
from evalpipe.store.sql_models import load_models
from evalpipe.store.warehouse import Warehouse

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SAMPLE = {
    Kind.STR: "x",
    Kind.BOOL: False,
    Kind.I32: 0,
    Kind.I64: 0,
    Kind.F64: 0.0,
    Kind.DATE: date(2026, 1, 5),
    Kind.TIMESTAMP: NOON,
    Kind.STR_LIST: [],
}
CRITERIA = CriteriaRow("default", "1.0", "c0ffee", "m1", "positive_outcome")
PROVENANCE = Provenance("0.1.0", (CRITERIA,), {"raw/day=2026-01-05": "d1"})


def rows(table: str, *given: dict[str, object]) -> pl.DataFrame:
    """Rows of a contract with a legal value in every column that may not be null."""
    base = {c.name: (c.values[0] if c.values else SAMPLE[c.kind]) for c in TABLES[table] if not c.nullable}
    return frame(TABLES[table], [base | row for row in given])


def part(folder: Path, table: str, *given: dict[str, object], name: str = "p") -> Path:
    path = folder / table / "day=2026-01-05" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows(table, *given).write_parquet(path)
    return path


@pytest.fixture
def house(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "home" / "warehouse.duckdb")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """One warehouse of two sessions for the tests that only read."""
    folder = tmp_path_factory.mktemp("published")
    house = Warehouse(folder / "warehouse.duckdb")
    house.publish(sessions(folder, "s1", "s2"), (), "f", PROVENANCE)
    return house


def sessions(tmp_path: Path, *ids: str, name: str = "p") -> dict[str, list[Path]]:
    return {"masked.sessions": [part(tmp_path, "masked.sessions", *({"session_id": i} for i in ids), name=name)]}


def test_every_published_table_is_there_typed_and_commented_even_without_parts(house: Warehouse) -> None:
    house.publish({}, (), "f", PROVENANCE)
    found = house.query(
        "SELECT schema_name || '.' || table_name AS t, column_name, data_type, is_nullable, comment "
        "FROM duckdb_columns() WHERE database_name = 'warehouse' AND schema_name <> 'meta' ORDER BY t, column_index"
    )
    expected = [t for t in ALL if t.layer != "raw" and t.is_published]
    assert set(found["t"]) == {t.full_name for t in expected}
    for table in expected:
        own = found.filter(pl.col("t") == table.full_name)
        published = [c for c in table if c.is_published]
        assert own["column_name"].to_list() == [c.name for c in published]
        assert own["is_nullable"].to_list() == [c.nullable for c in published]
        assert own["comment"].to_list() == [c.meaning for c in published]
        empty = house.query(f"SELECT * FROM {table.full_name}")
        assert empty.schema == pl.Schema({c.name: polars_schema(table)[c.name] for c in published})
    comments = house.query("SELECT comment FROM duckdb_tables() WHERE table_name = 'hard'")
    assert comments.item() == f"{TABLES['signals.hard'].meaning} Grain: {TABLES['signals.hard'].grain}."


def test_no_raw_table_no_restricted_column_and_no_text_of_steps(house: Warehouse, tmp_path: Path) -> None:
    steps = part(tmp_path, "masked.steps", {"session_id": "s", "text": "words", "arguments": "{}", "output": "words"})
    house.publish({"masked.steps": [steps]}, (), "f", PROVENANCE)
    columns = house.query("SELECT table_name, column_name, schema_name FROM duckdb_columns() WHERE NOT internal")
    assert "raw" not in columns["schema_name"]
    assert not {"text", "arguments", "output"} & set(columns.filter(table_name="steps")["column_name"])
    assert not {"source_file", "content_digest"} & set(columns["column_name"])
    assert b"words" not in house.path.read_bytes()
    with pytest.raises(EvalpipeError, match=r"raw\.sessions.*not published"):
        house.publish({"raw.sessions": []}, (), "g", PROVENANCE)
    with pytest.raises(EvalpipeError, match=r"no contract"):
        house.publish({"signals.nothing": []}, (), "g", PROVENANCE)


def test_a_restricted_column_is_left_out_even_if_it_is_marked_published() -> None:
    columns = (Column("a", Kind.STR, "A."), Column("path", Kind.STR, "A path.", sensitivity=Sensitivity.RESTRICTED))
    table = Table("masked", "t", "a row", "T.", columns, sort=("path", "a"))
    assert [c.name for c in ddl.published_columns(table)] == ["a"]
    assert ddl.create_table(table) == 'CREATE TABLE "masked"."t" ("a" VARCHAR)'
    assert "path" not in ddl.insert_parts(table)
    everything = (table, Table("raw", "t", "a row", "T.", columns), Table("masked", "u", "a row", "U.", columns[1:]))
    assert ddl.published_tables(everything) == (table,)


def test_a_column_named_like_the_folder_is_read_from_the_file(house: Warehouse, tmp_path: Path) -> None:
    day = date(2026, 2, 1)  # the folder says day=2026-01-05
    path = part(tmp_path, "signals.session_outcomes", {"session_id": "s", "day": day, "end_status": "open"})
    house.publish({"signals.session_outcomes": [path]}, (), "f", PROVENANCE)
    assert house.query("SELECT day FROM signals.session_outcomes").item() == day


def test_rows_do_not_depend_on_the_order_of_parts_nor_on_threads(house: Warehouse, tmp_path: Path) -> None:
    same_key = [
        {"source": "a", "field": "f", "entity": "e", "subtype": "", "rule_id": "r", "n_hits": n} for n in range(2000)
    ]
    parts = [
        part(tmp_path, "masked.redactions", *same_key[:1000], name="one"),
        part(tmp_path, "masked.redactions", *same_key[1000:], name="two"),
    ]
    seen = []
    for number, order in enumerate((parts, parts[::-1])):
        result = house.publish({"masked.redactions": order}, (), f"f{number}", PROVENANCE)
        assert not result.skipped
        seen.append(house.query("SELECT * FROM masked.redactions"))
    assert seen[0].equals(seen[1])
    assert seen[0]["n_hits"].to_list() == list(range(2000))


def test_a_publish_is_skipped_only_if_nothing_changed(house: Warehouse, tmp_path: Path) -> None:
    models = load_models(sql_dir())
    sources = sessions(tmp_path, "s1", "s2")
    first = house.publish(sources, models, "f", PROVENANCE)
    inode = house.path.stat().st_ino
    again = house.publish(sources, models, "f", PROVENANCE)
    assert (first.skipped, again.skipped) == (False, True)
    assert house.path.stat().st_ino == inode
    assert first.rows == again.rows == 2
    assert first.tables == again.tables
    assert first.tables["analysis.daily_activity"] == 1
    assert not house.publish(sources, models, "g", PROVENANCE).skipped
    assert not house.publish(sources, models[1:], "g", PROVENANCE).skipped
    assert not house.publish(sources, models[1:], "g", Provenance("0.2.0", (CRITERIA,))).skipped
    published = house.published()
    assert published is not None
    assert published.fingerprint == "g"


def test_meta_says_what_the_file_was_made_from(house: Warehouse) -> None:
    house.publish({}, (), "f", PROVENANCE)
    assert house.query("SELECT fingerprint, product_version FROM meta.publication").row(0) == ("f", "0.1.0")
    assert house.query("SELECT * FROM meta.criteria").row(0) == ("default", "1.0", "c0ffee", "m1", "positive_outcome")
    assert house.query("SELECT * FROM meta.manifests").row(0) == ("raw/day=2026-01-05", "d1")


def test_a_file_that_is_not_a_warehouse_is_built_anew(house: Warehouse) -> None:
    house.path.parent.mkdir(parents=True)
    house.path.write_bytes(b"not a database")
    with pytest.raises(EvalpipeError, match="NO_WAREHOUSE"):
        house.query("SELECT 1")
    assert not house.publish({}, (), "f", PROVENANCE).skipped
    assert house.query("SELECT count(*) FROM meta.publication").item() == 1


def test_a_part_at_fault_is_named_and_the_old_file_stays(house: Warehouse, tmp_path: Path) -> None:
    good = sessions(tmp_path, "s1")
    house.publish(good, (), "f", PROVENANCE)
    lacking = tmp_path / "lacking.parquet"
    rows("masked.sessions", {"session_id": "s2"}).drop("agent").write_parquet(lacking)
    nulls = tmp_path / "nulls.parquet"
    rows("masked.sessions", {"session_id": "s3", "agent": None}).write_parquet(nulls)
    faults = {
        lacking: r"masked\.sessions\.agent: .*lacking",
        tmp_path / "absent.parquet": "missing or not Parquet",
        nulls: "ConstraintException",
    }
    for path, message in faults.items():
        with pytest.raises(EvalpipeError, match=message) as caught:
            house.publish({"masked.sessions": [*good["masked.sessions"], path]}, (), path.name, PROVENANCE)
        assert caught.value.code == "CONTRACT_BROKEN"
        assert not house.draft.exists()
    assert house.query("SELECT session_id FROM masked.sessions").item() == "s1"


@pytest.mark.parametrize("is_first", [True, False])
def test_parts_that_are_older_than_a_column_know_nothing_of_it(
    house: Warehouse, tmp_path: Path, is_first: bool
) -> None:
    old = tmp_path / "old.parquet"
    rows("masked.sessions", {"session_id": "s2"}).drop("workspace", "trial").write_parquet(old)
    new = sessions(tmp_path, "s1")["masked.sessions"]
    house.publish({"masked.sessions": [old, *new] if is_first else [*new, old]}, (), "f", PROVENANCE)
    found = house.query("SELECT session_id, workspace IS NULL AND trial IS NULL FROM masked.sessions ORDER BY 1")
    assert found.rows()[1] == ("s2", True)


def test_a_reader_keeps_its_version_and_the_next_sees_the_new(house: Warehouse, tmp_path: Path) -> None:
    count = "SELECT count(*) FROM masked.sessions"
    house.publish(sessions(tmp_path, "s1"), (), "f", PROVENANCE)
    with house.open_readonly() as old:
        assert old.execute(count).fetchone() == (1,)
        house.publish(sessions(tmp_path, "s1", "s2", "s3", name="q"), (), "g", PROVENANCE)
        with house.open_readonly() as new:
            assert new.execute(count).fetchone() == (3,)
        assert old.execute(count).fetchone() == (1,)
    assert house.query(count).item() == 3


def test_the_file_can_be_read_by_duckdb_1_5(house: Warehouse) -> None:
    house.publish({}, (), "f", PROVENANCE)
    # Bytes 12 to 20 of the header are the storage version; 68 is the newest that 1.5 reads.
    assert int.from_bytes(house.path.read_bytes()[12:20], "little") <= 68


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT session_id FROM masked.sessions",
        "WITH a AS (SELECT 1 AS b) SELECT * FROM a",
        "FROM masked.sessions",
        "VALUES (1)",
        "SHOW ALL TABLES",
        "DESCRIBE masked.sessions",
        "SUMMARIZE masked.sessions",
        "EXPLAIN SELECT 1",
        "PIVOT masked.sessions ON source USING count(*)",
        "SELECT 'é;' AS a; -- one statement, and a comment",
        "/* one */ SELECT 1 -- ; two",
    ],
)
def test_reading_statements_run(published: Warehouse, sql: str) -> None:
    assert published.query(sql).height >= 1


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT 1; SELECT 2",
        "INSERT INTO masked.sessions SELECT * FROM masked.sessions",
        "DELETE FROM masked.sessions",
        "CREATE TABLE memory.main.t (a INTEGER)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "COPY (SELECT 1) TO '{file}'",
        "ATTACH '{file}'",
        "SET threads = 1",
        "USE memory",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "INSTALL httpfs",
        "LOAD httpfs",
        "EXPORT DATABASE '{file}'",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM glob('{file}')",
        "WITH a AS (SELECT * FROM read_blob('{file}')) SELECT * FROM a",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
    ],
)
def test_anything_else_is_refused(published: Warehouse, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nhidden\n")
    with pytest.raises(EvalpipeError, match="SQL_REFUSED") as caught:
        published.query(sql.format(file=secret))
    assert "hidden" not in str(caught.value)
    assert secret.read_text() == "a\nhidden\n"


def test_the_file_itself_refuses_what_slips_past_the_parser(published: Warehouse) -> None:
    for sql in ("EXPLAIN ANALYZE DELETE FROM masked.sessions", "EXPLAIN ANALYZE DROP TABLE masked.sessions"):
        with pytest.raises(EvalpipeError, match=r"SQL_FAILED.*read-only"):
            published.query(sql)
    with published.open_readonly() as connection, pytest.raises(duckdb.InvalidInputException, match="locked"):
        connection.execute("SET enable_external_access = true")
    assert published.query("SELECT count(*) FROM masked.sessions").item() == 2


def test_a_query_does_not_see_python_variables_or_other_files(published: Warehouse, tmp_path: Path) -> None:
    mine = pl.DataFrame({"a": [1]})
    assert mine.height == 1
    (tmp_path / "x.csv").write_text("a\nhidden\n")
    with pytest.raises(EvalpipeError, match="SQL_REFUSED"):
        published.query(f"FROM '{tmp_path}/x.csv'")
    for sql in ("SELECT * FROM mine", "SELECT nothing FROM masked.sessions", "SELEC 1"):
        with pytest.raises(EvalpipeError, match="SQL_FAILED") as caught:
            published.query(sql)
        assert "\n" not in str(caught.value)


def test_results_that_polars_would_refuse_still_come_out(published: Warehouse) -> None:
    sql = 'SELECT ended_at - started_at AS took, 1 AS a, 2 AS a, 3 AS "x.y" FROM masked.sessions'
    result = published.query(sql, limit=1)
    assert result.rows() == [("00:00:00", 1, 2, 3)]
    assert result.columns == ["took", "a", "a_1", "x.y"]


def test_no_warehouse_is_said_so(house: Warehouse) -> None:
    with pytest.raises(EvalpipeError, match="NO_WAREHOUSE"):
        house.query("SELECT 1")
    assert house.published() is None


WORKER = """
import sys
from pathlib import Path
from evalpipe.store.meta import Provenance
from evalpipe.store.warehouse import Warehouse

role, home, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
house = Warehouse(home / "warehouse.duckdb", threads=1)
for turn in range(4 if role == "write" else 12):
    if role == "write":
        name = f"v{(number + turn) % 3}"
        sources = {t: [home / f"{t}.{name}.parquet"] for t in ("masked.sessions", "masked.steps")}
        house.publish(sources, (), name, Provenance(name))
    else:
        with house.open_readonly() as c:
            found = [
                c.execute(sql).fetchone()
                for sql in (
                    "SELECT product_version FROM meta.publication",
                    "SELECT min(session_id) FROM masked.sessions",
                    "SELECT max(session_id) FROM masked.sessions",
                    "SELECT min(session_id) FROM masked.steps",
                    "SELECT count(*) FROM masked.steps",
                )
            ]
        assert len(set(found[:4])) == 1 and found[4] == (3,), found
"""


def together(code: str, *calls: tuple[object, ...]) -> list[tuple[int, str]]:
    """Run the code once a call, all at once; return code and standard error of each."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", code, *map(str, call)], stderr=subprocess.PIPE, text=True)
            )
            for call in calls
        ]
        errors = [process.communicate(timeout=60)[1] for process in running]
        return [(process.returncode, error) for process, error in zip(running, errors, strict=True)]


def test_processes_publish_and_read_at_once(tmp_path: Path) -> None:
    for name in ("v0", "v1", "v2"):
        rows("masked.sessions", {"session_id": name}).write_parquet(tmp_path / f"masked.sessions.{name}.parquet")
        steps = rows("masked.steps", *({"session_id": name, "seq": i} for i in range(3)))
        steps.write_parquet(tmp_path / f"masked.steps.{name}.parquet")
    house = Warehouse(tmp_path / "warehouse.duckdb")
    sources = {t: [tmp_path / f"{t}.v0.parquet"] for t in ("masked.sessions", "masked.steps")}
    house.publish(sources, (), "v0", Provenance("v0"))
    calls = [(role, tmp_path, n) for n, role in enumerate(("write", "read", "write", "read"))]
    assert together(WORKER, *calls) == [(0, "")] * 4
    assert sorted(p.name for p in tmp_path.glob("warehouse*")) == ["warehouse.duckdb", "warehouse.lock"]


KILLED = """
import os, signal, sys
from pathlib import Path
import duckdb
from evalpipe.store.meta import Provenance
from evalpipe.store.warehouse import Warehouse

def connect(database, *, config):
    connection = duckdb.connect(database, config=config)
    class Dying:
        def execute(self, sql, *rest):
            if "INSERT INTO meta" in sql:
                os.kill(os.getpid(), signal.SIGKILL)
            return connection.execute(sql, *rest)
        def __getattr__(self, name):
            return getattr(connection, name)
    return Dying()

Warehouse(Path(sys.argv[1])).publish({}, (), "second", Provenance("2"), connect=connect)
"""


def test_a_killed_builder_leaves_the_old_file_and_no_lock(house: Warehouse) -> None:
    house.publish({}, (), "first", PROVENANCE)
    before = house.path.read_bytes()
    assert together(KILLED, (house.path,))[0][0] == -signal.SIGKILL
    assert house.draft.exists()
    assert house.path.read_bytes() == before
    assert not house.publish({}, (), "third", PROVENANCE).skipped
    left = sorted(os.listdir(house.path.parent))
    assert left == ["warehouse.duckdb", "warehouse.lock"]


def test_connect_is_given_the_settings_of_a_build(house: Warehouse) -> None:
    given: dict[str, str] = {}

    def connect(database: str, *, config: dict[str, str]) -> duckdb.DuckDBPyConnection:
        given.update(config, database=database)
        return duckdb.connect(database, config=config)

    Warehouse(house.path, memory_limit="256MB", threads=1).publish({}, (), "f", PROVENANCE, connect=connect)
    assert given["storage_compatibility_version"] == "v1.5.0"
    assert given["autoinstall_known_extensions"] == "false"
    assert (given["memory_limit"], given["threads"]) == ("256MB", "1")
    assert given["database"] == str(house.draft)
