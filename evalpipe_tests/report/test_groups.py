"""Reports on versions that are compared in groups, on outcomes all alike, and on traffic that was only observed."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl

from evalpipe import analysis
from evalpipe.criteria import Criteria, load
from evalpipe.report import Report, ReportInputs, build, groups, headline, to_html, to_json, to_markdown
from evalpipe.report.model import plain
from evalpipe_tests.analysis.conftest import outcome_rows

FIRST, LAST = date(2026, 1, 1), date(2026, 2, 1)


@functools.cache
def criteria(design: str = "randomized_session") -> Criteria:
    base = load("default", extractors="test")
    changes = {"permutations": 99, "simultaneous_draws": 1000, "metrics": ("positive_outcome", "correction")}
    return replace(base, estimand=replace(base.estimand, design=design, **changes))


def report(
    rates: Mapping[tuple[str, str], float],
    n: int = 150,
    kept: int = 0,
    design: str = "randomized_session",
    **columns: object,
) -> Report:
    """A report on ``n`` sessions of each (model, scenario), exactly the given share of them successes."""
    c = criteria(design)
    cells = sorted(rates)
    model = [m for m, _ in cells for _ in range(n)]
    scenario = [s for _, s in cells for _ in range(n)]
    success = np.concatenate([np.arange(n) < round(rates[cell] * n) for cell in cells])
    users = [f"u{(i * 7919) % (n * len(cells) // 2)}" for i in range(len(model))]
    given = {"scenario": scenario, "user_id": users, **columns}
    outcomes = outcome_rows(model, success, c.measurement, **given)  # type: ignore[arg-type]
    start, end = outcomes["day"].min(), outcomes["day"].max()
    if kept:
        outcomes = outcomes.filter(
            (pl.col("scenario") == "code") | (pl.int_range(pl.len()).over("model") < kept // 2 - 25)
        )
    tables = analysis.score(outcomes, c, as_of=end, window="all", window_start=start, window_end=end)  # type: ignore[arg-type]
    return build(ReportInputs(tables, c, None, None, "0.1.0"))


def said(r: Report) -> str:
    return " ".join([headline(r), *(plain(s) for s in r.answer.sentences)])


@functools.cache
def split() -> Report:
    """a and b code, b, c and d chat: nobody does both but b."""
    return report({("a", "code"): 0.2, ("b", "code"): 0.7, ("b", "chat"): 0.6, ("c", "chat"): 0.62, ("d", "chat"): 0.2})


def test_the_headline_names_the_leading_set_of_every_group() -> None:
    r = split()
    assert r.answer.state == "groups"
    assert headline(r) == (
        "No order over all traffic; in chat acme · c and acme · b cannot be told apart at the top of 3; "
        "in code acme · b is better than acme · a"
    )
    text = said(r)
    assert "No work is common to every version" in text
    assert "In chat (450 sessions, 3 versions)" in text
    assert "2 of 3 pairs can be told apart" in text
    assert "acme · b against acme · a, +50\u00a0pp [" in text or "+50.0\u00a0pp [" in text
    assert {c.code for c in r.not_concluded} >= {"groups", "ties"}


def test_every_output_holds_the_leading_sets_and_the_pairs() -> None:
    r = split()
    chat, code = groups(r)
    assert (chat["leading"], code["leading"]) == (["acme · c", "acme · b"], ["acme · b"])
    assert [pair[:2] for pair in code["told_apart"]] == [["acme · b", "acme · a"]]
    page, text = to_html(r), to_markdown(r)
    for better, worse, difference in [*chat["told_apart"], *code["told_apart"]]:
        assert f"| {better} | {worse} | {difference} |" in text
        assert f'<bdi>{better}</bdi></th><td><bdi>{worse}</bdi></td><td class="num">{difference}</td><td>better' in page
    assert "| chat | acme · c and acme · b | 3 | 2 of 3 | 450 |" in text
    stored = json.loads(to_json(r))["evidence"]["groups"]
    assert [g["title"] for g in stored] == ["chat", "code"]
    assert len(stored[0]["pairs"]["rows"]) == 6
    assert "No version has an estimate in this window" not in page


def test_a_group_of_another_period_is_named_by_it() -> None:
    rates = {("a", "code"): 0.2, ("b", "code"): 0.7, ("c", "code"): 0.5, ("d", "code"): 0.5}
    epochs = ["e1"] * 300 + ["e2"] * 300
    r = report(rates, routing_epoch=epochs)
    assert "in routing_epoch e1 acme · b is better than acme · a" in headline(r)
    # The slice of a group holds the headline only, so it is no column of the small multiples.
    assert [s.name for s in r.evidence.slices] == ["all", "scenario=code"]


def test_versions_that_left_the_comparison_are_told_apart_below_it() -> None:
    rates = {("a", "code"): 0.2, ("b", "code"): 0.7, ("c", "chat"): 0.6, ("d", "chat"): 0.2}
    r = report(rates, kept=250)
    assert headline(r) == "acme · b is better than acme · a"
    assert "In chat (200 sessions, 2 versions) acme · c leads: 1 of 1 pair can be told apart" in said(r)
    assert "Not compared: acme · c (" in said(r)
    assert "Who can be told apart, by the work they share" in to_html(r)


def test_all_alike_says_what_and_how_many_and_bounds_the_rates() -> None:
    r = report({("a", "code"): 0.0, ("b", "code"): 0.0}, n=100)
    assert r.answer.state == "alike"
    assert headline(r) == "No comparison: positive outcome is 0.0% in all 200 sessions of the 2 versions"
    text = said(r)
    assert "no standard error" in text
    bounds = [e.theta_hi for e in r.evidence.headline]
    assert all(b is not None and 0.03 < b < 0.05 for b in bounds)  # Wilson, 0 of 100: 3.7 % with z
    assert f"acme · a 0.0% [0.0, {bounds[0] * 100:.1f}] (100 sessions," in text  # type: ignore[operator]


def test_one_user_is_the_reason_that_is_told() -> None:
    r = report({("a", "code"): 0.2, ("b", "code"): 0.7}, user_id=["u"] * 300)
    assert headline(r) == "No comparison: too few users in each stratum to know how far users differ"
    assert "in common" not in headline(r)


def test_observed_traffic_is_never_worded_as_cause() -> None:
    rates = {("a", "code"): 0.2, ("b", "code"): 0.7}
    seen, drawn = report(rates, design="as_logged"), report(rates)
    assert headline(drawn) == "acme · b is better than acme · a"
    assert headline(seen) == "acme · b is ahead of acme · a in observed traffic"
    assert seen.not_concluded[0].code == "observational"
    for text in (to_html(seen), to_markdown(seen)):
        assert "if all traffic went to this version" not in text.partition("<script")[0]
        assert "not known, because versions were not assigned at random" in text
        assert "no random assignment of every session is logged" in text


def test_an_assignment_that_is_only_declared_says_so_with_the_checks() -> None:
    r = report({("a", "code"): 0.2, ("b", "code"): 0.7})
    line = next(c for c in r.not_concluded if c.code == "assignment")
    assert line.text.startswith("It is declared in the criteria, not verified.")
    assert "traffic split as configured could not be checked" in line.text
    assert "users who stay with one version: passed" in line.text
    assert "random, per session (declared, not verified)" in to_markdown(r)
    logged = [0.5] * 300
    told = report({("a", "code"): 0.2, ("b", "code"): 0.7}, design="as_logged", assignment_probability=logged)
    assert "It is logged, not verified." in next(c for c in told.not_concluded if c.code == "assignment").text


def test_a_gate_of_another_window_or_measurement_is_not_shown() -> None:
    from evalpipe_tests.report import factory

    full = factory.inputs()
    assert build(full).evidence.gate.verdict is not None
    for change in (
        {"measurement": pl.lit("other")},
        {"window_name": pl.lit("7d")},
        {"as_of": pl.lit(date(2026, 11, 7))},
    ):
        assert build(factory.changed(full, "analysis.gates", **change)).evidence.gate.verdict is None
