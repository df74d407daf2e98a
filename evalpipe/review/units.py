"""Reviewed items as labels of each signal that they could have had: what a rate is corrected by.

Belongs here: which items count for which signal. Does not belong here: corrections (``inference``),
versions of agents (``analysis``).
"""

from __future__ import annotations

import polars as pl

from evalpipe.review.evidence import Versions, last_opinions
from evalpipe.review.rules import UNSURE, Guide, Limits

LABELLED = pl.Schema({
    "session_id": pl.String, "signal": pl.String, "unit": pl.String, "is_emitted": pl.Boolean, "truth": pl.Float64,
    "inclusion_prob": pl.Float64,
})  # fmt: skip


def labelled(reviews: pl.DataFrame, guide: Guide, limits: Limits, versions: Versions) -> pl.DataFrame:
    """One row an item and signal that a reviewer could have told, under the detector in force.

    Args:
        reviews: Rows of ``signals.reviews``.
        guide: Labels that there are.
        limits: Groups of signals.
        versions: Detector version in force of a signal and language.

    Returns:
        Rows of :data:`LABELLED`: ``truth`` is the share of the reviewers who were sure that gave the
        signal's label. An item that another version of the detector saw says nothing of this one.
    """
    opinions: dict[str, list[frozenset[str]]] = {}
    items = {}
    for row in last_opinions(reviews).iter_rows(named=True):
        items[row["item_id"]] = row
        if UNSURE not in row["labels"]:
            opinions.setdefault(row["item_id"], []).append(frozenset(row["labels"]))
    rows = []
    for item_id, said in opinions.items():
        item = items[item_id]
        then = dict(pair.split("=", 1) for pair in item["versions"])
        emitted = set(item["emitted"])
        for name, members in named(guide, limits, item["kind"]).items():
            if all(then.get(one) == versions(one, item["lang"]) for one in members):
                share = sum(bool(members & labels) for labels in said) / len(said)
                is_emitted = bool(members & emitted)
                rows.append((item["session_id"], name, item["kind"], is_emitted, share, item["inclusion_prob"]))
    return pl.DataFrame(rows, schema=LABELLED, orient="row")


def named(guide: Guide, limits: Limits, kind: str) -> dict[str, frozenset[str]]:
    """Signals that a reviewer can tell from a kind of item, and groups of them, by name.

    Args:
        guide: Labels that there are. limits: Groups.
        kind: ``turn`` or ``call``.
    """
    single = guide.signals(kind)
    groups = {name: frozenset(members).intersection(single) for name, members in limits.joined.items()}
    return {name: frozenset({name}) for name in single} | {name: group for name, group in groups.items() if group}
