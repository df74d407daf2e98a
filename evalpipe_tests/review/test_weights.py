"""Weights proposed from labels of sessions, against a regression that is written out here."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from evalpipe import review
from evalpipe.console.signal_weights import sentences
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.inference.labels.signal_weights import crossfit_utilities
from evalpipe.review.weights import LABELS, regressed

DECLARED = {"confirm.explicit": 1.0, "praise": 0.5, "correction": 0.8, "rollback": 0.7}
#: Log-odds of success by event; praise speaks against it here, as where people are ironic.
TRUE = {"confirm.explicit": 2.0, "praise": -0.8, "correction": -1.0}


def world(n: int, seed: int = 3) -> tuple[pl.DataFrame, pl.DataFrame, np.ndarray]:
    """Labels, events and the counts behind them: three signals that are common, one that is rare."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (n, 3)) * (rng.random((n, 3)) < 0.6)
    success = rng.random(n) < 1 / (1 + np.exp(-(0.5 + counts @ np.array(list(TRUE.values())))))
    sessions = [f"s{i:04d}" for i in range(n)]
    rows = [(sessions[i], name, int(counts[i, j])) for i in range(n) for j, name in enumerate(TRUE) if counts[i, j]]
    rows += [(sessions[i], "rollback", 1) for i in range(4)]
    events = pl.DataFrame(rows, schema={"session_id": pl.String, "signal": pl.String, "n": pl.Int64}, orient="row")
    prob = np.where(np.arange(n) % 3 == 0, 0.25, 1.0)
    labels = pl.DataFrame(
        {"session_id": sessions, "success": success, "inclusion_prob": prob}, schema=LABELS
    ).with_columns(user=pl.Series(np.arange(n) // 2))
    return labels, events, counts.astype(float)


def fit(X: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Intercept and coefficients of the weighted logistic regression with a ridge of 1 on all but the intercept."""

    def loss(b: np.ndarray) -> float:
        z = b[0] + X @ b[1:]
        return float((v * (np.logaddexp(0.0, z) - y * z)).sum() + 0.5 * (b[1:] ** 2).sum())

    return np.asarray(optimize.minimize(loss, np.zeros(X.shape[1] + 1), method="BFGS", options={"gtol": 1e-8}).x)


def test_fitted_weights_are_those_of_the_regression() -> None:
    labels, events, X = world(600)
    y, v = labels["success"].to_numpy(), 1 / labels["inclusion_prob"].to_numpy()
    b = fit(X, y.astype(float), v)
    found = review.propose(labels, events, DECLARED, 0.0)
    by_name = {one.signal: one for one in found.weights}
    assert [one.signal for one in found.weights] == list(regressed())
    for at, name in enumerate(TRUE, 1):
        assert by_name[name].log_odds == pytest.approx(b[at], abs=1e-4)
    # The largest is 1; the sign is the signal's own.
    assert (by_name["confirm.explicit"].weight, by_name["confirm.explicit"].basis) == (1.0, "fitted")
    assert by_name["correction"].weight == pytest.approx(-b[3] / b[1], abs=1e-3)
    assert found.threshold == pytest.approx(-b[0] / b[1], abs=1e-4)
    # What speaks for the agent and is fitted against it is no weight to ship.
    assert (by_name["praise"].weight, by_name["praise"].basis) == (0.0, "wrong_sign")
    assert (by_name["rollback"].weight, by_name["rollback"].basis, by_name["rollback"].n_sessions) == (0.7, "rare", 4)
    assert "praise" in " ".join(sentences(found))


def test_calibration_is_of_people_whose_sessions_were_not_fitted() -> None:
    labels, events, X = world(600)
    y, v, user = labels["success"].to_numpy(), 1 / labels["inclusion_prob"].to_numpy(), labels["user"].to_numpy()
    p = np.empty(600)
    for fold in range(5):
        here = user % 5 == fold
        b = fit(X[~here], y[~here].astype(float), v[~here])
        p[here] = 1 / (1 + np.exp(-(b[0] + X[here] @ b[1:])))
    np.testing.assert_allclose(crossfit_utilities(X, y, user, weight=v), p, atol=1e-4)
    found = review.propose(labels, events, DECLARED, 0.0)
    assert found.calibration.brier == pytest.approx((v * (p - y) ** 2).sum() / v.sum(), abs=1e-5)
    assert found.calibration.log_loss == pytest.approx(
        -(v * np.where(y, np.log(p), np.log(1 - p))).sum() / v.sum(), abs=1e-5
    )
    bins = np.array_split(np.argsort(p, kind="stable"), 10)
    assert found.calibration.ece == pytest.approx(
        sum(abs((v[b] * (p[b] - y[b])).sum()) for b in bins) / v.sum(), abs=1e-3
    )
    assert found.wrong_fitted == pytest.approx((v * ((p > 0.5) != y)).sum() / v.sum(), abs=1e-3)
    score = X @ np.array([1.0, 0.5, -0.8]) - 0.7 * (np.arange(600) < 4)
    judged = (score > 0) & (X[:, :2] > 0).any(axis=1)
    assert found.wrong_declared == pytest.approx((v * (judged != y)).sum() / v.sum())
    assert found.status == "calibrated"
    assert 0.8 <= found.calibration.slope <= 1.25


def test_few_labels_fit_nothing_and_say_so() -> None:
    labels, events, _ = world(199)
    found = review.propose(labels, events, DECLARED, 0.0)
    assert (found.status, found.reason) == ("uncalibrated", "too_few_labels")
    assert {one.signal: one.weight for one in found.weights if one.weight} == DECLARED
    assert np.isnan(found.calibration.brier)
    assert "fewer than 200" in " ".join(sentences(found))
    alike = labels.with_columns(success=pl.lit(value=True))
    assert review.propose(pl.concat([alike, alike]), events, DECLARED, 0.0).reason == "one_outcome"


def test_the_fragment_is_toml_that_names_what_is_doubtful() -> None:
    labels, events, _ = world(600)
    text = review.fragment(review.propose(labels, events, DECLARED, 0.0))
    weights = tomllib.loads(text)["outcomes"]["weights"]
    assert set(weights) == {"confirm.explicit", "praise", "correction", "rollback"}
    assert weights["praise"] == 0.0
    assert all(0 <= weight <= 1 for weight in weights.values())
    (line,) = [line for line in text.splitlines() if line.startswith('"praise"')]
    assert "fitted against its meaning" in line
    assert "in force: 4 labelled sessions have it" in text
    assert "objective.success" not in text


def test_labels_of_sessions_are_read(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("session_id;success;inclusion_prob\na;yes;0.5\nb;0;\nc;;\n", "utf-8")
    assert review.read_session_labels(file).rows() == [("a", True, 0.5), ("b", False, 1.0)]
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"session_id": "a", "success": true}\n{"session_id": "b", "success": 0}\n', "utf-8")
    assert review.read_session_labels(lines).rows() == [("a", True, 1.0), ("b", False, 1.0)]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("session_id,success\na,perhaps\n", "row 1", "1 or 0"),
        ("session_id,success\n,1\n", "row 1", "no session_id"),
        ("session_id,success\na,1\na,0\n", "row 2", "another label"),
        ("session_id,success,inclusion_prob\na,1,0\n", "row 1", "above 0"),
        ("session_id,label\na,1\n", "labels.csv", "session_id and success"),
    ],
)
def test_a_wrong_row_refuses_the_file(tmp_path: Path, text: str, where: str, what: str) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(text, "utf-8")
    with pytest.raises(EvalpipeError, match=what) as error:
        review.read_session_labels(file)
    assert error.value.code == "REVIEW_INVALID"
    assert error.value.where.endswith(where)
