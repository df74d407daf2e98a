"""Answers on net improvement of sessions, and on their common support."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evalpipe.inference import Options, Sample, compare
from evalpipe.inference.balance import chi_square
from evalpipe.inference.bootstrap import user_bootstrap
from evalpipe.inference.covariates import cuped
from evalpipe.inference.intervals import t_interval
from evalpipe.inference.intraclass import anova_icc, kish_design_effect
from evalpipe.inference.ratio import sample_ratio
from evalpipe.inference.recipes import control_pool_gap, raw_gap, stratum_mean_gap
from evalpipe.inference.regression import fit_wls
from evalpipe.inference.variance import ClusterVariance, hc2
from evalpipe_tests.inference.helpers import prepared
from evalpipe_tests.inference.oracles.case import Between, Case, Check, answers
from evalpipe_tests.inference.oracles.parameters import ALPHA, level, stated_count, stated_min_users, stated_model

QUICK = Options(permutations=1, draws=100)
#: Numerator and denominator of a ratio metric; any other metric is a column.
RATIOS = {"tool_success_ratio": ("tool_ok", "tool_calls")}


def sample_of(case: Case, metric: str, *, is_weighted: bool = False) -> tuple[Sample, list[str], list[str]]:
    y, d = RATIOS.get(metric, (metric, None))
    version, names = case.labels("sessions", "model")
    stratum, strata = case.labels("sessions", "stratum")
    user, _ = case.labels("sessions", "user")
    denominator = case.column("sessions", d) if d else np.ones(len(version))
    sample = Sample(
        y=case.column("sessions", y),
        d=denominator,
        version=version,
        stratum=stratum,
        user=user,
        epoch=np.zeros(len(version), dtype=np.int32),
        n_versions=len(names),
        n_strata=len(strata),
        weight=case.column("sessions", "sample_weight") if is_weighted else None,
    )
    return sample, names, strata


def by_name(names: list[str], values: Any) -> dict[str, Any]:
    return {name: value.tolist() for name, value in zip(names, np.asarray(values), strict=True)}


@answers("sessions", "cell_counts")
def cell_counts(check: Check) -> Any:
    sample, names, strata = sample_of(check.case, "success")
    found = compare(sample, QUICK).cell_n
    return {name: by_name(strata, row) for name, row in zip(names, found, strict=True)}


@answers("sessions", "traffic_weights")
def traffic_weights(check: Check) -> Any:
    sample, _, strata = sample_of(check.case, "success")
    return by_name(strata, compare(sample, QUICK).weights)


@answers(
    "sessions",
    r"net_improvement\.(?P<metric>\w+)\.(?P<reference>uniform|stratum_mean|control_pool|loo_uniform)(?P<weighted>\.hajek_weighted)?",
)
def net_improvement(check: Check, metric: str, reference: str, weighted: str | None) -> Any:
    sample, names, _ = sample_of(check.case, metric, is_weighted=bool(weighted))
    return by_name(names, compare(sample, replace(QUICK, reference=reference)).estimate)


@answers(
    "sessions",
    r"(?P<what>se|satterthwaite_df|ci(?P<percent>\d+)|cov)\.(?P<metric>\w+)\.(?P<reference>uniform|stratum_mean|control_pool)(?P<weighted>\.hajek_weighted)?\.(?P<kind>CR\d)",
)
def clustered(
    check: Check, what: str, percent: str | None, metric: str, reference: str, weighted: str | None, kind: str
) -> Any:
    sample, names, _ = sample_of(check.case, metric, is_weighted=bool(weighted))
    options = replace(QUICK, reference=reference)
    found = prepared(sample, options)
    variance = ClusterVariance(found.rows, found.sums, kind).contrasts(found.target.ell)
    se = np.sqrt(np.diag(variance.cov))
    if kind == "CR3":
        # The default estimator says the same.
        whole = compare(sample, options)
        np.testing.assert_allclose(whole.se, se, rtol=1e-9)
        np.testing.assert_allclose(whole.df, variance.df, rtol=1e-9)
    if what == "cov":
        return variance.cov
    if what == "se":
        return by_name(names, se)
    if what == "satterthwaite_df":
        return by_name(names, variance.df)
    limits = t_interval(found.sums.mean @ found.target.ell, se, variance.df, level(percent or ""))
    return by_name(names, np.stack(limits, axis=1))


@answers("sessions", r"se\.(?P<metric>\w+)\.(?P<reference>uniform)\.HC2")
def unclustered(check: Check, metric: str, reference: str) -> Any:
    sample, names, _ = sample_of(check.case, metric)
    found = prepared(sample, replace(QUICK, reference=reference))
    se = np.sqrt(hc2(found.sums, found.target.ell))
    whole = compare(sample, replace(QUICK, reference=reference))
    np.testing.assert_allclose(whole.deff, (whole.se / se) ** 2, rtol=1e-9)
    return by_name(names, se)


@answers("sessions", r"seed\d+\.(?P<reference>stratum_mean|control_pool)\.own_share")
def own_share(check: Check, reference: str) -> Any:
    sample, names, _ = sample_of(check.case, "success")
    return by_name(names, compare(sample, replace(QUICK, reference=reference, population="own_share")).estimate)


@answers("sessions", r"seed000\.raw_gap|seed000_literal_observed_gap")
def gap(check: Check) -> Any:
    sample, names, _ = sample_of(check.case, "success")
    return {name: raw_gap(sample.y, sample.version, k).estimate for k, name in enumerate(names)}


@answers("sessions", "seed001_literal")
def pool(check: Check) -> Any:
    sample, names, _ = sample_of(check.case, "success")
    return {n: control_pool_gap(sample.y, sample.version, sample.stratum, k).estimate for k, n in enumerate(names)}


@answers("sessions", "seed004_literal")
def literal_bootstrap(check: Check) -> Any:
    """Limits of a resampled total of 0/1 outcomes lie on a grid as wide as 1/n.

    Where the reference's own resamples leave open which point of the grid its percentile is, both
    are right: the limits are taken at the error rate give or take four of its standard errors.
    """
    sample, names, _ = sample_of(check.case, "success")
    resamples = stated_count(check.source, "resamples")
    slack = 8.0 * np.sqrt(ALPHA / 2 * (1 - ALPHA / 2) / resamples)
    out = {}
    for k, name in enumerate(names):
        wide, narrow = (
            stratum_mean_gap(sample.y, sample.version, sample.stratum, k, 10 * resamples, 1, ALPHA + sign * slack)
            for sign in (-1, 1)
        )
        out[name] = {"point": wide.estimate, "lo": Between(wide.lo, narrow.lo), "hi": Between(narrow.hi, wide.hi)}
    return out


@answers("sessions", r"wls_additive\.(?P<what>coef|(?:se|df)_(?P<kind>CR\w+))")
def additive(check: Check, what: str, kind: str | None) -> Any:
    formula = next(c.source for c in check.case.checks() if c.name == "wls_additive.coef")
    outcome, covariate = stated_model(formula)
    sample, names, strata = sample_of(check.case, outcome, is_weighted=True)
    columns = {"(Intercept)": np.ones(len(sample.y))}
    columns |= {f"mf{name}": (sample.version == k).astype(float) for k, name in enumerate(names) if k}
    columns |= {f"sf{name}": (sample.stratum == s).astype(float) for s, name in enumerate(strata) if s}
    columns |= {covariate: check.case.column("sessions", covariate)}
    kinds = {"CR1_stata": "CR1S", None: "CR0"}
    fit = fit_wls(np.stack(list(columns.values()), axis=1), sample.y, sample.user, sample.weight, kinds.get(kind, kind))
    found = fit.coef if what == "coef" else fit.df if what.startswith("df") else fit.se
    return by_name(list(columns), found)


def _cuped(check: Check, metric: str, covariate: str) -> tuple[Any, Sample, list[str]]:
    sample, names, _ = sample_of(check.case, metric)
    cell = sample.version.astype(np.int64) * sample.n_strata + sample.stratum
    return cuped(sample.y, check.case.column("sessions", covariate), cell), sample, names


@answers("sessions", r"net_improvement\.(?P<metric>\w+)\.(?P<reference>uniform)\.cuped_(?P<covariate>.+)")
def adjusted(check: Check, metric: str, reference: str, covariate: str) -> Any:
    found, sample, names = _cuped(check, metric, covariate)
    return by_name(names, compare(replace(sample, y=found.y), replace(QUICK, reference=reference)).estimate)


@answers("sessions", r"cuped_theta\.(?P<covariate>.+)")
def slope(check: Check, covariate: str) -> Any:
    return _cuped(check, "success", covariate)[0].slope[0]


@answers("sessions", r"cluster_bootstrap_se\.(?P<metric>\w+)\.(?P<reference>uniform)")
def resampled(check: Check, metric: str, reference: str) -> Any:
    sample, names, _ = sample_of(check.case, metric)
    found = prepared(sample, replace(QUICK, reference=reference))
    n = stated_count(check.source, "resamples")
    return by_name(names, user_bootstrap(found.rows, found.target.ell, n, seed=1).se)


@answers("sessions", r"anova_icc\.(?P<metric>\w+)\.user")
def icc(check: Check, metric: str) -> Any:
    sample, _, _ = sample_of(check.case, metric)
    return anova_icc(sample.y, sample.user)


@answers("sessions", r"deff_kish\.(?P<metric>\w+)\.user")
def design_effect(check: Check, metric: str) -> Any:
    sample, _, _ = sample_of(check.case, metric)
    return kish_design_effect(sample.user, anova_icc(sample.y, sample.user))


@answers("sessions", "srm_chisq_equal_shares")
def mismatch(check: Check) -> Any:
    sample, names, _ = sample_of(check.case, "success")
    counts = np.bincount(sample.version, minlength=len(names))[None].astype(float)
    statistic, df, p = sample_ratio(counts, np.full((1, len(names)), 1 / len(names)), seed=1).pooled
    return {"statistic": statistic, "df": df, "p": p}


@answers("sessions", "balance_chisq_model_by_stratum")
def balance(check: Check) -> Any:
    sample, _, _ = sample_of(check.case, "success")
    statistic, df, p, _ = chi_square(sample.stratum, sample.version, np.zeros_like(sample.version))
    return {"statistic": statistic, "df": df, "p": p}


def _supported(check: Check) -> tuple[Any, list[str], list[str]]:
    sample, names, strata = sample_of(check.case, "success")
    rule = next(c.source for c in check.case.checks() if c.name == "kept_strata")
    return compare(sample, replace(QUICK, min_users_per_cell=stated_min_users(rule))), names, strata


@answers("common_support", "kept_strata")
def kept(check: Check) -> Any:
    found, _, strata = _supported(check)
    return [name for name, is_kept in zip(strata, found.kept, strict=True) if is_kept]


@answers("common_support", "support_share")
def support_share(check: Check) -> Any:
    return _supported(check)[0].support_share


@answers("common_support", r"(?P<what>net_improvement|se_CR3|df)")
def on_support(check: Check, what: str) -> Any:
    found, names, _ = _supported(check)
    return by_name(names, {"net_improvement": found.estimate, "se_CR3": found.se, "df": found.df}[what])
