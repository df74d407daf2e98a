"""Criteria: versioned TOML that decides rules, weights, strata, thresholds and gates."""

from evalpipe.criteria.diff import Change, diff
from evalpipe.criteria.load import available, load
from evalpipe.criteria.model import Criteria

__all__ = ["Change", "Criteria", "available", "diff", "load"]
