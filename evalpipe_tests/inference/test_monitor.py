from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.inference.monitor.confidence_sequence import sequence_half_width, tuning, watch_mean
from evalpipe.inference.monitor.edetector import edetector


def test_the_constant_solves_its_equation() -> None:
    for alpha in (0.01, 0.05, 0.2):
        w = -(tuning(alpha) + 1)
        assert w * exp(w) == pytest.approx(-(alpha**2) / exp(1))
        assert w < -1
    with pytest.raises(ValueError, match="alpha"):
        tuning(0.0)


@given(st.floats(1, 1e5), st.floats(10, 1e4))
def test_a_sequence_holds_the_fixed_interval_at_every_look(n: float, planned: float) -> None:
    half = float(sequence_half_width(1.0, n, planned))
    assert half > 1.959964
    # In units of the standard error it is narrowest near the look that was planned.
    width = [
        float(sequence_half_width(1 / sqrt(look), look, planned)) * sqrt(planned)
        for look in (planned / 2, planned, planned * 2)
    ]
    assert width[0] > width[1] > width[2]


def test_watching_a_stream_by_hand() -> None:
    values = np.array([1.0, 3.0, 2.0, 2.0])
    found = watch_mean(values, np.array([1.0, 2.0, 4.0]), 4.0)
    np.testing.assert_allclose(found.mean, [1.0, 2.0, 2.0])
    assert np.isnan(found.lo[0])
    x = tuning(0.05) * 2 / 4
    half = 1.0 * sqrt((1 + 1 / x) * (2 * log(20) + log(1 + x)))
    assert found.hi[1] == pytest.approx(2.0 + half)
    assert np.isnan(watch_mean(np.ones(5), np.array([5.0]), 5.0).lo[0])
    for bad, message in ((np.array([0.0]), "looks"), (np.array([5.0]), "looks")):
        with pytest.raises(ValueError, match=message):
            watch_mean(values, bad, 4.0)
    with pytest.raises(ValueError, match="finite"):
        watch_mean(values * np.nan, np.array([1.0]), 4.0)
    with pytest.raises(ValueError, match="n_planned"):
        sequence_half_width(1.0, 1.0, 0.0)


def test_a_large_mean_does_not_drown_the_spread() -> None:
    values = np.tile([0.0, 1.0], 50)
    near, far = (watch_mean(values + shift, np.array([100.0]), 100.0) for shift in (0.0, 1e6))
    assert far.hi[0] - far.lo[0] == pytest.approx(near.hi[0] - near.lo[0], rel=1e-6)


def test_detector_by_hand() -> None:
    found = edetector(np.array([-0.02, 0.01]), np.array([0.01, 0.01]), shifts=(0.02,), threshold=5.0)
    # lam = -2, z = -2: exp(4 - 2); then z = 1: (1 + e^2) exp(-2 - 2).
    np.testing.assert_allclose(found.evidence, [exp(2), (1 + exp(2)) * exp(-4)])
    assert found.first == 0
    assert edetector(np.array([0.01]), np.array([0.01]), shifts=(0.02,)).first == -1


def test_a_night_that_does_not_count_carries_over() -> None:
    delta, se = np.array([-0.02, np.nan, -0.02, -0.02]), np.array([0.01, 0.01, 0.0, 0.01])
    found = edetector(delta, se)
    assert found.evidence[1] == found.evidence[2] == found.evidence[0]
    short = edetector(delta[[0, 3]], se[[0, 3]])
    assert found.evidence[3] == pytest.approx(short.evidence[1])
    none = edetector(np.array([np.nan]), np.array([1.0]))
    assert (none.evidence.tolist(), none.first) == ([0.0], -1)
    assert len(edetector(np.zeros(0), np.zeros(0)).evidence) == 0
    with pytest.raises(ValueError, match="shifts"):
        edetector(delta, se, shifts=())
    with pytest.raises(ValueError, match="shape"):
        edetector(delta, se[:1])


def test_false_alarms_are_as_rare_as_promised() -> None:
    rng = np.random.default_rng(1)
    waits = []
    for _ in range(60):
        se = np.full(1_500, 0.02)
        first = edetector(rng.normal(0, 0.02, 1_500), se, threshold=50.0).first
        waits.append(first + 1 if first >= 0 else 1_500)
    # At least 50 nights on average, with room for simulation error.
    assert np.mean(waits) > 50
    caught = [edetector(rng.normal(-0.04, 0.02, 200), np.full(200, 0.02), threshold=50.0).first for _ in range(20)]
    assert 0 <= np.mean(caught) < 15


def test_evidence_does_not_overflow() -> None:
    found = edetector(np.full(2_000, -0.5), np.full(2_000, 0.01))
    assert found.first == 0
    assert not np.isnan(found.evidence).any()


def test_evidence_stays_a_number_however_long_nobody_acknowledges_an_alarm() -> None:
    found = edetector(np.full(400, -0.5), np.full(400, 0.01))
    assert np.isfinite(found.evidence).all()
    assert found.evidence[-1] == pytest.approx(1e300)
    assert found.first == 0
