"""Wording: banned words, intervals after estimates, what may not be concluded, notes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import pytest

from evalpipe.criteria.model import Sampling
from evalpipe.report import Report, ReportInputs, build, to_markdown
from evalpipe.report.model import plain
from evalpipe.report.phrases import phrase, reasons
from evalpipe_tests.report import factory

BANNED = re.compile(
    r"\b(wins?|won|outperform\w*|significan\w*|identical|on par|no difference|nearly|slightly|strongly|"
    r"likely|probably|n/a|causes|buys|fell|rose|nan|none is)\b|±|–%",
    re.IGNORECASE,
)
#: A signed amount in percentage points; margins, limits and bounds are named as such before it.
ESTIMATE = re.compile(r"(?P<before>\S+ \S+ |^)(?P<number>[+\u2212]\d+(?:\.\d+)?\u00a0pp)(?P<after>.{0,3})")
BOUNDS = ("bound", "above", "below", "limit", "and", "is")


NAMES = ("eight", "thirty", "two", "suspect", "observed", "leader")


@functools.cache
def reports() -> dict[str, Report]:
    pair = (("a · x", 0.1, 900, 300), ("b · y", -0.1, 900, 300))
    observed = factory.changed(factory.inputs(), "analysis.net_improvement", design=pl.lit("observational"))
    inputs: dict[str, ReportInputs] = {
        "eight": factory.inputs(),
        "thirty": factory.inputs(factory.many(30), candidate=None, baseline=None),
        "two": factory.inputs(pair, candidate="a · x", baseline="b · y"),
        "suspect": factory.inputs(suspect=("srm", "balance")),
        "observed": observed,
        "leader": factory.inputs((("a · x", 0.3, 900, 300), *factory.EIGHT[3:])),
    }
    return {name: build(each) for name, each in inputs.items()}


def generated(r: Report) -> Iterator[str]:
    yield plain(r.answer.headline)
    yield from (plain(s) for s in r.answer.sentences)
    for caveat in r.not_concluded:
        yield f"{caveat.lead} {caveat.text}"
    yield r.evidence.gate.sentence
    yield from (row.reading for row in r.evidence.gate.rows)
    yield r.raw_note
    for note in r.notes:
        yield f"{note.lead} {note.text}"


@pytest.mark.parametrize("name", NAMES)
def test_no_banned_word_is_generated(name: str) -> None:
    for text in generated(reports()[name]):
        assert not BANNED.search(text), text


def test_the_banned_list_can_fail() -> None:
    assert BANNED.search("A wins")
    assert BANNED.search("+3.9 ± 2")


@pytest.mark.parametrize("name", NAMES)
def test_an_interval_follows_every_estimate(name: str) -> None:
    r = reports()[name]
    readings = {row.reading for row in r.evidence.gate.rows}
    for text in generated(r):
        if text in readings:
            continue  # readings compare bounds with margins; the interval stands in the row
        for found in ESTIMATE.finditer(text):
            assert found["after"].startswith(" ["), text


def test_lines_are_never_more_than_five_and_hold_ties_or_scope() -> None:
    assert tuple(reports()) == NAMES
    for r in reports().values():
        codes = [c.code for c in r.not_concluded]
        assert 1 <= len(codes) <= 5
        assert len(codes) == len(set(codes))
        expected = "ties" if len(r.evidence.leading) > 1 else "scope"
        assert expected in codes


def test_the_gravest_lines_come_first() -> None:
    assert reports()["suspect"].not_concluded[0].code == "suspect"
    observed = reports()["observed"]
    assert [c.code for c in observed.not_concluded][:2] == ["observational", "ties"]
    assert "is associated with" in observed.not_concluded[0].text


def test_ties_name_the_gap_that_would_stay_unseen() -> None:
    r = factory.report()
    line = next(c for c in r.not_concluded if c.code == "ties")
    worst = max(p.se for p in r.evidence.pairs if {p.version, p.other} <= set(r.evidence.leading) and p.se)
    assert f"{(1.959964 + 0.841621) * worst * 100:.1f}\u00a0pp" in line.text


def test_small_slices_are_named() -> None:
    line = next(c for c in factory.report().not_concluded if c.code == "slices")
    assert "chat of kestrel · k-30 (unavailable: too few sessions, 14 sessions)" in line.text
    assert "underpowered" in line.text


def test_harness_and_model_that_change_together() -> None:
    r = build(factory.inputs(candidate="atlas · a-4.1", baseline="kestrel · k-70"))
    assert "differ in both" in next(c for c in r.not_concluded if c.code == "confounded").text
    assert not any(c.code == "confounded" for c in factory.report().not_concluded)


def test_missing_outcomes_are_told_where_they_differ() -> None:
    full = factory.inputs()
    share = pl.when(pl.col("version") == factory.CANDIDATE).then(0.09).otherwise(0.01)
    changed = factory.changed(full, "analysis.net_improvement", missing_share=share)
    line = next(c for c in build(changed).not_concluded if c.code == "missing")
    assert "1.0% to 9.0%" in line.text
    assert not any(c.code == "missing" for c in build(full).not_concluded)


def test_plain_rates_that_are_upside_down_get_a_note() -> None:
    full = factory.inputs()
    assert build(full).raw_note == ""
    turned = factory.changed(full, "analysis.net_improvement", raw_rate=1 - pl.col("raw_rate"))
    r = build(turned)
    assert r.raw_note.startswith(
        "The plain rates are upside down here: they put kestrel · k-30 before orion · o-large-high"
    )
    assert re.search(r"by \+15\.5\u00a0pp \[", r.raw_note)
    assert r.raw_note.replace("|", "\\|")[:40] in to_markdown(r)


def test_notes_are_eight_at_most_and_carry_the_numbers() -> None:
    r = factory.report()
    assert len(r.notes) == 8
    text = " ".join(note.text for note in r.notes)
    assert "all 56 ordered pairs" in text
    assert "9,999 shuffles of sessions within strata" in text
    assert "{" not in text


def test_provenance_names_every_hash() -> None:
    full = factory.inputs()
    values = dict(build(full).provenance)
    assert values["Measurement"] == full.criteria.measurement
    assert values["Criteria hash"] == full.criteria.hash
    assert values["Hash of gates"] == full.criteria.sub_hash("gates")
    assert values["Seed"] == "7203114553201776001"
    assert values["Gate decision"] == "d41d8cd98f00"


def test_an_unknown_code_prints_in_words_and_a_status_word_yields_to_a_reason() -> None:
    assert phrase("reasons", "odd_new_code") == "odd new code"
    assert reasons(("unavailable", "too_few_sessions")) == "too few sessions"
    assert reasons(("suspect",)) == "a design check failed"


def test_design_words_follow_the_rows_not_the_criteria() -> None:
    full = factory.changed(factory.inputs(), "analysis.net_improvement", design=pl.lit("randomized_user"))
    text = " ".join(note.text for note in build(full).notes)
    assert "shuffles of users within routing epochs" in text


def test_gates_are_declared_or_readiness_is_not_determined() -> None:
    full = factory.inputs()
    undeclared = build(replace(full, criteria=factory.criteria(())))
    assert undeclared.evidence.gate.sentence == (
        "Readiness is not determined: no thresholds were declared before the results."
    )
    unnamed = build(replace(full, candidate=None))
    assert "no candidate and baseline were named" in unnamed.evidence.gate.sentence
    assert unnamed.evidence.gate.verdict is None


def test_a_drawn_sample_is_told_beside_the_estimate_and_in_the_provenance() -> None:
    plain = factory.criteria()
    rules = (Sampling(0.25, "scenario", "chat"), Sampling(0.0, "language", "pt"))
    drawn = build(factory.inputs(c=replace(plain, estimand=replace(plain.estimand, sampling=rules))))
    assert "each session for as many as it was drawn from;" in " ".join(note.text for note in drawn.notes)
    assert dict(drawn.provenance)["Sessions kept"] == "scenario=chat 0.25, language=pt 0"
    whole = build(factory.inputs())
    assert "Sessions kept" not in dict(whole.provenance)
    assert "drawn from" not in " ".join(note.text for note in whole.notes)
