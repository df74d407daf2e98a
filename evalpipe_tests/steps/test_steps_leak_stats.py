"""The leak check's record of a slice: parts added up, held against earlier slices of the same rules."""

from __future__ import annotations

from typing import Any

from evalpipe.masking import Finding
from evalpipe.steps import leak_stats


def _part(witness: str = "w", masked_by: str = "rules.key", **hits: int) -> dict[str, Any]:
    rates = {"n_bytes": 2_000_000, "n_values": 10, "n_withheld": 0, "hits": hits}
    return {
        "passed": True,
        "findings": [],
        "n_contained": 0,
        "counts": {"steps": 3},
        "canaries_planted": 5,
        "canaries_counted": 5,
        "rates": rates,
        "witness": witness,
        "masked_by": masked_by,
    }


def test_parts_are_added_up() -> None:
    leak = leak_stats.merge([_part(USERNAME=2), _part(USERNAME=1, PERSON=4)], [])
    assert leak == {
        "passed": True,
        "findings": [],
        "n_contained": 0,
        "counts": {"steps": 6},
        "canaries_planted": 10,
        "canaries_counted": 10,
        "rates": {"n_bytes": 4_000_000, "n_values": 20, "n_withheld": 0, "hits": {"PERSON": 4, "USERNAME": 3}},
        "witness": "w",
        "masked_by": "rules.key",
        "rate_state": "unavailable",
    }


def test_a_red_part_makes_a_red_slice_and_a_low_finding_does_not() -> None:
    low, high = Finding("steps.text", "ipv4", 1, is_high=False), Finding("steps.text", "email", 1)
    assert leak_stats.merge([leak_stats.with_findings(_part(), [low]), _part()], [])["passed"]
    red = leak_stats.merge([leak_stats.with_findings(_part(), [low, high]), _part()], [])
    assert not red["passed"]
    assert [finding["test"] for finding in red["findings"]] == ["ipv4", "email"]


def test_one_person_has_the_same_token_in_every_part_and_on_every_day() -> None:
    assert not leak_stats.merge([_part("w"), _part("v")], [])["passed"]
    assert not leak_stats.merge([_part("w")], [_part("v")])["passed"]
    # Other rules or another key may give another token.
    assert leak_stats.merge([_part("w")], [_part("v", "rules.other")])["passed"]


def test_rates_are_held_against_slices_of_the_same_rules_and_key() -> None:
    before = [_part(USERNAME=900) for _ in range(7)]
    dead = leak_stats.merge([_part(USERNAME=1)], before)
    assert (dead["rate_state"], dead["passed"]) == ("outside", True)
    assert [finding["field"] for finding in dead["findings"]] == ["USERNAME"]
    assert leak_stats.merge([_part(USERNAME=900)], before)["rate_state"] == "within"
    others = [_part(masked_by="other.key", USERNAME=900) for _ in range(7)]
    assert leak_stats.merge([_part(USERNAME=1)], others)["rate_state"] == "unavailable"


def test_disputed_fields_are_counted_over_the_parts_of_a_day() -> None:
    some = _part() | {"n_contained": 12}
    many = {**_part()["rates"], "n_values": 5_000}
    assert leak_stats.merge([some], [])["passed"]
    leak = leak_stats.merge([some, some], [])
    assert (leak["passed"], leak["n_contained"]) == (False, 24)
    assert leak["findings"][-1]["field"] == "steps"
    assert leak_stats.merge([some, some, _part() | {"rates": many}], [])["passed"]
