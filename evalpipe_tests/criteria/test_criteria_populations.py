"""Populations with declared weights: what may stand in a file, and what it does to hashes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Change, Criteria, diff, load

TRAFFIC, STRATA = 'population = "traffic"', 'strata = ["scenario", "routing_epoch"]'
SLICES = 'slices = ["scenario"]'
EVEN = '"scenario=coding" = 0.6\n"scenario=chat" = 0.4'


def weighted(lines: str, population: str = "business") -> tuple[tuple[str, str], tuple[str, str]]:
    """Edits of the default criteria."""
    table = f"{SLICES}\n[estimand.population_weights]\n{lines}"
    return (TRAFFIC, f'population = "{population}"'), (SLICES, table)


@pytest.mark.parametrize("population", ["business", "fixed:2026-q1", "fixed:3"])
def test_declared_weights_are_read(edited: Callable[..., Criteria], population: str) -> None:
    found = edited(*weighted(EVEN, population)).estimand
    assert found.population == population
    assert found.population_weights == {"scenario=coding": 0.6, "scenario=chat": 0.4}


def test_weights_may_be_of_epochs_too(edited: Callable[..., Criteria]) -> None:
    lines = '"scenario=coding|routing_epoch=e1" = 0.5\n"scenario=coding|routing_epoch=e2" = 0.5'
    assert len(edited(*weighted(lines)).estimand.population_weights) == 2


def test_overlap_needs_no_weights(edited: Callable[..., Criteria]) -> None:
    assert edited((TRAFFIC, 'population = "overlap"')).estimand.population_weights == {}


@pytest.mark.parametrize(
    ("edits", "key", "word"),
    [
        (weighted('"scenario=coding" = 0.6\n"scenario=chat" = 0.5'), "population_weights", "sum to 1.1"),
        (weighted('"scenario=coding" = 0.999'), "population_weights", "sum to 0.999"),
        (weighted('"scenario=coding" = 1.5\n"scenario=chat" = -0.5'), "population_weights.scenario=chat", "negative"),
        (weighted('"coding" = 1.0'), "population_weights.coding", "scenario=VALUE"),
        (weighted('"language=en" = 1.0'), "population_weights.language=en", "names no stratum"),
        (weighted('"routing_epoch=e1" = 1.0'), "population_weights.routing_epoch=e1", "names no stratum"),
        (
            weighted('"scenario=chat" = 0.5\n"scenario=chat|routing_epoch=e1" = 0.5'),
            "population_weights.scenario=chat|routing_epoch=e1",
            "other columns",
        ),
        (weighted('"scenario=coding" = "all"'), "population_weights", "finite numbers"),
        (weighted(EVEN, "overlap"), "population_weights", "reads no weights"),
        (weighted(EVEN, "traffic"), "population_weights", "reads no weights"),
        ((weighted("")[0], (SLICES, SLICES)), "population_weights", "has no weights"),
        (((TRAFFIC, 'population = "fixed:q1"'),), "population_weights", "criteria freeze"),
        (weighted(EVEN, "fixed:"), "population", "fixed:VERSION"),
        (weighted(EVEN, "fixed:a b"), "population", "fixed:VERSION"),
        (((TRAFFIC, 'population = "overlaps"'),), "population", "overlap"),
    ],
)
def test_what_weights_must_be(
    edited: Callable[..., Criteria], edits: tuple[tuple[str, str], ...], key: str, word: str
) -> None:
    with pytest.raises(EvalpipeError) as error:
        edited(*edits)
    assert error.value.code == "CRITERIA_INVALID"
    assert error.value.where.endswith(f"edited.toml: estimand.{key}")
    assert word in f"{error.value.what} {error.value.fix}"


def test_rounded_weights_sum_to_one(edited: Callable[..., Criteria]) -> None:
    third = "\n".join(f'"scenario={name}" = 0.333333{end}' for name, end in (("a", 3), ("b", 3), ("c", 4)))
    assert len(edited(*weighted(third)).estimand.population_weights) == 3


def test_weights_are_a_part_of_the_measurement(edited: Callable[..., Criteria]) -> None:
    one, other = (edited(*weighted(lines)) for lines in (EVEN, EVEN.replace("0.6", "0.7").replace("0.4", "0.3")))
    assert one.measurement != other.measurement
    assert diff(one, other) == [
        Change("estimand.population_weights.scenario=chat", 0.4, 0.3, "breaks_series"),
        Change("estimand.population_weights.scenario=coding", 0.6, 0.7, "breaks_series"),
    ]
    turned = edited(*weighted("\n".join(reversed(EVEN.splitlines()))))
    assert turned.hash == one.hash


def test_files_without_weights_keep_their_hashes() -> None:
    # Homes are keyed by these: another hash would leave every result behind.
    told = {name: load(name, extractors="x").sub_hash("estimand") for name in ("default", "demo")}
    assert told == {"default": "620def4d91df", "demo": "14f31f48873f"}
