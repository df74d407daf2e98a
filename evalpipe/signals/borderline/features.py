"""Features of a turn in its moment: the same function trains and judges.

Belongs here: what the model sees. Does not belong here: weights (``model``), fitting (``train``), which
turns are judged (``candidates``).

A turn is seen as grams of two to four characters, as words and pairs of words, and as its first words
together with what the agent had just done, all hashed into one space; and as a few numbers about its form and
its overlap with what came before. Nothing depends on the language: short turns often do not tell theirs. The
agent's own words are left out: they tell the writer of a dialogue, and how to go on in it, not the turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from evalpipe.signals.borderline import tokens
from evalpipe.signals.borderline.tokens import U32, Characters, Ints, Words, mixed
from evalpipe.signals.context import agent_flags
from evalpipe.signals.text import prose_column

#: Version of everything here: weights of another version are refused.
VERSION = "1"
BITS = 15
#: Buckets of the hashed features.
BUCKETS = 1 << BITS
HEAD_CHARS, TAIL_CHARS, REQUEST_CHARS = 220, 120, 120
_ORDERS = (2, 3, 4)
_VERY_SHORT, _SHORT, _LONG = 15, 40, 120
#: Names of the numbers, in the order of their columns behind the hashed ones.
NUMBERS = (
    "length", "is_very_short", "is_short", "is_long", "asks", "ends_asking", "exclaims", "has_breaks", "has_digits",
    "agent_asked", "agent_claimed_done", "short_after_question", "short_after_claim", "asks_after_claim",
    "overlap_request", "overlap_agent", "repeats_request", "names_what_agent_said",
)  # fmt: skip

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Block:
    """Hashed features of one kind.

    Attributes:
        columns: (m,) bucket of each, row after row. bounds: (n + 1,) where each row begins.
        scale: (n,) what one counts in its row: one over the root of their number.
    """

    columns: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int32]
    scale: Floats

    def rows(self) -> sp.csr_matrix:
        """(n, buckets) counts, not scaled."""
        ones = np.ones(self.columns.size, np.float32)
        return sp.csr_matrix((ones, self.columns, self.bounds), shape=(self.scale.size, BUCKETS), copy=False)


@dataclass(frozen=True, slots=True)
class Features:
    """Features of (n,) turns: blocks of hashed ones, and (n, numbers)."""

    blocks: tuple[Block, ...]
    numbers: Floats

    def times(self, hashed: Floats, numbers: Floats) -> Floats:
        """Product with the weights of hashed features (buckets, k) and of numbers (numbers, k)."""
        out = self.numbers @ numbers
        for block in self.blocks:
            out += (block.rows() @ hashed) * block.scale[:, None]
        return out

    def matrix(self) -> sp.csr_matrix:
        """(n, buckets + numbers) float32."""
        scaled = [sp.diags(block.scale) @ block.rows() for block in self.blocks]
        total = scaled[0]
        for part in scaled[1:]:
            total = total + part
        return sp.hstack([total, sp.csr_matrix(self.numbers)], format="csr", dtype=np.float32)


def moments(texts: list[str], requests: list[str | None], agent: list[str | None]) -> pl.DataFrame:
    """Turns that stand alone, with what came before, in the form of :func:`features`.

    Args:
        texts: (n,) turns. requests: (n,) the person's turn before. agent: (n,) the agent's last message.
    """
    prose = prose_column(pl.Series(texts, dtype=pl.String))["prose"]
    before = prose_column(pl.Series(requests, dtype=pl.String))["prose"].alias("before")
    return pl.concat([pl.DataFrame([prose, before]), agent_flags(pl.Series(agent, dtype=pl.String))], how="horizontal")


def features(turns: pl.DataFrame) -> Features:
    """Features of turns.

    Args:
        turns: (n,) frame with ``prose`` (folded), ``before`` (prose of the turn before, empty without one),
            ``agent_tail`` (folded end of the agent's message, empty without one),
            ``prev_agent_question`` and ``agent_claimed_done``.
    """
    said = turns["prose"].str.head(HEAD_CHARS)
    chars = tokens.characters(said)
    own = tokens.words(chars)
    agent = tokens.words(tokens.characters(turns["agent_tail"].str.tail(TAIL_CHARS)))
    request = tokens.words(tokens.characters(turns["before"].str.head(REQUEST_CHARS)))
    asked, done = (turns[name].to_numpy() for name in ("prev_agent_question", "agent_claimed_done"))
    moment = asked.astype(np.uint32) * np.uint32(2) + done
    blocks = (
        _grams(chars),
        _block(mixed(own.hashes, 11), own.counts),
        _block(mixed(_pairs(own), 12), own.counts),
        _openers(own, moment),
    )
    ends = said.str.strip_chars_end(" .\n").str.tail(1).is_in(["?", "？", "؟"]).to_numpy()
    overlaps = tokens.overlap(own, request), tokens.overlap(own, agent)
    length = turns["prose"].str.len_chars().to_numpy()
    return Features(blocks, _numbers(length, chars.marks(), ends, asked, done, *overlaps))


def _block(hashes: U32, counts: Ints) -> Block:
    bounds = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=bounds[1:])
    columns = (hashes >> np.uint32(32 - BITS)).astype(np.int32)
    return Block(columns, bounds, (1.0 / np.sqrt(np.maximum(counts, 1))).astype(np.float32))


def _grams(chars: Characters) -> Block:
    """Grams of two to four characters, the ends of the text included."""
    n = int(chars.lengths.sum())
    state = chars.codes[:n] * np.uint32(0x9E3779B1)
    columns = np.empty((n, len(_ORDERS)), np.uint32)
    for k in range(2, max(_ORDERS) + 1):
        state ^= state >> np.uint32(15)
        state *= np.uint32(0x85EBCA6B)
        state += chars.codes[k - 1 : n + k - 1]
        if k in _ORDERS:
            np.multiply(state, np.uint32(0xC2B2AE35), out=columns[:, _ORDERS.index(k)])
    return _block(columns.ravel(), chars.lengths * len(_ORDERS))


def _pairs(own: Words) -> U32:
    """Each word together with the one before it, or with the start of the text."""
    before = np.empty_like(own.hashes)
    before[1:] = own.hashes[:-1]
    before[own.starts[own.counts > 0]] = 1
    return own.hashes * np.uint32(31) + before


def _openers(own: Words, moment: U32) -> Block:
    """First word, and first two words, each with whether the agent had asked or claimed to be done."""
    some = own.counts > 0
    first = own.starts[some]
    one = own.hashes[first]
    following = own.hashes[np.minimum(first + 1, max(own.hashes.size - 1, 0))]
    two = one * np.uint32(31) + np.where(own.counts[some] > 1, following, np.uint32(2))
    both = np.stack([mixed(one + moment[some], 13), mixed(two + moment[some], 14)], axis=1)
    return _block(both.ravel(), some.astype(np.int64) * 2)


def _numbers(
    length: npt.NDArray[np.uint32], marks: npt.NDArray[np.uint8], ends: npt.NDArray[np.bool_],
    asked: npt.NDArray[np.bool_], done: npt.NDArray[np.bool_], request: Floats, reply: Floats,
) -> Floats:  # fmt: skip
    short = length < _SHORT
    asks = (marks & tokens.ASKS) != 0
    columns = (
        np.log1p(length) / 5.0, length < _VERY_SHORT, short, length > _LONG, asks, ends,
        (marks & tokens.EXCLAIMS) != 0, (marks & tokens.BREAK) != 0, (marks & tokens.DIGIT) != 0,
        asked, done, asked & short, done & short, done & asks, request, reply, request > 0.5, reply > 0.5,
    )  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float32)
