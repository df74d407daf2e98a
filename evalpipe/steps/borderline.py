"""Making the borderline classifier from labelled files: weights, a card of what they reach, and its page.

Belongs here: reading, fitting, measuring, writing. Does not belong here: the maths of any of them
(``signals/borderline``). The command line and Dagster call the same function.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.inference import wilson
from evalpipe.locations import data_dir
from evalpipe.settings import Settings
from evalpipe.signals import rulefiles
from evalpipe.signals.borderline import features, labels, measure, model, train
from evalpipe.signals.borderline.measure import Measured
from evalpipe.signals.borderline.model import Model
from evalpipe.signals.labelled import TURN_CLASSES, LabelledTurn
from evalpipe.signals.scoring import ALL_LANGUAGES, Hits
from evalpipe.store.files import move_durably

CARD_JSON, CARD_PAGE = "card.json", "MODEL_CARD.md"
_STEM, _TITLE = "borderline", "# Model card: borderline classifier"
LICENCE = "that of evalpipe"
_DIGITS = 4
#: What the weights must not be used for, as the card says it.
NOT_FOR = (
    "counting: an outcome, a score, a gate or a comparison of versions; its rows are candidates until people have "
    "reviewed them",
    "judging persons or single sessions",
    "emitting requirement_iteration, which no model tells apart well enough",
    "an estimate of how often people confirm or complain: the labels it was trained on were balanced by design",
)


@dataclass(frozen=True, slots=True)
class Made:
    """What was made: the files, and the card as plain values."""

    files: tuple[Path, ...]
    card: dict[str, Any]


def make_model(paths: Sequence[Path], held: Sequence[Path], out: Path, licence: str | None = None) -> Made:
    """Train a classifier and write it with its card.

    Args:
        paths: Labelled files to train on.
        held: Labelled files to measure on; each becomes a part of the card, those of one set together.
        out: File of the weights, .npz; the card lies beside it.
        licence: Licence of the labels; that of evalpipe where they are those that it ships, else unknown.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``LABELS_INVALID``; ``BAD_ARGUMENT`` where a file would be replaced
            that is not of an earlier training.
    """
    card_json, card_page = _free(out)
    turns = labels.read(paths)
    # Before fitting, which takes minutes.
    sets = {name: labels.to_measure(labels.read(files), name) for name, files in sets_of(held).items()}
    turns = apart(turns, {name: rows for name, rows in sets.items() if not set(sets_of(held)[name]) & set(paths)})
    trained = train.train(turns)
    is_own = set(paths) <= set(shipped_corpus()[0])
    card = card_of(trained, turns, sets, licence or (LICENCE if is_own else None))
    files = {
        out: model.to_bytes(trained.model),
        card_json: (json.dumps(card, indent=1, ensure_ascii=False) + "\n").encode(),
        card_page: page(card).encode(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    drafts = {path.with_name(f".{path.name}.draft"): path for path in files}
    try:
        for draft, path in drafts.items():
            draft.write_bytes(files[path])
        move_durably(drafts.items())
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)
    return Made(tuple(files), card)


def apart(turns: list[LabelledTurn], sets: Mapping[str, list[LabelledTurn]]) -> list[LabelledTurn]:
    """Turns to train on, without sessions of which any turn is measured: one session is on one side.

    Args:
        turns: Turns of the training files.
        sets: Measured turns of files that are no training files.

    Raises:
        EvalpipeError: ``LABELS_INVALID`` where nothing is left to train on.
    """
    measured = {turn.session for rows in sets.values() for turn in rows}
    kept = [turn for turn in turns if turn.session not in measured]
    if not kept:
        what = "every session of the training files is measured too."
        raise EvalpipeError("LABELS_INVALID", what, where="--labels")
    return kept


def _free(out: Path) -> tuple[Path, Path]:
    """Where the card goes; all three files are free, or of an earlier training."""
    if out.suffix != ".npz":
        raise EvalpipeError("BAD_ARGUMENT", "the name must end in .npz", where="--out")
    own = "" if out.stem == _STEM else f"{out.stem}."
    card, text = out.with_name(f"{own}{CARD_JSON}"), out.with_name(f"{own}{CARD_PAGE}")
    for path, mark in ((out, b"about.npy"), (card, b'"model_version"'), (text, _TITLE.encode())):
        if path.exists() and (path.is_dir() or mark not in path.read_bytes()):
            raise EvalpipeError("BAD_ARGUMENT", f"{path.name} is there, and no file of a training", where="--out")
    return card, text


def shipped_corpus() -> tuple[list[Path], list[Path]]:
    """(files to train on, files to measure on) of the corpus that evalpipe ships."""
    files = sorted((data_dir() / "corpus" / "turns").glob("*.txt"))
    trained = [path for path in files if path.stem.endswith(".train")]
    return trained, [path for path in files if path not in trained]


def make_home_model(settings: Settings) -> Made:
    """Train a classifier for a home: on the files that the setting ``labels`` names, or the shipped corpus.

    It lies in the home's folder ``models`` and decides nothing there: extraction uses the shipped weights,
    which change with a release, since candidates are part of a slice.
    """
    paths, held = shipped_corpus()
    named = [Path(name) for name in settings.labels]
    return make_model(named or paths, held, settings.home / "models" / "borderline.npz")


def sets_of(paths: Sequence[Path]) -> dict[str, list[Path]]:
    """Files by set: those named ``LANG.held`` are one, every other is one by itself."""
    out: dict[str, list[Path]] = {}
    for path in paths:
        out.setdefault("held" if path.stem.endswith(".held") else path.stem, []).append(path)
    return out


def card_of(
    trained: train.Trained,
    turns: list[LabelledTurn],
    sets: dict[str, list[LabelledTurn]],
    licence: str | None = LICENCE,
) -> dict[str, Any]:
    """The card of a model, as plain values.

    Args:
        trained: The model.
        turns: What it was trained on.
        sets: Turns to measure on, by name.
        licence: Licence of the labels; null where nobody stated it.
    """
    weights = trained.model
    counts = Counter(turn.lang for turn in turns)
    return {
        "model_version": weights.digest,
        "features_version": features.VERSION,
        "guide_version": str(rulefiles.load("borderline.toml")["guide_version"]),
        "labels_digest": trained.labels,
        "licence": licence,
        "n_rows": trained.n_rows,
        "n_rows_by_language": dict(sorted(counts.items())),
        "n_rows_by_label": dict(sorted(Counter(turn.label for turn in turns).items())),
        "penalty": train.PENALTY,
        "temperature": round(weights.temperature, _DIGITS),
        "measured": {name: measures(weights, rows) | _overlap(turns, rows) for name, rows in sets.items()},
        "not_for": list(NOT_FOR),
    }


def _overlap(turns: list[LabelledTurn], rows: list[LabelledTurn]) -> dict[str, int]:
    """``n_trained_on``: measured turns that stand in the training files too, with all that came before."""
    known = {(turn.text, turn.prev_user, turn.prev_agent_tail) for turn in turns}
    seen = sum((turn.text, turn.prev_user, turn.prev_agent_tail) in known for turn in labels.with_context(rows))
    return {"n_trained_on": seen} if seen else {}


def measures(weights: Model, turns: list[LabelledTurn]) -> dict[str, Any]:
    """What a model reaches on turns that something came before, as plain values with intervals."""
    rows = labels.with_context(turns)
    found = measure.measure(rows, weights.probabilities(train.moments_of(rows)))
    return plain(found)


def plain(found: Measured) -> dict[str, Any]:
    """Measures as plain values; a share of nothing is null."""
    return {
        "n_rows": found.n_rows[ALL_LANGUAGES],
        "average_precision": {k: None if v is None else round(v, _DIGITS) for k, v in found.average_precision.items()},
        "calibration_error": round(found.calibration_error, _DIGITS),
        "by_class": {name: shares(found.hits[ALL_LANGUAGES, name]) for name in TURN_CLASSES},
        "by_language": {
            lang: {"n_rows": n} | {name: shares(found.hits[lang, name]) for name in TURN_CLASSES}
            for lang, n in sorted(found.n_rows.items())
            if lang != ALL_LANGUAGES
        },
        "at": {
            family: {str(at): shares(hits) for (of, at), hits in found.at.items() if of == family}
            for family in found.average_precision
        },
    }


def shares(hits: Hits) -> dict[str, Any]:
    """Precision, recall and F1 of counts, with 95 % Wilson intervals of the first two."""
    total = hits.emitted + hits.labelled
    return {
        "precision": _share(hits.right, hits.emitted), "precision_interval": _interval(hits.right, hits.emitted),
        "recall": _share(hits.found, hits.labelled), "recall_interval": _interval(hits.found, hits.labelled),
        "f1": _share(hits.right + hits.found, total),
        "n_emitted": hits.emitted, "n_right": hits.right, "n_labelled": hits.labelled, "n_found": hits.found,
    }  # fmt: skip


def _share(x: int, n: int) -> float | None:
    return round(x / n, _DIGITS) if n else None


def _interval(x: int, n: int) -> list[float] | None:
    return [round(float(limit), _DIGITS) for limit in wilson(x, n)] if n else None


# ---- the page


def page(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    lines = [
        _TITLE,
        "",
        "Generated by `evalpipe signals train` beside the weights; `card.json` has the same numbers. What the "
        "classifier is for: [docs/borderline.md](../../docs/borderline.md).",
        "",
        f"- Model version {card['model_version']}, features {card['features_version']}, label guide "
        f"{card['guide_version']}.",
        f"- Trained on {card['n_rows']:,} labelled turns (digest {card['labels_digest']}), "
        f"licence {card['licence'] or 'not stated'}: "
        + ", ".join(f"{lang} {n:,}" for lang, n in card["n_rows_by_language"].items())
        + ".",
        f"- One logistic regression over hashed characters and words of a turn and what came before it; temperature "
        f"{card['temperature']}.",
        "",
        "## Not for",
        "",
        *(f"- {text}" for text in card["not_for"]),
    ]
    for name, found in card["measured"].items():
        lines += ["", f"## Measured: `{name}`", "", *_measured(found)]
    return "\n".join(lines) + "\n"


def _measured(found: dict[str, Any]) -> list[str]:
    negative, positive = (_cell(found["average_precision"][family]) for family in ("negative", "positive"))
    lines = [
        f"{found['n_rows']:,} turns that something came before, {_trained_on(found)}. Average precision {negative} "
        f"for negative (complaint or correction), {positive} for positive (confirm or praise). Calibration error "
        f"{_cell(found['calibration_error'])}.",
        "",
        "| language | class | precision | recall | F1 | turns |",
        "|---|---|---|---|--:|--:|",
    ]
    groups = {"all": found["by_class"], **found["by_language"]}
    for lang, of in groups.items():
        lines += [
            f"| {lang} | {name} | {_with(of[name], 'precision')} | {_with(of[name], 'recall')} | "
            f"{_cell(of[name]['f1'])} | {of[name]['n_labelled']} |"
            for name in TURN_CLASSES
        ]
    lines += [
        "",
        "| probability at least | negative: precision | recall | positive: precision | recall |",
        "|--:|---|---|---|---|",
    ]
    for at, negative_at in found["at"]["negative"].items():
        pairs = (negative_at, found["at"]["positive"][at])
        cells = " | ".join(f"{_with(of, 'precision')} | {_with(of, 'recall')}" for of in pairs)
        lines.append(f"| {at} | {cells} |")
    return lines


def _trained_on(found: dict[str, Any]) -> str:
    n = found.get("n_trained_on", 0)
    return f"**{n:,} of them trained on: what is measured is too good**" if n else "none of them trained on"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _with(of: dict[str, Any], name: str) -> str:
    interval = of[f"{name}_interval"]
    return "-" if interval is None else f"{of[name]:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"
