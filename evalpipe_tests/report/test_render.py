"""HTML, Markdown and JSON as files: well-formed, hostile labels, same bytes, sizes, no network."""

from __future__ import annotations

import base64
import hashlib
import html as stdlib_html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources

import polars as pl
import pytest

from evalpipe.contracts.render import empty
from evalpipe.contracts.tables import TABLES
from evalpipe.report import ReportInputs, build, to_html, to_json, to_markdown
from evalpipe.report import format as fmt
from evalpipe_tests.report import factory

VOID = {"meta", "input", "br", "link", "img", "hr"}
HOSTILE = (
    "<script>alert(1)</script> · </script><!--",
    'quote" onerror="x · it\'s & <b>bold</b>',
    "\u202egnp.exe\u202c · rtl\u2067mark",
    "x" * 200 + " · " + "y" * 200,
    "\U0001f9d1\u200d\U0001f4bb agent · \U0001f680",
    "`code` *star* [link](javascript:alert(1)) · a|b",
    "line\nbreak\x00nul\x1b[31m · tab\there",
    "a · b · c · d",
)


class Balance(HTMLParser):
    """Checks that every element is closed in order, and collects text and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.words.append(data)


def parsed(page: str) -> Balance:
    found = Balance()
    found.feed(page)
    found.close()
    assert not found.open
    return found


def hostile() -> ReportInputs:
    versions = tuple((label, 0.1 - 0.03 * i, 900, 300) for i, label in enumerate(HOSTILE))
    scenarios = (("<img src=x onerror=alert(1)>", 0.5), ("</script>", 0.3))
    full = factory.inputs(versions, scenarios=scenarios, candidate=HOSTILE[0], baseline=HOSTILE[1])
    full = factory.changed(
        full,
        "analysis.diagnostics",
        detail=pl.lit("<script>alert(2)</script>\u202e"),
        subject=pl.lit("<i>s</i>"),
        check=pl.concat_str(pl.lit("<u>"), pl.int_range(pl.len()).cast(pl.String)),
    )
    full = factory.changed(full, "analysis.strata", merged_into=pl.lit("</table>"))
    full = factory.changed(full, "masked.files", source=pl.lit("<script>"))
    full = factory.changed(full, "masked.quarantine", code=pl.lit("<script>X</script>"))
    return factory.changed(full, "masked.redactions", entity=pl.lit("</td><script>"))


@pytest.fixture(scope="module")
def page() -> str:
    return to_html(factory.report())


def test_the_page_is_well_formed_with_one_heading_and_unique_ids(page: str) -> None:
    found = parsed(page)
    assert page.count("<h1>") == 1
    assert len(found.ids) == len(set(found.ids))
    names = [value for _, name, value in found.attributes if name == "aria-label"]
    assert len(names) == len(set(names))
    refs = {value for _, name, value in found.attributes if name in {"aria-labelledby", "aria-describedby"}}
    anchors = {value[1:] for _, name, value in found.attributes if name == "href" and value and value.startswith("#")}
    assert refs | anchors <= set(found.ids)


def test_hostile_labels_stay_text() -> None:
    page = to_html(build(hostile()))
    found = parsed(page)
    assert page.count("<script") == 2
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert not [tag for tag, _, _ in found.attributes if tag == "img"]
    assert "<script>alert(1)</script>" in "".join(found.words)
    assert not set(page) & {chr(n) for n in (0, 0x1B, 0x202E, 0x2067)}
    data = json.loads(re.search(r'id="evalpipe-report">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert data["evidence"]["versions"][0]["label"] == HOSTILE[0]


def test_hostile_labels_stay_text_in_markdown() -> None:
    text = to_markdown(build(hostile()))
    assert "<script" not in text
    assert "[link](" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) >= 3
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().splitlines()}) == 1


def test_labels_that_look_alike_once_cleaned_stay_two() -> None:
    twins = (("a\u202e · x", 0.1, 900, 300), ("a\u202d · x", -0.1, 900, 300))
    ev = build(factory.inputs(twins, scenarios=(), candidate=None, baseline=None)).evidence
    labels = [v.label for v in ev.versions]
    assert len(set(labels)) == 2


def test_a_second_run_gives_the_same_bytes() -> None:
    full = factory.inputs()
    shuffled = replace(
        full, tables={name: t.sample(fraction=1.0, shuffle=True, seed=3) for name, t in full.tables.items()}
    )
    first = build(full)
    again = build(factory.inputs.__wrapped__())
    assert to_html(first) == to_html(again)
    assert to_markdown(first) == to_markdown(again)
    assert to_json(first) == to_json(again)
    assert to_html(build(shuffled)) == to_html(first)


@pytest.mark.parametrize(("n", "limit"), [(8, 450_000), (30, 1_500_000)])
def test_size_limits(n: int, limit: int) -> None:
    versions = factory.EIGHT if n == 8 else factory.many(n)
    names = [v[0] for v in versions]
    page = to_html(build(factory.inputs(versions, candidate=names[2], baseline=names[4])))
    assert len(page.encode()) < limit


def test_nothing_in_the_page_points_outside(page: str) -> None:
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    for tag, name, value in parsed(page).attributes:
        if name in {"src", "href", "action", "data"}:
            assert value
            assert value.startswith("#"), (tag, name, value)
    assert set(re.findall(r"url\(([^)]*)\)", page)) == {"#hatch"}


def test_the_policy_names_the_script(page: str) -> None:
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert script
    assert policy
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in stdlib_html.unescape(policy[1])
    assert "default-src 'none'" in stdlib_html.unescape(policy[1])
    assert not re.search(r"\son\w+=", page.partition("<script")[0])


def test_the_embedded_data_is_the_json(page: str) -> None:
    report = factory.report()
    embedded = re.search(r'id="evalpipe-report">(.*?)</script>', page, re.DOTALL)
    assert embedded
    assert json.loads(embedded[1]) == json.loads(to_json(report))
    assert json.loads(to_json(report))["schema"] == "evalpipe.report/1"


def test_numbers_in_tables_are_those_of_the_json(page: str) -> None:
    data = json.loads(to_json(factory.report()))["evidence"]
    columns = data["estimates"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in data["estimates"]["rows"]]
    labels = [v["label"] for v in data["versions"]]
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.partition("<main>")[2].partition("<script")[0]))
    checked = 0
    for row in rows:
        if row["metric"] != "positive_outcome" or row["estimate"] is None:
            continue
        numbers = fmt.estimate(row["estimate"], row["lo"], row["hi"], fmt.PP).replace("\u00a0pp", "")
        assert numbers in words, (labels[row["version"]], row["slice"])
        if row["slice"] == "all":
            places = fmt.places_for(row["lo"], row["hi"], fmt.PP)
            assert f"all 8: {fmt.interval(row['lo_sim'], row['hi_sim'], fmt.PP, places)}" in words
            assert f"{row['rank_lo']}–{row['rank_hi']}" in words
        checked += 1
    assert checked == 31


def test_missing_numbers_are_words_in_every_output() -> None:
    versions = (*factory.EIGHT, ("young · y-1", 0.0, 12, 5))
    report = build(factory.inputs(versions))
    young = next(i for i, v in enumerate(report.evidence.versions) if v.label == "young · y-1")
    page, text = to_html(report), to_markdown(report)
    row = re.search(rf'<tr role="row" data-i="{young}".*?</tr>', page, re.DOTALL)
    assert row
    assert "unavailable: 12 sessions, 20 needed" in row[0]
    assert "0.0" not in row[0]
    assert "young · y-1 | unavailable: 12 sessions, 20 needed" in text
    for output in (page.partition("<script")[0], text):
        assert not re.search(r"\b(nan|NaN|None|null|inf)\b", output)
    data = json.loads(to_json(report))["evidence"]["estimates"]
    row_of = next(r for r in data["rows"] if r[2] == young)
    assert row_of[data["columns"].index("estimate")] is None


def test_status_words_stand_beside_the_number() -> None:
    full = factory.changed(
        factory.inputs(),
        "analysis.net_improvement",
        status=pl.lit("inconclusive"),
        reasons=pl.lit(["few_degrees_of_freedom"]),
    )
    page = to_html(build(full))
    comparison = page.partition('id="comparison"')[2].partition('id="capabilities"')[0]
    assert comparison.count("fewer than four degrees of freedom") == 1, "said once where it holds for every version"
    assert "Every version is inconclusive: fewer than four degrees of freedom." in page
    assert page.count('<span class="s flag">inconclusive</span>') == 8
    one = pl.col("version") == factory.CANDIDATE
    mixed = factory.changed(
        full,
        "analysis.net_improvement",
        status=pl.when(one).then("status").otherwise(pl.lit("ok")),
        reasons=pl.when(one).then("reasons").otherwise(pl.lit([], dtype=pl.List(pl.String))),
    )
    assert to_html(build(mixed)).count('flag">inconclusive: fewer than four degrees of freedom<') == 1


def test_the_reference_version_has_no_interval_and_says_why() -> None:
    is_it = pl.col("version") == factory.BASELINE
    gone = [
        pl.when(is_it).then(None).otherwise(name).alias(name) for name in ("lo", "hi", "lo_sim", "hi_sim", "se", "df")
    ]
    full = factory.changed(
        factory.inputs(),
        "analysis.net_improvement",
        *gone,
        estimate=pl.when(is_it).then(0.0).otherwise("estimate"),
        reasons=pl.when(is_it).then(pl.lit(["is_reference"])).otherwise("reasons"),
    )
    page = to_html(build(full))
    assert "the reference itself" in page
    assert "[interval unavailable]" in page


def test_an_empty_window_still_makes_a_page() -> None:
    full = factory.inputs()
    for tables in ({}, {name: empty(TABLES[name]) for name in full.tables}):
        report = build(replace(full, tables=tables, leak=None))
        page = to_html(report)
        parsed(page)
        assert "<title>No comparison: " in page
        for title in ("replace", "Net improvement", "by scenario", "Data health", "Methods"):
            assert title in page
        assert "Leak check: unavailable" in page
        assert "# No comparison: " in to_markdown(report)
        assert "all 0" not in to_markdown(report)


def test_above_twelve_versions_the_gate_pair_and_the_leaders_come_first() -> None:
    versions = factory.many(30)
    report = build(factory.inputs(versions, gap=0.06, candidate=versions[3][0], baseline=versions[20][0]))
    page = to_html(report)
    order = [int(n) for n in re.search(r'data-order="([\d ]+)"', page)[1].split()]  # type: ignore[index]
    assert order[:10] == [*range(9), 20]
    assert sorted(order) == list(range(30))
    assert "Show all 30 versions (10 are shown: the gate pair and the leading set)" in page
    assert "Show all" not in to_html(factory.report())


def test_many_scenarios_stand_in_a_second_grid() -> None:
    scenarios = tuple((f"scene{i:02d}", 0.2 - 0.01 * i) for i in range(9))
    page = to_html(build(factory.inputs(scenarios=scenarios, metrics=("positive_outcome",))))
    assert "4 further scenarios" in page
    assert page.count('class="cell') == 10
    parsed(page)


def test_conditional_metrics_are_tagged_with_their_partner(page: str) -> None:
    assert page.count('<span class="tag conditional">') == 4
    assert "read beside “Unrecovered corrections”" in page


def test_templates_travel_with_the_package() -> None:
    names = {entry.name for entry in resources.files("evalpipe.report").joinpath("templates").iterdir()}
    assert {"page.html.j2", "tokens.css", "report.css", "report.js"} <= names


def test_plain_rates_are_a_descriptive_detail_with_their_rank(page: str) -> None:
    detail = page.partition("Levels, plain rates and precision (descriptive)")[2].partition("</details>")[0]
    ev = factory.report().evidence
    for row in ev.headline:
        assert f'<td class="num">{fmt.percent(row.raw_rate)}</td><td class="num">{row.raw_rank} of 8</td>' in detail
