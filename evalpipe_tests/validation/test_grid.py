"""The grid: worlds have the truth that they say, the product is what is counted, and a seed is a seed."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalpipe.criteria import load
from evalpipe.inference import Options, compare
from evalpipe.validation import Finding, finding_rows, n_steps, run, validate
from evalpipe.validation.finding import average, share
from evalpipe.validation.guards import length, refused_columns
from evalpipe.validation.measures import (
    COVERAGE,
    FALSE_FAIL,
    FALSE_ORDER,
    FALSE_PASS,
    GATE_KIND,
    GATE_MARGIN,
    RANKS,
    TYPE_1,
)
from evalpipe.validation.run import MIN_SESSIONS, MIN_SUPPORT, compare_one, run_scenario
from evalpipe.validation.scenarios import SCENARIOS, Scenario
from evalpipe.validation.stream import stream
from evalpipe.validation.worlds import LARGEST_USER, World, draw, sample_of

SMALL = World(300, 60, (0.2, 0.0, -0.2), user_part=0.1)


def named(start: str) -> Scenario:
    return next(one for one in SCENARIOS if one.name.startswith(start))


def test_a_world_has_the_truth_that_it_states() -> None:
    draws = draw(SMALL, 400, np.random.default_rng(3))
    for k, effect in enumerate(SMALL.effects):
        # 40,000 sessions of a version; users are alike, so their errors are wider than those of sessions.
        assert draws.y[draws.version == k].mean() == pytest.approx(0.48 + effect, abs=0.02)
    assert SMALL.truth.sum() == pytest.approx(0.0)
    np.testing.assert_allclose(np.bincount(draws.stratum.ravel()) / draws.stratum.size, SMALL.strata, atol=0.01)


def test_activity_is_uneven_and_capped() -> None:
    draws = draw(World(2_000, 400, (0.0, 0.0)), 20, np.random.default_rng(1))
    largest = [np.bincount(user).max() / 2_000 for user in draws.user]
    assert 5 / 400 < np.mean(largest) < LARGEST_USER * 2, "a few users have far more sessions than their share"


def test_sticky_users_keep_their_version_and_others_do_not() -> None:
    for is_sticky in (True, False):
        draws = draw(replace(SMALL, is_sticky=is_sticky), 1, np.random.default_rng(1))
        pairs = np.unique(np.stack([draws.user[0], draws.version[0]]), axis=1).shape[1]
        assert (pairs == len(np.unique(draws.user[0]))) is is_sticky


def test_routing_follows_the_shares_of_a_stratum() -> None:
    world = World(4_000, 0, (0.0, 0.0), strata=(0.5, 0.5), offsets=(0.1, -0.1), routing=((0.9, 0.1), (0.2, 0.8)))
    draws = draw(world, 10, np.random.default_rng(1))
    for s, first in enumerate((0.9, 0.2)):
        assert (draws.version[draws.stratum == s] == 0).mean() == pytest.approx(first, abs=0.02)


def test_a_chance_outside_of_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match="chance"):
        World(10, 5, (0.4, -0.4), user_part=0.2)


def test_the_grid_counts_what_the_product_answers() -> None:
    scenario = replace(named("single sessions, effects"), world=SMALL)
    draws = draw(SMALL, 2, np.random.default_rng(5))
    options = Options(design="observational", min_sessions_per_version=20, permutations=199, draws=2_000, seed=7)
    expected = compare(sample_of(SMALL, draws, 1), options)
    found = compare_one(scenario, draws, 1, 7)
    np.testing.assert_array_equal(found.lo, expected.lo)
    np.testing.assert_array_equal(found.rank_hi, expected.rank_hi)
    inside = (expected.lo <= SMALL.truth) & (SMALL.truth <= expected.hi)
    assert COVERAGE.count(found, SMALL.truth) == (int(inside.sum()), 3)
    # Effects of 20 points are found; told that the truth is the reverse, every order is a false one.
    assert RANKS.count(found, SMALL.truth) == (1, 1)
    assert FALSE_ORDER.count(found, -SMALL.truth) == (1, 1)
    assert FALSE_ORDER.count(found, SMALL.truth) == (0, 1)
    assert TYPE_1.count(found, SMALL.truth) == (0, 0), "nothing was randomized, so there is no test"


def test_a_worse_product_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals that take sessions of one user for independent do not cover where users are sticky."""
    scenario = replace(named("sticky users, no effects"), measures=(COVERAGE,), design="observational")
    as_shipped = run_scenario(scenario, 60, 1)[0]
    assert as_shipped.is_met is not False

    def unclustered(world: World, draws: object, at: int, **more: object) -> object:
        sample = sample_of(world, draws, at, **more)  # type: ignore[arg-type]
        return replace(sample, user=np.arange(world.n_sessions, dtype=np.int32))

    monkeypatch.setattr(importlib.import_module("evalpipe.validation.run"), "sample_of", unclustered)
    broken = run_scenario(scenario, 60, 1)[0]
    assert broken.is_met is False
    assert broken.estimate < 0.85


def test_gates_are_read_at_their_edges() -> None:
    draws = draw(World(2_000, 0, (-0.2, 0.2)), 1, np.random.default_rng(2))
    world = World(2_000, 0, (-0.2, 0.2))
    found = compare(sample_of(world, draws, 0), Options(design="observational", permutations=1, draws=200))
    assert FALSE_FAIL.count(found, world.truth) == (1, 1)
    assert FALSE_PASS.count(found, world.truth) == (0, 1)


def test_seeds_decide_and_scenarios_do_not_depend_on_each_other() -> None:
    scenario = replace(named("gate, equal versions"), measures=(COVERAGE,))
    assert run_scenario(scenario, 5, 1) == run_scenario(scenario, 5, 1)
    one, other = (stream(seed, "a").random() for seed in (1, 2))
    assert len({one, other, stream(1, "b").random()}) == 3


def test_options_of_the_grid_are_those_of_the_default_criteria() -> None:
    criteria = load("default", extractors="x")
    assert criteria.estimand.min_sessions_per_version == MIN_SESSIONS
    assert criteria.estimand.min_support_share == MIN_SUPPORT
    assert {(gate.kind, gate.margin) for gate in criteria.gates} == {(GATE_KIND, GATE_MARGIN)}


def test_a_run_holds_every_scenario_and_reports_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("evalpipe.validation.run")
    few = (named("gate, equal versions"), replace(named("400 sessions, rare strata, no effects"), effort=0.5))
    monkeypatch.setattr(module, "SCENARIOS", few)
    done: list[int] = []
    found = validate(20, 4, done.append)
    assert sum(done) == n_steps(20) == 20 + 10 + 10 + 2
    assert [one.replications for one in found if one.part == "grid"] == [20, 10, 10, 10, 10]
    rows = finding_rows(found, seed=4, code_version="v")
    assert rows.height == len(found)
    assert rows.equals(finding_rows(validate(20, 4), seed=4, code_version="v"))
    with pytest.raises(ValueError, match="replications"):
        run.validate(1, 1)


def test_every_scenario_of_the_grid_runs_and_has_a_name_of_its_own() -> None:
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)
    for scenario in SCENARIOS:
        small = replace(scenario, effort=0.01, design="observational")
        found = run_scenario(small, 200, 1)
        assert [one.quantity for one in found] == [measure.name for measure in scenario.measures]
        assert all(one.n_trials > 0 for one in found if one.quantity != "type_1_error"), scenario.name


def test_length_is_refused_and_would_mislead() -> None:
    refused = refused_columns()
    assert (refused.estimate, refused.is_met) == (1.0, True)
    assert refused.n_trials > 20
    bias, _, literal = length(40, stream(1, "length"))
    assert abs(bias.estimate) < 0.02
    assert abs(literal.estimate) > 0.03, "the mistake must be there to be avoided"
    assert literal.is_met is None


@pytest.mark.parametrize(
    ("estimate", "lo", "hi", "target", "met"),
    [
        (0.95, 0.94, 0.96, (0.935, 0.965), True),
        (0.93, 0.92, 0.94, (0.935, 0.965), None),
        (0.90, 0.88, 0.92, (0.935, 0.965), False),
        (0.90, 0.88, 0.92, None, None),
        (math.nan, math.nan, math.nan, (0.0, 0.02), None),
    ],
)
def test_targets(estimate: float, lo: float, hi: float, target: tuple[float, float] | None, met: bool | None) -> None:
    assert Finding("grid", "s", "q", "?", estimate, lo, hi, target, 10, 10).is_met is met


def test_shares_and_averages_know_their_simulation_error() -> None:
    # Three trials of a replication that always agree are worth one.
    alike = np.repeat([3.0, 0.0], [95, 5])
    p, lo, hi = share(alike, np.full(100, 3.0))
    single = share(alike / 3.0, np.ones(100))
    assert p == pytest.approx(0.95)
    np.testing.assert_allclose((lo, hi), single[1:])
    assert share(np.zeros(50), np.ones(50))[2] == pytest.approx(0.0713, abs=1e-3)
    assert all(math.isnan(value) for value in share(np.zeros(3), np.zeros(3)))
    mean, low, high = average(np.array([1.0, 3.0]))
    np.testing.assert_allclose((mean, low, high), (2.0, 2 - 1.96, 2 + 1.96), atol=1e-3)


@pytest.mark.parametrize(("estimate", "known"), [(0.05, False), (0.073, True), (0.12, False)])
def test_a_known_limit_is_known_only_as_far_as_it_is_documented(estimate: float, known: bool) -> None:
    found = Finding(
        "grid", "s", "q", "?", estimate, estimate - 0.005, estimate + 0.005, (0.0, 0.065), 9, 9, limit=(0.0, 0.09)
    )
    assert found.is_known is known
    assert found.is_met is (estimate <= 0.065)


def test_the_page_shows_every_scenario() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "validation.md").read_text("utf-8")
    for scenario in SCENARIOS:
        assert f"| {scenario.name.removeprefix('gate, ')} |" in page
