"""The slice kernel of layer 2: raw frames in, masked frames and counts out.

Belongs here: field policy over columns, the two passes over a session, the audit counts. Does not
belong here: rules (``engine``), tokens (``plan``). Memory is bounded by the part that is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from evalpipe.contracts.model import Kind, Sensitivity, Table
from evalpipe.contracts.tables import masked, raw
from evalpipe.masking import arguments, dictionary
from evalpipe.masking.decode import is_json, looks_like_json
from evalpipe.masking.engine import NER_ID, Span
from evalpipe.masking.ner import NerPass
from evalpipe.masking.plan import Hit, MaskPlan
from evalpipe.masking.policy import Counts, apply_policy, policy_of

#: The column of ``raw.steps`` that holds prose; arguments and outputs are code, logs and data.
_PROSE = "text"


@dataclass(frozen=True, slots=True)
class MaskedPart:
    """A masked part: frames of the ``masked`` contracts."""

    sessions: pl.DataFrame
    steps: pl.DataFrame
    redactions: pl.DataFrame


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
    counts = Counts()
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
    if plan.ner:
        _ask_model(texts, plan, steps_context, counts)
    masked_texts = {column.name: column.rewrite(plan, steps_context, terms, counts) for column in texts}
    named = steps.select("name").with_columns(masked_texts.values())
    named = arguments.apply(named, steps_context, plan, counts.add)
    masked_texts = {name: named[name] for name in masked_texts}
    out_steps = apply_policy(steps, raw.STEPS, masked.STEPS, steps_context, plan, counts, masked_texts)
    session_context = sessions.select("session_id", "source", pl.col("tenant").fill_null(""))
    out_sessions = apply_policy(sessions, raw.SESSIONS, masked.SESSIONS, session_context, plan, counts, {})
    return MaskedPart(
        out_sessions.sort(masked.SESSIONS.sort),
        out_steps.sort(masked.STEPS.sort, maintain_order=True),
        counts.frame(plan),
    )


def mask_files(files: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """``raw.files`` to ``masked.files``: tokens for file and member, no paths."""
    return apply_policy(files, raw.FILES, masked.FILES, None, plan, Counts(), {}).sort(masked.FILES.sort)


def mask_quarantine(quarantine: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """``raw.quarantine`` to ``masked.quarantine``: tokens for file, member, session and digest."""
    return apply_policy(quarantine, raw.QUARANTINE, masked.QUARANTINE, None, plan, Counts(), {}).sort(
        masked.QUARANTINE.sort
    )


def mask_copies(copies: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """``raw.copies`` to ``masked.copies``: tokens for sessions and file."""
    return apply_policy(copies, raw.COPIES, masked.COPIES, None, plan, Counts(), {}).sort(masked.COPIES.sort)


def mask_vectors(vectors: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """``raw.vectors`` to ``masked.vectors``: tokens for sessions; a token stays as it is."""
    return apply_policy(vectors, raw.VECTORS, masked.VECTORS, None, plan, Counts(), {}).sort(masked.VECTORS.sort)


# ---- text columns: per row, with the session dictionary


def _text_columns(frame: pl.DataFrame, table: Table, plan: MaskPlan) -> list[_TextColumn]:
    return [
        _TextColumn(table.name, c.name, frame[c.name])
        for c in table
        if c.sensitivity is Sensitivity.TEXT and c.kind is Kind.STR and policy_of(plan, table.name, c.name) == "mask"
    ]


def _ask_model(columns: list[_TextColumn], plan: MaskPlan, context: pl.DataFrame, counts: Counts) -> None:
    """Let the model read what people and agents say, behind the rules."""
    asked = NerPass(plan.ner)
    for column in columns:
        if column.name == _PROSE:
            column.ask(asked, plan)
    if asked.n_unread:
        source = context["source"].min() or ""
        counts.add(str(source), f"{raw.STEPS.name}.{_PROSE}", [Hit("UNREAD", "ner-budget", NER_ID, asked.n_unread)])


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
        session_ids, engine, offsets = context["session_id"].to_list(), plan.engine, self._offsets
        for row, spans in plan.find_many(self._rows()):
            self._spans[row] = spans
            if spans:
                text = self._data[int(offsets[row]) : int(offsets[row + 1])]
                dictionary.learn(terms.setdefault(session_ids[row], dictionary.Terms()), text, spans, engine)

    def ask(self, asked: NerPass, plan: MaskPlan) -> None:
        """Between the passes: add what a model finds; a text that is withheld is not shown to it."""
        spans = self._spans
        rows = [(row, text, spans.get(row) or []) for row, text in self._rows() if spans.get(row, []) is not None]
        texts = {row: text for row, text, _ in rows}
        for row, found in asked.find(rows).items():
            spans[row] = plan.engine.settle(texts[row], (spans.get(row) or []) + found, plan.key.epoch)

    def rewrite(
        self, plan: MaskPlan, context: pl.DataFrame, terms: dict[str, dictionary.Terms], counts: Counts
    ) -> pl.Series:
        """Pass two: add what the session taught, replace, count."""
        session_ids, tenants, sources = (context[c].to_list() for c in ("session_id", "tenant", "source"))
        changed: dict[int, bytes] = {}
        for row, text in self._rows():
            known = terms.get(session_ids[row])
            spans = self._spans.get(row, [])
            if spans is not None and known:
                spans = dictionary.extend(text, spans, known, plan.engine, plan.key.epoch)
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
        terms = dictionary.Terms()
        if user_id and not is_opaque(user_id):
            dictionary.collect(terms, "USER_ID", user_id.lower(), words)
        for span in (plan.find(workspace.encode("utf-8", "replace")) or []) if workspace else []:
            dictionary.collect(terms, plan.engine.describe(span.rule)[0], span.canonical, words)
        if terms:
            out[session_id] = terms
    return out


def is_opaque(user_id: str) -> bool:
    """Whether a user id is a code that no text would contain, such as a UUID or a token."""
    if "@" in user_id:
        return False
    return len(user_id) > 32 or sum(c.isdigit() for c in user_id) > 4 or "_" in user_id[1:3]
