"""Every example of every pattern file, and the rules of the dialect."""

from __future__ import annotations

import re

import polars as pl
import pytest

from evalpipe.contracts.signals import BY_NAME, Family
from evalpipe.signals import context, patterns, roles, rulefiles, text
from evalpipe.signals.patterns import Pattern

PATTERNS = patterns.load_patterns()


def fires(pattern: Pattern, examples: list[str], lang: str) -> list[bool]:
    """Whether a pattern fires on each text, its context being as it asks."""
    flags = {flag: pl.lit(dict(pattern.context).get(flag, False)) for flag in patterns.CONTEXT_FLAGS}
    turns = text.prose_column(pl.Series(examples)).with_row_index("row").with_columns(lang=pl.lit(lang), **flags)
    hits = patterns.find(turns, (lang,)).filter(pl.col("pattern") == PATTERNS.index(pattern))
    rows = set(hits["row"])
    return [row in rows and patterns.locate(pattern, prose) is not None for row, prose in enumerate(turns["prose"])]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_examples_of_a_pattern(pattern: Pattern) -> None:
    assert len(pattern.match) >= 2
    assert pattern.no_match
    assert fires(pattern, list(pattern.match), pattern.lang) == [True] * len(pattern.match)
    assert fires(pattern, list(pattern.no_match), pattern.lang) == [False] * len(pattern.no_match)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_no_pattern_matches_another_language(pattern: Pattern) -> None:
    foreign = [example for other in PATTERNS if other.lang != pattern.lang for example in other.match]
    # Read as if the language had been told wrongly: the wording alone must not fire.
    hits = [example for example, hit in zip(foreign, fires(pattern, foreign, pattern.lang), strict=True) if hit]
    assert hits == []


def test_every_pattern_is_well_formed() -> None:
    assert len({p.id for p in PATTERNS}) == len(PATTERNS)
    for pattern in PATTERNS:
        assert BY_NAME[pattern.signal].family is Family.SEMANTIC
        assert pattern.zone in patterns.ZONES
        assert {flag for flag, _ in pattern.context} <= set(patterns.CONTEXT_FLAGS)
        assert 0.5 <= pattern.confidence <= 1
        for regex in (pattern.any, pattern.unless, pattern.near, pattern.after):
            # Folded text is lower case and without accents; an unbounded gap costs more than all the rest.
            assert not re.search(r"[A-Zàáâãçéêíóôõú]", regex), pattern.id
            assert ".*" not in regex, pattern.id


def test_every_language_has_every_signal() -> None:
    signals = {"confirm.explicit", "praise", "complaint.sentiment", "complaint.failure_report", "correction"}
    for lang in rulefiles.languages():
        assert signals <= {p.signal for p in PATTERNS if p.lang == lang} <= {*signals, "urging"}


@pytest.mark.parametrize("bad", [r"a(?=b)", r"(?<!a)b", r"(a)\1", r"a+?", r"a{1,3}?", r"\Aa", r"{nomacro}"])
def test_the_dialect_refuses_what_engines_do_not_share(bad: str) -> None:
    with pytest.raises(rulefiles.RuleError):
        rulefiles.to_rust(bad)


def test_word_boundaries_are_ascii_in_both_engines() -> None:
    pattern = r"\bno\b|[\w\s-]{3}x"
    samples = ["no", "não no", "ção", "éno", "noé", "a\u00a0bx", "a bx", "日本no"]
    rust = pl.Series(samples).str.contains(rulefiles.to_rust(pattern)).to_list()
    assert rust == [rulefiles.to_python(pattern).search(s) is not None for s in samples]


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("問題", "問題が出た"),
        ("問題", "问题"),
        ("沒有", "冇有"),
        ("エラー", "ｴﾗｰ"),
        ("error", "ＥＲＲＯＲ"),
        ("أخطاء", "اخطاء"),
        ("ещё", "еще"),
        ("\\?", "ok？"),
        ("\\?", "؟"),
    ],
)
def test_a_pattern_in_the_usual_form_of_its_script_reads_every_form_that_folds_onto_it(
    written: str, typed: str
) -> None:
    assert re.search(patterns.folded(written), text.fold(typed))


@pytest.mark.parametrize("zone", text.reading().zones, ids=lambda z: z.id)
def test_examples_of_a_zone(zone: text.Zone) -> None:
    row = next(z for z in rulefiles.load("zones.toml")["zone"] if z["id"] == zone.id)
    for example, expected in [*((e, True) for e in row["match"]), *((e, False) for e in row["no_match"])]:
        folded = text.fold(example)
        assert (zone.python.search(folded) is not None) is expected, example
        assert pl.Series([folded]).str.contains(zone.rust).item() is expected, example


def test_examples_of_context_flags() -> None:
    examples = rulefiles.load("context.toml")["examples"]
    for flag, yes, no in (
        ("prev_agent_question", "question", "no_question"),
        ("agent_claimed_done", "claim", "no_claim"),
    ):
        assert context.agent_flags(pl.Series(examples[yes]))[flag].all()
        assert not context.agent_flags(pl.Series(examples[no]))[flag].any()


def test_examples_of_roles() -> None:
    approval, new_task, data = roles._rules()
    for name, regex in (("approval", approval), ("new_task", new_task)):
        yes = text.prose_column(pl.Series(data["examples"][name]))["prose"]
        no = text.prose_column(pl.Series(data["examples"][f"not_{name}"]))["prose"]
        assert yes.str.contains(regex).all(), name
        assert not no.str.contains(regex).any(), name
