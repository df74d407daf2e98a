"""The maths: arrays in, numbers out; no tables, no I/O.

Estimates the net improvement of agent versions from sessions: post-stratified cell means with
user-clustered CR3 variance in closed form, design-matched randomization tests, simultaneous
intervals and rank sets, gates, power and design checks. Start at :func:`compare`.
"""

from evalpipe.inference.compare import compare
from evalpipe.inference.design import design_checks
from evalpipe.inference.gates import GATE_KINDS, gate, nightly_error
from evalpipe.inference.model import (
    DESIGNS,
    POPULATIONS,
    REFERENCES,
    Check,
    Comparison,
    DesignReport,
    GateResult,
    Options,
    Sample,
    Standard,
)
from evalpipe.inference.multiplicity import P_METHODS, adjust
from evalpipe.inference.power import (
    planned_design_effect,
    sessions_per_arm,
    sessions_per_arm_proportions,
    sessions_vs_mean,
    smallest_effect,
    smallest_effect_vs_mean,
)
from evalpipe.inference.proportions import agresti_coull, clopper_pearson, newcombe, proportion_interval, wilson
from evalpipe.inference.ratio import SampleRatio, sample_ratio
from evalpipe.inference.reviewed import (
    Share,
    equal_shares,
    hajek_share,
    jensen_shannon,
    kendall_tau,
    stability_index,
    top_overlap,
    units_for_bound,
)

__all__ = [
    "DESIGNS",
    "GATE_KINDS",
    "POPULATIONS",
    "P_METHODS",
    "REFERENCES",
    "Check",
    "Comparison",
    "DesignReport",
    "GateResult",
    "Options",
    "Sample",
    "SampleRatio",
    "Share",
    "Standard",
    "adjust",
    "agresti_coull",
    "clopper_pearson",
    "compare",
    "design_checks",
    "equal_shares",
    "gate",
    "hajek_share",
    "jensen_shannon",
    "kendall_tau",
    "newcombe",
    "nightly_error",
    "planned_design_effect",
    "proportion_interval",
    "sample_ratio",
    "sessions_per_arm",
    "sessions_per_arm_proportions",
    "sessions_vs_mean",
    "smallest_effect",
    "smallest_effect_vs_mean",
    "stability_index",
    "top_overlap",
    "units_for_bound",
    "wilson",
]
