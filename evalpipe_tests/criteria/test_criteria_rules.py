from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Timing
from evalpipe.contracts.signals import BY_NAME
from evalpipe.contracts.tables.signals import SESSION_OUTCOMES
from evalpipe.criteria import Criteria
from evalpipe.criteria.load import build
from evalpipe.criteria.rules import NOT_STRATA, RANGES, strata_columns
from evalpipe.criteria.validate import problems
from evalpipe.locations import data_dir

DEFAULT = (data_dir() / "criteria" / "default.toml").read_text(encoding="utf-8")
STRATA = 'strata = ["scenario", "routing_epoch"]'

BROKEN = [
    # (text, its replacement, key named, word in the message or the fix)
    ("[masking]", "[maskign]", "maskign", "'masking'"),
    ("min_confidence = 0.75", "min_confidance = 0.75", "extraction.min_confidance", "'min_confidence'"),
    ("min_confidence = 0.75", "", "extraction.min_confidence", "missing"),
    ("min_confidence = 0.75", 'min_confidence = "high"', "extraction.min_confidence", "finite number"),
    ("min_confidence = 0.75", "min_confidence = true", "extraction.min_confidence", "finite number"),
    ("min_confidence = 0.75", "min_confidence = nan", "extraction.min_confidence", "finite number"),
    ("min_confidence = 0.75", "min_confidence = 1.5", "extraction.min_confidence", "from 0 to 1"),
    ("count_cap = 3", "count_cap = 3.0", "outcomes.count_cap", "whole number"),
    ("objective_decides = true", "objective_decides = 1", "outcomes.objective_decides", "true or false"),
    ('languages = ["en", "zh", "pt"]', 'languages = "en"', "extraction.languages", "list of strings"),
    ('languages = ["en", "zh", "pt"]', 'languages = ["English"]', "extraction.languages", "ISO 639"),
    ("version = \"1.2\"", "version = 1.0", "version", "a string"),
    ("version = \"1.2\"", "version = \" \"", "version", "empty"),
    ('name = "default"', 'name = "my criteria"', "name", "plain name"),
    ('ruleset = "default"', 'ruleset = "../x"', "masking.ruleset", "plain name"),
    ('"praise" = 0.5', '"prase" = 0.5', "outcomes.weights.prase", "'praise'"),
    ('"praise" = 0.5', '"praise" = -0.5', "outcomes.weights.praise", "polarity"),
    ('"praise" = 0.5', '"praise" = 1.01', "outcomes.weights.praise", "outside 0 to 1"),
    ('"praise" = 0.5', '"check_failure" = 0.5', "outcomes.weights.check_failure", "neither"),
    ('"praise" = 0.5', '"recovery" = 0.5', "outcomes.weights.recovery", "derived"),
    ('"confirm.explicit" = 1.0', "confirm.explicit = 1.0", "outcomes.weights", "in quotes"),
    ('headline = "positive_outcome"', 'headline = "positiv_outcome"', "outcomes.headline", "'positive_outcome'"),
    ('"positive_outcome", "confirmation"', '"confirmation"', "outcomes.headline", "not computed"),
    ("  \"positive_outcome\", ", "  \"positive_outcomes\", ", "estimand.metrics", "'positive_outcome'"),
    ('"execution_errors", ', "", "estimand.metrics", "Add 'execution_errors'"),
    ('compare_by = ["agent", "model"]', 'compare_by = ["agent", "release"]', "outcomes.compare_by", "'agent_release'"),
    ('compare_by = ["agent", "model"]', "compare_by = []", "outcomes.compare_by", "empty"),
    ('compare_by = ["agent", "model"]', 'compare_by = ["model", "model"]', "outcomes.compare_by", "twice"),
    ('reference = "uniform"', 'reference = "unifrom"', "estimand.reference", "'uniform'"),
    ('reference = "uniform"', 'reference = "model: "', "estimand.reference", "model:VERSION"),
    ('population = "traffic"', 'population = "everyone"', "estimand.population", "own_share"),
    ('design = "as_logged"', 'design = "random"', "estimand.design", "randomized_session"),
    (STRATA, 'strata = ["n_tool_calls", "routing_epoch"]', "estimand.strata", "post-treatment"),
    (STRATA, 'strata = ["model", "routing_epoch"]', "estimand.strata", "what is compared"),
    (STRATA, 'strata = ["user_id", "routing_epoch"]', "estimand.strata", "clusters"),
    (STRATA, 'strata = ["scenari", "routing_epoch"]', "estimand.strata", "'scenario'"),
    (STRATA, 'strata = ["scenario"]', "estimand.strata", "different periods"),
    (STRATA, 'strata = ["scenario", "scenario", "routing_epoch"]', "estimand.strata", "twice"),
    ('slices = ["scenario"]', 'slices = ["end_status"]', "estimand.slices", "post-treatment"),
    ("settle_days = 3", "settle_days = 0", "estimand.settle_days", "looks ahead"),
    ("abandonment_hours = 24", "abandonment_hours = 73", "outcomes.abandonment_hours", "three days"),
    ("settle_days = 3", "settle_days = 1\n#", "outcomes.abandonment_hours", "further ahead"),
    ('name = "corrections_no_worse"', 'name = "outcome_no_worse"', "gates[1].name", "twice"),
    ('metric = "correction"', 'metric = "corrections"', "gates[1].metric", "'correction'"),
    ('"self_repair", "steerability"', '"self_repair"', "gates[1].metric", "not computed"),
    ("margin = 0.05", "margin = -0.05", "gates[0].margin", "negative"),
    ("margin = 0.05", "margin = 0.0", "gates[0].margin", "superiority"),
    ("margin = 0.05", "margin = 5", "gates[0].margin", "0.05"),
    ("margin = 0.05", "marign = 0.05", "gates[0].marign", "'margin'"),
    ('kind = "non_inferiority"', 'kind = "non-inferiority"', "gates[0].kind", "'non_inferiority'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "word"), BROKEN, ids=[f"{n}-{row[2]}" for n, row in enumerate(BROKEN)])
def test_a_broken_rule_names_the_key_and_the_fix(
    edited: Callable[..., Criteria], old: str, new: str, key: str, word: str
) -> None:
    edits = [(old, new)]
    if key == "outcomes.abandonment_hours" and "settle_days = 1" in new:
        edits.append(("abandonment_hours = 24", "abandonment_hours = 25"))
    if key == "gates[1].metric" and word == "not computed":
        edits.append(('metric = "correction"', 'metric = "steerability"'))
    with pytest.raises(EvalpipeError) as error:
        edited(*edits)
    assert error.value.code == "CRITERIA_INVALID"
    assert error.value.where.endswith(f"edited.toml: {key}")
    assert word in f"{error.value.what} {error.value.fix}"


def test_every_problem_is_found_in_one_pass(edited: Callable[..., Criteria]) -> None:
    with pytest.raises(EvalpipeError) as error:
        edited(("alpha = 0.05", "alpha = 0.9"), ("count_cap = 3", "count_cap = 0"))
    assert error.value.where.endswith("outcomes.count_cap")
    assert "Also wrong: estimand.alpha" in error.value.what


def test_sections_of_another_type_are_refused() -> None:
    assert problems({"masking": 3, "gates": "none"})
    keys = {problem.key for problem in problems({**tomllib.loads(DEFAULT), "masking": 3, "gates": [3]})}
    assert keys == {"masking", "gates"}


def test_a_named_reference_is_accepted(edited: Callable[..., Criteria]) -> None:
    criteria = edited(('reference = "uniform"', 'reference = "model:acme · m-1"'))
    assert criteria.estimand.reference == "model:acme · m-1"


def test_superiority_may_have_no_margin(edited: Callable[..., Criteria]) -> None:
    gate = edited(('kind = "non_inferiority"', 'kind = "superiority"'), ("margin = 0.05", "margin = 0")).gates[0]
    assert (gate.kind, gate.margin) == ("superiority", 0.0)


def test_no_post_treatment_column_may_be_a_stratum() -> None:
    for name in strata_columns():
        assert SESSION_OUTCOMES[name].timing is Timing.PRE
    assert {"scenario", "language", "routing_epoch", "task_id"} <= set(strata_columns())
    assert set(NOT_STRATA) <= set(SESSION_OUTCOMES.names)


def test_ranges_speak_of_keys_that_exist() -> None:
    data = tomllib.loads(DEFAULT)
    for key in RANGES:
        section, name = key.split(".")
        assert name in data[section]


LEAVES = [
    (section, key)
    for section in ("masking", "extraction", "outcomes", "estimand")
    for key in tomllib.loads(DEFAULT)[section]
]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 200),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.lists(st.sampled_from(["agent", "model", "scenario", "routing_epoch", "nope", ""]), max_size=3),
    st.dictionaries(st.sampled_from(["praise", "nope"]), st.floats(-2, 2), max_size=2),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(LEAVES), VALUES)
def test_any_value_is_either_accepted_and_hashed_or_named(leaf: tuple[str, str], value: Any) -> None:
    """No value crashes the checks, and no refused value is blamed on another section."""
    section, key = leaf
    data = tomllib.loads(DEFAULT)
    data[section][key] = value
    found = problems(data)
    if found:
        assert any(problem.key.split(".")[0].split("[")[0] in {section, "outcomes", "gates"} for problem in found)
        assert all(problem.what.endswith(".") and problem.fix for problem in found)
    else:
        assert len(build(data, extractors="x").hash) == 12


@pytest.mark.parametrize("name", ["default", "demo"])
def test_shipped_weights_are_the_catalogue_s_or_switched_off(name: str) -> None:
    weights = tomllib.loads((data_dir() / "criteria" / f"{name}.toml").read_text("utf-8"))["outcomes"]["weights"]
    assert {signal: weight for signal, weight in weights.items() if weight not in (0, BY_NAME[signal].strength)} == {}
