"""Answers on proportions, gates, planning, surveys, attempts and paired tasks."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from evalpipe.inference import (
    agresti_coull,
    clopper_pearson,
    gate,
    newcombe,
    planned_design_effect,
    sessions_per_arm_proportions,
    smallest_effect_vs_mean,
    wilson,
)
from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.attempts import OUTCOMES, attempt_rates, task_rates
from evalpipe.inference.gates import margin_p_values
from evalpipe.inference.paired import paired_difference
from evalpipe.inference.power import sessions_per_arm_arcsine
from evalpipe.inference.survey import hajek_ratio, horvitz_thompson_total, inclusion_weights
from evalpipe.inference.two_proportions import margin_test, miettinen_nurminen
from evalpipe_tests.inference.oracles.case import Case, Check, answers
from evalpipe_tests.inference.oracles.parameters import ALPHA, stated_level

#: Score statistics of these files are those of statsmodels, whose restricted rates are not the likeliest.
STATSMODELS = "statsmodels"


@answers("proportions", "rows")
def one_proportion(check: Check) -> Any:
    alpha, out = stated_level(check.source), []
    for row in check.case.rows("counts"):
        x, n = int(row["x"]), int(row["n"])
        if n == 0:
            limits = (*wilson(x, n, alpha), *clopper_pearson(x, n, alpha), *agresti_coull(x, n, alpha))
            is_known = np.isfinite(np.array(limits, dtype=float)).any()
            out.append({"x": x, "n": n, "status": "ok" if is_known else "unavailable"})
            continue
        out.append(
            {
                "x": x,
                "n": n,
                "estimate": x / n,
                "wilson": wilson(x, n, alpha),
                "clopper_pearson": clopper_pearson(x, n, alpha),
                "agresti_coull": agresti_coull(x, n, alpha),
            }
        )
    return out


@answers("two_proportions", "rows")
def two_proportions(check: Check) -> Any:
    alpha, out = stated_level(check.source), []
    for row in check.case.rows("counts"):
        counts = x1, n1, x2, n2 = tuple(int(row[name]) for name in ("x1", "n1", "x2", "n2"))
        score = miettinen_nurminen(*counts, alpha, restricted=STATSMODELS)
        limits = {"newcombe": newcombe(*counts, alpha), "miettinen_nurminen": score}
        out.append({"x1": x1, "n1": n1, "x2": x2, "n2": n2, "diff": x1 / n1 - x2 / n2, **limits})
    return out


@answers("gates", "two_proportions")
def margins(check: Check) -> Any:
    out = []
    for row in check.expected:
        found = margin_test(*row["new"], *row["old"], row["margin"], ALPHA, restricted=STATSMODELS)
        out.append(
            {
                **{name: row[name] for name in ("new", "old", "margin")},
                "diff": found.difference,
                "se_unpooled": found.se,
                "noninferiority_p_wald": found.p_wald,
                "noninferiority_p_score_FM": found.p_score,
                "tost_p_wald": found.p_equivalence,
                "lower_one_sided_95": found.lo,
                "ci90": [found.lo, found.hi],
            }
        )
    return out


@answers("gates", "t_based")
def decisions(check: Check) -> Any:
    out = []
    for row in check.expected:
        found = gate(row["est"], row["se"], row["df"], nan, row["margin"], "non_inferiority", alpha=ALPHA)
        not_inferior, inferior = margin_p_values(row["est"], row["se"], row["df"], row["margin"])
        out.append(
            {
                **{name: row[name] for name in ("est", "se", "df", "margin")},
                "lower": found.lower,
                "upper": found.upper,
                "p_noninferiority": not_inferior,
                "p_inferiority": inferior,
                "decision": found.verdict,
            }
        )
    return out


@answers("power", "two_proportions")
def sizes(check: Check) -> Any:
    out = []
    for row in check.expected:
        given = {name: row[name] for name in ("p1", "p2", "power", "alpha")}
        normal = sessions_per_arm_proportions(**given)
        out.append({**given, "n_per_arm_pooled_normal": normal, "n_per_arm_arcsine": sessions_per_arm_arcsine(**given)})
    return out


@answers("power", "with_design_effect")
def clustered_size(check: Check) -> Any:
    row = check.expected
    deff = planned_design_effect(row["mean_cluster"], row["cv"], row["icc"])
    n = sessions_per_arm_proportions(row["p1"], row["p2"], deff, row["alpha"], row["power"])
    return {**row, "deff": deff, "n_per_arm": n}


@answers("power", "mde_vs_mean_of_K")
def detectable(check: Check) -> Any:
    row = check.expected
    mde = smallest_effect_vs_mean(row["n_per_model"], row["K"], row["sigma2"], row["deff"], row["alpha"], row["power"])
    return {**row, "mde": mde}


def _survey(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weight = inclusion_weights(case.column("sample", "inclusion_prob"))
    return case.column("sample", "y"), weight, case.labels("sample", "user")[0]


@answers("hajek", r"hajek_(?P<what>mean|ratio)")
def weighted(check: Check, what: str) -> Any:
    y, weight, user = _survey(check.case)
    found = hajek_ratio(y, weight, user, check.case.column("sample", "d") if what == "ratio" else None)
    return {"estimate": found.estimate, "se": found.se}


@answers("hajek", "ht_total")
def total(check: Check) -> Any:
    found = horvitz_thompson_total(*_survey(check.case))
    return {"estimate": found.estimate, "se": found.se}


@answers("hajek", r"by_(?P<part>\w+)")
def parts(check: Check, part: str) -> Any:
    label, names = check.case.labels("sample", part)
    found = {name: hajek_ratio(*_survey(check.case), inside=label == k) for k, name in enumerate(names)}
    return {what: {name: getattr(f, what) for name, f in found.items()} for what in ("estimate", "se")}


@answers("hajek", "kish_ess")
def effective(check: Check) -> Any:
    return kish_ess(_survey(check.case)[1])


@answers("ledger", "attempt_level")
def attempts(check: Check) -> Any:
    found = attempt_rates([row["outcome"] for row in check.case.rows("attempts")])
    assert sum(found.counts.values()) == found.n_all
    assert set(found.counts) == set(OUTCOMES)
    rates = {name: getattr(found, name) for name in ("autonomous", "assisted", "non_completion", "invalid_rate")}
    return {"N_all": found.n_all, "N_eval": found.n_eval, "counts": found.counts, **rates}


@answers("ledger", "task_level")
def tasks(check: Check) -> Any:
    rows = check.case.rows("attempts")
    place = {row["attempt_id"]: i for i, row in enumerate(rows)}
    parent = np.array([place[row["parent_attempt_id"]] if row["parent_attempt_id"] else -1 for row in rows])
    index = check.case.column("attempts", "retry_index").astype(np.int64)
    task, _ = check.case.labels("attempts", "task_id")
    found = task_rates(task, index, parent, [row["outcome"] for row in rows])
    return {
        "T_all": found.t_all,
        "T_eval": found.t_eval,
        "T_first": found.t_first,
        "T_eventual": found.t_eventual,
        "first_attempt_completion": found.first_attempt,
        "eventual_completion": found.eventual,
        "operational_delivery": found.operational,
        "attempts_per_task": found.attempts_per_task,
        "retry_rate": found.retry_rate,
    }


@answers("paired_versions", r"discordant|mcnemar_exact_p|paired_difference")
def paired(check: Check) -> Any:
    found = paired_difference(*(check.case.column("tasks", name) == 1 for name in ("old_pass", "new_pass")))
    return {
        "discordant": {"fail_to_pass": len(found.fail_to_pass), "pass_to_fail": len(found.pass_to_fail)},
        "mcnemar_exact_p": found.p,
        "paired_difference": {"estimate": found.estimate, "se_wald": found.se},
    }[check.name]
