"""Methods in at most eight numbered notes of two lines, and provenance.

Belongs here: what a statistician must know to fault or trust the numbers. Does not belong here:
the methods themselves (``inference``) and readings of a result (``words.py``).
"""

from __future__ import annotations

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.criteria.model import Criteria
from evalpipe.report import format as fmt
from evalpipe.report.model import Evidence, Note
from evalpipe.report.phrases import phrase
from evalpipe.report.records import ALL


def methods(ev: Evidence, criteria: Criteria) -> tuple[Note, ...]:
    """The numbered notes, at most eight."""
    k = len(ev.headline)
    metric, estimand = BY_NAME[ev.headline_metric], criteria.estimand
    kept = sum(s.is_kept for s in ev.strata)
    strata = fmt.plural(len(ev.strata), "stratum", "strata")
    values = {
        "df": _range([e.df for e in ev.headline], " ", ",.0f"),
        "deff": _range([e.deff for e in ev.headline], "; design effect ", ".2f"),
        "title": metric.title,
        "numerator": metric.numerator,
        "denominator": "every session" if metric.denominator == "1" else metric.denominator,
        "strata": fmt.listed([name.replace("_", " ") for name in estimand.strata]) or "none",
        "population": phrase("populations", estimand.population.partition(":")[0]),
        "drawn": phrase("notes", "drawn") if estimand.sampling else "",
        "support": f" {kept} of {strata} are in the common support." if ev.strata else "",
        "level": fmt.percent(1 - ev.alpha, 0),
        "k": fmt.count(k),
        "draws": fmt.count(estimand.simultaneous_draws),
        "pairs": fmt.count(k * (k - 1)),
        "alpha": fmt.percent(ev.alpha, 0),
    }
    leads = {
        "unit": "Unit and clusters.", "outcome": "Outcome.", "estimate": "Estimate.", "intervals": "Two intervals.",
        "ranks": "Rank sets and letters.", "leader": "Leader.", "test": "Test.", "words": "Words.",
    }  # fmt: skip
    if k < 2:
        # Without a comparison there is nothing that these three could explain.
        leads = {key: lead for key, lead in leads.items() if key not in {"intervals", "ranks", "test"}}
    texts = {key: phrase("notes", key).format(**values) for key in leads if key != "test"}
    return tuple(Note(lead, texts.get(key) or _test(ev)) for key, lead in leads.items())


def _range(values: list[float | None], before: str, spec: str) -> str:
    shown = [value for value in values if value is not None]
    return f"{before}{min(shown):{spec}}{fmt.DASH}{max(shown):{spec}}" if shown else ""


def _test(ev: Evidence) -> str:
    rows = [e for e in ev.headline if e.p_perm is not None and e.n_permutations]
    if not rows:
        return phrase("notes", "no_test")
    by_user = ev.bases[rows[0].basis].design == "randomized_user"
    return phrase("notes", "test").format(
        n=fmt.count(rows[0].n_permutations),
        how="users within routing epochs" if by_user else "sessions within strata",
        below=sum(e.p_perm is not None and e.p_perm <= ev.alpha for e in rows),
        k=len(rows),
        limit=f"{ev.alpha:g}",
    )


def provenance(ev: Evidence, criteria: Criteria, product: str) -> tuple[tuple[str, str], ...]:
    """Name and value of everything that is needed to make these numbers again."""
    window, basis = ev.window, ev.basis
    seeds = sorted({e.seed for e in ev.estimates if e.metric == ev.headline_metric and e.slice == ALL})
    items: list[tuple[str, str]] = [
        ("evalpipe", product),
        ("As of", fmt.day(window.as_of)),
        ("Window", f"{fmt.day_range(window.first, window.last)}{f' ({window.window})' if window.window else ''}"),
        ("Criteria", f"{criteria.name} {criteria.version}"),
        ("Criteria hash", window.criteria_hash),
        ("Measurement", window.measurement),
    ]
    items += [(f"Hash of {part}", criteria.sub_hash(part)) for part in ("extraction", "outcomes", "estimand", "gates")]
    items += [("Compared by", ", ".join(criteria.outcomes.compare_by))]
    if basis:
        items += [
            ("Reference", basis.reference), ("Population", basis.population), ("Estimator", basis.estimator),
            ("Assignment", basis.design), ("Alpha", f"{basis.alpha:g}"),
        ]  # fmt: skip
    if criteria.estimand.sampling:
        kinds = (f"{rule.name} {rule.kept:g}" for rule in criteria.estimand.sampling)
        items.append(("Sessions kept", ", ".join(kinds)))
    items += [
        ("Permutations", f"{criteria.estimand.permutations:,}"),
        ("Simultaneous draws", f"{criteria.estimand.simultaneous_draws:,}"),
        ("Seed", ", ".join(seeds) or fmt.UNAVAILABLE),
    ]
    if ev.gate.decision_id:
        items.append(("Gate decision", ev.gate.decision_id))
    return tuple(items)
