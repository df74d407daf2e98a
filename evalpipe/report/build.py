"""Contract tables to the report object.

Belongs here: reading frames into :class:`~evalpipe.report.model.Evidence` and asking the word
modules for sentences. Does not belong here: any sentence, any markup, any estimate.
"""

from __future__ import annotations

from typing import Any

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import caveats, gate, health, looks, notes, ordering, plainrates, words
from evalpipe.report.format import unit_of
from evalpipe.report.frames import Labels, ReportInputs, rounded, rows, split_label, window_of
from evalpipe.report.model import Evidence, Report
from evalpipe.report.records import (
    ALL,
    Basis,
    Estimate,
    Metric,
    Slice,
    Stratum,
    Version,
)

_NUMBERS = (
    "estimate", "lo", "hi", "lo_sim", "hi_sim", "se", "df", "gstar", "p_perm", "p_adj", "theta", "theta_lo",
    "theta_hi", "raw_rate", "deff", "support_share", "missing_share", "mde",
)  # fmt: skip
_WHOLE = ("n_permutations", "rank_lo", "rank_hi", "letters", "raw_rank", "n_sessions", "n_users", "status")


def build(inputs: ReportInputs) -> Report:
    """The report object of one window.

    Args:
        inputs: Tables of one window and measurement, criteria, gate pair, leak check.

    Returns:
        The report; without usable estimates its headline is "No comparison: REASON".

    Raises:
        EvalpipeError: ``MIXED_MEASUREMENTS`` where tables hold several windows or measurements,
            ``CONTRACT_BROKEN`` for a metric that contracts do not declare.
    """
    evidence = _evidence(inputs)
    return Report(
        product=inputs.product_version,
        answer=words.answer(evidence),
        not_concluded=caveats.not_concluded(evidence),
        evidence=evidence,
        raw_note=plainrates.raw_order_note(evidence),
        notes=notes.methods(evidence, inputs.criteria),
        provenance=(
            *notes.provenance(evidence, inputs.criteria, inputs.product_version),
            *looks.plan(inputs),
        ),
        looks=looks.looks(inputs, _names(inputs, evidence)),
    )


def _names(inputs: ReportInputs, evidence: Evidence) -> dict[str, str]:
    """Safe label of each version by its raw one."""
    order = _version_order(rows(inputs.tables, "analysis.net_improvement"), evidence.headline_metric, inputs)
    return {raw: version.label for raw, version in zip(order, evidence.versions, strict=True)}


def _evidence(inputs: ReportInputs) -> Evidence:
    criteria, labels = inputs.criteria, Labels()
    scored = rows(inputs.tables, "analysis.net_improvement")
    headline = criteria.outcomes.headline
    order = _version_order(scored, headline, inputs)
    index = {raw: i for i, raw in enumerate(order)}
    versions = tuple(_version(raw, labels(raw), inputs) for raw in order)
    slice_labels = Labels()
    slices = _slices(scored, headline, slice_labels)
    bases: dict[Basis, int] = {}
    table = rows(inputs.tables, "analysis.pairs")
    estimates = tuple(sorted(
        (_estimate(row, index, bases, slice_labels) for row in scored),
        key=lambda e: (e.metric, e.slice != ALL, e.slice, e.version),
    ))  # fmt: skip
    return Evidence(
        window=window_of(inputs),
        headline_metric=headline,
        bases=tuple(bases),
        versions=versions,
        metrics=_metrics(scored, headline, criteria.estimand.metrics),
        # A slice that was made for a group alone holds the headline only and stands in its own table.
        slices=tuple(part for part in slices if not part.name.startswith(ordering.GROUP_SLICE)),
        estimates=estimates,
        pairs=ordering.pairs(table, headline, ALL, index),
        strata=_strata(rows(inputs.tables, "analysis.strata"), headline),
        groups=ordering.groups(inputs, estimates, headline, index, slice_labels),
        gate=gate.build_gate(inputs, labels, _sessions(estimates, versions)),
        health=health.build_health(inputs),
        compare_by=criteria.outcomes.compare_by,
        declared_design=criteria.estimand.design,
        min_sessions=criteria.estimand.min_sessions_per_version,
        min_support=criteria.estimand.min_support_share,
        alpha=criteria.estimand.alpha,
    )


def _version_order(scored: list[dict[str, Any]], headline: str, inputs: ReportInputs) -> list[str]:
    """Raw labels, best headline estimate first; those without one last; ties by label."""
    sign = 1.0 if BY_NAME[headline].is_higher_better else -1.0
    best = {
        row["version"]: sign * row["estimate"]
        for row in scored
        if row["metric"] == headline and row["slice"] == ALL and row["estimate"] is not None
    }
    names = {row["version"] for row in scored}
    if names:
        # A gate pair that was not seen in the window is shown as unavailable, not left out.
        names |= {name for name in (inputs.candidate, inputs.baseline) if name}
    return sorted(names, key=lambda name: (name not in best, -best.get(name, 0.0), name))


def _version(raw: str, label: str, inputs: ReportInputs) -> Version:
    name, detail = split_label(label, inputs.criteria.outcomes.compare_by)
    role = "candidate" if raw == inputs.candidate else "baseline" if raw == inputs.baseline else ""
    return Version(label, name, detail, role)


def _metrics(scored: list[dict[str, Any]], headline: str, declared: tuple[str, ...]) -> tuple[Metric, ...]:
    seen = {row["metric"] for row in scored}
    names = [headline, *(name for name in declared if name != headline)]
    names += sorted(seen - set(names))
    return tuple(_metric(name) for name in names if name in seen or name == headline)


def _metric(name: str) -> Metric:
    unit = unit_of(name)
    m = BY_NAME[name]
    return Metric(
        m.name, m.title, m.numerator, m.denominator, unit.name, m.is_higher_better, m.conditional_on, m.partner
    )


def _slices(scored: list[dict[str, Any]], headline: str, labels: Labels) -> tuple[Slice, ...]:
    """All traffic, then scenarios by sessions."""
    sessions: dict[str, int] = {}
    for row in scored:
        sessions.setdefault(row["slice"], 0)
        if row["metric"] == headline:
            sessions[row["slice"]] += row["n_sessions"]
    order = sorted(sessions, key=lambda name: (name != ALL, -sessions[name], name))
    return tuple(Slice(labels(name), ordering.slice_title(labels(name)), sessions[name]) for name in order)


def _estimate(row: dict[str, Any], index: dict[str, int], bases: dict[Basis, int], labels: Labels) -> Estimate:
    basis = Basis(row["reference"], row["population"], row["estimator"], row["design"], row["alpha"])
    fields: dict[str, Any] = {name: rounded(row[name]) for name in _NUMBERS}
    fields |= {name: row[name] for name in _WHOLE}
    return Estimate(
        metric=row["metric"],
        slice=labels(row["slice"]),
        version=index[row["version"]],
        basis=bases.setdefault(basis, len(bases)),
        seed=str(row["seed"]),
        reasons=tuple(row["reasons"]),
        **fields,
    )


def _sessions(estimates: tuple[Estimate, ...], versions: tuple[Version, ...]) -> dict[str, int]:
    """Sessions of the candidate by metric, over all traffic."""
    return {e.metric: e.n_sessions for e in estimates if e.slice == ALL and versions[e.version].role == "candidate"}


def _strata(table: list[dict[str, Any]], headline: str) -> tuple[Stratum, ...]:
    labels = Labels()
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in table:
        if row["metric"] == headline:
            cells.setdefault(row["stratum"], []).append(row)
    out = [
        Stratum(
            stratum=labels(name),
            weight=rounded(cell[0]["weight"]),
            sessions=sum(row["n_sessions"] for row in cell),
            least_users=min(row["n_users"] for row in cell),
            is_kept=cell[0]["is_kept"],
            merged_into=labels(cell[0]["merged_into"]) if cell[0]["merged_into"] else None,
        )
        for name, cell in sorted(cells.items())
    ]
    return tuple(sorted(out, key=lambda s: (not s.is_kept, -s.sessions, s.stratum)))
