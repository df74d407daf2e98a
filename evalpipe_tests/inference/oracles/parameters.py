"""Where the parameters of checks come from: the one place that reads them from words.

From the tables: data, and the rows of proportions. From ``expected``: planning sizes, margins, rates
of error, times, looks, turns (they stand beside the results that they gave). From names of checks:
metric, reference, kind of variance, target, tau, gamma, C, levels such as ``ci95`` and ``crit_95``,
positive rating ``ge2``, threshold ``at_500``. From the text of ``source``, by the functions here:
resamples, relative tolerances, shifts of a detector, categories of a rating, users that make a cell,
the additive model, the label that a signal is scored against.

Left are conventions of the folder that no file states, named here: two-sided 95 % intervals where
nothing else is said; value 1 of a cause is success and 2 failure; the judge is held against the first
human; the adjusted outcome is ``success``; columns ``model3`` and ``success3`` are the routing of many.
"""

from __future__ import annotations

import re

ALPHA = 0.05
CAUSES = {"success": 1, "failure": 2}


def level(percent: str) -> float:
    """Error rate of a level in percent: "95" gives 0.05."""
    return round(1.0 - float(percent) / 100.0, 10)


def stated_level(source: str) -> float:
    """Error rate of the level that a text states ("..., 95%"), else the convention."""
    found = re.search(r"(\d+(?:\.\d+)?)\s?%", source)
    return level(found[1]) if found else ALPHA


def relative_tolerance(source: str) -> float | None:
    """Relative tolerance that a text states, as "8%" or "1e-8"; None if it states none."""
    found = re.search(r"relative tolerance (\d[\d.]*(?:e-?\d+)?)(\s?%)?", source)
    if not found:
        return None
    return float(found[1].rstrip(".")) / (100.0 if found[2] else 1.0)


def stated_count(source: str, what: str) -> int:
    """Number before a word: "20,000 resamples".

    Raises:
        LookupError: The text states none.
    """
    return int(_need(rf"([\d,]+) (?:\w+ )?{what}", source).replace(",", ""))


def stated_shifts(source: str) -> tuple[float, ...]:
    """Numbers in braces after "delta=".

    Raises:
        LookupError: The text states none.
    """
    return tuple(float(value) for value in _need(r"delta=\{([^}]*)\}", source).split(","))


def stated_categories(source: str) -> int:
    """Categories of a rating: "q=4".

    Raises:
        LookupError: The text states none.
    """
    return int(_need(r"\bq=(\d+)", source))


def stated_min_users(source: str) -> int:
    """Distinct users that make a cell: ">=2 distinct users".

    Raises:
        LookupError: The text states none.
    """
    return int(_need(r">=\s?(\d+) distinct users", source))


def stated_model(source: str) -> tuple[str, str]:
    """Outcome and covariate of an additive model: "lm(utility~model+stratum+x1".

    Raises:
        LookupError: The text states none.
    """
    _need(r"(lm\(\w+~model\+stratum\+\w+)", source)
    return _need(r"lm\((\w+)~", source), _need(r"~model\+stratum\+(\w+)", source)


def stated_truth(signal: str, source: str) -> bool:
    """Label that a signal is scored against: "complaint against human_success=0".

    Raises:
        LookupError: The text states none.
    """
    return _need(rf"\b{re.escape(signal)}\b[^,;]*human_success=([01])", source) == "1"


def _need(pattern: str, source: str) -> str:
    found = re.search(pattern, source)
    if not found:
        raise LookupError(f"no {pattern} in: {source}")
    return found[1]
