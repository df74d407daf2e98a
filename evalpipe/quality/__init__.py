"""Precision of a slice: rules as data, a one-row profile, and judges of it.

Belongs here: what a slice must look like before the next step may use it. Does not belong here: what
a table may hold at all (contracts), or the checks of a causal comparison (``analysis.diagnostics``).
"""

from evalpipe.quality.gx import judge_with_gx
from evalpipe.quality.judge import Verdict, judge
from evalpipe.quality.profiles import profile, worst
from evalpipe.quality.rules import Rule, load_rules

__all__ = ["Rule", "Verdict", "judge", "judge_with_gx", "load_rules", "profile", "worst"]
