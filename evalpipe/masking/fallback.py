"""The locator without Hyperscan: the same hits from Polars and ``re``.

Belongs here: the sieve over a batch of texts, which Polars does at the speed of Rust, and the exact
hits in the texts that pass it. Does not belong here: what a hit means. Alone, ``re`` runs a few dozen
shapes at under 2 MB/s; behind the sieve most texts meet no expression at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from evalpipe.masking.locate import ANY_PSEUDONYM, ANY_TRICK, SHIFT, AnchorTable, Hint
from evalpipe.masking.rules import MIN_LITERAL

#: From here on a text is worth a sieve of its own, although each sieve compiles its expressions anew.
_SIEVE_ALONE = 16_384


class FallbackLocator:
    """Anchors by literal, where they begin with one, and by shape."""

    batch_bytes = 1_000_000

    def __init__(self, table: AnchorTable) -> None:
        self._by_literal: dict[bytes, list[tuple[int, re.Pattern[bytes]]]] = {}
        self._shapes: list[tuple[int, re.Pattern[bytes]]] = []
        self._sieves: list[str] = []
        for number, anchor in enumerate(table.anchors):
            compiled = re.compile(anchor.pattern, re.IGNORECASE if anchor.caseless else 0)
            if len(anchor.literal) >= MIN_LITERAL:
                self._by_literal.setdefault(anchor.literal.lower(), []).append((number, compiled))
            else:
                self._shapes.append((number, compiled))
                self._sieves.append(_for_text(anchor.pattern, caseless=anchor.caseless))
        self._literals = pl.Series([[k.decode() for k in self._by_literal]])
        self._lengths = sorted({len(k) for k in self._by_literal})
        self._trick, self._pseudonym = table.trick, table.pseudonym

    def sieve(self, views: Sequence[bytes]) -> list[Hint | None]:
        """Offsets of literals and the shapes that occur, for each text."""
        texts = pl.Series([_text(view) for view in views], dtype=pl.String)
        lowered = pl.Series([_text(view.lower()) for view in views], dtype=pl.String)
        offsets = lowered.str.find_many(self._literals, overlapping=True).to_list()
        shapes: list[list[int]] = [[] for _ in views]
        for index, sieve in enumerate(self._sieves):
            for at in texts.str.contains(sieve).arg_true().to_list():
                shapes[at].append(index)
        return [(sorted(set(found)), shapes[at]) for at, found in enumerate(offsets)]

    def locate(self, view: bytes, budget: int, hint: Hint | None = None) -> list[int] | None:
        """Hits in one text, unordered, or ``None`` if there are more than ``budget``."""
        if hint is None and len(view) >= _SIEVE_ALONE:
            (hint,) = self.sieve([view])
        hits: list[int] = []
        for hit in self._hits(view, hint):
            hits.append(hit)
            if len(hits) > budget:
                return None
        if ANY_TRICK.search(view):
            hits.append(self._trick)
        if ANY_PSEUDONYM.search(view):
            hits.append(self._pseudonym)
        return hits

    def _hits(self, view: bytes, hint: Hint | None) -> Iterator[int]:
        lowered = view.lower()
        if hint is None:
            found = pl.Series([_text(lowered)]).str.find_many(self._literals, overlapping=True)
            hint = sorted(set(found[0].to_list())), list(range(len(self._shapes)))
        offsets, shapes = hint
        for offset in offsets:
            for length in self._lengths:
                for number, pattern in self._by_literal.get(lowered[offset : offset + length], ()):
                    match = pattern.match(view, offset)
                    if match:
                        yield match.end() << SHIFT | number
        for index in shapes:
            number, pattern = self._shapes[index]
            match = pattern.search(view)
            while match:
                yield match.end() << SHIFT | number
                match = pattern.search(view, match.start() + 1)


def _text(view: bytes) -> str:
    # A view may cut a character; a replacement of the same length keeps offsets right.
    text = view.decode("utf-8", "surrogateescape")
    return text if text.isascii() else re.sub("[\udc80-\udcff]", "?", text)


def _for_text(pattern: bytes, *, caseless: bool) -> str:
    """An expression over text that matches wherever one over bytes does, or more often."""
    text = pattern.decode().replace(r"\x80-\xff", r"\u{80}-\u{10FFFF}")
    return f"(?i){text}" if caseless else text
