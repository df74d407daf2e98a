"""Invented analysis tables of a plausible shape, for tests of the report. Deterministic: no random draws."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl

from evalpipe.contracts.metrics import BY_NAME, METRICS
from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.tables import TABLES
from evalpipe.criteria import load
from evalpipe.criteria.model import Criteria, GateCriterion
from evalpipe.report import Report, ReportInputs, build

#: label, shift of the headline rate, sessions, users
EIGHT = (
    ("orion · o-large-high", 0.064, 1912, 703),
    ("orion · o-large", 0.056, 3847, 1391),
    ("atlas · a-4.1", 0.039, 1204, 466),
    ("kestrel · k-70", 0.011, 2310, 842),
    ("atlas · a-4.0", 0.003, 3905, 1407),
    ("quill · q-mini", -0.026, 1488, 551),
    ("orion · o-mid", -0.056, 2640, 957),
    ("kestrel · k-30", -0.091, 962, 371),
)
CANDIDATE, BASELINE = "atlas · a-4.1", "atlas · a-4.0"
SCENARIOS = (("coding", 0.52), ("work", 0.31), ("chat", 0.17))
LEVELS = {
    "positive_outcome": 0.55, "confirmation": 0.41, "correction": 0.22, "complaint": 0.09, "abandonment": 0.12,
    "right_first_time": 0.33, "unrecovered_correction": 0.08, "execution_errors": 1.4, "execution_success": 0.93,
    "first_try_success": 0.81, "self_repair": 0.62, "steerability": 0.48, "convergence": 0.37, "objective_success": 0.5,
}  # fmt: skip
Z = 1.96


def criteria(gates: tuple[GateCriterion, ...] | None = None) -> Criteria:
    """The shipped criteria, with other gates if given."""
    base = load("default", extractors="test")
    base = replace(base, estimand=replace(base.estimand, design="randomized_session"))
    return base if gates is None else replace(base, gates=gates)


def stamp(c: Criteria) -> dict[str, Any]:
    return {
        "as_of": date(2026, 11, 8), "window_name": "28d",
        "window_start": date(2026, 10, 12), "window_end": date(2026, 11, 8),
        "measurement": c.measurement, "criteria_name": c.name, "criteria_version": c.version, "criteria_hash": c.hash,
    }  # fmt: skip


def many(n: int) -> tuple[tuple[str, float, int, int], ...]:
    """``n`` versions spread over some 20 points."""
    rows = []
    for i in range(n):
        sessions = 420 + 97 * ((i * 7) % 11)
        label = f"harness-{i % 5} · model-{i:02d}"
        rows.append((label, round(0.1 - 0.2 * i / (n - 1), 4), sessions, int(sessions * 0.37)))
    return tuple(rows)


def _wiggle(*parts: int) -> float:
    """A number in [-1, 1] that depends on its arguments only."""
    return math.sin(sum((n + 1) * (part + 3) * 12.9898 for n, part in enumerate(parts)))


def _row(c: Criteria, metric: str, part: str, version: str, shift: float, n: int, users: int, k: int) -> dict[str, Any]:
    m = BY_NAME[metric]
    level = LEVELS[metric]
    sigma = math.sqrt(level * (1 - level)) if m.is_rate else 1.3
    se = sigma * math.sqrt(1.25 / max(n, 1)) * 1.05
    mde = 2.8 * se
    available = n >= c.estimand.min_sessions_per_version
    row: dict[str, Any] = {
        **stamp(c), "metric": metric, "slice": part, "version": version, "reference": c.estimand.reference,
        "population": c.estimand.population, "estimator": "post_stratified", "design": c.estimand.design,
        "n_sessions": n, "n_users": users, "alpha": c.estimand.alpha, "seed": 7_203_114_553_201_776_001,
        "status": "ok" if available else "unavailable", "reasons": [] if available else ["too_few_sessions"],
    }  # fmt: skip
    if not available:
        return row
    wide = 1.42 + 0.02 * k
    row |= {
        "estimate": shift, "lo": shift - Z * se, "hi": shift + Z * se, "lo_sim": shift - Z * wide * se,
        "hi_sim": shift + Z * wide * se, "se": se, "df": 0.6 * users, "gstar": 0.5 * users,
        "p_perm": min(1.0, max(1e-4, 2 * (1 - _phi(abs(shift) / se)))), "n_permutations": 9999,
        "p_adj": min(1.0, max(1e-4, 2 * k * (1 - _phi(abs(shift) / se)))), "theta": level + shift,
        "theta_lo": level + shift - Z * se, "theta_hi": level + shift + Z * se,
        "raw_rate": level + shift + 0.01 * _wiggle(n), "deff": 1.2 + 0.2 * abs(_wiggle(n, 1)), "support_share": 0.982,
        "missing_share": 0.011 + 0.008 * abs(_wiggle(n, 2)), "mde": mde,
    }  # fmt: skip
    if m.is_rate and mde > 0.10 and part != "all":
        row |= {"reasons": ["underpowered"]}
    return row


def _phi(z: float) -> float:
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


def net_improvement(
    c: Criteria, versions: tuple, gap: float, scenarios: tuple = SCENARIOS, metrics: tuple = ()
) -> list[dict[str, Any]]:
    """Rows of all metrics and slices; on the headline, versions further apart than ``gap`` are separated."""
    out: list[dict[str, Any]] = []
    k = len(versions)
    for mi, metric in enumerate(m.name for m in METRICS if not metrics or m.name in metrics):
        m = BY_NAME[metric]
        scale = (1 if m.is_higher_better else -1) * (1.0 if m.is_rate else 3.0)
        for si, (name, share) in enumerate((("all", 1.0), *scenarios)):
            for vi, (label, shift, n, users) in enumerate(versions):
                value = (
                    shift
                    if metric == c.outcomes.headline and name == "all"
                    else shift * 0.8 + 0.012 * _wiggle(mi, si, vi)
                )
                size = int(n * share * (0.25 if metric == "self_repair" else 1.0))
                if name == "chat" and vi == k - 1:
                    size = 14
                part = "all" if name == "all" else f"scenario={name}"
                out.append(_row(c, metric, part, label, round(scale * value, 5), size, max(1, int(users * share)), k))
    _rank(out, c, gap)
    return out


def _rank(rows: list[dict[str, Any]], c: Criteria, gap: float) -> None:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("estimate") is not None:
            groups.setdefault((row["metric"], row["slice"]), []).append(row)
    for (metric, _), group in groups.items():
        sign = 1 if BY_NAME[metric].is_higher_better else -1
        group.sort(key=lambda r: (-sign * r["estimate"], r["version"]))
        for rank, row in enumerate(sorted(group, key=lambda r: -sign * r["raw_rate"]), start=1):
            row["raw_rank"] = rank
        values = [sign * r["estimate"] for r in group]
        # Sorted values and one gap make an interval graph: maximal runs are the letters.
        runs = [(i, max(j for j in range(len(values)) if values[i] - values[j] <= gap)) for i in range(len(values))]
        kept = [run for n, run in enumerate(runs) if n == 0 or run[1] > runs[n - 1][1]]
        for i, row in enumerate(group):
            row["rank_lo"] = 1 + sum(value - values[i] > gap for value in values)
            row["rank_hi"] = len(values) - sum(values[i] - value > gap for value in values)
            row["letters"] = "".join(
                "abcdefghijklmnopqrstuvwxyz"[n % 26] for n, (a, b) in enumerate(kept) if a <= i <= b
            )


def pairs(c: Criteria, rows: list[dict[str, Any]], gap: float) -> list[dict[str, Any]]:
    """Ordered pairs of the headline over all traffic."""
    head = [
        r for r in rows if r["metric"] == c.outcomes.headline and r["slice"] == "all" and r.get("estimate") is not None
    ]
    sign = 1 if BY_NAME[c.outcomes.headline].is_higher_better else -1
    out = []
    for a in head:
        for b in head:
            if a is b:
                continue
            d, se = a["estimate"] - b["estimate"], math.hypot(a["se"], b["se"])
            out.append({
                **stamp(c), "metric": c.outcomes.headline, "slice": "all",
                "version": a["version"], "other": b["version"],
                "difference": d, "lo": d - Z * se, "hi": d + Z * se, "se": se, "df": 400.0, "gstar": 300.0,
                "is_better": sign * d > gap, "is_indistinguishable": abs(d) <= gap,
            })  # fmt: skip
    return out


def gates(c: Criteria, candidate: str = CANDIDATE, baseline: str = BASELINE) -> list[dict[str, Any]]:
    """Decisions: a pass that is superior, an open one, a fail is left to tests, an unavailable one."""
    numbers = {
        "outcome_no_worse": (0.036, 0.004, 0.068, "pass"),
        "errors_no_more": (-0.03, -0.09, 0.03, "pass"),
        "corrections_no_worse": (-0.004, -0.061, 0.053, "inconclusive"),
        "objective_no_worse": (None, None, None, "inconclusive"),
    }
    out = []
    for gate in c.gates:
        estimate, lower, upper, verdict = numbers[gate.name]
        out.append({
            **stamp(c), "decision_id": "d41d8cd98f00", "criterion": gate.name, "decided_on": date(2026, 11, 8),
            "candidate": candidate, "baseline": baseline, "metric": gate.metric, "kind": gate.kind,
            "margin": gate.margin, "estimate": estimate, "lower": lower, "upper": upper, "df": 231.0,
            "verdict": verdict, "reasons": {"pass": [], "inconclusive": ["interval_crosses_margin"]}[verdict]
            if estimate is not None else ["unavailable", "no_outcome"],
        })  # fmt: skip
    return out


FOUR_GATES = (
    GateCriterion("outcome_no_worse", "positive_outcome", "non_inferiority", 0.02),
    GateCriterion("errors_no_more", "execution_errors", "non_inferiority", 0.10),
    GateCriterion("corrections_no_worse", "correction", "non_inferiority", 0.05),
    GateCriterion("objective_no_worse", "objective_success", "non_inferiority", 0.05),
)


def diagnostics(c: Criteria, suspect: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    rows = (
        ("sessions", "window", 18268.0, None, "18268 sessions of 8 versions in 6 strata."),
        (
            "assignment",
            "window",
            1.0,
            None,
            "Design randomized_session is declared; 100% of the sessions log an assignment.",
        ),
        ("srm", "sessions", 0.41, 0.001, "p 0.41 over 3 epochs."),
        ("balance", "first prompt length", 0.04, 0.1, "Largest gap 0.04 SD."),
        ("balance", "language", 0.02, 0.1, "Largest gap 0.02 SD."),
        ("stickiness", "users with two sessions or more", 0.03, 0.1, "Observed less expected share 0.03."),
        ("positivity", "kept strata", 0.021, 0.01, "Least routing share 2.1%."),
        ("support_share", "strata", 0.982, 0.8, "98.2% of traffic."),
        ("missing_user", "sessions", 0.006, 0.05, "0.6% of sessions."),
        ("mixed_models", "sessions", 31.0, None, "31 sessions were answered by several models and left out."),
    )
    return [
        {**stamp(c), "check_name": check, "subject": subject, "value": value, "bound": limit,
         "status": "suspect" if check in suspect else "ok", "detail": detail}
        for check, subject, value, limit, detail in rows
    ]  # fmt: skip


def strata(c: Criteria, versions: tuple) -> list[dict[str, Any]]:
    out = []
    for epoch in ("e1", "e2"):
        for name, share in (*SCENARIOS, ("rare", 0.0)):
            kept = name != "rare"
            for label, shift, n, users in versions:
                cell = int(n * share / 2)
                out.append({
                    **stamp(c), "metric": c.outcomes.headline, "stratum": f"{name} / {epoch}", "version": label,
                    "n_sessions": cell if kept else 2, "n_users": max(1, int(users * share / 2)),
                    "mean": 0.55 + shift if kept else None, "weight": share / 2 if kept else None,
                    "share": n / 20000, "is_kept": kept, "merged_into": None,
                })  # fmt: skip
    return out


def masked(c: Criteria) -> dict[str, list[dict[str, Any]]]:
    files = [
        {"file_id": f"f{i}", "source": source, "reader_version": "1", "n_bytes": 10**7, "rows_read": kept + noise + bad,
         "rows_kept": kept, "rows_noise": noise, "rows_quarantined": bad, "n_sessions": 100, "member": ""}
        for i, (source, kept, noise, bad) in enumerate((
            ("claude_code", 884_020, 17_013, 9), ("claude_code", 41_220, 930, 2), ("codex", 521_900, 8_790, 5),
            ("evalpipe_jsonl", 89_193, 1_275, 0),
        ))
    ]  # fmt: skip
    quarantine = [
        {"file_id": "f0", "source": "claude_code", "byte_offset": 100 * i, "line": i, "code": code, "session_id": "",
         "n_bytes": 10, "digest": f"q{i}", "member": ""}
        for i, code in enumerate(["BAD_JSON"] * 11 + ["TOO_DEEP"] * 4 + ["RECORD_TOO_LARGE"])
    ]  # fmt: skip
    entities = (
        ("PATH", 121_402),
        ("PERSON", 41_877),
        ("EMAIL_ADDRESS", 28_015),
        ("SECRET", 13_306),
        ("IP_ADDRESS", 9_120),
        ("WITHHELD", 3),
    )
    redactions = [
        {"source": "claude_code", "field": "steps.output", "entity": entity, "subtype": "",
         "rule_id": f"r.{entity.lower()}",
         "ruleset": "abc", "key_epoch": "k1", "n_rows": hits // 2 + 1, "n_hits": hits, "n_bytes": hits * 9}
        for entity, hits in entities
    ]  # fmt: skip
    return {"masked.files": files, "masked.quarantine": quarantine, "masked.redactions": redactions}


@functools.cache
def inputs(
    versions: tuple = EIGHT,
    *,
    gap: float = 0.047,
    scenarios: tuple = SCENARIOS,
    metrics: tuple = (),
    candidate: str | None = CANDIDATE,
    baseline: str | None = BASELINE,
    suspect: tuple[str, ...] = (),
    c: Criteria | None = None,
) -> ReportInputs:
    """Inputs of a report; every frame obeys its contract."""
    c = c or criteria(FOUR_GATES)
    rows = net_improvement(c, versions, gap, scenarios, metrics)
    if suspect:
        for row in rows:
            row |= {"status": "suspect", "reasons": [*row["reasons"], *suspect]} if row["status"] == "ok" else {}
    decided = gates(c, candidate, baseline) if candidate and baseline else []
    if suspect:
        for row in decided:
            row |= {"verdict": "inconclusive", "reasons": ["suspect", *suspect]}
    tables: dict[str, list[dict[str, Any]]] = {
        "analysis.net_improvement": rows,
        "analysis.pairs": pairs(c, rows, gap),
        "analysis.strata": strata(c, versions),
        "analysis.diagnostics": diagnostics(c, suspect),
        "analysis.gates": decided,
        **masked(c),
    }
    frames = {name: conform(TABLES[name], frame(TABLES[name], data)) for name, data in tables.items()}
    leak = {"passed": True, "findings": 0, "canaries_planted": 240, "canaries_counted": 240}
    return ReportInputs(frames, c, candidate, baseline, "0.1.0", leak)


@functools.cache
def report() -> Report:
    """The report of the eight versions."""
    return build(inputs())


def with_table(report_inputs: ReportInputs, name: str, table: pl.DataFrame) -> ReportInputs:
    """The inputs with one table replaced."""
    return replace(report_inputs, tables=report_inputs.tables | {name: table})


def changed(report_inputs: ReportInputs, name: str, *columns: pl.Expr | pl.Series, **named: pl.Expr) -> ReportInputs:
    """The inputs with columns of one table replaced."""
    return with_table(report_inputs, name, report_inputs.tables[name].with_columns(*columns, **named))
