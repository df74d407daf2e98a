"""Bridges of a home: found by themselves where its days were scored under two measurements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.console.bridge import sentence
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.model import Criteria
from evalpipe.steps.analysis import make_analysis, outdated
from evalpipe.steps.bridge import between
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import AS_OF, DAY, make, opened, session, write


def talk(n: int) -> list[dict[str, object]]:
    name = f"s-{n:02d}"
    said = "It works now, thank you so much" if n % 3 else "no, that is wrong, use the other file"
    step = {"type": "step", "session_id": name, "at": f"{DAY}T10:00:09Z", "step_id": "9", "kind": "user"}
    return [*session(name, user_id=f"u-{n}", model=f"m-{n % 2}"), step | {"text": said}]


def stricter(criteria: Criteria) -> Criteria:
    """No word is enough for a positive outcome any more."""
    return replace(criteria, name="stricter", outcomes=replace(criteria.outcomes, score_threshold=99.0))


def test_days_under_two_measurements_are_bridged_and_stop_no_decision(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as old:
        land(old, [write(tmp_path / "logs.jsonl", *(row for n in range(40) for row in talk(n)))])
        make(old)
        first = make_analysis(old, [AS_OF], "all").made[AS_OF]
        assert old.lake.read("analysis.bridges", [first]).is_empty(), "there is one measurement yet"
        new = replace(old, criteria=stricter(old.criteria))
        with pytest.raises(EvalpipeError, match="NO_RESULT") as caught:
            between(new, old.criteria)
        assert f"backfill {DAY}..{DAY} --criteria stricter" in caught.value.fix
        make(new)
        second = make_analysis(new, [AS_OF], "all").made[AS_OF]
        found = new.lake.read("analysis.bridges", [second])
        assert found["old_measurement"].unique().to_list() == [old.criteria.measurement]
        assert found["measurement"].unique().to_list() == [new.criteria.measurement]
        assert found["n_sessions"].to_list() == [20, 20]
        assert found["new_level"].to_list() == [0.0, 0.0]
        assert (found["shift"] < -0.5).all()
        assert found["reasons"].to_list() == [["few_sessions"]] * 2
        assert make_analysis(new, [AS_OF], "all").fresh.keys() == {AS_OF}
        assert outdated(old, first) is None, "a new measurement moves nothing that the old one decided on"
        rows = between(new, old.criteria)
        assert rows.drop("as_of").equals(found.drop("as_of"))
        assert "A break: fewer than 500 sessions" in sentence(rows.to_dicts())
        with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
            between(old, replace(old.criteria, name="other", gates=()))
    chained = {"is_chained": True, "mean_shift": 0.012, "mean_shift_se": 0.001, "reasons": []}
    assert sentence([chained]).endswith("by +1.20 points (standard error 0.10).")
