"""Thirty-nine models on one benchmark: published rates come out of the tables, and most ranks are ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalpipe.analysis.evidence.attempts import attempt_rows
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.outcomes import read_pair
from evalpipe.analysis.population import encode
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.criteria import Criteria
from evalpipe.inference import Options, compare
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY, outcome_rows
from evalpipe_tests.sources.helpers import SAMPLES, Read

LOG = SAMPLES / "multi_model_outcomes" / "mcpmark_runs.jsonl.zst"
#: pass@1 in per cent, as its makers print it.
PUBLISHED = {
    "gpt-5-2-high": 57.5, "gemini-3-pro-high": 53.9, "gpt-5-medium": 52.6, "gpt-5-high": 51.6,
    "gemini-3-pro-low": 50.8, "gpt-5-low": 46.9, "claude-opus-4-5-high": 42.3, "deepseek-v3-2-thinking": 36.8,
    "claude-sonnet-4-5": 32.1, "grok-4": 31.7, "gemini-2-5-flash": 9.1,
}  # fmt: skip


@pytest.fixture(scope="module")
def headline() -> Headline:
    if not LOG.exists():
        pytest.skip("the sample logs are not beside the repository")
    from evalpipe.criteria import load

    criteria: Criteria = load("default", extractors="x")
    criteria = replace(criteria, outcomes=replace(criteria.outcomes, compare_by=("model",)))
    runs = Read(LOG).sessions.sort("session_id")
    success = runs["is_objective_success"]
    rows = outcome_rows(
        runs["model"].to_list(),
        np.zeros(runs.height),
        criteria.measurement,
        user_id=[None] * runs.height,
        scenario=runs["task_id"].str.split("/").list.first().to_list(),
        task_id=runs["task_id"].to_list(),
        trial=runs["trial"].to_list(),
        positive_outcome_num=success.cast(float).to_list(),
        positive_outcome_den=success.is_not_null().cast(float).to_list(),
        correction_num=[0.0] * runs.height,
    )
    population = encode(rows, ("model",), ("scenario", "routing_epoch"), ())
    pair = read_pair(population.sessions, "positive_outcome")
    use = pair.is_known
    sample = population.sample(pair.y, pair.d, use)
    options = Options(design="observational", seed=1)
    stamp = Stamp.of(criteria, as_of=AS_OF, window="all", start=FIRST_DAY, end=AS_OF)
    found = compare(sample, options)
    return Headline(
        BY_NAME["positive_outcome"], criteria, stamp, population, use, sample, options, found, "observational", (), ()
    )


def test_published_rates_come_out_of_the_table(headline: Headline) -> None:
    rates = {str(row["version"]): row["passed_of_all"] for row in attempt_rows(headline)}
    assert len(rates) == 39
    assert {model: round(100 * float(str(rates[model])), 1) for model in PUBLISHED} == PUBLISHED


def test_every_model_has_a_rank_set_and_letters_that_agree(headline: Headline) -> None:
    found = headline.found
    assert (found.rank_lo >= 1).all()
    assert (found.rank_lo <= found.rank_hi).all()
    assert all(found.letters)
    told = found.pair_better | found.pair_better.T
    for i, j in zip(*np.triu_indices(39, 1), strict=True):
        assert bool(set(found.letters[i]) & set(found.letters[j])) is not bool(told[i, j])
    # A rank set is what the established orders leave open.
    np.testing.assert_array_equal(found.rank_hi, 39 - found.pair_better.sum(axis=1))
    assert (found.rank_hi - found.rank_lo).mean() > 3, "a table without ties would claim too much"
    assert found.rank_hi[found.theta.argmax()] < found.rank_lo[found.theta.argmin()]
