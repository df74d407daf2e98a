"""Rule files: where they lie, how their regular expressions become those of two engines.

Belongs here: reading TOML, macros, the dialect. Does not belong here: what a rule means (the module
that evaluates it). Patterns are written once, in the part that RE2, Rust and Python share: no
look-around, no back-reference, no lazy quantifier. ``\\b \\w \\d \\s`` are ASCII in both engines,
because Rust's Unicode word boundary leaves its fast automaton on every text that is not ASCII.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from evalpipe.locations import data_dir

_FORBIDDEN = re.compile(r"\(\?[=!<]|[*+?}]\?|(?<!\\)\\[1-9]|\\[BAZzpPXQEGK]")
_MACRO = re.compile(r"\{([a-z_]+)\}")
_SETS = {"w": "0-9A-Za-z_", "d": "0-9", "s": r" \t\n\r\x0b\x0c"}


class RuleError(ValueError):
    """A shipped rule file breaks a rule of its own dialect. Found by the tests, not by users."""


def patterns_dir() -> Path:
    """Folder of pattern files, error table and scenario rules."""
    return data_dir() / "patterns"


@lru_cache(maxsize=64)
def _read(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        return tomllib.load(stream)


def load(*parts: str) -> dict[str, Any]:
    """One rule file under the patterns folder, parsed.

    Raises:
        FileNotFoundError: the file is not shipped.
    """
    return _read(patterns_dir().joinpath(*parts))


def languages() -> tuple[str, ...]:
    """Languages that have a pattern folder, sorted."""
    return tuple(sorted(entry.name for entry in patterns_dir().iterdir() if entry.is_dir()))


def expand(pattern: str, macros: Mapping[str, str]) -> str:
    """Replace ``{name}`` by the macro of that name, as often as macros name macros."""
    for _ in range(4):
        expanded = _MACRO.sub(lambda m: f"(?:{macros[m[1]]})" if m[1] in macros else m[0], pattern)
        if expanded == pattern:
            return pattern
        pattern = expanded
    raise RuleError(f"macros nest too deeply: {pattern}")


def _translate(pattern: str, *, boundary: str, end: str) -> str:
    out: list[str] = []
    in_set = False
    multiline = "(?m)" in pattern
    i = 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\":
            code = pattern[i + 1]
            i += 2
            if code in _SETS:
                out.append(_SETS[code] if in_set else f"[{_SETS[code]}]")
            elif code == "S" and not in_set:
                out.append(f"[^{_SETS['s']}]")
            else:
                out.append(boundary if code == "b" and not in_set else "\\" + code)
            continue
        if in_set:
            # A literal "[" inside a set opens a nested set in Rust.
            out.append("\\[" if char == "[" else char)
            in_set = char != "]"
        else:
            in_set = char == "["
            out.append(end if char == "$" and not multiline else char)
        i += 1
    return "".join(out)


@cache
def to_rust(pattern: str) -> str:
    """The pattern for Polars (Rust's ``regex``)."""
    check(pattern)
    return _translate(pattern, boundary=r"(?-u:\b)", end="$")


@cache
def to_python(pattern: str) -> re.Pattern[str]:
    """The pattern for Python's ``re``, with the same matches."""
    check(pattern)
    return re.compile(_translate(pattern, boundary=r"\b", end=r"\Z"), re.ASCII)


def check(pattern: str) -> None:
    """Refuse what the engines do not share.

    Raises:
        RuleError: look-around, back-reference, lazy quantifier or an unknown macro.
    """
    if found := _FORBIDDEN.search(pattern.replace(".*?", "")):
        raise RuleError(f"not in the shared dialect ({found[0]}): {pattern}")
    if found := _MACRO.search(pattern):
        raise RuleError(f"unknown macro {found[0]}: {pattern}")


def any_of(patterns: list[str]) -> str:
    """One alternation of several patterns of the dialect."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)
