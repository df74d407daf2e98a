"""Layers of evidence beside each other: pairs that a second layer backs, and what one layer alone says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from evalpipe import analysis
from evalpipe.analysis.corrected import COUNTS, REVIEWED
from evalpipe.criteria import Criteria
from evalpipe.criteria.model import Sampling
from evalpipe.inference import Options, compare
from evalpipe.inference.concordance import compared_layer
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY, METHODS, Scored
from evalpipe_tests.inference.helpers import make as sample_of

LAST_DAY = FIRST_DAY.replace(month=2, day=1)
NAMES = ["acme · m-0", "acme · m-1", "acme · m-2"]
N_FREE, N_TASKS = 1_500, 60


@dataclass(frozen=True)
class World:
    """Sessions of three models, and what reviewers say of them."""

    outcomes: pl.DataFrame
    counts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=COUNTS))
    reviewed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REVIEWED))


@pytest.fixture
def world(make_outcomes: Callable[..., pl.DataFrame]) -> Callable[..., World]:
    """Free sessions, trials of tasks and reviewed turns, each with rates of its own by model.

    Args of the fixture's function: success of free sessions, of tasks, and share of turns that people
    judge negative; None leaves the layer out.
    """

    def make(
        free: list[float] | None,
        tasks: list[float] | None = None,
        negative: list[float] | None = None,
        seed: int = 5,
    ) -> World:
        rng = np.random.default_rng(seed)
        model: list[int] = []
        success: list[bool] = []
        task: list[str | None] = []
        objective: list[bool | None] = []
        if free is not None:
            version = rng.integers(0, 3, N_FREE)
            model += version.tolist()
            success += (rng.random(N_FREE) < np.array(free)[version]).tolist()
            task += [None] * N_FREE
            objective += [None] * N_FREE
        if tasks is not None:
            # Tasks differ in how hard they are; two trials of each by the first model, one by the others.
            ease = rng.normal(0, 0.15, N_TASKS)
            for k, trials in enumerate((2, 1, 1)):
                for at in np.repeat(np.arange(N_TASKS), trials):
                    solved = bool(rng.random() < tasks[k] + ease[at])
                    model.append(k)
                    success.append(solved)
                    task.append(f"t{at:03d}")
                    objective.append(solved)
        n = len(model)
        columns = {
            "task_id": task,
            "objective_success_num": [None if one is None else float(one) for one in objective],
            "objective_success_den": [None if one is None else 1.0 for one in objective],
            "user_id": [None if one else f"u{i // 2}" for i, one in enumerate(task)],
            "n_human_turns": [2] * n,
        }
        outcomes = make_outcomes([f"m-{k}" for k in model], np.array(success, dtype=float), **columns)
        if negative is None:
            return World(outcomes)
        bad = np.array([one is None for one in task]) & (rng.random(n) < np.array(negative)[model])
        # The detector misses a fifth of them, in every version alike.
        fired = bad & (rng.random(n) < 0.8)
        names = outcomes["session_id"].to_numpy()
        rows = []
        for k in range(3):
            for side in (True, False):
                place = np.flatnonzero(
                    (np.array(model) == k) & (fired == side) & np.array([one is None for one in task])
                )
                taken = rng.choice(place, min(100, len(place)), replace=False)
                rows += [(names[i], "negative", "turn", side, float(bad[i]), len(taken) / len(place)) for i in taken]
        counts = [(names[i], "negative", "turn", 1) for i in np.flatnonzero(fired)]
        return World(
            outcomes,
            pl.DataFrame(counts, schema=COUNTS, orient="row"),
            pl.DataFrame(rows, schema=REVIEWED, orient="row"),
        )

    return make


@pytest.fixture
def concord(run: Callable[..., Scored], with_estimand: Callable[..., Criteria]) -> Callable[..., Scored]:
    def make(world: World, **changes: Any) -> Scored:
        criteria = with_estimand(**changes)
        stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=LAST_DAY)
        numbers = run(world.outcomes, criteria)["analysis.net_improvement"]
        made = analysis.concordance(world.outcomes, world.counts, world.reviewed, numbers, criteria, stamp)
        explained = set(re.findall(r"`([a-z_]+)`", METHODS.read_text(encoding="utf-8")))
        for table in made.values():
            assert set(table["reasons"].explode().drop_nulls()) <= explained
        return {name.removeprefix("analysis."): table for name, table in made.items()}

    return make


def labels(tables: Scored) -> dict[tuple[str, str], str]:
    rows = tables["concordance"].iter_rows(named=True)
    return {(row["version"][-3:], row["other"][-3:]): row["label"] for row in rows}


NUMBERS = [f"{name}_{part}" for name in ("sessions", "tasks", "audit") for part in ("difference", "lo", "hi")]


def test_layers_that_say_the_same_corroborate(world: Callable[..., World], concord: Callable[..., Scored]) -> None:
    tables = concord(world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8], [0.5, 0.3, 0.1]))
    assert set(labels(tables).values()) == {"corroborated"}
    found = tables["concordance"]
    assert found.select("version", "other").rows() == [(NAMES[0], NAMES[1]), (NAMES[0], NAMES[2]), (NAMES[1], NAMES[2])]
    assert found["n_layers"].to_list() == [3] * 3
    assert found["status"].to_list() == ["ok"] * 3
    assert (found["sessions_difference"] < 0).all()
    # Fewer negative turns are better, and so are more solved tasks.
    assert found.row(1, named=True)["audit_order"] == found.row(1, named=True)["tasks_order"] == "worse"
    assert (found["audit_lo"] < found["audit_difference"]).all()
    assert (found["audit_difference"] < found["audit_hi"]).all()
    rows = tables["layer_agreement"]
    assert rows.select("first_layer", "second_layer").rows() == [
        ("sessions", "audit"), ("sessions", "tasks"), ("tasks", "audit")
    ]  # fmt: skip
    assert rows["agree_share"].to_list() == [1.0] * 3
    assert rows["kendall_tau"].to_list() == pytest.approx([1.0] * 3)
    assert (rows["slope"] > 0).all()
    assert rows["df"].to_list() == [1] * 3
    assert rows["p"].null_count() == 0


def test_sessions_that_tasks_reverse_are_contradicted(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    tables = concord(world([0.3, 0.5, 0.7], [0.8, 0.5, 0.2]))
    assert labels(tables)["m-0", "m-2"] == "contradicted"
    row = tables["concordance"].row(1, named=True)
    assert (row["sessions_order"], row["tasks_order"], row["audit_order"]) == ("worse", "better", None)
    assert (row["n_layers"], row["audit_difference"]) == (2, None)
    (both,) = tables["layer_agreement"].filter(second_layer="tasks").iter_rows(named=True)
    assert both["n_agree"] == 0
    assert f"{NAMES[2]} over {NAMES[0]}" in both["reversals"]
    assert both["slope"] < 0
    missing = tables["layer_agreement"].filter(second_layer="audit")
    assert missing["reasons"].to_list() == [["no_reviews"]] * 2
    assert missing.select("n_pairs", "slope", "kendall_tau", "p").null_count().row(0) == (2, 2, 2, 2)


def test_a_layer_that_cannot_tell_leaves_the_other_alone(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    tables = concord(world([0.3, 0.5, 0.7], [0.5, 0.5, 0.5]))
    assert labels(tables)["m-0", "m-2"] == "uncorroborated"
    both = tables["layer_agreement"].filter(second_layer="tasks").row(0, named=True)
    assert (both["n_pairs"], both["agree_share"], both["status"]) == (0, None, "inconclusive")
    assert both["reasons"] == ["not_told_apart"]
    assert both["slope"] is None
    assert set(labels(concord(world([0.5] * 3, [0.5] * 3, seed=6))).values()) == {"insufficient"}


@pytest.mark.parametrize(
    ("free", "tasks", "missing"),
    [([0.3, 0.5, 0.7], None, ["no_controlled_tasks", "no_reviews"]), (None, [0.2, 0.5, 0.8], ["no_free_sessions", "no_reviews"])],
)  # fmt: skip
def test_one_layer_alone_has_a_status_and_never_a_number(
    world: Callable[..., World], concord: Callable[..., Scored],
    free: list[float] | None, tasks: list[float] | None, missing: list[str],
) -> None:  # fmt: skip
    tables = concord(world(free, tasks))
    found = tables["concordance"]
    assert found.height == 3
    assert found["status"].to_list() == ["unavailable"] * 3
    assert found["reasons"].to_list() == [["one_layer", *missing]] * 3
    assert found.select(NUMBERS).null_count().row(0) == (3,) * 9
    assert labels(tables)["m-0", "m-2"] == "uncorroborated"
    rows = tables["layer_agreement"]
    assert rows["status"].to_list() == ["unavailable"] * 3
    assert rows.select("n_versions", "n_pairs", "slope", "chi2", "kendall_tau").null_count().row(0) == (3,) * 5


def test_tasks_are_compared_on_those_that_all_tried_and_count_once(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8])
    # The last version never tried the first ten tasks; its own hundred are nobody else's.
    lost = (pl.col("model") == "m-2") & (pl.col("task_id") < "t010")
    outcomes = made.outcomes.filter(~lost.fill_null(value=False))
    found = concord(replace(made, outcomes=outcomes))["concordance"].row(1, named=True)
    tried = outcomes.filter(pl.col("task_id") >= "t010")
    rate = (
        tried.group_by("model", "task_id").agg(y=pl.col("objective_success_num").mean()).pivot("model", index="task_id")
    )
    gap = (rate["m-0"] - rate["m-2"]).to_numpy()
    n = len(gap)
    assert n == 50
    assert found["tasks_difference"] == pytest.approx(gap.mean(), abs=1e-12)
    # Tasks are the clusters and both tried each, so the error is that of a paired mean, CR3 = n / (n - 1).
    se = gap.std() / np.sqrt(n) * n / (n - 1)
    half = (found["tasks_hi"] - found["tasks_lo"]) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, n - 1) * se, rel=2e-3)


def test_a_version_without_common_tasks_leaves_and_too_few_are_no_layer(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8])
    elsewhere = pl.when((pl.col("model") == "m-2") & pl.col("task_id").is_not_null())
    own = made.outcomes.with_columns(task_id=elsewhere.then(pl.lit("x") + pl.col("task_id")).otherwise("task_id"))
    found = concord(replace(made, outcomes=own))["concordance"]
    assert found["tasks_order"].to_list() == ["worse", None, None]
    assert found["n_layers"].to_list() == [2, 1, 1]
    assert found["reasons"].to_list()[1] == ["one_layer", "no_reviews"]
    apart = made.outcomes.with_columns(task_id=pl.col("model") + pl.col("task_id"))
    rows = concord(replace(made, outcomes=apart))["layer_agreement"].filter(
        first_layer="sessions", second_layer="tasks"
    )
    assert rows["reasons"].to_list() == [["few_common_tasks"]]


def test_outcomes_without_tasks_are_compared_in_strata(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8])
    unnamed = made.outcomes.with_columns(
        user_id=pl.coalesce("user_id", "session_id"), task_id=pl.lit(None, dtype=pl.String)
    )
    found = concord(replace(made, outcomes=unnamed))["concordance"].row(1, named=True)
    rows = unnamed.filter(pl.col("objective_success_den") > 0)
    solved, model = rows["objective_success_num"].to_numpy(), rows["model"].to_numpy()
    gap = float(solved[model == "m-0"].mean() - solved[model == "m-2"].mean())
    assert found["tasks_difference"] == pytest.approx(gap)


def test_sessions_are_those_without_a_stated_outcome_and_judged_as_the_headline_is(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.8, 0.5, 0.2])
    found = concord(made)["concordance"].row(1, named=True)
    free = made.outcomes.filter(pl.col("task_id").is_null()).sort("session_id")
    sample = sample_of(
        free["positive_outcome_num"].to_list(),
        [int(name[-1]) for name in free["model"]],
        user=(free["user_id"].rank("dense").cast(pl.Int32) - 1).to_list(),
    )
    layer = compared_layer(
        compare(sample, Options(design="observational", draws=1_000, is_rate=True)), is_higher_better=True
    )
    assert found["sessions_difference"] == pytest.approx(layer.level[0] - layer.level[2])
    assert [found["sessions_lo"], found["sessions_hi"]] == pytest.approx([layer.lo[0, 2], layer.hi[0, 2]])


def test_the_audit_has_the_mix_of_the_sessions(world: Callable[..., World], concord: Callable[..., Scored]) -> None:
    made = world([0.3, 0.5, 0.7], None, [0.3, 0.3, 0.3])
    # Work that people judge harshly goes to the first model mostly; inside each kind all are alike.
    rng = np.random.default_rng(9)
    model = np.array([int(name[-1]) for name in made.outcomes["model"]])
    hard = rng.random(len(model)) < np.array([0.8, 0.5, 0.2])[model]
    bad = rng.random(len(model)) < np.where(hard, 0.6, 0.1)
    outcomes = made.outcomes.with_columns(scenario=pl.Series(np.where(hard, "coding", "chat")))
    names = outcomes["session_id"].to_numpy()
    counts = [(names[i], "negative", "turn", 1) for i in np.flatnonzero(bad)]
    everyone = [(name, "negative", "turn", bool(b), float(b), 1.0) for name, b in zip(names, bad, strict=True)]
    judged = World(
        outcomes,
        pl.DataFrame(counts, schema=COUNTS, orient="row"),
        pl.DataFrame(everyone, schema=REVIEWED, orient="row"),
    )
    row = concord(judged)["concordance"].row(1, named=True)
    weight = np.array([(~hard).mean(), hard.mean()])
    rate = [[bad[(model == k) & (hard == side)].mean() for side in (False, True)] for k in (0, 2)]
    assert row["audit_difference"] == pytest.approx(-(np.array(rate[0]) - np.array(rate[1])) @ weight, abs=1e-9)
    assert bad[model == 0].mean() - bad[model == 2].mean() > 0.2
    assert row["audit_order"] == "not_told"


def test_a_failed_design_establishes_nothing_from_traffic(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8], [0.5, 0.3, 0.1])
    language = ["zh" if model == "m-0" and i % 3 else "en" for i, model in enumerate(made.outcomes["model"].to_list())]
    unlike = replace(made, outcomes=made.outcomes.with_columns(language=pl.Series(language)))
    for design, status in (("randomized_session", "suspect"), ("observational", "inconclusive")):
        found = concord(unlike, design=design)["concordance"]
        assert found["status"].to_list() == [status] * 3
        assert all("balance" in why for why in found["reasons"])
        assert set(found["sessions_order"]) == set(found["audit_order"]) == {"not_told"}
        assert found.row(1, named=True)["tasks_order"] == "worse", "tasks were given to all alike"
        assert found.row(1, named=True)["label"] == "uncorroborated"


def test_a_window_without_sessions_has_no_rows(world: Callable[..., World], concord: Callable[..., Scored]) -> None:
    made = world([0.3, 0.5, 0.7])
    assert all(table.is_empty() for table in concord(replace(made, outcomes=made.outcomes.clear())).values())


def test_tasks_of_one_name_in_two_domains_are_two_tasks(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8])
    # Half of the tasks are of another domain, which numbers its tasks from the beginning again.
    is_other = pl.col("task_id") >= "t030"
    again = made.outcomes.with_columns(
        scenario=pl.when(is_other).then(pl.lit("office")).otherwise("scenario"),
        task_id=pl.when(is_other).then(pl.lit("t0") + (pl.col("task_id").str.slice(1).cast(pl.Int32) - 30).cast(pl.String).str.zfill(2)).otherwise("task_id"),
    )  # fmt: skip
    assert again["task_id"].n_unique() == 31
    numbers = ["tasks_difference", "tasks_lo", "tasks_hi"]
    one, other = (
        concord(replace(made, outcomes=rows))["concordance"].select(numbers) for rows in (made.outcomes, again)
    )
    np.testing.assert_allclose(one.to_numpy(), other.to_numpy())


#: Every fifth session stands for five, the others for one: kinds that are no stratum, so that a cell holds both.
ONE_IN_FIVE = Sampling(0.2, "language", "de")


def by_language(made: World) -> tuple[pl.DataFrame, np.ndarray[Any, Any]]:
    """Outcomes of which a third is German, and what each session stands for."""
    is_german = np.arange(made.outcomes.height) % 3 == 0
    outcomes = made.outcomes.with_columns(language=pl.Series(np.where(is_german, "de", "en")))
    return outcomes, np.where(is_german, 5.0, 1.0)


def test_drawn_sessions_and_trials_count_for_those_that_they_stand_for(
    world: Callable[..., World],
    concord: Callable[..., Scored],
    run: Callable[..., Scored],
    with_estimand: Callable[..., Criteria],
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8])
    outcomes, v = by_language(made)
    kinds = {"sampling": (ONE_IN_FIVE,), "strata": ("scenario", "routing_epoch")}
    found = concord(replace(made, outcomes=outcomes), **kinds)["concordance"].row(1, named=True)
    free = outcomes.filter(pl.col("task_id").is_null())
    pair = run(free, with_estimand(**kinds))["analysis.pairs"].filter(
        metric="positive_outcome", slice="all", version=NAMES[0], other=NAMES[2]
    )
    assert found["sessions_difference"] == pytest.approx(pair["difference"][0])
    # A task counts once, and of its trials the one that stands for more counts for more.
    tried = outcomes.with_columns(v=pl.Series(v)).filter(pl.col("task_id").is_not_null())
    y = (pl.col("v") * pl.col("objective_success_num")).sum() / pl.col("v").sum()
    rate = tried.group_by("model", "task_id").agg(y=y).pivot("model", index="task_id")
    assert found["tasks_difference"] == pytest.approx((rate["m-0"] - rate["m-2"]).mean())
    plain = concord(replace(made, outcomes=outcomes), strata=kinds["strata"])["concordance"].row(1, named=True)
    assert plain["tasks_difference"] != pytest.approx(found["tasks_difference"])


def test_reviewed_turns_of_drawn_sessions_count_for_those_that_they_stand_for(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], None, [0.3, 0.3, 0.3])
    outcomes, v = by_language(made)
    rng = np.random.default_rng(9)
    model = np.array([int(name[-1]) for name in outcomes["model"]])
    bad = rng.random(len(model)) < np.where(v > 1.0, 0.6, np.array([0.1, 0.3, 0.5])[model])
    names = outcomes["session_id"].to_numpy()
    counts = [(names[i], "negative", "turn", 1) for i in np.flatnonzero(bad)]
    everyone = [(name, "negative", "turn", bool(b), float(b), 1.0) for name, b in zip(names, bad, strict=True)]
    judged = World(
        outcomes,
        pl.DataFrame(counts, schema=COUNTS, orient="row"),
        pl.DataFrame(everyone, schema=REVIEWED, orient="row"),
    )
    row = concord(judged, sampling=(ONE_IN_FIVE,), strata=("scenario", "routing_epoch"))["concordance"].row(
        1, named=True
    )
    rate = [np.average(bad[model == k], weights=v[model == k]) for k in (0, 2)]
    assert row["audit_difference"] == pytest.approx(rate[1] - rate[0], abs=1e-9)


def test_sessions_outside_the_population_are_of_no_layer(
    world: Callable[..., World], concord: Callable[..., Scored]
) -> None:
    made = world([0.3, 0.5, 0.7], [0.2, 0.5, 0.8])
    gone = made.outcomes.with_columns(
        language=pl.when(pl.col("task_id").is_null()).then(pl.lit("de")).otherwise("language")
    )
    found = concord(replace(made, outcomes=gone), sampling=(Sampling(0.0, "language", "de"),))
    assert found["concordance"]["sessions_order"].is_null().all()
    why = found["layer_agreement"].filter(first_layer="sessions", second_layer="tasks")["reasons"].to_list()
    assert why == [["no_free_sessions"]]
