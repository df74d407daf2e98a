"""What was done with a window, why, and what may not be concluded from it, in words.

Belongs here: the sentences, from criteria and what the checks and the comparison found. Does not
belong here: choosing (``inference`` and ``score`` choose; this says what they chose). A reader of the
warehouse never has to know the list of methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evalpipe.analysis.design import Examined
from evalpipe.analysis.rows import Scored
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.criteria.model import Criteria
from evalpipe.criteria.populations import BUSINESS, FIXED, is_weighted
from evalpipe.inference import Check
from evalpipe.inference.power import smallest_effect

PLAN = "plan"

#: What may not be concluded where a check that stops no number did not pass.
WARNINGS = {
    "carry_over": "that a version would do so for users who have met no other (carry_over);",
    "feedback_loop": "anything from shares, plain means or trends over epochs, which follow earlier numbers "
    "(feedback_loop);",
}

_REFERENCES = {
    "uniform": "the plain average over the compared versions, so it does not move with routing shares",
    "loo_uniform": "the plain average over the other versions",
    "stratum_mean": "all sessions of the same stratum, the version's own included, so it shrinks with its share",
    "control_pool": "the sessions of the other versions in the same stratum",
}
_POPULATIONS = {
    "traffic": "the window's traffic",
    "own_share": "each version's own mix of work, so versions are not ranked",
    "equal": "strata of equal weight",
    "overlap": "what all versions serve in common, strata where one is rare counting less",
    BUSINESS: "the shares of work that the criteria declare",
}
#: What may not be concluded, by population; one with declared weights stands for all of them.
_MIXES = {
    "own_share": "a comparison of versions, each of which is scored on its own mix of work;",
    "overlap": "what all of the window's traffic would give, since work that a version rarely serves counts less;",
    BUSINESS: "what this window's traffic would give, since its mix is not the one that is weighed;",
}
_UNITS = {
    "randomized_session": "sessions were assigned, so labels of sessions are drawn again within strata",
    "randomized_user": "users kept their version, so users are drawn again within routing epochs",
    "observational": "nothing is known to be random, so there is no randomization p-value",
}
_ENGINES = {
    "exact": "every arrangement was listed",
    "table": "drawn as tables, which has the law of shuffling",
    "shuffle": "by shuffling",
    "units": "by shuffling users",
    "gaussian": "by the normal limit, which shuffles agreed with",
}


def plan_checks(
    headline: Scored | None, examined: Examined, criteria: Criteria, warned: Sequence[str] = ()
) -> tuple[Check, ...]:
    """What was picked for the headline metric and why, one check a decision.

    Args:
        headline: The headline metric over all traffic; ``None`` without sessions.
        examined: The design after its checks.
        criteria: Criteria in force.
        warned: Names of checks that did not pass and stop no number: :data:`WARNINGS`.

    Returns:
        Checks named :data:`PLAN`, which test nothing; their subject names the decision.
    """
    if headline is None or headline.comparison is None:
        why = headline.why_none if headline else "absent"
        return (_say("claims", f"Nothing can be concluded: there is no comparison ({why})."),)
    return (
        _say("estimate", _estimate(headline, criteria)),
        _say("interval", _interval(headline)),
        _say("test", _test(headline, examined)),
        _say("order", _order(headline, examined, criteria)),
        _say("routing", _routing(examined)),
        _say("claims", " ".join(_claims(headline, examined, criteria, warned))),
    )


def _say(subject: str, detail: str) -> Check:
    return Check(PLAN, subject, np.nan, np.nan, "ok", detail)


def _estimate(headline: Scored, criteria: Criteria) -> str:
    estimand = criteria.estimand
    reference = _REFERENCES.get(estimand.reference, f"the version {estimand.reference.partition(':')[2]}")
    strata = " x ".join(estimand.strata)
    metric = BY_NAME[headline.metric.name]
    drawn = ", each session for as many as it was drawn from" if estimand.sampling else ""
    kind = "Ratios of sums" if metric.denominator != "1" and metric.conditional_on else "Means"
    return (
        f"{kind} in cells of version and {strata}, weighted by {_population(estimand.population)}{drawn}, against "
        f"{reference}; strata because routing may follow the kind of work, and none that the version changes."
    )


def _population(name: str) -> str:
    return _POPULATIONS.get(name) or f"the shares of work that the criteria hold frozen as {name.removeprefix(FIXED)}"


def _interval(headline: Scored) -> str:
    found = headline.comparison
    if found is None or not np.isfinite(found.se).any():
        return "None: no outcome varies, or no version is compared."
    deff = float(np.nanmax(found.deff)) if np.isfinite(found.deff).any() else float("nan")
    return (
        "CR3 by user with Bell-McCaffrey degrees of freedom, since sessions of a user may be alike: "
        f"{deff:.2f} times the variance of independent sessions at most, and at least "
        f"{np.nanmin(found.df):.0f} degrees of freedom."
    )


def _test(headline: Scored, examined: Examined) -> str:
    found = headline.comparison
    text = f"{_UNITS[examined.design][0].upper()}{_UNITS[examined.design][1:]}"
    if found is None or not np.isfinite(found.p_perm).any():
        given = "" if examined.design == "observational" else " None is given here: see the reasons of the rows."
        return f"{text}.{given}"
    how = _ENGINES.get(found.engine, found.engine)
    return f"{text}, studentized; {how}. Where it and the interval disagree, the interval decides."


def _order(headline: Scored, examined: Examined, criteria: Criteria) -> str:
    found = headline.comparison
    if found is None or not (found.rank_lo > 0).any():
        why = "" if examined.is_ordered else " Versions differ in what no stratum adjusts for, so none is put first."
        return f"None: no order is established over all traffic, and no rank is given.{why}"
    if not (found.pair_se > 0).any():
        return "None: no outcome varies, so no pair is tested."
    compared = np.flatnonzero(found.rank_lo > 0)
    k = len(compared)
    n_known = int(found.pair_better.sum())
    return (
        f"Step-down over {k * (k - 1)} ordered pairs at {criteria.estimand.alpha:g} together; {n_known} orders are "
        f"established of {k * (k - 1) // 2} pairs, the others cannot be told apart."
    )


def _routing(examined: Examined) -> str:
    if examined.design != "observational":
        return "Strata suffice, because versions were assigned at random within them; other estimators are descriptive."
    return (
        "Versions were not assigned at random: beside the estimate read aipw in analysis.estimators, or overlap "
        "where aipw is not ok, and how much hidden routing would explain it in analysis.sensitivity."
    )


def _claims(headline: Scored, examined: Examined, criteria: Criteria, warned: Sequence[str]) -> Iterator[str]:
    """What may not be concluded."""
    found = headline.comparison
    yield "May not be concluded:"
    if examined.failed:
        yield f"anything to be decided on, since {', '.join(examined.failed)} failed;"
    if examined.design == "observational":
        yield "that a version causes a difference;"
    if outside := [rule.name for rule in criteria.estimand.sampling if rule.kept == 0]:
        yield f"anything about {', '.join(outside)}, of which nothing was kept;"
    for check in dict.fromkeys(warned):
        yield WARNINGS[check]
    if found is not None:
        if not (found.rank_lo > 0).any():
            yield "that one version is better than another;"
        elif not _has_single_leader(found.rank_hi):
            yield "that there is a single leader;"
        if found.support_share < 1.0:
            yield f"anything about the {1 - found.support_share:.1%} of traffic where not every version has enough "
            yield "sessions and users;"
        gap = _widest_pair(found.pair_se, criteria.estimand.alpha)
        if headline.metric.is_rate and np.isfinite(gap):
            yield "that two versions are equal because they are not told apart: of differences below "
            yield f"{gap:.1%} fewer than four in five are found;"
    if criteria.estimand.reference == "uniform":
        yield "a trend against a window with other versions, whose average is another;"
    if told := _MIXES.get(BUSINESS if is_weighted(criteria.estimand.population) else criteria.estimand.population):
        yield told
    yield "and an effect in one slice or side metric, which are explored and not tested together."


def _widest_pair(pair_se: NDArray[np.float64], alpha: float) -> float:
    """Smallest difference that every pair would show in four of five windows; NaN where no pair has an error."""
    known = pair_se[np.isfinite(pair_se) & (pair_se > 0)]
    return float(smallest_effect(known.max(), alpha)) if known.size else np.nan


def _has_single_leader(rank_hi: np.ndarray) -> bool:
    return bool((rank_hi == 1).any())
