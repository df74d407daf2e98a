"""Analysis slices: one as-of day scores its whole trailing window of settled outcomes.

Belongs here: choosing the window, reading outcomes of one measurement, committing, recording
corrections. Does not belong here: estimates (``analysis``), and what is decided on an analysis
(``steps/decisions``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, timedelta

import polars as pl

from evalpipe import analysis
from evalpipe.analysis import window_bounds
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.context import Context
from evalpipe.steps.evidence import demoted_in, overtaken, require_one_evidence
from evalpipe.steps.progress import sink
from evalpipe.steps.receipts import Receipts, of_outcomes, outcome_days
from evalpipe.steps.slices import StepResult
from evalpipe.steps.verdicts import PROFILES, judged
from evalpipe.store.lake import stage_part
from evalpipe.store.manifest import STEP_TABLES, Manifest, SliceKey

_NUMBERS = "analysis.net_improvement"
_ABLATION = "analysis.ablation"
_CORRECTED = "analysis.corrected_rates"
_BRIDGES = "analysis.bridges"
_CURVES = "analysis.recovery_curves"

#: Reason of a correction that takes a person out of a number as it was made.
ERASURE = "erasure"

#: As-of days that a run makes anew when late sessions changed their window.
AS_OF_DAYS_BACK = 35


@dataclass(frozen=True, slots=True)
class Window:
    """A named window of one as-of day, with the outcome slices in it."""

    as_of: date
    name: str
    start: date
    end: date
    manifests: tuple[Manifest, ...]


def trailing_name(context: Context) -> str:
    """Name of the trailing window that criteria ask for, such as ``28d``."""
    return f"{context.criteria.estimand.window_days}d"


def analysis_key(context: Context, as_of: date, window: str) -> SliceKey:
    """The slice that holds the analysis of an as-of day and window."""
    return SliceKey("analysis", as_of, (*context.versions.variants["analysis"], f"w={window}"))


def outcome_days_available(context: Context) -> list[date]:
    """Days with at least one outcome under the measurement in force."""
    days = context.lake.days("outcomes", context.versions.variants["outcomes"])
    # A day may hold nothing but files that could not be read.
    return [day for day in days if (m := context.lookup("outcomes", day)) and m.rows("signals.session_outcomes")]


def open_window(context: Context, as_of: date, name: str) -> Window | None:
    """The window of an as-of day, or ``None`` where it holds no outcome at all.

    Args:
        context: The open home.
        as_of: Day that is scored.
        name: ``all``, or a number of days such as ``28d``.
    """
    days = outcome_days_available(context)
    bounds = window_bounds(as_of, name, context.criteria.estimand.settle_days, days)
    if bounds is None:
        return None
    start, end = bounds
    chosen = [day for day in days if start <= day <= end]
    manifests = tuple(m for day in chosen if (m := context.lookup("outcomes", day)) is not None)
    return Window(as_of, name, start, end, manifests)


def require_one_key(window: Window) -> None:
    """Refuse a window whose slices were masked under different keys.

    A user has another pseudonym under each key, so one person would count as two.

    Args:
        window: An open window.

    Raises:
        EvalpipeError: ``MIXED_KEYS``, with the days to recompute.
    """
    keys = [m.inputs["key"] for m in window.manifests]
    n_other = sum(key != keys[-1] for key in keys)
    if n_other:
        raise EvalpipeError(
            "MIXED_KEYS",
            f"{n_other} of {len(keys)} days have another key than {window.manifests[-1].key.day}.",
            where=f"window {window.name} of {window.as_of}",
            fix=f"Recompute them: evalpipe backfill {window.start}..{window.end}",
        )


def make_analysis(
    context: Context, as_of_days: Iterable[date], window: str, *, reason: str = "recomputed"
) -> StepResult:
    """Score as-of days whose window changed.

    A published number that changes is appended to ``analysis.corrections`` with both receipts. An
    analysis that contradicts itself or breaks a rule of precision is refused: the as-of day keeps its
    old one, and the others are made.

    Args:
        context: The open home.
        as_of_days: As-of days in order.
        window: ``all``, or a number of days such as ``28d``.
        reason: Why numbers move, as corrections say.

    Raises:
        EvalpipeError: ``MIXED_KEYS``, ``MIXED_SIGNALS``.
    """
    result = StepResult("analysis")
    days = sorted(set(as_of_days))
    receipts = Receipts(context)
    bar = sink()
    bar.start("analysis", len(days), "days")
    for day in days:
        bar.advance("analysis", 1)
        opened = open_window(context, day, window)
        if opened is None:
            result.absent.append(day)
            continue
        require_one_key(opened)
        if reason != ERASURE:
            require_one_evidence(context, opened.manifests, f"window {window} of {day}")
        key = analysis_key(context, day, window)
        inputs = receipts.of(opened.manifests)
        old = context.lake.manifest(key)
        code_version = context.versions.code["analysis"]
        is_whole = old is not None and context.lake.damage(old) is None
        if old is not None and is_whole and old.code_version == code_version and dict(old.inputs) == inputs:
            result.fresh[day] = old
            continue
        outcomes = context.lake.read("signals.session_outcomes", opened.manifests)
        arms = context.lake.read("signals.routing_arms", opened.manifests)
        analysis.require_one_measurement(outcomes)
        tables = analysis.score(
            outcomes,
            context.criteria,
            as_of=day,
            window=window,
            window_start=opened.start,
            window_end=opened.end,
            arms=arms,
            demoted=demoted_in(opened.manifests),
        )
        stamp = analysis.Stamp.of(context.criteria, as_of=day, window=window, start=opened.start, end=opened.end)
        tables[_ABLATION] = analysis.ablation(
            outcomes,
            context.lake.read("signals.session_scores", opened.manifests),
            context.criteria,
            stamp,
            arms=arms,
        )
        seen = (outcomes, receipts.seen.counts(opened.manifests), receipts.seen.reviewed())
        tables[_CORRECTED] = analysis.corrected(*seen, context.criteria, stamp)
        tables |= analysis.concordance(*seen, tables[_NUMBERS], context.criteria, stamp)
        tables[_CURVES] = analysis.recovery_curves(
            outcomes,
            receipts.seen.episodes(opened.manifests),
            context.criteria,
            stamp,
        )
        tables[_BRIDGES] = analysis.bridged(
            context.lake.read("signals.session_outcomes", receipts.overlap.other(opened.manifests)),
            outcomes,
            context.criteria,
            stamp,
        )
        folder = context.lake.staging_folder(key)
        staged = [
            stage_part(name, tables[name], folder, "all")
            for name in STEP_TABLES["analysis"]
            if not tables[name].is_empty()
        ]
        agreement = analysis.coherence(tables[_NUMBERS])
        try:
            profiles = judged(f"as-of day {day}, window {window}", staged)
            if not agreement.holds:
                what = f"as-of day {day}, window {window}: {asdict(agreement)}"
                raise EvalpipeError("ESTIMATES_INCOHERENT", what, where=_NUMBERS)
        except EvalpipeError as error:
            context.lake.discard(key)
            result.red[day] = error
            continue
        stats = {
            "n_sessions": outcomes.height,
            "n_settled": int(outcomes["is_settled"].sum()),
            "coherence": asdict(agreement),
            PROFILES: profiles,
        }
        if old is not None and is_whole:
            old_numbers = context.lake.read(_NUMBERS, [old])
            # Appended first: the file is named by its content, so a run that is killed here appends it
            # again in vain, while one killed after the commit would never know that a number moved.
            content = Manifest(key, inputs, code_version, tuple(item.part for item in staged)).content
            changed = analysis.corrections(old_numbers, tables[_NUMBERS], old.content, content, reason)
            context.lake.append("analysis.corrections", changed)
        result.made[day] = context.lake.commit(key, staged, inputs=inputs, code_version=code_version, stats=stats)
    bar.finish("analysis")
    return result


def stale_as_of_days(context: Context) -> list[date]:
    """Trailing analyses of the last weeks whose window changed since they were made, as with late files.

    Older ones wait for ``backfill``, so that a late file does not recompute years.
    """
    window = trailing_name(context)
    limit = context.as_of - timedelta(days=AS_OF_DAYS_BACK)
    receipts = Receipts(context)
    out: list[date] = []
    for manifest in context.lake.manifests("analysis"):
        day = manifest.key.day
        if manifest.key != analysis_key(context, day, window) or not limit <= day <= context.as_of:
            continue
        opened = open_window(context, day, window)
        if (receipts.of(opened.manifests) if opened else {}) != dict(manifest.inputs) or context.lake.damage(manifest):
            out.append(day)
    return out


def outdated(context: Context, manifest: Manifest) -> str | None:
    """Why an analysis no longer says what the sessions of this home say, or ``None``.

    Args:
        context: The open home.
        manifest: An analysis under the measurement in force.

    Returns:
        One sentence: its logic, a slice of its window, or the end of its window is older than what is
        there now.
    """
    if manifest.code_version != context.versions.code["analysis"]:
        return "it was made by an older version of the estimates"
    name = manifest.key.variant[-1].removeprefix("w=")
    opened = open_window(context, manifest.key.day, name)
    if opened and (behind := overtaken(context, opened.manifests)):
        return f"reviews demoted or proved signals since that {len(behind)} days of its window do not follow yet"
    # What reviewers said since, or another measurement, moves nothing that is decided on.
    then = outcome_days(manifest.inputs)
    now = outcome_days(of_outcomes(opened.manifests)) if opened else {}
    changed = sorted(set(now.items()) ^ set(then.items()))
    if changed:
        days = sorted({day for day, _ in changed})
        return f"{len(days)} days of its window changed since, the first {days[0]}"
    last = max(then)
    end = manifest.key.day - timedelta(days=context.criteria.estimand.settle_days)
    newer = [
        day
        for day in outcome_days_available(context)
        if day > max(last, end) and (m := context.lookup("outcomes", day)) and m.stats.get("n_settled")
    ]
    return f"{len(newer)} settled days came after its window, the last {newer[-1]}" if newer else None


def require_current(context: Context, manifest: Manifest) -> None:
    """Refuse to decide on an analysis that later sessions have overtaken.

    Raises:
        EvalpipeError: ``STALE_RESULT``.
    """
    reason = outdated(context, manifest)
    if reason is not None:
        what = f"the analysis of {manifest.key.day} cannot be decided on: {reason}"
        window = manifest.key.variant[-1].removeprefix("w=")
        # Later as-of days hold no session that this one lacks; from a home of last year it is far to today.
        last = max(outcome_days_available(context), default=manifest.key.day)
        end = max(manifest.key.day, min(context.as_of, last + timedelta(days=context.criteria.estimand.settle_days)))
        fix = f"Run: evalpipe backfill {manifest.key.day}..{end} --window {window}{context.settings.criteria_option}"
        raise EvalpipeError("STALE_RESULT", what, where=str(manifest.key), fix=fix)


def latest(context: Context, window: str | None = None) -> Manifest | None:
    """The newest analysis under the measurement in force.

    Args:
        context: The open home.
        window: Restrict to one window; by default the newest as-of day of any, trailing windows last,
            so that a one-off look over an archive is what a report of that archive shows.
    """
    mine = context.versions.variants["analysis"]
    found = [m for m in context.lake.manifests("analysis") if m.key.variant[:1] == mine]
    if window is not None:
        found = [m for m in found if m.key.variant[1:] == (f"w={window}",)]
    return max(found, key=lambda m: (m.key.day, m.key.variant[-1] == "w=all"), default=None)


def tables_of(context: Context, manifest: Manifest) -> dict[str, pl.DataFrame]:
    """The analysis tables of one slice."""
    return {name: context.lake.read(name, [manifest]) for name in STEP_TABLES["analysis"]}


def versions_of(context: Context, manifest: Manifest) -> list[str]:
    """Labels of the versions that an analysis speaks of."""
    labels: list[str] = context.lake.read(_NUMBERS, [manifest], ["version"])["version"].unique().sort().to_list()
    return labels


def sessions_of(context: Context, manifest: Manifest) -> dict[str, int]:
    """Sessions by version behind the headline metric of an analysis, over all traffic."""
    rows = context.lake.read(_NUMBERS, [manifest], ["version", "metric", "slice", "n_sessions"])
    rows = rows.filter((pl.col("metric") == context.criteria.outcomes.headline) & (pl.col("slice") == "all"))
    return {row["version"]: row["n_sessions"] or 0 for row in rows.iter_rows(named=True)}
