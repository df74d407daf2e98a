"""Which slices are stale: a pure function of the landing index and the manifests.

Belongs here: comparing what a slice was made from with what it would be made from now. Does not
belong here: making anything. The command line and the sensor ask the same plan, so both see the
same stale days, late files included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from evalpipe.store.manifest import Manifest, SliceKey, contiguous

#: Steps in order of flow; a stale slice makes the following ones of its day stale.
DAY_STEPS = ("raw", "masked", "signals", "outcomes")

#: What signals are made from.
SIGNALS_READ = ("masked.sessions", "masked.steps", "masked.vectors")

#: Outcomes of a day read masked sessions from this many days before and after it.
LOOK_BACK_DAYS = 1
LOOK_AHEAD_DAYS = 3


def _no_ledger(step: str, day: date) -> Mapping[str, str]:
    """Inputs of a slice beyond slices, where no ledger is kept: none."""
    del step, day
    return {}


@dataclass(frozen=True, slots=True)
class Versions:
    """What the slices of a run are made under.

    Attributes:
        code: Code version of each step: its logic version and the criteria part that it reads.
        variants: Variant of each step, such as ``("x=1a2b",)`` for signals.
        key: Fingerprint of the masking key.
        checks: Digest of the rules that can refuse a slice.
        ledgers: Inputs of a step and day that are no slices, by name: what ledgers say of that day.
    """

    code: Mapping[str, str]
    variants: Mapping[str, tuple[str, ...]]
    key: str
    checks: str = ""
    ledgers: Callable[[str, date], Mapping[str, str]] = _no_ledger

    def slice_key(self, step: str, day: date) -> SliceKey:
        """The slice of a step and day under these versions."""
        return SliceKey(step, day, self.variants[step])


@dataclass(frozen=True, slots=True)
class Plan:
    """Stale days and why.

    Attributes:
        stale: For each stale day, the first stale step and the reason.
    """

    stale: Mapping[date, tuple[str, str]]

    @property
    def days(self) -> list[date]:
        """Stale days in order."""
        return sorted(self.stale)

    @property
    def runs(self) -> list[tuple[date, date]]:
        """Stale days as contiguous runs: days are sparse, and one run covers one range."""
        return contiguous(self.stale)


def outcome_days(day: date) -> list[date]:
    """Days whose masked sessions the outcomes of ``day`` read."""
    return [day + timedelta(days=offset) for offset in range(-LOOK_BACK_DAYS, LOOK_AHEAD_DAYS + 1)]


def is_settled(day: date, as_of: date) -> bool:
    """Whether the days that outcomes of ``day`` look ahead to are closed on ``as_of``."""
    return day + timedelta(days=LOOK_AHEAD_DAYS) <= as_of


def expected_inputs(
    step: str,
    day: date,
    *,
    landing: Mapping[date, str],
    lookup: Callable[[str, date], Manifest | None],
    versions: Versions,
    as_of: date,
) -> dict[str, str] | None:
    """Inputs that a slice would have if it were made now.

    Args:
        step: One of :data:`DAY_STEPS`.
        day: UTC day.
        landing: Receipt of every landed day.
        lookup: Committed manifest of a step and day, or ``None``.
        versions: What the run is made under.
        as_of: Day on which the run stands.

    Returns:
        Digest of each input by name, or ``None`` where the day has no input at all.
    """
    if step == "raw":
        return {"landing": landing[day]} if day in landing else None
    if step == "masked":
        raw = lookup("raw", day)
        return {"raw": raw.content, "key": versions.key, **versions.ledgers(step, day)} if raw else None
    if step == "signals":
        masked = lookup("masked", day)
        return {"masked": masked.content_of(*SIGNALS_READ), "key": versions.key} if masked else None
    signals = lookup("signals", day)
    if signals is None:
        return None
    # The key, because a window may not mix keys, and the window is made of outcomes.
    inputs = {"signals": signals.content, "settled": str(is_settled(day, as_of)), "key": versions.key}
    inputs |= versions.ledgers(step, day)
    for neighbour in outcome_days(day):
        masked = lookup("masked", neighbour)
        if masked is not None:
            inputs[f"masked {neighbour}"] = masked.content_of("masked.sessions")
    return inputs


def _whole(manifest: Manifest) -> str | None:
    """What is wrong with the files of a slice where none are looked at: nothing."""
    del manifest
    return None


def staleness(
    step: str,
    manifest: Manifest | None,
    inputs: Mapping[str, str],
    versions: Versions,
    damage: Callable[[Manifest], str | None] = _whole,
) -> str | None:
    """Why a slice must be made, or ``None`` if it is as it would be.

    Args:
        step: One of :data:`DAY_STEPS`.
        manifest: What is committed.
        inputs: What it would be made from now.
        versions: What it would be made under.
        damage: Tells what is wrong with the files of a slice, or ``None``; looks at no file by default.
    """
    if manifest is None:
        return "never made"
    if manifest.code_version != versions.code[step]:
        return "logic or criteria changed"
    if dict(manifest.inputs) != dict(inputs):
        return "input changed"
    return damage(manifest)


def plan(
    landing: Mapping[date, str],
    lookup: Callable[[str, date], Manifest | None],
    versions: Versions,
    *,
    as_of: date,
    rejected: Mapping[date, str] | None = None,
    damage: Callable[[Manifest], str | None] = _whole,
) -> Plan:
    """Days that must be made anew, with the first stale step of each.

    Args:
        landing: Receipt of every landed day.
        lookup: Committed manifest of a step and day.
        versions: What the run would be made under.
        as_of: Day on which the run stands; decides what is settled.
        rejected: Days that a blocking check refused, with the receipt of what it refused: such a day
            is not tried again until its input or the rules change.
        damage: Tells what is wrong with the files of a slice; see :func:`staleness`.

    Returns:
        The plan.
    """
    stale: dict[date, tuple[str, str]] = {}
    waiting = {day for day, was in (rejected or {}).items() if was == rejection_receipt(day, landing, versions)}
    for day in sorted(set(landing) - waiting):
        for step in DAY_STEPS:
            inputs = expected_inputs(step, day, landing=landing, lookup=lookup, versions=versions, as_of=as_of)
            if inputs is None:
                stale[day] = (step, "never made")
                break
            reason = staleness(step, lookup(step, day), inputs, versions, damage)
            if reason:
                stale[day] = (step, reason)
                break
    return _with_neighbours(stale, set(landing) - waiting)


def rejection_receipt(day: date, landing: Mapping[date, str], versions: Versions) -> str:
    """What a refused day was made from; it is tried again when this changes."""
    told = [f"{name}={value}" for step in DAY_STEPS for name, value in sorted(versions.ledgers(step, day).items())]
    code = [versions.code[step] for step in DAY_STEPS]
    return "|".join((landing.get(day, ""), *code, versions.key, versions.checks, *told))


def _with_neighbours(stale: dict[date, tuple[str, str]], days: set[date]) -> Plan:
    """Add days whose outcomes read a day that is about to be made anew."""
    out = dict(stale)
    for day, (step, _) in stale.items():
        if step in ("raw", "masked"):
            for offset in range(-LOOK_AHEAD_DAYS, LOOK_BACK_DAYS + 1):
                neighbour = day + timedelta(days=offset)
                if neighbour in days:
                    out.setdefault(neighbour, ("outcomes", "a neighbouring day changed"))
    return Plan(dict(sorted(out.items())))
