"""Contracts of what stands beside an estimate in layer 4: other estimators, what could overturn a
number, waiting times, nights, movement, attempts, tasks that two versions share, signals corrected by reviews.

None of these tables ranks a version or decides a gate: ``analysis.net_improvement`` does.
"""

from evalpipe.contracts.model import Column, Kind, Table
from evalpipe.contracts.tables.analysis import STATUSES, stamp_columns

S, B, I64, F64, DATE, LIST = Kind.STR, Kind.BOOL, Kind.I64, Kind.F64, Kind.DATE, Kind.STR_LIST

#: Which sessions a time is of; never mixed and never averaged over.
TIME_POPULATIONS = ("all_attempts", "autonomous_success", "assisted_success", "terminal_failure")

_METRIC = Column("metric", S, "Metric, the headline one.", nullable=False, key=True)
_VERSION = Column("version", S, "Version.", nullable=False, key=True)
_STATUS = (
    Column("status", S, "ok, suspect, inconclusive or unavailable.", nullable=False, values=STATUSES),
    Column("reasons", LIST, "Reason codes behind the status.", nullable=False),
)


def _limits(rate: str) -> tuple[Column, Column]:
    """Interval of a rate of attempts or tasks."""
    return (
        Column(f"{rate}_lo", F64, "Lower end of its Wilson interval, clustered by user or task; null with one of these.", low=0.0, high=1.0),
        Column(f"{rate}_hi", F64, "Upper end.", low=0.0, high=1.0),
    )  # fmt: skip


ESTIMATORS = Table(
    layer="analysis",
    name="estimators",
    grain="one row an estimator and version, for the headline metric over all traffic",
    meaning="What other estimators say of the headline metric. Descriptive: none of them ranks or decides.",
    sort=("as_of", "window_name", "measurement", "metric", "estimator", "version"),
    columns=(
        *stamp_columns(),
        _METRIC,
        Column("estimator", S, "Estimator.", nullable=False, key=True),
        _VERSION,
        Column("reference", S, "What the shift is measured against.", nullable=False),
        Column("population", S, "Traffic that it speaks of.", nullable=False),
        Column("estimate", F64, "Shift against the reference."),
        Column("lo", F64, "Lower end of its 95 % interval, where it has one."),
        Column("hi", F64, "Upper end."),
        Column("ess", F64, "Effective number of sessions after weighting.", low=0.0),
        Column("largest_smd", F64, "Largest standardized difference that weights leave between two versions in what routing is modelled by. The largest of many: in small groups chance alone leaves more than the usual guide of 0.1. The same for all versions; ipw, aipw (its weights) and overlap only.", low=0.0),
        Column("p", F64, "p-value of its own test, sessions assigned within strata: of exact_permutation and of seed004.net_improvement.", low=0.0, high=1.0),
        Column("p_adj", F64, "The same against the largest of all versions; exact_permutation only.", low=0.0, high=1.0),
        *_STATUS,
    ),
)  # fmt: skip

SENSITIVITY = Table(
    layer="analysis",
    name="sensitivity",
    grain="one row a version, for the headline metric over all traffic",
    meaning="How much error of signals, hidden routing or unknown outcomes a net improvement bears.",
    sort=("as_of", "window_name", "measurement", "metric", "version"),
    columns=(
        *stamp_columns(),
        _METRIC,
        _VERSION,
        Column("error_rate_gap", F64, "Smallest difference in signal error rates between versions that could explain the whole effect; with a uniform reference.", low=0.0),
        Column("e_value", F64, "Risk ratio that a hidden cause needs with both version and outcome to explain the estimate away.", low=1.0),
        Column("e_value_limit", F64, "The same for the limit of the interval nearer to no effect; 1 where the interval holds it.", low=1.0),
        Column("gamma", F64, "Largest odds of hidden routing under which the version still differs from its reference, in the direction of the estimate, by a two-sided test at alpha; for 0/1 outcomes, one control and sessions that are routed one by one.", low=1.0),
        Column("heterogeneity_p", F64, "Whether effects of strata differ (Cochran's Q on variances clustered by user; that strata share users is left out of account).", low=0.0, high=1.0),
        Column("interaction_p", F64, "Whether they differ in sign (Gail and Simon, 1985), on the same variances.", low=0.0, high=1.0),
        Column("simpson", S, "How the plain gap and the net improvement disagree on the sign; null where they do not.", values=("reversal", "sign_differs", "uniform_reversal")),
        Column("worst_lo", F64, "Net improvement if all unknown outcomes went against the version."),
        Column("worst_hi", F64, "Net improvement if all went for it."),
        *_STATUS,
    ),
)  # fmt: skip

DURATIONS = Table(
    layer="analysis",
    name="durations",
    grain="one row a population of sessions and version",
    meaning="Time from the first to the last record of a session, with open sessions censored, not dropped.",
    sort=("as_of", "window_name", "measurement", "population", "version"),
    columns=(
        *stamp_columns(),
        Column("population", S, "Which sessions: all of them, or those that ended in one way.", nullable=False, key=True, values=TIME_POPULATIONS),
        _VERSION,
        Column("n_sessions", I64, "Sessions.", nullable=False, low=0),
        Column("n_ended", I64, "Those that ended; the others were still open when last seen.", nullable=False, low=0),
        Column("median_s", F64, "Time by which half have ended, in seconds.", low=0.0),
        Column("median_lo_s", F64, "Lower end of its interval: of the log-log band, or over users drawn again where users keep a version.", low=0.0),
        Column("median_hi_s", F64, "Upper end; null where not reached.", low=0.0),
        Column("p90_s", F64, "Time by which nine in ten have ended.", low=0.0),
        Column("p90_lo_s", F64, "Lower end of its interval, likewise.", low=0.0),
        Column("p90_hi_s", F64, "Upper end; null where not reached.", low=0.0),
        Column("horizon_s", F64, "Time up to which means are taken, one for all versions of a population.", low=0.0),
        Column("mean_s", F64, "Mean time up to the horizon.", low=0.0),
        Column("mean_se_s", F64, "Its standard error, sessions taken as independent.", low=0.0),
        Column("succeeded", F64, "Share that has succeeded by the horizon, other ends competing; all_attempts only.", low=0.0, high=1.0),
        Column("failed", F64, "Share that is known to have ended without success by then.", low=0.0, high=1.0),
        Column("unresolved", F64, "Share that has ended by then with an outcome that is not known; the rest was still going on.", low=0.0, high=1.0),
        Column("shift_s", F64, "Net change of the mean time against the reference, over common traffic; all_attempts only."),
        Column("shift_lo_s", F64, "Lower end of its interval, clustered by user."),
        Column("shift_hi_s", F64, "Upper end."),
        Column("equal_times_p", F64, "Log-rank p-value of equal times over versions of the population; null where users keep a version.", low=0.0, high=1.0),
        *_STATUS,
    ),
)  # fmt: skip

NIGHTS = Table(
    layer="analysis",
    name="nights",
    grain="one row a period and version, for the headline metric over all traffic",
    meaning="The window night by night: an interval that may be looked at every night of it, and an alarm on loss within it. Every window begins anew.",
    sort=("as_of", "window_name", "measurement", "metric", "version", "night"),
    columns=(
        *stamp_columns(),
        _METRIC,
        _VERSION,
        Column("night", DATE, "First day of the period: a day, or a week where users keep a version.", nullable=False, key=True),
        Column("n_sessions", I64, "Sessions of the version in the period.", nullable=False, low=0),
        Column("estimate", F64, "Net improvement of this period alone, at its own mix of work."),
        Column("se", F64, "Its standard error.", low=0.0),
        Column("so_far", F64, "Net improvement over all periods of the window up to here."),
        Column("so_far_lo", F64, "Lower end of an interval that holds at all periods of this window at once; null where other versions were compared."),
        Column("so_far_hi", F64, "Upper end."),
        Column("change", F64, "The version's own mean less that of the window's first periods, at the mix of work of these."),
        Column("change_se", F64, "Standard error of the period's mean.", low=0.0),
        Column("delta", F64, "Change, positive for better, plus the tolerance."),
        Column("evidence", F64, "Evidence within this window of a loss since its first periods; an alarm at 500, not counted past 1e300. Null before.", low=0.0),
        Column("is_alarm", B, "Whether the evidence has reached the alarm within this window.", nullable=False),
        *_STATUS,
    ),
)  # fmt: skip

MOVEMENT = Table(
    layer="analysis",
    name="movement",
    grain="one row a stratum and version, for the headline metric over all traffic",
    meaning="Why the net improvement of the later half of the window differs from that of the earlier half.",
    sort=("as_of", "window_name", "measurement", "metric", "version", "stratum"),
    columns=(
        *stamp_columns(),
        _METRIC,
        _VERSION,
        Column("stratum", S, "Stratum.", nullable=False, key=True),
        Column("later_start", DATE, "First day of the later half.", nullable=False),
        Column("own", F64, "Part that the version's own rate moved."),
        Column("own_se", F64, "Its standard error, clustered by user over both halves; null where a half lacks the stratum.", low=0.0),
        Column("own_lo", F64, "Lower end of its 95 % interval."),
        Column("own_hi", F64, "Upper end."),
        Column("reference", F64, "Part that the reference's rate moved: negative where the others improved."),
        Column("mix", F64, "Part that the mix of work moved."),
        Column("entry_exit", F64, "Part of strata that one half lacks."),
        Column("total", F64, "Change of the net improvement over all strata, the same in each row of a version."),
        Column("total_se", F64, "Its standard error, clustered by user over both halves, for this mix of work.", low=0.0),
        Column("total_lo", F64, "Lower end of its 95 % interval."),
        Column("total_hi", F64, "Upper end."),
        *_STATUS,
    ),
)  # fmt: skip

ATTEMPTS = Table(
    layer="analysis",
    name="attempts",
    grain="one row a version",
    meaning="Every session under exactly one outcome, and the rates of them with their own denominators.",
    sort=("as_of", "window_name", "measurement", "version"),
    columns=(
        *stamp_columns(),
        _VERSION,
        Column("n_all", I64, "Sessions.", nullable=False, low=0),
        Column("n_eval", I64, "Sessions that are not invalid.", nullable=False, low=0),
        Column("n_autonomous", I64, "Successes without a correction.", nullable=False, low=0),
        Column("n_assisted", I64, "Successes after a correction.", nullable=False, low=0),
        Column("n_failure", I64, "Sessions without success.", nullable=False, low=0),
        Column("n_timeout", I64, "Sessions that ran out of time.", nullable=False, low=0),
        Column("n_invalid", I64, "Sessions whose outcome is not known.", nullable=False, low=0),
        Column("autonomous", F64, "n_autonomous / n_eval.", low=0.0, high=1.0),
        *_limits("autonomous"),
        Column("assisted", F64, "n_assisted / n_eval.", low=0.0, high=1.0),
        *_limits("assisted"),
        Column("non_completion", F64, "(n_failure + n_timeout) / n_eval.", low=0.0, high=1.0),
        *_limits("non_completion"),
        Column("invalid_rate", F64, "n_invalid / n_all.", low=0.0, high=1.0),
        *_limits("invalid_rate"),
        Column("passed_of_all", F64, "(n_autonomous + n_assisted) / n_all: what is not known as a failure, as benchmarks publish pass@1.", low=0.0, high=1.0),
        *_limits("passed_of_all"),
        Column("t_all", I64, "Tasks of controlled task sets; 0 without.", nullable=False, low=0),
        Column("first_attempt", F64, "Share of tasks whose first trial succeeded.", low=0.0, high=1.0),
        *_limits("first_attempt"),
        Column("eventual", F64, "Share of tasks that succeeded in some trial; null where trials are repeats, not retries.", low=0.0, high=1.0),
        *_limits("eventual"),
        *_STATUS,
    ),
)  # fmt: skip

PAIRED_TASKS = Table(
    layer="analysis",
    name="paired_tasks",
    grain="one row an ordered pair of versions that were given the same tasks",
    meaning="What changed task by task between two versions, on the first trial of each.",
    sort=("as_of", "window_name", "measurement", "version", "other"),
    columns=(
        *stamp_columns(),
        _VERSION,
        Column("other", S, "Version it is compared with.", nullable=False, key=True),
        Column("n_tasks", I64, "Tasks that both were given.", nullable=False, low=1),
        Column("n_gained", I64, "Tasks that only the first passed.", nullable=False, low=0),
        Column("n_lost", I64, "Tasks that only the other passed.", nullable=False, low=0),
        Column("difference", F64, "Difference of the pass rates.", nullable=False),
        Column("lo", F64, "Lower end of its 95 % interval."),
        Column("hi", F64, "Upper end."),
        Column("p", F64, "Exact McNemar p-value.", low=0.0, high=1.0),
        *_STATUS,
    ),
)  # fmt: skip

CORRECTED_RATES = Table(
    layer="analysis",
    name="corrected_rates",
    grain="one row a signal and version",
    meaning="How often a signal occurs by version, as counted and corrected for the detector's errors by reviews.",
    sort=("as_of", "window_name", "measurement", "signal", "version"),
    columns=(
        *stamp_columns(),
        Column("signal", S, "Signal, or negative or positive for all signals of that polarity.", nullable=False, key=True),
        _VERSION,
        Column("unit", S, "What a rate is a share of: a person's turns after the first, or calls of tools.", nullable=False, values=("turn", "call")),
        Column("n_sessions", I64, "Settled sessions.", nullable=False, low=0),
        Column("n_units", F64, "Turns or calls in them.", nullable=False, low=0.0),
        Column("n_fired", I64, "Those with the signal.", nullable=False, low=0),
        Column("n_reviewed", I64, "Those that were reviewed under the detector in force.", nullable=False, low=0),
        Column("raw_rate", F64, "n_fired / n_units.", low=0.0, high=1.0),
        Column("rate", F64, "Share that has the signal by people's judgement.", low=0.0, high=1.0),
        Column("rate_lo", F64, "Lower end of its 95 % interval, clustered by user.", low=0.0, high=1.0),
        Column("rate_hi", F64, "Upper end.", low=0.0, high=1.0),
        Column("method", S, "ppi: by labels of this version; rogan_gladen: by error rates of all versions together; null without a rate.", values=("ppi", "rogan_gladen")),
        Column("raw_shift", F64, "raw_rate less its plain average over the versions that have a rate."),
        Column("shift", F64, "rate less its plain average over the same versions."),
        Column("shift_lo", F64, "Lower end of its 95 % interval."),
        Column("shift_hi", F64, "Upper end."),
        Column("error_rate_gap", F64, "Difference in error rates between versions that could explain raw_shift.", low=0.0),
        *_STATUS,
    ),
)  # fmt: skip

BRIDGES = Table(
    layer="analysis",
    name="bridges",
    grain="one row a version, where another measurement scored the same sessions",
    meaning="What a change of criteria did to the headline metric: the same sessions under the old measurement and this one.",
    sort=("as_of", "window_name", "measurement", "old_measurement", "metric", "version"),
    columns=(
        *stamp_columns(),
        Column("old_measurement", S, "Measurement that this one is compared with.", nullable=False, key=True),
        _METRIC,
        _VERSION,
        Column("n_sessions", I64, "Settled sessions of the version whose outcome both know.", nullable=False, low=0),
        Column("n_users", I64, "Users of all versions in the overlap.", nullable=False, low=0),
        Column("old_level", F64, "Mean over common traffic under the old measurement."),
        Column("new_level", F64, "Under this one."),
        Column("shift", F64, "new_level less old_level."),
        Column("shift_lo", F64, "Lower end of its 95 % interval, paired by user."),
        Column("shift_hi", F64, "Upper end."),
        Column("mean_shift", F64, "Plain mean of shift over versions: what a chained series moves by."),
        Column("mean_shift_se", F64, "Its standard error.", low=0.0),
        Column("apart", F64, "shift less mean_shift."),
        Column("apart_lo", F64, "Lower end of an interval that holds for all versions at once."),
        Column("apart_hi", F64, "Upper end."),
        Column("is_chained", B, "Whether series may be joined: every version was moved alike, to within half a point.", nullable=False),
        *_STATUS,
    ),
)  # fmt: skip

RECOVERY_CURVES = Table(
    layer="analysis",
    name="recovery_curves",
    grain="one row a version and number of answers",
    meaning="Share of correction episodes back on track within k answers; episodes that nobody judged to the end are censored.",
    sort=("as_of", "window_name", "measurement", "version", "k"),
    columns=(
        *stamp_columns(),
        _VERSION,
        Column("k", I64, "Answers after the correction whose reception was seen.", nullable=False, key=True, low=1),
        Column("n_episodes", I64, "Correction episodes of the version.", nullable=False, low=1),
        Column("n_at_risk", I64, "Episodes that were still open, and watched, at the k-th answer.", nullable=False, low=0),
        Column("n_recovered", I64, "Those that were back on track with it.", nullable=False, low=0),
        Column("recovered", F64, "Share back on track within k answers (Kaplan and Meier, 1958).", nullable=False, low=0.0, high=1.0),
        Column("recovered_lo", F64, "Lower end of its 95 % interval, episodes taken as independent.", low=0.0, high=1.0),
        Column("recovered_hi", F64, "Upper end.", low=0.0, high=1.0),
        *_STATUS,
    ),
)  # fmt: skip

TABLES = (
    ESTIMATORS, SENSITIVITY, DURATIONS, NIGHTS, MOVEMENT, ATTEMPTS, PAIRED_TASKS, CORRECTED_RATES, BRIDGES,
    RECOVERY_CURVES,
)  # fmt: skip
