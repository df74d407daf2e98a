"""Candidates of turns on which no pattern fires.

Belongs here: which turns the classifier judges and which of them become rows. Does not belong here: its
weights, and anything that counts: these rows go to ``signals.candidates`` alone, after tasks, episodes and
features of sessions were made without them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import SEMANTIC
from evalpipe.signals import rulefiles
from evalpipe.signals.borderline import features, model
from evalpipe.signals.borderline.classes import CLASSES, SIGNAL_OF
from evalpipe.signals.semantic import Turn, make_row, opening

EXTRACTOR = "borderline"
RULE = "borderline"
_SIGNALS = [i for i, name in enumerate(CLASSES) if name in SIGNAL_OF]


@lru_cache(maxsize=1)
def min_probability() -> float:
    """Least probability of a signal that makes a candidate."""
    return float(rulefiles.load("borderline.toml")["min_probability"])


def borderline_rows(turns: pl.DataFrame, found: pl.DataFrame, chars: int) -> pl.DataFrame:
    """Rows of the classifier, unsorted, ``task_id`` null.

    Args:
        turns: Frame of :func:`evalpipe.signals.turns.human_turns`.
        found: Rows of patterns on these turns: a turn with one is not judged.
        chars: Length of snippets.

    Returns:
        At most one row a turn, of the most probable signal, where its probability is high enough.
    """
    asked = turns.with_columns(before=pl.col("prose").shift(1).over("session_id").fill_null(""))
    silent = asked.filter("has_agent").join(found, on=["session_id", "seq"], how="anti", maintain_order="left")
    weights = model.shipped()
    judged = weights.probabilities(silent)[:, _SIGNALS]
    best = judged.argmax(axis=1) if silent.height else np.zeros(0, np.int64)
    probability = judged.max(axis=1) if silent.height else np.zeros(0, np.float32)
    sure = np.flatnonzero(probability >= min_probability())
    about = silent.select("session_id", "seq", "turn", "text", "lang", "prev_turn_seq")[sure]
    rows = []
    for k, p, columns in zip(best[sure], probability[sure], about.iter_rows(), strict=True):
        turn = Turn(*columns)
        signal, likely = SIGNAL_OF[CLASSES[_SIGNALS[k]]], round(float(p), 4)
        rows.append(make_row(turn, signal, RULE, likely, opening(turn.text, chars), chars, EXTRACTOR))
    marked = pl.DataFrame(rows, schema=polars_schema(SEMANTIC), orient="row")
    return marked.with_columns(
        method=pl.lit("model"), probability="confidence", model_version=pl.lit(weights.digest),
        extractor_version=pl.lit(features.VERSION),
    )  # fmt: skip
