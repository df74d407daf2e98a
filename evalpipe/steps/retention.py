"""Retention: what a home keeps for so many days after landing, and then no longer.

Belongs here: the periods, what is due, and taking it away in every layer. Does not belong here: what a
day looks like afterwards (``steps/seal.py``), people who ask to be erased (``steps/erase.py``).

Days are made before their text goes, so that nothing expires that was not looked at, but for days that
a check refuses: a period that waits for a rule to be mended is none. What went is gone at once, old
parts that readers may still use included, so nobody else has the home open meanwhile.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.settings import Settings
from evalpipe.steps import reviews, seal
from evalpipe.steps.context import Context, open_context, today
from evalpipe.steps.masked import make_masked
from evalpipe.steps.raw import make_raw
from evalpipe.steps.signals import make_outcomes, make_signals
from evalpipe.store import expiry
from evalpipe.store.entries import RAW, SNIPPETS, TEXT
from evalpipe.store.landing import Landing
from evalpipe.store.rewrite import private_write, rewrite_slice, sweep

_ORDER = (RAW, TEXT, SNIPPETS)


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What expired.

    Attributes:
        n_batches: Landed batches of which something expired.
        days: Days that are sealed by it, in order.
        n_deleted: Files deleted that nothing names any more.
    """

    n_batches: int
    days: tuple[date, ...]
    n_deleted: int


def periods(settings: Settings) -> dict[str, int]:
    """Days for which each thing is kept; what is not named is kept.

    Args:
        settings: Settings; ``retention`` names a file in place of the shipped one.

    Raises:
        EvalpipeError: ``SETTINGS_INVALID``.
    """
    path = Path(settings.retention) if settings.retention else data_dir() / "retention.toml"
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise EvalpipeError("FILE_FAILED", error.strerror or type(error).__name__, where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EvalpipeError("SETTINGS_INVALID", str(error), where=str(path)) from None
    tables = {name: value for name, value in found.items() if name != "version"}
    if found.get("version") != 1 or set(tables) - set(_ORDER):
        raise _invalid(f"it must have version = 1 and tables of {', '.join(_ORDER)} only", path)
    out: dict[str, int] = {}
    for name in _ORDER:
        if name in tables:
            out[name] = _days_of(tables[name], name, path)
    for before, after in pairwise(_ORDER):
        if after in out and out.get(before, sys.maxsize) > out[after]:
            raise _invalid(f"{after} cannot go before {before}, which it is made from", path)
    return out


def _days_of(table: Any, name: str, path: Path) -> int:
    days = table.get("days") if isinstance(table, dict) and set(table) == {"days"} else None
    if not isinstance(days, int) or isinstance(days, bool) or days < 1:
        raise _invalid(f"[{name}] must hold days, a whole number of at least 1", path)
    return days


def _invalid(what: str, path: Path) -> EvalpipeError:
    return EvalpipeError("SETTINGS_INVALID", what, where=str(path))


def _record(settings: Settings) -> Path:
    """Stands there while an expiry is under way, so that one that was killed is gone on with."""
    return settings.lake / "raw" / "_retention.json"


def is_due(settings: Settings, on: date | None = None) -> bool:
    """Whether something has to expire; looks at the index only.

    Args:
        settings: Settings of a home.
        on: UTC day; today by default.
    """
    landing = Landing(settings.landing, settings.lake / "raw" / "_staging")
    is_begun = _record(settings).exists() or expiry.is_left_behind(landing)
    return is_begun or bool(expiry.due(landing, periods(settings), on or today()))


def enforce(settings: Settings, on: date | None = None) -> RetentionResult | None:
    """Take away what has expired, or find that nothing has; waits for those who have the home open.

    Args:
        settings: Settings of a home.
        on: UTC day; today by default.
    """
    if not is_due(settings, on):
        return None
    with open_context(settings, alone=True) as context:
        return retain(context, on or today())


def retain(context: Context, on: date) -> RetentionResult:
    """Take away what has expired from a home that nobody else has open.

    Args:
        context: The open home.
        on: UTC day.
    """
    inputs = context.landing.day_inputs()
    expiring = expiry.due(context.landing, periods(context.settings), on)
    concerned = {p.day for e in context.landing.entries() if e.batch in expiring for p in e.parts if p.day <= on}
    _make(context, sorted(concerned & set(context.plan(inputs).stale)))
    private_write(_record(context.settings), "{}")
    expiry.expire(context.landing, expiring)
    inputs = context.landing.day_inputs()
    sealed = sorted(day for day, item in inputs.items() if item.raw_gone and day <= on)
    _blank_snippets(context)
    _make(context, sorted(set(sealed) & set(context.plan(inputs).stale)))
    _strip_held(context, sealed)
    n_deleted = sweep(context.lake, context.landing)
    _record(context.settings).unlink()
    return RetentionResult(len(expiring), tuple(sorted(concerned)), n_deleted)


def _make(context: Context, days: list[date]) -> None:
    inputs = context.landing.day_inputs()
    for make in (make_raw, make_masked, make_signals, make_outcomes):
        make(context, days, inputs)


def _strip_held(context: Context, sealed: list[date]) -> None:
    """Take expired rows and text out of slices that are not made anew: refused days, days out of reach."""
    inputs = context.landing.day_inputs()
    for day in sealed:
        item = inputs[day]
        for step in ("raw", "masked"):
            manifest = context.lookup(step, day)
            if manifest is not None and context.lake.damage(manifest) is None:
                ids = item.ids_in(item.raw_gone if step == "raw" else item.text_gone)
                gone = sorted(ids if step == "raw" else {context.mask_plan.rekey("s", one) for one in ids})
                rewrite_slice(context.lake, manifest, _stripping(gone))


def _stripping(gone: list[str]) -> Callable[[str, pl.DataFrame], pl.DataFrame]:
    def change(table: str, rows: pl.DataFrame) -> pl.DataFrame:
        if table in ("raw.sessions", "raw.steps", "raw.vectors"):
            return rows.filter(~pl.col("session_id").is_in(gone))
        if table == "masked.steps":
            is_gone = pl.col("session_id").is_in(gone)
            return rows.with_columns(
                pl.when(~is_gone).then(name).alias(name) for name in ("text", "arguments", "output")
            )
        return rows

    return change


def _blank_snippets(context: Context) -> None:
    """Blank the snippets of sessions that have had theirs for long enough, under every criteria."""
    rekey = context.mask_plan.rekey
    gone_stems = {p.stem for e in context.landing.entries() if SNIPPETS in e.expired for p in e.parts}
    inputs = context.landing.day_inputs()
    by_day = {
        day: sorted(rekey("s", session_id) for session_id in item.ids_in(gone_stems)) for day, item in inputs.items()
    }

    def blank(gone: list[str]) -> Callable[[str, pl.DataFrame], pl.DataFrame]:
        def change(table: str, rows: pl.DataFrame) -> pl.DataFrame:
            if "snippet" not in rows.columns:
                return rows
            is_gone = pl.col("session_id").is_in(gone)
            # What a correction names is text like its snippet; null says that it cannot be read.
            named = [name for name in ("old_value", "new_value") if name in rows.columns]
            return rows.with_columns(
                pl.when(is_gone).then(pl.lit("")).otherwise("snippet").alias("snippet"),
                *(pl.when(~is_gone).then(name).alias(name) for name in named),
            )

        return change

    reviews.without_notes(context.lake, {session for gone in by_day.values() for session in gone})
    for manifest in context.lake.manifests("signals"):
        if gone := by_day.get(manifest.key.day):
            rewrite_slice(context.lake, manifest, blank(gone))


def sealed_days(context: Context) -> tuple[list[date], list[date]]:
    """Days whose text has expired, and those of them that lack a slice that the versions in force ask for."""
    inputs = context.landing.day_inputs()
    sealed = sorted(day for day, item in inputs.items() if item.raw_gone)
    return sealed, seal.out_of_reach(context, sealed, inputs)
