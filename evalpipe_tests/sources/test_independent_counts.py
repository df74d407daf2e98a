"""Every format with samples: the reader and a second count agree, or the difference has a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from evalpipe.sources.registry import READERS
from evalpipe_tests.sources import second_counts
from evalpipe_tests.sources.helpers import SAMPLES
from evalpipe_tests.sources.independent_counts import FORMATS, MEASURES, Compared, Format, compare


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample logs are not beside the repository")
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.source)
def test_the_counts_agree(fmt: Format) -> None:
    found = compare(fmt)
    assert [c for c in found if not c.agrees] == []
    assert any(c.theirs for c in found), "a second count of nothing shows nothing"


def test_a_difference_that_has_no_reason_is_seen() -> None:
    assert not Compared("a", "calls", 3, 4, (0, "")).agrees
    assert Compared("a", "calls", 3, 4, (-1, "why")).agrees


def test_the_second_count_knows_nothing_of_evalpipe() -> None:
    tree = ast.parse(Path(second_counts.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name.startswith("evalpipe")]


def test_formats_are_readers_and_measures_are_known() -> None:
    assert {fmt.source for fmt in FORMATS} <= {reader.name for reader in READERS}
    assert {name for fmt in FORMATS for name in fmt.measures} <= set(MEASURES)
    assert all(reason for fmt in FORMATS for _, reason in fmt.explained.values())
