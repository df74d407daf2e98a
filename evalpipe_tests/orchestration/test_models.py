"""The classifier's asset: trained from the files that the setting names, into the home."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from evalpipe.orchestration.assets.models import borderline_model
from evalpipe.orchestration.resources import HomeResource
from evalpipe.signals.borderline import model

TALK = """@ domain=coding register=plain
u|neutral|add a box
a|Added.
u|{label}|{text}
"""


def test_it_trains_on_the_files_of_the_setting_and_leaves_the_shipped_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = tmp_path / "en.train.txt"
    said = [("praise", "wow"), ("correction", "no, the left one"), ("complaint.failure_report", "it fails")]
    labels.write_text("\n".join(TALK.format(label=label, text=text) for label, text in said), "utf-8")
    monkeypatch.setenv("EVALPIPE_LABELS", str(labels))
    shipped = model.shipped().digest
    home = tmp_path / "home"
    result = dg.materialize([borderline_model], resources={"home": HomeResource(home=str(home))})
    assert result.success
    card = json.loads((home / "models" / "card.json").read_text("utf-8"))
    assert card["n_rows"] == 6
    assert card["model_version"] == model.load(home / "models" / "borderline.npz").digest != shipped
    assert set(card["measured"]) == {"held", "paraphrases.en", "paraphrases.zh", "paraphrases.pt"}
    metadata = result.asset_materializations_for_node("models__borderline")[0].metadata
    assert metadata["rows"].value == 6
    # Paths name people and stay out of the history.
    assert str(tmp_path) not in json.dumps({name: str(value) for name, value in metadata.items()})
