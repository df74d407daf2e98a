"""Words: phrases by language, and blocks of filler that look like code, listings, logs, tables, notes.

Belongs here: reading phrase data, filling slots, cutting filler to a length, cheap uniform draws. Does
not belong here: what a session says when (``script.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from evalpipe.simulate.world import read_toml

T = TypeVar("T")

#: Feedback classes of the phrase files.
FEEDBACK = ("confirm", "praise", "failure", "sentiment", "correction")

_DOCUMENTS, _LINES = 48, 420
_FILLER_SEED = 20_260_105  # filler is the same in every simulation; what differs is where it is cut


class Draw:
    """Uniform draws for one session, taken from a buffer: a call costs a tenth of a Generator's."""

    __slots__ = ("_at", "_buffer", "_rng")

    def __init__(self, rng: np.random.Generator, size: int = 256) -> None:
        self._rng = rng
        self._buffer: list[float] = rng.random(size).tolist()
        self._at = 0

    def unit(self) -> float:
        """A number in [0, 1)."""
        at = self._at
        if at == len(self._buffer):
            self._buffer = self._rng.random(512).tolist()
            at = 0
        self._at = at + 1
        return self._buffer[at]

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        return int(self.unit() * n)

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + int(self.unit() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.unit() * len(options))]

    def hex(self, n_bytes: int) -> str:
        """Random bytes as hexadecimal digits."""
        return self._rng.bytes(n_bytes).hex()


@dataclass(frozen=True, slots=True)
class Words:
    """``words.toml``."""

    funcs: tuple[str, ...]
    words: tuple[str, ...]
    dirs: tuple[str, ...]
    extensions: tuple[str, ...]
    projects: tuple[str, ...]
    parts: tuple[str, ...]
    tenants: tuple[str, ...]
    first: tuple[str, ...]
    last: tuple[str, ...]
    branches: tuple[str, ...]
    releases: tuple[str, ...]
    slugs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrases:
    """One ``phrases_<lang>.toml``: feedback by class, requests and follow-ups by scenario, agent talk."""

    lang: str
    feedback: dict[str, list[str]]
    pairs: list[tuple[str, str]]
    request: dict[str, list[str]]
    follow: dict[str, list[str]]
    topics: list[str]
    agent: dict[str, Any]
    prose: list[str]


@cache
def load_words() -> Words:
    """The word lists."""
    return Words(**{name: tuple(values) for name, values in read_toml("words").items()})


@cache
def load_phrases(lang: str) -> Phrases:
    """The phrases of a language; ``prose`` is filled and ready to be strung together."""
    data = read_toml(f"phrases_{lang}")
    rng = Draw(np.random.Generator(np.random.PCG64(_FILLER_SEED)))
    words = load_words().words
    templates = data["agent"]["prose"]
    return Phrases(
        lang=data["lang"],
        feedback=data["feedback"],
        pairs=list(zip(data["pairs"]["right"], data["pairs"]["wrong"], strict=True)),
        request=data["request"],
        follow=data["follow"],
        topics=data["follow"]["topic"],
        agent=data["agent"],
        prose=[rng.pick(templates).format(word=rng.pick(words), n=rng.between(2, 400)) for _ in range(400)],
    )


@dataclass(frozen=True, slots=True)
class Filler:
    """Documents of one kind, as lines, with the mean length of a line."""

    documents: list[list[str]]
    line_chars: float

    def cut(self, draw: Draw, n_chars: int) -> tuple[int, list[str]]:
        """A run of lines of about ``n_chars`` characters: (number of its first line from 1, lines)."""
        lines = draw.pick(self.documents)
        n = min(max(1, int(n_chars / self.line_chars)), len(lines))
        start = draw.below(len(lines) - n + 1)
        return start + 1, lines[start : start + n]

    def text(self, draw: Draw, n_chars: int) -> str:
        """The same as one text."""
        return "\n".join(self.cut(draw, n_chars)[1])


@cache
def load_filler() -> dict[str, Filler]:
    """Filler by kind: code, listing, log, table, notes."""
    data = read_toml("filler")
    rng = np.random.Generator(np.random.PCG64(_FILLER_SEED))
    return {kind: _filler(data[kind], rng) for kind in ("code", "listing", "log", "table", "notes")}


def _filler(templates: list[str], rng: np.random.Generator) -> Filler:
    draw, words = Draw(rng, 4096), load_words()
    documents = [[_line(templates, draw, words) for _ in range(_LINES)] for _ in range(_DOCUMENTS)]
    return Filler(documents, sum(len(line) + 1 for lines in documents for line in lines) / (_DOCUMENTS * _LINES))


def _line(templates: list[str], draw: Draw, words: Words) -> str:
    template = draw.pick(templates)
    word, digits = draw.pick(words.words), draw.hex(20)
    return template.format(
        f=draw.pick(words.funcs),
        g=draw.pick(words.funcs),
        w=word,
        v=draw.pick(words.words),
        W=word.capitalize(),
        V=draw.pick(words.words).capitalize(),
        n=draw.between(2, 900),
        m=draw.between(2, 90),
        d=draw.between(1, 9),
        h=digits[:12],
        x=digits,
        u=as_uuid(digits[:32]),
        t=f"{draw.between(8, 19):02d}:{draw.below(60):02d}:{draw.below(60):02d}",
        p=f"{draw.pick(words.dirs)}/{word}{draw.pick(words.extensions)}",
    )


def as_uuid(digits: str) -> str:
    """32 hexadecimal digits as a version-4 UUID."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
