"""The headline table, and that every member of the leading set is named."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.render import empty
from evalpipe.contracts.tables import TABLES
from evalpipe.report import Report, ReportInputs, assignment, build, headline, views
from evalpipe.report.model import plain
from evalpipe.report.records import BETTER, WORSE
from evalpipe_tests.report import factory

HEADLINE = ("positive_outcome",)


def versions(*shifts: float) -> tuple[tuple[str, float, int, int], ...]:
    return tuple((f"agent-{i} · m{i}", shift, 900, 300) for i, shift in enumerate(shifts))


def report(*shifts: float, gap: float = 0.05, **more: object) -> Report:
    return build(
        factory.inputs(
            versions(*shifts), gap=gap, scenarios=(), metrics=HEADLINE, candidate=None, baseline=None, **more
        )
    )


def said(r: Report) -> str:
    return " ".join([headline(r), *(plain(s) for s in r.answer.sentences)])


def test_a_single_leader_is_named_with_its_distance() -> None:
    r = report(0.2, 0.02, 0.0)
    assert headline(r) == "agent-0 · m0 leads the 3 versions"
    assert r.answer.state == "leader"
    assert re.search(r"stands at \+18\.0\u00a0pp \[\+\d+\.\d, \+\d+\.\d\] against the next, agent-1 · m1", said(r))


@pytest.mark.parametrize(
    ("shifts", "expected"),
    [
        ((0.1, 0.08, -0.1), "No single leader: agent-0 · m0 and agent-1 · m1 cannot be told apart"),
        ((0.1, 0.09, 0.08, -0.1), "No single leader: agent-0 · m0, agent-1 · m1 and agent-2 · m2 cannot be told apart"),
        ((0.02, 0.01, 0.0), "The 3 versions cannot be told apart"),
        (
            (0.1, 0.09, 0.085, 0.08, 0.07, -0.2),
            "No single leader: 5 of the 6 versions cannot be told apart at the top",
        ),
        ((0.1, -0.1), "agent-0 · m0 is better than agent-1 · m1"),
        ((0.01, 0.0), "agent-0 · m0 and agent-1 · m1 cannot be told apart"),
    ],
)
def test_states_of_the_headline_table(shifts: tuple[float, ...], expected: str) -> None:
    assert headline(report(*shifts)) == expected


@given(
    st.lists(st.floats(-0.2, 0.2).map(lambda x: round(x, 3)), min_size=2, max_size=9),
    st.sampled_from((0.01, 0.05, 0.1)),
)
@settings(deadline=None, max_examples=25)
def test_the_leading_set_is_named_whole_and_mutually_unseparated(shifts: list[float], gap: float) -> None:
    r = report(*shifts, gap=gap)
    ev = r.evidence
    assert ev.leading
    text = said(r)
    for i in ev.leading:
        assert ev.versions[i].label in text
        for j in ev.leading:
            pair = ev.pair(i, j)
            assert i == j or (pair is not None and pair.relation not in {BETTER, WORSE})


def test_without_sessions_there_is_no_comparison() -> None:
    full = factory.inputs()
    nothing = {name: empty(TABLES[name]) for name in full.tables}
    r = build(replace(full, tables=nothing))
    assert headline(r) == "No comparison: no session in this window has a version and an outcome"
    assert r.answer.state == "no_comparison"
    assert r.not_concluded


def test_too_few_sessions_are_told_in_numbers() -> None:
    few = tuple((f"agent-{i} · m{i}", 0.0, 12, 5) for i in range(3))
    r = build(factory.inputs(few, scenarios=(), metrics=HEADLINE, candidate=None, baseline=None))
    assert headline(r) == "No comparison: 3 of 3 versions have fewer than 20 sessions"


def test_one_version_alone_is_not_compared() -> None:
    r = build(factory.inputs(versions(0.0), scenarios=(), metrics=HEADLINE, candidate=None, baseline=None))
    assert headline(r) == "No comparison: only one version has sessions in this window"


def test_a_failed_design_check_is_the_headline() -> None:
    r = build(factory.inputs(suspect=("srm",)))
    assert headline(r) == "Not safe to compare: the check “Traffic split as configured” failed"
    assert "no order may be read" in said(r)
    assert r.not_concluded[0].code == "suspect"
    assert "can favour either version" in r.not_concluded[0].text


def test_little_common_ground_is_not_ranked() -> None:
    full = factory.changed(
        factory.inputs(),
        "analysis.net_improvement",
        support_share=pl.lit(0.62),
        rank_lo=pl.lit(None, pl.Int32),
        rank_hi=pl.lit(None, pl.Int32),
    )
    r = build(full)
    assert headline(r) == "Too little common ground to rank the 8 versions"
    assert "62.0% of the traffic" in said(r)


def test_numbers_without_rank_sets_are_not_ordered() -> None:
    full = factory.changed(
        factory.inputs(),
        "analysis.net_improvement",
        population=pl.lit("own_share"),
        rank_lo=pl.lit(None, pl.Int32),
        rank_hi=pl.lit(None, pl.Int32),
    )
    assert headline(build(full)) == "No comparison: each version is scored on its own traffic"


def test_a_version_left_out_is_named_with_its_reason() -> None:
    r = build(factory.inputs((*factory.EIGHT, ("young · y-1", 0.0, 12, 5))))
    assert "Not compared: young · y-1 (unavailable: 12 sessions, 20 needed)." in said(r)
    assert "the 8 versions" in said(r)


def test_an_absent_candidate_is_shown_as_unavailable() -> None:
    r = build(factory.inputs(candidate="atlas · a-5", baseline=factory.BASELINE))
    assert "Not compared: atlas · a-5 (unavailable: no session in this window)." in said(r)


def test_who_is_above_the_average_is_read_from_the_simultaneous_interval() -> None:
    r = factory.report()
    ev = r.evidence
    above = [ev.versions[e.version].label for e in ev.headline if e.lo_sim is not None and e.lo_sim > 0]
    assert above == ["orion · o-large-high", "orion · o-large"]
    assert "orion · o-large-high and orion · o-large are above the average of the 8 even when all 8" in said(r)


def test_a_chain_of_two_separations_is_told_as_such() -> None:
    full = factory.inputs(
        versions(0.3, 0.1, -0.1), gap=0.05, scenarios=(), metrics=HEADLINE, candidate=None, baseline=None
    )
    a, b, c = (v[0] for v in versions(0.3, 0.1, -0.1))
    is_a_to_c = (pl.col("version") == a) & (pl.col("other") == c)
    chained = factory.changed(full, "analysis.pairs", is_better=pl.col("is_better") & ~is_a_to_c)
    ev = build(chained).evidence
    index = {v.label: i for i, v in enumerate(ev.versions)}
    pair, back = ev.pair(index[a], index[c]), ev.pair(index[c], index[a])
    assert pair is not None
    assert back is not None
    assert (pair.relation, pair.through) == ("better_through", index[b])
    assert (back.relation, back.through) == ("worse_through", index[b])


def test_fewer_is_better_turns_order_and_words_round() -> None:
    c = factory.criteria(())
    c = replace(c, outcomes=replace(c.outcomes, headline="correction"))
    full = factory.inputs(versions(0.2, 0.0, -0.2), scenarios=(), candidate=None, baseline=None, c=c)
    ev = build(full).evidence
    values = [e.estimate for e in ev.headline]
    assert values == sorted(values, key=lambda v: v if v is not None else 0.0)
    assert "better than the average of the 3" in said(build(full))
    assert "above" not in said(build(full))


def test_tables_of_two_windows_are_refused() -> None:
    full = factory.inputs()
    two = pl.concat([
        full.tables["analysis.net_improvement"],
        full.tables["analysis.net_improvement"].with_columns(window_name=pl.lit("all")),
    ])  # fmt: skip
    mixed = ReportInputs(full.tables | {"analysis.net_improvement": two}, full.criteria, None, None, "0.1.0")
    with pytest.raises(Exception, match="MIXED_MEASUREMENTS"):
        build(mixed)


def test_imbalance_of_observed_traffic_is_told_and_fails_no_design() -> None:
    full = factory.changed(
        factory.inputs(versions(0.2, 0.02, 0.0), scenarios=(), metrics=HEADLINE, candidate=None, baseline=None),
        "analysis.net_improvement",
        design=pl.lit("observational"),
        reasons=pl.lit(["balance", "not_randomized"]),
    )
    is_language = (pl.col("check_name") == "balance") & (pl.col("subject") == "language")
    status = pl.when(is_language).then(pl.lit("inconclusive")).otherwise(pl.col("status"))
    r = build(factory.changed(full, "analysis.diagnostics", status=status))
    assert headline(r) == "agent-0 · m0 leads the 3 versions in observed traffic"
    assert "differ in language, which may make the difference" in said(r)
    assert r.not_concluded[0].code == "observational"
    assert "differ in language before anything was done" in r.not_concluded[0].text
    assert "differ in" not in said(build(full))
    assert "differ in" not in build(full).not_concluded[0].text


def test_a_logged_assignment_that_a_check_contradicts_is_not_called_unlogged() -> None:
    full = factory.changed(factory.inputs(suspect=("srm",)), "analysis.net_improvement", design=pl.lit("observational"))
    ev = replace(build(full).evidence, declared_design="as_logged")
    facts = {fact.label: fact.value for fact in views.facts(ev)}
    assert facts["Assignment"] == "observed, not random (logged as random, and a check contradicts it)"


def test_a_failed_check_of_the_ledger_is_the_headline_and_stands_beside_the_answer() -> None:
    full = factory.inputs(suspect=("multiple_exposure",))
    row = full.tables["analysis.diagnostics"].filter(pl.col("check_name") == "srm")
    row = row.with_columns(
        check_name=pl.lit("multiple_exposure"), subject=pl.lit("users"), value=pl.lit(0.12), bound=pl.lit(0.05),
        status=pl.lit("suspect"), detail=pl.lit("12 of 100 users met several versions in one epoch."),
    )  # fmt: skip
    checks = pl.concat([full.tables["analysis.diagnostics"], row])
    r = build(factory.with_table(full, "analysis.diagnostics", checks))
    assert headline(r) == "Not safe to compare: the check “Users who met several versions” failed"
    assert "12 of 100 users" in said(r)
    assert "first can change what they make of the next version" in r.not_concluded[0].text
    assert "users who met several versions: suspect (share 0.12)" in assignment(r)
    assert "traffic split as configured: passed (p 0.41)" in assignment(r)
