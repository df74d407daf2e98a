"""Contract of ``analysis.validation``: what the product says of worlds whose truth is known.

Belongs here: the table. Does not belong here: scenarios or targets (``validation``).
"""

from evalpipe.contracts.model import Column, Kind, Table

S, B, I32, I64, F64 = Kind.STR, Kind.BOOL, Kind.I32, Kind.I64, Kind.F64

PARTS = ("grid", "guard", "replay")

VALIDATION = Table(
    layer="analysis",
    name="validation",
    grain="one row a quantity of a scenario, of the newest run",
    meaning="How often intervals cover, tests and gates err, in simulated worlds and in A/A replay of the home's own sessions.",
    sort=("part", "scenario", "quantity"),
    columns=(
        Column("part", S, "grid: simulated worlds; guard: what must be refused or counted; replay: the home's own sessions.", nullable=False, key=True, values=PARTS),
        Column("scenario", S, "What was tried.", nullable=False, key=True),
        Column("quantity", S, "What was counted.", nullable=False, key=True),
        Column("question", S, "It, in one sentence.", nullable=False),
        Column("estimate", F64, "Estimate: a share, or a difference of means where the quantity is a bias."),
        Column("lo", F64, "Lower end of its 95 % Monte-Carlo interval."),
        Column("hi", F64, "Upper end."),
        Column("target_lo", F64, "Lowest value that meets the target; null where the number is shown for contrast."),
        Column("target_hi", F64, "Highest value that meets it."),
        Column("is_met", B, "Whether the estimate lies in the target; null where nothing is asked, there is no number, or it lies outside and its Monte-Carlo interval reaches in."),
        Column("is_known", B, "Whether the target is missed, or nearly so, in a way that the documentation states, and not by more.", nullable=False),
        Column("replications", I32, "Independent repetitions.", nullable=False, low=0),
        Column("n_trials", I64, "What was counted in them.", nullable=False, low=0),
        Column("note", S, "Why there is no number, or what it stands for; empty otherwise.", nullable=False),
        Column("seed", I64, "Seed of the run.", nullable=False, low=0),
        Column("code_version", S, "Version of evalpipe, its estimates and the scenarios.", nullable=False),
        Column("data_digest", S, "Digest of the outcomes that were replayed; empty for simulated worlds.", nullable=False),
    ),
)  # fmt: skip

TABLES = (VALIDATION,)
