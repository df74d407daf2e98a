"""What evalpipe signals train and model print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalpipe.console import borderline
from evalpipe.settings import Settings
from evalpipe.signals.borderline import model

TALK = """@ domain=coding register=plain
u|neutral|add a box
a|I've added a box.
u|complaint.failure_report|it still doesn't work
a|I've fixed it.
u|correction|the other half of the moon, obviously
a|Fixed.
u|neutral|and who owns this file
"""


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "en.held.txt"
    path.write_text(TALK, "utf-8")
    return path


def test_training_writes_weights_and_their_card(talk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "w.npz"
    borderline.train([talk], [talk], out, as_json=True)
    card = json.loads(capsys.readouterr().out)
    assert card["model_version"] == model.load(out).digest
    assert card["measured"]["held"]["n_rows"] == 3
    assert card["measured"]["held"]["by_class"]["praise"]["recall"] is None
    assert json.loads((out.parent / "w.card.json").read_text("utf-8")) == card
    assert (out.parent / "w.MODEL_CARD.md").read_text("utf-8").startswith("# Model card")
    assert sorted(path.name for path in out.parent.iterdir()) == ["w.MODEL_CARD.md", "w.card.json", "w.npz"]


def test_the_shipped_weights_are_told_beside_the_patterns(talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    borderline.look(Settings(), talk, None, None, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["n_rows"], told["n_silent"]) == (3, 2)
    assert told["rules"]["complaint"]["n_found"] == 1
    assert told["silent"]["n_rows"] == 2
    assert told["all"]["by_class"]["correction"]["n_labelled"] == 1
    borderline.look(Settings(), talk, None, None, as_json=False)
    assert "patterns alone" in capsys.readouterr().out
