"""Locators: where in a text the anchors of all rules end.

Belongs here: two engines with one contract, Hyperscan and a fallback of Polars and ``re``. Does not
belong here: what a hit means (``engine``). A hit is ``end << 16 | anchor``; hits cost time, bytes do
not, so a text with more hits than its budget is given up (``None``) and withheld by the caller.

Measured on agent text, one core: Hyperscan with literal anchors and shapes in two databases scans at
several hundred MB/s; one database for both is slower, and one regular expression per rule is fifty
times slower. The fallback exists for machines without a wheel; a property test holds the two equal.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Protocol

from evalpipe.masking.rules import MIN_LITERAL, Ruleset, literal_prefix

SHIFT = 16
_MASK = (1 << SHIFT) - 1

#: Expressions that tell that a text hides characters behind escapes or look-alikes (see ``decode``).
TRICKS: tuple[bytes, ...] = (
    rb"\\u[0-9a-fA-F]{4}",
    rb"\\x[2-7][0-9a-fA-F]",
    rb"%(?:2[0-9a-fA-F]|3[aAdDfF]|40|5[cCfF])",
    rb"&#[x0-9]",
    rb"&quot;",
    rb"&commat;",
    rb"&period;",
    rb"&amp;#[x0-9]",
    rb"&amp;(?:quot|commat);",
    rb"\\u\{[0-9a-fA-F]",
    rb"\\U000[0-9a-fA-F]{5}",
    rb"\\100[A-Za-z]",
    rb"=40[A-Za-z]",
    rb"\x1b\[[0-9;]{0,12}[A-Za-z]",
    rb"\\x1[bB]\[",
    rb"\\033\[",
    rb"\\e\[",
    rb"[A-Za-z0-9@]\x00[A-Za-z0-9@.]\x00",
    rb"\xef\xb9\xab",
    rb"[A-Za-z0-9]\xe3\x80\x82[A-Za-z]",
    rb"\xe0\xb9[\x90-\x99]\xe0\xb9[\x90-\x99]",
    rb"\xf0\x9d\x9f[\x8e-\xbf]\xf0\x9d\x9f[\x8e-\xbf]",
    # Flags in a list of quoted words (see ``views``).
    rb"\",[ ]?\"-",
    rb"',[ ]?'-",
    rb"\xd9[\xa0-\xa9]\xd9[\xa0-\xa9]",
    rb"\xdb[\xb0-\xb9]\xdb[\xb0-\xb9]",
    rb"\xe0\xa5[\xa6-\xaf]\xe0\xa5[\xa6-\xaf]",
    rb"\xe2\x80[\x8b-\x8f]",
    rb"\xe2\x81\xa0",
    rb"\xef\xbb\xbf",
    rb"\xc2\xad",
    rb"\xef\xbc[\x8e\x90-\x99\xa0-\xba]",
    rb"\xef\xbd[\x81-\x9a]",
)
ANY_TRICK = re.compile(b"|".join(TRICKS))
#: A pseudonym: entity, epoch of its key, letters; also one that somebody wrote with letters of his own.
PSEUDONYM = rb"<[A-Z_]{3,30}:[a-p]{4}:[a-z]{1,200}>"
ANY_PSEUDONYM = re.compile(PSEUDONYM)


_TOKENS_FLOOR, _BYTES_PER_TOKEN = 4_000, 64


def too_many_pseudonyms(raw: bytes) -> bool:
    """Whether a text consists of pseudonyms: comparing each costs more than its bytes may."""
    return len(ANY_PSEUDONYM.findall(raw)) > _TOKENS_FLOOR + len(raw) // _BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Anchor:
    """One distinct anchor expression."""

    pattern: bytes
    caseless: bool
    literal: bytes


@dataclass(frozen=True, slots=True)
class AnchorTable:
    """Distinct anchors and, per anchor, the indexes of the rules that own it."""

    anchors: tuple[Anchor, ...]
    owners: tuple[tuple[int, ...], ...]

    @property
    def trick(self) -> int:
        """Number under which a locator reports that the text needs a second, decoded view."""
        return len(self.anchors)

    @property
    def pseudonym(self) -> int:
        """Number under which a locator reports that the text holds a pseudonym of some key."""
        return len(self.anchors) + 1


def anchor_table(ruleset: Ruleset) -> AnchorTable:
    """Collect the distinct anchors of a rule set."""
    owners: dict[Anchor, list[int]] = {}
    for index, rule in enumerate(ruleset.rules):
        for text in rule.anchors:
            literal = literal_prefix(text)
            owners.setdefault(Anchor(text.encode(), rule.caseless, literal), []).append(index)
        for word in rule.base64_of:
            for fragment in base64_fragments(word):
                owners.setdefault(Anchor(re.escape(fragment), False, fragment), []).append(index)
    return AnchorTable(tuple(owners), tuple(tuple(o) for o in owners.values()))


def base64_fragments(word: str) -> list[bytes]:
    """What a word leaves in base64 at the three phases, without the characters that neighbours touch."""
    out = []
    for phase in range(3):
        whole = base64.b64encode(b"\0" * phase + word.encode())
        first = 0 if phase == 0 else phase + 1
        rest = (phase + len(word)) % 3
        last = {0: len(whole), 1: len(whole) - 3, 2: len(whole) - 2}[rest]
        out.append(whole[first:last])
    return [fragment for fragment in out if len(fragment) >= 5]


#: Offsets where a literal begins, and numbers of the shapes that occur somewhere.
Hint = tuple[list[int], list[int]]


class Locator(Protocol):
    """What both engines do.

    ``batch_bytes`` is how much text one sieve should see; 0 means that sieving gains nothing.
    """

    batch_bytes: int

    def sieve(self, views: Sequence[bytes]) -> list[Hint | None]:
        """What each of several texts can hold at all, for :meth:`locate`."""
        ...

    def locate(self, view: bytes, budget: int, hint: Hint | None = None) -> list[int] | None:
        """Hits in one text, unordered, or ``None`` if there are more than ``budget``."""
        ...


class HyperscanLocator:
    """Anchors in two Hyperscan databases: literals, and shapes without a literal."""

    batch_bytes = 0

    def __init__(self, table: AnchorTable) -> None:
        import hyperscan

        literal: list[tuple[bytes, int, int]] = []
        shape: list[tuple[bytes, int, int]] = []
        for number, anchor in enumerate(table.anchors):
            flags = hyperscan.HS_FLAG_CASELESS if anchor.caseless else 0
            (literal if len(anchor.literal) >= MIN_LITERAL else shape).append((anchor.pattern, number, flags))
        literal += [(p, table.trick, hyperscan.HS_FLAG_SINGLEMATCH) for p in TRICKS]
        literal.append((PSEUDONYM, table.pseudonym, hyperscan.HS_FLAG_SINGLEMATCH))
        self._trick = table.trick
        self._terminated = hyperscan.ScanTerminated
        self._databases = [self._compile(hyperscan, part) for part in (literal, shape) if part]
        self._hits: list[int] = []
        self._budget = 0
        self._on_hit = self._make_callback()

    @staticmethod
    def _compile(hyperscan, rows: list[tuple[bytes, int, int]]):  # type: ignore[no-untyped-def]
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=[r[0] for r in rows], ids=[r[1] for r in rows], flags=[r[2] for r in rows], elements=len(rows)
        )
        return database

    def _make_callback(self) -> Callable[[int, int, int, int, object], bool | None]:
        hits = self._hits
        append = hits.append

        def on_hit(number: int, _from: int, end: int, _flags: int, _context: object) -> bool | None:
            append(end << SHIFT | number)
            return True if len(hits) > self._budget else None

        return on_hit

    def sieve(self, views: Sequence[bytes]) -> list[Hint | None]:
        """Nothing to gain: a scan is as fast as a sieve."""
        return [None] * len(views)

    def locate(self, view: bytes, budget: int, hint: Hint | None = None) -> list[int] | None:
        """Hits in one text, unordered, or ``None`` if there are more than ``budget``."""
        hits = self._hits
        hits.clear()
        self._budget = budget + len(TRICKS) + 1
        try:
            for database in self._databases:
                database.scan(view, match_event_handler=self._on_hit)
        except self._terminated:
            return None
        # The reserved numbers are no work, so they do not count.
        if len(hits) > budget and sum(hit & _MASK < self._trick for hit in hits) > budget:
            return None
        return hits.copy()


@lru_cache(maxsize=1)
def best_kind() -> str:
    """``hyperscan`` where the wheel is installed, else ``fallback``."""
    return "hyperscan" if find_spec("hyperscan") else "fallback"


def locator(table: AnchorTable, kind: str) -> Locator:
    """Compile a locator: half a second of work, which the caller keeps.

    A locator belongs to one thread: Hyperscan's scratch space must not be shared.
    """
    if kind == "hyperscan":
        return HyperscanLocator(table)
    from evalpipe.masking.fallback import FallbackLocator

    return FallbackLocator(table)
