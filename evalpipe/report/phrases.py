"""Look-up of fixed phrases: reason codes, checks, designs, entities.

Belongs here: finding a phrase by code. Does not belong here: the phrases (``phrases.toml``) and
sentences that are built from numbers (``words.py``, ``caveats.py``, ``notes.py``).
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

_STATUS_WORDS = frozenset({"suspect", "unavailable", "inconclusive"})


@functools.cache
def _phrases() -> dict[str, dict[str, str]]:
    text = resources.files("evalpipe.report").joinpath("phrases.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def phrase(group: str, code: str) -> str:
    """The phrase of a code.

    Args:
        group: A table of ``phrases.toml``.
        code: The code, such as ``too_few_sessions``; ``code:detail`` keeps its detail.

    Returns:
        The phrase, or the code itself in words where no phrase is declared.
    """
    known = _phrases()[group]
    if code in known:
        return known[code]
    stem, colon, detail = code.partition(":")
    if colon and stem in known:
        return f"{known[stem]} ({detail.strip()})"
    return code.replace("_", " ")


def reasons(codes: tuple[str, ...]) -> str:
    """Several reason codes as one clause, without repeats; a mere status word yields to a reason."""
    told = [code for code in codes if code not in _STATUS_WORDS] or list(codes)
    return "; ".join(dict.fromkeys(phrase("reasons", code) for code in told))


def check_title(check: str) -> str:
    """What the report calls a check."""
    title = phrase("checks", check)
    return title[:1].upper() + title[1:]


def check_effect(check: str) -> str:
    """What a failed check could do to the numbers; empty where nothing is declared."""
    return _phrases()["check_effects"].get(check, "")


def entity_title(entity: str) -> str:
    """What the report calls a masked entity."""
    known = _phrases()["entities"]
    return known.get(entity, entity.replace("_", " "))
