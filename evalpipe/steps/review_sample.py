"""Drawing a sample of a home for review: what can be shown, what is drawn, and its text.

Belongs here: items and their masked text from the lake. Does not belong here: how items are chosen
(``review/draw.py``), what the reviewer's file looks like (``review/files.py``).

Items are chosen from tables without text; text is read of the sessions that were chosen only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from evalpipe import review, signals
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import empty, frame
from evalpipe.contracts.tables.reviews import REVIEW_FRAMES, REVIEW_ITEMS
from evalpipe.review.draw import FRAME
from evalpipe.signals.turns import HUMAN, human_turns
from evalpipe.steps import reviews
from evalpipe.steps.context import Context
from evalpipe.steps.quality import NO_MODEL
from evalpipe.store.files import locked
from evalpipe.store.manifest import Manifest, digest_of

#: Characters of each text that a reviewer sees; of a longer one its beginning and its end.
_REQUEST, _TAIL, _TURN, _ARGUMENTS, _OUTPUT = 1_500, 800, 4_000, 1_500, 4_000
_ITEM = ("session_id", "seq")
#: What is known of an item before it is drawn: what the draw reads, and its place.
_ITEMS = pl.Schema(
    {
        **{name: kind for name, kind in FRAME.items() if name not in ("held", "is_drawn")},
        "session_id": pl.String(),
        "seq": pl.Int32(),
        "source": pl.String(),
        "day": pl.Date(),
        "rules": pl.List(pl.String),
    }
)
_LEAN = ("session_id", "seq", "turn", "kind", "origin", "parent_id")


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample that was drawn.

    Attributes:
        sample_id: Digest of what was drawn.
        items: What reviewers see, rows of ``review.files.COLUMNS``, in a shuffled order.
        n_frame: Items that could be drawn.
        n_without_text: Sessions that could not be shown: their text has expired or is not kept.
    """

    sample_id: str
    items: list[dict[str, Any]]
    n_frame: int
    n_without_text: int


@dataclass(frozen=True, slots=True)
class _Day:
    day: date
    masked: Manifest
    signals: Manifest


def sample(context: Context, size: int, days: tuple[date, date] | None = None) -> Sample:
    """Draw a sample and keep its key in the home; the same home and size give the same sample.

    Items of earlier samples are not drawn again.

    Args:
        context: The open home.
        size: Items at most.
        days: Only sessions that start from A to B.

    Raises:
        EvalpipeError: ``NO_TEXT_TO_REVIEW`` where nothing can be shown; ``NO_RESULT`` where everything
            was drawn before.
    """
    found = [
        _Day(day, masked, made)
        for day in context.lake.days("signals", context.versions.variants["signals"])
        if days is None or days[0] <= day <= days[1]
        if (masked := context.lookup("masked", day)) is not None
        if (made := context.lookup("signals", day)) is not None
    ]
    with locked(context.lake.root / "signals" / ".reviews.lock"):
        items, n_without_text = _items(context, found)
        if items.is_empty():
            what = f"{n_without_text} sessions have none" if n_without_text else "no session of these days has a turn"
            raise EvalpipeError("NO_TEXT_TO_REVIEW", f"{what}.", where=str(context.settings.home))
        items = _with_earlier(context, items)
        chances = review.draw(items, size, review.limits(), context.criteria.extraction.min_confidence)
        drawn = chances.filter(pl.col("parts").list.len() > 0)
        if drawn.is_empty():
            what = "every item of these days was drawn before."
            raise EvalpipeError("NO_RESULT", what, where="review sample", fix="Land newer logs, or name other days.")
        sample_id = digest_of([size, drawn.rows()])[:8]
        chosen = items.join(drawn, on="key", how="inner", maintain_order="left")
        shown = _shown(context, found, chosen)
        order = sorted(shown, key=lambda key: digest_of([sample_id, key]))
        numbered = {key: f"{sample_id}.{number:04d}" for number, key in enumerate(order, 1)}
        rows = [_key_row(row, numbered, shown, sample_id) for row in chosen.iter_rows(named=True)]
        frames = items.join(chances, on="key").with_columns(sample_id=pl.lit(sample_id))
        # First, because an item that is drawn and has no frame would weigh too much.
        context.lake.append(reviews.FRAMES, frames.select(list(empty(REVIEW_FRAMES).columns)))
        context.lake.append(reviews.ITEMS, frame(REVIEW_ITEMS, rows))
    listed = [{"item_id": numbered[key], **shown[key], "labels": [], "note": ""} for key in order]
    return Sample(sample_id, listed, items.filter(~pl.col("is_drawn")).height, n_without_text)


def _with_earlier(context: Context, items: pl.DataFrame) -> pl.DataFrame:
    """Items with what earlier samples hold: columns ``held`` and ``is_drawn`` of the frame."""
    drawn = reviews.read(context.lake, reviews.ITEMS)
    held = review.held(review.chances(drawn, reviews.read(context.lake, reviews.FRAMES)))
    mark = drawn.select(_ITEM).unique().with_columns(is_drawn=pl.lit(value=True))
    for known in (held, mark):
        items = items.join(known, on=_ITEM, how="left", maintain_order="left")
    return items.with_columns(pl.col("held").fill_null(0.0), pl.col("is_drawn").fill_null(value=False))


def _key_row(
    row: dict[str, Any], numbered: dict[str, str], shown: dict[str, dict[str, Any]], sample_id: str
) -> dict[str, Any]:
    key, kind = row["key"], row["kind"]
    lang = shown[key]["lang"]
    names = ("session_id", "seq", "day", "source", "model", "stratum", "parts", "inclusion_prob")
    versions = [f"{signal}={signals.detector_version(signal, lang)}" for signal in review.guide().signals(kind)]
    return {
        **{name: row[name] for name in (*names, "kind", "emitted", "candidates", "rules")},
        "item_id": numbered[key],
        "sample_id": sample_id,
        "lang": lang,
        "versions": versions,
    }


def _items(context: Context, days: list[_Day]) -> tuple[pl.DataFrame, int]:
    """Everything that could be drawn, with columns of the frame and of the key; and sessions without text."""
    parts, n_without_text = [], 0
    for one in days:
        items, n_silent = _items_of_day(context, one)
        parts.append(items)
        n_without_text += n_silent
    return pl.concat([pl.DataFrame(schema=_ITEMS), *parts]), n_without_text


def _items_of_day(context: Context, one: _Day) -> tuple[pl.DataFrame, int]:
    lake = context.lake
    paths = lake.paths("masked.steps", [one.masked])
    text = pl.any_horizontal(pl.col(name).str.len_bytes() > 0 for name in ("text", "arguments", "output"))
    lean = [pl.scan_parquet(path).select(*_LEAN, has_text=text.fill_null(value=False)).collect() for path in paths]
    if not lean:  # a day of nothing but files that could not be read
        return pl.DataFrame(schema=_ITEMS), 0
    steps = pl.concat(lean)
    sessions = lake.read("masked.sessions", [one.masked], ["session_id", "model", "source"])
    features = lake.read("signals.session_features", [one.signals], ["session_id", "language", "n_human_turns"])
    talking = features.filter(pl.col("n_human_turns") > 0).select("session_id")
    speaking = steps.filter("has_text").select("session_id").unique()
    n_silent = talking.join(speaking, on="session_id", how="anti").height
    found = _detected(context, one)
    hits = found.filter(kind="call").select(_ITEM).unique().with_columns(is_hit=pl.lit(value=True))
    places = _places(steps.sort("session_id", "seq"), hits).filter("has_text")
    items = places.join(found.drop("kind", "lang"), on=_ITEM, how="left", maintain_order="left")
    said = found.filter(kind="turn").select(*_ITEM, "lang").rename({"lang": "own"})
    items = items.join(said, on=_ITEM, how="left", maintain_order="left")
    items = items.join(sessions, on="session_id", how="inner", maintain_order="left")
    items = items.join(features.select("session_id", "language"), on="session_id", how="left", maintain_order="left")
    lang = pl.when(pl.col("kind") == "call").then(pl.lit(signals.ANY)).otherwise(pl.coalesce("own", "language"))
    return items.with_columns(
        *(pl.col(name).fill_null([]) for name in ("emitted", "candidates", "rules", "confidence")),
        key=pl.concat_str("session_id", pl.lit(":"), "seq"),
        day=pl.lit(one.day),
        lang=lang.fill_null("und"),
        model=pl.col("model").fill_null(NO_MODEL),
    ).select(list(_ITEMS)), n_silent


def _places(steps: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    """Turns that can be feedback, and calls: ``session_id, seq, kind, has_text``."""
    is_turn = pl.col("parent_id").is_null() & (pl.col("kind") == "user") & pl.col("origin").is_in(HUMAN)
    acts = pl.col("kind").is_in(["agent", "model", "tool", "graph"])
    marked = steps.with_columns(
        is_turn=is_turn,
        act_seq=pl.when(acts).then("seq").forward_fill().over("session_id"),
        first_seq=pl.when(is_turn).then("seq").min().over("session_id"),
    ).join(hits, on=_ITEM, how="left", maintain_order="left")
    answers = (pl.col("is_turn") & (pl.col("act_seq") > pl.col("first_seq"))).fill_null(value=False)
    is_call = (pl.col("kind") == "tool") | pl.col("is_hit").fill_null(value=False)
    # A message of a person that is also an event, such as a stop, is looked at as what it says.
    kind = pl.when(answers).then(pl.lit("turn")).when(is_call & ~pl.col("is_turn")).then(pl.lit("call"))
    return marked.select(*_ITEM, "has_text", kind=kind).filter(pl.col("kind").is_not_null())


def _detected(context: Context, one: _Day) -> pl.DataFrame:
    """What the detectors said, one row an item: ``emitted, candidates, rules, confidence``."""
    lake, guide = context.lake, review.guide()
    least = context.criteria.extraction.min_confidence
    columns = [*_ITEM, "signal", "confidence"]
    hard = lake.read("signals.hard", [one.signals], [*columns, "rule_id"]).rename({"rule_id": "rule"})
    said = [
        lake.read(f"signals.{name}", [one.signals], [*columns, "pattern_id", "lang"]).rename({"pattern_id": "rule"})
        for name in ("semantic", "candidates")
    ]
    rows = pl.concat(
        [
            hard.with_columns(lang=pl.lit(signals.ANY), is_sure=pl.col("confidence") >= least, kind=pl.lit("call")),
            said[0].with_columns(is_sure=pl.lit(value=True), kind=pl.lit("turn")),
            said[1].with_columns(is_sure=pl.lit(value=False), kind=pl.lit("turn")),
        ],
        how="diagonal",
    )
    told = pl.any_horizontal(
        (pl.col("kind") == kind) & pl.col("signal").is_in(guide.signals(kind)) for kind in ("turn", "call")
    )
    rows = rows.filter(told).sort(*_ITEM, "signal", "rule")
    sure = pl.col("is_sure")
    return rows.group_by(*_ITEM, "kind", maintain_order=True).agg(
        lang=pl.col("lang").first(),
        emitted=pl.col("signal").filter(sure),
        rules=pl.col("rule").filter(sure),
        candidates=pl.col("signal").filter(~sure),
        confidence=pl.col("confidence"),
    )


def _shown(context: Context, days: list[_Day], chosen: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """What a reviewer sees of each item, by its key, and the language of the turn itself."""
    wanted = chosen["session_id"].unique().implode()
    out: dict[str, dict[str, Any]] = {}
    for one in days:
        mine = chosen.filter(day=one.day)
        if mine.is_empty():
            continue
        paths = context.lake.paths("masked.steps", [one.masked])
        steps = pl.concat(
            [pl.scan_parquet(path).filter(pl.col("session_id").is_in(wanted)).collect() for path in paths]
        ).sort("session_id", "seq")
        langs = {(row[0], row[1]): row[2] for row in human_turns(steps).select(*_ITEM, "lang").iter_rows()}
        for session_id, rows in mine.group_by("session_id", maintain_order=True):
            of_session = steps.filter(pl.col("session_id") == session_id[0]).to_dicts()
            for row in rows.iter_rows(named=True):
                out[row["key"]] = _shown_item(of_session, row, langs)
    return out


def _shown_item(steps: list[dict[str, Any]], row: dict[str, Any], langs: dict[tuple[str, int], str]) -> dict[str, Any]:
    before = [step for step in steps if step["seq"] < row["seq"] and step["parent_id"] is None]
    step = next(step for step in steps if step["seq"] == row["seq"])
    asked = next((s for s in reversed(before) if s["kind"] == "user" and s["origin"] in HUMAN and s["text"]), None)
    answered = next((s for s in reversed(before) if s["kind"] == "agent" and s["text"]), None)
    is_turn = row["kind"] == "turn"
    # What a person wrote after the agent's last words is no answer to be judged.
    if is_turn and asked and answered and answered["seq"] < asked["seq"]:
        answered = None
    return {
        "kind": row["kind"],
        "lang": langs.get((row["session_id"], row["seq"]), row["lang"]) if is_turn else row["lang"],
        "previous_request": _cut(asked["text"], _REQUEST) if asked else "",
        "agent_tail": _tail(answered["text"]) if answered else "",
        "shown": _cut(step["text"] or "", _TURN) if is_turn else _call(step),
    }


def _tail(text: str) -> str:
    return text if len(text) <= _TAIL else f"[...] {text[-_TAIL:]}"


def _call(step: dict[str, Any]) -> str:
    parts = [
        step["name"] or "",
        _cut(_command(step["arguments"] or ""), _ARGUMENTS),
        _cut(step["text"] or "", _TURN),
        f"exit code {step['exit_code']}" if step["exit_code"] is not None else "",
        _cut(step["output"] or "", _OUTPUT),
    ]
    return "\n".join(part for part in parts if part)


def _command(arguments: str) -> str:
    """The one text argument of a call without its JSON, where there is only one."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    if isinstance(value, dict) and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    return arguments


def _cut(text: str, chars: int) -> str:
    half = chars // 2
    return text if len(text) <= chars else f"{text[:half]}\n[... {len(text) - chars:,} characters ...]\n{text[-half:]}"
