"""What stands beside the headline estimate: tables that explain it and can overturn it.

Belongs here: which of them are made, each in a module of its own. Does not belong here: the estimate
itself (``analysis.score``) or any formula (``inference``).
"""

from evalpipe.analysis.evidence.tables import evidence_tables

__all__ = ["evidence_tables"]
