"""Contracts and what is generated from them."""

from __future__ import annotations

import pickle
from pathlib import Path

import duckdb
import polars as pl
import pytest

from evalpipe.contracts import pages, render
from evalpipe.contracts.errors import ERROR_CODES, QUARANTINE_CODES, EvalpipeError
from evalpipe.contracts.metrics import METRICS
from evalpipe.contracts.model import Column, Kind, Sensitivity, Table, Timing
from evalpipe.contracts.signals import SIGNALS
from evalpipe.contracts.tables import ALL, TABLES

DOCS = Path(__file__).resolve().parents[2] / "docs"

TINY = Table(
    "signals", "tiny", "one row a thing", "A thing.",
    (
        Column("id", Kind.STR, "Id.", nullable=False, key=True),
        Column("share", Kind.F64, "Share.", low=0.0, high=1.0),
        Column("kind", Kind.STR, "Kind.", values=("a", "b")),
    ),
    ("id",),
)  # fmt: skip


def _tiny(**columns: object) -> pl.DataFrame:
    base: dict[str, object] = {"id": ["x"], "share": [0.5], "kind": ["a"]}
    return pl.DataFrame(base | columns, schema=render.polars_schema(TINY))


@pytest.mark.parametrize("table", ALL, ids=lambda t: t.full_name)
def test_every_contract_renders_in_every_form(table: Table) -> None:
    frame = render.conform(table, render.empty(table))
    assert frame.columns == list(table.names)
    types = ", ".join(f'"{c.name}" {render.duckdb_type(c)}' for c in table)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({types})")
    assert table.sort, "a slice needs a total order"


def test_conform_reorders_columns() -> None:
    assert render.conform(TINY, _tiny().select("kind", "share", "id")).columns == ["id", "share", "kind"]


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        (_tiny().drop("share"), "signals.tiny.share"),
        (_tiny().with_columns(pl.lit(1).alias("extra")), "signals.tiny.extra"),
        (_tiny().with_columns(pl.col("share").cast(pl.Float32)), "signals.tiny.share"),
        (_tiny(share=[1.5]), "signals.tiny.share"),
        (_tiny(share=[float("nan")]), "signals.tiny.share"),
        (_tiny(kind=["c"]), "signals.tiny.kind"),
        (_tiny(id=[None]), "signals.tiny.id"),
        (_tiny(id=["x", "x"], share=[0.1, 0.2], kind=["a", "a"]), "signals.tiny.id"),
    ],
)
def test_conform_names_table_and_column_and_no_value(frame: pl.DataFrame, place: str) -> None:
    with pytest.raises(EvalpipeError) as caught:
        render.conform(TINY, frame)
    assert caught.value.code == "CONTRACT_BROKEN"
    assert caught.value.where == place
    assert "1.5" not in str(caught.value)


def test_masked_tables_hold_nothing_restricted() -> None:
    for name in ("sessions", "steps", "quarantine", "files"):
        restricted = [c.name for c in TABLES[f"masked.{name}"] if c.sensitivity is Sensitivity.RESTRICTED]
        assert restricted == []


def test_text_of_steps_is_never_published() -> None:
    for name in ("text", "arguments", "output"):
        assert not TABLES["masked.steps"][name].is_published


def test_every_session_column_says_when_it_is_fixed() -> None:
    for name in ("raw.sessions", "signals.session_features", "signals.session_outcomes"):
        unknown = [c.name for c in TABLES[name] if c.timing is Timing.NONE]
        assert set(unknown) <= {"measurement", "is_settled", "extractor_version", "session_id"}, name


def test_names_are_unique_and_conditional_metrics_have_an_unconditional_partner() -> None:
    assert len({s.name for s in SIGNALS}) == len(SIGNALS)
    by_name = {m.name: m for m in METRICS}
    for metric in METRICS:
        if metric.conditional_on:
            assert not by_name[metric.partner].conditional_on


def test_the_catalogue_names_columns_of_the_signal_s_own_table() -> None:
    for signal in SIGNALS:
        table = TABLES[f"signals.{signal.family}"]
        assert signal.evidence, signal.name
        assert [column for column in signal.evidence if column not in table] == [], signal.name
        assert 0 <= signal.strength <= 1
        assert signal.polarity or not signal.strength, f"{signal.name} speaks neither way and cannot weigh"
        assert signal.name in table["signal"].values


def test_the_catalogue_page_holds_every_signal() -> None:
    page = pages.catalogue_page()
    rows = {line.split("|")[1].strip(" `") for line in page.splitlines() if line.startswith("| `")}
    assert {signal.name for signal in SIGNALS} <= rows


def test_an_error_survives_a_process_border() -> None:
    error = EvalpipeError("LEAK_FOUND", "day 2026-01-05", where="masked", fix="Mend it.")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.what, again.where, again.fix) == (error.code, error.what, error.where, error.fix)
    assert str(again) == str(error)


def test_codes_are_not_used_twice() -> None:
    assert not set(ERROR_CODES) & set(QUARANTINE_CODES)


@pytest.mark.parametrize("name", sorted(pages.PAGES))
def test_generated_pages_are_current(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == pages.PAGES[name](), "run: make docs"
