"""A masking plan: key, rule set and limits, as a worker process needs them.

Belongs here: what a slice is masked with, and masking one text by it. Does not belong here: columns
and sessions (``kernel``). A plan is picklable; compiled rules are made once per process behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from evalpipe.masking.decode import is_json, looks_like_json
from evalpipe.masking.engine import FOREIGN, WITHHELD, Engine, Span, engine_for
from evalpipe.masking.keys import TOKEN_LETTERS, MaskingKey
from evalpipe.masking.people import canonical
from evalpipe.masking.rules import Ruleset, default_dir, load_ruleset
from evalpipe.masking.trace import Edit, original

_MAX_ROUNDS = 4
_REKEYED = re.compile(rf"[a-z]_[a-p]{{{TOKEN_LETTERS}}}")
_EARLIER = re.compile(rf"<[A-Z][A-Z0-9_]*:([a-p]{{4}}):([a-p]{{{TOKEN_LETTERS}}})>")


@dataclass(frozen=True, slots=True)
class Hit:
    """One replaced span, as the audit counts it."""

    entity: str
    subtype: str
    rule_id: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class MaskPlan:
    """What text is masked with.

    Attributes:
        key: The masking key; pseudonyms carry its epoch.
        ruleset: Folder of the rule set.
        withhold_over_bytes: A longer field is withheld whole.
        ner: Name of a model that reads prose after the rules (``ner``); empty for none.
        locator: ``hyperscan``, ``fallback``, or empty for the better one that is installed.
    """

    key: MaskingKey
    ruleset: Path = field(default_factory=default_dir)
    withhold_over_bytes: int = 8_000_000
    locator: str = ""
    ner: str = ""

    @property
    def engine(self) -> Engine:
        """The compiled rule set."""
        return engine_for(self.ruleset, self.locator)

    @property
    def rules(self) -> Ruleset:
        """The loaded rule set."""
        return load_ruleset(self.ruleset)

    def ruleset_digest(self) -> str:
        """Digest of the rule set, as it stands in the audit counts."""
        return self.rules.digest

    def rekey(self, kind: str, value: str, tenant: str = "") -> str:
        """The token of an id: ``<kind>_`` and twenty letters; one for all spellings of a user. A token stays."""
        if _REKEYED.fullmatch(value) and value.startswith(kind):
            return value
        return f"{kind}_{_letters(self.key, tenant, 'id.' + kind, canonical(value) if kind == 'u' else value)}"

    def users(self, user_id: str, tenant: str = "") -> list[str]:
        """Tokens under which a lake may hold a user: the one of :meth:`rekey`, and the one of the id as it is spelled,
        which stands in slices that were made while every spelling had its own.
        """
        token = self.rekey("u", user_id, tenant)
        if token == user_id:
            return [token]
        return list(dict.fromkeys((token, f"u_{_letters(self.key, tenant, 'id.u', user_id)}")))

    def find(self, raw: bytes) -> list[Span] | None:
        """Spans to mask in one text, or ``None`` if it must be withheld."""
        if len(raw) > self.withhold_over_bytes:
            return None
        return self.engine.find(raw, self.key.epoch)

    def find_many(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, list[Span] | None]]:
        """(number, spans) of the texts that hold something; ``None`` for those to withhold."""
        return self.engine.find_many(rows, self.key.epoch, self.withhold_over_bytes)

    def replace(self, raw: bytes, spans: list[Span], tenant: str) -> tuple[bytes, list[Hit]]:
        """Put tokens in place of spans, and go on until a further scan finds nothing.

        Args:
            raw: The text.
            spans: Disjoint spans in order, from :meth:`find` and the session dictionary.
            tenant: Tenant of the session; pseudonyms of two tenants never join.

        Returns:
            The masked text and what was replaced. JSON stays JSON: a token in a number's place is
            quoted, and a document that would break is withheld.
        """
        masked, hits, _ = self.replace_traced(raw, spans, tenant)
        return masked, hits

    def replace_traced(self, raw: bytes, spans: list[Span], tenant: str) -> tuple[bytes, list[Hit], list[Edit] | None]:
        """As :meth:`replace`, with what became of which bytes of the text; ``None`` if it is withheld."""
        document = looks_like_json(raw) and is_json(raw)
        hits: list[Hit] = []
        rounds: list[list[Edit]] = []
        done: list[Span] | None = spans
        for _ in range(_MAX_ROUNDS):
            if not done:
                break
            out, edits = self._once(raw, done, tenant, document=document)
            if edits is None:
                return *self.withheld("json", len(raw), document=True), None
            raw = out
            rounds.append(edits)
            hits += [Hit(*self.engine.describe(edit.rule)[:3], edit.end - edit.start) for edit in edits]
            done = self.engine.find(raw, self.key.epoch)
        if done or done is None:
            return *self.withheld("unstable", len(raw), document=document), None
        return raw, hits, original(rounds)

    def _once(self, raw: bytes, spans: list[Span], tenant: str, *, document: bool) -> tuple[bytes, list[Edit] | None]:
        if document:
            spans = [_off_escape(raw, span) for span in spans]
        out, edits = self._join(raw, spans, tenant, quote_numbers=False)
        if document and not is_json(out):
            out, edits = self._join(raw, spans, tenant, quote_numbers=True)
            if not is_json(out):
                return out, None
        return out, edits

    def _join(self, raw: bytes, spans: list[Span], tenant: str, *, quote_numbers: bool) -> tuple[bytes, list[Edit]]:
        pieces: list[bytes] = []
        edits: list[Edit] = []
        at = 0
        for span in spans:
            token = self.token(span, tenant)
            if quote_numbers and _is_bare(raw, span):
                token = b'"' + token + b'"'
            pieces += [raw[at : span.start], token]
            edits.append(Edit(span.start, span.end, token, span.rule))
            at = span.end
        pieces.append(raw[at:])
        return b"".join(pieces), edits

    def token(self, span: Span, tenant: str) -> bytes:
        """What stands in a span's place."""
        entity, subtype, _, action = self.engine.describe(span.rule)
        if action == "mask":
            return f"<{entity}:{subtype}>".encode() if subtype else f"<{entity}>".encode()
        if span.rule >= FOREIGN and (own := _EARLIER.fullmatch(span.canonical)) and own[1] in self.key.earlier:
            # A pseudonym of our own before a rotation is the same person after it.
            return f"<{entity}:{self.key.epoch}:{self.key.forward(own[1], own[2])}>".encode()
        return self.pseudonym(entity, span.canonical, tenant).encode()

    def pseudonym(self, entity: str, canonical: str, tenant: str) -> str:
        """The pseudonym of a value in its canonical form."""
        return f"<{entity}:{self.key.epoch}:{_letters(self.key, tenant, entity, canonical)}>"

    def withheld(self, why: str, n_bytes: int, *, document: bool) -> tuple[bytes, list[Hit]]:
        """The token of a field that is not shown at all, and its count."""
        token = f"<{WITHHELD}:{why}>".encode()
        return (b'"' + token + b'"' if document else token), [Hit(WITHHELD, why, "engine", n_bytes)]

    def mask_text(self, text: str, tenant: str = "") -> tuple[str, list[Hit]]:
        """Mask one text without a session around it."""
        raw = text.encode("utf-8", "replace")
        spans = self.find(raw)
        if spans is None:
            document = looks_like_json(raw) and is_json(raw)
            token, hits = self.withheld(
                "size" if len(raw) > self.withhold_over_bytes else "budget", len(raw), document=document
            )
            return token.decode(), hits
        if not spans:
            return text, []
        masked, hits = self.replace(raw, spans, tenant)
        return masked.decode("utf-8", "replace"), hits

    def mask_texts(self, texts: Iterable[str]) -> list[str]:
        """Mask texts without sessions; the leak check uses it to see that nothing changes twice."""
        return [self.mask_text(text)[0] for text in texts]


def _is_bare(raw: bytes, span: Span) -> bool:
    """Whether a span stands where a JSON number stands."""
    before = raw[max(0, span.start - 64) : span.start].rstrip()[-1:]
    after = raw[span.end : span.end + 64].lstrip()[:1]
    return before in (b":", b",", b"[") and after in (b",", b"}", b"]")


def _off_escape(raw: bytes, span: Span) -> Span:
    """Move a span's start behind the JSON escape that it would cut, so that the document stays one."""
    head = raw[max(0, span.start - 64) : span.start]
    if (len(head) - len(head.rstrip(b"\\"))) % 2 == 0:
        return span
    return span._replace(start=min(span.end, span.start + (5 if raw[span.start : span.start + 1] == b"u" else 1)))


@lru_cache(maxsize=16_384)
def _letters(key: MaskingKey, tenant: str, entity: str, canonical: str) -> str:
    return key.letters(tenant, entity, canonical)
