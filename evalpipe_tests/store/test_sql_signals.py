"""Shipped models over signals and process metrics: denominators, bounds, and what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.store.house import published


def _session(name: str, model: str = "m-a", **more: Any) -> dict[str, Any]:
    return {"session_id": name, "agent": "acme", "model": model, "n_turns": 2} | more


def _outcome(
    name: str, end: str, *, words: float | None = 0.0, settled: bool = True, sure: float = 0.0
) -> dict[str, Any]:
    den = None if words is None else 1.0
    return {
        "session_id": name, "agent": "acme", "model": "m-a", "measurement": "m1", "end_status": end, "is_settled": settled,
        "correction_num": words, "correction_den": den, "complaint_num": 0.0 if den else None, "complaint_den": den,
        "confirmation_num": sure, "confirmation_den": den,
    }  # fmt: skip


def _process(name: str, **more: Any) -> dict[str, Any]:
    counts = ("n_steps", "n_turns", "n_tool_calls", "n_command_calls", "n_command_errors", "n_self_fixed", "n_loops", "n_rollbacks",
              "n_refused_calls", "n_interrupts", "n_checks_failing_at_end", "n_hallucinated_calls", "n_retries", "n_fix_cycles")  # fmt: skip
    return {"session_id": name, "extractor_version": "1"} | dict.fromkeys(counts, 0) | {"n_steps": 4} | more


def _episode(name: str, number: int, ending: str, k: int | None, low: float, high: float) -> dict[str, Any]:
    return {
        "signal_id": f"{name}-{number}", "session_id": name, "signal": "recovery", "value": low, "value_high": high, "k": k,
        "is_censored": ending == "censored", "ending": ending, "definition_version": "2", "inputs": ["x"],
    }  # fmt: skip


DATA: dict[str, list[Mapping[str, Any]]] = {
    "masked.sessions": [_session(name) for name in "abcde"] + [_session("sub", parent_session_id="a", n_turns=0)],
    "signals.session_outcomes": [
        _outcome("a", "abandoned", words=1.0), _outcome("b", "open"), _outcome("c", "completed", sure=1.0),
        _outcome("d", "completed"), _outcome("e", "open", settled=False), _outcome("f", "error", words=None),
        _outcome("b", "abandoned", words=1.0) | {"measurement": "m0"},  # an older measurement, whose signals are not in the file
    ],
    "signals.process": [
        _process("a", n_command_calls=4, n_command_errors=2, n_self_fixed=1, output_tokens=100, reasoning_tokens=25, total_tokens=100),
        _process("b", n_command_calls=6, n_loops=1, first_response_ms=900),
        _process("c", n_checks_failing_at_end=1, turns_to_acceptance=2, output_tokens=50, total_tokens=50),
        _process("d"),
        {"session_id": "e", "extractor_version": "1"},
        _process("sub", n_command_calls=100, n_command_errors=100),
    ],
    "signals.derived": [
        _episode("a", 1, "strong", 1, 1.0, 1.0), _episode("a", 2, "rejected", None, 0.0, 0.0),
        _episode("b", 1, "censored", None, 0.0, 0.5), _episode("c", 1, "weak", 3, 1 / 3, 1 / 3),
        {"signal_id": "z", "session_id": "c", "signal": "first_time_success", "value": 1.0, "value_high": 1.0},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return published(tmp_path_factory.mktemp("models"), DATA)


def ask(house: Warehouse, columns: str, model: str) -> list[tuple[object, ...]]:
    return house.query(f"SELECT {columns} FROM analysis.{model}").rows()


def test_abandonment_stands_beside_what_is_censored(house: Warehouse) -> None:
    columns = "n_sessions, n_unsettled, n_abandoned, n_censored, n_failed, censored_share, abandonment_rate"
    mine = "endings_by_version WHERE measurement = 'm1'"
    assert ask(house, columns, mine) == [(5, 1, 1, 1, 1, 0.2, 0.25)]
    assert ask(house, "abandonment_low, abandonment_high", mine) == [(0.2, 0.4)]


def test_recovery_counts_every_end_once_and_sessions_alike(house: Warehouse) -> None:
    columns = "n_sessions, n_episodes, n_strong, n_weak, n_rejected, n_censored, within_1, within_2, within_3"
    assert ask(house, columns, "recovery_by_version") == [(3, 4, 1, 1, 1, 1, 0.25, 0.25, 0.5)]
    ((low, high),) = ask(house, "score_low, score_high", "recovery_by_version")
    assert low == pytest.approx((0.5 + 0 + 1 / 3) / 3)
    assert high == pytest.approx((0.5 + 0.5 + 1 / 3) / 3)


def test_process_counts_what_is_known(house: Warehouse) -> None:
    columns = "n_sessions, n_with_steps, mean_steps, error_rate, self_fixed_share, mean_loops, failing_at_end_share"
    assert ask(house, columns, "process_by_version") == [(5, 4, 4.0, 0.2, 0.5, 0.25, 0.25)]
    columns = "hallucinated_per_1000_calls, n_with_tokens, mean_output_tokens, n_with_reasoning, reasoning_share"
    assert ask(house, columns, "process_by_version") == [(None, 2, 75.0, 1, 0.25)]
    columns = "n_with_times, median_first_response_ms, n_accepted, median_turns_to_acceptance"
    assert ask(house, columns, "process_by_version") == [(1, 900.0, 1, 2.0)]


def test_words_and_work_are_crossed(house: Warehouse) -> None:
    columns = "n_sessions, n_both, n_words_only, n_work_only, n_neither, agreement, n_confirmed, n_confirmed_failing"
    assert ask(house, columns, "signal_cross_check") == [(4, 1, 0, 2, 1, 0.5, 1, 1)]
    ((phi,),) = ask(house, "phi", "signal_cross_check")
    assert phi == pytest.approx(1 / (1 * 3 * 3 * 1) ** 0.5)


def test_outcomes_are_crossed_with_signals_of_their_own_extraction(house: Warehouse) -> None:
    assert house.query("SELECT DISTINCT measurement FROM signals.session_outcomes ORDER BY 1").rows() == [
        ("m0",),
        ("m1",),
    ]
    assert ask(house, "measurement", "signal_cross_check") == [("m1",)]
