"""Draws, shares, agreement, verdicts and drift, on numbers that can be told by hand."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe import review
from evalpipe.contracts.render import frame
from evalpipe.contracts.tables.reviews import REVIEW_FRAMES, REVIEW_ITEMS, REVIEWS
from evalpipe.inference import (
    Share,
    equal_shares,
    hajek_share,
    jensen_shannon,
    kendall_tau,
    stability_index,
    top_overlap,
    units_for_bound,
)
from evalpipe.review.draw import FRAME, allocate
from evalpipe.review.evidence import verdict

LIMITS = review.limits()


def version(signal: str, lang: str) -> str:
    del signal, lang
    return "1.v"


def said(n: int, labels: list[str], emitted: list[str], **more: Any) -> list[dict[str, Any]]:
    """``n`` reviews of one reviewer; ``start`` numbers the items."""
    start = more.pop("start", 0)
    row = {
        "sample_id": "ab", "session_id": "s_x", "seq": 1, "day": date(2026, 1, 5), "kind": "turn", "lang": "en",
        "source": "codex", "model": "m-1", "stratum": "x", "parts": ["uniform"], "inclusion_prob": 1.0,
        "candidates": [], "rules": [], "versions": [f"{s}=1.v" for s in review.guide().signals("turn")],
        "reviewer": "ann", "revision": 1, "note": None, "guide_version": "1",
    } | more  # fmt: skip
    return [row | {"item_id": f"ab.{start + i:04d}", "labels": labels, "emitted": emitted} for i in range(n)]


def reviews(*groups: list[dict[str, Any]]) -> pl.DataFrame:
    return frame(REVIEWS, [row for group in groups for row in group])


def demoted(*groups: list[dict[str, Any]], **limits: Any) -> frozenset[tuple[str, str]]:
    return review.demoted(reviews(*groups), replace(LIMITS, **limits), version)


# ---- draws


def drawable(n: int, **columns: Any) -> pl.DataFrame:
    row = {"kind": "turn", "lang": "en", "model": "m-1", "emitted": [], "candidates": [], "confidence": []}
    row |= {"held": 0.0, "is_drawn": False} | columns
    start = row.pop("start", 0)
    return pl.DataFrame([row | {"key": f"k{start + i:05d}"} for i in range(n)], schema=FRAME)


def test_strata_share_as_equally_as_they_can() -> None:
    assert allocate({"a": 1, "b": 5, "c": 50}, 11) == {"a": 1, "b": 5, "c": 5}
    assert sum(allocate({"a": 10, "b": 10, "c": 10}, 10).values()) == 10
    assert allocate({"a": 2}, 9) == {"a": 2}


def test_rare_strata_are_drawn_and_probabilities_are_those_of_the_draw() -> None:
    population = pl.concat(
        [
            drawable(400, emitted=["correction"], confidence=[0.95]),
            drawable(10, start=1000, emitted=["correction"], confidence=[0.95], lang="pt"),
            drawable(20, start=2000, emitted=["praise"], confidence=[0.76], model="m-2"),
            drawable(30, start=3000, emitted=["praise", "correction"], confidence=[0.95, 0.95]),
            drawable(1900, start=4000),
            drawable(100, start=7000, candidates=["accept.implicit"], confidence=[0.5]),
        ]
    )
    told = review.draw(population, 100, LIMITS, 0.75)
    drawn = told.filter(pl.col("parts").list.len() > 0)
    assert (told.height, drawn.height) == (population.height, 100)
    assert told.equals(review.draw(population.reverse(), 100, LIMITS, 0.75))
    joined = drawn.join(population, on="key")
    assert joined.filter(lang="pt").height == 10, "a small stratum is taken whole"
    assert (joined.filter(lang="pt")["inclusion_prob"] == 1.0).all()
    parts = Counter(part for row in drawn["parts"] for part in row)
    assert parts["conflict"] == 20
    assert parts["silent"] >= 10
    # Weighted by the inverse of its probability, the sample adds up to what it was drawn from.
    weight = (1 / joined["inclusion_prob"]).sum()
    assert weight == pytest.approx(population.height, rel=0.15)
    silent = joined.filter(pl.col("emitted").list.len() == 0)
    assert (1 / silent["inclusion_prob"]).sum() == pytest.approx(2000)
    assert silent["candidates"].list.len().sum() > 0, "what is a candidate only may be what was missed"


@pytest.mark.parametrize("n_labelled", [(60,), (60, 60, 60, 60), (60, 60, 0, 0), (60, 30, 60)])
def test_several_samples_estimate_what_one_does(n_labelled: tuple[int, ...]) -> None:
    # Half of the corrections are found; a fifth of what is found is none.
    truth = {
        "right": ("correction", 80),
        "wrong": ("neutral", 20),
        "missed": ("correction", 80),
        "none": ("neutral", 420),
    }
    found = []
    for world in range(25):
        parts, labels = [], {}
        for name, (label, n) in truth.items():
            sure = {"emitted": ["correction"], "confidence": [0.95]} if name in ("right", "wrong") else {}
            keys = [f"{world}-{name}-{i}" for i in range(n)]
            labels |= dict.fromkeys(keys, (label, name))
            parts.append(drawable(n, **sure).with_columns(key=pl.Series(keys)))
        found.append(_estimates(pl.concat(parts), labels, n_labelled))
    recall, precision = np.mean(found, axis=0)
    assert recall == pytest.approx(0.5, abs=0.07)
    assert precision == pytest.approx(0.8, abs=0.03)


def _estimates(items: pl.DataFrame, labels: dict[str, tuple[str, str]], n_labelled: tuple[int, ...]) -> list[float]:
    """Recall and precision of corrections, of samples of 60 items of which the first so many are labelled."""
    opinions: list[dict[str, Any]] = []
    drawn, frames = frame(REVIEW_ITEMS, []), frame(REVIEW_FRAMES, [])
    where = pl.lit(date(2026, 1, 5)).alias("day")
    for n in n_labelled:
        told = review.draw(items, 60, replace(LIMITS, sample={**LIMITS.sample, "silent": 0.6, "band": 0.0}), 0.75)
        one = told.select(
            where,
            "inclusion_prob",
            sample_id=pl.lit(f"s{drawn.height}"),
            session_id="key",
            seq=pl.lit(1, pl.Int32),
            n_drawn=pl.lit(60, pl.Int32),
        )
        frames = pl.concat([frames, one.select(frames.columns)])
        mine = told.filter(pl.col("parts").list.len() > 0)
        order = sorted(mine["key"], key=lambda key: hashlib.blake2b(key.encode()).digest())
        rows = []
        for i, key in enumerate(order):
            emitted = ["correction"] if labels[key][1] in ("right", "wrong") else []
            about = {"session_id": key, "sample_id": f"s{drawn.height}", "start": drawn.height + i}
            prob = mine.filter(key=key)["inclusion_prob"].item()
            rows += said(1, [labels[key][0]], emitted, inclusion_prob=prob, **about)
        opinions += rows[:n]
        drawn = pl.concat([drawn, frame(REVIEW_ITEMS, [{k: row[k] for k in drawn.columns} for row in rows])])
        held = review.held(review.chances(drawn, frames)).select("held", key="session_id")
        items = items.drop("held", "is_drawn").join(held, on="key", how="left")
        items = items.with_columns(is_drawn=pl.col("key").is_in(drawn["session_id"].implode()))
    pooled = review.pooled(frame(REVIEWS, opinions), drawn, review.chances(drawn, frames))
    row = table(pooled).filter(signal="correction", model="all").row(0, named=True)
    return [row["recall"], row["precision"]]


# ---- shares and verdicts


def test_a_share_of_unequal_draws_is_that_of_the_population() -> None:
    # 100 easy units, all right, drawn at 0.1; 10 hard ones, all wrong, drawn whole.
    share = hajek_share([1.0] * 10 + [0.0] * 10, [0.1] * 10 + [1.0] * 10)
    assert share.value == pytest.approx(100 / 110)
    assert share.n_effective == pytest.approx(110**2 / (10 * 100 + 10))
    assert share.low < share.value < share.high
    assert math.isnan(hajek_share([], []).value)


@pytest.mark.parametrize(("bound", "n"), [(0.80, 11), (0.85, 16), (0.90, 25), (0.95, 52)])
def test_units_that_a_bound_needs(bound: float, n: int) -> None:
    assert units_for_bound(bound) == n
    assert hajek_share([1.0] * n, [1.0] * n).low >= bound
    assert hajek_share([1.0] * (n - 1), [1.0] * (n - 1)).low < bound


@pytest.mark.parametrize(
    ("n", "wrong", "threshold", "expected"),
    [
        (24, 24, 0.85, "unproven"), (25, 0, 0.85, "proven"), (25, 2, 0.85, "demoted"), (38, 2, 0.85, "proven"),
        (30, 0, 0.95, "unproven"), (30, 1, 0.95, "unproven"), (30, 8, 0.95, "demoted"), (52, 0, 0.95, "proven"),
        (60, 1, 0.95, "demoted"), (100, 50, None, "unproven"),
    ],
)  # fmt: skip
def test_a_verdict_needs_rows_that_could_reach_the_threshold(
    n: int, wrong: int, threshold: float | None, expected: str
) -> None:
    share = hajek_share([1.0] * (n - wrong) + [0.0] * wrong, [1.0] * n)
    assert verdict(share, threshold, 25) == expected


def test_what_is_demoted() -> None:
    good, bad = said(40, ["correction"], ["correction"]), said(40, ["neutral"], ["correction"], start=100)
    assert demoted(good) == frozenset()
    assert demoted(good, bad) == {("correction", "en")}
    assert demoted(said(20, ["neutral"], ["correction"])) == frozenset()
    assert ("correction", "en") not in demoted(bad[:24])
    assert demoted(bad, said(40, ["neutral"], ["correction"], start=300, lang="pt")) == {
        ("correction", "en"),
        ("correction", "pt"),
    }
    other = said(40, ["neutral"], ["correction"], versions=["correction=1.old"])
    assert demoted(other) == frozenset(), "an older detector is not judged by"
    assert demoted(said(40, ["unsure"], ["correction"])) == frozenset()
    # A complaint is judged by polarity: a correction is no fault of it.
    assert demoted(said(40, ["correction"], ["complaint.sentiment"])) == frozenset()
    assert demoted(good, unproven_counts=False) >= {("praise", "en")}
    assert ("correction", "en") not in demoted(good, unproven_counts=False)


def test_a_group_takes_those_with_it_that_have_not_proven_themselves() -> None:
    few = [
        said(20, ["neutral"], ["complaint.sentiment"]),
        said(20, ["neutral"], ["complaint.failure_report"], start=100),
    ]
    proven = said(60, ["correction"], ["correction"], start=200)
    negative = {("complaint.sentiment", "en"), ("complaint.failure_report", "en"), ("rework.repeat", "en")}
    assert demoted(*few, proven) == negative


def test_two_reviewers_who_disagree_count_half_and_the_last_opinion_counts() -> None:
    one = said(40, ["correction"], ["correction"])
    two = said(40, ["neutral"], ["correction"], reviewer="bea")
    row = table(reviews(one, two)).filter(signal="correction", model="all").row(0, named=True)
    assert (row["n_reviewed"], row["n_correct"], row["precision"], row["status"]) == (40, 20.0, 0.5, "demoted")
    changed = said(40, ["correction"], ["correction"], reviewer="bea", revision=2)
    row = table(reviews(one, two, changed)).filter(signal="correction", model="all").row(0, named=True)
    assert (row["n_correct"], row["status"], row["is_counted"]) == (40.0, "proven", True)


def table(opinions: pl.DataFrame) -> pl.DataFrame:
    emitted = pl.DataFrame({"signal": ["correction"], "lang": ["en"], "model": ["m-1"], "n": [500]})
    return review.quality(
        opinions, emitted, LIMITS, version, rules={("correction", "en"): 3}, golden={}, scored={"correction"}
    )


def test_recall_is_read_off_silent_items_by_their_weight() -> None:
    found = said(10, ["correction"], ["correction"])
    missed = said(5, ["correction"], [], start=100, inclusion_prob=0.1)
    row = table(reviews(found, missed)).filter(signal="correction", model="all").row(0, named=True)
    assert row["recall"] == pytest.approx(10 / 60)
    assert row["recall_lo"] < row["recall"] < row["recall_hi"]
    assert (row["n_labelled"], row["n_emitted"], row["status"], row["is_counted"]) == (15.0, 500, "unproven", True)


def test_an_item_that_one_of_two_gives_the_label_counts_half_for_recall() -> None:
    found = said(10, ["correction"], ["correction"])
    doubted = said(10, ["correction"], [], start=100), said(10, ["neutral"], [], start=100, reviewer="bea")
    row = table(reviews(found, *doubted)).filter(signal="correction", model="all").row(0, named=True)
    assert (row["n_labelled"], row["recall"]) == (15.0, pytest.approx(10 / 15))


def test_models_of_unequal_precision_are_an_alarm() -> None:
    same = [
        *said(30, ["correction"], ["correction"]),
        *said(30, ["correction"], ["correction"], start=100, model="m-2"),
    ]
    worse = said(15, ["neutral"], ["correction"], start=200, model="m-2")
    for rows, expected in ((same, False), ([*same, *worse], True)):
        row = table(reviews(rows)).filter(signal="correction", model="all").row(0, named=True)
        assert row["is_unequal"] is expected
    by_model = table(reviews([*same, *worse])).filter(signal="correction", model="m-2").row(0, named=True)
    assert by_model["n_reviewed"] == 45
    assert by_model["precision"] == pytest.approx(2 / 3)


# ---- agreement and distances


def test_agreement_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement 0.7, by chance 0.5.
    yes, no = ["correction"], ["neutral"]
    groups = [(20, yes, yes), (5, yes, no), (10, no, yes), (15, no, no)]
    rows = [
        said(n, labels, [], start=100 * i, reviewer=name)
        for i, (n, *both) in enumerate(groups)
        for name, labels in zip(("ann", "bea"), both, strict=True)
    ]
    found = review.agreement(reviews(*rows)).filter(lang="all").row(0, named=True)
    assert (found["n_items"], found["agreement"], found["kappa"]) == (50, pytest.approx(0.7), pytest.approx(0.4))
    assert (found["kappa_hi"] - found["kappa_lo"]) / (2 * 1.959964) == pytest.approx(0.127, abs=0.005)
    assert found["agreement_lo"] < 0.7 < found["agreement_hi"]
    alike = review.agreement(reviews(said(5, yes, []), said(5, yes, [], reviewer="bea"))).row(0, named=True)
    assert (alike["agreement"], alike["kappa"]) == (1.0, None)
    # Chance by the share of yes among all labels, 0.55, over the labels of the guide (Gwet); Byrt and others likewise.
    n_labels = len(review.guide().of("turn"))
    chance = 2 * 0.55 * 0.45 / (n_labels - 1)
    assert found["ac1"] == pytest.approx((0.7 - chance) / (1 - chance))
    assert found["pabak"] == pytest.approx((n_labels * 0.7 - 1) / (n_labels - 1))
    assert (alike["ac1"], alike["pabak"]) == (1.0, 1.0)
    assert (alike["kappa_lo"], alike["kappa_hi"]) == (None, None)
    assert (found["n_reviewers"], found["alpha"]) == (2, None)


def test_where_nearly_all_items_have_one_label_kappa_alone_misleads() -> None:
    yes, no = ["correction"], ["neutral"]
    groups = [(118, no, no), (5, yes, no), (2, no, yes)]
    rows = [
        said(n, labels, [], start=200 * i, reviewer=name)
        for i, (n, *both) in enumerate(groups)
        for name, labels in zip(("ann", "bea"), both, strict=True)
    ]
    found = review.agreement(reviews(*rows)).filter(lang="all").row(0, named=True)
    assert found["agreement"] == pytest.approx(118 / 125)
    assert found["kappa"] < 0.0
    assert found["ac1"] > 0.9


def test_one_more_disagreement_is_less_agreement_whatever_label_it_brings() -> None:
    yes, no, other = ["correction"], ["neutral"], ["praise"]
    groups = [(40, yes, yes), (40, no, no), (10, yes, no), (10, no, yes), (1, yes, other)]

    def coefficients(n_groups: int) -> tuple[float, float]:
        rows = [
            said(n, labels, [], start=100 * i, reviewer=name)
            for i, (n, *both) in enumerate(groups[:n_groups])
            for name, labels in zip(("ann", "bea"), both, strict=True)
        ]
        found = review.agreement(reviews(*rows)).filter(lang="all").row(0, named=True)
        return found["ac1"], found["pabak"]

    before, after = coefficients(4), coefficients(5)
    assert after[0] < before[0]
    assert after[1] < before[1]


def test_three_reviewers_have_an_alpha_over_all_that_two_of_them_labelled() -> None:
    yes, no = ["correction"], ["neutral"]
    # Units of four labels each by ann, bea and eve; eve saw the first two only, and one item alone.
    rows = reviews(
        said(2, yes, []), said(2, no, [], start=10), said(2, yes, [], reviewer="bea"),
        said(1, no, [], start=10, reviewer="bea"), said(1, yes, [], start=11, reviewer="bea"),
        said(2, yes, [], reviewer="eve"), said(1, no, [], start=90, reviewer="eve"),
    )  # fmt: skip
    found = review.agreement(rows).filter(lang="all")
    assert found["n_reviewers"].to_list() == [3] * found.height
    # Ten labels pair: yes three times in two items, no twice in one, one of each in the last. Observed
    # disagreement is 2 of 10, expected 2 x 7 x 3 of 90.
    alpha = 1 - (2 / 10) / (2 * 7 * 3 / 90)
    assert found["alpha"].to_list() == pytest.approx([alpha] * found.height)


def test_agreement_is_of_pairs_who_saw_the_same_items() -> None:
    rows = reviews(
        said(10, ["correction"], []), said(5, ["neutral"], [], start=50),
        said(10, ["correction"], [], reviewer="bea"), said(5, ["neutral"], [], start=50, reviewer="bea"),
        said(3, ["neutral"], [], start=90, reviewer="eve"),
    )  # fmt: skip
    found = review.agreement(rows)
    assert found.select("reviewer", "other", "lang", "n_items").rows() == [
        ("ann", "bea", "all", 15),
        ("ann", "bea", "en", 15),
    ]


def test_equal_shares_keep_their_level_and_see_a_gap() -> None:
    def shares(*rates: float, n: int = 60) -> list[Share]:
        return [hajek_share([1.0] * round(n * rate) + [0.0] * (n - round(n * rate)), [1.0] * n) for rate in rates]

    assert equal_shares(shares(0.9, 0.9, 0.9)) == pytest.approx(1.0)
    assert equal_shares(shares(0.95, 0.6)) < 0.001
    assert math.isnan(equal_shares(shares(1.0, 1.0)))
    rng = np.random.default_rng(1)
    draws = [
        equal_shares([hajek_share(rng.random(40) < 0.8, np.ones(40)) for _ in range(3)]) < 0.05 for _ in range(400)
    ]
    assert np.mean(draws) < 0.09


def test_distances() -> None:
    assert stability_index([50, 50], [50, 50]) == pytest.approx(0.0)
    assert stability_index([900, 100], [990, 10]) > 0.2
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(1.0)
    assert jensen_shannon([3, 7], [30, 70]) == pytest.approx(0.0)
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert top_overlap([4, 3, 2, 1], [4, 1, 2, 3], 2) == 0.5


# ---- drift

MONDAY = date(2026, 2, 2)


def week(n: int, turns: int, fired: int, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    day = MONDAY + timedelta(weeks=n)
    unread = {name: more.pop(name) for name in ("n_without_prose", "n_unknown_language") if name in more}
    about = {"source": "codex", "day": day} | more | unread
    return (
        {"language": "en", "n_turns": turns, "n_covered": turns, "n_without_prose": 0, "n_unknown_language": 0} | about,
        {"lang": "en", "rule": "en.x", "confidence": 0.9, "n": fired} | about,
    )


def drifted(*weeks: tuple[dict[str, Any], dict[str, Any]], measure: str = "rate_psi") -> dict[str, Any]:
    sessions = pl.DataFrame([a for a, _ in weeks])
    rows = pl.DataFrame([b for _, b in weeks])
    return (
        review.drift(sessions, rows, reviews(), LIMITS, version).filter(measure=measure).sort("period").to_dicts()[-1]
    )


@pytest.mark.parametrize(
    ("now", "status"), [((1000, 30), "ok"), ((1000, 180), "warn"), ((1000, 300), "fail"), ((200, 60), "unavailable")]
)
def test_a_pattern_that_fires_more_often_than_before(now: tuple[int, int], status: str) -> None:
    row = drifted(*(week(n, 500, 15) for n in range(4)), week(4, *now))
    assert row["status"] == status
    assert (row["n_turns_before"], row["rate_before"]) == (2000, 0.03)


def test_a_source_unlike_the_others() -> None:
    alike = [week(0, 1000, 30), week(0, 1000, 31, source="pi")]
    assert drifted(*alike, measure="source_js")["status"] == "ok"
    odd = drifted(week(0, 1000, 30), week(0, 1000, 700, source="pi"), measure="source_js")
    assert odd["status"] == "fail"


@pytest.mark.parametrize("measure", ["without_prose", "unknown_language"])
@pytest.mark.parametrize(("n_unread", "status"), [(20, "ok"), (150, "warn"), (400, "fail")])
def test_turns_that_nobody_reads(measure: str, n_unread: int, status: str) -> None:
    before = [week(n, 500, 10, **{f"n_{measure}": 10}) for n in range(4)]
    row = drifted(*before, week(4, 1000, 20, **{f"n_{measure}": n_unread}), measure=measure)
    assert (row["status"], row["rate_before"]) == (status, 0.02)
    uncovered = week(4, 1000, 20)
    uncovered[0]["n_covered"] = 0
    assert drifted(*before, uncovered, measure=measure)["status"] == "unavailable"


def reviewed_on(day: date, n_right: int, n_wrong: int, start: int, **more: Any) -> list[dict[str, Any]]:
    """Corrections that the detector gave: some are right, the others were neutral."""
    right = said(n_right, ["correction"], ["correction"], day=day, start=start, **more)
    return right + said(n_wrong, ["neutral"], ["correction"], day=day, start=start + 10_000, **more)


@pytest.mark.parametrize(
    ("now", "status"), [((76, 4), "ok"), ((60, 20), "fail"), ((2000, 150), "warn"), ((10, 10), "unavailable")]
)
def test_a_detector_that_became_less_precise(now: tuple[int, int], status: str) -> None:
    calibration = reviewed_on(MONDAY, 1960, 40, 0)
    later = reviewed_on(MONDAY + timedelta(days=60), *now, 30_000)
    # Between the two periods, and in neither.
    between = reviewed_on(MONDAY + timedelta(days=30), 0, 30, 60_000)
    sessions, rows = (pl.DataFrame([one]) for one in week(0, 1, 0))
    found = review.drift(sessions, rows, reviews(calibration, later, between), LIMITS, version)
    (row,) = found.filter(measure="precision", subject="correction").to_dicts()
    assert (row["status"], row["n_turns"], row["n_turns_before"]) == (status, sum(now), 2000)
    assert row["period"] == date(2026, 3, 30)
    if status == "unavailable":
        assert row["value"] is None
        return
    share = now[0] / sum(now)
    assert row["value"] == pytest.approx(share - 0.98)
    # Newcombe's tenth method, from two Wilson intervals written out.
    (l1, u1), (l2, u2) = (score(x, n) for x, n in ((now[0], sum(now)), (1960, 2000)))
    lo = row["value"] - math.hypot(share - l1, u2 - 0.98)
    hi = row["value"] + math.hypot(u1 - share, 0.98 - l2)
    assert (row["lo"], row["hi"]) == pytest.approx((lo, hi))


def score(x: int, n: int) -> tuple[float, float]:
    p, z = x / n, 1.959963984540054
    centre, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


def test_each_detector_version_has_a_calibration_of_its_own() -> None:
    """A pattern that was changed begins anew: what its predecessor was worth says nothing of it."""
    old = reviewed_on(MONDAY, 100, 0, 0, versions=["correction=0.v"])
    new = reviewed_on(MONDAY + timedelta(days=60), 60, 40, 30_000)
    sessions, rows = (pl.DataFrame([one]) for one in week(0, 1, 0))
    assert review.drift(sessions, rows, reviews(old, new), LIMITS, version).filter(measure="precision").is_empty()
