"""``analysis.signal_validity``: who counts, which side, and the clustered interval against matrix algebra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.store.house import published

#: Success and whether the signal shows, of two sessions a task: tasks differ, so sessions of one are alike.
PAIRS = [
    ((1, 0), (1, 0)), ((1, 0), (1, 1)), ((0, 1), (0, 1)), ((0, 1), (0, 0)), ((1, 0), (0, 1)), ((1, 1), (1, 1)),
    ((0, 1), (0, 1)), ((1, 0), (1, 0)),
]  # fmt: skip


def _outcome(name: str, success: float | None, **more: Any) -> dict[str, Any]:
    base = {
        "session_id": name, "source": "bench", "agent": "acme", "model": "m-a", "measurement": "m1", "is_settled": True, "n_human_turns": 1,
        "n_tool_calls": 3, "objective_success_num": success, "objective_success_den": None if success is None else 1.0,
    }  # fmt: skip
    return base | more


def _made() -> dict[str, list[Mapping[str, Any]]]:
    outcomes: list[Mapping[str, Any]] = []
    hard: list[Mapping[str, Any]] = []
    for task, pair in enumerate(PAIRS):
        for trial, (success, is_with) in enumerate(pair):
            name = f"s{task}{trial}"
            # The kind of work was guessed, once so and once so: it is one task all the same.
            guess = {"scenario": ("coding", "data")[trial], "scenario_method": "rule"}
            outcomes.append(_outcome(name, float(success), model=("m-a", "m-b")[trial], task_id=f"t{task}", **guess))
            if is_with:  # twice in a session counts as once
                hard += [{"session_id": name, "signal": "command_error"} for _ in range(1 + trial)]
            hard.append({"session_id": name, "signal": "objective.success" if success else "objective.failure"})
    # What does not count, though each has the signal and failed.
    outcomes += [
        _outcome("unsettled", 0.0, is_settled=False), _outcome("unknown", None), _outcome("idle", 0.0, n_tool_calls=0, task_id="t0", scenario_method="rule"),
        _outcome("s11", 0.0, measurement="m0"),
    ]  # fmt: skip
    hard += [{"session_id": name, "signal": "command_error"} for name in ("unsettled", "unknown", "idle")]
    # Another agent: nobody speaks in one session, only three objected, and no task or user is named.
    other = {"agent": "solo", "model": None}
    outcomes += [_outcome(f"o{i}", float(i > 4), **other, n_human_turns=int(i != 9)) for i in range(10)]
    semantic: list[Mapping[str, Any]] = [{"session_id": f"o{i}", "signal": "complaint.sentiment"} for i in (0, 1, 2)]
    hard += [{"session_id": f"o{i}", "signal": "interrupt"} for i in range(5)]
    derived: list[Mapping[str, Any]] = [
        {"session_id": f"o{i}", "signal": "recovery", "value": float(i > 1), "value_high": 1.0, "inputs": ["x"]} for i in range(4)
    ]  # fmt: skip
    # One without tasks or users, whose sessions stand alone.
    for i, (success, is_with) in enumerate(step for pair in PAIRS for step in pair):
        outcomes.append(_outcome(f"p{i}", float(success), agent="plain"))
        hard += [{"session_id": f"p{i}", "signal": "interrupt"}] * is_with
    # And one that always fails.
    outcomes += [_outcome(f"z{i}", 0.0, agent="lost", user_id=f"u{i // 2}") for i in range(12)]
    hard += [{"session_id": f"z{i}", "signal": "command_error"} for i in range(6)]
    names = dict.fromkeys(row["session_id"] for row in outcomes)
    return {
        "signals.session_outcomes": outcomes, "signals.hard": hard, "signals.semantic": semantic, "signals.derived": derived,
        "signals.session_features": [{"session_id": name, "extractor_version": "7"} for name in names],
    }  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return published(tmp_path_factory.mktemp("validity"), _made())


def ask(house: Warehouse, columns: str, where: str) -> list[tuple[Any, ...]]:
    return house.query(f"SELECT {columns} FROM analysis.signal_validity WHERE {where}").rows()


def _by_algebra(rows: list[tuple[int, int, int]]) -> tuple[float, float]:
    """Slope of success on the signal and its CR1 standard error; rows are (success, signal, cluster)."""
    y, x, g = (np.array(column, float) for column in zip(*rows, strict=True))
    design = np.column_stack([np.ones_like(x), x])
    bread = np.linalg.inv(design.T @ design)
    slope = bread @ design.T @ y
    parts = design * (y - design @ slope)[:, None]
    sums = np.array([parts[g == one].sum(axis=0) for one in np.unique(g)])
    n, clusters = len(y), len(sums)
    cover = bread @ sums.T @ sums @ bread * clusters / (clusters - 1) * (n - 1) / (n - 2)
    return float(slope[1]), float(np.sqrt(cover[1, 1]))


def test_each_session_counts_once_and_only_where_the_signal_could_show(house: Warehouse) -> None:
    columns = "measurement, extractor_version, family, signal, n_objective, n_sessions, n_with, share_with, status"
    assert ask(house, columns, "agent = 'acme' AND scope = 'agent'") == [
        ("m1", "7", "hard", "command_error", 17, 16, 9, 9 / 16, "ok")
    ]


def test_interval_is_that_of_a_clustered_regression(house: Warehouse) -> None:
    rows = [(y, x, task) for task, pair in enumerate(PAIRS) for y, x in pair]
    slope, error = _by_algebra(rows)
    columns = "success_rate_with, success_rate_without, difference, se, lo, hi, n_clusters_with, n_clusters_without"
    ((p1, p0, difference, se, lo, hi, with_it, without),) = ask(house, columns, "agent = 'acme' AND scope = 'agent'")
    assert (p1, p0) == (pytest.approx(3 / 9), pytest.approx(6 / 7))
    assert difference == pytest.approx(slope)
    assert se == pytest.approx(error)
    assert error != pytest.approx(_by_algebra([(y, x, i) for i, (y, x, _) in enumerate(rows)])[1])
    assert (with_it, without) == (6, 5)
    reach = stats.t.ppf(0.975, 4) * error
    assert hi - slope == pytest.approx(reach, rel=3e-3)
    assert slope - reach < -1.0 == lo


def test_sessions_without_task_or_user_stand_alone(house: Warehouse) -> None:
    rows = [(y, x, i) for i, (y, x) in enumerate(step for pair in PAIRS for step in pair)]
    columns = "se, clustered_by, n_clusters_with, n_clusters_without"
    ((se, *others),) = ask(house, columns, "agent = 'plain' AND scope = 'agent'")
    assert se == pytest.approx(_by_algebra(rows)[1])
    assert others == ["session", 9, 7]


def test_phi_is_the_correlation(house: Warehouse) -> None:
    rows = np.array([step for pair in PAIRS for step in pair], float)
    ((phi,),) = ask(house, "phi", "agent = 'acme' AND scope = 'agent'")
    assert phi == pytest.approx(np.corrcoef(rows.T)[0, 1])


def test_models_have_rows_of_their_own_and_a_difference_within(house: Warehouse) -> None:
    found = ask(house, "model, n_sessions, n_with, success_rate_with, success_rate_without, status",
                "agent = 'acme' AND scope = 'model' ORDER BY model")  # fmt: skip
    assert [row[:3] for row in found] == [("m-a", 8, 4), ("m-b", 8, 5)]
    assert {row[5] for row in found} == {"few_sessions"}
    (_, _, _, a1, a0, _), (_, _, _, b1, b0, _) = found
    weights = np.array([4 * 4 / 8, 5 * 3 / 8])
    expected = float(weights @ np.array([a1 - a0, b1 - b0]) / weights.sum())
    ((within, plain),) = ask(house, "difference_within_model, difference", "agent = 'acme' AND scope = 'agent'")
    assert within == pytest.approx(expected)
    assert within != pytest.approx(plain)


def test_too_few_is_null_and_says_so(house: Warehouse) -> None:
    columns = "signal, n_sessions, n_with, success_rate_with, difference, phi, se, clustered_by, status"
    assert ask(house, columns, "agent = 'solo' AND scope = 'model'") == [
        ("recovery", 4, 2, 0.0, None, None, None, "session", "few_sessions"),
        ("interrupt", 10, 5, 0.0, -1.0, -1.0, None, "session", "no_interval"),
        ("complaint.sentiment", 9, 3, 0.0, None, None, None, "session", "few_sessions"),
    ]


def test_success_that_never_varies_tells_nothing(house: Warehouse) -> None:
    columns = "n_with, difference, phi, se, lo, clustered_by, n_clusters_with, status"
    assert ask(house, columns, "agent = 'lost' AND scope = 'agent'") == [
        (6, 0.0, None, None, None, "user", 3, "no_variation")
    ]
