"""Inputs: one number makes one file, always the same.

Belongs here: which damage is done to which seed, and how much. Does not belong here: the kinds of
damage (``edits.py``, ``damage.py``, ``wrapping.py``), or what must hold of the result (``judge.py``).
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from typing import Any

from evalpipe_tests.fuzz.damage import DAMAGES
from evalpipe_tests.fuzz.edits import EDITS, WORD_EDITS
from evalpipe_tests.fuzz.seeds import Seed, families
from evalpipe_tests.fuzz.values import written
from evalpipe_tests.fuzz.wrapping import NAMES, eval_archive, parquet, wrapped

#: Edits may multiply records; what is larger than this is cut, so that an input stays a small one.
MAX_BYTES = 1_500_000
_SHARE_OF_WORDS = 0.3


@dataclass(frozen=True)
class Made:
    """One input.

    Attributes:
        family: Name of the reader of the seed that it was made from.
        name: Name of the file.
        data: Bytes of the file.
        steps: What was done to the seed, in order.
    """

    family: str
    name: str
    data: bytes
    steps: tuple[str, ...]


def make(number: int, family: str = "") -> Made:
    """The input of a number.

    Args:
        number: Any whole number.
        family: Reader whose seeds to start from; by default the number says.
    """
    choose = random.Random(number)
    names = sorted(families())
    family = family or names[choose.randrange(len(names))]
    seed = choose.choice(families()[family])
    other = choose.choice(families()[family if choose.random() < 0.5 else choose.choice(names)])
    steps = [seed.name]
    records: list[Any] = copy.deepcopy(list(seed.records))
    kind = choose.random()
    n_edits = 0 if kind < 0.25 else choose.choice((1, 1, 1, 2, 2, 3, 5, 8))
    if seed.form != "text":
        for _ in range(n_edits):
            if choose.random() < _SHARE_OF_WORDS:
                say = choose.choice(WORD_EDITS)
                steps.append(say.__name__)
                records = say(records, family, choose)
            else:
                edit = choose.choice(EDITS)
                steps.append(edit.__name__)
                records = edit(records, list(other.records), choose)
            if not isinstance(records, list):
                records = [records]
    if seed.form == "lines" and seed.records and choose.random() < 0.3:
        # The first record says what the file is; without it most damage is never reached.
        records.insert(0, copy.deepcopy(seed.records[0]))
        steps.append("first record again")
    data = _bytes_of(records, seed, choose, steps)
    n_damages = 0 if kind > 0.7 else choose.choice((1, 1, 1, 2, 3, 5))
    for _ in range(n_damages):
        damage = choose.choice(DAMAGES)
        steps.append(damage.__name__)
        data = damage(data, other.data, choose)[:MAX_BYTES]
    if choose.random() < 0.08:
        steps.append("wrapped")
        data = wrapped(data, other.data, choose)
    name = NAMES[0] if choose.random() < 0.8 else choose.choice(NAMES)
    return Made(family, name, data, tuple(steps))


def _bytes_of(records: list[Any], seed: Seed, choose: random.Random, steps: list[str]) -> bytes:
    kind = choose.random()
    if seed.form != "text":
        if kind < 0.02 and (table := parquet(records)) is not None:
            steps.append("parquet")
            return table
        if (kind < 0.2 and seed.family == "inspect") or kind < 0.005:
            steps.append("eval archive")
            return eval_archive(records, choose)
    form = seed.form if seed.form == "text" or kind < 0.9 else choose.choice(("lines", "items", "spread", "whole"))
    return written(records, form)[:MAX_BYTES]
