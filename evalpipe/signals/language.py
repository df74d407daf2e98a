"""Language of a turn: script first, then frequent words, then the language of its session.

Belongs here: counting and choosing. The scripts and words are data (``languages.toml``). Only what
the user writes is read, never what an agent answered: the answer is a consequence of the version.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from evalpipe.signals import rulefiles

_SAMPLE_CHARS = 200
_LATIN = "[a-z]"
_NOT_ASCII = r"[^\x00-\x7f]"


@lru_cache(maxsize=1)
def _rules() -> tuple[dict[str, str], dict[str, str], int, str]:
    data = rulefiles.load("languages.toml")
    words = {
        lang: rulefiles.to_rust(r"\b(?:" + "|".join(sorted(set(words), key=len, reverse=True)) + r")\b")
        for lang, words in data["words"].items()
    }
    return data["scripts"], words, data["min_letters"], data["default"]


def turn_languages(prose: pl.Series, session: pl.Series) -> pl.Series:
    """Language of each turn.

    Args:
        prose: (n,) folded prose, in order of session and turn.
        session: (n,) session of each turn.

    Returns:
        (n,) codes such as ``en``; ``und`` where neither the turn nor its session tells.
    """
    scripts, words, min_letters, default = _rules()
    sample = pl.DataFrame({"session": session, "text": prose.str.head(_SAMPLE_CHARS)}).with_row_index("row")
    scored = sample.with_columns(latin=pl.col("text").str.count_matches(_LATIN))
    # Most text is ASCII, and then only Latin letters need counting.
    foreign = scored.filter(pl.col("text").str.contains(_NOT_ASCII)).with_columns(
        pl.col("text").str.count_matches(pattern).alias(f"s_{lang}") for lang, pattern in scripts.items()
    )
    foreign = foreign.select("row", script=_by_script(scripts), signs=pl.sum_horizontal(pl.col("^s_.*$")))
    scored = scored.join(foreign, on="row", how="left", maintain_order="left")
    scored = scored.with_columns(letters=pl.col("latin") + pl.col("signs").fill_null(0))
    latin = scored.filter(pl.col("script").is_null() & (pl.col("latin") > 0))
    latin = latin.select("row", **{lang: pl.col("text").str.count_matches(p) for lang, p in words.items()})
    latin = latin.select("row", by_words=_by_words(list(words)))
    joined = scored.join(latin, on="row", how="left", maintain_order="left")
    own = joined.select("row", "session", "letters", lang=pl.coalesce("script", "by_words"))
    return _with_session(own, min_letters, default)


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
            tests.append((lang, (count >= 2) & (count * 3 >= latin)))
    return pl.coalesce([pl.when(test).then(pl.lit(lang)) for lang, test in tests])


def _by_words(langs: list[str]) -> pl.Expr:
    """The language with the most frequent words; null without any or on a tie for the lead."""
    best = pl.max_horizontal(langs)
    leads = {lang: pl.col(lang) == best for lang in langs}
    is_clear = (best > 0) & (pl.sum_horizontal([lead.cast(pl.Int32) for lead in leads.values()]) == 1)
    return pl.when(is_clear).then(pl.coalesce([pl.when(lead).then(pl.lit(lang)) for lang, lead in leads.items()]))


def _with_session(own: pl.DataFrame, min_letters: int, default: str) -> pl.Series:
    known = own.filter(pl.col("lang").is_not_null())
    majority = (
        known.group_by("session", "lang")
        .agg(weight=pl.col("letters").sum())
        .sort("session", pl.col("weight"), "lang", descending=[False, True, False])
        .group_by("session", maintain_order=True)
        .agg(majority=pl.col("lang").first())
    )
    joined = own.join(majority, on="session", how="left", maintain_order="left")
    short = (pl.col("letters") < min_letters) & pl.col("majority").is_not_null()
    # A script is certain at any length; words are not.
    is_script = pl.col("lang").is_in(["zh", "ja", "ko", "ru", "ar", "hi"])
    lang = pl.when(short & ~is_script).then("majority").otherwise(pl.coalesce("lang", "majority"))
    return joined.select(lang=lang.fill_null(default))["lang"]
