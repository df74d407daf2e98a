"""The state of a home: what is stale, what was refused, what is published, and the next command.

Belongs here: looking and showing. Does not belong here: making anything.
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from datetime import date

from evalpipe.console import show
from evalpipe.settings import Settings
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import erase, ledger, rejections, rescan, retention, reviews
from evalpipe.steps.analysed import analysed
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.receipts import Receipts
from evalpipe.steps.signals import MOVED
from evalpipe.store.manifest import contiguous
from evalpipe.store.warehouse import Warehouse


def doctor(settings: Settings, *, as_json: bool) -> None:
    """Show the state of a home.

    Args:
        settings: Settings of the home.
        as_json: Print JSON for a script.

    Raises:
        NotADirectoryError: Something else lies where the lake should.
    """
    if settings.lake.exists() and not settings.lake.is_dir():
        # Looking makes no folder, which is where a run would stumble over it.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(settings.lake))
    with open_context(settings, looking=True) as context:
        plan = context.plan()
        red = rejections.rejected(context.lake)
        made = context.lake.days("outcomes", context.versions.variants["outcomes"])
        published = Warehouse(settings.warehouse, memory_limit=settings.duckdb_memory).published()
        latest = analysis_step.latest(context)
        stale = stale_analyses(context)
        sealed, lost = retention.sealed_days(context)
        others = [item for item in analysed(context) if item.measurement != context.criteria.measurement]
        damaged = [str(path) for path in reviews.damaged(context.lake)]
        state = {
            "home": str(settings.home),
            "first_day": context.settings.first_day.isoformat(),
            "criteria": f"{context.criteria.name} {context.criteria.version}",
            "measurement": context.criteria.measurement,
            "key_epoch": context.key.epoch,
            "masking_rules": rule_sets(context),
            "signals_moved_by_masking": moved_by_masking(context),
            "signals_demoted": [f"{signal} ({lang})" for signal, lang in sorted(context.demoted)],
            "reviews_damaged": damaged,
            "files_seen": len(context.landing.known_files(context.readers)),
            "days_made": len(made),
            "days_stale": [f"{start}..{end}" for start, end in plan.runs],
            "days_refused": {day.isoformat(): entry["code"] for day, entry in red.items()},
            "days_sealed": [f"{start}..{end}" for start, end in contiguous(sealed)],
            "days_out_of_reach": [f"{start}..{end}" for start, end in contiguous(lost)],
            "erasure_pending": erase.is_pending(settings),
            "assignments_unmatched": unmatched_assignments(context),
            "latest_analysis": str(latest.key) if latest else None,
            "analysed_otherwise": [
                f"{item.title}: {item.n_as_of_days} as-of days up to {item.newest}" for item in others
            ],
            "analyses_stale": [
                f"{window} of {start}..{end}" for window, days in stale.items() for start, end in contiguous(days)
            ],
            "warehouse": "published" if published else "not published",
        }
    if as_json:
        print(json.dumps(state))
        return
    show.table([{"what": name, "state": _brief(value)} for name, value in state.items()])
    for path in damaged:
        show.line(f"Reviews that cannot be read, and are left out here: restore {path}, or delete it and import again.")
    for item in others:
        show.line(f"Analysed under criteria {item.title} up to {item.newest}: to look at that, add {item.option}")
    for start, end in plan.runs:
        if others and not made:
            # Not to be pasted: it would extract every day a second time, mostly by mistake.
            name = state["criteria"]
            show.line(f"Nothing is made under {name}; evalpipe backfill A..B would make the days under it as well.")
            break
        show.line(f"Stale days: run  evalpipe backfill {start}..{end}{settings.criteria_option}")
    if state["assignments_unmatched"]:
        show.line(
            "Rows of the assignment ledger match no session: look at the spelling of ids, and at the tenant, "
            "without which a row is of users that the log names without one (docs/ledgers.md)."
        )
    if lost:
        show.line("Days out of reach: these criteria or this key would need text that has expired (docs/privacy.md).")
    if state["erasure_pending"]:
        show.line("An erasure was begun and not ended: any evalpipe run, backfill or erase goes on with it.")
    for window, days in stale.items():
        for start, end in contiguous(days):
            show.line(
                f"Stale analyses: run  evalpipe backfill {start}..{end} --window {window}{settings.criteria_option}"
            )


def stale_analyses(context: Context) -> dict[str, list[date]]:
    """As-of days by window whose analysis is older than the sessions in its window.

    Of the window ``all`` only the newest as-of day counts: each replaces the one before.

    Args:
        context: The open home.
    """
    mine = context.versions.variants["analysis"]
    found: dict[str, list[date]] = {}
    newest, receipts = analysis_step.latest(context, "all"), Receipts(context)
    for manifest in context.lake.manifests("analysis"):
        day, window = manifest.key.day, manifest.key.variant[-1].removeprefix("w=")
        if manifest.key.variant[:1] != mine or (window == "all" and newest and day != newest.key.day):
            continue
        opened = analysis_step.open_window(context, day, window)
        now = receipts.of(opened.manifests) if opened else {}
        if dict(manifest.inputs) != now or manifest.code_version != context.versions.code["analysis"]:
            found.setdefault(window, []).append(day)
    return {window: sorted(days) for window, days in sorted(found.items())}


def unmatched_assignments(context: Context) -> dict[str, int]:
    """Rows of the assignment ledger, by unit, that name a unit of which there is no session.

    Args:
        context: The open home.
    """
    if context.assignments.is_empty():
        return {}
    days = context.lake.days("masked", context.versions.variants["masked"])
    made = [manifest for day in days if (manifest := context.lookup("masked", day)) is not None]
    sessions = context.lake.read("masked.sessions", made, columns=["session_id", "user_id"])
    return ledger.unmatched(context.settings.assignments, context.mask_plan, sessions)


def rule_sets(context: Context) -> dict[str, int]:
    """Masked days by the digest of the rule set that they were made with; the one in force first."""
    now = context.mask_plan.ruleset_digest()
    made = Counter(str(m.stats.get("ruleset", "not on record")) for m in context.lake.manifests("masked"))
    rescanned = sum(rescan.RESCANNED in m.stats for m in context.lake.manifests("masked"))
    found = {now: made.pop(now, 0), **dict(sorted(made.items()))}
    return found | ({"scanned again without raw text": rescanned} if rescanned else {})


def moved_by_masking(context: Context) -> dict[str, str]:
    """Signals whose count the newest change of masking rules moved, over all days: before and after."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for day in context.lake.days("signals", context.versions.variants["signals"]):
        manifest = context.lookup("signals", day)
        for kind, (was, now) in (manifest.stats.get(MOVED, {}) if manifest else {}).items():
            before[kind] += was
            after[kind] += now
    return {kind: f"{before[kind]} to {after[kind]}" for kind in sorted(before)}


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
