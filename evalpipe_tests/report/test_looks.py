"""Second looks: said where a table has something to say, and not otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl

from evalpipe.report import ReportInputs, build, to_html, to_markdown
from evalpipe_tests.report.factory import inputs

FIRST = date(2026, 10, 30)


def with_table(name: str, rows: list[dict[str, Any]]) -> ReportInputs:
    full = inputs()
    return replace(full, tables={**full.tables, f"analysis.{name}": pl.DataFrame(rows)})


def said(given: ReportInputs) -> str:
    return " ".join(f"{note.lead} {note.text}" for note in build(given).looks)


def versions() -> list[dict[str, Any]]:
    table = inputs().tables["analysis.net_improvement"]
    return table.filter(metric="positive_outcome", slice="all").sort("estimate").to_dicts()


def test_tables_without_a_word_make_no_section() -> None:
    report = build(inputs())
    assert report.looks == ()
    assert "Second looks" not in to_markdown(report)
    assert "Second looks" not in to_html(report)


def test_an_alarm_names_the_version_and_the_day_in_every_output() -> None:
    low = versions()[0]["version"]
    night = {"version": low, "night": FIRST, "evidence": 3.0, "is_alarm": False}
    quiet = with_table("nights", [night])
    assert said(quiet) == "No alarm. No version shows a loss against its own first fourteen days."
    loud = [night, *({**night, "night": FIRST.replace(day=day), "evidence": 700.0, "is_alarm": True} for day in (31,))]
    report = build(with_table("nights", loud))
    assert f"Alarm on a loss: {low} since 31 Oct 2026" in said(with_table("nights", loud))
    assert "Alarm on a loss:" in to_markdown(report)
    assert "Alarm on a loss:" in to_html(report)


def test_a_second_opinion_is_told_where_it_turns_a_sign_that_was_told_from_zero() -> None:
    worst = versions()[0]
    assert worst["hi"] < 0
    row = {"version": worst["version"], "estimator": "aipw", "estimate": worst["estimate"]}
    assert said(with_table("estimators", [row])).startswith("Second opinions agree.")
    turned = said(with_table("estimators", [row | {"estimate": 0.02}]))
    assert turned.startswith("A second opinion differs: weighting for routing")
    assert worst["version"] in turned
    # A recipe answers another question, and what is not told from 0 has no sign to lose.
    assert said(with_table("estimators", [row | {"estimator": "seed000.raw_gap", "estimate": 0.02}])) == ""
    middle = next(one for one in versions() if one["lo"] < 0 < one["hi"])
    other = {"version": middle["version"], "estimator": "aipw", "estimate": -middle["estimate"]}
    assert said(with_table("estimators", [other])).startswith("Second opinions agree.")


def test_what_could_overturn_a_number_and_what_reviews_correct() -> None:
    name = versions()[-1]["version"]
    bears = said(with_table("sensitivity", [{"version": name, "reasons": ["fragile", "sign_differs"]}]))
    assert bears == (
        f"What could overturn a number: weak hidden routing (odds below 1.2) would explain the shift of {name}."
    )
    rate = {"signal": "correction", "version": name, "unit": "turn", "raw_rate": 0.081, "rate": 0.12}
    rate |= {"rate_lo": 0.1, "rate_hi": 0.14}
    nobody = {**rate, "signal": "praise", "rate": None, "rate_lo": None, "rate_hi": None}
    told = said(with_table("corrected_rates", [rate, nobody]))
    assert told.startswith("Reviews correct 1 rate of 2.")
    assert "in 12.0% [10.0%, 14.0%] of later turns instead of 8.1%." in told
    assert said(with_table("corrected_rates", [nobody])).startswith("No rate is corrected by reviews.")


def test_layers_of_evidence_are_told_where_two_know_a_pair() -> None:
    low, *_, high = (row["version"] for row in versions())
    pair = {"version": low, "other": high, "n_layers": 2, "label": "corroborated"}
    alone = {**pair, "n_layers": 1, "label": "uncorroborated"}
    assert said(with_table("concordance", [alone])) == ""
    told = said(with_table("concordance", [pair, {**pair, "label": "insufficient"}, alone]))
    assert told.startswith("Layers of evidence do not contradict each other. Of 2 pairs of versions that two")
    assert told.endswith("a second layer backs the order of 1.")
    against = said(with_table("concordance", [pair, {**pair, "label": "contradicted"}]))
    assert against.startswith(f"Layers of evidence contradict each other: the order of {low} and {high}. Of 2 pairs")
    many = said(with_table("concordance", [{**pair, "label": "contradicted"}] * 5))
    assert ", and 2 more. Of 5 pairs" in many


def test_a_bridge_says_whether_series_may_be_joined() -> None:
    row = {"mean_shift": 0.0123, "is_chained": True}
    assert "+1.2 points" in said(with_table("bridges", [row]))
    assert "may be chained" in said(with_table("bridges", [row]))
    assert "a break" in said(with_table("bridges", [row | {"is_chained": False}]))


def test_the_plan_stands_with_the_provenance() -> None:
    full = inputs()
    checks = full.tables["analysis.diagnostics"]
    plan = checks.head(1).with_columns(check_name=pl.lit("plan"), subject=pl.lit("test"), detail=pl.lit("By hand."))
    report = build(replace(full, tables={**full.tables, "analysis.diagnostics": pl.concat([checks, plan])}))
    assert dict(report.provenance)["Picked: test"] == "By hand."
