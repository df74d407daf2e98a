"""Layer 3, ``signals``: masked sessions in, typed and located observations out.

Belongs here: zones and language of a turn, pattern and error-table evaluation, tasks, correction
episodes, session features, session outcomes. Does not belong here: reading logs (``sources``),
masking, estimation (``inference``) or what a signal is called (``contracts``). Rules are data under
``data/patterns``; this package only runs them.
"""

from evalpipe.signals.digest import extraction_digest
from evalpipe.signals.ledger import ledger_receipts, routing_arms
from evalpipe.signals.outcomes import session_outcomes
from evalpipe.signals.part import SignalsPart, extract_part
from evalpipe.signals.prices import Prices, load_prices
from evalpipe.signals.task_types import check_task_types

__all__ = [
    "Prices",
    "SignalsPart",
    "check_task_types",
    "extract_part",
    "extraction_digest",
    "ledger_receipts",
    "load_prices",
    "routing_arms",
    "session_outcomes",
]
