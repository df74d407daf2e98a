"""The masking engine: one text in, spans out; spans in, masked text out.

Belongs here: running rules at hits, merging spans, replacing them, budgets. Does not belong here:
tables, sessions, columns (``kernel``), expressions (data), judgement of values (``validators``).

Idempotent by construction: a changed text is scanned again until nothing changes, and what does not
settle is withheld whole. Fails closed: a text over its budget of bytes or hits is withheld too.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

from evalpipe.masking import locate, tokens, views
from evalpipe.masking.checks import Check, check_of
from evalpipe.masking.decode import TooManyEscapesError, is_json, json_view, looks_like_json
from evalpipe.masking.locate import ANY_PSEUDONYM, ANY_TRICK, SHIFT, AnchorTable, Hint, anchor_table, best_kind, locator
from evalpipe.masking.rules import Ruleset, load_ruleset
from evalpipe.masking.validators.base import Facts

_RANK = {"high": 1, "cue": 2, "shape": 3}
_SHORT = 1_024
_POOL_BYTES = 65_536
_NO_BUDGET = 1 << 62
_NOWHERE, _END = (0, 0), (-1, b"")
_BUDGET_FLOOR = 2_000
_BYTES_PER_HIT = 32
WITHHELD = "WITHHELD"
#: Segments of paths in arguments (``arguments``) are pseudonyms that no rule makes.
PATH = "PATH"
#: Any token, of this key or another.
TOKEN_IN_TEXT = re.compile(r"<[A-Z][A-Z0-9_]*(?::[^<>\s]{1,80}){0,2}>")
#: Rule numbers from here on name no rule of the file: the entity is ``pseudonymised[rule - base]``.
DICTIONARY, FOREIGN, NER = 1 << 20, 1 << 21, 1 << 22
DICTIONARY_ID, FOREIGN_ID, NER_ID = "session.dictionary", "token.foreign", "ner.model"
#: What a model may find, in the order of its rule numbers, and what is done with it.
NER_ENTITIES, NER_ACTIONS = ("PERSON", "LOCATION"), ("pseudonymise", "mask")


class Span(NamedTuple):
    """Bytes to replace, ordered by place; ``rule`` indexes the rule set, ``canonical`` feeds the token."""

    start: int
    end: int
    rank: int
    rule: int
    canonical: str


class Reason(NamedTuple):
    """An accepted hit: bytes of the text, rule number, the anchor that led there and the view it was seen in."""

    start: int
    end: int
    rule: int
    anchor: str
    view: str


class Engine:
    """A rule set, compiled.

    Args:
        ruleset: The rules.
        kind: ``hyperscan`` or ``fallback``; both find the same.
    """

    def __init__(self, ruleset: Ruleset, kind: str) -> None:
        self.ruleset = ruleset
        self.facts = Facts(ruleset.words, ruleset.plans, frozenset(r.entity.encode() for r in ruleset.rules))
        self.table: AnchorTable = anchor_table(ruleset)
        self._locator = locator(self.table, kind)
        self._ranks = [0 if r.entity == "SECRET" else _RANK[r.confidence] for r in ruleset.rules]
        # A start anchor's width differs from anchor to anchor, so a check belongs to a pair of both.
        self._checks: list[list[tuple[int, Check]]] = [
            [(index, check_of(ruleset.rules[index], anchor.pattern, self.facts)) for index in owners]
            for anchor, owners in zip(self.table.anchors, self.table.owners, strict=True)
        ]
        self.pseudonymised = tuple(sorted({r.entity for r in ruleset.rules if r.action == "pseudonymise"} | {PATH}))
        self._names = [(r.entity, r.subtype, r.id, r.action) for r in ruleset.rules]
        masked = {(r.entity, r.subtype) for r in ruleset.rules if r.action == "mask"}
        self._token = tokens.pattern(self.pseudonymised, masked | {(WITHHELD, why) for why in tokens.WITHHELD_REASONS})

        self._foreign_token = tokens.foreign(self.pseudonymised)

    def find(self, raw: bytes, epoch: str) -> list[Span] | None:
        """Everything to mask in one text.

        Args:
            raw: UTF-8 text.
            epoch: Epoch of the key in use. Pseudonyms of another key are values like any other, so
                that logs which were masked elsewhere join among themselves and nowhere else.

        Returns:
            Disjoint spans in order, or ``None`` if the budget of hits is exceeded.
        """
        return self._find(raw, _view(raw), epoch, None)

    def _find(self, raw: bytes, view: bytes, epoch: str, hint: Hint | None) -> list[Span] | None:
        budget = _BUDGET_FLOOR + len(raw) // _BYTES_PER_HIT
        hits = self._locator.locate(view, budget, hint)
        if hits is None:
            return None
        is_document = view is not raw or _is_escaped(raw)
        if not hits and not is_document:
            return []
        spans, is_tricky, has_pseudonyms = self._judge(view, hits)
        if has_pseudonyms and locate.too_many_pseudonyms(raw):
            return None
        looks: list[tuple[bytes, views.Back]] = [(view, views.itself)] if is_tricky else []
        if is_document:
            for data, back in views.strings(raw):
                is_more = self._look(data, back, spans)
                if is_more is None:
                    return None
                looks += [(data, back)] if is_more else []
        try:
            for data, back in looks:
                for _, hidden, inner in views.disguised(data):
                    through = views.through(back, inner)
                    if self._look(hidden, through, spans) is None:
                        return None
        except TooManyEscapesError:
            return None
        if has_pseudonyms:
            spans += self._foreign(raw, epoch)
        return self.settle(raw, spans, epoch) if spans else spans

    def _look(self, data: bytes, back: views.Back, spans: list[Span]) -> bool | None:
        """Add what a view shows; whether it has tricks of its own, or ``None`` if it is over budget."""
        hits = self._locator.locate(data, _BUDGET_FLOOR + len(data) // _BYTES_PER_HIT)
        if hits is None:
            return None
        more, is_tricky, _ = self._judge(data, hits)
        spans += [Span(*back(s.start, s.end), s.rank, s.rule, s.canonical) for s in more if s.start < s.end]
        return is_tricky

    def _foreign(self, raw: bytes, epoch: str) -> list[Span]:
        return [
            Span(m.start(), m.end(), 0, FOREIGN + self.pseudonymised.index(m["entity"].decode()), m.group().decode())
            for m in self._foreign_token.finditer(raw)
            if (own := self._token.fullmatch(m.group())) is None or own["epoch"] != epoch.encode()
        ]

    def find_many(
        self, rows: Iterable[tuple[int, bytes]], epoch: str, limit: int
    ) -> Iterator[tuple[int, list[Span] | None]]:
        """Find in many texts; yields (number, spans) for those that hold something or are over budget.

        Short texts are scanned together first, since a call costs more than their bytes; only those
        that the joint scan hits are looked at alone. A line feed joins them: it satisfies every anchor
        that asks for the beginning of a text, so no hit is lost. A text longer than ``limit`` bytes is
        withheld.
        """
        if self._locator.batch_bytes:
            yield from self._find_batches(rows, epoch, limit)
            return
        pool: list[tuple[int, bytes]] = []
        size = 0
        for number, raw in rows:
            if len(raw) > limit:
                yield number, None
                continue
            if len(raw) > _SHORT or b"\\" in raw:
                spans = self.find(raw, epoch)
                if spans or spans is None:
                    yield number, spans
                continue
            pool.append((number, raw))
            size += len(raw)
            if size > _POOL_BYTES:
                yield from self._find_pooled(pool, epoch)
                pool, size = [], 0
        yield from self._find_pooled(pool, epoch)

    def _find_batches(
        self, rows: Iterable[tuple[int, bytes]], epoch: str, limit: int
    ) -> Iterator[tuple[int, list[Span] | None]]:
        batch: list[tuple[int, bytes]] = []
        size = 0
        for number, raw in chain(rows, [_END]):
            if len(raw) > limit:
                yield number, None
            else:
                batch.append((number, raw))
                size += len(raw)
            if size > self._locator.batch_bytes or number == _END[0]:
                views = [_view(raw) for _, raw in batch]
                hints = self._locator.sieve(views)
                for (at, raw), view, hint in zip(batch, views, hints, strict=True):
                    spans = self._find(raw, view, epoch, hint)
                    if spans or spans is None:
                        yield at, spans
                batch, size = [], 0

    def _find_pooled(self, pool: list[tuple[int, bytes]], epoch: str) -> Iterator[tuple[int, list[Span] | None]]:
        joined = b"\n".join(raw for _, raw in pool)
        hits = self._locator.locate(joined, _NO_BUDGET) or []
        ends = list(accumulate(len(raw) + 1 for _, raw in pool))
        low, trick = (1 << SHIFT) - 1, self.table.trick
        candidates = {bisect_right(ends, (hit >> SHIFT) - 1) for hit in hits if hit & low < trick}
        if any(hit & low >= trick for hit in hits):
            # Tricks and pseudonyms are reported once per scan, so each text of the pool is asked.
            candidates.update(
                at for at, (_, raw) in enumerate(pool) if ANY_TRICK.search(raw) or ANY_PSEUDONYM.search(raw)
            )
        for at in sorted(candidates):
            number, raw = pool[at]
            spans = self.find(raw, epoch)
            if spans or spans is None:
                yield number, spans

    def _judge(self, view: bytes, hits: list[int]) -> tuple[list[Span], bool, bool]:
        checks, ranks, trick, low = self._checks, self._ranks, self.table.trick, (1 << SHIFT) - 1
        spans: list[Span] = []
        covered: dict[int, tuple[int, int]] = {}
        is_tricky = has_pseudonyms = False
        for hit in hits:
            number = hit & low
            if number >= trick:
                is_tricky, has_pseudonyms = is_tricky or number == trick, has_pseudonyms or number > trick
                continue
            end = hit >> SHIFT
            for rule, check in checks[number]:
                # Inside what the rule just took, a further hit is work without gain.
                low_end, high_end = covered.get(rule, _NOWHERE)
                if low_end < end <= high_end:
                    continue
                found = check(view, end)
                if found:
                    spans += [Span(f[0], f[1], ranks[rule], rule, f[2]) for f in found]
                    covered[rule] = found[-1][:2]
        return spans, is_tricky, has_pseudonyms

    def reasons(self, raw: bytes) -> list[Reason]:
        """Every accepted hit of one text, before spans are joined: why a place is masked.

        Args:
            raw: UTF-8 text within the budget of bytes.
        """
        view = _view(raw)
        seen: list[tuple[str, bytes, views.Back]] = [("plain" if view is raw else "json", view, views.itself)]
        seen += [("strings", data, back) for data, back in views.strings(raw)] if _is_escaped(raw) else []
        with suppress(TooManyEscapesError):
            for _, data, back in tuple(seen):
                if ANY_TRICK.search(data):
                    seen += [(name, text, views.through(back, inner)) for name, text, inner in views.disguised(data)]
        out = []
        for name, data, back in seen:
            for hit in self._locator.locate(data, _BUDGET_FLOOR + len(data) // _BYTES_PER_HIT) or ():
                number = hit & ((1 << SHIFT) - 1)
                for rule, check in self._checks[number] if number < self.table.trick else ():
                    anchor = self.table.anchors[number].pattern.decode()
                    out += [Reason(*back(f[0], f[1]), rule, anchor, name) for f in check(data, hit >> SHIFT) or ()]
        return out

    def describe(self, number: int) -> tuple[str, str, str, str]:
        """(entity, subtype, rule id, action) of a span's rule number."""
        if number < DICTIONARY:
            return self._names[number]
        if number >= NER:
            return NER_ENTITIES[number - NER], "", NER_ID, NER_ACTIONS[number - NER]
        base, rule_id = (FOREIGN, FOREIGN_ID) if number >= FOREIGN else (DICTIONARY, DICTIONARY_ID)
        return self.pseudonymised[number - base], "", rule_id, "pseudonymise"

    def settle(self, raw: bytes, spans: list[Span], epoch: str) -> list[Span]:
        """Take the tokens of an earlier run out of spans, and join spans that overlap.

        The joined span takes the name of its best member: secret before checksum before cue before
        shape, then the longest.
        """
        if b"<" in raw:
            own = (None, epoch.encode())
            known = [m.span() for m in self._token.finditer(raw) if m["epoch"] in own]
            if known:
                pieces = [(span, tokens.outside(raw, span.start, span.end, known)) for span in spans]
                spans = [span._replace(start=a, end=b) for span, outside in pieces for a, b in outside]
        spans = sorted(spans)
        out: list[Span] = []
        for span in spans:
            if out and span.start < out[-1].end:
                out[-1] = _join(out[-1], span)
            else:
                out.append(span)
        return out


def _is_escaped(raw: bytes) -> bool:
    """Whether a text is a document with escapes in its strings."""
    return b"\\" in raw and looks_like_json(raw) and is_json(raw)


def _view(raw: bytes) -> bytes:
    return json_view(raw) if _is_escaped(raw) else raw


def _join(a: Span, b: Span) -> Span:
    best = min(a, b, key=lambda s: (s.rank, s.start - s.end, s.rule))
    return Span(min(a.start, b.start), max(a.end, b.end), best.rank, best.rule, best.canonical)


def engine_for(folder: Path, kind: str = "") -> Engine:
    """The compiled engine of a rule-set folder, made once per process and thread."""
    # As text, since paths are slow to compare and this is asked for at every text.
    return _engine(str(folder), kind or best_kind(), threading.get_ident())


@lru_cache(maxsize=8)
def _engine(folder: str, kind: str, thread: int) -> Engine:
    # Keyed by thread, because a locator keeps its hits and its scratch space between calls.
    del thread
    return Engine(load_ruleset(Path(folder)), kind)
