"""What of a home is about one person: sessions with all their copies, files of nobody else, results.

Belongs here: finding it, and the record from which an erasure that was killed goes on. Does not belong
here: taking it away (``steps/erase.py``). The record holds tokens only, and is deleted at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.raw import COPIES
from evalpipe.masking.people import canonical
from evalpipe.masking.tombstones import IN_RECORD, Subject
from evalpipe.settings import Settings
from evalpipe.steps.context import Context
from evalpipe.steps.people import RAW, raw_sessions
from evalpipe.store.expiry import known_tenants
from evalpipe.store.manifest import STEP_TABLES, Manifest, SliceKey
from evalpipe.store.plan import LOOK_AHEAD_DAYS, LOOK_BACK_DAYS


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasure takes away, by the tokens of the lake.

    Attributes:
        sessions: Tokens of sessions.
        users: Tokens of the person.
        files: Tokens of files that hold sessions of nobody else.
        analyses: Analyses that counted one of the sessions.
        scorecards: Scorecards with the analysis that each is of; ``None`` where that is replaced already.
        days: Days to make anew: they were as they would be, and so are they again.
        raw_sessions: Ids as logged, for the tombstones; never written down.
    """

    sessions: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    analyses: tuple[SliceKey, ...] = ()
    scorecards: tuple[tuple[SliceKey, SliceKey | None], ...] = ()
    days: tuple[date, ...] = ()
    raw_sessions: frozenset[str] = field(default=frozenset(), repr=False)

    def to_json(self, tombstones: str) -> str:
        """Canonical JSON, without ids as logged.

        Args:
            tombstones: JSON of the tombstones that the erasure makes.
        """
        return json.dumps(
            {
                IN_RECORD: json.loads(tombstones),
                "sessions": sorted(self.sessions),
                "users": sorted(self.users),
                "files": sorted(self.files),
                "analyses": [_key_json(key) for key in self.analyses],
                "scorecards": [[_key_json(a), b and _key_json(b)] for a, b in self.scorecards],
                "days": [day.isoformat() for day in self.days],
            }
        )

    @staticmethod
    def from_json(text: str) -> Erasure:
        """Read back what :meth:`to_json` gave.

        Raises:
            ValueError, KeyError, TypeError: It is not what was written.
        """
        raw = json.loads(text)
        sessions, users, files = (frozenset(raw[name]) for name in ("sessions", "users", "files"))
        cards = tuple((_key_of(a), b and _key_of(b)) for a, b in raw["scorecards"])
        days = tuple(map(date.fromisoformat, raw["days"]))
        return Erasure(sessions, users, files, tuple(map(_key_of, raw["analyses"])), cards, days)


def _key_json(key: SliceKey) -> list[object]:
    return [key.step, key.day.isoformat(), list(key.variant)]


def _key_of(raw: list[object]) -> SliceKey:
    step, day, variant = raw
    assert isinstance(variant, list)
    return SliceKey(str(step), date.fromisoformat(str(day)), tuple(map(str, variant)))


def record_path(settings: Settings) -> Path:
    """Where an erasure that was begun is recorded; in the folder that is closed to others."""
    return settings.erasure_record


def pending(context: Context) -> Erasure | None:
    """The erasure that was begun and not ended, if there is one.

    Raises:
        EvalpipeError: ``HOME_DAMAGED``.
    """
    path = record_path(context.settings)
    try:
        return Erasure.from_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AssertionError):
        fix = "Delete it, and run the erasure again."
        raise EvalpipeError("HOME_DAMAGED", "a begun erasure cannot be read.", where=str(path), fix=fix) from None


def scope_of(context: Context, subject: Subject) -> Erasure:
    """Everything of a home that is about a person.

    A session is the person's with all its copies, also those that another exporter logged without a
    user, and with the sessions that it started and that name nobody.

    Args:
        context: The open home.
        subject: Whom.
    """
    rekey = context.mask_plan.rekey
    raw = raw_sessions(context)
    raw_ids = _closure(raw, _matching(context, subject, raw), _raw_links(context))
    users = _user_tokens(context, subject, raw)
    tokens = {rekey("s", session_id) for session_id in raw_ids}
    tokens = _later_sessions(context, subject, users, tokens)
    files = _sole_files(context, tokens)
    touched = _touched(context, tokens)
    days = {m.key.day for m in touched}
    fresh = days - set(context.plan().stale)
    near = {date.fromordinal(d.toordinal() + n) for d in fresh for n in range(-LOOK_AHEAD_DAYS, LOOK_BACK_DAYS + 1)}
    analyses = _analyses(context, touched)
    return Erasure(
        sessions=frozenset(tokens),
        users=frozenset(users),
        files=frozenset(files),
        analyses=tuple(m.key for m in analyses),
        scorecards=_scorecards(context, analyses, days),
        days=tuple(sorted(fresh | (near - set(context.plan().stale)))),
        raw_sessions=frozenset(raw_ids),
    )


def _matching(context: Context, subject: Subject, raw: pl.DataFrame) -> set[str]:
    return {
        session_id
        for session_id, user_id, tenant, source, _ in raw.iter_rows()
        if subject.matches(user_id, tenant, source, context.mask_plan)
    }


def _raw_links(context: Context) -> list[tuple[str, str]]:
    columns = [column.name for column in COPIES.columns]
    own, counted = columns.index("session_id"), columns.index("counted_session_id")
    return [(row[own], row[counted]) for item in context.landing.day_inputs().values() for row in item.copies]


def _closure(sessions: pl.DataFrame, found: set[str], links: Iterable[tuple[str, str]]) -> set[str]:
    """Sessions with their copies and the nameless ones that they started, until there are no more."""
    named = dict[str, set[str]]()
    parents: list[tuple[str, str]] = []
    for session_id, user_id, parent in sessions.select("session_id", "user_id", "parent_session_id").iter_rows():
        named.setdefault(session_id, set())
        if user_id is not None:
            named[session_id].add(user_id)
        elif parent is not None:
            parents.append((session_id, parent))
    both = {*links, *((b, a) for a, b in links), *parents}
    size = -1
    while size != len(found):
        size = len(found)
        # Somebody else's session is not followed, whatever it is a copy of.
        found = found | {a for a, b in both if b in found and not named.get(a)}
    return found


def _user_tokens(context: Context, subject: Subject, raw: pl.DataFrame) -> set[str]:
    users = context.mask_plan.users
    if subject.is_token:
        return {subject.user}
    # What is not there as logged any more is found by the token that its spelling would have had.
    spellings = {subject.user, canonical(subject.user)}
    tenants = (
        {"", *raw["tenant"].drop_nulls(), *known_tenants(context.landing)}
        if subject.tenant is None
        else {subject.tenant}
    )
    people = raw.select("user_id", "tenant").unique().drop_nulls("user_id")
    mine = {(u, t or "") for u, t in people.iter_rows() if canonical(u) == canonical(subject.user)}
    wanted = mine | {(u, t) for u in spellings for t in tenants}
    return {token for u, t in wanted if subject.tenant in (None, t) for token in users(u, t)}


def _later_sessions(context: Context, subject: Subject, users: set[str], tokens: set[str]) -> set[str]:
    """Tokens of sessions in the later layers whose text as logged may be gone."""
    masked = context.lake.manifests("masked")
    sessions = context.lake.read("masked.sessions", masked, RAW)
    is_source = pl.lit(value=True) if subject.source is None else pl.col("source") == subject.source
    mine = sessions.filter(pl.col("user_id").is_in(sorted(users)) & is_source)["session_id"]
    copies = context.lake.read("masked.copies", masked, ["session_id", "counted_session_id"])
    return _closure(sessions, tokens | set(mine), list(copies.iter_rows()))


def _sole_files(context: Context, tokens: set[str]) -> set[str]:
    """Tokens of files of which every session is among these."""
    rekey = context.mask_plan.rekey
    holds: dict[str, bool] = {}
    for file_id, session_id in context.landing.sessions_of_files().iter_rows():
        token = rekey("f", file_id)
        holds[token] = holds.get(token, True) and rekey("s", session_id) in tokens
    return {token for token, is_sole in holds.items() if is_sole}


def _touched(context: Context, tokens: set[str]) -> list[Manifest]:
    """Slices of any variant that hold one of the sessions."""
    wanted, rekey = sorted(tokens), context.mask_plan.rekey
    out = []
    for step, tables in STEP_TABLES.items():
        named = [name for name in tables if "session_id" in TABLES[name]]
        for manifest in context.lake.manifests(step):
            ids = {
                i for name in named for i in context.lake.read(name, [manifest], ["session_id"])["session_id"].unique()
            }
            ids = {rekey("s", i) for i in ids} if step == "raw" else ids
            if ids.intersection(wanted):
                out.append(manifest)
    return out


def _analyses(context: Context, touched: Iterable[Manifest]) -> list[Manifest]:
    """Analyses that were made from an outcome slice that holds one of the sessions."""
    outcomes = {(m.key.variant, f"outcomes {m.key.day}") for m in touched if m.key.step == "outcomes"}
    return [
        m for m in context.lake.manifests("analysis") if any((m.key.variant[:1], name) in outcomes for name in m.inputs)
    ]


def _scorecards(
    context: Context, analyses: list[Manifest], days: set[date]
) -> tuple[tuple[SliceKey, SliceKey | None], ...]:
    by_content = {m.content: m.key for m in analyses}
    others = {m.content for m in context.lake.manifests("analysis")} - set(by_content)
    out: list[tuple[SliceKey, SliceKey | None]] = []
    for card in context.lake.manifests("scorecard"):
        source = by_content.get(card.inputs["analysis"])
        # One whose analysis is replaced already may have counted anybody up to its day.
        is_of_old = card.inputs["analysis"] not in others and bool(days) and card.key.day >= min(days)
        if source is not None or is_of_old:
            out.append((card.key, source))
    return tuple(out)
