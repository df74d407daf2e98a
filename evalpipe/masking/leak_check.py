"""The leak check: proof, made by another path, that a masked slice may be published.

Belongs here: the tests on staged output and their report. Does not belong here, and must not be imported
here: rules, validators, locators or the engine; an architecture test sees to it. Rates over slices are
another module (``leak_rates``), as is the search for planted values (``leak_search``).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import masked
from evalpipe.contracts.vectors import labels
from evalpipe.masking import detector
from evalpipe.masking.canaries import Canaries, CanaryValue
from evalpipe.masking.canary_rows import CANARY_SOURCE
from evalpipe.masking.leak_rates import Rates, rates_of
from evalpipe.masking.leak_search import Finding, left_in, needles, search, staged_places, strings

if TYPE_CHECKING:
    from evalpipe.masking.plan import MaskPlan

_SAMPLE_ROWS = 200
_SAMPLE_BYTES = 32_768
_TEXTS = ("text", "arguments", "output")
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
#: Tests whose findings are about single texts (see ``contain``).
MALFORMED, UNSTABLE = "token is malformed", "a second masking changes it"
_TOKEN = r"<(?:EMAIL_ADDRESS|PHONE_NUMBER|USERNAME|PERSON|IP_ADDRESS|HOSTNAME):([a-p]{4}):([a-z]+)>"


@dataclass(frozen=True, slots=True)
class LeakReport:
    """Outcome of the leak check.

    Attributes:
        passed: Whether the slice may be published.
        findings: What is wrong, blocking ones first.
        counts: Rows, fields and tokens looked at, for the record.
        canaries_planted, canaries_counted: Canary values, and how many of them the audit counted.
        rates: What was hidden in how much text, canaries left out.
        witness: Digest of the tokens of people that are planted on every day; the same in every part
            and on every day under one key and rule set.
    """

    passed: bool
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    canaries_planted: int
    canaries_counted: int
    rates: Rates
    witness: str


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
        The report. Tests: an independent detector; canaries in any of several transforms, in columns
        and in raw bytes; no canary's row in what would be published; canaries counted; ids and tokens
        well formed with the known epoch; one token a person and tenant; the contract of every table;
        rule set and key of the audit counts; a second masking changes nothing.
    """
    findings: list[Finding] = []
    wanted = needles(canaries.values)
    tables = {
        "sessions": sessions,
        "steps": steps,
        "files": files,
        "quarantine": quarantine,
        "copies": copies,
        "redactions": redactions,
    }
    counts: Counter[str] = Counter({name: frame.height for name, frame in tables.items()})
    places: list[tuple[str, pl.Series]] = []
    for field, series in _columns(tables):
        counts["columns"] += 1
        findings += [Finding(field, test, n, detector.is_high(test)) for test, n in detector.scan(series).items()]
        places.append((field, series))
        findings += _tokens(field, series, plan, counts)
    if vectors is not None and not vectors.is_empty():
        # What is packed is looked at value by value: names of fields beside digests look like secrets.
        words = labels(vectors)
        found = {test: n for test, n in detector.scan(words).items() if detector.is_high(test)}
        findings += [Finding("vectors.signals", test, n) for test, n in found.items()]
        findings += _ids("vectors", vectors)
        places.append(("vectors.signals", vectors["signals"]))
    for name, frame in tables.items():
        findings += _contract(name, frame)
        findings += _ids(name, frame)
    planted_ids = frozenset(sessions.filter(pl.col("source") == CANARY_SOURCE)["session_id"])
    for path in staged:
        places += staged_places(path, max(map(len, wanted), default=0))
        findings += left_in(path, planted_ids)
    findings += search(places, wanted)
    findings += _audit_heads(redactions, plan)
    missing, counted = _uncounted(canaries.values, redactions)
    findings += missing
    findings += _short_canaries(canaries.values, sessions, steps)
    wrong, witness = _witnesses(canaries, steps, plan)
    findings += wrong
    findings += _idempotence(steps, plan, counts)
    ordered = sorted(findings, key=lambda f: (not f.is_high, f.field, f.test))
    planted = sum(bool(value.entity) for value in canaries.values)
    return LeakReport(
        passed=not any(f.is_high for f in ordered),
        findings=tuple(ordered),
        counts=dict(counts),
        canaries_planted=planted,
        canaries_counted=counted,
        rates=rates_of(sessions, steps, redactions, CANARY_SOURCE),
        witness=witness,
    )


def _columns(tables: Mapping[str, pl.DataFrame]) -> Iterable[tuple[str, pl.Series]]:
    """Every string column: long texts one by one, distinct labels of all other columns together."""
    labels = []
    for table, frame in tables.items():
        for name, series in strings(frame):
            if name in _TEXTS:
                yield f"{table}.{name}", series
            else:
                labels.append(series.drop_nulls().unique().sort())
    if labels:
        yield "labels", pl.concat(labels).unique().sort()


def _short_canaries(values: Iterable[CanaryValue], sessions: pl.DataFrame, steps: pl.DataFrame) -> list[Finding]:
    """Short values are searched for in the canaries' own rows only: elsewhere they may stand by chance."""
    short = sorted({v.value for v in values if v.is_short})
    own = sessions.filter(pl.col("source") == CANARY_SOURCE)["session_id"]
    rows = steps.filter(pl.col("session_id").is_in(own.implode()))
    return search([(f"steps.{name}", series) for name, series in strings(rows)], short)


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


def _contract(table: str, frame: pl.DataFrame) -> list[Finding]:
    """Columns, types and closed sets of values are those that the contract names, and no others."""
    contract = next(t for t in masked.TABLES if t.name == table)
    out = []
    if dict(frame.schema) != dict(render.polars_schema(contract)):
        out.append(Finding(table, "columns differ from the contract", 1))
    for column in contract:
        if column.values and column.name in frame.columns:
            wrong = int((~frame[column.name].is_in(column.values)).sum())
            if wrong:
                out.append(Finding(f"{table}.{column.name}", "value outside the contract", wrong))
    return out


def _witnesses(canaries: Canaries, steps: pl.DataFrame, plan: MaskPlan) -> tuple[list[Finding], str]:
    """One person has one token in a tenant however it is spelled, and another in another tenant."""
    texts = {(sid, seq): text for sid, seq, text in steps.select("session_id", "seq", "text").iter_rows()}
    seen: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in canaries.witnesses:
        text = texts.get((plan.rekey("s", row.session_id), row.seq)) or ""
        seen[row.person][row.tenant].add(text)
    several = sum(len(said) != 1 for tenants in seen.values() for said in tenants.values())
    shared = sum(len(set[str]().union(*tenants.values())) < len(tenants) for tenants in seen.values())
    out = [Finding("steps.text", "one person has several tokens", several)] if several else []
    out += [Finding("steps.text", "tenants share a token", shared)] if shared else []
    said = sorted(text for tenants in seen.values() for texts_of in tenants.values() for text in texts_of)
    return out, hashlib.blake2b("\0".join(said).encode(), digest_size=8).hexdigest()


def _ids(table: str, frame: pl.DataFrame) -> list[Finding]:
    out = []
    for name, kind in _REKEYED.get(table, {}).items():
        if name not in frame.columns:
            continue  # the contract's own test names it
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
    seen = [malformed_tokens(text, plan.key.epoch) for text in rows.to_list()]
    counts["tokens"] += sum(n for n, _ in seen)
    wrong = sum(n for _, n in seen)
    return [Finding(field, MALFORMED, wrong)] if wrong else []


def malformed_tokens(text: str, epoch: str) -> tuple[int, int]:
    """(pseudonyms, those among them that are of another key or have not twenty letters) of a text."""
    tokens = [match.groups() for match in re.finditer(_TOKEN, text)]
    return len(tokens), sum(own != epoch or not re.fullmatch("[a-p]{20}", letters) for own, letters in tokens)


def _idempotence(steps: pl.DataFrame, plan: MaskPlan, counts: Counter[str]) -> list[Finding]:
    out = []
    for name in _TEXTS:
        rows = steps[name].drop_nulls()
        rows = rows.filter(rows.str.len_bytes() <= _SAMPLE_BYTES)
        sample = rows.gather_every(max(1, rows.len() // _SAMPLE_ROWS)).to_list()
        counts["masked_twice"] += len(sample)
        changed = sum(a != b for a, b in zip(sample, plan.mask_texts(sample), strict=True))
        if changed:
            out.append(Finding(f"steps.{name}", UNSTABLE, changed))
    return out
