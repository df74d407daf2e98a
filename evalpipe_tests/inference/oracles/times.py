"""Answers on waiting times, sequences, alarms, movement between windows and recovery."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalpipe.inference.durations.competing import cumulative_incidence, logrank
from evalpipe.inference.durations.kaplan_meier import (
    kaplan_meier,
    pseudo_restricted_means,
    quantile,
    restricted_mean,
)
from evalpipe.inference.durations.recovery import steerability_score
from evalpipe.inference.monitor.confidence_sequence import tuning, watch_mean
from evalpipe.inference.monitor.edetector import edetector
from evalpipe.inference.movement import kitagawa
from evalpipe_tests.inference.oracles.case import Case, Check, answers
from evalpipe_tests.inference.oracles.parameters import ALPHA, CAUSES, stated_shifts


def _latency(case: Case, model: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    code, names = case.labels("latency", "model")
    inside = np.ones(len(code), dtype=bool) if model is None else code == names.index(model)
    columns = (case.column("latency", name)[inside] for name in ("time", "event", "cause"))
    time, event, cause = columns
    return time, event == 1, cause.astype(np.int64)


@answers("survival", r"km\.(?P<model>.+)")
def curve(check: Check, model: str) -> Any:
    time, event, _ = _latency(check.case, model)
    found = kaplan_meier(time, event, ALPHA)
    surv, se, lo, hi = found.at(np.array(check.expected["times"], dtype=float))
    out = {"times": check.expected["times"], "surv": surv, "se": se, "lower_loglog": lo, "upper_loglog": hi}
    for percent in {key.removesuffix("_ci_loglog")[1:] for key in check.expected if key.startswith("p")}:
        q = quantile(found, float(percent) / 100)
        # Where the reference has no quantile, we have the word for it.
        if check.expected.get(f"p{percent}", 0.0) is None:
            assert q.status == "unavailable"
        out |= {f"p{percent}": q.value, f"p{percent}_ci_loglog": [q.lo, q.hi]}
    return out


@answers("survival", r"rmst_tau(?P<tau>[\d.]+)\.(?P<model>.+)")
def mean_to_horizon(check: Check, tau: str, model: str) -> Any:
    time, event, _ = _latency(check.case, model)
    found = restricted_mean(kaplan_meier(time, event), float(tau))
    return {"rmst": found.mean, "se": found.se}


@answers("survival", r"lifelines\.(?P<model>.+)")
def second_opinion(check: Check, model: str) -> Any:
    time, event, _ = _latency(check.case, model)
    found = kaplan_meier(time, event)
    out: dict[str, float] = {"median": quantile(found, 0.5).value}
    for key in check.expected:
        if key.startswith("rmst_tau"):
            out[key] = restricted_mean(found, float(key.removeprefix("rmst_tau"))).mean
    return out


@answers("survival", "logrank")
def equal_times(check: Check) -> Any:
    time, event, _ = _latency(check.case)
    statistic, _, p = logrank(time, event, check.case.labels("latency", "model")[0])
    return {"chisq": statistic, "p": p}


@answers("survival", "cuminc_pooled")
def incidence(check: Check) -> Any:
    time, _, cause = _latency(check.case)
    times = np.array(check.expected["times"], dtype=float)
    found = cumulative_incidence(time, cause, times, max(int(cause.max()), *CAUSES.values()))
    return {"times": check.expected["times"], **{name: found[code - 1] for name, code in CAUSES.items()}}


@answers("survival", r"pseudo_rmst_tau(?P<tau>[\d.]+)_pooled")
def pseudo(check: Check, tau: str) -> Any:
    time, event, _ = _latency(check.case)
    found = pseudo_restricted_means(time, event, float(tau))
    return {"mean": found.mean(), "first5": found[:5], "sd": found.std(ddof=1)}


@answers("confidence_sequence", "asymptotic_cs")
def sequence(check: Check) -> Any:
    looks = [row["t"] for row in check.expected["rows"]]
    alpha, planned = check.expected["alpha"], check.expected["t_star"]
    found = watch_mean(check.case.column("stream", "x"), np.array(looks, dtype=float), planned, alpha)
    columns = zip(looks, found.mean, found.lo, found.hi, strict=True)
    rows = [{"t": t, "mean": mean, "lower": lo, "upper": hi} for t, mean, lo, hi in columns]
    return {"alpha": alpha, "t_star": planned, "rho2": tuning(alpha) / planned, "rows": rows}


@answers("confidence_sequence", "c_alpha")
def constant(check: Check) -> Any:
    return {"alpha": check.expected["alpha"], "value": tuning(check.expected["alpha"])}


def _path(check: Check, threshold: float = 1.0) -> Any:
    source = next(c.source for c in check.case.checks() if c.name == "sr_path")
    delta, se = check.case.column("nights", "delta"), check.case.column("nights", "se")
    return edetector(delta, se, shifts=stated_shifts(source), threshold=threshold)


@answers("edetector", "sr_path")
def evidence(check: Check) -> Any:
    return _path(check).evidence


@answers("edetector", r"first_alarm_night_at_(?P<threshold>\d+)")
def first_alarm(check: Check, threshold: str) -> Any:
    at = _path(check, float(threshold)).first
    return check.case.rows("nights")[at]["night"] if at >= 0 else None


@answers("kitagawa", r"components|oaxaca_twofold_equal_weights")
def decomposition(check: Check) -> Any:
    strata = [row["stratum"] for row in check.case.rows("cells")]
    found = kitagawa(*(check.case.column("cells", name) for name in ("n0", "rate0", "n1", "rate1")))
    if check.name != "components":
        return {"explained": found.mix.sum(), "unexplained": found.rate.sum()}
    return {
        "total": found.total,
        "rate_effect": dict(zip(strata, found.rate, strict=True)),
        "mix_effect": dict(zip(strata, found.mix, strict=True)),
        "mix_effect_centred": dict(zip(strata, found.mix_centred, strict=True)),
        "sum_rate": found.rate.sum(),
        "sum_mix": found.mix.sum(),
    }


@answers("steerability", "seed004_score")
def recovery(check: Check) -> Any:
    return [
        {**row, "score": steerability_score(row["turns"], row["correction_index"])} for row in check.expected
    ]  # fmt: skip
