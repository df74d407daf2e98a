"""The leak check: proof, made by another path, that a masked slice may be published.

Belongs here: the five tests on staged output and their report. Does not belong here, and must not be
imported here: rules, validators, locators or the engine; an architecture test sees to it. Findings name
field, test and number, never a value.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import polars as pl

from evalpipe.contracts.vectors import labels
from evalpipe.masking import detector
from evalpipe.masking.canaries import CANARY_SOURCE, Canaries, CanaryValue

if TYPE_CHECKING:
    from evalpipe.masking.plan import MaskPlan

_SAMPLE_ROWS = 200
_SAMPLE_BYTES = 32_768
_FILE_CHUNK = 16_777_216
_TEXTS = ("text", "arguments", "output")
_MIN_NEEDLE = 8
_MIN_DIGITS = 9
#: Columns that hold tokens of ids, by table; the letter is the kind.
_REKEYED = {
    "sessions": {
        "session_id": "s",
        "file_id": "f",
        "user_id": "u",
        "tenant": "t",
        "workspace": "w",
        "parent_session_id": "s",
    },
    "steps": {"session_id": "s", "step_id": "e", "parent_id": "e"},
    "files": {"file_id": "f", "member": "m"},
    "quarantine": {"file_id": "f", "member": "m", "session_id": "s", "digest": "d"},
    "vectors": {"session_id": "s"},
    "copies": {"session_id": "s", "file_id": "f", "counted_session_id": "s"},
}
_TOKEN = r"<(?:EMAIL_ADDRESS|PHONE_NUMBER|USERNAME|PERSON|IP_ADDRESS|HOSTNAME):([a-p]{4}):([a-z]+)>"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where, which test, how often. ``is_high`` ones block."""

    field: str
    test: str
    n: int
    is_high: bool = True


@dataclass(frozen=True, slots=True)
class LeakReport:
    """Outcome of the leak check.

    Attributes:
        passed: Whether the slice may be published.
        findings: What is wrong, blocking ones first.
        counts: Rows, fields and tokens looked at, for the record.
        canaries_planted, canaries_counted: Canary values, and how many of them the audit counted.
    """

    passed: bool
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    canaries_planted: int
    canaries_counted: int


def leak_check(
    sessions: pl.DataFrame,
    steps: pl.DataFrame,
    canaries: Canaries,
    redactions: pl.DataFrame,
    plan: MaskPlan,
    staged: Sequence[Path] = (),
    *,
    files: pl.DataFrame,
    quarantine: pl.DataFrame,
    copies: pl.DataFrame,
    vectors: pl.DataFrame | None = None,
) -> LeakReport:
    """Look for what masking should have removed.

    Args:
        sessions, steps: Masked frames, canary rows included.
        canaries: What was planted into them.
        redactions: Audit counts of the same rows.
        plan: The plan they were masked by; gives key epoch, digest and the idempotence test.
        staged: Staged files whose names and raw bytes are searched for canaries.
        files, quarantine, copies: Masked frames, canary rows included.
        vectors: Signals of sessions whose text is not stored.

    Returns:
        The report. Five tests: an independent detector; canaries in any of several transforms, in
        columns and in raw bytes; canaries counted; ids and tokens well formed with the known epoch; a
        second masking changes nothing.
    """
    findings: list[Finding] = []
    needles = _needles(canaries.values)
    tables = {"sessions": sessions, "steps": steps, "files": files, "quarantine": quarantine, "copies": copies}
    counts: Counter[str] = Counter({name: frame.height for name, frame in tables.items()})
    for field, series in _columns(tables):
        counts["columns"] += 1
        findings += [Finding(field, test, n, detector.is_high(test)) for test, n in detector.scan(series).items()]
        findings += _search(field, series, needles)
        findings += _tokens(field, series, plan, counts)
    if vectors is not None and not vectors.is_empty():
        # What is packed is looked at value by value: names of fields beside digests look like secrets.
        words = labels(vectors)
        found = {test: n for test, n in detector.scan(words).items() if detector.is_high(test)}
        findings += [Finding("vectors.signals", test, n) for test, n in found.items()]
        findings += [*_search("vectors.signals", vectors["signals"], needles), *_ids("vectors", vectors)]
    findings += [finding for name, frame in tables.items() for finding in _ids(name, frame)]
    for path in staged:
        findings += _search_file(path, needles)
    findings += _audit_heads(redactions, plan)
    missing, counted = _uncounted(canaries.values, redactions)
    findings += missing
    findings += _short_canaries(canaries.values, sessions, steps)
    findings += _idempotence(steps, plan, counts)
    ordered = sorted(findings, key=lambda f: (not f.is_high, f.field, f.test))
    planted = sum(bool(value.entity) for value in canaries.values)
    return LeakReport(not any(f.is_high for f in ordered), tuple(ordered), dict(counts), planted, counted)


def _columns(tables: Mapping[str, pl.DataFrame]) -> Iterable[tuple[str, pl.Series]]:
    """Every string column: long texts one by one, distinct labels of all other columns together."""
    labels = []
    for table, frame in tables.items():
        for name, series in _strings(frame):
            if name in _TEXTS:
                yield f"{table}.{name}", series
            else:
                labels.append(series.drop_nulls().unique().sort())
    if labels:
        yield "labels", pl.concat(labels).unique().sort()


def _strings(frame: pl.DataFrame) -> Iterable[tuple[str, pl.Series]]:
    for series in frame:
        if series.dtype == pl.String:
            yield series.name, series
        elif series.dtype == pl.List(pl.String):
            yield series.name, series.explode()


def _needles(values: Iterable[CanaryValue]) -> list[str]:
    """Every form that a planted value might survive in: raw, quoted, base64, hex, escaped, digits."""
    out: set[str] = set()
    for canary in values:
        if canary.is_short:
            continue
        value, raw = canary.value, canary.value.encode()
        digits = re.sub(r"\D", "", value)
        out |= {value, quote(value, safe=""), json.dumps(value)[1:-1], raw.hex()}
        out |= {digits} if len(digits) >= _MIN_DIGITS and len(digits) * 2 > len(value) else set()
        for phase in range(3):
            whole = base64.b64encode(b"\0" * phase + raw).decode()
            out.add(whole[phase and phase + 1 : len(whole) - 4])
    # The search ignores case, which covers lower-cased copies.
    return sorted(needle.lower() for needle in out if len(needle) >= _MIN_NEEDLE)


def _search(field: str, series: pl.Series, needles: list[str]) -> list[Finding]:
    if not needles or series.is_empty():
        return []
    n = int(series.str.contains_any(pl.Series([needles]), ascii_case_insensitive=True).sum())
    return [Finding(field, "canary", n)] if n else []


def _search_file(path: Path, needles: list[str]) -> list[Finding]:
    found = _search("file name", pl.Series([path.name]), needles)
    overlap = max(map(len, needles), default=0)
    with path.open("rb") as file:
        tail = b""
        while chunk := file.read(_FILE_CHUNK):
            text = (tail + chunk).decode("latin-1")
            found += _search(f"file bytes {path.suffix}", pl.Series([text]), needles)
            tail = chunk[-overlap:]
    return found


def _short_canaries(values: Iterable[CanaryValue], sessions: pl.DataFrame, steps: pl.DataFrame) -> list[Finding]:
    """Short values are searched for in the canaries' own rows only: elsewhere they may stand by chance."""
    needles = sorted({v.value for v in values if v.is_short})
    own = sessions.filter(pl.col("source") == CANARY_SOURCE)["session_id"]
    rows = steps.filter(pl.col("session_id").is_in(own.implode()))
    return [finding for name, series in _strings(rows) for finding in _search(f"steps.{name}", series, needles)]


def _uncounted(values: Iterable[CanaryValue], redactions: pl.DataFrame) -> tuple[list[Finding], int]:
    want = Counter((v.field, v.entity, v.subtype) for v in values if v.entity)
    counted = (
        redactions.filter(pl.col("source") == CANARY_SOURCE)
        .group_by("field", "entity", "subtype")
        .agg(pl.col("n_hits").sum())
    )
    have = {(field, entity, subtype): n for field, entity, subtype, n in counted.iter_rows()}
    out = [
        Finding(field, f"canary not counted: {entity} {subtype}".strip(), n - have.get((field, entity, subtype), 0))
        for (field, entity, subtype), n in sorted(want.items())
        if have.get((field, entity, subtype), 0) < n
    ]
    return out, sum(min(n, have.get(key, 0)) for key, n in want.items())


def _audit_heads(redactions: pl.DataFrame, plan: MaskPlan) -> list[Finding]:
    wrong = redactions.filter(
        (pl.col("ruleset") != plan.ruleset_digest()) | (pl.col("key_epoch") != plan.key.epoch)
    ).height
    return [Finding("redactions", "another rule set or key", wrong)] if wrong else []


def _ids(table: str, frame: pl.DataFrame) -> list[Finding]:
    out = []
    for name, kind in _REKEYED[table].items():
        values = frame[name].drop_nulls()
        wrong = int((~values.str.contains(rf"\A{kind}_[a-p]{{20}}\z") & (values != "")).sum())
        if wrong:
            out.append(Finding(f"{table}.{name}", "id is no token", wrong))
    return out


def _tokens(field: str, series: pl.Series, plan: MaskPlan, counts: Counter[str]) -> list[Finding]:
    """Pseudonyms carry the known epoch and twenty letters."""
    rows = series.drop_nulls()
    rows = rows.filter(rows.str.contains(_TOKEN))
    if rows.is_empty():
        return []
    tokens = [match.groups() for text in rows.to_list() for match in re.finditer(_TOKEN, text)]
    counts["tokens"] += len(tokens)
    wrong = sum(epoch != plan.key.epoch or not re.fullmatch("[a-p]{20}", letters) for epoch, letters in tokens)
    return [Finding(field, "token is malformed", wrong)] if wrong else []


def _idempotence(steps: pl.DataFrame, plan: MaskPlan, counts: Counter[str]) -> list[Finding]:
    out = []
    for name in _TEXTS:
        rows = steps[name].drop_nulls()
        rows = rows.filter(rows.str.len_bytes() <= _SAMPLE_BYTES)
        sample = rows.gather_every(max(1, rows.len() // _SAMPLE_ROWS)).to_list()
        counts["masked_twice"] += len(sample)
        changed = sum(a != b for a, b in zip(sample, plan.mask_texts(sample), strict=True))
        if changed:
            out.append(Finding(f"steps.{name}", "a second masking changes it", changed))
    return out
