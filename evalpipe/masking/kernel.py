"""The slice kernel of layer 2: raw frames in, masked frames and counts out.

Belongs here: field policy over columns, the two passes over a session, the audit counts. Does not
belong here: rules (``engine``), tokens (``plan``). Memory is bounded by the part that is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from evalpipe.contracts import render
from evalpipe.contracts.model import Kind, Sensitivity, Table
from evalpipe.contracts.tables import masked, raw
from evalpipe.masking import dictionary
from evalpipe.masking.decode import is_json, looks_like_json
from evalpipe.masking.engine import DICTIONARY, Span
from evalpipe.masking.plan import Hit, MaskPlan

DEFAULT_POLICY = "mask"


@dataclass(frozen=True, slots=True)
class MaskedPart:
    """A masked part: frames of the ``masked`` contracts."""

    sessions: pl.DataFrame
    steps: pl.DataFrame
    redactions: pl.DataFrame


class _Counts:
    """Audit counts by source, field, entity, subtype and rule: rows, hits, bytes."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, source: str, column: str, hits: list[Hit], times: int = 1) -> None:
        seen = set()
        for hit in hits:
            key = (source, column, hit.entity, hit.subtype, hit.rule_id)
            row = self._rows[key]
            row[0] += 0 if key in seen else times
            row[1] += times
            row[2] += hit.n_bytes * times
            seen.add(key)

    def frame(self, plan: MaskPlan) -> pl.DataFrame:
        names = ("source", "field", "entity", "subtype", "rule_id")
        rows = [
            {
                **dict(zip(names, key, strict=True)),
                "ruleset": plan.ruleset_digest(),
                "key_epoch": plan.key.epoch,
                "n_rows": n[0],
                "n_hits": n[1],
                "n_bytes": n[2],
            }
            for key, n in sorted(self._rows.items())
        ]
        return render.frame(masked.REDACTIONS, rows)


def mask_part(sessions: pl.DataFrame, steps: pl.DataFrame, plan: MaskPlan) -> MaskedPart:
    """Mask whole sessions.

    Args:
        sessions, steps: Frames of ``raw.sessions`` and ``raw.steps``; all steps of a session are in
            the same part, because what one turn teaches is hidden in all.
        plan: Key, rule set and limits.

    Returns:
        Frames of ``masked.sessions``, ``masked.steps`` and ``masked.redactions`` (counts of this part;
        add them up over parts).
    """
    counts = _Counts()
    owners = sessions.select("session_id", "source", pl.col("tenant").fill_null(""))
    steps_context = (
        steps.select("session_id")
        .join(owners, on="session_id", how="left", maintain_order="left")
        .with_columns(pl.col("source", "tenant").fill_null(""))
    )
    terms = _session_terms(sessions, plan)
    texts = _text_columns(steps, raw.STEPS, plan)
    for column in texts:
        column.find(plan, steps_context, terms)
    masked_texts = {column.name: column.rewrite(plan, steps_context, terms, counts) for column in texts}
    out_steps = _apply_policy(steps, raw.STEPS, masked.STEPS, steps_context, plan, counts, masked_texts)
    session_context = sessions.select("session_id", "source", pl.col("tenant").fill_null(""))
    out_sessions = _apply_policy(sessions, raw.SESSIONS, masked.SESSIONS, session_context, plan, counts, {})
    return MaskedPart(
        out_sessions.sort(masked.SESSIONS.sort),
        out_steps.sort(masked.STEPS.sort, maintain_order=True),
        counts.frame(plan),
    )


def mask_files(files: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """``raw.files`` to ``masked.files``: tokens for file and member, no paths."""
    return _apply_policy(files, raw.FILES, masked.FILES, None, plan, _Counts(), {}).sort(masked.FILES.sort)


def mask_quarantine(quarantine: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """``raw.quarantine`` to ``masked.quarantine``: tokens for file, member, session and digest."""
    return _apply_policy(quarantine, raw.QUARANTINE, masked.QUARANTINE, None, plan, _Counts(), {}).sort(
        masked.QUARANTINE.sort
    )


def policy_of(plan: MaskPlan, table: str, column: str) -> str:
    """What happens to a column; a column that no policy names is masked as text."""
    return plan.rules.fields.get(table, {}).get(column, DEFAULT_POLICY)


# ---- text columns: per row, with the session dictionary


def _text_columns(frame: pl.DataFrame, table: Table, plan: MaskPlan) -> list[_TextColumn]:
    return [
        _TextColumn(table.name, c.name, frame[c.name])
        for c in table
        if c.sensitivity is Sensitivity.TEXT and c.kind is Kind.STR and policy_of(plan, table.name, c.name) == "mask"
    ]


class _TextColumn:
    """One text column of a part as bytes, with the spans found in it."""

    def __init__(self, table: str, name: str, series: pl.Series) -> None:
        self.name = name
        self._field = f"{table}.{name}"
        array = series.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        self._array = array.cast(pa.large_string()) if array.type != pa.large_string() else array
        validity, offsets, data = self._array.buffers()
        self._validity = validity
        self._offsets = np.frombuffer(offsets, dtype=np.int64, count=len(self._array) + 1 + self._array.offset)[
            self._array.offset :
        ]
        self._data = memoryview(data) if data is not None else memoryview(b"")
        self._spans: dict[int, list[Span] | None] = {}

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        offsets, data = self._offsets.tolist(), self._data
        for row in np.flatnonzero(np.diff(self._offsets)).tolist():
            yield row, bytes(data[offsets[row] : offsets[row + 1]])

    def find(self, plan: MaskPlan, context: pl.DataFrame, terms: dict[str, dictionary.Terms]) -> None:
        """Pass one: run the rules and learn the session's names."""
        words = plan.rules.words
        session_ids = context["session_id"].to_list()
        for row, spans in plan.find_many(self._rows()):
            self._spans[row] = spans
            for span in spans or ():
                entity = plan.describe(span)[0]
                if entity in dictionary.TEACHES and span.rule < DICTIONARY:
                    dictionary.collect(terms.setdefault(session_ids[row], {}), entity, span.canonical, words)

    def rewrite(
        self, plan: MaskPlan, context: pl.DataFrame, terms: dict[str, dictionary.Terms], counts: _Counts
    ) -> pl.Series:
        """Pass two: add what the session taught, replace, count."""
        session_ids, tenants, sources = (context[c].to_list() for c in ("session_id", "tenant", "source"))
        changed: dict[int, bytes] = {}
        entities = plan.engine.pseudonymised

        def number(entity: str) -> int:
            return DICTIONARY + entities.index(entity)

        for row, text in self._rows():
            known = terms.get(session_ids[row])
            spans = self._spans.get(row, [])
            if spans is not None and known:
                again = dictionary.find(text, known, number)
                if again:
                    spans = plan.engine.settle(text, spans + again, plan.key.epoch)
            if spans:
                changed[row], hits = plan.replace(text, spans, tenants[row])
                counts.add(sources[row], self._field, hits)
            elif spans is None:
                why = "size" if len(text) > plan.withhold_over_bytes else "budget"
                changed[row], hits = plan.withheld(why, len(text), document=looks_like_json(text) and is_json(text))
                counts.add(sources[row], self._field, hits)
        return self._rebuild(changed)

    def _rebuild(self, changed: dict[int, bytes]) -> pl.Series:
        if not changed:
            return pl.Series(self.name, pl.from_arrow(self._array))
        offsets = self._offsets
        lengths = np.diff(offsets)
        pieces: list[bytes | memoryview] = []
        at = int(offsets[0])
        for row in sorted(changed):
            pieces += [self._data[at : int(offsets[row])], changed[row]]
            at = int(offsets[row + 1])
            lengths[row] = len(changed[row])
        pieces.append(self._data[at : int(offsets[-1])])
        new_offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        array = pa.Array.from_buffers(
            pa.large_string(),
            len(self._array),
            [
                self._validity if self._array.offset == 0 else None,
                pa.py_buffer(new_offsets),
                pa.py_buffer(b"".join(pieces)),
            ],
        )
        return pl.Series(self.name, pl.from_arrow(array))


def _session_terms(sessions: pl.DataFrame, plan: MaskPlan) -> dict[str, dictionary.Terms]:
    """What the session rows themselves name: the user and the owner of the working folder."""
    words = plan.rules.words
    out: dict[str, dictionary.Terms] = {}
    for session_id, user_id, workspace in sessions.select("session_id", "user_id", "workspace").iter_rows():
        terms: dictionary.Terms = {}
        if user_id and not _is_opaque(user_id):
            dictionary.collect(terms, "USER_ID", user_id.lower(), words)
        for span in (plan.find(workspace.encode("utf-8", "replace")) or []) if workspace else []:
            dictionary.collect(terms, plan.describe(span)[0], span.canonical, words)
        if terms:
            out[session_id] = terms
    return out


def _is_opaque(user_id: str) -> bool:
    """Whether a user id is a code that no text would contain, such as a UUID or a token."""
    if "@" in user_id:
        return False
    return len(user_id) > 32 or sum(c.isdigit() for c in user_id) > 4 or "_" in user_id[1:3]


# ---- all other columns, by policy


def _apply_policy(
    frame: pl.DataFrame,
    source: Table,
    target: Table,
    context: pl.DataFrame | None,
    plan: MaskPlan,
    counts: _Counts,
    done: dict[str, pl.Series],
) -> pl.DataFrame:
    columns: list[pl.Series] = []
    for name in frame.columns:
        if name not in target:
            continue
        policy = policy_of(plan, source.name, name)
        series = frame[name]
        if name in done:
            series = done[name]
        elif policy.startswith("rekey:"):
            series = _rekey(series, policy.removeprefix("rekey:"), context, plan)
        elif policy == "mask":
            series = _mask_labels(series, f"{source.name}.{name}", context, plan, counts)
        elif policy == "drop":
            continue
        columns.append(series.alias(name))
    return render.conform(target, pl.DataFrame(columns))


def _rekey(series: pl.Series, kind: str, context: pl.DataFrame | None, plan: MaskPlan) -> pl.Series:
    kind, _, scope = kind.partition("/")
    tenants = context["tenant"] if scope and context is not None else pl.repeat("", len(series), eager=True)
    pairs = pl.DataFrame({"value": series, "tenant": tenants})
    distinct = pairs.unique().drop_nulls()
    tokens = [plan.rekey(kind, value, tenant) if value else value for value, tenant in distinct.iter_rows()]
    keyed = distinct.with_columns(pl.Series("token", tokens, dtype=pl.String))
    return pairs.join(keyed, on=["value", "tenant"], how="left", maintain_order="left")["token"]


def _mask_labels(
    series: pl.Series, column: str, context: pl.DataFrame | None, plan: MaskPlan, counts: _Counts
) -> pl.Series:
    """Mask short labels once per distinct value, tenant and source."""
    is_list = isinstance(series.dtype, pl.List)
    if series.dtype != pl.String and not is_list:
        return series
    where = (
        context.select("tenant", "source")
        if context is not None
        else pl.DataFrame({"tenant": [""] * len(series), "source": [""] * len(series)})
    )
    rows = where.with_columns(value=series, row=pl.int_range(len(series)))
    flat = rows.explode("value") if is_list else rows
    distinct = flat.group_by("value", "tenant", "source").len().drop_nulls("value").sort("value", "tenant", "source")
    out = []
    for value, tenant, source, n in distinct.iter_rows():
        masked_value, hits = plan.mask_text(value, tenant)
        counts.add(source, column, hits, n)
        out.append(masked_value)
    tokens = distinct.with_columns(pl.Series("masked", out, dtype=pl.String))
    joined = flat.join(tokens, on=["value", "tenant", "source"], how="left", maintain_order="left")
    if not is_list:
        return joined["masked"]
    if all(a == b for a, b in zip(distinct["value"], out, strict=True)):
        return series
    lists = joined.filter(pl.col("value").is_not_null()).group_by("row", maintain_order=True).agg("masked")
    empty = pl.when(series.is_null()).then(None).otherwise(pl.lit([], dtype=pl.List(pl.String)))
    return (
        rows.select("row")
        .join(lists, on="row", how="left", maintain_order="left")
        .select(pl.coalesce("masked", empty))["masked"]
    )
