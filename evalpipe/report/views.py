"""The cells of every table as text, before any markup: what HTML and Markdown both print.

Belongs here: choosing and formatting. Does not belong here: markup, drawings, sentences on results.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import assignment
from evalpipe.report import format as fmt
from evalpipe.report import gate as gates
from evalpipe.report.checks import checks_chip
from evalpipe.report.format import unit_of
from evalpipe.report.model import Evidence
from evalpipe.report.naming import difference, reference_text, why_unavailable
from evalpipe.report.phrases import reasons
from evalpipe.report.records import (
    ALL,
    BETTER,
    BETTER_THROUGH,
    UNTOLD,
    WORSE,
    WORSE_THROUGH,
    Estimate,
    GateRow,
    Version,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact beside the answer; ``status`` turns the value into a chip."""

    label: str
    value: str
    status: str = ""


@dataclass(frozen=True, slots=True)
class GateCells:
    """One row of the gate card."""

    row: GateRow
    title: str
    demand: str
    better: str
    change: str
    interval: str


@dataclass(frozen=True, slots=True)
class ForestCells:
    """One row of the comparison."""

    index: int
    version: Version
    estimate: Estimate | None
    number: str
    interval: str
    simultaneous: str
    ranks: str
    letters: str
    sessions: str
    users: str
    why: str
    flag: str
    ties: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LevelCells:
    """Descriptive numbers of one version."""

    version: Version
    level: str
    raw_rate: str
    raw_rank: str
    missing: str
    mde: str
    deff: str
    df: str


@dataclass(frozen=True, slots=True)
class PairCells:
    """A pair as the pair tables print it."""

    symbol: str
    word: str
    text: str


def facts(ev: Evidence) -> tuple[Fact, ...]:
    """The facts under the answer."""
    inside = [ev.at(ev.headline_metric, group.slice, i) for group in ev.groups for i in group.versions]
    rows = ev.headline or tuple(row for row in inside if row is not None)
    users = [row.n_users for row in rows]
    out = [
        Fact("Sessions", fmt.count(sum(row.n_sessions for row in rows))),
        Fact("Users per version", _range(users)),
        Fact("Versions compared", fmt.count(len({row.version for row in rows}))),
    ]
    if ev.groups:
        out.append(Fact("Compared in", fmt.plural(len(ev.groups), "group")))
    if ev.basis is not None:
        out.append(Fact("Assignment", assignment.stated(ev)))
        target = reference_text(ev) if ev.headline else "the average of each group" if ev.groups else "nothing"
        out.append(Fact("Compared with", f"{target} ({ev.basis.reference})"))
    verdict = ev.gate.verdict
    out.append(Fact("Gate", verdict.upper() if verdict else "NOT DETERMINED", verdict or "unavailable"))
    status, words = checks_chip(ev)
    out.append(Fact("Data", words, {"ok": "pass", "suspect": "inconclusive"}.get(status, status)))
    return tuple(out)


def _range(values: list[int]) -> str:
    if not values:
        return fmt.UNAVAILABLE
    low, high = fmt.count(min(values)), fmt.count(max(values))
    return low if low == high else f"{low}{fmt.DASH}{high}"


def gate_rows(ev: Evidence) -> tuple[GateCells, ...]:
    """Rows of the gate card in the metric's own sign."""
    out = []
    for row in ev.gate.rows:
        unit, ends = unit_of(row.metric), gates.natural(row)
        change, interval = fmt.UNAVAILABLE, ""
        if ends is not None:
            places = fmt.places_for(ends[1], ends[2], unit)
            change = f"{fmt.signed(ends[0], unit, places)}{unit.suffix}"
            interval = fmt.interval(ends[1], ends[2], unit, places)
        out.append(
            GateCells(
                row, BY_NAME[row.metric].title, gates.kind_text(row), gates.better_side(row.metric), change, interval
            )
        )
    return tuple(out)


def gate_note(ev: Evidence) -> str:
    """How to read the card; with more, where gate and comparison seem to differ."""
    pair_note = ""
    i, j = ev.with_role("candidate"), ev.with_role("baseline")
    pair = ev.pair(i, j) if i is not None and j is not None else None
    superior = any(r.metric == ev.headline_metric and r.lower is not None and r.lower > 0 for r in ev.gate.rows)
    if superior and pair is not None and pair.relation == UNTOLD:
        pair_note = f" Here the candidate is better in the gate and cannot be told apart below: {gates.STRICTER}"
    observed = f" {gates.OBSERVED}" if assignment.is_observational(ev) else ""
    level = fmt.percent(1 - 2 * gates.ALPHA, 0)
    side = fmt.percent(1 - gates.ALPHA, 0)
    return (
        f"Bars are {level} intervals, so each end is a one-sided {side} bound. The red line is the declared margin, "
        f"the thin line is no change, and right is better in every row.{pair_note or ' ' + gates.STRICTER}{observed}"
    )


def forest_rows(ev: Evidence) -> tuple[ForestCells, ...]:
    """Rows of the comparison, best estimate first, unavailable versions last."""
    return tuple(_forest_row(ev, i) for i in range(len(ev.versions)))


def _forest_row(ev: Evidence, i: int) -> ForestCells:
    row = ev.at(ev.headline_metric, ALL, i)
    version, unit, k = ev.versions[i], unit_of(ev.headline_metric), len(ev.headline)
    if row is None or not row.is_shown or row.estimate is None:
        n = (fmt.count(row.n_sessions), fmt.count(row.n_users)) if row else ("none", "none")
        why = why_unavailable(ev, row)
        return ForestCells(i, version, None, fmt.UNAVAILABLE, "", "", fmt.UNAVAILABLE, "", *n, why, "", ())
    places = fmt.places_for(row.lo, row.hi, unit)
    ties = tuple(p.other for p in ev.pairs if p.version == i and p.relation == UNTOLD)
    return ForestCells(
        i, version, row,
        number=fmt.signed(row.estimate, unit, places),
        interval=fmt.interval(row.lo, row.hi, unit, places),
        simultaneous=f"all {k}: {fmt.interval(row.lo_sim, row.hi_sim, unit, places)}",
        ranks=fmt.rank_set(row.rank_lo, row.rank_hi),
        letters=row.letters or "",
        sessions=fmt.count(row.n_sessions),
        users=fmt.count(row.n_users),
        why="",
        flag=("" if row.status == "ok" else row.status) if common_flag(ev) else status_text(row),
        ties=ties,
    )  # fmt: skip


def status_text(row: Estimate) -> str:
    """The word of a status that is not ok with its reasons, or a warning that leaves it ok."""
    why = reasons(row.reasons)
    if row.status == "ok":
        return why
    return f"{row.status}: {why}" if why else row.status


def common_flag(ev: Evidence) -> str:
    """What is to be said of every version alike, once; empty where they differ or are all in order."""
    texts = {status_text(row) for row in ev.headline}
    if len(texts) != 1 or len(ev.headline) < 2 or texts == {""}:
        return ""
    text = texts.pop()
    return f"Every version is {text}." if ev.headline[0].status != "ok" else f"Every version: {text}."


def comparison_title(ev: Evidence) -> str:
    """Heading of the comparison."""
    return f"Net improvement of the {len(ev.headline)} versions" if ev.headline else "Net improvement"


def comparison_intro(ev: Evidence) -> str:
    """What the numbers of the comparison are; not what a switch would do where traffic was only observed."""
    title, target = ev.metric(ev.headline_metric).title.lower(), reference_text(ev)
    if assignment.is_observational(ev):
        return (
            f"Difference in {title} between this version and {target}, with nothing but the strata held equal. "
            "What a switch would change is not known, because versions were not assigned at random."
        )
    return f"Change in {title} if all traffic went to this version, against {target}."


def level_rows(ev: Evidence) -> tuple[LevelCells, ...]:
    """Levels, plain rates and precision of each compared version."""
    unit = unit_of(ev.headline_metric)
    # Plain rates are ranked among all versions, those left out of the comparison included.
    everyone = (ev.at(ev.headline_metric, ALL, i) for i in range(len(ev.versions)))
    n_ranked = sum(row is not None and row.raw_rank is not None for row in everyone)
    return tuple(
        LevelCells(
            version=ev.versions[row.version],
            level=fmt.level(row.theta, row.theta_lo, row.theta_hi, unit),
            raw_rate=fmt.percent(row.raw_rate) if unit is fmt.PP else fmt.number(row.raw_rate),
            raw_rank=fmt.UNAVAILABLE if row.raw_rank is None else f"{row.raw_rank} of {n_ranked}",
            missing=fmt.percent(row.missing_share),
            mde=fmt.UNAVAILABLE if row.mde is None else fmt.size(row.mde, unit),
            deff=fmt.UNAVAILABLE if row.deff is None else f"{row.deff:.2f}",
            df=fmt.UNAVAILABLE if row.df is None else f"{row.df:,.0f}",
        )
        for row in ev.headline
    )


_RELATIONS = {
    BETTER: ("\u25b2", "better"),
    BETTER_THROUGH: ("\u25b3", "better, through {}"),
    WORSE: ("\u25bc", "worse"),
    WORSE_THROUGH: ("\u25bd", "worse, through {}"),
    UNTOLD: ("?", "cannot be told apart"),
}


def pair_cells(ev: Evidence, i: int, j: int) -> PairCells | None:
    """How version ``i`` stands to ``j``; None where the pair has no row."""
    pair = ev.pair(i, j)
    if pair is None:
        return None
    symbol, word = _RELATIONS[pair.relation]
    through = ev.versions[pair.through].label if pair.through is not None else ""
    return PairCells(symbol, word.format(through), difference(ev, pair))


def pivot(ev: Evidence) -> int | None:
    """The version that the list of differences is told from: the candidate, else the first."""
    shown = [row.version for row in ev.headline]
    candidate = ev.with_role("candidate")
    return candidate if candidate in shown else shown[0] if shown else None
