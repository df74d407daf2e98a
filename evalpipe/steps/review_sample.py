"""Drawing a sample of a home for review: what can be shown, what is drawn, and its text.

Belongs here: what could be drawn, and the key of what was. Does not belong here: how items are chosen
(``review/draw.py``), their text (``review_shown.py``), what the reviewer's file looks like (``review/files.py``).

Items are chosen from tables without text; text is read of the sessions that were chosen only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from evalpipe import review, signals
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import empty, frame
from evalpipe.contracts.tables.reviews import REVIEW_FRAMES, REVIEW_ITEMS
from evalpipe.review.draw import FRAME
from evalpipe.signals.turns import HUMAN
from evalpipe.steps import review_shown, reviews
from evalpipe.steps.context import Context
from evalpipe.steps.quality import NO_MODEL
from evalpipe.store.lake import read_part
from evalpipe.store.manifest import Manifest, digest_of

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


#: What keeps the items that reviewers see, before the home says that they were drawn.
Keep = Callable[[list[dict[str, Any]]], None]


def sample(
    context: Context, size: int, days: tuple[date, date] | None = None, keep: Keep = lambda items: None
) -> Sample:
    """Draw a sample and keep its key in the home; the same home and size give the same sample.

    Items of earlier samples are not drawn again.

    Args:
        context: The open home.
        size: Items at most.
        days: Only sessions that start from A to B.
        keep: Called with the items; where it fails nothing was drawn.

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
    with reviews.alone(context.lake):
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
        # With a letter in front: a spreadsheet takes eight digits for a number.
        sample_id = f"s{digest_of([size, drawn.rows()])[:8]}"
        chosen = items.join(drawn, on="key", how="inner", maintain_order="left")
        shown = review_shown.shown(context, {one.day: one.masked for one in found}, chosen)
        order = sorted(shown, key=lambda key: digest_of([sample_id, key]))
        numbered = {key: f"{sample_id}-{number:04d}" for number, key in enumerate(order, 1)}
        rows = [_key_row(row, numbered, shown, sample_id) for row in chosen.iter_rows(named=True)]
        frames = items.join(chances, on="key").with_columns(
            sample_id=pl.lit(sample_id), n_drawn=pl.lit(len(order), pl.Int32)
        )
        listed = [_listed(numbered[key], shown[key]) for key in order]
        keep(listed)
        # First, because an item that is drawn and has no frame would weigh too much.
        context.lake.append(reviews.FRAMES, frames.select(list(empty(REVIEW_FRAMES).columns)))
        context.lake.append(reviews.ITEMS, frame(REVIEW_ITEMS, rows))
    return Sample(sample_id, listed, items.filter(~pl.col("is_drawn")).height, n_without_text)


def again(context: Context, sample_id: str) -> Sample:
    """The items of a sample that was drawn before, as far as their text is still there.

    Args:
        context: The open home.
        sample_id: Sample, as ``review sample`` names it; the number of any of its items does as well.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for no sample of this home; ``NO_TEXT_TO_REVIEW``.
    """
    items = reviews.read(context.lake, reviews.ITEMS)
    mine = items.filter(pl.col("sample_id") == re.split(r"[-.]", sample_id)[0])
    if mine.is_empty():
        known = ", ".join(items["sample_id"].unique().sort()) or "none"
        raise EvalpipeError("BAD_ARGUMENT", f"this home has no such sample; it has {known}", where="--again")
    mine = mine.with_columns(key=pl.col("item_id"))
    days = {day: masked for day in mine["day"].unique().sort() if (masked := context.lookup("masked", day)) is not None}
    shown = review_shown.shown(context, days, mine)
    if not shown:
        raise EvalpipeError("NO_TEXT_TO_REVIEW", "the text of this sample has gone.", where=mine["sample_id"][0])
    n_without = mine.filter(~pl.col("key").is_in(list(shown)))["session_id"].n_unique()
    return Sample(
        mine["sample_id"][0],
        [_listed(key, shown[key]) for key in sorted(shown, key=lambda key: (len(key), key))],
        mine.height,
        n_without,
    )


def _listed(item_id: str, shown: dict[str, Any]) -> dict[str, Any]:
    return {"item_id": item_id, **shown, "labels": [], "note": ""}


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
    texts = ("text", "arguments", "output")
    text = pl.any_horizontal(pl.col(name).str.len_bytes() > 0 for name in texts).fill_null(value=False)
    lean = [read_part("masked.steps", path, [*_LEAN, *texts]).select(*_LEAN, has_text=text) for path in paths]
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
