"""Rows of ``analysis.estimators`` whose test is exact: every arrangement listed, or counted.

Belongs here: which sessions are listed, and when a test of them means something. Does not belong here:
the law of an arrangement (``inference/exact``), the studentized test of the headline, which is the one to
read (``inference/randomization``).

Only where sessions were assigned: an arrangement of versions is otherwise no draw of any lottery.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evalpipe.analysis.evidence.adjusted import Line
from evalpipe.analysis.evidence.headline import Bools, Floats, Headline, Ints
from evalpipe.inference.exact.blocks import block_test
from evalpipe.inference.exact.enumeration import enumerate_labels

_NAN = float("nan")


def listed_lines(headline: Headline) -> Iterator[Line]:
    """Net improvement with its exact p-value, not studentized, where all arrangements can be listed."""
    sample, compared, reference = headline.sample, headline.compared, headline.options.reference
    if headline.design != "randomized_session" or headline.is_drawn or reference == "model":
        return
    place = np.full(sample.n_versions, -1)
    place[compared] = np.arange(len(compared))
    counted = (place[sample.version] >= 0) & headline.found.kept[sample.stratum]
    if headline.options.population == "own_share" and (sample.d[counted] == 0).any():
        return  # whose shares count sessions that the list does not hold
    use = counted & (sample.d > 0)
    if (sample.d[use] != 1).any():
        return
    strata, stratum = np.unique(headline.target[sample.stratum[use]], return_inverse=True)
    own = headline.options.population == "own_share"
    # Of the comparison itself, so that what is tested is what it estimates, whoever declared the weights.
    weights = None if own else headline.found.weights[strata]
    found = enumerate_labels(
        sample.y[use],
        place[sample.version[use]],
        stratum,
        len(compared),
        len(strata),
        reference,
        "own_share" if own else "standard",
        weights,
    )
    if found.status != "ok":
        return
    for at, k in enumerate(compared):
        yield Line(
            "exact_permutation",
            int(k),
            reference,
            headline.criteria.estimand.population,
            float(found.observed[at]),
            _NAN,
            _NAN,
            "ok",
            ("descriptive",),
            float(found.p[at]),
            float(found.p_max[at]),
        )


def block_p(headline: Headline, y: Floats, is_target: Bools, stratum: Ints) -> float:
    """p-value of a version against the mean of its strata, on its own mix of work.

    Exact where the law of its total can be counted (for 0/1 outcomes Cochran, Mantel and Haenszel's test),
    else its normal limit; NaN where sessions were not assigned.

    Args:
        headline: The headline metric. y: (N,) outcomes. is_target: (N,). stratum: (N,) codes.
    """
    if headline.design != "randomized_session":
        return _NAN
    found = block_test(y, is_target, stratum)
    return found.p_exact if found.status == "ok" else found.p
