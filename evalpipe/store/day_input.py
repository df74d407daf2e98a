"""What a day's slices are made from.

Belongs here: the input of one day as a value, with its receipt. Does not belong here: how it is chosen
of all that was landed (``store/winners.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

from evalpipe.store.manifest import digest_of
from evalpipe.store.parts import Joined
from evalpipe.store.trials import Told
from evalpipe.store.withdrawn import Withdrawn

#: A copy in a part: session and number.
Pick = tuple[str, int]
#: A row of ``raw.copies``, in the order of the contract.
CopyRow = tuple[Any, ...]


@dataclass(frozen=True)
class DayInput:
    """What raw slices of a day are a pure function of.

    Attributes:
        stems: Landing parts of the day of which something counts, in order.
        winners: Copies of sessions that each part contributes.
        told: Outcomes of sessions of the day that other files tell.
        copies: Rows of ``raw.copies``: what does not count, since a session of this day counts for it.
        files: Files whose rows of ``files`` and ``quarantine`` each part contributes.
        n_text_bytes: Size of each part's text, for grouping parts into tasks.
        rows: Rows of each part by table, as landed.
        joined: Sessions of this day that are made of copies in several places, also on other days.
        withdrawn: Sessions of the day that a copy, also one elsewhere, says are withdrawn.
        raw_gone: Parts that have expired: what was made of them lives in the later layers only.
        text_gone: Parts of which the masked text has expired too.
    """

    stems: tuple[str, ...]
    winners: Mapping[str, tuple[Pick, ...]]
    files: Mapping[str, tuple[str, ...]]
    n_text_bytes: Mapping[str, int]
    rows: Mapping[str, Mapping[str, int]]
    copies: tuple[CopyRow, ...] = ()
    joined: tuple[Joined, ...] = ()
    told: tuple[Told, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()
    raw_gone: frozenset[str] = frozenset()
    text_gone: frozenset[str] = frozenset()

    @property
    def parts(self) -> tuple[str, ...]:
        """Every landing part that the day is made from, those of joined sessions on other days included."""
        joined = (stem for item in self.joined for _, stem, _ in item.places)
        return (*self.stems, *joined, *(one.stem for one in self.told))

    def ids_in(self, stems: Set[str]) -> set[str]:
        """Ids of the sessions of the day that lie, whole or in part, in some landing parts."""
        whole = {session_id for stem in stems for session_id, _ in self.winners.get(stem, ())}
        whole |= {one.session_id for one in self.joined if one.lies_in(stems)}
        return whole | {one.session_id for one in self.told if one.stem in stems}

    def live(self) -> DayInput:
        """The same day with those parts only that are still there as logged."""
        if not self.raw_gone:
            return self
        gone = {one.session_id for one in self.told if one.stem in self.raw_gone}
        stems = tuple(stem for stem in self.stems if stem not in self.raw_gone)
        joined = (one for one in self.joined if not one.lies_in(self.raw_gone) and one.session_id not in gone)
        return replace(
            self,
            stems=stems,
            winners={
                stem: tuple(pick for pick in picks if pick[0] not in gone) for stem, picks in self.winners.items()
            },
            joined=tuple(joined),
            told=tuple(one for one in self.told if one.session_id not in gone),
        )

    @cached_property
    def digest(self) -> str:
        """Receipt of the day's landing."""
        # A first copy goes by its session's id alone, as it did before there were others.
        named = {stem: [f"{one}#{copy}" if copy else one for one, copy in self.winners[stem]] for stem in self.stems}
        parts = [[stem, named[stem], self.files[stem]] for stem in self.stems]
        rest: list[Any] = [list(self.copies)] if self.copies else []
        rest += [
            [item.session_id, item.n_messages, item.places, *([item.landed_ids] if item.landed_ids else [])]
            for item in self.joined
        ]
        rest += [["told", *astuple(one)] for one in self.told]
        rest += [["withdrawn", one.session_id] for one in self.withdrawn]
        rest += [["gone", sorted(self.raw_gone), sorted(self.text_gone)]] if self.raw_gone else []
        return digest_of([*parts, *rest])
