"""Drawings, number formats and colours."""

from __future__ import annotations

import math
import re
from datetime import date
from importlib import resources
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.report import build, to_html, to_markdown
from evalpipe.report import format as fmt
from evalpipe.report.picture import forest_picture
from evalpipe.report.svg import forest, panel, scale, ties
from evalpipe_tests.report import factory

FINITE = st.floats(-50, 50, allow_nan=False)


@given(st.lists(FINITE, min_size=1, max_size=12), st.booleans())
@settings(deadline=None, max_examples=80)
def test_a_scale_holds_all_values_and_ends_on_ticks(values: list[float], mirrored: bool) -> None:
    s = scale.around(values, is_mirrored=mirrored)
    assert s.lo <= min([0.0, *values]) + 1e-9
    assert s.hi >= max([0.0, *values]) - 1e-9
    assert 0.0 in s.ticks
    assert (s.ticks[0], s.ticks[-1]) == (s.lo, s.hi)
    assert len(s.ticks) <= 13
    low, high = s.x(min(values)), s.x(max(values))
    assert (low >= high) if mirrored else (low <= high)
    assert 0 <= low <= 100


def test_a_mirrored_scale_puts_minus_where_plus_was() -> None:
    s = scale.around([-0.2, 0.1])
    assert s.mirrored().x(-0.1) == pytest.approx(s.x(0.1))
    assert s.mirrored().mirrored() == s


def test_scales_of_values_near_zero_do_not_collapse() -> None:
    assert scale.around([]).lo < 0 < scale.around([0.0]).hi
    assert len(scale.around([1e-7, -2e-7]).ticks) > 2
    assert scale.around([4.8e-20]) == scale.around([])


def test_no_forest_interval_is_clipped() -> None:
    ev = factory.report().evidence
    s = scale.around(forest.domain_of(ev.headline))
    for row in ev.headline:
        svg = forest.row(row, "", s)
        thin = re.search(r'class="n" x1="([\d.]+)%" x2="([\d.]+)%"', svg)
        thick = re.search(r'class="k" x1="([\d.]+)%" x2="([\d.]+)%"', svg)
        assert thin
        assert thick
        assert 3.0 <= float(thin[1]) < float(thick[1]) < float(thick[2]) < float(thin[2]) <= 97.0


def test_forest_row_snapshot() -> None:
    ev = factory.report().evidence
    s = scale.Scale(-0.2, 0.2, (-0.2, 0.0, 0.2))
    assert forest.row(ev.headline[2], "candidate", s) == (
        '<svg class="row" aria-hidden="true"><line class="grid" x1="3%" x2="3%" y1="0" y2="100%"/>'
        '<line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/><line class="grid" x1="97%" x2="97%" y1="0" y2="100%"/>'
        '<g class="c"><line class="n" x1="46.92%" x2="71.41%" y1="50%" y2="50%"/>'
        '<line class="k" x1="51.41%" x2="66.92%" y1="50%" y2="50%"/>'
        '<svg x="59.17%" y="50%" overflow="visible"><path class="p" d="M0 -6.525L6.525 0 0 6.525 -6.525 0z"/></svg>'
        "</g></svg>"
    )


def test_tie_lines_run_from_the_first_to_the_last_member() -> None:
    drawn = ties.ties(["a", "ab", "b", ""])
    assert [svg.count("<circle") for svg in drawn] == [1, 2, 1, 0]
    assert 'y1="50%" y2="100%"' in drawn[0]
    assert 'y1="0" y2="50%"' in drawn[1]
    assert ties.width(["a", "ab", "b", ""]) == 36
    assert ties.ties(["abcdefghijk"]) == [""]
    assert ties.ties(["<"])[0].count("&lt;") == 1


def test_a_panel_has_one_child_a_version_and_words_where_no_number_is() -> None:
    ev = factory.report().evidence
    rows = [(ev.at("positive_outcome", "scenario=chat", i), v.role) for i, v in enumerate(ev.versions)]
    svg = panel.panel(rows, scale.around([-0.2, 0.2]))
    children = re.findall(r"<line class=\"zero\"|<g class|<text class=\"none\"", svg)
    assert len(children) == 9
    assert svg.count("unavailable") == 1
    assert svg.count('class="hatch"') == sum(e is not None and e.is_shown and e.is_underpowered for e, _ in rows) > 0


def test_right_is_better_in_every_panel() -> None:
    page = to_html(factory.report())
    cells = re.findall(r'<div class="cell[^"]*" data-m="(\d+)" data-s="0">.*?</div>', page, re.DOTALL)
    assert len(cells) == 14
    ev = factory.report().evidence
    first = page.partition('class="caps pick1')[2]
    for m, metric in enumerate(ev.metrics):
        svg = re.search(rf'data-m="{m}" data-s="0">(.*?)</div>', first, re.DOTALL)
        assert svg
        groups = re.findall(r"<g class=\"[cbo]\">.*?</g>", svg[1], re.DOTALL)
        at = [re.search(r'(?:cx|<svg x)="([\d.]+)%"', group) for group in groups]
        sign = 1 if metric.is_higher_better else -1
        values = [sign * e.estimate for i in range(8) if (e := ev.at(metric.name, "all", i)) and e.estimate is not None]
        drawn = [float(found[1]) for found in at if found]
        assert len(drawn) == len(values) == 8
        assert sorted(range(8), key=lambda i: drawn[i]) == sorted(range(8), key=lambda i: values[i])


def test_panel_arrow_where_an_underpowered_interval_goes_on() -> None:
    ev = factory.report().evidence
    row = ev.at("positive_outcome", "all", 0)
    svg = panel.panel([(row, "")], scale.Scale(-0.01, 0.07, (0.0,)))
    assert svg.count("M0 -3L4 0 0 3z") == 1
    assert svg.count("M0 -3L-4 0 0 3z") == 0


def test_numbers_follow_the_house_rules() -> None:
    assert fmt.estimate(0.039, 0.009, 0.069, fmt.PP) == "+3.9\u00a0pp [+0.9, +6.9]"
    assert fmt.estimate(-0.004, -0.161, 0.153, fmt.PP) == "0\u00a0pp [−16, +15]"
    assert fmt.estimate(0.00001, -0.01, 0.01, fmt.PP) == "0.0\u00a0pp [−1.0, +1.0]"
    assert fmt.estimate(0.034, -0.03, 0.09, fmt.COUNT) == "+0.03 [−0.03, +0.09]"
    assert fmt.estimate(None, None, None, fmt.PP) == "unavailable"
    assert fmt.rank_set(1, 4) == "1–4"
    assert fmt.rank_set(3, 3) == "3"
    assert fmt.rank_set(None, None) == "unavailable"
    assert fmt.percent(0.153) == "15.3%"
    assert fmt.count(18268) == "18,268"
    assert fmt.day_range(date(2026, 10, 12), date(2026, 11, 8)) == "12 Oct – 8 Nov 2026"
    assert fmt.day_range(date(2025, 12, 31), date(2026, 1, 2)) == "31 Dec 2025 – 2 Jan 2026"
    assert fmt.listed(["A", "B", "C"]) == "A, B and C"
    assert fmt.number(-0.0123456) == "−0.01235"


@given(FINITE, st.integers(0, 4))
@settings(deadline=None, max_examples=60)
def test_a_signed_number_reads_back(value: float, places: int) -> None:
    text = fmt.signed(value, fmt.COUNT, places)
    assert "-" not in text
    assert float(text.replace("−", "-").replace(",", "")) == pytest.approx(value, abs=0.5 * 10**-places + 1e-9)
    assert not re.fullmatch(r"[+−]0(\.0*)?", text)


def test_an_undeclared_metric_is_refused() -> None:
    with pytest.raises(EvalpipeError, match="CONTRACT_BROKEN"):
        fmt.unit_of("made_up")


def test_labels_lose_controls_and_keep_letters() -> None:
    assert fmt.clean_label(" a\u202eb\nc\x00 ") == "a\ufffdb c\ufffd"
    assert fmt.clean_label("模型 · é\U0001f680") == "模型 · é\U0001f680"
    assert fmt.clean_label(" ") == "(no name)"


def tokens() -> dict[str, dict[str, str]]:
    css = resources.files("evalpipe.report").joinpath("templates/tokens.css").read_text("utf-8")
    blocks = re.findall(r":root[^{]*\{color-scheme:(\w+);([^}]*)\}", css)
    assert [name for name, _ in blocks] == ["light", "dark", "dark"]
    found = [dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6})", body)) for _, body in blocks]
    assert found[1] == found[2], "both dark blocks hold the same colours"
    assert set(found[0]) == set(found[1])
    return {"light": found[0], "dark": found[1]}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


TEXT_PAIRS = [
    ("ink", "card"), ("ink", "bg"), ("ink", "hl"), ("mut", "card"), ("mut", "bg"), ("mut", "hl"), ("cand", "card"),
    ("cand", "bg"), ("base", "card"), ("base", "bg"), ("oth", "card"), ("pass", "pass-s"), ("fail-on", "fail"),
    ("inc", "inc-s"), ("na", "na-s"), ("ink", "inc-s"), ("fail", "card"), ("inc", "card"), ("cand", "hl"),
]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_of_every_token_pair(theme: str) -> None:
    colours = tokens()[theme]
    for front, back in TEXT_PAIRS:
        assert contrast(colours[front], colours[back]) >= 4.5, (theme, front, back)
    for front, back in (("axis", "card"), ("fail", "fail-s"), ("cand", "fail-s")):
        assert contrast(colours[front], colours[back]) >= 3.0, (theme, front, back)
    assert math.isclose(contrast("#000000", "#ffffff"), 21.0)


def test_drawings_hold_no_literal_colour() -> None:
    page = to_html(factory.report())
    body = page.partition("<main>")[2].partition("<script")[0]
    assert not re.search(r"#[0-9a-fA-F]{6}\b|rgb\(|fill=\"(?!none)|stroke=\"", body)


def test_a_metric_without_any_number_says_so_once_with_its_reason() -> None:
    numbers = ("estimate", "lo", "hi", "lo_sim", "hi_sim", "se", "rank_lo", "rank_hi", "letters", "mde")
    is_it = pl.col("metric") == "objective_success"
    full = factory.changed(
        factory.inputs(),
        "analysis.net_improvement",
        *(pl.when(is_it).then(None).otherwise(name).alias(name) for name in numbers),
        status=pl.when(is_it).then(pl.lit("unavailable")).otherwise("status"),
        reasons=pl.when(is_it).then(pl.lit(["no_outcome"])).otherwise("reasons"),
    )
    first = to_html(build(full)).partition('class="caps pick1')[2].partition("<details>")[0]
    cell = re.search(r'data-m="13" data-s="0">(.*?)</div></div>', first, re.DOTALL)
    assert cell
    assert cell[1].count("unavailable") == 1
    assert "no known outcome" in cell[1]


def test_the_stand_alone_picture_is_one_escaped_svg_with_a_row_a_version() -> None:
    rows = factory.inputs().tables["analysis.net_improvement"]
    rows = rows.filter((pl.col("metric") == "positive_outcome") & (pl.col("slice") == "all"))
    svg = forest_picture(rows.with_columns(version=pl.concat_str(pl.lit("<b>&\u202e"), "version")))
    found = ElementTree.fromstring(svg)
    assert sum(child.tag.endswith("circle") for child in found) == 8
    assert "<b>" not in svg
    assert "\u202e" not in svg
    assert fmt.estimate(*rows.select("estimate", "lo", "hi").row(0), fmt.PP) in svg


def test_an_end_of_an_interval_that_rounds_to_zero_keeps_its_side() -> None:
    assert fmt.interval(0.000148, 0.043, fmt.PP, 1) == "[+0.0, +4.3]"
    assert fmt.interval(-0.00001, 0.043, fmt.PP, 1) == f"[{fmt.MINUS}0.0, +4.3]"
    assert fmt.interval(0.0, 0.043, fmt.PP, 1) == "[0.0, +4.3]"
    assert fmt.signed(0.000148, fmt.PP, 1) == "0.0"


def test_every_row_of_panels_has_its_axis_and_the_versions_their_names() -> None:
    ev = factory.report().evidence
    page = to_html(factory.report()).partition('class="rows"')[2]
    listed = re.findall(r"<li><bdi>(.*?)</bdi></li>", page.partition("</ol>")[0])
    assert listed == [v.label for v in ev.versions]
    cells = re.findall(r'<div class="cell.*?</div>', page, re.DOTALL)
    assert {cell.count('class="paxis"') for cell in cells if 'class="none"' not in cell} == {1}


@pytest.mark.parametrize("is_named", [True, False])
def test_the_page_speaks_of_a_candidate_only_where_one_was_named(is_named: bool) -> None:
    inputs = factory.inputs() if is_named else factory.inputs(candidate=None, baseline=None)
    page = to_html(build(inputs))
    chosen = page.partition('<select id="light">')[2].partition("</select>")[0]
    assert ("candidate and baseline" in chosen) is is_named
    assert ("other versions</span>" in page) is is_named
    command = "evalpipe report --window 28d --candidate AGENT/MODEL --baseline AGENT/MODEL"
    assert (command in page) is not is_named
    assert (f"`{command}`" in to_markdown(build(inputs))) is not is_named
