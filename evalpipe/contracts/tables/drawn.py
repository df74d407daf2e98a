"""Contract of what a drawn sample says of all traffic: means and totals of each version's own work.

Belongs here: rates of sessions that criteria declare as drawn with known chances. Does not belong here:
what stands beside a comparison (``evidence.py``).
"""

from evalpipe.contracts.model import Column, Kind, Table
from evalpipe.contracts.tables.analysis import STATUSES, stamp_columns

S, I64, F64, LIST = Kind.STR, Kind.I64, Kind.F64, Kind.STR_LIST

DRAWN_RATES = Table(
    layer="analysis",
    name="drawn_rates",
    grain="one row a version and kind of session that was drawn by itself, for the headline metric; none where all sessions were kept",
    meaning="What sessions that were drawn with declared chances say of all traffic. Of each version's own work: none of it ranks.",
    sort=("as_of", "window_name", "measurement", "metric", "version", "kind"),
    columns=(
        *stamp_columns(),
        Column("metric", S, "Metric, the headline one.", nullable=False, key=True),
        Column("version", S, "Version.", nullable=False, key=True),
        Column("kind", S, "Kind as criteria declare it, such as scenario=chat; all for all of them.", nullable=False, key=True),
        Column("kept", F64, "Share of its sessions that were kept; null for all.", low=0.0, high=1.0),
        Column("n_sessions", I64, "Sessions that were drawn and have a known outcome.", nullable=False, low=0),
        Column("n_users", I64, "Users among them.", nullable=False, low=0),
        Column("ess", F64, "Sessions drawn alike that they weigh as much as (Kish).", low=0.0),
        Column("sessions", F64, "Sessions in all traffic that they stand for (Horvitz-Thompson).", low=0.0),
        Column("sessions_lo", F64, "Lower end of its interval, clustered by user.", low=0.0),
        Column("sessions_hi", F64, "Upper end.", low=0.0),
        Column("total", F64, "Sum of the metric's numerators over all traffic (Horvitz-Thompson)."),
        Column("total_lo", F64, "Lower end of its interval, clustered by user."),
        Column("total_hi", F64, "Upper end."),
        Column("rate", F64, "Mean over all traffic of this kind (Hajek)."),
        Column("rate_lo", F64, "Lower end of its interval, clustered by user; of a share Wilson's."),
        Column("rate_hi", F64, "Upper end."),
        Column("status", S, "ok or inconclusive.", nullable=False, values=STATUSES),
        Column("reasons", LIST, "Reason codes behind the status.", nullable=False),
    ),
)  # fmt: skip

TABLES = (DRAWN_RATES,)
