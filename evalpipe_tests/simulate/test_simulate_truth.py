"""The planted truth: identities, the estimand against an independent estimate, the inversion of raw ranks."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.locations import data_dir
from evalpipe.simulate import Spec, Truth
from evalpipe.simulate.categories import COURSES, MEMBERS, indicator, probabilities
from evalpipe.simulate.plan import EPOCHS, make_plan, make_users, sessions_per_day, shares
from evalpipe.simulate.script import TURNS
from evalpipe.simulate.truth import METRICS, make_truth
from evalpipe.simulate.world import load_world


def _truth(spec: Spec) -> Truth:
    users = make_users(spec)
    return make_truth(spec, users, make_plan(spec, users), {}, [])


@pytest.fixture(scope="module")
def demo() -> Truth:
    return _truth(Spec())


@pytest.mark.parametrize("metric", METRICS)
def test_net_improvement_sums_to_zero_in_every_window(demo: Truth, metric: str) -> None:
    for first, last in ((None, None), (date(2026, 1, 7), date(2026, 1, 12)), (None, date(2026, 1, 5))):
        values = demo.net_improvement(metric, first=first, last=last)
        assert sum(values.values()) == pytest.approx(0.0, abs=1e-12)
        assert max(values.values()) > 0.001


def test_raw_means_rank_the_versions_upside_down(demo: Truth) -> None:
    true = demo.net_improvement("positive_outcome")
    best_first = sorted(true, key=true.__getitem__, reverse=True)
    for is_realised in (False, True):
        raw = demo.raw("positive_outcome", is_realised=is_realised)
        assert sorted(raw, key=raw.__getitem__) == best_first


def test_without_confounding_raw_means_rank_the_versions_right() -> None:
    truth = _truth(Spec(confounding=0.0))
    true, raw = truth.net_improvement("positive_outcome"), truth.raw("positive_outcome")
    assert sorted(true, key=true.__getitem__) == sorted(raw, key=raw.__getitem__)


def test_planted_shifts_are_the_truth_because_user_effects_cancel(demo: Truth) -> None:
    planted = {f"claude-code · {v.model}": v.positive for v in load_world().versions}
    mean = sum(planted.values()) / len(planted)
    for label, value in demo.net_improvement("positive_outcome").items():
        assert value == pytest.approx(planted[label] - mean, abs=5e-4)
    assert demo.clipped_share < 0.01


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("routing", ["session", "sticky"])
def test_post_stratified_cell_means_estimate_the_truth(metric: str, routing: str) -> None:
    truth = _truth(replace(Spec(seed=5), routing=routing))
    index = list(METRICS).index(metric)
    means = truth.served_realised[index].sum(axis=0) / truth.served.sum(axis=0)
    weights = truth.sessions.sum(axis=0) / truth.sessions.sum()
    theta = weights @ means
    spread = 2.0 if metric == "execution_errors" else 1.0
    se = np.sqrt(weights**2 @ (0.25 * spread / truth.served.sum(axis=0))) * (2.0 if routing == "sticky" else 1.0)
    gap = (theta - theta.mean()) - np.array(list(truth.net_improvement(metric).values()))
    assert (np.abs(gap) < 4 * se).all(), gap / se


def test_every_version_is_served_in_every_stratum(demo: Truth) -> None:
    assert (demo.served.sum(axis=0) > 20).all()
    assert demo.served.sum() == demo.sessions.sum()
    for confounding in (0.0, 1.0, 1.5):
        table = shares(Spec(confounding=confounding))
        assert (table >= 0.03).all()
        np.testing.assert_allclose(table.sum(axis=2), 1.0)


def test_sessions_that_switch_model_belong_to_no_version(small: tuple[Path, Truth]) -> None:
    _, truth = small
    assert truth.totals["sessions_that_switch_model"] > 0
    assert truth.sessions.sum() == truth.totals["sessions"] - truth.totals["sessions_that_switch_model"]


def test_users_who_come_back_abandon_less() -> None:
    truth = _truth(Spec(sessions=40_000, users=1_500, seed=6))
    index = list(METRICS).index("abandonment")
    planted, drawn = truth.served_planted[index].sum(), truth.served_realised[index].sum()
    noise = np.sqrt(planted)
    assert abs(planted - drawn) < 4 * noise
    plan = make_plan(truth.spec, make_users(truth.spec))
    assert plan.continued.sum() > 6 * noise  # so that the line above would see it if they were not counted


def test_the_default_weights_make_the_planted_sessions_positive_and_no_others() -> None:
    weights = tomllib.loads((data_dir() / "criteria" / "default.toml").read_text("utf-8"))["outcomes"]["weights"]
    value = {"confirm": weights["confirm.explicit"], "correction": -weights["correction"]}
    for complaint in ("complaint.sentiment", "complaint.failure_report"):
        for course, turns in TURNS.items():
            score = sum({**value, "complaint": -weights[complaint]}.get(turn, 0.0) for turn in turns)
            assert (score > 1e-9) == (course in MEMBERS["positive_outcome"]), course
    for course, turns in TURNS.items():
        assert (turns[-1] == "confirm") == (course in MEMBERS["confirmation"]), course
        assert ("correction" in turns) == (course in MEMBERS["correction"]), course
        assert ("complaint" in turns) == (course in MEMBERS["complaint"]), course
        is_open = turns[-1] in ("complaint", "correction") or course == "waiting"
        assert is_open == (course in MEMBERS["unresolved"]), course


def test_shares_change_with_the_epoch_and_never_where_no_epoch_is_logged() -> None:
    table = shares(Spec())
    np.testing.assert_array_equal(table[EPOCHS.index("all")], table[EPOCHS.index("e1")])
    assert np.abs(table[EPOCHS.index("e2")] - table[EPOCHS.index("e1")]).max() > 0.05
    spec = Spec(sessions=4_000)
    plan = make_plan(spec, make_users(spec))
    assert set(plan.epoch[plan.channel == 0]) == {0}
    late_days = plan.day >= spec.epoch_day
    assert set(plan.epoch[(plan.channel == 1) & late_days]) == {2}
    assert set(plan.epoch[(plan.channel == 1) & ~late_days]) == {1}


def test_sticky_users_keep_one_version_an_epoch() -> None:
    spec = Spec(sessions=3_000, routing="sticky")
    plan = make_plan(spec, make_users(spec))
    versions: dict[tuple[int, int], set[int]] = {}
    for user, epoch, version in zip(plan.user.tolist(), plan.epoch.tolist(), plan.version.tolist(), strict=True):
        versions.setdefault((user, epoch), set()).add(version)
    assert all(len(some) == 1 for some in versions.values())
    assert len({next(iter(some)) for some in versions.values()}) == len(spec.versions)


def test_a_folder_comes_back_within_a_day_only_where_the_session_is_continued() -> None:
    spec = Spec(sessions=5_000, users=60)
    plan = make_plan(spec, make_users(spec))
    open_end = indicator("unresolved")[plan.course] > 0
    start = plan.day * 86_400.0 + plan.start_s
    last: dict[tuple[int, int], int] = {}
    taken_up = set()
    for i in range(len(plan)):
        key = (int(plan.user[i]), int(plan.workspace[i]))
        if key in last and start[i] - start[last[key]] < 30 * 3600:
            taken_up.add(last[key])
        last[key] = i
    assert taken_up == set(np.flatnonzero(plan.continued).tolist())
    assert open_end[plan.continued].all()
    assert 0 < plan.continued.sum() < (plan.could_continue & open_end).sum()


def test_activity_is_heavy_tailed_and_capped() -> None:
    spec = Spec()
    activity = np.sort(make_users(spec).activity)[::-1]
    assert activity[0] < 0.03
    assert activity[: len(activity) // 10].sum() > 0.3


@settings(max_examples=60, deadline=None)
@given(
    version=st.sampled_from(load_world().versions),
    scenario=st.integers(0, 2),
    shift=st.floats(-0.12, 0.12),
    correction_shift=st.floats(-0.05, 0.05),
)
def test_courses_add_up_to_the_planted_probabilities(
    version: object, scenario: int, shift: float, correction_shift: float
) -> None:
    world = load_world()
    task = world.scenarios[scenario]
    args = (np.array([scenario], dtype=np.int8), np.array([shift]), np.array([correction_shift]))
    table, clipped = probabilities(version, world.scenarios, *args)
    assert table.shape == (1, len(COURSES))
    assert (table >= 0).all()
    assert table.sum() == pytest.approx(1.0)
    if not clipped[0]:
        got = {name: (table @ indicator(name)).item() for name in MEMBERS}
        assert got["positive_outcome"] == pytest.approx(task.positive + version.positive + shift)
        assert got["correction"] == pytest.approx(task.correction * version.correction + correction_shift)
        assert got["complaint"] == pytest.approx(task.complaint * version.complaint)
        assert got["unresolved"] == pytest.approx(task.unresolved * version.unresolved)


@settings(max_examples=30, deadline=None)
@given(sessions=st.integers(1, 5_000), days=st.integers(1, 40), start=st.integers(0, 6))
def test_days_hold_all_sessions(sessions: int, days: int, start: int) -> None:
    spec = Spec(sessions=sessions, days=days, start=date(2026, 1, 5) + timedelta(days=start))
    counts = sessions_per_day(spec)
    assert len(counts) == days
    assert sum(counts) == sessions
    assert min(counts) >= 0
