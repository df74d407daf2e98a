"""Contracts of layer 4, ``analysis``: estimates, pairs, strata, checks, gates, corrections.

Every row carries the measurement that made it, its window, reference and population, so that two
numbers can be compared only when they may be. A number that does not exist is null with a reason.
"""

from evalpipe.contracts.model import Column, Kind, Table

S, B, I32, I64, F64, TS, DATE, LIST = (
    Kind.STR, Kind.BOOL, Kind.I32, Kind.I64, Kind.F64, Kind.TIMESTAMP, Kind.DATE, Kind.STR_LIST,
)  # fmt: skip

STATUSES = ("ok", "suspect", "inconclusive", "unavailable")
VERDICTS = ("pass", "fail", "inconclusive")
DESIGNS = ("randomized_session", "randomized_user", "observational")
#: How a randomization p-value was found.
TEST_METHODS = ("exact", "table", "shuffle", "units", "gaussian")


def stamp_columns() -> tuple[Column, ...]:
    """Columns that lead every table made from one window under one criteria."""
    return (
        Column("as_of", DATE, "Day whose trailing window is scored.", nullable=False, key=True),
        Column("window_name", S, "Window: a number of days such as 28d, or all.", nullable=False, key=True),
        Column("window_start", DATE, "First day in the window.", nullable=False),
        Column("window_end", DATE, "Last day in the window.", nullable=False),
        Column("measurement", S, "Hash of extraction, outcomes and estimand.", nullable=False, key=True),
        Column("criteria_name", S, "Criteria file.", nullable=False),
        Column("criteria_version", S, "Its declared version.", nullable=False),
        Column("criteria_hash", S, "Hash of the whole file.", nullable=False),
    )


NET_IMPROVEMENT = Table(
    layer="analysis",
    name="net_improvement",
    grain="one row a metric, slice and version",
    meaning="Each version's shift against the named reference, with intervals, ranks and status.",
    sort=("as_of", "window_name", "measurement", "metric", "slice", "version"),
    columns=(
        *stamp_columns(),
        Column("metric", S, "Metric.", nullable=False, key=True),
        Column("slice", S, "'all', scenario=NAME (or task_type=NAME and the like), or support=STRATA: a group of strata that the same versions served.", nullable=False, key=True),
        Column("version", S, "Agent version, as criteria compare them.", nullable=False, key=True),
        Column("reference", S, "What the shift is measured against.", nullable=False),
        Column("population", S, "Traffic weights of the strata.", nullable=False),
        Column("estimator", S, "Estimator.", nullable=False),
        Column("design", S, "Assignment design that was used.", nullable=False, values=DESIGNS),
        Column("estimate", F64, "Net improvement, as a difference of means."),
        Column("lo", F64, "Lower end of the 95 % interval for this version alone."),
        Column("hi", F64, "Upper end."),
        Column("lo_sim", F64, "Lower end of the interval that holds for all versions at once."),
        Column("hi_sim", F64, "Upper end."),
        Column("se", F64, "User-clustered CR3 standard error.", low=0.0),
        Column("df", F64, "Bell-McCaffrey degrees of freedom.", low=0.0),
        Column("gstar", F64, "Effective number of clusters.", low=0.0),
        Column("p_perm", F64, "Studentized randomization p-value.", low=0.0, high=1.0),
        Column("n_permutations", I32, "Replicates behind it, or arrangements where all were listed.", low=0),
        Column("p_method", S, "How it was found: exact (every arrangement of versions was listed), table or shuffle (sessions drawn again), units (users drawn again), gaussian (the normal limit, which shuffles agreed with).", values=TEST_METHODS),
        Column("p_adj", F64, "Step-down adjusted p-value over versions.", low=0.0, high=1.0),
        Column("rank_lo", I32, "Best rank in the confidence set.", low=1),
        Column("rank_hi", I32, "Worst rank.", low=1),
        Column("letters", S, "Versions that share a letter cannot be told apart."),
        Column("theta", F64, "Mean outcome if all of the window's traffic were served by this version."),
        Column("theta_lo", F64, "Lower end of its interval."),
        Column("theta_hi", F64, "Upper end."),
        Column("raw_rate", F64, "Plain mean over the version's own sessions, weighted where sessions were drawn; descriptive."),
        Column("raw_rank", I32, "Rank of the plain mean; descriptive.", low=1),
        Column("n_sessions", I64, "Sessions of the version in the slice.", nullable=False, low=0),
        Column("n_users", I64, "Users (clusters) among them.", nullable=False, low=0),
        Column("deff", F64, "Design effect: CR3 over unclustered variance.", low=0.0),
        Column("support_share", F64, "Share of traffic in strata where every version was seen.", low=0.0, high=1.0),
        Column("missing_share", F64, "Share of sessions without a known outcome.", low=0.0, high=1.0),
        Column("mde", F64, "Smallest effect seen with 80 % power.", low=0.0),
        Column("alpha", F64, "Error rate of the intervals.", nullable=False),
        Column("seed", I64, "Seed, from the metric, the method, the window and the measurement.", nullable=False),
        Column("status", S, "ok, suspect, inconclusive or unavailable.", nullable=False, values=STATUSES),
        Column("reasons", LIST, "Reason codes behind the status.", nullable=False),
    ),
)  # fmt: skip

PAIRS = Table(
    layer="analysis",
    name="pairs",
    grain="one row a metric, slice and ordered pair of versions",
    meaning="Differences between versions and whether the order of the two is established.",
    sort=("as_of", "window_name", "measurement", "metric", "slice", "version", "other"),
    columns=(
        *stamp_columns(),
        Column("metric", S, "Metric.", nullable=False, key=True),
        Column("slice", S, "'all', scenario=NAME (or task_type=NAME and the like), or support=STRATA: a group of strata that the same versions served.", nullable=False, key=True),
        Column("version", S, "First version.", nullable=False, key=True),
        Column("other", S, "Second version.", nullable=False, key=True),
        Column("difference", F64, "First minus second."),
        Column("lo", F64, "Lower end of its 95 % interval."),
        Column("hi", F64, "Upper end."),
        Column("se", F64, "Standard error.", low=0.0),
        Column("df", F64, "Degrees of freedom.", low=0.0),
        Column("gstar", F64, "Effective number of clusters.", low=0.0),
        Column("newcombe_lo", F64, "Lower end of Newcombe's score interval of two plain counts; only where every session is of another user and counts 0 or 1, all are of one stratum, and one of the versions has fewer than 100.", low=-1.0, high=1.0),
        Column("newcombe_hi", F64, "Upper end.", low=-1.0, high=1.0),
        Column("n_successes", F64, "Sessions of the first that count 1, where newcombe_lo is given.", low=0.0),
        Column("n_sessions", F64, "Sessions of the first, likewise.", low=0.0),
        Column("n_other_successes", F64, "Those of the second that count 1.", low=0.0),
        Column("n_other_sessions", F64, "Sessions of the second.", low=0.0),
        Column("is_better", B, "Step-down: the first is better than the second (after the metric's direction).", nullable=False),
        Column("is_indistinguishable", B, "Neither order is established.", nullable=False),
    ),
)  # fmt: skip

STRATA = Table(
    layer="analysis",
    name="strata",
    grain="one row a stratum and version, for the headline metric",
    meaning="Cell means and weights behind the headline estimate, and which strata were dropped.",
    sort=("as_of", "window_name", "measurement", "metric", "stratum", "version"),
    columns=(
        *stamp_columns(),
        Column("metric", S, "Metric.", nullable=False, key=True),
        Column("stratum", S, "Stratum label.", nullable=False, key=True),
        Column("version", S, "Version.", nullable=False, key=True),
        Column("n_sessions", I64, "Sessions in the cell.", nullable=False, low=0),
        Column("n_users", I64, "Users in the cell.", nullable=False, low=0),
        Column("mean", F64, "Mean outcome in the cell."),
        Column("weight", F64, "Weight of the stratum; null where it was dropped.", low=0.0, high=1.0),
        Column("share", F64, "Share of the stratum's sessions that the version served.", low=0.0, high=1.0),
        Column("is_kept", B, "Whether the stratum is in the common support.", nullable=False),
        Column("merged_into", S, "Parent stratum it was merged into."),
    ),
)  # fmt: skip

DIAGNOSTICS = Table(
    layer="analysis",
    name="diagnostics",
    grain="one row a check of a window's design or data",
    meaning="Checks behind the causal label, each with its value, limit and verdict; passed ones are shown too.",
    sort=("as_of", "window_name", "measurement", "check_name", "subject"),
    columns=(
        *stamp_columns(),
        Column("check_name", S, "Check.", nullable=False, key=True),
        Column("subject", S, "What it was made on.", nullable=False, key=True),
        Column("value", F64, "Value."),
        Column("bound", F64, "Limit."),
        Column("status", S, "ok, suspect, inconclusive or unavailable.", nullable=False, values=STATUSES),
        Column("detail", S, "One sentence.", nullable=False),
    ),
)  # fmt: skip

GATES = Table(
    layer="analysis",
    name="gates",
    grain="one row a gate criterion and decision",
    meaning="Gate decisions, appended and never changed.",
    sort=("decided_on", "candidate", "baseline", "criterion", "decision_id"),
    columns=(
        Column("decision_id", S, "Digest of everything the decision was made from.", nullable=False, key=True),
        Column("criterion", S, "Name of the criterion in the criteria file.", nullable=False, key=True),
        *stamp_columns(),
        Column("decided_on", DATE, "As-of day of the analysis it was decided on.", nullable=False),
        Column("candidate", S, "Version that may ship.", nullable=False),
        Column("baseline", S, "Version it is compared with.", nullable=False),
        Column("metric", S, "Metric.", nullable=False),
        Column("kind", S, "non_inferiority or superiority.", nullable=False),
        Column("margin", F64, "Margin, in units of the metric.", nullable=False, low=0.0),
        Column("estimate", F64, "Candidate minus baseline, signed so that positive is better; reports turn it back to the metric's own sign."),
        Column("lower", F64, "One-sided 95 % lower bound, signed likewise; with decided_before it holds on all days of decision."),
        Column("upper", F64, "One-sided 95 % upper bound, signed likewise; with decided_before likewise."),
        Column("df", F64, "Degrees of freedom, the smaller of Bell-McCaffrey and G*.", low=0.0),
        Column("score_lower", F64, "One-sided 95 % lower bound of Miettinen and Nurminen from two plain counts, beside the bound that decides; where analysis.pairs has Newcombe's interval and no other day was decided on.", low=-1.0, high=1.0),
        Column("p_score", F64, "Score test (Farrington and Manning) of a loss of the margin or more, likewise; non_inferiority only.", low=0.0, high=1.0),
        Column("verdict", S, "pass, fail or inconclusive.", nullable=False, values=VERDICTS),
        Column("reasons", LIST, "Reason codes of an open verdict; decided_before on any that another as-of day preceded.", nullable=False),
    ),
)  # fmt: skip

#: Why a published number moved.
CORRECTION_REASONS = ("recomputed", "erasure")

CORRECTIONS = Table(
    layer="analysis",
    name="corrections",
    grain="one row a published number that changed",
    meaning="Numbers that moved after they were published, with old and new value and the inputs of both.",
    sort=("as_of", "window_name", "measurement", "metric", "slice", "version", "new_receipt"),
    columns=(
        Column("as_of", DATE, "As-of day of the number.", nullable=False, key=True),
        Column("window_name", S, "Window.", nullable=False, key=True),
        Column("measurement", S, "Measurement.", nullable=False, key=True),
        Column("metric", S, "Metric.", nullable=False, key=True),
        Column("slice", S, "Slice.", nullable=False, key=True),
        Column("version", S, "Version.", nullable=False, key=True),
        Column("old_estimate", F64, "Estimate before."),
        Column("new_estimate", F64, "Estimate now."),
        Column("old_n_sessions", I64, "Sessions before.", low=0),
        Column("new_n_sessions", I64, "Sessions now.", low=0),
        Column("old_receipt", S, "Digest of the inputs before.", nullable=False, key=True),
        Column("new_receipt", S, "Digest of the inputs now.", nullable=False, key=True),
        Column("reason", S, "Why the number moved: its window was computed anew, or sessions in it were erased.", nullable=False, values=CORRECTION_REASONS),
    ),
)  # fmt: skip

SCORECARD = Table(
    layer="analysis",
    name="scorecard",
    grain="one row a version and metric",
    meaning="The scorecard of one agent version, for a release manager.",
    sort=("version", "as_of", "window_name", "measurement", "metric", "slice"),
    columns=(
        *NET_IMPROVEMENT.columns,
        Column("n_better_than", I32, "Versions that it is better than.", nullable=False, low=0),
        Column("n_worse_than", I32, "Versions that are better than it.", nullable=False, low=0),
        Column("n_tied_with", I32, "Versions that it cannot be told apart from.", nullable=False, low=0),
    ),
)  # fmt: skip

ABLATION = Table(
    layer="analysis",
    name="ablation",
    grain="one row a family of signals and version",
    meaning="How versions stand by signals of the environment alone, by what people say alone, and by both.",
    sort=("as_of", "window_name", "measurement", "mask", "version"),
    columns=(
        *stamp_columns(),
        Column("mask", S, "Signals that count, each with its weight of the catalogue: all, hard or semantic.", nullable=False, key=True, values=("all", "hard", "semantic")),
        Column("version", S, "Agent version.", nullable=False, key=True),
        Column("n_sessions", I64, "Settled sessions of the version.", nullable=False, low=0),
        Column("estimate", F64, "Shift of the mean signal score against the reference; higher is better."),
        Column("lo", F64, "Lower end of its 95 % interval."),
        Column("hi", F64, "Upper end."),
        Column("place", I32, "Place in the order of estimates, from 1; null, as what follows, where too little traffic is common for an order.", low=1),
        Column("share_of_shift", F64, "Part of the version's shift by all signals that these make; parts of the families add up to 1."),
        Column("kendall_tau", F64, "Kendall's tau-b of this order and that by all signals; the same on all rows of a mask.", low=-1.0, high=1.0),
        Column("top_overlap", F64, "Share of the three versions ahead that are ahead by all signals too; null with three versions or fewer.", low=0.0, high=1.0),
        Column("status", S, "ok, suspect, inconclusive or unavailable.", nullable=False, values=STATUSES),
        Column("reasons", LIST, "Reason codes behind the status.", nullable=False),
    ),
)  # fmt: skip

TABLES = (NET_IMPROVEMENT, PAIRS, STRATA, DIAGNOSTICS, ABLATION, GATES, CORRECTIONS, SCORECARD)
