"""The gate card: verdicts against the drawing, signs, readings and what would decide an open one."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.inference import gate as decide
from evalpipe.report import build, to_html
from evalpipe.report import gate as gates
from evalpipe.report.records import GateRow
from evalpipe.report.svg import gate as drawing
from evalpipe.report.views import gate_note, gate_rows
from evalpipe_tests.report import factory

BAR = re.compile(r'<line class="k" x1="([\d.]+)%" x2="([\d.]+)%"')
LIMIT = re.compile(r'<line class="limit" x1="([\d.]+)%"')


def row(
    estimate: float, half: float, margin: float, kind: str = "non_inferiority", metric: str = "correction"
) -> GateRow:
    lower, upper = estimate - half, estimate + half
    line = margin if kind == "superiority" else -margin
    verdict = "pass" if lower > line else "fail" if upper < line else "inconclusive"
    return GateRow("g", metric, kind, margin, estimate, lower, upper, 99.0, verdict, (), 500, "")


def drawn_verdict(svg: str) -> str:
    bar, limit = BAR.search(svg), LIMIT.search(svg)
    assert bar
    assert limit
    left, right, at = float(bar[1]), float(bar[2]), float(limit[1])
    return "pass" if left > at else "fail" if right < at else "inconclusive"


@given(
    st.floats(-0.2, 0.2),
    st.floats(0.001, 0.2),
    st.floats(0.005, 0.2),
    st.sampled_from(("non_inferiority", "superiority")),
)
@settings(deadline=None, max_examples=120)
def test_the_drawing_says_what_the_word_says(estimate: float, half: float, margin: float, kind: str) -> None:
    made = row(estimate, half, margin, kind)
    assert made.lower is not None
    assert made.upper is not None
    line = gates.threshold(kind, margin)
    reach = 2.2 * margin
    # Two decimals of a percent is what the drawing resolves; ends past the scale stop at its edge.
    assume(min(abs(made.lower - line), abs(made.upper - line)) > reach * 5e-4)
    assert drawn_verdict(drawing.row(made)) == made.verdict


def test_every_row_of_a_report_is_drawn_as_it_is_decided() -> None:
    r = factory.report()
    svgs = re.findall(r'<svg class="gaterow".*?</svg></td>', to_html(r), flags=re.DOTALL)
    assert len(svgs) == len(r.evidence.gate.rows) == 4
    for made, svg in zip(r.evidence.gate.rows, svgs, strict=True):
        if made.verdict == "unavailable":
            assert "no number exists" in svg
            assert not BAR.search(svg)
        else:
            assert drawn_verdict(svg) == made.verdict


def test_threshold_agrees_with_the_rule_that_decides() -> None:
    for kind in ("non_inferiority", "superiority"):
        for estimate in (-0.08, -0.03, 0.0, 0.03, 0.08):
            found = decide(estimate, 0.005, 200.0, 200.0, 0.05, kind)
            line = gates.threshold(kind, 0.05)
            expected = "pass" if found.lower > line else "fail" if found.upper < line else "inconclusive"
            assert found.verdict == expected


def test_numbers_carry_the_metrics_own_sign() -> None:
    cells = {c.row.criterion: c for c in gate_rows(factory.report().evidence)}
    assert (cells["outcome_no_worse"].change, cells["outcome_no_worse"].interval) == ("+3.6\u00a0pp", "[+0.4, +6.8]")
    assert (cells["corrections_no_worse"].change, cells["corrections_no_worse"].interval) == (
        "+0.4\u00a0pp",
        "[−5.3, +6.1]",
    )
    assert cells["corrections_no_worse"].demand == "no worse: rise of at most 5.0\u00a0pp"
    assert cells["errors_no_more"].change == "+0.03"


def test_readings_name_bound_and_margin() -> None:
    rows = {made.criterion: made.reading for made in factory.report().evidence.gate.rows}
    assert rows["outcome_no_worse"] == (
        "Lower bound +0.4\u00a0pp is above −2.0\u00a0pp. It is also above 0: better than the baseline."
    )
    assert rows["errors_no_more"] == "Upper bound +0.09 is below +0.10."
    assert "no known outcome" in rows["objective_no_worse"]
    assert "leaves the gate open, never passed" in rows["objective_no_worse"]


def test_an_open_criterion_names_what_would_decide_it() -> None:
    r = factory.report()
    made = next(m for m in r.evidence.gate.rows if m.criterion == "corrections_no_worse")
    found = re.search(
        r"About ([\d,]+) more sessions of atlas · a-4.1 \((\d+) days at the present share\)", made.reading
    )
    assert found
    more = int(found[1].replace(",", ""))
    # Half-widths shrink with the root of the sessions: with so many more, the lower bound clears the margin.
    n = 1204
    half = 0.057 * (n / (n + more)) ** 0.5
    assert -0.004 - half > -0.05
    assert -0.004 - 0.057 * (n / (n + 0.9 * more)) ** 0.5 < -0.05
    assert int(found[2]) == -(-more * 28 // n)


def test_an_estimate_at_the_margin_gets_no_forecast_of_sessions() -> None:
    full = factory.inputs()
    at = pl.col("criterion") == "corrections_no_worse"
    near = factory.changed(
        full,
        "analysis.gates",
        estimate=pl.when(at).then(-0.0499).otherwise("estimate"),
        lower=pl.when(at).then(-0.10).otherwise("lower"),
        upper=pl.when(at).then(0.0).otherwise("upper"),
    )
    made = next(m for m in build(near).evidence.gate.rows if m.criterion == "corrections_no_worse")
    assert "20 times the sessions would not decide it" in made.reading


def test_a_barred_criterion_says_what_bars_it() -> None:
    full = factory.inputs()
    barred = factory.changed(full, "analysis.gates", verdict=pl.lit("inconclusive"), reasons=pl.lit(["suspect", "srm"]))
    made = build(barred).evidence.gate.rows[0]
    assert made.reading.startswith("Not decided: traffic was not split as declared. Bounds +0.4 and +6.8")


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (["pass"] * 4, "pass"),
        (["pass", "fail", "inconclusive", "pass"], "fail"),
        (["pass", "pass", "inconclusive", "pass"], "inconclusive"),
    ],
)
def test_the_gate_passes_only_if_all_pass(verdicts: list[str], overall: str) -> None:
    full = factory.inputs()
    table = full.tables["analysis.gates"].with_columns(
        verdict=pl.Series(verdicts), estimate=pl.lit(0.0), lower=pl.lit(-0.01), upper=pl.lit(0.01)
    )
    r = build(
        factory.changed(full, "analysis.gates", *(table[name] for name in ("verdict", "estimate", "lower", "upper")))
    )
    assert r.evidence.gate.verdict == overall


def test_a_declared_criterion_without_a_decision_keeps_the_gate_open() -> None:
    full = factory.inputs()
    only = full.tables["analysis.gates"].filter(pl.col("verdict") == "pass")
    r = build(factory.with_table(full, "analysis.gates", only))
    assert r.evidence.gate.verdict == "inconclusive"
    assert [made.verdict for made in r.evidence.gate.rows] == ["pass", "pass", "unavailable", "unavailable"]


def test_the_last_decision_on_the_pair_is_shown() -> None:
    full = factory.inputs()
    first = full.tables["analysis.gates"]
    later = first.with_columns(decision_id=pl.lit("later"), verdict=pl.lit("inconclusive"))
    other = first.with_columns(decision_id=pl.lit("other"), candidate=pl.lit("someone else"))
    r = build(factory.with_table(full, "analysis.gates", pl.concat([first, later, other])))
    assert r.evidence.gate.decision_id == "later"


def test_a_gate_that_is_better_where_letters_tie_is_explained() -> None:
    assert "Here the candidate is better in the gate and cannot be told apart below" in gate_note(
        factory.report().evidence
    )
    apart = build(factory.inputs(gap=0.01))
    assert "Here the candidate" not in gate_note(apart.evidence)


def test_superiority_without_margin_has_its_own_scale() -> None:
    made = row(0.04, 0.01, 0.0, "superiority", "positive_outcome")
    assert drawn_verdict(drawing.row(made)) == "pass"
    assert gates.kind_text(made) == "superior: better than no change"
    assert BY_NAME[made.metric].is_higher_better


def test_terminal_and_report_show_a_change_with_one_sign() -> None:
    """Fewer corrections: both say a fall, and that a fall is better; the stored number stays positive-is-better."""
    from evalpipe.console.decided import _gate_row
    from evalpipe.report import views

    full = factory.inputs()
    stored = {row["criterion"]: row for row in full.tables["analysis.gates"].to_dicts()}
    for cells in views.gate_rows(build(full).evidence):
        shown = _gate_row(stored[cells.row.criterion])
        if cells.interval:
            assert shown["candidate minus baseline, 90 % interval"] == f"{cells.change} {cells.interval}"
        assert shown["better is"] == cells.better
    assert views.gate_rows(build(full).evidence)[2].better == "a fall (\u2212)"
