"""Moving stored rows from one epoch of the key to the next, without the values behind their tokens.

Belongs here: which parts of a row are tokens, and what each becomes. Does not belong here: files and
slices (``steps/rotation.py``), how a token follows from the one before (``keys``).

Three forms are moved: pseudonyms in text (``<ENTITY:epoch:letters>``) of the old epoch, ids
(``s_letters``) in the columns that the contract calls pseudonyms, and digests that signals make of both,
since whoever holds the old key could compute them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import polars as pl

from evalpipe.contracts.model import Sensitivity, Table
from evalpipe.masking.keys import TOKEN_LETTERS, MaskingKey

_ID = rf"^[a-z]_[a-p]{{{TOKEN_LETTERS}}}$"
_DIGEST = r"^(?:t:)?[0-9a-f]{16}$"
#: Columns of signals that hold digests of ids or of masked text (``signals/ids.py``).
_DIGESTS = frozenset(("signal_id", "inputs", "target_key", "target", "task_id"))
_DIGESTED_LAYER = "signals"
#: Outcomes hold the task of a controlled task set under the same name: that is a label.
_LABELLED = frozenset(("signals.session_outcomes",))


def rekey_frame(table: Table, frame: pl.DataFrame, old: MaskingKey, new: MaskingKey) -> pl.DataFrame:
    """Rows of a masked or later table under the next epoch.

    Args:
        table: Their contract.
        frame: Rows whose tokens are of ``old``.
        old, new: The key before and after; ``new`` continues ``old``.

    Returns:
        The same rows in the same order; whoever was one person before is one person after.
    """
    forward = _forward(old, new)
    columns = []
    for column in table:
        series = frame[column.name]
        if column.name == "key_epoch":
            series = series.replace(old.epoch, new.epoch)
        elif series.dtype in (pl.String, pl.List(pl.String)):
            series = _texts(series, old, forward, new.epoch)
            if column.sensitivity is Sensitivity.PSEUDONYM:
                series = _whole(series, _ID, forward)
            if _is_digest(table, column.name):
                series = _whole(series, _DIGEST, forward)
        columns.append(series.alias(column.name))
    return pl.DataFrame(columns)


def rekey_text(text: str, old: MaskingKey, new: MaskingKey) -> str:
    """A text with its pseudonyms of ``old`` moved to ``new``; applied again it changes nothing."""
    forward = _forward(old, new)
    return re.sub(_pseudonym(old), lambda m: f"{m[1]}:{new.epoch}:{forward(m[2])}>", text)


def _is_digest(table: Table, column: str) -> bool:
    return table.layer == _DIGESTED_LAYER and column in _DIGESTS and table.full_name not in _LABELLED


def _forward(old: MaskingKey, new: MaskingKey) -> Callable[[str], str]:
    @lru_cache(maxsize=65_536)
    def forward(token: str) -> str:
        return new.forward(old.epoch, token)

    return forward


def _pseudonym(old: MaskingKey) -> str:
    return rf"(<[A-Z][A-Z0-9_]*):{old.epoch}:([a-p]{{{TOKEN_LETTERS}}})>"


def _texts(series: pl.Series, old: MaskingKey, forward: Callable[[str], str], epoch: str) -> pl.Series:
    flat = series.explode() if series.dtype == pl.List(pl.String) else series
    found = flat.str.extract_all(_pseudonym(old)).explode().drop_nulls().unique().sort().to_list()
    if not found:
        return series
    parts = [re.fullmatch(_pseudonym(old), token) for token in found]
    moved = [f"{m[1]}:{epoch}:{forward(m[2])}>" for m in parts if m is not None]
    if series.dtype == pl.String:
        return series.str.replace_many(found, moved)
    return series.list.eval(pl.element().str.replace_many(found, moved))


def _whole(series: pl.Series, pattern: str, forward: Callable[[str], str]) -> pl.Series:
    flat = series.explode() if series.dtype == pl.List(pl.String) else series
    values = flat.drop_nulls().unique()
    found = values.filter(values.str.contains(pattern)).sort().to_list()
    if not found:
        return series
    moved = [_kept(value) + forward(value[len(_kept(value)) :]) for value in found]
    if series.dtype == pl.String:
        return series.replace(found, moved)
    return series.list.eval(pl.element().replace(found, moved))


def _kept(value: str) -> str:
    """The kind in front of an id or digest, which stays."""
    return value[:2] if value[1:2] in ("_", ":") else ""
