"""What ``evalpipe signals eval`` prints: precision, recall and confusion of signals on labelled rows.

Belongs here: the flow from a file to tables or one JSON object, shares and their intervals. Does not
belong here: what counts as right (``signals/scoring.py``). Texts of rows are never printed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import typer

from evalpipe.console import show
from evalpipe.contracts.errors import QUARANTINE_CODES, EvalpipeError, Exit
from evalpipe.inference import wilson
from evalpipe.masking.rows import lines
from evalpipe.settings import Settings
from evalpipe.signals import labelled, replay, scoring
from evalpipe.signals.scoring import ALL_LANGUAGES, NEGATIVE_JOINED, POSITIVE_JOINED, CallScores, Hits, TurnScores

_NAMED_ERRORS = 20
_LISTED = 100
_JOINED = (NEGATIVE_JOINED, POSITIVE_JOINED)


def run(settings: Settings, file: Path, adjudications: Path | None, *, as_json: bool) -> None:
    """Evaluate extraction on a labelled file and print what was found.

    Args:
        settings: Settings as loaded; the criteria's extraction decides languages and least confidence.
        file: Labelled rows.
        adjudications: Final labels by id.
        as_json: One JSON object in place of tables.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, or ``LABELS_INVALID`` where no row can be used.
        typer.Exit: 4 where some rows could not be used.
    """
    from evalpipe.steps.context import load_criteria

    refused: Counter[str] = Counter()
    final: dict[str, str] = {}
    if adjudications is not None:
        for _, line in _rows(adjudications, settings.max_record_bytes, refused, labelled.read_final):
            final[line[0]] = line[1]
    given = [row for _, row in _rows(file, settings.max_record_bytes, refused, None)]
    rows = [labelled.adjudicated(row, final) for row in given]
    if not rows:
        raise EvalpipeError("LABELS_INVALID", "the file holds no labelled row that can be used.", where=str(file))
    overruled = {"n_adjudicated": sum(row.id in final for row in rows), "n_adjudications": len(final)}
    counted = {"n_rows": len(rows), "n_refused": refused.total(), "refused": dict(sorted(refused.items()))} | overruled
    extraction = load_criteria(settings.criteria).extraction
    turns = [row for row in rows if isinstance(row, labelled.LabelledTurn)]
    calls = [row for row in rows if isinstance(row, labelled.LabelledCall)]
    if turns:
        scored = scoring.score_turns(turns, replay.extracted_classes(turns, extraction))
        counted |= turn_summary(scored)
    if calls:
        counted |= call_summary(scoring.score_calls(calls, replay.extracted_status(calls)))
    if as_json:
        print(json.dumps(counted, ensure_ascii=False))
    else:
        _print(counted)
    if refused:
        raise typer.Exit(Exit.SOME_SLICES_RED)


def _rows(path: Path, max_bytes: int, refused: Counter[str], read: Any) -> Iterator[tuple[int, Any]]:
    """(line number, row) of a file; what cannot be read is named on standard error and counted."""
    if not path.exists():
        raise EvalpipeError("SOURCE_NOT_FOUND", "the file does not exist.", where=str(path))
    with path.open("rb") as file:
        yield from _read(file, path, max_bytes, refused, read)


def _read(file: IO[bytes], path: Path, max_bytes: int, refused: Counter[str], read: Any) -> Iterator[tuple[int, Any]]:
    for number, line, _ in lines(file, max_bytes):
        try:
            if len(line) > max_bytes:
                raise labelled.BadRowError("RECORD_TOO_LARGE")
            row = labelled.read_row(line, number) if read is None else read(line)
        except labelled.BadRowError as error:
            refused[error.code] += 1
            if refused.total() <= _NAMED_ERRORS:
                about = f" ({error.field})" if error.field else ""
                show.note(f"{error.code} [{path}:{number}]: {QUARANTINE_CODES[error.code].meaning}{about}")
            continue
        yield number, row


# ---- plain values


def turn_summary(scored: TurnScores) -> dict[str, Any]:
    """Scores of turns as plain values; a share of nothing is ``null``."""
    return _language(scored, ALL_LANGUAGES) | {
        "by_language": {
            lang: {"n_rows": scored.n_rows[lang]} | _language(scored, lang)
            for lang in sorted(scored.n_rows)
            if lang != ALL_LANGUAGES
        },
        "confusion": _confusion(scored.confusion),
        "wrong_turns": scored.wrong,
    }


def _language(scored: TurnScores, lang: str) -> dict[str, Any]:
    own = {name: shares(hits) for (of, name), hits in scored.hits.items() if of == lang}
    joined = {name: own.pop(name) for name in _JOINED}
    return {"by_class": own} | joined


def call_summary(scored: CallScores) -> dict[str, Any]:
    """Scores of tool outputs as plain values; a share of nothing is ``null``."""
    return {
        "is_command_error": shares(scored.is_error),
        "status": {
            "accuracy": _share(scored.n_status_right, scored.n_status),
            "accuracy_interval": _interval(scored.n_status_right, scored.n_status),
            "n_right": scored.n_status_right,
            "n_rows": scored.n_status,
            "by_status": {name: shares(hits) for name, hits in sorted(scored.status.items())},
            "confusion": _confusion(scored.confusion),
        },
        "category": _of_hits(scored.category, scored.categories),
        "layer": _of_hits(scored.layer, scored.layers),
        "wrong_outputs": scored.wrong,
    }


def _of_hits(pair: tuple[int, int], confusion: Counter[tuple[str, str]]) -> dict[str, Any]:
    right, n = pair
    return {
        "accuracy": _share(right, n), "accuracy_interval": _interval(right, n), "n_right": right, "n_hits": n,
        "confusion": _confusion(confusion),
    }  # fmt: skip


def shares(hits: Hits) -> dict[str, Any]:
    """Precision, recall and F1 of a class with 95 % intervals.

    The interval of F1 is that of right / (right + wrong + missed), which F1 is a monotone function of.
    """
    precision, recall = _share(hits.right, hits.emitted), _share(hits.found, hits.labelled)
    missed = hits.labelled - hits.found
    jaccard = _interval(hits.right, hits.emitted + missed)
    f1 = None
    if precision is not None and recall is not None:
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {
        "precision": precision,
        "precision_interval": _interval(hits.right, hits.emitted),
        "recall": recall,
        "recall_interval": _interval(hits.found, hits.labelled),
        "f1": f1,
        "f1_interval": None if f1 is None or jaccard is None else [2 * x / (1 + x) for x in jaccard],
        "n_emitted": hits.emitted,
        "n_right": hits.right,
        "n_labelled": hits.labelled,
        "n_found": hits.found,
    }


def _confusion(pairs: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for (label, got), n in sorted(pairs.items()):
        out.setdefault(label, {})[got] = n
    return out


def _share(x: int, n: int) -> float | None:
    return x / n if n else None


def _interval(x: int, n: int) -> list[float] | None:
    return [round(float(limit), 6) for limit in wilson(x, n)] if n else None


# ---- for a person


def _print(out: Mapping[str, Any]) -> None:
    show.line(
        f"{out['n_rows']:,} labelled rows, {out['n_adjudicated']:,} of them with a final label over the given one"
    )
    if out["n_refused"]:
        codes = ", ".join(f"{n:,} {code}" for code, n in out["refused"].items())
        show.line(f"{out['n_refused']:,} lines could not be used and count nowhere: {codes}")
    if "by_class" in out:
        rows = [{"class": name, **_cells(value)} for name, value in _classes(out)]
        show.table(rows, title="turns")
        by_language = [
            {"language": lang, "class": name, **_cells(value)}
            for lang, own in out["by_language"].items()
            for name, value in _classes(own)
            if value["n_emitted"] or value["n_labelled"]
        ]
        show.table(by_language, title="turns by language")
        _matrix(out["confusion"], "primary label (rows) against what was emitted (columns)")
    if "is_command_error" in out:
        kinds = out["status"]["by_status"]
        rows = [{"status": "is_command_error", **_cells(out["is_command_error"])}]
        show.table([*rows, *({"status": name, **_cells(kinds[name])} for name in kinds)], title="tool outputs")
        measures = (("status", "rows"), ("category", "hits"), ("layer", "hits"))
        whole = [
            {"measure": name, "of": out[name][f"n_{of}"], "right": _percent(out[name]["accuracy"]),
             "95 % interval": _limits(out[name]["accuracy_interval"])}
            for name, of in measures
        ]  # fmt: skip
        show.table(whole, title="what was said of them (category and layer: of right hits of command errors)")
        _matrix(out["status"]["confusion"], "labelled status (rows) against judged (columns)")
        _matrix(out["category"]["confusion"], "labelled category (rows) against judged (columns)", only_wrong=True)
    _wrong(
        [
            row | {"labels": ", ".join(row["labels"]), "emitted": ", ".join(row["emitted"])}
            for row in out.get("wrong_turns", ())
        ]
    )
    _wrong(list(out.get("wrong_outputs", ())))


def _classes(own: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [*own["by_class"].items(), *((name, own[name]) for name in _JOINED)]


def _cells(value: Mapping[str, Any]) -> dict[str, object]:
    return {
        "emitted": value["n_emitted"], "precision": _percent(value["precision"]),
        "95 % of P": _limits(value["precision_interval"]), "labelled": value["n_labelled"],
        "recall": _percent(value["recall"]), "95 % of R": _limits(value["recall_interval"]),
        "F1": _percent(value["f1"]), "95 % of F1": _limits(value["f1_interval"]),
    }  # fmt: skip


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _limits(interval: list[float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"


def _matrix(confusion: Mapping[str, Mapping[str, int]], title: str, *, only_wrong: bool = False) -> None:
    kept = {label: row for label, row in confusion.items() if not only_wrong or set(row) != {label}}
    if only_wrong and not kept:
        return
    columns = sorted({got for row in kept.values() for got in row})
    show.table(
        [{"label": label} | {got: row.get(got, 0) for got in columns} for label, row in kept.items()], title=title
    )


def _wrong(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    show.table(rows[:_LISTED], title=f"rows that are wrong somewhere: {len(rows):,}")
    if len(rows) > _LISTED:
        show.note(f"{len(rows) - _LISTED:,} more; all are in --json")
