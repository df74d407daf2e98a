"""What goes into a comparison and what comes out of it.

Belongs here: the frozen dataclasses of the package's interface. Does not belong here: any
computation. Inputs are plain arrays, one entry a session; outputs are arrays, one entry a version
(K), a stratum (S) or both. NaN in an output means that the number does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]

REFERENCES = ("uniform", "stratum_mean", "control_pool", "loo_uniform", "model")
POPULATIONS = ("traffic", "own_share", "equal", "overlap", "standard")
DESIGNS = ("randomized_session", "randomized_user", "observational")


@dataclass(frozen=True, slots=True)
class Sample:
    """Sessions of one metric, one window and one slice.

    Attributes:
        y: Numerators, (N,) float64.
        d: Denominators, (N,) float64; 1 unless the metric is a ratio, 0 where the session says
            nothing about the metric (it still counts in the traffic weights).
        version: Codes 0..n_versions-1, (N,) int32.
        stratum: Codes 0..n_strata-1, (N,) int32. Codes follow the order of the labels: ties are
            broken by code. A parent stratum has a code of its own, with or without sessions.
        user: Cluster codes from 0, (N,) int32. A session without a user is its own cluster.
        epoch: Routing epoch codes from 0, (N,) int32.
        n_versions: K, versions without sessions included.
        n_strata: S, strata without sessions included.
        weight: Sampling weights, (N,) float64, or None for 1.
        y_low, y_high: Declared range of a session's ``y``; values outside are an error.
    """

    y: Floats
    d: Floats
    version: Codes
    stratum: Codes
    user: Codes
    epoch: Codes
    n_versions: int
    n_strata: int
    weight: Floats | None = None
    y_low: float = -np.inf
    y_high: float = np.inf

    def take(self, use: Bools) -> Sample:
        """Some of the sessions, each with its weight; codes stay those of the whole.

        Args:
            use: (N,) sessions to take.
        """
        return replace(
            self,
            y=self.y[use],
            d=self.d[use],
            version=self.version[use],
            stratum=self.stratum[use],
            user=self.user[use],
            epoch=self.epoch[use],
            weight=None if self.weight is None else self.weight[use],
        )


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard population: declared weights of groups of strata, as in direct standardisation.

    Inside a group the strata share its weight by the traffic of the sample at hand.

    Attributes:
        weight: (G,) weights, not negative; a weight whose strata have no traffic is not covered.
        group: (S,) group of each stratum, or -1 for one outside the population.
    """

    weight: Floats
    group: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Options:
    """What is estimated, under which design, and when a number is withheld.

    Attributes:
        reference: One of :data:`REFERENCES`; ``model`` needs ``reference_index``.
        reference_index: Version code that ``reference="model"`` compares with.
        population: One of :data:`POPULATIONS`: the weights of the strata; ``standard`` needs ``standard``.
        standard: Declared weights.
        design: One of :data:`DESIGNS`: how versions were assigned.
        alpha: Error rate of the two-sided intervals.
        min_users_per_cell: Distinct users below which a cell does not count.
        min_sessions_per_version: Sessions with a denominator below which a version leaves.
        min_support_share: Traffic share of the common support below which no decision is made.
        permutations: Replicates of the randomization test.
        draws: Gaussian draws behind simultaneous intervals, adjusted p-values and rank sets.
        seed: Non-negative seed; every stream is spawned from it.
        parents: (S,) code of the parent stratum or -1; None when no stratum has a parent.
        is_higher_better: Direction of the metric; it decides ranks and ``pair_better`` only.
        is_rate: Whether the mean lies in [0, 1], so that the limits of ``theta`` must too.
        power: Power of the smallest detectable effect.
        shuffle_budget: Session draws (sessions x replicates) above which the shuffling engine is
            replaced by its Gaussian limit, cross-checked.
        threads: Worker threads of the table sampler; no result depends on it.
    """

    reference: str = "uniform"
    reference_index: int | None = None
    population: str = "traffic"
    design: str = "randomized_session"
    alpha: float = 0.05
    min_users_per_cell: int = 2
    min_sessions_per_version: int = 1
    min_support_share: float = 0.8
    permutations: int = 9_999
    draws: int = 10_000
    seed: int = 0
    parents: Codes | None = None
    is_higher_better: bool = True
    is_rate: bool = False
    power: float = 0.8
    shuffle_budget: float = 5e8
    threads: int = 1
    standard: Standard | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is known about K versions on one metric.

    Arrays are (K,) unless said otherwise. A version that left the comparison has NaN (0 for ranks,
    "" for letters), status ``unavailable`` and a reason.

    Attributes:
        estimate: Net improvement against the reference, in the metric's own direction.
        lo, hi: Pointwise interval. lo_sim, hi_sim: interval that holds for all versions at once.
        se, df, gstar: CR3 standard error, Bell-McCaffrey degrees of freedom, effective clusters.
        p_perm: Randomization p-value. p_normal: its large-sample value from the same statistic.
        p_adj: Step-down p-value over versions.
        rank_lo, rank_hi: Simultaneous rank confidence set, int64; 0 = unavailable.
        letters: Versions that share a letter are indistinguishable.
        theta, theta_lo, theta_hi: Mean if all traffic were served by the version.
        raw_rate: Plain mean over the version's own sessions; descriptive.
        deff: Design effect, CR3 over unclustered variance. mde: smallest detectable effect.
        n_sessions: Sessions with a positive denominator. n_users: users among them.
        n_permutations: Replicates (or arrangements, when enumerated) behind ``p_perm``.
        engine: How the randomization test was computed: table, shuffle, gaussian, units, exact or
            none. test_reasons: why it is missing or approximate.
        support_share: Traffic share in the common support; NaN when nothing could be compared.
        kept: (S,) whether the stratum's sessions are in the common support, itself or by merging.
        merged_into: (S,) stratum that it was merged into, or -1.
        weights: (S,) traffic weight of each estimation stratum; NaN where dropped or merged away.
        cell_mean, cell_n, cell_users: (K, S), after merging; a stratum that was merged away shows
            what it held itself.
        cov: (K, K) covariance of ``estimate``. theta_cov: (K, K) covariance of ``theta``.
        pair_diff, pair_se, pair_df, pair_gstar, pair_lo, pair_hi: (K, K) theta_i - theta_j.
        newcombe_lo, newcombe_hi: (K, K) score interval of the same difference, where plain counts of a
            small independent sample are all that there is to it; NaN elsewhere.
        plain_successes, plain_sessions: (K,) the counts behind them.
        pair_better: (K, K) whether i is established to be better than j (after the direction).
        status, reasons: Per version.
    """

    estimate: Floats
    lo: Floats
    hi: Floats
    lo_sim: Floats
    hi_sim: Floats
    se: Floats
    df: Floats
    gstar: Floats
    p_perm: Floats
    p_normal: Floats
    p_adj: Floats
    rank_lo: NDArray[np.int64]
    rank_hi: NDArray[np.int64]
    letters: list[str]
    theta: Floats
    theta_lo: Floats
    theta_hi: Floats
    raw_rate: Floats
    deff: Floats
    mde: Floats
    n_sessions: NDArray[np.int64]
    n_users: NDArray[np.int64]
    n_permutations: int
    engine: str
    test_reasons: tuple[str, ...]
    support_share: float
    kept: Bools
    merged_into: NDArray[np.int64]
    weights: Floats
    cell_mean: Floats
    cell_n: NDArray[np.int64]
    cell_users: NDArray[np.int64]
    cov: Floats
    theta_cov: Floats
    pair_diff: Floats
    pair_se: Floats
    pair_df: Floats
    pair_gstar: Floats
    pair_lo: Floats
    pair_hi: Floats
    newcombe_lo: Floats
    newcombe_hi: Floats
    plain_successes: Floats
    plain_sessions: Floats
    pair_better: Bools
    status: list[str]
    reasons: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class GateResult:
    """Verdict of one gate.

    Attributes:
        verdict: pass, fail or inconclusive.
        lower, upper: One-sided bounds; NaN when there is no estimate.
        df: Degrees of freedom that were used, the smaller of Bell-McCaffrey and G*.
        reasons: Why the verdict is open; empty when it is not.
    """

    verdict: str
    lower: float
    upper: float
    df: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One design check: its value, its limit and its verdict.

    Attributes:
        check: Name, such as srm, balance, smd, stickiness or positivity.
        subject: What it was made on.
        value, limit: The number that was compared with the limit; NaN when there is none.
        status: ok, suspect or unavailable.
        detail: One sentence.
    """

    check: str
    subject: str
    value: float
    limit: float
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class DesignReport:
    """Design checks of a window and the design that may be assumed after them.

    Attributes:
        design: The declared design, or ``randomized_user`` if users turned out to be sticky, or
            ``observational`` if a check failed.
        is_suspect: Whether a check failed, so that no gate may pass on these numbers.
        checks: In a fixed order, passed ones included.
    """

    design: str
    is_suspect: bool
    checks: tuple[Check, ...] = field(default_factory=tuple)
