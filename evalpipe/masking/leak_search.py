"""Searching for planted values: in columns, in raw bytes, in whatever else leaves a worker.

Belongs here: the forms that a value may survive in, and looking for them. Does not belong here: what
else may be wrong with a slice (``leak_check``); rules, which this must not import. Findings name field,
test and number, never a value.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import polars as pl

from evalpipe.masking import detector
from evalpipe.masking.canaries import Canaries, CanaryValue
from evalpipe.masking.canary_rows import CANARY_SOURCE

_FILE_CHUNK = 16_777_216
_MIN_NEEDLE = 8
_MIN_DIGITS = 9
#: A form is looked for by its beginning: the search costs by the length of what it looks for.
_MAX_NEEDLE = 32
_HEARD_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where, which test, how often. ``is_high`` ones block."""

    field: str
    test: str
    n: int
    is_high: bool = True


def needles(values: Iterable[CanaryValue]) -> list[str]:
    """Every form that a planted value might survive in: raw, quoted, base64, hex, escaped, digits.

    The search ignores case, which covers lower-cased copies.
    """
    out: set[str] = set()
    for canary in values:
        if canary.is_short:
            continue
        value, raw = canary.value, canary.value.encode()
        digits = re.sub(r"\D", "", value)
        out |= {value, quote(value, safe=""), json.dumps(value)[1:-1], raw.hex()}
        out.add("".join(f"\\u{ord(c):04x}" for c in value[:_MIN_NEEDLE]))
        out |= {digits} if len(digits) >= _MIN_DIGITS and len(digits) * 2 > len(value) else set()
        for phase in range(3):
            whole = base64.b64encode(b"\0" * phase + raw).decode()
            out.add(whole[phase and phase + 1 : len(whole) - 4])
    return sorted({_cut(needle).lower() for needle in out if len(needle) >= _MIN_NEEDLE})


def _cut(needle: str) -> str:
    return needle if needle.startswith("\\u") else needle[:_MAX_NEEDLE]


def strings(frame: pl.DataFrame) -> Iterator[tuple[str, pl.Series]]:
    """Every column of text, lists flattened."""
    for series in frame:
        if series.dtype == pl.String:
            yield series.name, series
        elif series.dtype == pl.List(pl.String):
            yield series.name, series.explode()


def search(places: Sequence[tuple[str, pl.Series]], wanted: list[str]) -> list[Finding]:
    """Values that hold one of several texts, in any case.

    Args:
        places: Name and values of each place; all are searched at once, since making the search ready
            costs as much as searching megabytes.
        wanted: From :func:`needles`.
    """
    filled = [(name, series.drop_nulls().alias("")) for name, series in places]
    filled = [(name, series) for name, series in filled if not series.is_empty()]
    if not wanted or not filled:
        return []
    every = pl.concat([series for _, series in filled], rechunk=False)
    hits = every.str.contains_any(pl.Series([wanted]), ascii_case_insensitive=True)
    out, at = [], 0
    for name, series in filled:
        n = int(hits.slice(at, len(series)).sum())
        at += len(series)
        out += [Finding(name, "canary", n)] if n else []
    return out


def staged_places(path: Path, overlap: int) -> Iterator[tuple[str, pl.Series]]:
    """Name and raw bytes of a staged file, as places to search.

    Args:
        path: The file.
        overlap: Length of the longest text that is searched for, which may span two chunks.
    """
    yield "file name", pl.Series([path.name])
    with path.open("rb") as file:
        tail = b""
        while chunk := file.read(_FILE_CHUNK):
            yield f"file bytes {path.suffix}", pl.Series([(tail + chunk).decode("latin-1")])
            tail = chunk[-overlap:]


def left_in(path: Path, planted: frozenset[str]) -> list[Finding]:
    """Rows of canaries in a staged Parquet file, which were to be taken out.

    Args:
        path: The file.
        planted: Masked ids of the canaries' sessions.
    """
    if path.suffix != ".parquet":
        return []
    names = pl.read_parquet_schema(path)
    left = pl.lit(value=False)
    if "source" in names:
        left |= pl.col("source") == CANARY_SOURCE
    if "session_id" in names:
        left |= pl.col("session_id").is_in(sorted(planted))
    rows = int(pl.scan_parquet(path).select(left.sum()).collect().item())
    return [Finding("file rows", "canary rows are left in", rows)] if rows else []


def check_words(canaries: Canaries, words: dict[str, str]) -> list[Finding]:
    """Search what leaves a worker beside its tables: log messages, statistics.

    Args:
        canaries: What was planted.
        words: Text by the name of its place.

    Returns:
        A finding for every place that holds a planted value or what the independent detector calls
        a leak.
    """
    places = [(place, pl.Series([text])) for place, text in words.items() if text]
    out = search(places, needles(canaries.values))
    for place, series in places:
        out += [Finding(place, test, n) for test, n in detector.scan(series).items() if detector.is_high(test)]
    return out


@contextmanager
def overheard() -> Iterator[list[str]]:
    """Listen to every log message of this process while text is worked on.

    Yields:
        The messages so far, the first four megabytes of them.
    """
    heard: list[str] = []
    size = 0

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            nonlocal size
            message = self.format(record)
            size += len(message)
            if size <= _HEARD_BYTES:
                heard.append(message)

    ear, root = Ear(), logging.getLogger()
    root.addHandler(ear)
    try:
        yield heard
    finally:
        root.removeHandler(ear)
