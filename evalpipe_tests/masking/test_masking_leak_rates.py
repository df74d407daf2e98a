"""Rates of masking over slices: a dead rule, a noisy one, too much that is withheld."""

from __future__ import annotations

import polars as pl

from evalpipe.masking import CANARY_SOURCE, Finding, Rates, add_rates, judge_rates, mask_part, plant_canaries
from evalpipe.masking.leak_rates import rates_of
from evalpipe_tests.masking.support import DAY, PLAN, frames, session

MEGABYTE = 1_000_000


def _slice(megabytes: float = 10, n_withheld: int = 0, **hits: int) -> Rates:
    return Rates(int(megabytes * MEGABYTE), 1000, n_withheld, hits)


USUAL = [_slice(10, USERNAME=1000, PERSON=60, IBAN_CODE=2) for _ in range(7)]


def test_a_slice_like_those_before_it_is_within() -> None:
    assert judge_rates(_slice(5, USERNAME=520, PERSON=10), USUAL) == ("within", [])
    # Ten times fewer bytes hold ten times fewer hits.
    assert judge_rates(_slice(1, USERNAME=100), USUAL) == ("within", [])


def test_too_little_text_or_history_is_unavailable() -> None:
    assert judge_rates(_slice(10), USUAL[:6]) == ("unavailable", [])
    assert judge_rates(_slice(0.5), USUAL) == ("unavailable", [])
    assert judge_rates(_slice(10), [*USUAL[:6], _slice(0.5, USERNAME=50)]) == ("unavailable", [])


def test_a_dead_rule_shows_as_a_drop_and_a_noisy_one_as_a_jump() -> None:
    dead = Finding("USERNAME", "far fewer hits per MB than before", 3, is_high=False)
    assert judge_rates(_slice(10, USERNAME=3, PERSON=60), USUAL) == ("outside", [dead])
    noisy = Finding("PERSON", "far more hits per MB than before", 900, is_high=False)
    assert judge_rates(_slice(10, USERNAME=1000, PERSON=900), USUAL) == ("outside", [noisy])
    new = Finding("LOCATION", "far more hits per MB than before", 700, is_high=False)
    assert judge_rates(_slice(10, USERNAME=1000, PERSON=60, LOCATION=700), USUAL) == ("outside", [new])


def test_what_is_rare_is_not_judged() -> None:
    assert judge_rates(_slice(10, USERNAME=1000, PERSON=60, IBAN_CODE=0, CRYPTO=40), USUAL) == ("within", [])


def test_only_the_newest_slices_count() -> None:
    old = [_slice(10, USERNAME=100_000) for _ in range(40)]
    new = [_slice(10, USERNAME=1000) for _ in range(28)]
    assert judge_rates(_slice(10, USERNAME=1000), [*old, *new]) == ("within", [])
    assert judge_rates(_slice(10, USERNAME=1000), [*new, *old])[0] == "outside"


def test_too_much_that_is_withheld_refuses_a_slice_without_any_history() -> None:
    assert judge_rates(_slice(1, n_withheld=100), []) == ("unavailable", [])
    state, findings = judge_rates(_slice(1, n_withheld=101), [])
    assert (state, findings) == ("unavailable", [Finding("steps", "too much text is withheld", 101)])
    few = Rates(MEGABYTE, 150, 140, {})
    assert judge_rates(few, []) == ("unavailable", [])


def test_rates_leave_canaries_and_labels_out() -> None:
    canaries = plant_canaries(PLAN, DAY)
    sessions, steps = frames(
        [session("s1", agent="ana.b42@mail.example.org")],
        [("s1", {"text": "é to ana.b42@mail.example.org"}), ("s1", {"output": "ok"})],
    )
    part = mask_part(pl.concat([sessions, canaries.sessions]), pl.concat([steps, canaries.steps]), PLAN)
    rates = rates_of(part.sessions, part.steps, part.redactions, CANARY_SOURCE)
    alone = mask_part(sessions, steps, PLAN)
    n_bytes = sum(len(text.encode()) for name in ("text", "output") for text in alone.steps[name].drop_nulls())
    assert rates == Rates(n_bytes, 2, 0, {"EMAIL_ADDRESS": 1})
    assert add_rates([rates, rates]) == Rates(2 * n_bytes, 4, 0, {"EMAIL_ADDRESS": 2})
    assert add_rates([]) == Rates(0, 0, 0, {})
