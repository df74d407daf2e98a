"""Version of a detector: of one signal in one language, finer than that of the whole extraction.

Belongs here: which rules and code a signal depends on. What people reviewed holds for the detector that
they reviewed: a new pattern of another language must not make their work void, a changed one of this
signal must.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache
from pathlib import Path

from evalpipe.contracts.signals import BY_NAME, Family
from evalpipe.signals import hard, patterns, rulefiles, semantic

#: Rule files that every semantic signal is read through, and no signal from the environment.
_READING = ("context.toml", "fold.toml", "languages.toml", "roles.toml", "zones.toml")
#: Rule files that decide no signal: candidates and scenarios.
_OTHER = ("borderline.toml", "scenario.toml")
#: What one signal is read by besides its patterns.
_OF_SIGNAL = {"correction": "overrides.toml"}


@cache
def detector_version(signal: str, lang: str) -> str:
    """Version of the detector in force.

    Args:
        signal: Its name.
        lang: Language; any for signals from the environment.
    """
    if BY_NAME[signal].family is not Family.SEMANTIC:
        return f"{hard.VERSION}.{_digest(_files(is_reading=False))}"
    own = [repr(pattern) for pattern in patterns.load_patterns() if (pattern.lang, pattern.signal) == (lang, signal)]
    if signal in _OF_SIGNAL:
        own.append(_text(rulefiles.patterns_dir() / _OF_SIGNAL[signal]))
    return f"{semantic.VERSION}.{_digest([*_files(is_reading=True), *own])}"


@cache
def rule_counts() -> dict[tuple[str, str], int]:
    """Rules of every (signal, language) that has any."""
    return dict(Counter((pattern.signal, pattern.lang) for pattern in patterns.load_patterns()))


def _files(*, is_reading: bool) -> list[str]:
    paths = sorted(rulefiles.patterns_dir().glob("*.toml"))
    left_out = {*_OTHER, *_OF_SIGNAL.values()}
    return [_text(p) for p in paths if p.name not in left_out and (p.name in _READING) == is_reading]


def _text(path: Path) -> str:
    # Line ends depend on the checkout, not on the rules.
    return f"{path.name}\0{path.read_text('utf-8')}".replace("\r\n", "\n")


def _digest(parts: list[str]) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=4).hexdigest()
