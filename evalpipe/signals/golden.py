"""The golden set: texts with known signals that ship with the patterns, and what the patterns say of them.

Belongs here: reading the set and running it. Every example of every pattern is in it, and is read by all
patterns of its language together, so that a pattern that fires on another's counter-example shows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import polars as pl

from evalpipe.contracts.signals import BY_NAME
from evalpipe.signals import patterns
from evalpipe.signals.text import prose_column


@dataclass(slots=True)
class GoldenCount:
    """What the golden set says of one signal and language: rows, emitted, right, labelled, found."""

    n: int = 0
    n_emitted: int = 0
    n_right: int = 0
    n_labelled: int = 0
    n_found: int = 0


@cache
def golden(min_confidence: float) -> dict[tuple[str, str], GoldenCount]:
    """Run the golden set.

    Args:
        min_confidence: Least confidence of a pattern that counts.

    Returns:
        Counts by (signal, language). An example has the signal of its pattern; a counter-example has
        not. That another signal fires beside is right where both speak for or against the agent:
        examples say what they are, not all that they are.
    """
    known = patterns.load_patterns()
    texts = pl.DataFrame(
        [
            (p.lang, p.signal, text, is_match, *(dict(p.context).get(flag, False) for flag in patterns.CONTEXT_FLAGS))
            for p in known
            for is_match, examples in ((True, p.match), (False, p.no_match))
            for text in examples
        ],
        schema=["lang", "signal", "text", "is_match", *patterns.CONTEXT_FLAGS],
        orient="row",
    ).with_row_index("row")
    turns = texts.with_columns(prose_column(texts["text"]))
    prose = turns["prose"]
    fired: dict[int, set[str]] = defaultdict(set)
    for row, index in patterns.find(turns, tuple(sorted({p.lang for p in known}))).iter_rows():
        pattern = known[index]
        if pattern.confidence >= min_confidence and patterns.locate(pattern, prose[row]) is not None:
            fired[row].add(pattern.signal)
    out: dict[tuple[str, str], GoldenCount] = defaultdict(GoldenCount)
    for row, lang, signal, is_match in texts.select("row", "lang", "signal", "is_match").iter_rows():
        own = out[signal, lang]
        is_fired = signal in fired[row]
        own.n += 1
        own.n_labelled += is_match
        own.n_found += is_match and is_fired
        own.n_emitted += is_fired
        own.n_right += is_match and is_fired
        if is_match:
            for other in fired[row] - {signal}:
                beside = out[other, lang]
                beside.n_emitted += 1
                beside.n_right += BY_NAME[other].polarity == BY_NAME[signal].polarity
    return dict(out)
