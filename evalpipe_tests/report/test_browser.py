"""The page in a headless Chromium with the network off; skipped where no browser is found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.report import build, to_html, to_json
from evalpipe_tests.report import factory
from evalpipe_tests.report.browser import Browser, find
from evalpipe_tests.report.test_groups import split

CHROMIUM = find()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found (install one, or set EVALPIPE_CHROMIUM)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM
    made = Browser(CHROMIUM)
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(factory.report()), encoding="utf-8")
    return path


def test_it_opens_without_a_message_or_a_request(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelectorAll('button.pick')[2].click()")
    assert browser.messages() == []
    assert browser.requests() == [page.as_uri()]


@pytest.mark.parametrize("kind", ["eight", "hostile", "groups"])
def test_nothing_scrolls_sideways(browser: Browser, page: Path, tmp_path: Path, kind: str) -> None:
    path = page
    if kind == "hostile":
        labels = (
            "w" * 200 + " · " + "v" * 200,
            "<b>x</b> · y",
            *(f"agent-with-a-long-name-{i} · model-{i}" for i in range(5)),
        )
        versions = tuple((label, 0.1 - 0.03 * i, 900, 300) for i, label in enumerate(labels))
        path = tmp_path / "hostile.html"
        path.write_text(to_html(build(factory.inputs(versions, candidate=labels[0], baseline=labels[3]))), "utf-8")
    if kind == "groups":
        path = tmp_path / "groups.html"
        path.write_text(to_html(split()), "utf-8")
    browser.open(path)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    for font in ("", "DejaVu Sans"):
        browser.run(f"document.body.style.fontFamily = '{font}'")
        for width in (320, 390, 640, 768, 1280):
            browser.size(width)
            widths = browser.run("[document.documentElement.scrollWidth, innerWidth]")
            assert widths[0] <= widths[1] == width, (font, width)


def test_on_a_telephone_all_sections_and_sums_are_in_view(browser: Browser, page: Path) -> None:
    browser.open(page, width=390)
    ends = (
        "Math.max(...[...document.querySelectorAll('nav a, table.sums td')].map(e => e.getBoundingClientRect().right))"
    )
    assert browser.run(ends) <= 390


def test_an_injected_script_does_not_run(browser: Browser, page: Path, tmp_path: Path) -> None:
    path = tmp_path / "injected.html"
    bad = "<script>window.hit = 1</script><img src='x' onerror='window.hit = 2'>"
    path.write_text(page.read_text("utf-8").replace("</main>", f"{bad}</main>"), "utf-8")
    browser.open(path)
    assert browser.run("window.hit === undefined")
    assert any("Content Security Policy" in message for message in browser.messages())


def test_selecting_sorting_and_filtering_say_what_they_do(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelectorAll('button.pick')[2].focus()")
    browser.run("document.activeElement.click()")
    assert browser.run("document.getElementById('said').textContent") == (
        "atlas · a-4.1 cannot be told apart from orion · o-large-high, orion · o-large, kestrel · k-70, atlas · a-4.0."
    )
    browser.key("Escape")
    assert "Choose a version" in browser.run("document.getElementById('said').textContent")
    assert browser.run("document.getElementById('order').hidden")
    browser.run("document.querySelector('th[data-key=n] button').click()")
    assert not browser.run("document.getElementById('order').hidden")
    assert browser.run("document.querySelector('th[data-key=n]').getAttribute('aria-sort')") == "descending"
    assert browser.run("document.querySelector('table.forest tbody tr').dataset.name") == "atlas · a-4.0"
    browser.run("document.querySelector('th[data-key=est] button').click()")
    assert browser.run("document.getElementById('order').hidden")
    browser.run("var f = document.getElementById('filter'); f.value = 'orion'; f.dispatchEvent(new Event('input'))")
    assert browser.run("document.getElementById('matches').textContent") == "3 of 8 shown"


def test_the_embedded_data_parses_and_is_the_json(browser: Browser, page: Path) -> None:
    browser.open(page)
    text = browser.run("document.getElementById('evalpipe-report').textContent")
    assert json.loads(text) == json.loads(to_json(factory.report()))


def test_the_theme_recolours_marks(browser: Browser, page: Path) -> None:
    browser.open(page)
    colour = "getComputedStyle(document.querySelector('svg.row .c')).fill"
    light = browser.run(colour)
    browser.run("var t = document.getElementById('theme'); t.value = 'dark'; t.dispatchEvent(new Event('change'))")
    assert browser.run(colour) != light
    browser.run("t.value = 'auto'; t.dispatchEvent(new Event('change'))")


def test_without_a_script_all_is_there_and_no_button_is_dead(browser: Browser, page: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page, width=390)
        shown = (
            "(() => { const seen = e => e.getClientRects().length > 0; return ["
            "[...document.querySelectorAll('button')].filter(seen).length,"
            "[...document.querySelectorAll('svg.row')].filter(seen).length,"
            "[...document.querySelectorAll('svg.panel')].filter(seen).length] })()"
        )
        buttons, rows, panels = browser.run(shown)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert (buttons, rows, panels) == (0, 8, 56)


def test_it_prints_on_few_pages(browser: Browser, page: Path) -> None:
    browser.open(page)
    pdf = browser.pdf()
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
