"""Answers on raters, labels and signals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from evalpipe.inference.agreement.cohen import cohen_kappa, contingency, gwet_ac1, pabak
from evalpipe.inference.agreement.detector import detection
from evalpipe.inference.agreement.several import fleiss_kappa, krippendorff_alpha, rating_counts
from evalpipe.inference.causal.logistic import Logit
from evalpipe.inference.labels.ppi import rectified_mean, tuned_weight
from evalpipe.inference.labels.prevalence import rogan_gladen
from evalpipe.inference.labels.signal_weights import brier_score, regress_labels, signal_weights
from evalpipe_tests.inference.oracles.case import Case, Check, answers
from evalpipe_tests.inference.oracles.parameters import ALPHA, level, stated_categories, stated_truth


def _codes(case: Case) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Category codes of each rater over the categories that anyone used, and their values."""
    raters = [name for name in case.columns("ratings") if name != "item"]
    raw = {name: case.column("ratings", name) for name in raters}
    values = np.unique(np.concatenate(list(raw.values())))
    return {name: np.searchsorted(values, column) for name, column in raw.items()}, values


def _table(case: Case, first: str, second: str) -> np.ndarray:
    codes, values = _codes(case)
    return contingency(codes[first], codes[second], len(values))


@answers("kappa", r"statsmodels\.(?P<weights>unweighted|linear|quadratic)")
def one_pair(check: Check, weights: str) -> Any:
    found = cohen_kappa(_table(check.case, "human1", "human2"), weights, level("95"))
    return {
        "kappa": found.kappa,
        "std_kappa": found.se,
        "std_kappa0": found.se_null,
        "ci95": [found.lo, found.hi],
    }


@answers("kappa", r"(?P<first>human\d)_(?P<second>human\d|judge)")
def pair(check: Check, first: str, second: str) -> Any:
    table = _table(check.case, first, second)
    plain, linear, quadratic = (cohen_kappa(table, kind) for kind in ("unweighted", "linear", "quadratic"))
    return {
        "kappa": plain.kappa,
        "ase": plain.se,
        "linear": linear.kappa,
        "linear_ase": linear.se,
        "quadratic": quadratic.kappa,
        "quadratic_ase": quadratic.se,
        "percent_agreement": plain.agreement,
    }


@answers("kappa", r"(?P<first>human\d)_(?P<second>human\d|judge)_ci(?P<percent>\d+)")
def interval(check: Check, first: str, second: str, percent: str) -> Any:
    table = _table(check.case, first, second)
    found = cohen_kappa(table, alpha=level(percent))
    return {"unweighted": [found.lo, found.hi]}


@answers("kappa", r"judge_vs_human_ge(?P<positive>\d+)")
def judge(check: Check, positive: str) -> Any:
    ratings, human = check.case.column("ratings", "judge"), check.case.column("ratings", "human1")
    found = detection(ratings >= float(positive), human >= float(positive))
    return {name: getattr(found, name) for name in ("tp", "fp", "fn", "tn", "precision", "recall", "specificity")}


def _all_ratings(case: Case, raters: str) -> tuple[np.ndarray, np.ndarray]:
    codes, values = _codes(case)
    assert len(codes) == int(raters)
    return rating_counts(np.stack(list(codes.values()), axis=1), len(values)), values


@answers("kappa", r"fleiss_kappa_(?P<raters>\d+)raters")
def fleiss(check: Check, raters: str) -> Any:
    return fleiss_kappa(_all_ratings(check.case, raters)[0])


@answers("kappa", r"krippendorff_alpha_(?P<raters>\d+)raters")
def krippendorff(check: Check, raters: str) -> Any:
    counts, values = _all_ratings(check.case, raters)
    return {kind: krippendorff_alpha(counts, kind, values) for kind in ("nominal", "ordinal", "interval")}


@answers("kappa", "gwet_ac1_and_pabak")
def beside_kappa(check: Check) -> Any:
    q, used = stated_categories(check.source), _table(check.case, "human1", "human2")
    # A category that nobody used counts among the q all the same.
    table = np.zeros((q, q))
    table[: len(used), : len(used)] = used
    return {"ac1": gwet_ac1(table), "pabak": pabak(table)}


@answers("ppi", r"lambda1|tuned|classical")
def rectified(check: Check) -> Any:
    human, signal = check.case.column("labelled", "human"), check.case.column("labelled", "signal")
    unlabelled = check.case.column("unlabelled", "signal")
    weight = {"lambda1": 1.0, "classical": 0.0, "tuned": None}[check.name]
    found = rectified_mean(human, signal, unlabelled, weight=weight, alpha=level("95"))
    return {"estimate": found.estimate, "ci95": [found.lo, found.hi], "p_vs_half": found.p_value(0.5)}


@answers("ppi", "lambda_hat_formula")
def tuned(check: Check) -> Any:
    human, signal = check.case.column("labelled", "human"), check.case.column("labelled", "signal")
    return tuned_weight(human, signal, check.case.column("unlabelled", "signal"))


def _labelled(case: Case) -> tuple[list[str], np.ndarray, np.ndarray]:
    names = [name for name in case.columns("labels") if name != "human_success"]
    signals = np.stack([case.column("labels", name) for name in names], axis=1)
    return names, signals, case.column("labels", "human_success") == 1


@cache
def _regression(case: Case) -> tuple[list[str], Logit]:
    names, signals, success = _labelled(case)
    return ["(Intercept)", *names], regress_labels(signals, success)


@answers("signal_weights", r"logit_(?P<what>coef|se)")
def regression(check: Check, what: str) -> Any:
    names, fit = _regression(check.case)
    return dict(zip(names, (fit.coef if what == "coef" else fit.se)[0], strict=True))


@answers("signal_weights", "brier_in_sample")
def brier(check: Check) -> Any:
    return brier_score(_regression(check.case)[1].fitted[:, 1], _labelled(check.case)[2])


@answers("signal_weights", "deviance")
def deviance(check: Check) -> Any:
    return _regression(check.case)[1].deviance


@answers("signal_weights", r"precision_recall\.(?P<name>.+)")
def found_and_missed(check: Check, name: str) -> Any:
    names, signals, success = _labelled(check.case)
    found = detection(signals[:, names.index(name)] > 0, success == stated_truth(name, check.source))
    return {key: getattr(found, key) for key in ("tp", "fp", "fn", "precision", "recall")}


@answers("signal_weights", r"ridge_C(?P<C>[\d.]+)")
def ridge(check: Check, C: str) -> Any:
    names, signals, success = _labelled(check.case)
    found = signal_weights(signals, success, C=float(C), min_labels=0, min_events=0)
    coef = dict(zip(names, found.coef, strict=True))
    return {"intercept": found.intercept, "coef": coef, "p_first5": found.fitted[:5]}


@answers("rogan_gladen", "known_se_sp")
def prevalence(check: Check) -> Any:
    out = []
    for row in check.expected:
        found = rogan_gladen(row["pos"], row["n"], row["se"], row["sp"], ALPHA)
        out.append({**row, "apparent": found.apparent, "true": found.estimate, "true_ci_wilson": [found.lo, found.hi]})
    return out
