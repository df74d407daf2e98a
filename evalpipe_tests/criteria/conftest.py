from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalpipe.criteria import Criteria, load
from evalpipe.locations import data_dir

Edit = tuple[str, str]


@pytest.fixture
def default_text() -> str:
    return (data_dir() / "criteria" / "default.toml").read_text(encoding="utf-8")


@pytest.fixture
def edited(tmp_path: Path, default_text: str) -> Callable[..., Criteria]:
    """Load the default criteria after replacing pieces of their text."""

    def make(*edits: Edit, extractors: str = "x1") -> Criteria:
        text = default_text
        for old, new in edits:
            assert old in text, f"the default criteria no longer hold {old!r}"
            text = text.replace(old, new, 1)
        path = tmp_path / "edited.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, extractors=extractors)

    return make
