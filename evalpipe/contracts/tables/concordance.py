"""Contracts of layer 4 for evidence from several sides: sessions of people, controlled tasks, reviews.

Belongs here: pairs of versions, and pairs of layers. Does not belong here: any layer by itself; their
numbers are in ``analysis.pairs``, ``analysis.paired_tasks`` and ``analysis.corrected_rates``.
"""

from evalpipe.contracts.model import Column, Kind, Table
from evalpipe.contracts.tables.analysis import STATUSES, stamp_columns

S, I64, F64, LIST = Kind.STR, Kind.I64, Kind.F64, Kind.STR_LIST

#: Layers of evidence: what people did and said, tasks with an outcome that the log states, people's judgement.
LAYERS = ("sessions", "tasks", "audit")
LABELS = ("corroborated", "contradicted", "uncorroborated", "insufficient")
ORDERS = ("better", "worse", "not_told")

_STATUS = (
    Column("status", S, "ok, suspect, inconclusive or unavailable.", nullable=False, values=STATUSES),
    Column("reasons", LIST, "Reason codes behind the status.", nullable=False),
)


def _layer(name: str, what: str) -> tuple[Column, ...]:
    return (
        Column(f"{name}_order", S, f"What {what} establish of the first version against the other, all pairs together; null where they do not know both.", values=ORDERS),
        Column(f"{name}_difference", F64, "First minus second, signed so that positive is better; null where fewer than two layers know both."),
        Column(f"{name}_lo", F64, "Lower end of its 95 % interval, for this pair alone."),
        Column(f"{name}_hi", F64, "Upper end."),
    )  # fmt: skip


CONCORDANCE = Table(
    layer="analysis",
    name="concordance",
    grain="one row a pair of versions that some layer of evidence knows",
    meaning="Whether sessions of people, controlled tasks and reviewed turns say the same of two versions.",
    sort=("as_of", "window_name", "measurement", "version", "other"),
    columns=(
        *stamp_columns(),
        Column("version", S, "First version, by name.", nullable=False, key=True),
        Column("other", S, "Second version.", nullable=False, key=True),
        *_layer("sessions", "sessions without a stated outcome, by the headline metric over common traffic,"),
        *_layer("tasks", "tasks that all versions of the layer tried, by the share that succeeded,"),
        *_layer("audit", "reviewed turns of these sessions, by the share that people judge negative,"),
        Column("label", S, "corroborated: two layers or more establish the same order, none the opposite. contradicted: two establish opposite orders. uncorroborated: one establishes an order. insufficient: none does.", nullable=False, values=LABELS),
        Column("n_layers", I64, "Layers that know both versions.", nullable=False, low=1, high=3),
        *_STATUS,
    ),
)  # fmt: skip

LAYER_AGREEMENT = Table(
    layer="analysis",
    name="layer_agreement",
    grain="one row a pair of layers of evidence",
    meaning="How two layers of evidence agree over the versions that both know.",
    sort=("as_of", "window_name", "measurement", "first_layer", "second_layer"),
    columns=(
        *stamp_columns(),
        Column("first_layer", S, "sessions, tasks or audit.", nullable=False, key=True, values=LAYERS),
        Column("second_layer", S, "Layer that it is held against.", nullable=False, key=True, values=LAYERS),
        Column("n_versions", I64, "Versions that both know.", low=0),
        Column("n_pairs", I64, "Pairs of versions that both tell apart.", low=0),
        Column("n_agree", I64, "Those in the same order.", low=0),
        Column("agree_share", F64, "n_agree / n_pairs; null without such pairs.", low=0.0, high=1.0),
        Column("reversals", LIST, "Pairs in opposite order, as 'A over B' in the first layer.", nullable=False),
        Column("slope", F64, "Units of the first layer for one of the second in which shifts agree best; null where a layer tells no versions apart."),
        Column("chi2", F64, "Misfit of the shifts at that slope; null with two versions, which fit any slope.", low=0.0),
        Column("df", I64, "Its degrees of freedom, versions less two.", low=0),
        Column("p", F64, "Whether shifts agree up to the slope.", low=0.0, high=1.0),
        Column("kendall_tau", F64, "Kendall's tau-b of the levels.", low=-1.0, high=1.0),
        Column("tau_lo", F64, "Lower end of its interval, from draws of both layers.", low=-1.0, high=1.0),
        Column("tau_hi", F64, "Upper end.", low=-1.0, high=1.0),
        *_STATUS,
    ),
)  # fmt: skip

TABLES = (CONCORDANCE, LAYER_AGREEMENT)
