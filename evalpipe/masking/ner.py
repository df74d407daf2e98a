"""Names and places by a model: opt-in, behind the rules, on prose only.

Belongs here: what a model is asked, in pieces that overlap and within a budget of bytes, and what
becomes of its answer. Does not belong here: any model (``ner_spacy``, or another package's entry point
in the group ``evalpipe.ner``), rules.

Fails closed: an exception, a malformed answer or a model that does not come back stops the slice, which
keeps its old version. A text beyond the budget is counted as unread, never skipped in silence.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.engine import NER, NER_ENTITIES, Span
from evalpipe.masking.ner_spacy import SpacyFinder
from evalpipe.masking.trace import characters

ENTRY_POINTS = "evalpipe.ner"
CHUNK_CHARACTERS, OVERLAP_CHARACTERS = 2_000, 200
#: Text of one part of a slice that a model reads; models are thousands of times slower than rules.
BUDGET_BYTES = 4_000_000
TIMEOUT_SECONDS = 120.0
_BATCH = 32
T = TypeVar("T")
_RANK = 5
#: Code, paths, addresses of the web and tokens hold no names that a model could tell.
_NO_PROSE = re.compile(
    r"```.{0,20000}?(?:```|\Z)|`[^`\n]{1,400}`|[A-Za-z]{2,8}://\S{1,2000}"
    r"|(?:[A-Za-z]:)?(?:[/\\][\w.~@-]{1,80}){1,40}|<[A-Z_]{3,30}[^<>]{0,60}>",
    re.DOTALL,
)


def _spacy() -> type[SpacyFinder]:
    return SpacyFinder


#: Adapters that evalpipe brings; each imports its library when it is asked for.
_OWN: dict[str, Callable[[], Any]] = {"spacy": _spacy}


class NameFinder(Protocol):
    """A model of names.

    Attributes:
        version: Goes into the code version of a slice: another version masks anew.
    """

    version: str

    def detect(self, texts: Sequence[str], lang: str) -> Sequence[Sequence[tuple[int, int, str]]]:
        """(start, end, entity) in characters for every text; entities are PERSON and LOCATION.

        Args:
            texts: Pieces of prose, at most :data:`CHUNK_CHARACTERS` long.
            lang: Language code, empty where it is not known.
        """
        ...


@lru_cache(maxsize=4)
def finder(name: str) -> NameFinder:
    """The model of a name: that of an entry point, with what follows a colon as its argument.

    Args:
        name: Such as ``spacy:en_core_web_sm``.

    Raises:
        EvalpipeError: ``NER_UNUSABLE``.
    """
    group, _, argument = name.partition(":")
    makers = {entry.name: entry.load for entry in entry_points(group=ENTRY_POINTS)} | _OWN
    if group not in makers:
        known = ", ".join(sorted(makers)) or "none"
        raise EvalpipeError("NER_UNUSABLE", f"no model is called so; installed: {known}.", where=name)
    try:
        made: NameFinder = makers[group]()(argument)
        is_whole = isinstance(made.version, str) and callable(made.detect)
    except Exception as error:  # noqa: BLE001 - whatever a foreign package raises
        raise EvalpipeError("NER_UNUSABLE", f"it cannot be loaded: {type(error).__name__}.", where=name) from None
    if not is_whole:
        raise EvalpipeError("NER_UNUSABLE", "it has no version and detect.", where=name)
    return made


def code_version(name: str) -> str:
    """Name and version of a model as a part of a slice's code version; empty for no model."""
    return f"{name}@{finder(name).version}" if name else ""


@dataclass(slots=True)
class NerPass:
    """One pass over the prose of a part.

    Attributes:
        name: Name of the model.
        budget: Bytes that may still be read.
        timeout: Seconds that one batch may take.
        n_unread: Bytes that were not read.
    """

    name: str
    budget: int = BUDGET_BYTES
    timeout: float = TIMEOUT_SECONDS
    n_unread: int = 0
    _known: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)

    def find(self, rows: Iterable[tuple[int, bytes, list[Span]]], lang: str = "") -> dict[int, list[Span]]:
        """Names and places in texts.

        Args:
            rows: (number, UTF-8 text, spans of the rules); what rules found is not shown to the model.
            lang: Language code, if all texts share one.

        Returns:
            Spans by number, in bytes; they may overlap one another.

        Raises:
            EvalpipeError: ``NER_FAILED``; nothing was masked with half an answer.
        """
        texts = {number: _prose(raw, spans) for number, raw, spans in rows}
        cut = {number: _pieces(bare) for number, (_, bare) in texts.items()}
        self._ask(dict.fromkeys(piece for pieces in cut.values() for _, piece in pieces), lang)
        out: dict[int, list[Span]] = {}
        for number, pieces in cut.items():
            found = {(at + a, at + b, e) for at, piece in pieces for a, b, e in self._known.get(piece, ())}
            if found:
                out[number] = list(_spans(texts[number][0], sorted(found)))
        return out

    def _ask(self, pieces: Iterable[str], lang: str) -> None:
        batch: list[str] = []
        for piece in pieces:
            size = len(piece.encode())
            if piece in self._known:
                continue
            if size > self.budget:
                self.n_unread += size
                continue
            self.budget -= size
            batch.append(piece)
            if len(batch) == _BATCH:
                self._run(batch, lang)
                batch = []
        if batch:
            self._run(batch, lang)

    def _run(self, batch: list[str], lang: str) -> None:
        model = finder(self.name)
        answers = _within(self.timeout, lambda: [list(a) for a in model.detect(batch, lang)], self.name)
        if len(answers) != len(batch):
            raise EvalpipeError("NER_FAILED", "the model answered for another number of texts.", where=self.name)
        for piece, answer in zip(batch, answers, strict=True):
            self._known[piece] = [_checked(place, piece, self.name) for place in answer if place[2] in NER_ENTITIES]


def _within(seconds: float, work: Callable[[], T], name: str) -> T:
    """Run work on a thread that nobody waits for any longer than that."""
    done: list[T] = []
    failed: list[str] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 - a message may quote the text, so only its type is told
            failed.append(type(error).__name__)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        what = f"the model raised {failed[0]}." if failed else f"the model did not answer within {seconds:g} s."
        raise EvalpipeError("NER_FAILED", what, where=name)
    return done[0]


def _checked(place: tuple[int, int, str], piece: str, name: str) -> tuple[int, int, str]:
    start, end, entity = place
    if not 0 <= start < end <= len(piece):
        raise EvalpipeError("NER_FAILED", "the model named a place outside of its text.", where=name)
    return start, end, entity


def _prose(raw: bytes, spans: list[Span]) -> tuple[str, str]:
    """The text, and the text with everything blanked that is no prose, character for character."""
    text = raw.decode("utf-8", "replace")
    bare = list(text)
    offsets = characters(raw, [offset for span in spans for offset in (span.start, span.end)])
    for start, end in zip(offsets[::2], offsets[1::2], strict=True):
        bare[start:end] = " " * (end - start)
    return text, _NO_PROSE.sub(lambda found: " " * len(found[0]), "".join(bare))


def _pieces(text: str) -> list[tuple[int, str]]:
    step = CHUNK_CHARACTERS - OVERLAP_CHARACTERS
    pieces = [(at, text[at : at + CHUNK_CHARACTERS]) for at in range(0, max(1, len(text) - OVERLAP_CHARACTERS), step)]
    return [(at, piece) for at, piece in pieces if any(c.isalpha() for c in piece)]


def _spans(text: str, places: Iterable[tuple[int, int, str]]) -> Iterator[Span]:
    """Places in characters as spans in bytes; places are in order."""
    at = n_bytes = 0
    for start, end, entity in places:
        n_bytes += len(text[at:start].encode())
        at = start
        name = text[start:end]
        number = NER + NER_ENTITIES.index(entity)
        yield Span(n_bytes, n_bytes + len(name.encode()), _RANK, number, " ".join(name.casefold().split()))
