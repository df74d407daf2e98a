"""Layer 3, ``signals``: masked sessions in, typed and located observations out.

Belongs here: zones and language of a turn, pattern and error-table evaluation, tasks, correction
episodes, session features, session outcomes. Does not belong here: reading logs (``sources``),
masking, estimation (``inference``) or what a signal is called (``contracts``). Rules are data under
``data/patterns``; this package only runs them.
"""

from evalpipe.signals.demotion import ANY, STEPS_READ, counted, without
from evalpipe.signals.digest import extraction_digest
from evalpipe.signals.golden import GoldenCount, golden
from evalpipe.signals.ledger import ledger_receipts, routing_arms
from evalpipe.signals.outcomes import event_counts, scored, session_outcomes, session_scores
from evalpipe.signals.part import SignalsPart, extract_part
from evalpipe.signals.prices import Prices, load_prices
from evalpipe.signals.task_types import check_task_types
from evalpipe.signals.versions import detector_version, rule_counts

__all__ = [
    "ANY",
    "STEPS_READ",
    "GoldenCount",
    "Prices",
    "SignalsPart",
    "check_task_types",
    "counted",
    "detector_version",
    "event_counts",
    "extract_part",
    "extraction_digest",
    "golden",
    "ledger_receipts",
    "load_prices",
    "routing_arms",
    "rule_counts",
    "scored",
    "session_outcomes",
    "session_scores",
    "without",
]
