"""Language of a turn: script first, then words, accents and endings, then the language of its session.

Belongs here: counting and choosing. Scripts, words and weights are data (``languages.toml``). Only what
the user writes is read, never what an agent answered: the answer is a consequence of the version.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from evalpipe.signals import rulefiles

_SAMPLE_CHARS = 200
_LATIN = "[a-z]"
_NOT_ASCII = r"[^\x00-\x7f]"
_WORD = "[a-z][a-z']*"


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rule file, ready to use: expressions by language and one table of words."""

    scripts: dict[str, str]
    #: One row a word, one column a language with the word's weight. What one language alone has weighs more.
    words: pl.DataFrame
    accents: dict[str, str]
    endings: dict[str, str]
    weights: dict[str, int]
    min_letters: int
    margin: int
    default: str


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    data = rulefiles.load("languages.toml")
    weights = data["weights"]
    listed = {lang: set(words) for lang, words in data["words"].items()}
    known = Counter(word for words in listed.values() for word in words)
    table = [
        (word, *((weights["own"] if n == 1 else weights["word"]) if word in mine else 0 for mine in listed.values()))
        for word, n in sorted(known.items())
    ]
    words = pl.DataFrame(table, schema={"word": pl.String, **dict.fromkeys(listed, pl.Int32)}, orient="row")
    endings = {lang: rulefiles.to_rust(pattern) for lang, pattern in data["endings"].items()}
    return _Rules(
        data["scripts"], words, data["accents"], endings, weights, data["min_letters"], data["margin"], data["default"]
    )


def turn_languages(prose: pl.Series, session: pl.Series, text: pl.Series | None = None) -> pl.Series:
    """Language of each turn.

    Args:
        prose: (n,) folded prose, in order of session and turn.
        session: (n,) session of each turn.
        text: (n,) the messages as they were written, for the accents that folding takes away; the
            prose without them.

    Returns:
        (n,) codes such as ``en``; ``und`` where neither the turn nor its session tells.
    """
    rules = _rules()
    sample = pl.DataFrame(
        {"session": session, "text": prose.str.head(_SAMPLE_CHARS),
         "raw": (prose if text is None else text).fill_null("").str.head(_SAMPLE_CHARS)}
    ).with_row_index("row")  # fmt: skip
    scored = sample.with_columns(latin=pl.col("text").str.count_matches(_LATIN))
    # Most text is ASCII, and then only Latin letters need counting.
    foreign = scored.filter(pl.col("text").str.contains(_NOT_ASCII)).with_columns(
        pl.col("text").str.count_matches(pattern).alias(f"s_{lang}") for lang, pattern in rules.scripts.items()
    )
    foreign = foreign.select("row", script=_by_script(rules.scripts), signs=pl.sum_horizontal(pl.col("^s_.*$")))
    scored = scored.join(foreign, on="row", how="left", maintain_order="left")
    scored = scored.with_columns(letters=pl.col("latin") + pl.col("signs").fill_null(0))
    latin = _latin(scored.filter(pl.col("script").is_null() & (pl.col("latin") > 0)), rules)
    joined = scored.join(latin, on="row", how="left", maintain_order="left")
    own = joined.select(
        "row", "session", "letters", "lead", is_script=pl.col("script").is_not_null(),
        lang=pl.coalesce("script", "by_words"),
    )  # fmt: skip
    return _with_session(own, rules)


def _by_script(scripts: dict[str, str]) -> pl.Expr:
    """A turn that mixes Chinese with Latin identifiers is Chinese: one Han character is a syllable."""
    kana, han, latin = pl.col("s_ja"), pl.col("s_zh"), pl.col("latin")
    tests: list[tuple[str, pl.Expr]] = [
        ("ja", (kana > 0) & (kana * 4 >= han)),
        ("zh", ((han >= 2) & (han * 8 >= latin)) | ((han >= 1) & (latin == 0))),
    ]
    for lang in scripts:
        if lang not in {"ja", "zh"}:
            count = pl.col(f"s_{lang}")
            tests.append((lang, ((count >= 2) & (count * 6 >= latin)) | ((count >= 1) & (latin == 0))))
    return pl.coalesce([pl.when(test).then(pl.lit(lang)) for lang, test in tests])


def _latin(turns: pl.DataFrame, rules: _Rules) -> pl.DataFrame:
    """Language of turns in Latin letters: ``row``, ``by_words`` (null without a clear lead), ``lead``."""
    langs = rules.words.columns[1:]
    # A join on words costs a tenth of one expression a language.
    words = turns.select("row", word=pl.col("text").str.extract_all(_WORD)).explode("word")
    scores = words.join(rules.words, on="word").group_by("row").agg(pl.sum(*langs))
    scores = turns.select("row", "text", "raw").join(scores, on="row", how="left", maintain_order="left")
    scores = scores.with_columns(pl.col(langs).fill_null(0))
    scores = _added(scores, pl.col("raw").str.contains(_NOT_ASCII), "raw", rules.accents, rules.weights["accent"])
    unclear = pl.Series("lead", _lead(scores, langs)[0]) < rules.margin
    scores = _added(scores, unclear, "text", rules.endings, rules.weights["ending"])
    lead, best = _lead(scores, langs)
    names = pl.Series("by_words", langs)[best.astype(np.uint32)]
    out = scores.select("row").with_columns(pl.Series("lead", lead), names)
    return out.with_columns(by_words=pl.when(pl.col("lead") > 0).then("by_words"))


def _lead(scores: pl.DataFrame, langs: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
    """By how much the best score of each row leads the second, and which it is."""
    points = scores.select(langs).to_numpy()
    if not points.size:
        return np.zeros(0, np.int32), np.zeros(0, np.intp)
    two = np.partition(points, -2, axis=1)
    return two[:, -1] - two[:, -2], points.argmax(axis=1)


def _added(
    scores: pl.DataFrame, where: pl.Expr | pl.Series, column: str, marks: dict[str, str], weight: int
) -> pl.DataFrame:
    """Scores with the marks found in a column added, where a test holds; of one mark at most three count."""
    text = pl.col(column).str.to_lowercase()
    counts = {f"+{n}": (text.str.count_matches(p).clip(0, 3) * weight).cast(pl.Int32) for n, p in marks.items()}
    found = scores.filter(where).select("row", **counts)
    scores = scores.join(found, on="row", how="left", maintain_order="left")
    return scores.with_columns(pl.col(n) + pl.col(f"+{n}").fill_null(0) for n in marks).drop(list(counts))


def _with_session(own: pl.DataFrame, rules: _Rules) -> pl.Series:
    known = own.filter(pl.col("lang").is_not_null())
    majority = (
        known.group_by("session", "lang")
        .agg(weight=pl.col("letters").sum())
        .sort("session", pl.col("weight"), "lang", descending=[False, True, False])
        .group_by("session", maintain_order=True)
        .agg(majority=pl.col("lang").first())
    )
    joined = own.join(majority, on="session", how="left", maintain_order="left")
    # A script is certain at any length; words are not.
    unsure = (pl.col("letters") < rules.min_letters) | (pl.col("lead") < rules.margin)
    inherits = unsure & ~pl.col("is_script") & pl.col("majority").is_not_null()
    lang = pl.when(inherits).then("majority").otherwise(pl.coalesce("lang", "majority"))
    return joined.select(lang=lang.fill_null(rules.default))["lang"]
