"""Whether routing followed the numbers before it: drawn sessions, many changes, and what is then told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.analysis import feedback
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.criteria import Criteria
from evalpipe.criteria.model import Sampling
from evalpipe.inference.shift import net_estimate, net_shift

Make = Callable[..., pl.DataFrame]
FindHeadline = Callable[..., Headline]
START = datetime(2026, 1, 5, tzinfo=UTC)
CHAT = Sampling(0.1, "scenario", "chat")


def routed(make_outcomes: Make, shares: list[list[float]], n: int = 300, seed: int = 1) -> pl.DataFrame:
    """One epoch a list of shares of versions a, b, c, one after another; c succeeds most, a least."""
    rng = np.random.default_rng(seed)
    rate = {"a": 0.3, "b": 0.5, "c": 0.8}
    model = [str(name) for share in shares for name in rng.choice(list("abc"), n, p=share)]
    started = [START + timedelta(minutes=30 * i * 40 / len(model)) for i in range(len(model))]
    return make_outcomes(
        model,
        rng.random(len(model)) < [rate[name] for name in model],
        routing_epoch=[f"e{at:03d}" for at in range(len(shares)) for _ in range(n)],
        started_at=started,
        day=[at.date() for at in started],
        scenario=[["chat", "coding"][i] for i in rng.integers(0, 2, len(model))],
    )


def told(headline: Headline) -> Any:
    (row,) = feedback.feedback_checks(headline)
    return row


CHASING = [[0.4, 0.3, 0.3], [0.3, 0.3, 0.4], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6], [0.05, 0.25, 0.7]]


def test_sessions_that_were_drawn_are_looked_at_with_their_weights(
    make_outcomes: Make, headline_of: FindHeadline, criteria: Criteria
) -> None:
    drawn = replace(criteria, estimand=replace(criteria.estimand, sampling=(CHAT,)))
    headline = headline_of(routed(make_outcomes, CHASING), drawn)
    assert headline.is_drawn
    row = told(headline)
    assert row.status in ("ok", "inconclusive")
    assert row.value > 0.5
    # By hand: the shares of the traffic that the drawn sessions stand for.
    sessions, weight = headline.population.sessions, headline.weight
    kinds = sessions["scenario"].to_numpy()
    assert np.array_equal(weight, np.where(kinds == "chat", 10.0, 1.0))
    epoch, version = sessions["routing_epoch"].to_numpy(), sessions["model"].to_numpy()
    share = [weight[(epoch == e) & (version == "c")].sum() / weight[epoch == e].sum() for e in ("e000", "e001")]
    first = next(iter(change for change, _, at in feedback._followed(headline, feedback._changes(headline)) if at == 0))
    of_a = [weight[(epoch == e) & (version == "a")].sum() / weight[epoch == e].sum() for e in ("e000", "e001")]
    assert first == pytest.approx(of_a[1] - of_a[0])
    assert share[1] > share[0]


def test_only_the_latest_of_many_changes_cost_an_estimate_and_the_row_says_so(
    make_outcomes: Make, headline_of: FindHeadline, criteria: Criteria, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = routed(make_outcomes, [CHASING[i % 5] for i in range(12)], n=60)
    headline = headline_of(outcomes, criteria)
    whole = told(headline)
    assert "11 changes" in whole.detail
    assert "Only the latest" not in whole.detail
    monkeypatch.setattr(feedback, "MAX_CHANGES", 4)
    asked: list[int] = []

    def count(sample: Any, options: Any) -> Any:
        asked.append(len(sample.y))
        return net_estimate(sample, options)

    monkeypatch.setattr(feedback, "net_estimate", count)
    row = told(headline)
    assert "Only the latest 4 of 11 changes are looked at." in row.detail
    assert len(asked) == 4
    assert min(asked) >= 7 * 60


def test_estimate_without_its_error_is_the_one_with_it(
    make_outcomes: Make, headline_of: FindHeadline, criteria: Criteria
) -> None:
    drawn = replace(criteria, estimand=replace(criteria.estimand, sampling=(CHAT,)))
    headline = headline_of(routed(make_outcomes, CHASING), drawn)
    part = headline.sample.take(headline.sample.epoch < 3)
    assert part.weight is not None
    assert len(part.weight) == len(part.y) == 900
    assert net_estimate(part, headline.options) == pytest.approx(net_shift(part, headline.options).estimate)
    alone = headline.sample.take(headline.sample.version == 0)
    assert np.isnan(net_estimate(alone, headline.options)).all()
