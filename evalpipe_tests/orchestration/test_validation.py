"""Validation as a job: its table is published, replaced by the next run, and free of whoever is erased."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evalpipe.steps import validation
from evalpipe.steps.publish import committed, compare, publish
from evalpipe.steps.validation import TABLE, current, forget_replay, make_validation
from evalpipe.store.warehouse import Warehouse
from evalpipe.validation.scenarios import SCENARIOS
from evalpipe_tests.analysis.conftest import outcome_rows
from evalpipe_tests.orchestration.small import opened, running


def test_a_run_is_published_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(one for one in SCENARIOS if one.name == "gate, equal versions")
    monkeypatch.setattr(importlib.import_module("evalpipe.validation.run"), "SCENARIOS", few)
    with running(tmp_path) as (settings, runner):
        runner.validate(20, 1).require()
    first = Warehouse(settings.warehouse).query(f"select * from {TABLE}")
    assert first["seed"].unique().to_list() == [1]
    assert first.filter(part="replay")["note"].to_list() == ["no settled session has a version"]
    outcomes = outcome_rows(["m-1"] * 90, np.arange(90) % 2 == 0, "m")
    monkeypatch.setattr(validation, "newest_outcomes", lambda _: (outcomes, "digest"))
    with opened(settings) as context:
        make_validation(context, 20, 2)
        publish(context)
        second = Warehouse(settings.warehouse).query(f"select * from {TABLE}")
        assert second["seed"].unique().to_list() == [2], "the newest run, whole"
        replayed = second.filter(part="replay")
        assert replayed.select("replications", "data_digest").unique().rows() == [(5, "digest")]
        assert replayed["note"][0] == "acme · m-1: 30 users, 90 sessions"
        forget_replay(context.lake)
        path = current(context.lake)
        assert path is not None
        assert set(pl.read_parquet(path)["part"]) == {"grid", "guard"}
        before = committed(context)
        publish(context)
        with Warehouse(settings.warehouse).open_readonly() as connection:
            assert compare(context, before, connection).differing == ()
            assert connection.execute(f"select count(*) from {TABLE} where part = 'replay'").fetchone() == (0,)
        assert len(context.lake.appended(TABLE)) == 1, "no file of an earlier run may keep what was counted of them"
