"""What ``evalpipe gate`` and ``evalpipe release`` print.

Belongs here: the table of a decision and of a scorecard, and the words below them. Does not belong
here: deciding (``analysis``), what a run prints (``summary.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from evalpipe.console import show
from evalpipe.contracts.errors import Exit
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import format as fmt
from evalpipe.report import gate as gate_card
from evalpipe.report.phrases import reasons as in_words

#: Reasons that more sessions of the same kind of work mend.
_FEW = frozenset({"too_few_sessions", "too_few_users", "interval_crosses_margin", "no_common_support", "low_support"})
_REFERENCES = {
    "uniform": "the average of the versions compared",
    "stratum_mean": "the average session",
    "control_pool": "the sessions of all others",
    "loo_uniform": "the average of the others",
}


def after_gate(
    decided: pl.DataFrame, candidate: str, baseline: str, *, as_json: bool, counts: Mapping[str, int], needed: int
) -> int:
    """The verdict of every criterion and the exit code that goes with them.

    Args:
        decided: Rows of ``analysis.gates`` of one decision.
        candidate: Version that may ship.
        baseline: Version that it is compared with.
        as_json: Print JSON for a script.
        counts: Sessions of the analysis by version.
        needed: Sessions of a version below which it has no number.
    """
    verdicts = decided["verdict"].to_list()
    overall = "fail" if "fail" in verdicts else "pass" if verdicts and set(verdicts) == {"pass"} else "inconclusive"
    code = {"pass": Exit.OK, "fail": Exit.GATE_FAILED, "inconclusive": Exit.INCONCLUSIVE}[overall]
    rows = [_gate_row(row) for row in decided.iter_rows(named=True)]
    if as_json:
        keep = ["criterion", "metric", "kind", "margin", "estimate", "lower", "upper", "df", "verdict", "reasons"]
        shown = {
            "candidate": candidate,
            "baseline": baseline,
            "verdict": overall,
            "sign": "of estimate, lower and upper: positive is better, whatever the metric's own direction",
            "criteria": decided.select(keep).to_dicts(),
            "measurement": decided["measurement"][0] if decided.height else None,
            "window": [str(decided["window_start"][0]), str(decided["window_end"][0])] if decided.height else None,
        }
        print(json.dumps(shown, ensure_ascii=False))
        return int(code)
    if not rows:
        show.line("Readiness is not determined: no thresholds were declared before the results.")
    else:
        show.table(rows, title=f"May {candidate} replace {baseline}?")
        _why(decided, {v: counts.get(v, 0) for v in (candidate, baseline)}, needed)
        show.line(f"Verdict: {overall.upper()}")
        show.line("Recorded in this home; in the warehouse (analysis.gates) after the next run.")
        show.line("Where the same is asked again on another day, the bounds are wider: they hold for all days at once.")
    return int(code)


def _gate_row(row: dict[str, Any]) -> dict[str, object]:
    metric = BY_NAME[row["metric"]]
    unit = fmt.unit_of(row["metric"])
    ends = gate_card.natural_ends(row["metric"], row["estimate"], row["lower"], row["upper"])
    return {
        "criterion": row["criterion"],
        "metric": metric.title,
        "kind": row["kind"].replace("_", " "),
        "margin": fmt.size(row["margin"], unit),
        "better is": gate_card.better_side(row["metric"]),
        "candidate minus baseline, 90 % interval": fmt.estimate(*ends, unit) if ends else fmt.UNAVAILABLE,
        "verdict": row["verdict"].upper(),
    }


def _why(decided: pl.DataFrame, counts: Mapping[str, int], needed: int) -> None:
    """Why criteria are open, one reason a line, and what would help."""
    found: set[str] = set()
    for row in decided.iter_rows(named=True):
        # 'unavailable' says no more than the reasons beside it.
        codes = [code for code in row["reasons"] if code != "unavailable"] or row["reasons"]
        if codes:
            show.line(f"{row['criterion']}:")
        for code in dict.fromkeys(codes):
            few = [f"{version} has {n:,}" for version, n in counts.items() if n < needed]
            numbers = f": {', '.join(few)}, {needed} needed" if code == "too_few_sessions" and few else ""
            show.line(f"  {in_words((code,))}{numbers}")
        found |= set(codes)
    if found & _FEW:
        show.line("Next: collect more sessions of both versions on the same kind of work, then evalpipe run SOURCE...")
    if found:
        show.line("What each reason means: docs/methods.md, 'Status and reasons'.")


def scorecard(card: pl.DataFrame, version: str, *, with_slices: bool, as_json: bool) -> None:
    """One version over all metrics: all traffic, and the slices where they are asked for.

    Args:
        card: Rows of ``analysis.scorecard``.
        version: Its label.
        with_slices: Show the slices too, of which there may be hundreds.
        as_json: Print every row as JSON for a script.
    """
    if as_json:
        print(json.dumps(card.to_dicts(), default=str, ensure_ascii=False))
        return
    chosen = card if with_slices else card.filter(pl.col("slice") == "all")
    rows = []
    for row in chosen.sort("slice", "metric").iter_rows(named=True):
        metric = BY_NAME[row["metric"]]
        first = {"slice": row["slice"]} if with_slices else {}
        rows.append(
            first
            | {
                "metric": metric.title,
                "shift, 95 % interval": fmt.estimate(row["estimate"], row["lo"], row["hi"], fmt.unit_of(row["metric"])),
                "ahead of": row["n_better_than"],
                "behind": row["n_worse_than"],
                "tied": row["n_tied_with"],
                "sessions": row["n_sessions"],
                "status": row["status"],
            }
        )
    top = card.row(0, named=True)
    window = f"{top['window_start']} to {top['window_end']}"
    reference = _REFERENCES.get(top["reference"], str(top["reference"]).removeprefix("model:"))
    show.table(rows, title=f"{version}: shift against {reference}, {window}")
    show.line("Ahead of, behind, tied: how many other versions it is better or worse than, or not told apart from.")
    if len(rows) < card.height:
        show.line(f"{card.height - len(rows)} more rows by slice: --slices shows them, --json has all.")
