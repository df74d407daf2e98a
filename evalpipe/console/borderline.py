"""What ``evalpipe signals train`` and ``evalpipe signals model`` print.

Belongs here: tables and JSON of what a classifier reaches. Does not belong here: making or measuring it
(``steps/borderline.py``). Texts of rows are never printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalpipe.console import show
from evalpipe.settings import Settings
from evalpipe.signals import replay, scoring
from evalpipe.signals.borderline import labels
from evalpipe.signals.borderline import model as models
from evalpipe.signals.labelled import TURN_CLASSES
from evalpipe.steps import borderline as steps


def train(paths: Sequence[Path], held: Sequence[Path], out: Path, *, as_json: bool, licence: str | None = None) -> None:
    """Train, write and tell.

    Args:
        paths: Files to train on; the shipped ones where empty.
        held: Files to measure on; the shipped ones where empty.
        out: File of the weights.
        licence: Licence of the labels, for the card.
        as_json: The card as JSON in place of tables.
    """
    own, own_held = steps.shipped_corpus()
    made = steps.make_model(paths or own, held or own_held, out, licence)
    if as_json:
        print(json.dumps(made.card, ensure_ascii=False))
        return
    show.line(f"{made.card['n_rows']:,} labelled turns, model version {made.card['model_version']}")
    for name, found in made.card["measured"].items():
        _print(name, found)
    show.note("Written: " + ", ".join(str(path) for path in made.files))


def look(settings: Settings, file: Path, adjudications: Path | None, weights: Path | None, *, as_json: bool) -> None:
    """Measure weights on a labelled file, on all turns and on those where no pattern fires.

    Args:
        settings: Settings as loaded; the criteria's extraction decides what patterns emit.
        file: Labelled turns. adjudications: Final labels by id.
        weights: Weights; the shipped ones where null.
        as_json: One JSON object in place of tables.
    """
    from evalpipe.steps.context import load_criteria

    turns = labels.read([file])
    if adjudications is not None:
        turns = labels.adjudicated(turns, adjudications)
    turns = labels.to_measure(turns, str(file))
    model = models.load(weights) if weights else models.shipped()
    emitted = replay.extracted_classes(turns, load_criteria(settings.criteria).extraction)
    rules = scoring.score_turns(turns, emitted)
    names = (*TURN_CLASSES, scoring.NEGATIVE_JOINED, scoring.POSITIVE_JOINED)
    silent = [turn for turn, got in zip(turns, emitted, strict=True) if not got]
    out: dict[str, Any] = {
        "model_version": model.digest,
        "n_rows": len(turns),
        "n_silent": len(silent),
        "all": steps.measures(model, turns),
        "silent": steps.measures(model, silent) if silent else None,
        "rules": {name: steps.shares(rules.hits[scoring.ALL_LANGUAGES, name]) for name in names},
    }
    if as_json:
        print(json.dumps(out, ensure_ascii=False))
        return
    show.table([_row(name, of) for name, of in out["rules"].items()], title="patterns alone")
    _print("all turns", out["all"])
    if out["silent"]:
        _print("turns on which no pattern fires", out["silent"])


def _print(title: str, found: Mapping[str, Any]) -> None:
    show.table([_row(name, of) for name, of in found["by_class"].items()], title=f"classifier, {title}")
    for family, value in found["average_precision"].items():
        at = "; ".join(
            f"p >= {threshold}: {of['n_right']} of {of['n_emitted']} right, {of['n_found']} of {of['n_labelled']} found"
            for threshold, of in found["at"][family].items()
        )
        show.line(f"{family} joined: average precision {'-' if value is None else f'{value:.3f}'}; {at}")
    show.line(f"calibration error {found['calibration_error']:.3f} over {found['n_rows']:,} turns")


def _row(name: str, of: Mapping[str, Any]) -> dict[str, object]:
    f1 = of["f1"]
    return {
        "class": name,
        "right": of["n_right"], "of emitted": of["n_emitted"], "precision": _limits(of, "precision"),
        "found": of["n_found"], "of labelled": of["n_labelled"], "recall": _limits(of, "recall"),
        "F1": "-" if f1 is None else f"{f1:.2f}",
    }  # fmt: skip


def _limits(of: Mapping[str, Any], name: str) -> str:
    interval = of[f"{name}_interval"]
    return "-" if interval is None else f"{of[name]:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"
