"""The page for people who write criteria names what there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from evalpipe.criteria.model import GateCriterion, Sampling, TaskType
from evalpipe.criteria.populations import POPULATIONS
from evalpipe.criteria.rules import GATE_KINDS, REFERENCES
from evalpipe.criteria.validate import SECTIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "criteria.md").read_text(encoding="utf-8")


def test_the_page_has_a_row_for_every_key_of_its_section() -> None:
    for section, model in {**SECTIONS, "gates": GateCriterion, "extraction.task_types": TaskType,
                           "estimand.sampling": Sampling}.items():  # fmt: skip
        part = re.split(r"\n### `\[+", PAGE)
        (text,) = [piece for piece in part if piece.startswith(f"{section}]")]
        rows = re.findall(r"^\| `([a-z_]+)` \|", text, flags=re.MULTILINE)
        assert sorted(rows) == sorted(model.__dataclass_fields__)


def test_the_page_names_every_choice() -> None:
    for word in (*REFERENCES, *POPULATIONS, *GATE_KINDS, "model:VERSION", "fixed:VERSION"):
        assert f"`{word}`" in PAGE
