"""Frozen weights: the mix of work of a home's baseline, which criteria then weigh by."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from evalpipe.console.freeze import freeze
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.analysis import make_analysis
from evalpipe.steps.freeze import frozen
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import AS_OF, DAY, make, opened, session, write


def test_a_baseline_is_frozen_and_weighs_another_window(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    later = DAY + timedelta(days=3)
    # The baseline is three parts coding; the later day is half and half.
    kinds = ["coding"] * 30 + ["chat"] * 10 + ["coding", "chat"] * 30
    rows = [
        row
        for n, kind in enumerate(kinds)
        for row in session(
            f"s-{n:03d}", DAY if n < 40 else later, user_id=f"u-{n}", model=f"m-{n // 2 % 2}", scenario=kind
        )
    ]
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "logs.jsonl", *rows)])
        make(context)
        first, last, weights = frozen(context, (DAY, DAY))
        assert (first, last) == (DAY, DAY)
        assert weights == {"scenario=chat": 0.25, "scenario=coding": 0.75}
        assert frozen(context, None)[1:] == (later, {"scenario=chat": 0.4, "scenario=coding": 0.6})
        with pytest.raises(EvalpipeError, match="NO_RESULT"):
            frozen(context, (AS_OF, AS_OF))
        settings = context.settings
        estimand = replace(context.criteria.estimand, population="fixed:base", population_weights=weights)
        new = replace(context, criteria=replace(context.criteria, estimand=estimand))
        make(new)
        made = make_analysis(new, [AS_OF], "all").made[AS_OF]
        found = new.lake.read("analysis.net_improvement", [made])
        assert set(found["population"]) == {"fixed:base"}
        told = new.lake.read("analysis.diagnostics", [made]).filter(check_name="population", subject="distance")
        assert told["value"].to_list() == [pytest.approx(0.15)]
    monkeypatch.setenv("EVALPIPE_KEY", "5e" * 32)
    freeze(settings, "base", (DAY, DAY), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"population": "fixed:base", "population_weights": weights}
    freeze(settings, "base", (DAY, DAY), as_json=False)
    assert '"scenario=chat" = 0.250000' in capsys.readouterr().out
