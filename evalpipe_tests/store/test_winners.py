"""What counts of all that was landed: whatever the batches, readers and order, each file and session once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.store.day_input import DayInput
from evalpipe.store.entries import Entry, LandedFile, LandedPart
from evalpipe.store.manifest import digest_of
from evalpipe.store.winners import COPY_SCHEMA, choose

DAY = date(2026, 1, 5)
AT = datetime(2026, 1, 5, 10, tzinfo=UTC)
#: Sessions that each file holds, with their messages: files share sessions, some copies are equal.
HELD = {
    "f1": {"s": 3, "t": 1},
    "f2": {"s": 3},
    "f3": {"s": 2, "u": 5},
    "f4": {"t": 1, "u": 5},
    "f5": {"v": 1},
}


@dataclass(frozen=True)
class Batch:
    files: tuple[str, ...]
    version: int
    salt: int


def _entry(batch: Batch) -> tuple[Entry, pl.DataFrame]:
    """What landing makes of a batch: one chunk, which numbers the copies of a session."""
    name = digest_of([batch.files, batch.version, batch.salt])
    held = [(session, n, file) for file in batch.files for session, n in HELD[file].items()]
    rows = {"sessions": len(held), "files": len(batch.files)}
    part = LandedPart(f"{name}-0000", DAY, rows, 1, tuple(sorted(batch.files)))
    files = tuple(LandedFile(file, 1) for file in batch.files)
    copies = pl.DataFrame(
        [
            (
                name,
                DAY,
                part.stem,
                s,
                int(file[1]),
                "r",
                file,
                str(batch.version),
                n,
                f"c{n}",
                None,
                1,
                AT,
                AT,
                True,
                *[None] * 6,
            )
            for s, n, file in held
        ],
        schema={"batch": pl.String(), "day": pl.Date(), "stem": pl.String(), **COPY_SCHEMA},
        orient="row",
    )
    return Entry(name, {"r": str(batch.version)}, DAY, files, (part,)), copies


def _choose(batches: list[Batch]) -> dict[date, DayInput]:
    landed = [_entry(batch) for batch in batches]
    return choose([entry for entry, _ in landed], [copies for _, copies in landed], _not_asked)


def _not_asked(copies: pl.DataFrame) -> pl.DataFrame:
    raise AssertionError(copies.height)


BATCHES = st.lists(
    st.builds(
        Batch,
        st.lists(st.sampled_from(sorted(HELD)), min_size=1, unique=True).map(tuple),
        st.sampled_from([1, 9, 10]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(BATCHES)
def test_every_file_and_every_session_counts_exactly_once(batches: list[Batch]) -> None:
    day = _choose(batches)[DAY]
    landed = {file for batch in batches for file in batch.files}
    assert Counter(file for files in day.files.values() for file in files) == dict.fromkeys(landed, 1)
    sessions = {session for file in landed for session in HELD[file]}
    assert Counter(s for ids in day.winners.values() for s, _ in ids) == dict.fromkeys(sessions, 1)
    # Every copy in a parse that counts is either the session or listed as a copy of it.
    assert sum(map(len, day.winners.values())) + len(day.copies) == sum(len(HELD[file]) for file in landed)
    newest = {file: max(b.version for b in batches if file in b.files) for file in landed}
    version_of = {_entry(b)[0].parts[0].stem: b.version for b in batches}
    assert all(version_of[stem] == newest[file] for stem, files in day.files.items() for file in files)


@given(BATCHES, st.randoms(use_true_random=False))
def test_the_order_of_landing_does_not_matter(batches: list[Batch], random: object) -> None:
    shuffled = list(batches)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _choose(shuffled) == _choose(batches)
