"""Rows of ``analysis.estimators``: what other estimators say of the headline metric.

Belongs here: which estimators are asked, and on which sessions. Does not belong here: formulas. The
recipes that are in circulation stand here under their own names, so that a number from elsewhere can
be found again, with what it is measured against beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from evalpipe.analysis.design import COVARIATES
from evalpipe.analysis.evidence.adjusted import history_lines, pooled_lines
from evalpipe.analysis.evidence.headline import UNWEIGHTED, Headline
from evalpipe.analysis.evidence.listed import block_p, listed_lines
from evalpipe.analysis.evidence.movement import constant_contrast
from evalpipe.inference.bootstrap import bootstrap_comparison
from evalpipe.inference.causal.observational import ESTIMATORS, weigh_routing
from evalpipe.inference.recipes import Recipe, control_pool_gap, raw_gap, shuffled_gaps, stratum_mean_gap

RESAMPLES = 1_000
SHUFFLES = 199
#: The recipe that has a test of its own.
STRATUM_MEAN = "seed004.net_improvement"
_POPULATION = {"ipw": "common support", "aipw": "common support", "overlap": "overlap"}


def estimator_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row an estimator and version."""
    unbounded = _unbounded(headline)
    for row in _rows(headline):
        why = unbounded.get(str(row["version"]))
        is_shown = why is not None and row["status"] != "unavailable"
        yield {**row, **_without_interval(row, why or "")} if is_shown else row


def _unbounded(headline: Headline) -> dict[str, str]:
    """Versions whose spread nobody saw, by label: what no estimator can put limits to, and why."""
    found = {}
    for k, name in enumerate(headline.versions):
        if headline.found.n_users[k] == 1:
            found[name] = "one_user"
        elif "no_variation" in headline.found.reasons[k]:
            found[name] = "no_variation"
    return found


def _without_interval(row: Mapping[str, object], why: str) -> dict[str, object]:
    told = row["reasons"]
    reasons = [*(told if isinstance(told, list) else ()), why]
    status = "suspect" if row["status"] == "suspect" else "inconclusive"
    return {"lo": None, "hi": None, "status": status, "reasons": list(dict.fromkeys(reasons))}


def _rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    yield from _recipes(headline)
    if headline.is_comparable:
        yield from _bootstrap(headline)
        yield from _weighed(headline)
        for line in (*history_lines(headline), *pooled_lines(headline), *listed_lines(headline)):
            yield {
                **_row(headline, line.estimator, line.version, line.reference, line.population),
                "estimate": line.estimate,
                "lo": line.lo,
                "hi": line.hi,
                "p": line.p,
                "p_adj": line.p_adj,
                "status": line.status,
                "reasons": list(line.reasons),
            }


def _row(headline: Headline, estimator: str, version: int, reference: str, population: str) -> dict[str, object]:
    return {
        "metric": headline.metric.name,
        "estimator": estimator,
        "version": headline.versions[version],
        "reference": reference,
        "population": population,
    }


def _recipes(headline: Headline) -> Iterator[Mapping[str, object]]:
    sample = headline.sample
    has = sample.d > 0
    y = sample.y[has] / sample.d[has]
    version, stratum = (codes[has].astype(np.int64) for codes in (sample.version, sample.stratum))
    if not has.any():
        return
    shuffled = shuffled_gaps(
        y, version, sample.n_versions, SHUFFLES, headline.stamp.seed(headline.metric.name, "all", "shuffle")
    )
    # A recipe is taken at its word, and none knows of weights.
    told = [UNWEIGHTED] if headline.is_drawn else []
    for k in range(sample.n_versions):
        seed = headline.stamp.seed(headline.metric.name, "all", f"recipe {k}")
        made: tuple[tuple[str, str, str, Recipe], ...] = (
            ("seed000.raw_gap", "all sessions", "own_share", raw_gap(y, version, k)),
            ("seed000.net_improvement", "all sessions", "own_share", shuffled[k]),
            ("seed001.net_improvement", "control_pool", "own_share", control_pool_gap(y, version, stratum, k)),
            (
                STRATUM_MEAN,
                "stratum_mean",
                "own_share",
                stratum_mean_gap(y, version, stratum, k, RESAMPLES, seed, headline.options.alpha),
            ),
        )
        for name, reference, population, recipe in made:
            reasons = [recipe.reason] if recipe.reason else ["descriptive", *told]
            yield {
                **_row(headline, name, k, reference, population),
                "estimate": recipe.estimate,
                "lo": recipe.lo,
                "hi": recipe.hi,
                "p": block_p(headline, y, version == k, stratum) if name == STRATUM_MEAN else np.nan,
                "status": recipe.status,
                "reasons": reasons,
            }


def _bootstrap(headline: Headline) -> Iterator[Mapping[str, object]]:
    seed = headline.stamp.seed(headline.metric.name, "all", "user bootstrap")
    reference = headline.criteria.estimand.reference
    found = bootstrap_comparison(headline.sample, headline.options, RESAMPLES, seed)
    for k in headline.compared:
        yield {
            **_row(headline, "user_bootstrap", int(k), reference, headline.criteria.estimand.population),
            "estimate": headline.found.estimate[k],
            "lo": found.lo[k],
            "hi": found.hi[k],
            "status": found.status[k],
            "reasons": ["descriptive"] if found.status[k] == "ok" else [found.reason[k]],
        }


def _weighed(headline: Headline) -> Iterator[Mapping[str, object]]:
    """Weighting for routing that was not random, among compared versions and on their common support.

    Against the declared reference, or the plain average where that one weighs versions by their sessions.
    """
    sample, compared = headline.sample, headline.compared
    place = np.full(sample.n_versions, -1)
    place[compared] = np.arange(len(compared))
    use = (place[sample.version] >= 0) & headline.found.kept[sample.stratum] & (sample.d > 0)
    contrast = constant_contrast(headline)
    reference = "uniform" if contrast is None else headline.criteria.estimand.reference
    # A ratio has no outcome of a single session, and chances of routing are not those of being drawn.
    why = "ratio_metric" if (sample.d[use] != 1).any() else UNWEIGHTED if headline.is_drawn else ""
    if why:
        for name in ESTIMATORS:
            for k in compared:
                row = _row(headline, name, int(k), reference, _POPULATION[name])
                yield {**row, "status": "unavailable", "reasons": [why]}
        return
    known = [headline.population.codes_of(name)[headline.use] for name in COVARIATES]
    categories = np.stack([headline.target[sample.stratum], *known], axis=1)[use]
    found = weigh_routing(
        sample.y[use],
        place[sample.version[use]],
        categories,
        sample.user[use].astype(np.int64),
        len(compared),
        logged=_logged(headline, use),
        contrast=contrast,
        alpha=headline.options.alpha,
    )
    for name, weighed in found.items():
        for at, k in enumerate(compared):
            yield {
                **_row(headline, name, int(k), reference, _POPULATION[name]),
                "estimate": weighed.estimate[at],
                "lo": weighed.lo[at],
                "hi": weighed.hi[at],
                "ess": weighed.ess[at],
                "largest_smd": weighed.largest_smd,
                "status": weighed.status[at],
                "reasons": list(weighed.reasons[at]) or ["descriptive"],
            }


def _logged(headline: Headline, use: np.ndarray) -> np.ndarray | None:
    """(N',) logged chance of the version that was served, if every session states one."""
    logged = headline.population.sessions["assignment_probability"].to_numpy()[headline.use][use].astype(float)
    return logged if len(logged) and (logged > 0).all() and (logged <= 1).all() else None
