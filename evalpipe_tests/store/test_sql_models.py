"""SQL models: what is refused at loading, order, lineage, and what the shipped models say."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import frame
from evalpipe.contracts.tables import TABLES
from evalpipe.locations import sql_dir
from evalpipe.store import sql_page
from evalpipe.store.meta import CriteriaRow, Provenance
from evalpipe.store.sql_models import CATALOG, SqlModel, in_order, lineage, load_models, write_catalog
from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.store.house import SAMPLE

HEAD = "-- description: A model.\n"


def write(folder: Path, **models: str) -> Path:
    (folder / "analysis").mkdir(exist_ok=True)
    for name, text in models.items():
        (folder / "analysis" / f"{name}.sql").write_text(text)
    return folder


def test_a_model_is_read_whole(tmp_path: Path) -> None:
    text = """-- description: Sessions of a source.
-- materialized: table
-- column n: How many.
WITH kept AS (SELECT source FROM masked.sessions)
SELECT source, count(*) AS n FROM kept GROUP BY source;
"""
    (model,) = load_models(write(tmp_path, by_source=text))
    assert (model.name, model.layer, model.is_table) == ("analysis.by_source", "analysis", True)
    assert model.description == "Sessions of a source."
    assert model.depends_on == ("masked.sessions",)
    assert [(c.name, c.type, c.comment) for c in model.columns] == [
        ("source", "VARCHAR", ""),
        ("n", "BIGINT", "How many."),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT source FROM masked.sessions", "no description"),
        ("-- materialized: view\nSELECT 1 AS a", "no description"),
        (HEAD + "-- materialized: heap\nSELECT 1 AS a", "materialized is heap"),
        (HEAD + "-- column b: No.\nSELECT 1 AS a", "comments on column b"),
        (HEAD, "not one SELECT"),
        (HEAD + "SELECT 1 AS a; SELECT 2 AS a", "not one SELECT"),
        (HEAD + "CREATE TABLE a AS SELECT 1 AS a", "not one SELECT"),
        (HEAD + "DELETE FROM masked.sessions", "not one SELECT"),
        (HEAD + "COPY (SELECT 1) TO 'x'", "not one SELECT"),
        (HEAD + "SELECT (1 AS a", "cannot be parsed"),
        (HEAD + "SELECT source FROM sessions", "not named as layer.table"),
        (HEAD + "SELECT source FROM w.masked.sessions", "not named as layer.table"),
        (HEAD + "SELECT source FROM raw.sessions", "no published table or model raw.sessions"),
        (HEAD + "SELECT source FROM analysis.absent", "no published table or model analysis.absent"),
        (HEAD + "SELECT (SELECT max(a) FROM signals.absent) AS a", "no published table or model signals.absent"),
        (HEAD + "SELECT * FROM read_csv('x.csv')", "table function"),
        (HEAD + "SELECT text FROM masked.steps", '"text" not found'),
        (HEAD + "SELECT nothing FROM masked.sessions", '"nothing" not found'),
        (HEAD + 'SELECT 1 AS "window"', "reserved word"),
        (HEAD + 'SELECT 1 AS "Limit"', "reserved word"),
        (HEAD + "SELECT count(*) FROM masked.sessions", "no lower-case SQL name"),
        (HEAD + "SELECT a FROM analysis.m", "in a circle"),
    ],
)
def test_a_bad_model_is_a_load_error_that_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EvalpipeError) as caught:
        load_models(write(tmp_path, m=text))
    assert caught.value.code == "SQL_MODEL_INVALID"
    assert caught.value.where == "analysis/m.sql"
    assert message in caught.value.what


def test_a_name_of_a_contract_table_clashes(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError, match=r"analysis/gates\.sql.*table of the contracts"):
        load_models(write(tmp_path, gates=HEAD + "SELECT 1 AS a"))
    with pytest.raises(EvalpipeError, match="lower-case SQL name"):
        load_models(write(tmp_path, **{"gates": HEAD + "SELECT 1 AS a", "Bad-name": HEAD + "SELECT 1 AS a"}))


def test_a_circle_is_named(tmp_path: Path) -> None:
    write(tmp_path, a=HEAD + "SELECT x FROM analysis.b", b=HEAD + "SELECT x FROM analysis.c")
    with pytest.raises(EvalpipeError, match=r"circle: analysis\.\w -> analysis\.\w -> analysis\.\w"):
        load_models(write(tmp_path, c=HEAD + "SELECT x FROM analysis.a"))


@given(st.permutations(range(8)), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
@settings(max_examples=60, deadline=None)
def test_models_stand_behind_what_they_read(order: list[int], edges: set[tuple[int, int]]) -> None:
    downhill = {(a, b) for a, b in edges if a > b}  # no circle: a model reads lower numbers only
    models = [
        SqlModel(f"analysis.m{n}", Path("m.sql"), "", False, "", tuple(f"analysis.m{b}" for a, b in downhill if a == n))
        for n in order
    ]
    found = [model.name for model in in_order(models)]
    assert sorted(found) == [f"analysis.m{n}" for n in range(8)]
    assert all(found.index(f"analysis.m{b}") < found.index(f"analysis.m{a}") for a, b in downhill)
    assert found == [model.name for model in in_order(reversed(models))]


def test_lineage_goes_through_subqueries_to_tables_and_models(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        base=HEAD + "SELECT session_id, n_turns + n_tool_calls AS work FROM masked.sessions",
        top=HEAD
        + "WITH w AS (SELECT b.session_id, b.work, f.language FROM analysis.base AS b "
        + "INNER JOIN signals.session_features AS f ON f.session_id = b.session_id) "
        + "SELECT language, sum(work) AS work, count(*) AS n, 1 AS one FROM w GROUP BY language",
    )
    models = load_models(folder)
    base, top = models
    assert lineage(base, models)["work"] == [("masked.sessions", "n_tool_calls"), ("masked.sessions", "n_turns")]
    assert lineage(top, models) == {
        "language": [("signals.session_features", "language")],
        "work": [("analysis.base", "work")],
        "n": [],
        "one": [],
    }


def test_a_changed_file_is_a_changed_digest(tmp_path: Path) -> None:
    (one,) = load_models(write(tmp_path, m=HEAD + "SELECT 1 AS a"))
    (two,) = load_models(write(tmp_path, m=HEAD + "-- column a: One.\nSELECT 1 AS a"))
    (three,) = load_models(write(tmp_path, m=HEAD + "SELECT 2 AS a"))
    assert len({one.digest, two.digest, three.digest}) == 3


def test_a_catalog_holds_as_long_as_the_files_do(tmp_path: Path) -> None:
    folder = write(
        tmp_path, a=HEAD + "SELECT session_id FROM masked.sessions", b=HEAD + "SELECT session_id FROM analysis.a"
    )
    parsed = load_models(folder)
    write_catalog(folder)
    kept = load_models(folder)
    assert kept == parsed
    assert [model.sources for model in parsed] == [None, None]
    assert [model.sources for model in kept] == [lineage(model, parsed) for model in parsed]
    write(folder, b=HEAD + "SELECT 1 AS one FROM analysis.a")
    for damage in ("<<<<<<< ours\n", "{}", '{"stamp": "'):
        (folder / CATALOG).write_text(damage)
        assert load_models(folder)[0] == parsed[0]
    changed = load_models(folder)
    assert [c.name for c in changed[1].columns] == ["one"]
    assert changed[1].sources is None


def test_the_shipped_catalog_is_fresh() -> None:
    assert all(model.sources is not None for model in load_models(sql_dir())), "run make docs"


def test_a_night_takes_no_sql_apart() -> None:
    code = "import sys, evalpipe.definitions as d\nd.build_defs()\nprint('sqlglot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---- the shipped models ------------------------------------------------------------------------

DAY = date(2026, 1, 5)
Row = dict[str, object]


def _session(
    session: str, model: str | None, user: str | None, *, late: bool = False, cost: float | None = None
) -> dict[str, object]:
    row: dict[str, object] = {"session_id": session, "agent": "acme", "model": model, "user_id": user, "n_turns": 2}
    row |= {"logged_cost_usd": cost, "is_dated": True, "n_tool_calls": 3}
    return row | ({"started_at": datetime(2026, 1, 6, 0, 30, tzinfo=UTC)} if late else {})


def _result(as_of: int, measurement: str, metric: str, version: str, **more: object) -> dict[str, object]:
    row = {
        "as_of": date(2026, 1, as_of),
        "window_name": "28d",
        "measurement": measurement,
        "metric": metric,
        "version": version,
        "status": "ok",
    }
    estimated = {"slice": "all", "design": "observational"} if "estimator" not in more else {}
    return row | estimated | more


def _outcome(
    session: str, measurement: str, num: float | None, den: float, *, settled: bool = True
) -> dict[str, object]:
    row: dict[str, object] = {"session_id": session, "measurement": measurement, "agent": "acme", "model": "m-a"}
    row |= {"scenario": "coding", "user_id": "u1", "is_settled": settled, "end_status": "open"}
    return row | {"objective_success_num": num, "objective_success_den": den}


HEADLINE = "positive_outcome"
DATA: dict[str, list[Row]] = {
    "masked.sessions": [
        _session("s1", "m-a", "u1", cost=0.5),
        _session("s2", "m-a", None),
        _session("s3", "m-b", "u2", late=True),
        _session("s4", None, "u2") | {"is_dated": False},
    ],
    "signals.session_features": [
        {"session_id": s, "extractor_version": v, "n_command_errors": e, "n_interrupts": e // 2}
        for s, v, e in (("s1", "1", 2), ("s2", "1", 0), ("s3", "1", 1), ("s1", "2", 5))
    ],
    "signals.hard": [
        {"signal_id": f"h{n}", "session_id": s, "signal": kind, "category": c, "layer": layer, "is_hidden": n == 1}
        for n, (s, kind, c, layer) in enumerate(
            [
                ("s1", "command_error", "timeout", "environment"),
                ("s1", "command_error", "timeout", "environment"),
                ("s2", "command_error", "timeout", "environment"),
                ("s4", "check_failure", "test_failure", "execution"),
                ("s4", "interrupt", None, None),
            ]
        )
    ],
    "signals.session_outcomes": [
        _outcome("s1", "m1", 1.0, 1.0) | {"source": "bench", "task_id": "t1"},
        _outcome("s2", "m1", 0.0, 1.0, settled=False) | {"source": "suite", "task_id": "t1"},
        _outcome("s3", "m1", None, 0.0) | {"source": "bench", "task_id": "t1"},
        _outcome("s1", "m2", 1.0, 1.0),
        _outcome("s5", "m1", None, 0.0) | {"scenario": "chat"},
    ],
    "masked.files": [
        {"file_id": f, "source": s, "rows_read": r, "rows_kept": k, "rows_noise": n, "rows_quarantined": q}
        for f, s, r, k, n, q in (("f1", "a", 10, 7, 2, 1), ("f2", "a", 5, 5, 0, 0), ("f3", "b", 4, 2, 0, 1))
    ],
    "masked.quarantine": [
        {"file_id": f, "line": n, "source": "a", "code": code, "n_bytes": 10}
        for f, n, code in (("f1", 1, "BAD_JSON"), ("f1", 2, "BAD_JSON"), ("f2", 1, "TOO_DEEP"))
    ],
    "masked.redactions": [
        {"source": "a", "field": f, "entity": e, "rule_id": r, "n_hits": n, "ruleset": "r1"}
        for f, e, r, n in (("a", "EMAIL", "e1", 2), ("b", "EMAIL", "e1", 3), ("a", "IP", "i1", 4))
    ],
    "analysis.net_improvement": [
        _result(4, "m1", HEADLINE, "A", rank_lo=2, rank_hi=2),
        _result(5, "m1", HEADLINE, "B", estimate=-0.1, rank_lo=2, rank_hi=2, raw_rank=1),
        _result(5, "m1", HEADLINE, "A", estimate=0.1, rank_lo=1, rank_hi=2, raw_rank=2),
        _result(5, "m1", HEADLINE, "C", status="unavailable", reasons=["few_sessions"]),
        _result(5, "m1", HEADLINE, "A", slice="scenario=coding"),
        _result(5, "m1", "correction", "A"),
        _result(5, "m1", HEADLINE, "A", window_name="7d", estimate=0.9),
        _result(4, "m1", HEADLINE, "A", window_name="all", estimate=0.8),
        _result(3, "m2", "correction", "A", estimate=0.7),
        _result(3, "m2", "correction", "A", window_name="all", estimate=0.2, rank_lo=1, rank_hi=1),
        _result(3, "m9", HEADLINE, "A"),
    ],
    "analysis.estimators": [
        _result(5, "m1", HEADLINE, "A", estimator=name, reference=reference, estimate=estimate)
        for name, reference, estimate in (
            ("against", "x", -0.2), ("along", "x", 0.2), ("elsewhere", "control_pool", -0.2), ("none", "x", None), ("zero", "x", 0.0)
        )
    ] + [_result(5, "m1", HEADLINE, "A", estimator="along", reference="x", window_name="7d")],
    # Every analysis has checks, whether or not anything could be estimated in it.
    "analysis.diagnostics": [
        {"as_of": date(2026, 1, d), "window_name": w, "measurement": m, "check_name": c, "subject": c, "status": s}
        for m, w, d, c, s in (
            ("m1", "28d", 4, "srm", "suspect"), ("m1", "28d", 5, "srm", "ok"), ("m1", "28d", 5, "support", "suspect"),
            ("m1", "28d", 5, "plan", "ok"), ("m1", "7d", 5, "support", "suspect"), ("m1", "7d", 5, "plan", "ok"),
            ("m1", "all", 4, "support", "suspect"), ("m1", "all", 4, "plan", "ok"),
            ("m2", "28d", 3, "support", "ok"), ("m2", "all", 3, "support", "ok"), ("m9", "28d", 3, "support", "ok"),
        )
    ],
    "analysis.nights": [
        _result(5, "m1", HEADLINE, "A", estimator="e", window_name=w, night=date(2026, 1, n), is_alarm=n == 2, so_far=0.1)
        for w in ("28d", "7d", "all") for n in (1, 2)
    ],
    "analysis.gates": [
        {"decided_on": date(2026, 1, d), "decision_id": f"d{d}{w}", "criterion": c, "candidate": "A", "verdict": v, "window_name": w}
        for d, w, c, v in ((4, "28d", "g1", "fail"), (5, "28d", "g1", "pass"), (5, "all", "g1", "fail"), (4, "28d", "g2", "inconclusive"))
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("models")
    sources: dict[str, list[Path]] = {}
    for name, given_rows in DATA.items():
        table = TABLES[name]
        base = {c.name: (c.values[0] if c.values else SAMPLE[c.kind]) for c in table if not c.nullable}
        path = folder / f"{name}.parquet"
        frame(table, [base | row for row in given_rows]).write_parquet(path)
        sources[name] = [path]
    criteria = (
        CriteriaRow("default", "1", "h1", "m1", HEADLINE),
        CriteriaRow("gated", "1", "h2", "m1", HEADLINE),  # gates differ, the measurement does not
        CriteriaRow("other", "1", "h3", "m2", "correction"),
    )
    warehouse = Warehouse(folder / "warehouse.duckdb")
    warehouse.publish(sources, load_models(sql_dir()), "f", Provenance("0", criteria))
    return warehouse


def ask(house: Warehouse, columns: str, model: str) -> list[tuple[object, ...]]:
    return house.query(f"SELECT {columns} FROM analysis.{model}").rows()


def test_every_shipped_model_explains_itself(house: Warehouse) -> None:
    models = load_models(sql_dir())
    assert len(models) >= 8
    assert [(m.name, c.name) for m in models for c in m.columns if not c.comment] == []
    comments = house.query(
        "SELECT table_name || '.' || column_name AS c, comment FROM duckdb_columns() "
        "WHERE schema_name = 'analysis' AND comment IS NULL"
    )
    assert comments.height == 0
    tables = house.query("SELECT schema_name || '.' || table_name AS t FROM duckdb_tables() WHERE comment IS NULL")
    assert tables["t"].to_list() == []


def test_the_page_of_the_models_is_current_and_has_every_column() -> None:
    models = load_models(sql_dir())
    text = sql_page.page(models)
    listed = Path(__file__).resolve().parents[2] / "docs" / sql_page.NAME
    assert listed.read_text("utf-8") == text, "run: make docs"
    for model in models:
        section = text.split(f"## {model.name}\n")[1].split("\n## ")[0]
        assert [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")] == [
            c.name for c in model.columns
        ]


def test_models_of_results_keep_the_measurement_as_a_column(house: Warehouse) -> None:
    for model in load_models(sql_dir()):
        sources = {table for table in model.depends_on if table.startswith("analysis.")} | (
            {"signals.session_outcomes"} & set(model.depends_on)
        )
        if sources:
            assert "measurement" in [c.name for c in model.columns], model.name
        if {"signals.session_features", "signals.hard"} & set(model.depends_on):
            assert "extractor_version" in [c.name for c in model.columns], model.name


def test_a_second_opinion_has_another_sign_only_against_the_same_reference(house: Warehouse) -> None:
    found = ask(house, "estimator, is_other_sign", "second_opinions")
    assert found == [("against", True), ("along", False), ("elsewhere", None), ("none", None), ("zero", False)]


def test_leaderboard_is_the_headline_of_the_newest_day_once(house: Warehouse) -> None:
    assert ask(house, "measurement, as_of, window_name, metric, version, rank_lo, status", "leaderboard") == [
        ("m1", date(2026, 1, 5), "28d", HEADLINE, "A", 1, "ok"),
        ("m1", date(2026, 1, 5), "28d", HEADLINE, "B", 2, "ok"),
        ("m1", date(2026, 1, 5), "28d", HEADLINE, "C", None, "unavailable"),
        ("m2", date(2026, 1, 3), "all", "correction", "A", 1, "ok"),
    ]


@pytest.mark.parametrize("model", ["newest_results", "raw_vs_net", "plan", "second_opinions", "open_checks", "alarms"])
def test_models_of_the_newest_analysis_never_mix_two_windows(house: Warehouse, model: str) -> None:
    found = ask(house, "DISTINCT measurement, as_of, window_name", f"{model} WHERE measurement = 'm1'")
    assert found == [("m1", date(2026, 1, 5), "28d")]


def test_the_newest_analysis_is_the_one_that_a_report_shows(house: Warehouse) -> None:
    assert ask(house, "measurement, as_of, window_name", "newest_analysis") == [
        ("m1", date(2026, 1, 5), "28d"),
        ("m2", date(2026, 1, 3), "all"),
        ("m9", date(2026, 1, 3), "28d"),
    ]


def test_raw_vs_net_says_whether_the_raw_rank_holds(house: Warehouse) -> None:
    found = house.query(
        "SELECT version, raw_rank, net_rank_lo, net_rank_hi, is_raw_rank_supported FROM analysis.raw_vs_net "
        f"WHERE metric = '{HEADLINE}' AND slice = 'all' AND measurement = 'm1'"
    )
    assert found.rows() == [("B", 1, 2, 2, False), ("A", 2, 1, 2, True), ("C", None, None, None, None)]


def test_success_is_null_without_evidence_and_apart_by_measurement(house: Warehouse) -> None:
    columns = "measurement, scenario, n_sessions, n_stated, n_success, success_rate, n_tasks, is_settled"
    assert ask(house, columns, "success_by_version_scenario") == [
        ("m1", "chat", 1, 0, 0, None, 0, True),
        # Two task sets count their tasks from the beginning each.
        ("m1", "coding", 3, 2, 1, 0.5, 2, False),
        ("m2", "coding", 1, 1, 1, 1.0, 0, True),
    ]


def test_signal_counts_keep_extractions_apart(house: Warehouse) -> None:
    columns = "day, model, extractor_version, n_sessions, n_command_errors, n_sessions_with_error, n_interrupts"
    assert ask(house, columns, "signal_counts") == [
        (DAY, "m-a", "1", 2, 2, 1, 1),
        (DAY, "m-a", "2", 1, 5, 1, 2),
        (date(2026, 1, 6), "m-b", "1", 1, 1, 1, 0),
    ]


def test_error_categories_count_events_and_sessions(house: Warehouse) -> None:
    columns = "model, signal, category, n_events, n_hidden, n_sessions_hit, n_sessions"
    assert ask(house, columns, "error_categories") == [
        (None, "check_failure", "test_failure", 1, 0, 1, 1),
        ("m-a", "command_error", "timeout", 3, 1, 2, 2),
    ]


def test_daily_activity_counts_users_that_are_named(house: Warehouse) -> None:
    columns = "day, model, n_sessions, n_users, n_sessions_without_user, n_sessions_undated, logged_cost_usd"
    assert ask(house, columns, "daily_activity") == [
        (DAY, None, 1, 1, 0, 1, None),
        (DAY, "m-a", 2, 1, 1, 0, 0.5),
        (date(2026, 1, 6), "m-b", 1, 1, 0, 0, None),
    ]


def test_reading_balance_shows_rows_that_went_missing(house: Warehouse) -> None:
    columns = "source, n_files, rows_read, rows_kept, rows_noise, rows_quarantined, rows_unaccounted"
    assert ask(house, columns, "reading_balance") == [("a", 2, 15, 12, 2, 1, 0), ("b", 1, 4, 2, 0, 1, 1)]
    assert ask(house, "source, code, n_records, n_files, n_bytes", "quarantine_codes") == [
        ("a", "BAD_JSON", 2, 1, 20),
        ("a", "TOO_DEEP", 1, 1, 10),
    ]


def test_redaction_summary_adds_up(house: Warehouse) -> None:
    assert ask(house, "entity, n_fields, n_rules, n_hits", "redaction_summary") == [("EMAIL", 2, 1, 5), ("IP", 1, 1, 4)]


def test_checks_and_gates_are_the_newest(house: Warehouse) -> None:
    assert ask(house, "check_name, status", "open_checks") == [("support", "suspect")]
    assert ask(house, "criterion, window_name, verdict", "newest_gates") == [
        ("g1", "28d", "pass"),
        ("g1", "all", "fail"),
        ("g2", "28d", "inconclusive"),
    ]


def test_model_rows_and_types_are_those_that_loading_foretold(house: Warehouse) -> None:
    for model in load_models(sql_dir()):
        described = house.query(f"DESCRIBE {model.name}")
        assert described["column_name"].to_list() == [c.name for c in model.columns]
        assert described["column_type"].to_list() == [c.type for c in model.columns]
    kinds = house.query("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'analysis'")
    views = set(kinds.filter(pl.col("table_type") == "VIEW")["table_name"])
    assert views == {m.name.split(".")[1] for m in load_models(sql_dir()) if not m.is_table}


def test_the_queries_of_the_documentation_run(house: Warehouse, tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "warehouse.md").read_text("utf-8")
    blocks = re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL) + re.findall(r'evalpipe sql "(.*?)"', text)
    models = [block for block in blocks if block.startswith("-- description")]
    assert (len(blocks), len(models)) == (10, 1)
    for block in blocks:
        if block not in models:
            house.query(block)
    (model,) = load_models(write(tmp_path, sessions_by_language=models[0]))
    assert [c.comment for c in model.columns] == ["Language of the first human turn.", "Sessions."]
    listed = set(re.findall(r"`(analysis\.\w+)`", text.split("## SQL models")[1].split("Which ranking")[0]))
    assert listed == {model.name for model in load_models(sql_dir())}
