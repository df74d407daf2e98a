"""What a correction overrides: the value that is rejected, the one that is wanted, and whose doing it was.

Belongs here: reading both values (frames are data, ``overrides.toml``), finding the rejected one in what the
agent did since the last turn, and what follows: a turn that rejects the user's own value is a change of mind
and goes to review, one that rejects what the agent just wrote is a correction whatever its words. Does not
belong here: wording of corrections (``data/patterns/<lang>``), episodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import SEMANTIC
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.signals import rulefiles
from evalpipe.signals.ids import cuts_token
from evalpipe.signals.patterns import folded
from evalpipe.signals.roles import EXTRACTOR
from evalpipe.signals.semantic import NEGATIVE, POSITIVE, Turn, make_row
from evalpipe.signals.text import fold, prose_positions

RULE = "structure.override"
#: Characters of one agent step that are looked through for a value.
_STEP_CHARS = 20_000
_QUOTES = "`\"'“”‘’«»"
_ACTS = ("agent", "model", "tool", "graph")
#: A turn, the spans of (old, new) in its masked text, and that of the frame.
_Named = tuple["Turn", tuple[tuple[int, int] | None, ...], tuple[int, int]]
_COLUMNS = ("session_id", "seq", "turn", "text", "lang", "prev_turn_seq", "prose", "is_plain")


@dataclass(frozen=True, slots=True)
class Frame:
    """One way to name values: ``order`` names the groups, "old" the rejected one, "new" the wanted one."""

    id: str
    lang: str
    order: tuple[str, ...]
    promotes: bool
    needs: tuple[str, ...]
    any: re.Pattern[str]
    examples: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Spans of the values in the text that they were read in; null where none is named."""

    old: tuple[int, int] | None
    new: tuple[int, int] | None
    span: tuple[int, int]
    promotes: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """The shipped frames and what surrounds them."""

    frames: Mapping[str, tuple[Frame, ...]]
    stop: Mapping[str, frozenset[str]]
    opener: str
    own: str
    forbids: re.Pattern[str]
    cues: tuple[str, ...]
    head_chars: int
    own_value_confidence: float
    promoted_confidence: float


@lru_cache(maxsize=1)
def rules() -> Rules:
    """Rows of ``overrides.toml``."""
    data = rulefiles.load("overrides.toml")
    frames: dict[str, list[Frame]] = {}
    for row in data["frame"]:
        pattern = rulefiles.to_python(folded(rulefiles.expand(row["any"], data["macros"])))
        promotes = row.get("promotes", True)
        needs = tuple(fold(word) for word in row.get("needs", ()))
        order = tuple(row["order"].split())
        frame = Frame(row["id"], row["lang"], order, promotes, needs, pattern, tuple(row["examples"]))
        frames.setdefault(frame.lang, []).append(frame)
    return Rules(
        {lang: tuple(own) for lang, own in frames.items()},
        {lang: frozenset(map(fold, words)) for lang, words in data["stop"].items()},
        rulefiles.to_rust(rulefiles.any_of([folded(text) for text in data["opener"]["any"]])),
        rulefiles.to_rust(rulefiles.any_of([folded(text) for text in data["own"]["any"]])),
        rulefiles.to_python(folded(data["forbids"]["any"])),
        tuple(fold(word) for word in data["cues"]["words"]),
        data["head_chars"], data["own_value_confidence"], data["promoted_confidence"],
    )  # fmt: skip


def values(prose: str, lang: str) -> Values | None:
    """The values that a turn names.

    Args:
        prose: Folded prose of the turn.
        lang: Its language.

    Returns:
        Spans in the prose, of the first frame that names words that can be values; null without one.
    """
    known = rules()
    stop = known.stop.get(lang, frozenset())
    head = prose[: known.head_chars]
    for frame in known.frames.get(lang, ()):
        if frame.needs and not any(word in head for word in frame.needs):
            continue
        for match in frame.any.finditer(head):
            spans = [match.span(i) for i in range(1, match.re.groups + 1) if match[i] is not None]
            named = {name: _bare(head, span) for name, span in zip(frame.order, spans, strict=False)}
            if len(named) == len(frame.order) and all(head[a:b] and head[a:b] not in stop for a, b in named.values()):
                return Values(named.get("old"), named.get("new"), match.span(), frame.promotes)
    return None


def _bare(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """A span without quotes and blanks at its ends."""
    start, end = span
    while start < end and text[start] in _QUOTES + " ":
        start += 1
    while end > start and text[end - 1] in _QUOTES + " ":
        end -= 1
    return start, end


def with_overrides(
    found: pl.DataFrame, turns: pl.DataFrame, steps: pl.DataFrame, extraction: ExtractionCriteria
) -> pl.DataFrame:
    """Pattern rows with what their corrections override, and corrections that only the agent's action tells.

    Args:
        found: Rows of :func:`evalpipe.signals.semantic.semantic_rows`.
        turns: Frame of :func:`evalpipe.signals.turns.human_turns`.
        steps: Masked steps, in order.
        extraction: Languages and length of snippets.

    Returns:
        The rows with ``old_value``, ``new_value`` and ``agent_seq`` of corrections, those that reject the
        user's own value with less confidence than counts, and rows of rule :data:`RULE`.
    """
    known = rules()
    corrections = found.filter(pl.col("signal") == "correction").select("signal_id", "session_id", "seq")
    place = ["session_id", "seq"]
    named = corrections.join(turns.select(_COLUMNS), on=place, how="left", maintain_order="left")
    silent = _silent(found, turns, extraction.languages)
    asked = [*_read(named.select(_COLUMNS)), *_read(silent.select(_COLUMNS), only_telling=True)]
    doings = _doings(asked, steps)
    filled: list[tuple[str, str | None, str | None, int | None, bool]] = []
    ids = dict(zip(named.select(place).iter_rows(), named["signal_id"], strict=True))
    cold = set(found.filter(pl.col("signal").is_in(list(NEGATIVE))).select(place).iter_rows())
    promoted = []
    for turn, found_values, span in asked:
        old, new = (_text(turn.text, part) for part in found_values)
        request, acts = doings[turn.session_id, turn.seq]
        by_agent = next((seq for seq, text in reversed(acts) if old and _names(text, old)), None)
        is_own = old is not None and _is_wish(request, old, new) and (turn.session_id, turn.prev_turn_seq) not in cold
        name = ids.get((turn.session_id, turn.seq))
        if name is not None:
            filled.append((name, old, new, by_agent, is_own))
        elif by_agent is not None and not _names(request, old or ""):
            row = make_row(
                turn, "correction", RULE, known.promoted_confidence, span, extraction.snippet_chars, EXTRACTOR
            )
            promoted.append((*row[:-3], old, new, by_agent))
    about = pl.DataFrame(
        filled,
        schema={"signal_id": pl.String, "old_value": pl.String, "new_value": pl.String, "agent_seq": pl.Int32,
                "is_own": pl.Boolean},
        orient="row",
    )  # fmt: skip
    filled_columns = ("old_value", "new_value", "agent_seq")
    joined = found.drop(filled_columns).join(about, on="signal_id", how="left", maintain_order="left")
    low = pl.min_horizontal("confidence", pl.lit(known.own_value_confidence))
    joined = joined.with_columns(
        confidence=pl.when(pl.col("is_own").fill_null(value=False)).then(low).otherwise("confidence")
    )
    more = pl.DataFrame(promoted, schema=polars_schema(SEMANTIC), orient="row")
    return pl.concat([joined.select(more.columns), more])


def _silent(found: pl.DataFrame, turns: pl.DataFrame, languages: Sequence[str]) -> pl.DataFrame:
    """Turns that may override without the words of a correction: no pattern fired, no question was open."""
    known = rules()
    head = pl.col("prose").str.head(known.head_chars)
    read = [lang for lang in known.frames if lang in languages]
    said = found.filter(pl.col("signal").is_in([*NEGATIVE, *POSITIVE])).select("session_id", "seq")
    likely = turns.filter(pl.col("has_agent") & ~pl.col("prev_agent_question") & pl.col("lang").is_in(read)).filter(
        head.str.contains_any(list(known.cues))
    )
    open_ones = likely.join(said, on=["session_id", "seq"], how="anti", maintain_order="left")
    return open_ones.filter(
        ~(head.str.contains(known.opener) | head.str.contains(known.own) | head.str.contains("[?？]"))
    )


def _read(turns: pl.DataFrame, *, only_telling: bool = False) -> Iterator[_Named]:
    """Turns that name values, with the spans of (old, new) and of the frame in their masked text."""
    for session, seq, number, text, lang, before, prose, is_plain in turns.iter_rows():
        read = values(prose, lang)
        if read is None or (only_telling and not read.promotes):
            continue
        positions: list[int] | None = None
        if not is_plain:
            own, positions = prose_positions(text)
            if own != prose:
                continue
        spans = [
            None if span is None else span if positions is None else (positions[span[0]], positions[span[1]])
            for span in (read.old, read.new, read.span)
        ]
        whole = spans.pop()
        if whole is not None:
            yield Turn(session, seq, number, text, lang, before), tuple(spans), whole


def _text(text: str, span: tuple[int, int] | None) -> str | None:
    # Half a pseudonym would be nobody's, and a change of keys could not find it.
    return text[span[0] : span[1]] if span and not cuts_token(text, *span) else None


def _is_wish(request: str, old: str, new: str | None) -> bool:
    """Whether a request asked for the value that is now rejected, and not for the one that is wanted."""
    return _names(request, old) and not (new and _names(request, new)) and not rules().forbids.search(request)


def _names(text: str, value: str) -> bool:
    """Whether a folded text holds a value as a word of its own."""
    wanted = fold(value)
    if not wanted:
        return False
    at = text.find(wanted)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(wanted) : at + len(wanted) + 1]
        joins = (before.isascii() and before.isalnum() and wanted[0].isalnum()) or (
            after.isascii() and after.isalnum() and wanted[-1].isalnum()
        )
        if not joins:
            return True
        at = text.find(wanted, at + 1)
    return False


def _doings(asked: Sequence[_Named], steps: pl.DataFrame) -> dict[tuple[str, int], tuple[str, list[tuple[int, str]]]]:
    """For each turn the request before it, and what the agent said and called since, folded."""
    turns = [(turn.session_id, turn.seq, turn.prev_turn_seq) for turn, _, _ in asked]
    mine = steps.filter(pl.col("session_id").is_in(sorted({session for session, _, _ in turns})))
    mine = mine.filter(pl.col("kind").is_in([*_ACTS, "user"])).select(
        "session_id", "seq", "kind",
        text=pl.concat_str(
            pl.col("text").fill_null("").str.head(_STEP_CHARS), pl.col("arguments").fill_null("").str.head(_STEP_CHARS),
            separator="\n",
        ),
    )  # fmt: skip
    by_session: dict[str, list[tuple[int, str, str]]] = {}
    for session, seq, kind, text in mine.iter_rows():
        by_session.setdefault(session, []).append((seq, kind, text))
    out = {}
    for session, seq, before in turns:
        own = by_session.get(session, [])
        since = -1 if before is None else before
        acts = [(at, fold(text)) for at, kind, text in own if kind != "user" and since < at < seq]
        request = " ".join(fold(text) for at, kind, text in own if kind == "user" and at == before)
        out[session, seq] = request, acts
    return out
