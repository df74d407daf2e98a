"""An independent detector of personal data and secrets, with patterns of its own.

Belongs here: finding what masking should have removed, by another path than masking takes. Does not
belong here, and must not be imported here: rules, validators, locators or the engine. A vectorised
prefilter over the column decides which rows the expressions look at.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.locations import data_dir


@dataclass(frozen=True, slots=True)
class Detector:
    """One pattern with its prefilter and the arithmetic that confirms a match."""

    id: str
    is_high: bool
    literals: tuple[str, ...]
    shape: str
    pattern: re.Pattern[str]
    confirm: Callable[[str], bool]


@lru_cache(maxsize=1)
def detectors() -> tuple[Detector, ...]:
    """The detectors of ``data/masking/leak_detector.toml``."""
    document = tomllib.loads((data_dir() / "masking" / "leak_detector.toml").read_text("utf-8"))
    checks = _checks(document["allowed"])
    return tuple(
        Detector(
            row["id"],
            row["severity"] == "high",
            tuple(row.get("prefilter", ())),
            row["shape"],
            re.compile(row["pattern"]),
            checks[row["check"]],
        )
        for row in document["detector"]
    )


def scan(series: pl.Series) -> dict[str, int]:
    """Count the confirmed matches of every detector in a column of text.

    Args:
        series: Strings; nulls are skipped.

    Returns:
        Detector id to number of matches, without the zeros.
    """
    rows = series.drop_nulls()
    out: dict[str, int] = {}
    if rows.is_empty():
        return out
    every = sorted({literal for d in detectors() for literal in d.literals})
    with_literal = rows.filter(rows.str.contains_any(pl.Series([every])))
    with_shape = rows.filter(rows.str.contains(_any_shape()))
    for detector in detectors():
        base = with_literal if detector.literals else with_shape
        named = "v" in detector.pattern.groupindex
        n = sum(
            detector.confirm(value)
            for text in base.filter(base.str.contains(detector.shape)).to_list()
            for match in detector.pattern.finditer(text)
            # A branch without the value says what its number is instead.
            if (value := match["v"] if named else match.group()) is not None
        )
        if n:
            out[detector.id] = n
    return out


@lru_cache(maxsize=1)
def _any_shape() -> str:
    """The shapes of detectors without a literal as one expression: one pass over a column costs a fifth of nine."""
    return "|".join(f"(?:{d.shape})" for d in detectors() if not d.literals)


def is_high(detector_id: str) -> bool:
    """Whether a hit of this detector means a leak."""
    return any(d.id == detector_id and d.is_high for d in detectors())


def _luhn(value: str) -> bool:
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 2


def _gb11643(value: str) -> bool:
    total = sum(pow(2, 17 - i, 11) * int(c) for i, c in enumerate(value[:17]))
    return "10X98765432"[total % 11] == value[17]


def _mod97(value: str) -> bool:
    return int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1


def _mod11(value: str) -> bool:
    """The two check digits of a Brazilian tax number, of a person (11 digits) or a company (14)."""
    digits = [int(c) for c in value if c.isdigit()]
    is_person = len(digits) == 11
    for n in (len(digits) - 2, len(digits) - 1):
        weights = [2 + (i if is_person else i % 8) for i in range(n)]
        rest = sum(d * w for d, w in zip(reversed(digits[:n]), weights, strict=True)) % 11
        if digits[n] != (0 if rest < 2 else 11 - rest):
            return False
    return len(set(digits)) > 1


def _mixed(value: str) -> bool:
    digits = sum(c.isdigit() for c in value)
    is_filler = re.search(r"xxxx|\.\.\.|your|example|placeholder", value, re.IGNORECASE) is not None
    return 2 <= digits < len(value) and len(set(value.lower())) > 5 and not is_filler


def _public_ip(value: str) -> bool:
    try:
        return ipaddress.IPv4Address(value).is_global
    except ValueError:
        return False


def _checks(allowed: dict[str, Any]) -> dict[str, Callable[[str], bool]]:
    mailboxes, accounts = frozenset(allowed["mailboxes"]), frozenset(allowed["accounts"])
    return {
        "any": lambda value: True,
        "mixed": _mixed,
        "luhn": _luhn,
        "gb11643": _gb11643,
        "mod97": _mod97,
        "mod11": _mod11,
        "public_ip": _public_ip,
        "mailbox": lambda value: value.lower() not in mailboxes,
        "account": lambda value: value.lower() not in accounts,
    }
