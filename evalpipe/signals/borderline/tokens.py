"""Characters and words of many short texts at once, as numbers.

Belongs here: cutting columns of text into words without a loop over rows, and how much two columns share.
Does not belong here: which features are made of them (``features``).

A word is a run of letters, digits and marks; signs of scripts without spaces, question and exclamation
marks and pictures are words by themselves. Work is done in 32 bits and in place where it can be: these passes
over characters are most of what the classifier costs.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

#: Characters between texts: as many as the longest gram reaches over.
PAD = 3
_BASE = 0x9E3779B1
_WORD, _SINGLE = 1, 2
#: What else a character tells, as bits beside its kind.
ASKS, EXCLAIMS, DIGIT, BREAK = 4, 8, 16, 32
#: Han, kana and what extends them; Hangul has spaces between words.
_WITHOUT_SPACES = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF))
_BITS = {
    "?？؟": ASKS | _SINGLE, "!！": EXCLAIMS | _SINGLE, "…": _SINGLE, "0123456789`/_": DIGIT, "\n": BREAK,
}  # fmt: skip
_LANES = 4

U32 = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Characters:
    """Code points of (n,) texts, padding before each and behind the last.

    Attributes:
        codes: (m + PAD,) code points. kinds: (m + PAD,) what each is.
        starts: (n,) where each text begins, its padding included. lengths: (n,) characters, padding included.
    """

    codes: U32
    kinds: npt.NDArray[np.uint8]
    starts: Ints
    lengths: Ints

    def marks(self) -> npt.NDArray[np.uint8]:
        """(n,) all bits that any character of a text has."""
        if not self.starts.size:
            return np.zeros(0, np.uint8)
        return np.bitwise_or.reduceat(self.kinds[: int(self.lengths.sum())], self.starts)


@dataclass(frozen=True, slots=True)
class Words:
    """Words of (n,) texts, in order.

    Attributes:
        hashes: (m,) hash of each word. is_long: (m,) whether it says something: three characters, or one sign.
        counts: (n,) words of each text. starts: (n,) index of the first word of each text.
    """

    hashes: U32
    is_long: npt.NDArray[np.bool_]
    counts: Ints
    starts: Ints


def characters(texts: pl.Series) -> Characters:
    """Characters of texts.

    Args:
        texts: (n,) folded texts without nulls.
    """
    lengths = texts.str.len_chars().to_numpy().astype(np.int64) + PAD
    pad = "\0" * PAD
    joined = pad + pad.join(texts.to_list()) + pad if len(texts) else ""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _kinds()[np.minimum(codes, np.uint32(0xFFFF))]
    return Characters(codes, kinds, np.cumsum(lengths) - lengths, lengths)


def words(texts: Characters) -> Words:
    """Words of texts."""
    n = texts.codes.size
    is_single = (texts.kinds & _SINGLE) != 0
    is_word = (texts.kinds & _WORD) != 0
    # The padding is no word, so both ends of every run lie inside.
    begins, ends = is_single.copy(), is_single.copy()
    begins[1:] |= is_word[1:] & ~is_word[:-1]
    ends[:-1] |= is_word[:-1] & ~is_word[1:]
    first, last = np.flatnonzero(begins), np.flatnonzero(ends) + 1
    powers, inverses = _powers(n)
    sums = np.zeros(n + 1, np.uint32)
    np.cumsum(texts.codes * powers, dtype=np.uint32, out=sums[1:])
    hashes = (sums[last] - sums[first]) * inverses[first]
    starts = np.searchsorted(first, texts.starts)
    counts = np.diff(starts, append=first.size)
    is_long = (last - first >= 3) | is_single[first]
    return Words(mixed(hashes, 0), is_long, counts, starts)


def mixed(hashes: U32, salt: int) -> U32:
    """Hashes of one kind, well spread and apart from those of other kinds."""
    out = hashes + np.uint32((salt * 2246822519) & 0xFFFFFFFF)
    out ^= out >> np.uint32(16)
    out *= np.uint32(0x85EBCA6B)
    out ^= out >> np.uint32(13)
    out *= np.uint32(0xC2B2AE35)
    return out


def overlap(own: Words, other: Words) -> npt.NDArray[np.float32]:
    """About the share of the words of the text with fewer of them that the other has too; 0 without any.

    Each text is a set of 256 bits, one a word: words that share a bit count as one, which the short texts
    of this place seldom do.
    """
    mine, theirs = _sets(own), _sets(other)
    shared = np.bitwise_count(mine & theirs).sum(axis=0, dtype=np.int64)
    smaller = np.minimum(*(np.bitwise_count(bits).sum(axis=0, dtype=np.int64) for bits in (mine, theirs)))
    share: npt.NDArray[np.float32] = (shared / np.maximum(smaller, 1)).astype(np.float32)
    return share


def _sets(of: Words) -> npt.NDArray[np.uint64]:
    """(lanes, n) bits of the words of each text."""
    out = np.zeros((_LANES, of.counts.size), np.uint64)
    some = np.flatnonzero(of.counts)
    if some.size:
        lane = (of.hashes >> np.uint32(6)) & np.uint32(_LANES - 1)
        bits = np.left_shift(np.uint64(1), (of.hashes & np.uint32(63)).astype(np.uint64)) * of.is_long
        for k in range(_LANES):
            out[k, some] = np.bitwise_or.reduceat(bits * (lane == k), of.starts[some])
    return out


@lru_cache(maxsize=1)
def _kinds() -> npt.NDArray[np.uint8]:
    """Kind and bits of each code point below 65,536; all above are words by themselves, as pictures are."""
    kinds = np.array([unicodedata.category(chr(c))[0] in "LNM" for c in range(0x10000)], np.uint8)
    for low, high in _WITHOUT_SPACES:
        kinds[low : high + 1] = np.where(kinds[low : high + 1] > 0, _SINGLE, 0)
    for signs, bits in _BITS.items():
        for sign in signs:
            kinds[ord(sign)] |= bits
    kinds[0xFFFF] = _SINGLE
    return kinds


@lru_cache(maxsize=2)
def _grown(n: int) -> tuple[U32, U32]:
    inverse = pow(_BASE, -1, 1 << 32)
    out = []
    for base in (_BASE, inverse):
        powers = np.full(n, base, np.uint32)
        powers[0] = 1
        out.append(np.cumprod(powers, dtype=np.uint32))
    return out[0], out[1]


def _powers(n: int) -> tuple[U32, U32]:
    powers, inverses = _grown(1 << max(18, n.bit_length()))
    return powers[:n], inverses[:n]
