from __future__ import annotations

from math import isnan, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.inference.causal.evalue import e_value
from evalpipe.inference.causal.logistic import fit_logit, with_intercept
from evalpipe.inference.causal.robust import aipw_means, linear_outcomes, logistic_outcomes, regression_means
from evalpipe.inference.causal.rosenbaum import bound, sensitivity
from evalpipe.inference.causal.weighting import inverse_weights, weight_report, weighted_means, weighted_smd
from evalpipe.inference.influence import clustered_covariance


def test_a_saturated_regression_gives_back_the_odds() -> None:
    # 3 of 4 where x = 0, 1 of 4 where x = 1.
    X = with_intercept(np.repeat([0.0, 1.0], 4))
    label = np.array([1, 1, 1, 0, 1, 0, 0, 0])
    fit = fit_logit(X, label)
    assert fit.is_converged
    np.testing.assert_allclose(fit.coef[0], [log(3), -2 * log(3)], atol=1e-8)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.cov)), [sqrt(4 / 3), sqrt(8 / 3)], rtol=1e-6)
    np.testing.assert_allclose(fit.se[0], np.sqrt(np.diag(fit.cov)), rtol=1e-3)
    assert fit.deviance == pytest.approx(-2 * (6 * log(0.75) + 2 * log(0.25)))
    # Rows that count twice are rows that stand there twice.
    twice = fit_logit(np.tile(X, (2, 1)), np.tile(label, 2))
    weighted = fit_logit(X, label, weight=np.full(8, 2.0))
    np.testing.assert_allclose(weighted.cov, twice.cov, rtol=1e-6)


def test_many_classes_give_back_their_shares() -> None:
    label = np.repeat([0, 1, 2], [5, 3, 2])
    fit = fit_logit(np.ones((10, 1)), label, 3)
    np.testing.assert_allclose(fit.fitted[0], [0.5, 0.3, 0.2], atol=1e-8)
    np.testing.assert_allclose(fit.predict(np.ones((1, 1)))[0], [0.5, 0.3, 0.2], atol=1e-8)


def test_separated_and_collinear_data_do_not_pass_for_fitted() -> None:
    x = np.arange(10.0)
    label = (x > 4).astype(int)
    assert not fit_logit(with_intercept(x), label).is_converged
    assert fit_logit(with_intercept(x), label, penalty=np.array([0.0, 1.0])).is_converged
    assert not fit_logit(np.ones((10, 2)), np.arange(10) % 2).is_converged
    with pytest.raises(ValueError, match="shape"):
        fit_logit(np.ones((3, 1)), np.zeros(2, dtype=int))
    with pytest.raises(ValueError, match="below 2"):
        fit_logit(np.ones((3, 1)), np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="finite"):
        fit_logit(np.full((3, 1), np.nan), np.zeros(3, dtype=int))


def routed(seed: int, n: int = 400) -> tuple[np.ndarray, ...]:
    """Outcomes, labels of three versions, columns, users; hard work goes to the last version."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    chance = np.where(hard[:, None], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2])
    label = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
    y = (rng.random(n) < 0.7 - 0.4 * hard + 0.1 * label).astype(float)
    return y, label, with_intercept(hard.astype(float)), rng.integers(0, 60, n)


@settings(max_examples=10)
@given(st.integers(0, 1_000))
def test_with_a_saturated_model_all_roads_lead_to_strata(seed: int) -> None:
    y, label, X, _ = routed(seed)
    fit = fit_logit(X, label, 3)
    strata = [[y[(label == k) & (X[:, 1] == s)].mean() for s in (0, 1)] for k in range(3)]
    share = np.array([(X[:, 1] == 0).mean(), (X[:, 1] == 1).mean()])
    by_hand = np.array(strata) @ share
    found = [
        weighted_means(y, label, fit.fitted, fitted=(fit, X)),
        aipw_means(y, label, fit.fitted, linear_outcomes(y, label, X, 3), (fit, X)),
        regression_means(y, label, X, 3),
    ]
    errors = []
    for means in found:
        np.testing.assert_allclose(means.theta, by_hand, atol=1e-7)
        np.testing.assert_allclose(means.influence.sum(axis=0), 0.0, atol=1e-7)
        assert means.net_improvement.sum() == pytest.approx(0.0)
        errors.append(np.sqrt(np.diag(clustered_covariance(means.influence))))
    # The same estimate has the same error, since each accounts for what it fitted.
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-5)
    np.testing.assert_allclose(errors[2], errors[0], rtol=1e-5)


def test_known_chances_by_hand() -> None:
    y, label = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 1])
    chance = np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5]])
    assert weighted_means(y, label, chance).theta[0] == pytest.approx(2 / 6)
    assert weighted_means(y, label, chance, "horvitz_thompson").theta[0] == pytest.approx(2 / 4)
    h = inverse_weights(label, chance, "overlap")
    # 1 / (1/e + 1/(1 - e)) / e is the chance of the other version.
    np.testing.assert_allclose(h[:, 0], [0.5, 0.75, 0.0, 0.0])
    report = weight_report(h)
    assert report.n.tolist() == [2, 2]
    assert report.ess[0] == pytest.approx(1.25**2 / (0.25 + 0.5625))
    assert report.largest[0] == pytest.approx(0.6)
    nobody = weighted_means(y, label, np.column_stack((chance * 0.5, np.full(4, 0.5))))
    assert isnan(nobody.theta[2])
    with pytest.raises(ValueError, match="positive"):
        weighted_means(y, label, chance * [0.0, 1.0])
    with pytest.raises(ValueError, match="scheme"):
        inverse_weights(label, chance, "stabilized")


def test_overlap_weights_balance_what_the_chances_were_fitted_on() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 2))
    label = (rng.random(300) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    fit = fit_logit(with_intercept(x), label)
    before = weighted_smd(x, np.eye(2)[label])
    after = weighted_smd(x, weighted_means(x[:, 0], label, fit.fitted, "overlap").weight)
    assert before[0] > 0.5
    np.testing.assert_allclose(after, 0.0, atol=1e-6)
    assert isnan(weighted_smd(np.ones((300, 1)), np.eye(2)[label])[0])


def test_outcome_models_of_versions_that_do_not_vary() -> None:
    y, label, X, _ = routed(5)
    flat = np.where(label == 1, 1.0, y)
    predicted = logistic_outcomes(flat, label, X, 4).predicted
    assert (predicted[:, 1] == 1.0).all()
    assert np.isnan(predicted[:, 3]).all()
    assert ((predicted[:, 0] > 0) & (predicted[:, 0] < 1)).all()


def test_clustered_covariance_by_hand() -> None:
    influence = np.array([[1.0], [1.0], [-2.0]])
    assert clustered_covariance(influence)[0, 0] == pytest.approx(1.5 * 6)
    assert clustered_covariance(influence, np.array([7, 7, 9]))[0, 0] == pytest.approx(2 * 8)
    assert clustered_covariance(influence + 1, is_centred=True)[0, 0] == pytest.approx(1.5 * 6)
    assert isnan(clustered_covariance(influence, np.zeros(3, dtype=int))[0, 0])


def test_e_value_by_hand() -> None:
    assert e_value(2.0, 0.9, 4.0).point == pytest.approx(2 + sqrt(2))
    assert e_value(2.0, 0.9, 4.0).limit == 1.0
    assert e_value(0.5, 0.25, 0.8).point == pytest.approx(2 + sqrt(2))
    assert e_value(0.5, 0.25, 0.8).limit == pytest.approx(1.25 + sqrt(1.25 * 0.25))
    assert e_value(1.0).point == 1.0
    for nothing in (0.0, -1.0, np.nan, np.inf):
        assert isnan(e_value(nothing).point)
    assert isnan(e_value(2.0).limit)


def test_bounds_by_hand() -> None:
    # Two of two against none of two: one of six arrangements; with odds 2 it weighs 4 of 4 + 8 + 1.
    counts = tuple(np.array([v], dtype=float) for v in (2, 2, 0, 2))
    assert bound(*counts, 1.0) == pytest.approx(1 / 6)
    assert bound(*counts, 2.0) == pytest.approx(4 / 13)
    assert bound(*counts, 2.0, upper=False) == pytest.approx(1 / 13)
    with pytest.raises(ValueError, match="gamma"):
        bound(*counts, 0.5)
    with pytest.raises(ValueError, match="whole"):
        bound(np.array([1.5]), *counts[1:], 1.0)
    with pytest.raises(ValueError, match="fit"):
        bound(np.array([3.0]), *counts[1:], 1.0)


def test_how_much_hidden_routing_an_effect_bears() -> None:
    strong = tuple(np.array(v, dtype=float) for v in ((45, 40), (50, 50), (15, 10), (50, 50)))
    found = sensitivity(*strong)
    assert found.status == "ok"
    assert found.gamma > 3
    assert not found.is_fragile
    assert bound(*strong, found.gamma) <= 0.05 < bound(*strong, found.gamma + 0.02)
    # A version that is worse by as much bears as much.
    worse = sensitivity(*(np.array(v, dtype=float) for v in ((5, 10), (50, 50), (35, 40), (50, 50))))
    assert worse.gamma == pytest.approx(found.gamma)
    chance = sensitivity(*(np.array([v], dtype=float) for v in (5, 10, 4, 10)))
    assert (chance.gamma, chance.is_fragile) == (1.0, True)
    assert sensitivity(*(np.array([v], dtype=float) for v in (5, 10, 0, 0))).reason == "no_overlap"
    assert sensitivity(*(np.array([v], dtype=float) for v in (10, 10, 9, 9))).reason == "no_variation"


def test_large_strata_are_bounded_by_their_moments() -> None:
    small, large = ((260, 500, 240, 500), (2_600, 5_000, 2_400, 5_000))
    for gamma in (1.0, 1.1):
        exact = bound(*(np.array([v], dtype=float) for v in small), gamma)
        assert 0 < exact < 1
    limit = bound(*(np.array([v], dtype=float) for v in large), 1.0)
    # z = (2,600 - 0.5 - 2,500) / sqrt(5,000^2 5,000^2 / (10,000^2 9,999)) = 3.98
    assert limit == pytest.approx(3.4e-5, rel=0.05)
