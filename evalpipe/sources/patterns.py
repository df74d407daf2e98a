"""Sources that are named by a pattern: ``logs/**/*.jsonl``.

Belongs here: what a pattern matches, on this machine and among keys of a bucket. Does not belong here:
what is done with the files (``discover.py``).

``*`` and ``?`` and ``[...]`` match within one part of a path, ``**`` any number of parts, also none. They
match names that begin with a dot too, as the reading of a folder does. A folder that matches stands for
everything below it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import cache
from pathlib import Path

_MAGIC = re.compile(r"[*?\[]")


def is_pattern(text: str) -> bool:
    """Whether a text has a wildcard in it."""
    return _MAGIC.search(text) is not None


def fixed_part(text: str) -> str:
    """The parts of a path before the first that has a wildcard; ``/`` and ``.`` for none of them."""
    parts = text.split("/")
    n_fixed = next((n for n, part in enumerate(parts) if is_pattern(part)), len(parts))
    return "/".join(parts[:n_fixed]) or ("/" if n_fixed else ".")


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path, or a folder that it lies in, matches.

    Args:
        parts: Parts of the path.
        pattern: Parts of the pattern.
    """
    # Which numbers of pattern parts may have been used up by the parts so far; "**" may use up none.
    states = _skip({0}, pattern)
    for part in parts:
        if len(pattern) in states:
            return True
        after = {n for n in states if pattern[n] == "**"}
        after |= {n + 1 for n in states if pattern[n] != "**" and _fits(part, pattern[n])}
        states = _skip(after, pattern)
    return len(pattern) in states


def _skip(states: set[int], pattern: Sequence[str]) -> set[int]:
    for n in sorted(states):
        while n < len(pattern) and pattern[n] == "**":
            n += 1
            states.add(n)
    return states


def _fits(name: str, part: str) -> bool:
    return _compiled(part).match(name) is not None if is_pattern(part) else name == part


@cache
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))


def expand(text: str) -> list[Path]:
    """Files and folders of this machine that match, sorted.

    Folders are listed only as far as the pattern may match in them, and links to folders are followed
    only where a part of the pattern matches them, never by ``**``. A folder that cannot be listed is
    returned itself, so that its reading says so.
    """
    parts = [part for part in text.split("/") if part]
    return sorted(set(_expand(Path("/" if text.startswith("/") else ""), parts)))


def _expand(base: Path, parts: Sequence[str]) -> Iterator[Path]:
    if not parts:
        yield base
        return
    part, rest = parts[0], parts[1:]
    if not is_pattern(part):
        # As the part is written, and not resolved: a link to a file is a file of that name.
        if os.path.lexists(base / part):
            yield from _expand(base / part, rest)
        return
    if part == "**":
        yield from _expand(base, rest)
        if not rest:  # the folder stands for all that is below it
            return
    if not base.is_dir():
        return
    try:
        entries = sorted(os.scandir(base), key=lambda entry: entry.name)
    except OSError:
        yield base
        return
    for entry in entries:
        if part == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _expand(base / entry.name, parts)
        elif _compiled(part).match(entry.name):
            yield from _expand(base / entry.name, rest)
