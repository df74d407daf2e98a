"""What ``evalpipe mask eval`` prints: recall and harm of masking on a labelled corpus.

Belongs here: shares, intervals, tables and the JSON object. Does not belong here: what counts as found
(``masking/evaluate.py``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalpipe.console import show
from evalpipe.console.progress import Bars
from evalpipe.inference import wilson
from evalpipe.masking import MaskPlan, corpus, evaluate
from evalpipe.masking.evaluate import Evaluation, Found

_LISTED = 100


def run(plan: MaskPlan, folder: Path, *, as_json: bool, show_values: bool) -> None:
    """Evaluate a corpus folder and print what was found.

    Args:
        plan: Key, rule set and limits.
        folder: Corpus folder.
        as_json: One JSON object in place of tables.
        show_values: Print the texts of missed and harmed places; a corpus may hold real ones.
    """
    loaded = corpus.load(folder)
    n_texts = len(loaded.positives) + len(loaded.negatives) + sum(len(s.turns) for s in loaded.sessions)
    with Bars() as bars:
        bars.start("mask", n_texts, "texts")
        result = evaluate.evaluate(plan, loaded, lambda n: bars.advance("mask", n))
        bars.finish("mask")
    values = _texts(loaded) if show_values else {}
    refused = [{"where": where, "why": why} for where, why in loaded.refused]
    out = summary(plan, result, values) | {"n_rows_refused": len(refused), "rows_refused": refused}
    if as_json:
        print(json.dumps(out, ensure_ascii=False))
    else:
        _print(out)


def summary(plan: MaskPlan, result: Evaluation, values: dict[str, str]) -> dict[str, Any]:
    """The evaluation as one object of plain values; a share of nothing is ``null``.

    Args:
        plan: The plan that was evaluated.
        result: Its evaluation.
        values: Texts by file and line, of those that may be shown.
    """

    def is_rule(p: Found) -> bool:
        return p.part == "positives" and p.tier == "rule"

    found = {
        "rule_tier": result.count(is_rule),
        "secret": result.count(lambda p: is_rule(p) and p.entity == "SECRET"),
        "session": result.count(lambda p: p.part == "sessions"),
    }
    touched, n_negatives = len(result.touched), result.n_negatives
    one_token = [len(tokens) == 1 for tokens in result.tokens.values()]
    out: dict[str, Any] = {}
    for name, pair in found.items():
        out[f"{name}_recall"] = _share(*pair)
        out[f"{name}_recall_interval"] = _interval(*pair)
        out[f"n_{name}_found"], out[f"n_{name}_spans"] = pair
    return out | {
        "negative_rows_touched": _share(touched, n_negatives),
        "negative_rows_touched_interval": _interval(touched, n_negatives),
        "n_negative_rows_touched": touched,
        "n_negative_rows": n_negatives,
        "n_soft_rows_touched": len(result.touched_soft),
        "over_masking": _share(result.n_outside, result.n_inside),
        "n_values_with_one_token": sum(one_token),
        "n_values_with_tokens": len(one_token),
        "by_entity": _groups(result, "entity", is_rule),
        "by_tier": _groups(result, "tier", lambda p: p.part == "positives"),
        "by_language": _groups(result, "lang", is_rule),
        "by_carrier": _groups(result, "carrier", is_rule),
        "missed": [_place(p, values) for p in result.places if not p.is_found],
        "harmed": [_place(h, values) for h in result.harms],
        "ruleset": plan.ruleset_digest(),
    }


def _groups(result: Evaluation, name: str, keep: Any) -> dict[str, dict[str, Any]]:
    return {
        key: {"found": x, "spans": n, "recall": _share(x, n), "interval": _interval(x, n)}
        for key, (x, n) in result.count_by(name, keep).items()
    }


def _place(item: Any, values: dict[str, str]) -> dict[str, Any]:
    row = {key: value for key, value in asdict(item).items() if key != "is_found"}
    if item.line in values:
        row["value"] = values[item.line][item.start : item.end]
    return row


def _share(x: int, n: int) -> float | None:
    return x / n if n else None


def _interval(x: int, n: int) -> list[float] | None:
    return [round(float(limit), 6) for limit in wilson(x, n)] if n else None


def _texts(loaded: corpus.Corpus) -> dict[str, str]:
    turns = (turn for session in loaded.sessions for turn in session.turns)
    return {sample.line: sample.text for sample in (*loaded.positives, *loaded.negatives, *turns)}


# ---- for a person


def _print(out: dict[str, Any]) -> None:
    rows = [
        {"measure": label, **_cells(out[f"n_{name}_found"], out[f"n_{name}_spans"])}
        for name, label in (
            ("rule_tier", "recall, rule tier"),
            ("secret", "recall, secrets"),
            ("session", "recall, sessions"),
        )
    ]
    touched = _cells(out["n_negative_rows_touched"], out["n_negative_rows"])
    show.table([*rows, {"measure": "negative rows touched", **touched}], title="masking on this corpus")
    if out["over_masking"] is not None:
        soft = out["n_soft_rows_touched"]
        show.line(f"over-masking: {out['over_masking']:.2%} of the labelled characters; soft rows touched: {soft}")
        show.line(f"one token a value: {out['n_values_with_one_token']} of {out['n_values_with_tokens']}")
    for name in ("entity", "tier", "language", "carrier"):
        groups = out[f"by_{name}"]
        # Whole groups say little: the ones that lack something come first.
        order = sorted(groups, key=lambda key: (groups[key]["recall"], key))
        shown = [{name: key, **_cells(groups[key]["found"], groups[key]["spans"])} for key in order]
        if name == "carrier" and all(groups[key]["recall"] == 1 for key in order):
            show.line(f"carrier: all {len(order)} are whole")
            continue
        show.table(shown, title=f"by {name}")
    _list("missed", out["missed"], ("id", "start", "end", "entity", "subtype", "tier", "carrier", "value"))
    _list("harmed", out["harmed"], ("id", "part", "start", "end", "entity", "rule", "carrier", "value"))
    if out["rows_refused"]:
        _list("left out, since they break the layout", out["rows_refused"], ("where", "why"))


def _cells(x: int, n: int) -> dict[str, object]:
    low, high = _interval(x, n) or (None, None)
    share = f"{x / n:.1%}" if n else "-"
    return {"n": x, "of": n, "share": share, "95 % interval": f"{low:.1%} to {high:.1%}" if n else "-"}


def _list(title: str, places: list[dict[str, Any]], names: Iterable[str]) -> None:
    if not places:
        show.line(f"{title}: nothing")
        return
    rows = [{name: place.get(name, "") for name in names if name != "value" or "value" in place} for place in places]
    show.table([{k: str(v) for k, v in row.items()} for row in rows[:_LISTED]], title=title)
    if len(rows) > _LISTED:
        show.note(f"{len(rows) - _LISTED:,} more; all are in --json")
