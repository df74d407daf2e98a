"""The pages of methods: their examples print what they show, and the index has all of them."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "methods").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 0, "a page has a worked example"
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_when_and_on_which_assumptions(page: Path) -> None:
    text = page.read_text("utf-8")
    for part in ("When", "Assumes", "Example"):
        assert f"**{part}.**" in text
    assert re.search(r"\b(19|20)\d\d\)", text), "a source with its year"


def test_the_index_has_every_page() -> None:
    linked = set(re.findall(r"\(methods/([a-z-]+\.md)\)", (DOCS / "methods.md").read_text("utf-8")))
    assert linked == {page.name for page in PAGES}


@pytest.mark.parametrize(
    "page",
    [*PAGES, DOCS / "methods.md", DOCS / "validation.md", DOCS / "what-the-numbers-mean.md"],
    ids=lambda p: p.stem,
)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text("utf-8")):
        found = (page.parent / target) if target else page
        assert found.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor[1:] in slugs, f"{target}{anchor}"
