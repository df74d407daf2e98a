"""Checks that need the assignment ledger: split, exposure to several versions, compliance.

Belongs here: counting assigned units against the arms of the ledger. Does not belong here: the match of
sessions with the ledger (``signals``), the statistic (``inference``), what a failed check does
(``design.py``).

They are made on every settled session, also on those that no version can be credited with: a split
that is right only among sessions that could be scored is not right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from evalpipe.analysis.labels import version_labels
from evalpipe.analysis.stamp import digest
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.inference import Check, sample_ratio
from evalpipe.inference.design import SRM_LIMIT

#: Share of units or sessions that may depart from their assignment before it no longer protects.
DEPARTED_LIMIT = 0.05
#: By how much the probabilities of an epoch may miss 1 and still be the whole lottery.
SHARE_TOLERANCE = 0.02

_SAME = 1e-6
_PARTS = ("agent", "agent_release", "model")
_EPOCH = ("policy", "routing_epoch", "unit")
_NAMED_ARMS = 4


def ledger_checks(settled: pl.DataFrame, arms: pl.DataFrame, compare_by: Sequence[str], headline: str) -> list[Check]:
    """What the ledger's word on a window can be held against.

    Args:
        settled: Rows of ``signals.session_outcomes``.
        arms: ``signals.routing_arms`` of the window's days.
        compare_by: Parts of a version's label.
        headline: Headline metric.

    Returns:
        ``srm`` by epoch and over all, ``multiple_exposure``, ``non_compliance`` and, where some session
        departs from its assignment, ``intention_to_treat``; none without a ledger.
    """
    rows = settled.with_columns(
        version_labels(settled, compare_by),
        policy="assignment_policy",
        unit="assignment_unit",
        unit_id=pl.when(pl.col("assignment_unit") == "user")
        .then(pl.coalesce("user_id", "session_id"))
        .otherwise("session_id"),
    )
    told = rows.filter(pl.col("assignment_source") == "ledger")
    if told.is_empty():
        return []
    whole = arms.group_by(*_EPOCH, "arm").agg(
        *[pl.col(name).first() for name in _PARTS], pl.col("probability_low").min(), pl.col("probability_high").max()
    )
    return [
        *_srm(told, whole),
        *_exposure(told.filter(pl.col("unit") == "user")),
        *_compliance(told, whole, compare_by, headline),
    ]


def _srm(told: pl.DataFrame, arms: pl.DataFrame) -> list[Check]:
    """Units by arm against the probabilities of the arms, an arm that served nobody included."""
    found = told.filter(pl.col("assigned_arm").is_not_null())
    n_of = found.group_by(*_EPOCH, arm="assigned_arm").agg(n=pl.col("unit_id").n_unique())
    cells = arms.join(n_of, on=[*_EPOCH, "arm"], how="full", coalesce=True).with_columns(pl.col("n").fill_null(0))
    cells = cells.sort(*_EPOCH, "arm")
    names: list[tuple[str, ...]] = []
    tested: list[tuple[list[float], list[float]]] = []
    checks: list[Check] = []
    for key, group in cells.group_by(_EPOCH, maintain_order=True):
        name = tuple(str(part) for part in key)
        if group["n"].sum() == 0:
            continue
        low, high = group["probability_low"], group["probability_high"]
        if low.null_count() or ((high - low) > _SAME).any():
            why = "Arms of this epoch have no probability, or several, so their shares are not known."
        elif abs(float(low.sum()) - 1.0) > SHARE_TOLERANCE:
            why = f"Probabilities of this epoch's arms sum to {low.sum():.3g}, so a part of the lottery is not known."
        else:
            names.append(name)
            tested.append((group["n"].cast(pl.Float64).to_list(), (low / low.sum()).to_list()))
            checks.append(Check("srm", _subject(name), np.nan, SRM_LIMIT, "ok", _counts(group, name[2])))
            continue
        checks.append(Check("srm", _subject(name), np.nan, SRM_LIMIT, "unavailable", why))
    if not tested:
        return checks or [_no_shares()]
    width = max(len(n) for n, _ in tested)
    counts, shares = (
        np.array([row + [0.0] * (width - len(row)) for row in side]) for side in zip(*tested, strict=True)
    )
    ratio = sample_ratio(counts, shares, seed=int.from_bytes(digest("srm", names)) >> 1)
    place = {_subject(name): e for e, name in enumerate(names)}
    out = [
        check if (e := place.get(check.subject)) is None
        else _judged(check.subject, check.detail, ratio.statistic[e], ratio.df[e], ratio.p[e])
        for check in checks
    ]  # fmt: skip
    if len(tested) > 1:
        out.append(_judged("all epochs", f"{len(tested)} epochs together", *ratio.pooled))
    return out


def _judged(subject: str, what: str, statistic: float, df: float, p: float) -> Check:
    if np.isnan(p):
        return Check("srm", subject, np.nan, SRM_LIMIT, "unavailable", f"{what}: only one arm has a share.")
    detail = f"{what}: chi-square {statistic:.2f} on {df:.0f}, p = {p:.3g}."
    return Check("srm", subject, float(p), SRM_LIMIT, "suspect" if p < SRM_LIMIT else "ok", detail)


def _no_shares() -> Check:
    detail = "The ledger names no version for the units of this window, so no shares are known."
    return Check("srm", "ledger", np.nan, SRM_LIMIT, "unavailable", detail)


def _subject(name: tuple[str, ...]) -> str:
    policy, epoch, unit = name
    return f"{unit}s in {epoch}" if epoch.startswith(policy) else f"{unit}s in {policy}, {epoch}"


def _counts(group: pl.DataFrame, unit: str) -> str:
    total, share = int(group["n"].sum()), group["probability_low"]
    shown = [
        f"{_plain(arm)} {n} of {total * p / float(share.sum()):.1f} expected"
        for arm, n, p in group.select("arm", "n", "probability_low").head(_NAMED_ARMS).iter_rows()
    ]
    more = f", {group.height - _NAMED_ARMS} more arms" if group.height > _NAMED_ARMS else ""
    return f"{total} {unit}s by assigned arm, {', '.join(shown)}{more}"


def _plain(arm: str) -> str:
    """An arm without the parts that it leaves open."""
    return " · ".join(part for part in arm.split(" · ") if part != "*")


def _exposure(users: pl.DataFrame) -> list[Check]:
    """Users who met, or were assigned, several versions in one epoch."""
    if users.is_empty():
        return []
    seen = users.group_by("policy", "routing_epoch", "unit_id").agg(
        n_served=pl.col("version").n_unique() - pl.col("version").is_null().any().cast(pl.UInt32),
        n_assigned=pl.col("assigned_arm").drop_nulls().n_unique(),
    )
    n = seen.filter((pl.col("n_served") > 1) | (pl.col("n_assigned") > 1)).height
    share = n / seen.height
    detail = (
        f"{n} of {seen.height} users met or were assigned several versions in one epoch. None is left out, since who "
        "switches may depend on the version: each session counts for the version that served it."
    )
    return [_limited("multiple_exposure", "users", share, detail)]


def _compliance(told: pl.DataFrame, arms: pl.DataFrame, compare_by: Sequence[str], headline: str) -> list[Check]:
    """Sessions whose served version is not the assigned one, and what assignment alone would say."""
    named = told.filter(pl.col("is_as_assigned").is_not_null())
    if named.is_empty():
        return []
    n = int((~named["is_as_assigned"]).sum())
    detail = f"{n} of {named.height} sessions were served by another version than the ledger assigned to their unit."
    detail += " Numbers compare the versions that served; intention_to_treat has them by assigned version." if n else ""
    checks = [_limited("non_compliance", "sessions", n / named.height, detail)]
    if not n:
        return checks
    parts = arms.select(*_EPOCH, pl.col("arm").alias("assigned_arm"), *[pl.col(p).alias(f"{p}_told") for p in _PARTS])
    both = named.join(parts, on=[*_EPOCH, "assigned_arm"], how="left", maintain_order="left")
    as_told = both.with_columns(pl.coalesce(f"{part}_told", part).alias(part) for part in _PARTS)
    both = both.with_columns(version_labels(as_told, compare_by).alias("assigned"))
    title, is_rate = BY_NAME[headline].title, BY_NAME[headline].is_rate
    for version in both["assigned"].drop_nulls().unique().sort():
        by_told, by_served = (_mean(both.filter(pl.col(c) == version), headline) for c in ("assigned", "version"))
        words = [
            f"{_shown(mean, is_rate=is_rate)} of {size} sessions {how}"
            for (mean, size), how in ((by_told, "assigned to it"), (by_served, "served by it"))
        ]
        text = f"{title}, plain mean by intention to treat: {words[0]}; {words[1]}."
        checks.append(Check("intention_to_treat", version, by_told[0], np.nan, "ok", text))
    return checks


def _mean(rows: pl.DataFrame, metric: str) -> tuple[float, int]:
    d = float(rows[f"{metric}_den"].sum() or 0.0)
    return (float(rows[f"{metric}_num"].sum() or 0.0) / d if d > 0 else np.nan), rows.height


def _shown(mean: float, *, is_rate: bool) -> str:
    return "unknown" if np.isnan(mean) else f"{mean:.1%}" if is_rate else f"{mean:.3g}"


def _limited(check: str, subject: str, share: float, detail: str) -> Check:
    return Check(check, subject, share, DEPARTED_LIMIT, "suspect" if share > DEPARTED_LIMIT else "ok", detail)
