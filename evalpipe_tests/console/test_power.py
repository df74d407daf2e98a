"""``evalpipe power``: sessions that a comparison needs, by hand, and what no study can have."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.console.power import need
from evalpipe.contracts.errors import EvalpipeError, Exit
from evalpipe.inference import gate

Z, HALF, POWER = stats.norm.ppf(0.975), stats.norm.ppf(0.95), stats.norm.ppf(0.8)


def test_sessions_by_hand() -> None:
    found = need(0.5, 0.05, 4, 2.0)
    pooled, apart = 2 * 0.525 * 0.475, 0.25 + 0.55 * 0.45
    assert found.difference == pytest.approx(2.0 * (Z * pooled**0.5 + POWER * apart**0.5) ** 2 / 0.05**2, abs=1.0)
    assert found.margin == pytest.approx(2.0 * 2 * 0.25 * (HALF + POWER) ** 2 / 0.05**2, abs=1.0)
    # A version that changes by 0.05 stands 0.05 (1 - 1/4) above a mean that changed with it.
    net = 0.05 * 0.75
    assert found.versus_mean == pytest.approx(2.0 * 0.25 * 0.75 * (Z + POWER) ** 2 / net**2, abs=1.0)
    # A gain and a loss from 0.6 end at other variances.
    assert (need(0.6, 0.03, 2, 1.0).difference, need(0.6, -0.03, 2, 1.0).difference) == (4129, 4234)
    assert (found.smallest_difference, found.smallest_versus_mean) == (None, None)


@pytest.mark.parametrize(("rate", "effect"), [(0.01, 0.02), (0.9, 0.05), (0.6, -0.03)])
def test_what_sessions_show_is_what_so_many_are_asked_for(rate: float, effect: float) -> None:
    asked = need(rate, effect, 3, 1.5)
    shown = need(rate, effect, 3, 1.5, sessions=asked.difference)
    assert shown.smallest_difference == pytest.approx(abs(effect), rel=0.01)
    shown = need(rate, effect, 3, 1.5, sessions=asked.versus_mean)
    assert shown.smallest_versus_mean == pytest.approx(abs(effect), rel=0.01)
    assert need(0.97, 0.02, 2, 1.0, sessions=10).smallest_difference is None


def test_one_of_two_needs_as_many_against_the_mean_as_against_the_other() -> None:
    found = need(0.5, 0.02, 2, 1.0)
    assert found.versus_mean == pytest.approx(found.difference, rel=0.01)


def test_a_gate_passes_in_the_share_of_studies_that_was_asked_for() -> None:
    found = need(0.6, 0.03, 2, 1.0)
    draws = np.random.default_rng(1).standard_normal(4_000)
    for sessions, n_earlier in ((found.margin, 0), (found.margin_nightly, 1)):
        se = (2 * 0.24 / sessions) ** 0.5
        passed = [
            gate(z * se, se, 1e9, 1e9, 0.03, "non_inferiority", n_earlier=n_earlier).verdict == "pass" for z in draws
        ]
        assert np.mean(passed) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("rate", "effect", "cost", "alpha", "power"),
    [
        (0.0, 0.05, 1.0, 0.05, 0.8), (0.98, 0.05, 1.0, 0.05, 0.8), (0.5, 0.0, 1.0, 0.05, 0.8),
        (float("nan"), 0.05, 1.0, 0.05, 0.8), (0.5, float("nan"), 1.0, 0.05, 0.8), (0.5, 0.05, 0.0, 0.05, 0.8),
        (0.5, 1e-200, 1.0, 0.05, 0.8), (0.5, 0.05, 1.0, 0.5, 0.8), (0.5, 0.05, 1.0, 0.05, 1.0),
    ],
)  # fmt: skip
def test_what_no_study_can_have_is_refused(rate: float, effect: float, cost: float, alpha: float, power: float) -> None:
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        need(rate, effect, 2, cost, alpha=alpha, power=power)


def test_the_verb_plans_for_users_who_come_back_and_needs_no_home() -> None:
    asked = ["power", "--rate", "0.6", "--effect", "0.03", "--user-sessions", "3", "--user-cv", "1", "--icc", "0.2"]
    told = CliRunner().invoke(app, [*asked, "--sessions", "500", "--json"])
    assert told.exit_code == Exit.OK
    found = json.loads(told.stdout)
    # Kish: 1 + (3 (1 + 1) - 1) 0.2.
    assert found["design_effect"] == pytest.approx(2.0)
    assert found["difference"] == need(0.6, 0.03, 2, 2.0).difference
    words = CliRunner().invoke(app, [*asked, "--sessions", "500"]).stdout
    assert f"{found['difference']:,} sessions a version" in words
    assert "500 sessions a version show" in words
    refused = CliRunner().invoke(app, ["power", "--rate", "1.2", "--effect", "0.03"])
    assert refused.exit_code == Exit.USAGE
