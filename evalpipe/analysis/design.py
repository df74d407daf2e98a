"""How versions were assigned: what criteria declare, what logs say, and whether the data agree.

Belongs here: preparing the design checks and reading off the design that may be assumed. Does not
belong here: their statistics (``inference``) or their rows (``diagnostics.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe.analysis.ledger import SHARE_TOLERANCE
from evalpipe.analysis.population import EPOCH, Population, mergeable_parents
from evalpipe.analysis.stamp import digest
from evalpipe.criteria.model import EstimandCriteria
from evalpipe.criteria.rules import AS_LOGGED
from evalpipe.inference import Check, Options, design_checks

#: Pre-treatment columns that must be spread alike over the versions of a stratum.
COVARIATES = ("language",)
#: Permutations of a balance test among users; its limit of 0.01 needs no more.
CHECK_PERMUTATIONS = 1_999
_SAME = 1e-6

BALANCE = "balance"

#: Checks that contradict an assignment at random. Where none was claimed a failed one tells what a
#: difference between versions may come from, and a gate does not decide on it either.
CONTRADICTING = ("srm", BALANCE, "multiple_exposure", "non_compliance")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Examined:
    """The design after the checks.

    Attributes:
        design: Design that may be assumed.
        failed: Names of the failed checks, which are the reasons on every row and make it suspect.
        noted: Names of checks that did not pass where nothing was said to be random: reasons, no more.
        checks: All checks, passed ones included, that of the assignment first.
    """

    design: str
    failed: tuple[str, ...]
    noted: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether versions may be ranked.

        Observed traffic is adjusted for strata alone. Where it is known to differ in something else that
        was there before the agent acted, that something orders the versions as well as they do.
        """
        return not (self.design == "observational" and BALANCE in self.noted)


def examine(population: Population, estimand: EstimandCriteria, known: Sequence[Check] = ()) -> Examined:
    """Check the design of a window on all of its sessions, whatever their outcomes.

    Args:
        population: Sessions of the window.
        estimand: Declared design, and who is compared.
        known: Checks that the assignment ledger allows (``ledger.py``).

    Returns:
        The design that may be assumed. A log that says users were assigned overrules a declared
        assignment of sessions: treating users as sessions makes errors too small. Where nothing is
        declared (``as_logged``) only a log that states an assignment of every session makes the
        window randomized.
    """
    declared = _declared(population, estimand.design)
    if not population.n:
        return Examined(declared, (), (), ())
    enough = np.bincount(population.version, minlength=len(population.versions)) >= estimand.min_sessions_per_version
    use = enough[population.version]
    shares, why = _shares(population, enough)
    nothing, one = np.zeros(population.n), np.ones(population.n)
    sample = population.sample(nothing, one, use)
    options = Options(
        design=declared,
        min_users_per_cell=estimand.min_users_per_cell,
        min_sessions_per_version=estimand.min_sessions_per_version,
        min_support_share=estimand.min_support_share,
        permutations=CHECK_PERMUTATIONS,
        seed=int.from_bytes(digest("design", declared)) >> 1,
        parents=mergeable_parents(population, estimand.min_sessions_per_version),
    )
    covariates = {name: population.codes_of(name)[use] for name in COVARIATES}
    report = design_checks(sample, options, shares=shares, covariates=covariates, known=known)
    failed = _names(report.checks, "suspect")
    noted = _names(report.checks, "inconclusive") if declared == "observational" else ()
    is_told = any(check.check == "srm" for check in known)
    checks = (_assignment(population, estimand.design, declared, "" if is_told else why), *report.checks)
    return Examined(report.design, failed, noted, checks)


def _names(checks: tuple[Check, ...], status: str) -> tuple[str, ...]:
    found = (check.check for check in checks if check.status == status and check.check in CONTRADICTING)
    return tuple(dict.fromkeys(found))


def _declared(population: Population, declared: str) -> str:
    if declared == AS_LOGGED:
        # A window of which a part is not accounted for was not randomized as a whole.
        is_logged = population.n > 0 and bool(_logged(population).all())
        declared = "randomized_session" if is_logged else "observational"
    units = set(population.sessions["assignment_unit"].drop_nulls())
    return "randomized_user" if declared == "randomized_session" and "user" in units else declared


def _logged(population: Population) -> pl.Series:
    """Whether a session's log states a lottery: a policy, or a probability that is one.

    A probability of 1 is a rule, not a lottery, whatever the policy calls itself.
    """
    probability = population.sessions["assignment_probability"]
    has_policy = population.sessions["assignment_policy"].is_not_null()
    is_drawn = (probability > 0.0) & (probability < 1.0)
    return (has_policy & probability.is_null()) | is_drawn.fill_null(value=False)


def _assignment(population: Population, written: str, declared: str, why: str) -> Check:
    """Where the claim that versions were assigned at random comes from."""
    logged = _logged(population)
    share = float(logged.sum()) / population.n
    shown = "all" if logged.all() else f"{int(logged.sum())} of {population.n}"
    if written == "observational":
        detail = "Declared as not random: a difference may have other causes than the version."
    elif written == AS_LOGGED and declared == "observational":
        told = f"Only {shown} sessions log" if logged.any() else "No session logs"
        detail = f"{told} a random assignment and none is declared, so the traffic counts as observed."
    elif written == AS_LOGGED:
        detail = "Every session logs an assignment; that it was random is logged, not verified."
    elif not logged.any():
        detail = f"Design {written} is declared in the criteria, not logged and not verified."
    else:
        detail = f"Design {written} is declared in the criteria, not verified; {shown} sessions log an assignment."
    if declared != written and declared == "randomized_user":
        detail += " The log says that users were assigned, so users are permuted."
    if declared != "observational" and why:
        detail += f" {why}"
    return Check("assignment", "window", share, np.nan, "ok", detail)


def _shares(population: Population, enough: NDArray[np.bool_]) -> tuple[Floats | None, str]:
    """Configured shares (epochs, K) from logged probabilities, or ``None`` and why not.

    A session logs only the probability of the version that it got. The shares of an epoch are
    known if every session logs one, all sessions of a version log the same, and these sum to 1.
    Versions that are not compared drop out and the others keep their proportions.
    """
    cells = population.sessions.group_by(EPOCH, "version").agg(
        pl.col("assignment_probability").mean().alias("share"),
        (pl.col("assignment_probability").max() - pl.col("assignment_probability").min()).alias("spread"),
        pl.col("assignment_probability").is_null().any().alias("is_open"),
    )
    if cells["is_open"].any():
        return None, ""
    if float(cells.select(pl.col("spread").max()).item()) > _SAME:
        return None, "Logged probabilities vary within a version and epoch, so shares are not checked."
    sums = cells.group_by(EPOCH).agg(pl.col("share").sum())["share"]
    if ((sums - 1.0).abs() > SHARE_TOLERANCE).any():
        return None, "Logged probabilities of an epoch's versions do not sum to 1, so shares are not checked."
    shares = np.zeros((len(population.epochs), len(population.versions)))
    for epoch, version, share in cells.select(EPOCH, "version", "share").iter_rows():
        shares[population.epochs.index(epoch), population.versions.index(version)] = share
    shares *= enough
    totals = shares.sum(axis=1, keepdims=True)
    # An epoch that only versions with too few sessions were in holds no session of the sample.
    return np.where(totals > 0, shares / np.where(totals > 0, totals, 1.0), 1.0 / shares.shape[1]), ""
