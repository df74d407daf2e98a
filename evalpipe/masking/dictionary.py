"""The session dictionary: who was named once in a session is hidden everywhere in it.

Belongs here: collecting terms from spans and finding them again. Does not belong here: how a person is
recognised in the first place. Raises recall for names in later turns more than any model tried.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from evalpipe.masking.engine import DICTIONARY, Engine, Span
from evalpipe.masking.validators.base import ALNUM

_MIN_LATIN, _MIN_ASIAN = 3, 2
_RANK = 4
#: So many names of one session are learnt; what is beyond is hidden where a rule finds it, and nowhere else.
MAX_TERMS = 4_096
#: Above so many terms, those are searched for whose first word a text has.
_FEW = 64
#: What a term begins with: a word of ASCII, or one letter of another script.
_HEAD = re.compile(rb"[a-z0-9]+|[\xc2-\xf4][\x80-\xbf]{1,3}")
#: What may stand between the words of a name: blanks, also such as JSON escapes.
_BLANKS = rb"(?:[ \t\r\n]|\xc2\xa0|\xe3\x80\x80|\\(?:[nrt]|u0020|u00a0)){1,8}"
#: Shorter terms need a free side on both ends; longer ones may touch an underscore.
_UNDERSCORE_FROM = 5

#: Entities whose spans teach the dictionary something.
TEACHES = frozenset(("USERNAME", "PERSON", "EMAIL_ADDRESS", "HOSTNAME"))


class Terms(dict[bytes, tuple[str, str]]):
    """Lower-cased UTF-8 term to (entity, canonical value); it only grows."""

    __slots__ = ("_heads", "_n_indexed")

    def beginning(self, heads: Iterable[bytes]) -> list[bytes]:
        """The terms that begin with one of some words or letters, and those that begin with neither, in order.

        Args:
            heads: As from :func:`_heads`.
        """
        if getattr(self, "_n_indexed", -1) != len(self):
            self._n_indexed = len(self)
            self._heads: dict[bytes, list[tuple[int, bytes]]] = {}
            for place, term in enumerate(self):
                head = _HEAD.match(term)
                self._heads.setdefault(head[0] if head else b"", []).append((place, term))
        found = [pair for head in {b"", *heads} & self._heads.keys() for pair in self._heads[head]]
        return [term for _, term in sorted(found)]


def collect(
    terms: Terms, entity: str, canonical: str, words: Mapping[str, frozenset[str]], surface: bytes = b""
) -> None:
    """Add what one found value teaches to the terms of its session.

    Args:
        terms: Terms so far; changed in place, and capped so that work per session is bounded.
        entity: Entity of the span, or ``USER_ID`` for the session's own user.
        canonical: Canonical value of the span.
        words: Word lists of the rule set.
        surface: The name as written: the search folds ASCII only, so that "Großmann" and "Иван" need
            their own capitals.
    """
    if len(terms) >= MAX_TERMS:
        return
    if entity == "PERSON":
        if _is_person(canonical, words):
            for written in _spellings((surface or canonical.encode()).lower()):
                terms.setdefault(written, ("PERSON", canonical))
        return
    if entity == "HOSTNAME":
        if len(canonical) >= 5 and any(c in "-0123456789" for c in canonical):
            terms.setdefault(canonical.encode(), ("HOSTNAME", canonical))
        return
    name = canonical.split("@")[0].split("+")[0] if "@" in canonical else canonical
    if entity in ("EMAIL_ADDRESS", "USERNAME", "USER_ID") and _is_user(name, words):
        terms.setdefault(name.encode(), ("USERNAME", name))


def learn(terms: Terms, text: bytes | memoryview, spans: Iterable[Span], engine: Engine) -> None:
    """Add what the spans of one text teach to the terms of its session.

    Args:
        terms: Terms so far; changed in place.
        text: The text, UTF-8.
        spans: What the rules found in it.
        engine: The engine that found it.
    """
    for span in spans:
        entity = engine.describe(span.rule)[0]
        if entity in TEACHES and span.rule < DICTIONARY:
            surface = bytes(text[span.start : span.end])
            # A surface with soft hyphens or full-width letters hides a name that comes again in plain ones.
            if surface.isascii() or b"\\" in surface or span.canonical.isascii():
                collect(terms, entity, span.canonical, engine.ruleset.words)
            if not surface.isascii() and b"\\" not in surface:
                collect(terms, entity, span.canonical, engine.ruleset.words, surface)


def extend(text: bytes, spans: list[Span], terms: Terms, engine: Engine, epoch: str) -> list[Span]:
    """The spans of one text with those that its session taught.

    Args:
        text: The text, UTF-8.
        spans: What the rules found in it.
        terms: What the session taught.
        engine: The engine that found it.
        epoch: Epoch of the key in use.
    """
    again = find(text, terms, lambda entity: DICTIONARY + engine.pseudonymised.index(entity))
    return engine.settle(text, spans + again, epoch) if again else spans


def _is_person(name: str, words: Mapping[str, frozenset[str]]) -> bool:
    if not name.isascii() and not any("a" <= c.casefold() <= "z" for c in name):
        return len(name) >= _MIN_ASIAN
    return len(name) >= 4 and name not in words["not_people"] and name not in words["dictionary_stop"]


def _spellings(written: bytes) -> list[bytes]:
    """A name as it may come again: turned round, and in letters that the search, which folds ASCII, does not join."""
    out = [written]
    if not written.isascii():
        try:
            text = written.decode()
        except UnicodeDecodeError:
            return out
        text = unicodedata.normalize("NFC", text).lower()
        forms = [
            form for case in (text, text.upper(), text.title()) for form in (case, unicodedata.normalize("NFD", case))
        ]
        out += [form.encode().lower() for form in forms]
    words = written.split()
    if len(words) == 2 and b"," not in written:
        out.append(b"%b, %b" % (words[1], words[0]))
    return list(dict.fromkeys(out))


def _is_user(name: str, words: Mapping[str, frozenset[str]]) -> bool:
    if not _MIN_LATIN <= len(name) <= 40 or name.isdigit():
        return False
    stops = ("service_accounts", "dictionary_stop", "role_mailboxes", "not_people", "not_names", "placeholders")
    return not any(name in words[stop] for stop in stops)


def find(raw: bytes, terms: Terms, number: Callable[[str], int]) -> list[Span]:
    """Whole-token occurrences of terms in a text, ignoring ASCII case.

    Args:
        raw: UTF-8 text.
        terms: What the session taught.
        number: Rule number of an entity of the dictionary.

    Returns:
        Spans in the order of the terms; they may overlap one another.
    """
    low = raw.lower()
    out: list[Span] = []
    for term in terms.beginning(_heads(low)) if len(terms) > _FEW else terms:
        entity, canonical = terms[term]
        for at, end in _places(low, term):
            if _stands_alone(low, at, end, term):
                out.append(Span(at, end, _RANK, number(entity), canonical))
    return out


def _heads(low: bytes) -> frozenset[bytes]:
    """Words and letters of a text with which a term can begin; behind an escape such as ``\\n`` a word has a letter
    more.
    """
    words = set(_HEAD.findall(low))
    return frozenset(words | {word[1:] for word in words if word[:1] in (b"n", b"t", b"r")})


def _places(low: bytes, term: bytes) -> Iterator[tuple[int, int]]:
    if b" " in term:
        first = term.partition(b" ")[0]
        if first in low:
            yield from (match.span() for match in _spaced(term).finditer(low))
        return
    at = low.find(term)
    while at >= 0:
        yield at, at + len(term)
        at = low.find(term, at + len(term))


@lru_cache(maxsize=MAX_TERMS)
def _spaced(term: bytes) -> re.Pattern[bytes]:
    """A name of several words, whatever blanks stand between them."""
    return re.compile(_BLANKS.join(map(re.escape, term.split())))


def _stands_alone(low: bytes, start: int, end: int, term: bytes) -> bool:
    if term[0] >= 0xE3:
        return True
    before = low[start - 1] if start else 0x20
    after = low[end] if end < len(low) else 0x20
    if before in ALNUM or after in ALNUM or 0xC3 <= after <= 0xC9:
        return _is_after_escape(low, start) and after not in ALNUM
    if before >= 0x80 and start > 1 and 0xC3 <= low[start - 2] <= 0xC9:
        return False
    return len(term) >= _UNDERSCORE_FROM or (before != 0x5F and after != 0x5F)


def _is_after_escape(low: bytes, start: int) -> bool:
    return low[start - 1 : start] in (b"n", b"t", b"r") and low[start - 2 : start - 1] == b"\\"
