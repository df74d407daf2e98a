"""Withdrawals: raw text at once, and days that keep old slices because a check refuses their input.

Belongs here: emptying the raw text of withdrawn sessions, and their text in the masked slice that a
refused or sealed day keeps, and telling that its later slices must follow. Does not belong here: what a
withdrawal is (``masking/consent.py``), days that are made in the ordinary way (``steps/masked.py``).

A refusal keeps old text published for as long as it lasts. Consent does not wait for that: nothing is
added to such a day, and text is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

import polars as pl

from evalpipe import masking
from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.steps.context import Context
from evalpipe.store.day_input import DayInput
from evalpipe.store.expiry import known_tenants
from evalpipe.store.files import locked
from evalpipe.store.lake import read_part, stage_part
from evalpipe.store.manifest import Manifest, StagedPart
from evalpipe.store.parts import Joined
from evalpipe.store.plan import SIGNALS_READ
from evalpipe.store.rewrite import rewrite_part, rewrite_slice
from evalpipe.store.withdrawn import Withdrawn

#: Entry of a masked manifest's stats: sessions that were emptied after the slice was made.
WITHHELD = "withheld_later"

#: Tables that hold pieces of text, or what is made of it, by step.
_ABOUT = {
    "signals": ("signals.hard", "signals.semantic", "signals.candidates"),
    "outcomes": ("signals.session_outcomes", "signals.session_scores"),
}
_PLACE = ["session_id", "user_id", "tenant", "source", "consent"]


def forget_raw(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> None:
    """Empty the text of withdrawn sessions where it lies as it was logged, landed and sliced, at once.

    Logs that are landed after a withdrawal have none to begin with (``steps/land.py``). A reader of the
    same day in another process may find an old part gone; it tries again in the next run.

    Args:
        context: The open home.
        days: Days of a run.
        inputs: Landing parts of every day.
    """
    is_told = (context.consent["status"] == CONSENT_WITHDRAWN).any()
    for day in days:
        item = inputs[day].live() if day in inputs else None
        if not is_told and not (item is not None and item.withdrawn):
            continue
        places = _places(day, item) if is_told and item is not None else []
        of_place = {place: _forget_landed(context, *place) for place in places}
        gone = [*of_place.values(), *_forget_parts(context, item.joined if item is not None else (), of_place)]
        gone += _forget_copies(context, item.withdrawn if item is not None else ())
        manifest = context.lookup("raw", day)
        if manifest is None or context.lake.damage(manifest):
            continue
        people = context.lake.read("raw.sessions", [manifest], columns=_PLACE)
        ids = pl.concat([masking.withdrawn(people, context.consent), *gone]).unique()
        old = set(context.lake.paths_of(manifest))
        if (new := rewrite_slice(context.lake, manifest, _silencing(ids))) is not None:
            for path in old - set(context.lake.paths_of(new)):
                path.unlink(missing_ok=True)


def _places(day: date, item: DayInput) -> list[tuple[date, str]]:
    """Landed parts that a day is made from, of joined sessions on other days too."""
    return sorted({(day, stem) for stem in item.stems} | {place[:2] for one in item.joined for place in one.places})


def _forget_landed(context: Context, day: date, stem: str) -> pl.Series:
    """Empty the withdrawn text of one landed part, and tell whose sessions these are."""
    sessions = context.landing.path(day, stem, "sessions")
    if not sessions.exists():
        return pl.Series("session_id", [], dtype=pl.String)
    ids = masking.withdrawn(read_part("raw.sessions", sessions, _PLACE), context.consent)
    if not ids.is_empty():
        _empty(context, day, stem, ids)
    return ids


def _forget_parts(
    context: Context, joined: Iterable[Joined], gone: Mapping[tuple[date, str], pl.Series]
) -> Iterator[pl.Series]:
    """Empty the other parts of sessions of which one part is withdrawn: those of a trace may name no user."""
    for one in joined:
        is_gone = [place[:2] in gone and landed_id in gone[place[:2]] for place, landed_id in one.picks]
        if not any(is_gone):
            continue
        for ((day, stem, _), landed_id), is_empty in zip(one.picks, is_gone, strict=True):
            if not is_empty:
                ids = pl.Series("session_id", [landed_id])
                _empty(context, day, stem, ids)
                yield ids


def _forget_copies(context: Context, withdrawn: Sequence[Withdrawn]) -> list[pl.Series]:
    """Empty every copy of sessions of which one says that it is withdrawn; the ids that count, and as landed."""
    by_part: dict[tuple[date, str], set[str]] = {}
    for one in withdrawn:
        for day, stem, landed_id in one.places:
            by_part.setdefault((day, stem), set()).add(landed_id)
    series = [pl.Series("session_id", sorted(ids)) for ids in by_part.values()]
    for (day, stem), ids in zip(by_part, series, strict=True):
        _empty(context, day, stem, ids)
    return [pl.Series("session_id", [one.session_id for one in withdrawn], dtype=pl.String), *series]


def _empty(context: Context, day: date, stem: str, ids: pl.Series) -> None:
    with locked(context.landing.root / ".lock"):
        for name in ("sessions", "steps"):
            path = context.landing.path(day, stem, name)
            if path.exists():
                rewrite_part(path, f"raw.{name}", _silencing(ids))


def _silencing(ids: pl.Series) -> Callable[[str, pl.DataFrame], pl.DataFrame]:
    def change(table: str, rows: pl.DataFrame) -> pl.DataFrame:
        if table == "raw.sessions":
            return masking.without_spans(rows, ids)
        return masking.without_text(rows, ids) if table == "raw.steps" else rows

    return change


def withdrawn_later(context: Context, day: date) -> pl.Series:
    """Sessions of a committed masked slice that still have text, and whose consent is withdrawn now.

    Args:
        context: The open home.
        day: UTC day.

    Returns:
        Their tokens.
    """
    none = pl.Series("session_id", [], dtype=pl.String)
    gone = context.consent.filter(pl.col("status") == CONSENT_WITHDRAWN)
    item = context.landed(day)
    by_log = sorted(context.mask_plan.rekey("s", one.session_id) for one in item.withdrawn) if item is not None else []
    manifest = context.lookup("masked", day)
    if manifest is None or (gone.is_empty() and not by_log) or context.lake.damage(manifest):
        return none
    sessions = context.lake.read("masked.sessions", [manifest], columns=_PLACE)
    kept = sessions.filter(pl.col("consent").fill_null("") != CONSENT_WITHDRAWN)
    # A user's token depends on the tenant, and a row without one holds in every tenant.
    raw = context.lookup("raw", day)
    known = (
        context.lake.read("raw.sessions", [raw], columns=["tenant"])["tenant"]
        if raw and not context.lake.damage(raw)
        else none
    )
    tenants = sorted({tenant or "" for tenant in [*known, *known_tenants(context.landing), *gone["tenant"], ""]})
    users, sources = set[str](), set[tuple[str, str | None]]()
    rekey = context.mask_plan.rekey
    for user, tenant, source in gone.select("user_id", "tenant", "source").iter_rows():
        if user is not None:
            places = [tenant] if tenant is not None else tenants
            users |= {token for place in places for token in context.mask_plan.users(user, place)}
        else:
            sources.add((source, None if tenant is None else rekey("t", tenant)))
    is_user = pl.col("user_id").is_in(sorted(users))
    is_source = pl.any_horizontal(
        pl.lit(value=False),
        *(
            (pl.col("source") == source) & (pl.lit(value=True) if tenant is None else pl.col("tenant") == tenant)
            for source, tenant in sorted(sources, key=str)
        ),
    )
    return kept.filter(is_user | is_source | pl.col("session_id").is_in(by_log))["session_id"]


def withdraw(context: Context, days: Iterable[date]) -> dict[date, Manifest]:
    """Take the text of withdrawn sessions out of the masked slices that refused days keep.

    Args:
        context: The open home.
        days: Days whose masked slice is not made anew.

    Returns:
        The slices that were committed. They keep the inputs of the old ones, so that a day is as
        stale as before and is made in full once its input is no longer refused.
    """
    made: dict[date, Manifest] = {}
    for day in days:
        manifest = context.lookup("masked", day)
        gone = withdrawn_later(context, day)
        if manifest is None or gone.is_empty():
            continue
        n_before = int(manifest.stats.get(WITHHELD, 0))
        made[day] = context.lake.commit(
            manifest.key,
            _emptied(context, manifest, gone),
            inputs=manifest.inputs,
            code_version=manifest.code_version,
            stats={**manifest.stats, WITHHELD: n_before + gone.len()},
        )
    return made


def must_follow(context: Context, day: date) -> bool:
    """Whether the masked slice of a day was emptied in part, so that signals and outcomes follow it."""
    manifest = context.lookup("masked", day)
    return manifest is not None and WITHHELD in manifest.stats


def drop_withdrawn(context: Context, step: str, days: Iterable[date]) -> dict[date, Manifest]:
    """Drop the signals or outcomes of withdrawn sessions from the slices that refused days keep.

    Args:
        context: The open home.
        step: ``signals`` or ``outcomes``.
        days: Days whose slice is not made anew.

    Returns:
        The slices that were committed.
    """
    made: dict[date, Manifest] = {}
    for day in days:
        manifest, masked = context.lookup(step, day), context.lookup("masked", day)
        if manifest is None or masked is None or context.lake.damage(manifest) or context.lake.damage(masked):
            continue
        sessions = context.lake.read("masked.sessions", [masked], columns=["session_id", "consent"])
        gone = sessions.filter(pl.col("consent") == CONSENT_WITHDRAWN)["session_id"].implode()
        parts = list(zip(manifest.parts, context.lake.paths_of(manifest), strict=True))
        about = {part: read_part(part.table, path) for part, path in parts if part.table in _ABOUT[step]}
        if not any(rows["session_id"].is_in(gone).any() for rows in about.values()):
            continue
        folder = context.lake.staging_folder(manifest.key)
        kept = [(p, about[p].filter(~pl.col("session_id").is_in(gone)) if p in about else read_part(p.table, path))
                for p, path in parts]  # fmt: skip
        staged = [stage_part(p.table, rows, folder, f"{n:05d}") for n, (p, rows) in enumerate(kept)]
        made[day] = context.lake.commit(
            manifest.key, staged, inputs=manifest.inputs, code_version=manifest.code_version, stats=manifest.stats
        )
    return made


def is_due(context: Context, day: date, refused_at: str) -> bool:
    """Whether a refused day must be looked at again, although its input would be refused again.

    Args:
        context: The open home.
        day: A refused day.
        refused_at: Step that refused it.
    """
    if not withdrawn_later(context, day).is_empty():
        return True
    masked, signals = context.lookup("masked", day), context.lookup("signals", day)
    if masked is None or signals is None or WITHHELD not in masked.stats or refused_at not in ("raw", "masked"):
        return False
    return signals.inputs.get("masked") != masked.content_of(*SIGNALS_READ)


def _emptied(context: Context, manifest: Manifest, gone: pl.Series) -> list[StagedPart]:
    """All parts of a masked slice, the text of some sessions emptied."""
    folder = context.lake.staging_folder(manifest.key)
    is_gone = pl.col("session_id").is_in(gone.implode())
    staged = []
    for index, (part, path) in enumerate(zip(manifest.parts, context.lake.paths_of(manifest), strict=True)):
        rows = read_part(part.table, path)
        if part.table == "masked.steps":
            rows = masking.without_text(rows, gone)
        elif part.table == "masked.vectors":
            rows = rows.filter(~is_gone)
        elif part.table == "masked.sessions":
            told = pl.when(is_gone).then(pl.lit(CONSENT_WITHDRAWN)).otherwise("consent")
            rows = rows.with_columns(consent=told)
        staged.append(stage_part(part.table, rows, folder, f"{index:05d}"))
    return staged
