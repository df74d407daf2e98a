"""Answers on routing that was not random, and on what hidden routing could do."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from evalpipe.inference.causal.evalue import e_value
from evalpipe.inference.causal.logistic import Logit, fit_logit, with_intercept
from evalpipe.inference.causal.robust import aipw_means, linear_outcomes, logistic_outcomes, regression_means
from evalpipe.inference.causal.rosenbaum import bound
from evalpipe.inference.causal.weighting import Means, weight_report, weighted_means, weighted_smd
from evalpipe.inference.influence import clustered_covariance
from evalpipe_tests.inference.oracles.case import Case, Check, answers

PAIR = np.array([-1.0, 1.0])


def _covariates(case: Case) -> tuple[np.ndarray, list[str]]:
    names = [name for name in case.columns("data") if name.startswith("z")]
    return np.stack([case.column("data", name) for name in names], axis=1), names


@cache
def _two(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Logit]:
    y, arm = case.column("data", "success"), case.column("data", "target").astype(np.int64)
    X = with_intercept(_covariates(case)[0])
    return y, arm, case.labels("data", "user")[0], X, fit_logit(X, arm)


@cache
def _many(case: Case, scheme: str) -> tuple[Means, list[str]]:
    label, names = case.labels("data", "model3")
    label = label.astype(np.int64)
    X = with_intercept(_covariates(case)[0])
    fit = fit_logit(X, label, len(names))
    return weighted_means(case.column("data", "success3"), label, fit.fitted, scheme, (fit, X)), names


@answers("propensity", "logit_coef")
def coefficients(check: Check) -> Any:
    names = ["(Intercept)", *_covariates(check.case)[1]]
    return dict(zip(names, _two(check.case)[4].coef[0], strict=True))


@answers("propensity", r"(?P<how>ipw_hajek|ipw_ht|overlap)_ate")
def weighted_effect(check: Check, how: str) -> Any:
    y, arm, _, _, fit = _two(check.case)
    scheme = {"ipw_hajek": "hajek", "ipw_ht": "horvitz_thompson", "overlap": "overlap"}[how]
    return weighted_means(y, arm, fit.fitted, scheme).theta @ PAIR


@answers("propensity", r"aipw_(?P<what>ate|se_iid|se_cluster)")
def doubly_robust(check: Check, what: str) -> Any:
    y, arm, user, X, fit = _two(check.case)
    means = aipw_means(y, arm, fit.fitted, logistic_outcomes(y, arm, X, 2))
    if what == "ate":
        return means.theta @ PAIR
    cov = clustered_covariance(means.influence, user if what == "se_cluster" else None)
    return np.sqrt(PAIR @ cov @ PAIR)


@answers("propensity", "overlap_smd_after")
def balanced(check: Check) -> Any:
    y, arm, _, X, fit = _two(check.case)
    return weighted_smd(X[:, 1:], weighted_means(y, arm, fit.fitted, "overlap").weight)


@answers("propensity", "ess_ipw")
def effective(check: Check) -> Any:
    y, arm, _, _, fit = _two(check.case)
    ess = weight_report(weighted_means(y, arm, fit.fitted).weight).ess
    return {"control": ess[0], "target": ess[1]}


@answers("propensity", "multinomial_ipw_hajek_means")
def several_means(check: Check) -> Any:
    means, names = _many(check.case, "hajek")
    return dict(zip(names, means.theta, strict=True))


@answers("propensity", r"multinomial_(?P<how>ipw|overlap)_net_improvement")
def several(check: Check, how: str) -> Any:
    means, names = _many(check.case, "hajek" if how == "ipw" else "overlap")
    return dict(zip(names, means.net_improvement, strict=True))


@answers("propensity", r"statsmodels\.(?P<how>ipw|aipw|ra)")
def with_fitted_chances(check: Check, how: str) -> Any:
    y, arm, _, X, fit = _two(check.case)
    if how == "ra":
        means = regression_means(y, arm, X, 2)
    elif how == "ipw":
        means = weighted_means(y, arm, fit.fitted, fitted=(fit, X))
    else:
        means = aipw_means(y, arm, fit.fitted, linear_outcomes(y, arm, X, 2), (fit, X))
    return {"ate": means.theta @ PAIR, "se": np.sqrt(PAIR @ clustered_covariance(means.influence) @ PAIR)}


@answers("sensitivity", r"rosenbaum_(?P<side>upper|lower)_p_one_sided_greater\.gamma_(?P<gamma>[\d.]+)")
def rosenbaum(check: Check, side: str, gamma: str) -> Any:
    columns = [check.case.column("tables", name) for name in ("x_target", "n_target", "x_other", "n_other")]
    return bound(*columns, float(gamma), upper=side == "upper")


@answers("sensitivity", "e_value")
def e_values(check: Check) -> Any:
    found = [(row, e_value(row["rr"], *row["ci"])) for row in check.expected]
    return [{**row, "e_point": e.point, "e_ci": e.limit} for row, e in found]
