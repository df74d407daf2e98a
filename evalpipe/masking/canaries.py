"""Canaries: sessions of reserved tenants whose personal data and secrets must not survive masking.

Belongs here: planting them, knowing what was planted, taking them out again. Does not belong here:
rules; values come from ``data/masking/canaries*.toml`` alone, so that a lost rule shows.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import raw
from evalpipe.masking import canary_grid as grid
from evalpipe.masking import canary_rows as rows
from evalpipe.masking.canary_rows import CANARY_SOURCE, CANARY_TENANT, OTHER_TENANT
from evalpipe.masking.templates import expand

if TYPE_CHECKING:
    from evalpipe.masking.plan import MaskPlan

_OWNER = "q{a8}{d3}"
_ADDRESS = "q{a6}.{a5}{d3}@{a7}.example.org"
#: What makes masking take a value for a filler; such a draw is drawn again.
_FILLER = re.compile(r"xxx|your|here|test|fake|demo|example|sample|dummy|null|none|redact|placeholder", re.IGNORECASE)

#: From names of a place to the value of a template there.
_Draw = Callable[..., str]


@dataclass(frozen=True, slots=True)
class CanaryValue:
    """One planted value.

    Attributes:
        canary, encoding: Which entry of the data files, and how it was hidden.
        field: Column it was planted in, such as ``steps.output``; counts are expected there.
        entity, subtype: What the audit must count it as; empty for ids, which get a token.
        value: The value itself; never shown.
        is_short: Too short or too common to be searched for in other rows without false alarms.
    """

    canary: str
    encoding: str
    field: str
    entity: str
    subtype: str
    value: str
    is_short: bool = False

    def __repr__(self) -> str:
        return f"CanaryValue({self.canary}, {self.encoding}, {self.field})"


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """A step that holds nothing but a sentence about one person, by its raw session id and position."""

    session_id: str
    seq: int
    person: int
    tenant: str


@dataclass(frozen=True, slots=True)
class Canaries:
    """Raw canary rows of each table of layer 1, and the values in them."""

    sessions: pl.DataFrame
    steps: pl.DataFrame
    files: pl.DataFrame
    quarantine: pl.DataFrame
    copies: pl.DataFrame
    values: tuple[CanaryValue, ...]
    witnesses: tuple[WitnessRow, ...]


def plant_canaries(plan: MaskPlan, day: date) -> Canaries:
    """Make the canary sessions of a slice.

    Args:
        plan: Values follow from its key and rule set, so that they are fresh per slice and the same
            in every run.
        day: Day of the slice; the sessions start on it, and it decides which cells of the grid have
            their turn.

    Returns:
        Frames of the tables of ``raw``, to be masked together with the slice's rows.
    """
    planter = _Planter(plan, day)
    for place in grid.PLACES:
        planter.session(place)
    for tenant in (CANARY_TENANT, OTHER_TENANT):
        planter.witnesses(tenant)
    owner = planter.draw(_OWNER, "files", "owner")
    planter.values += [
        CanaryValue("path", "plain", field, "", "", owner)
        for field in ("files.member", "quarantine.member", "copies.session_id")
    ]
    return Canaries(
        render.frame(raw.SESSIONS, planter.session_rows),
        render.frame(raw.STEPS, planter.step_rows),
        render.frame(raw.FILES, [rows.file(owner)]),
        render.frame(raw.QUARANTINE, [rows.bad_record(owner)]),
        render.frame(raw.COPIES, [rows.copy(owner)]),
        tuple(planter.values),
        tuple(planter.witness_rows),
    )


class _Planter:
    """Rows and values of one day while they are made."""

    def __init__(self, plan: MaskPlan, day: date) -> None:
        self._secret = plan.key.subkey("canary")
        self._where = f"{day.isoformat()}\0{plan.ruleset_digest()}"
        self._day = day
        self._at = datetime.combine(day, time(12), UTC)
        self.values: list[CanaryValue] = []
        self.session_rows: list[dict[str, object]] = []
        self.step_rows: list[dict[str, object]] = []
        self.witness_rows: list[WitnessRow] = []

    def draw(self, template: str, *names: str) -> str:
        """A value that is fresh for this day and place."""
        return self._drawn(template, self._where, *names)

    def _drawn(self, template: str, *names: str) -> str:
        # What the template itself spells, it spells on purpose.
        n_own = len(_FILLER.findall(re.sub(r"\{[^}]*\}", "", template)))
        value, tries = "", 0
        while not value or (len(_FILLER.findall(value)) > n_own and "{" in template and tries < 64):
            seed = hmac.digest(self._secret, "\0".join((*names, str(tries))).encode(), "sha256")
            value, tries = expand(template, seed).text, tries + 1
        return value

    def session(self, place: str) -> None:
        """The session of one place: the cells whose turn it is, and what the session must remember."""
        session_id = f"{CANARY_SOURCE}:{self._day.isoformat()}:{place}"
        steps = [row for number, entry in enumerate(grid.entries()) for row in self._cells(number, entry, place)]
        user = self.draw(_OWNER, place, "owner")
        # Named by the session's own row alone: only the session's dictionary can hide it here.
        steps.append(self._echo("workspace", "USERNAME", "then {} left the room", user))
        self.values.append(CanaryValue("workspace", "plain", "sessions.workspace", "", "", user))
        labels = self._labels("sessions", rows.SESSION_LABELS, place)
        steps.append(dict(self._labels("steps", rows.STEP_LABELS, place)))
        self._add(session_id, CANARY_TENANT, user, steps, labels)

    def _cells(self, number: int, entry: grid.Entry, place: str) -> list[dict[str, object]]:
        out = []
        for cell in grid.turn(number, entry, self._day):
            if cell.place != place:
                continue
            value = self.draw(entry.value, place, entry.id, cell.carrier, cell.encoding)
            carrier = cell.carrier.replace("<~>", "")
            entity, subtype = entry.entity, entry.subtype
            if cell.encoding == "base64":
                text = grid.in_base64(carrier.replace("{}", value), self._day.toordinal() % 3)
                entity, subtype = "SECRET", "base64"
            else:
                text = carrier.replace("{}", grid.hide(value, cell.encoding, entry.hidden))
            field = f"steps.{rows.COLUMN[place]}"
            self.values.append(CanaryValue(entry.id, cell.encoding, field, entity, subtype, value, entry.short))
            out.append(rows.content(place, text))
            if entry.again and cell.encoding != "base64":
                out.append(self._echo(entry.id, entry.entity, entry.again, value))
        return out

    def _echo(self, canary: str, entity: str, carrier: str, value: str) -> dict[str, object]:
        self.values.append(CanaryValue(f"{canary}.again", "plain", "steps.output", entity, "", value))
        return {"output": carrier.replace("{}", value)}

    def _labels(self, table: str, columns: tuple[str, ...], place: str) -> dict[str, str]:
        out = {}
        for column in columns:
            out[column] = self.draw(_ADDRESS, place, table, column)
            self.values.append(
                CanaryValue(f"label.{column}", "plain", f"{table}.{column}", "EMAIL_ADDRESS", "", out[column])
            )
        return out

    def witnesses(self, tenant: str) -> None:
        """The session of one tenant in which everybody is named in all spellings, the same every day."""
        session_id = f"{CANARY_SOURCE}:{self._day.isoformat()}:witnesses:{tenant}"
        steps: list[dict[str, object]] = []
        for person, witness in enumerate(grid.witnesses()):
            value = self._drawn(witness.value, "witness", str(person))
            for spelling in witness.spellings:
                self.values.append(CanaryValue(f"witness.{person}", spelling, "steps.text", witness.entity, "", value))
                self.witness_rows.append(WitnessRow(session_id, len(steps), person, tenant))
                steps.append({"text": witness.carrier.replace("{}", grid.hide(value, spelling, witness.hidden))})
        self._add(session_id, tenant, self.draw(_OWNER, tenant, "owner"), steps, {})

    def _add(
        self, session_id: str, tenant: str, user: str, steps: list[dict[str, object]], labels: dict[str, str]
    ) -> None:
        self.session_rows.append(rows.session(session_id, tenant, user, self._at, len(steps), labels))
        self.step_rows += [rows.step(session_id, n, row, user, self._at) for n, row in enumerate(steps)]


def drop_canaries(sessions: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take the canary rows out of masked (or raw) frames before they are published."""
    planted = sessions.filter(pl.col("source") == CANARY_SOURCE)["session_id"]
    return sessions.filter(pl.col("source") != CANARY_SOURCE), steps.filter(
        ~pl.col("session_id").is_in(planted.implode())
    )


def drop_canary_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Take the canaries' rows out of a table other than sessions and steps; all of them name a source."""
    return frame.filter(pl.col("source") != CANARY_SOURCE)
