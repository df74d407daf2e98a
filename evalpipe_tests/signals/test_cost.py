"""Tokens by model, the price table, and what a session costs."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.signals import extract_part, load_prices, session_outcomes
from evalpipe.signals.ledger import empty_ledger
from evalpipe.signals.usage import session_usage
from evalpipe_tests.signals.build import EXTRACTION, PRICES, Talk, criteria, frames, later

DAY = date(2026, 1, 5)
TABLE = """
[[price]]
models = ["m-*"]
from = 2026-01-01
input = 2.0
output = 10.0
cache_read = 0.5
[[price]]
models = ["M-large*"]
from = 2026-01-01
input = 20.0
output = 100.0
[[price]]
models = ["m-large*"]
from = 2026-01-06
input = 1.0
output = 1.0
"""


def talk(model: str | None = "m-small", **session: Any) -> Talk:
    return Talk(model=model, **session).user("fix the login bug")


def spend(one: Talk, model: str | None, **tokens: int) -> Talk:
    one.agent("Done.")
    one.steps[-1] |= {"model": model, **{f"{kind}_tokens": n for kind, n in tokens.items()}}
    return one


def cost(one: Talk, text: str, tmp_path: Path) -> tuple[float | None, str | None]:
    (tmp_path / "prices.toml").write_text(text)
    prices = load_prices(tmp_path / "prices.toml")
    sessions, steps = frames(one)
    part = extract_part(sessions, steps, EXTRACTION)
    row = session_outcomes(
        DAY, sessions, part.session_features, part.hard, part.semantic, later(), criteria(),
        is_settled=True, usage=part.session_usage, prices=prices, ledger=empty_ledger(),
    ).row(0, named=True)  # fmt: skip
    return row["cost_usd"], row["cost_source"]


def test_each_model_is_charged_for_its_own_tokens(tmp_path: Path) -> None:
    one = spend(spend(talk(), "m-small", input=1_000_000, cache_read=2_000_000), "vendor/M-Large-2", output=100_000)
    assert cost(one, TABLE, tmp_path) == (pytest.approx(2.0 + 1.0 + 10.0), "priced")


def test_a_pattern_may_hold_the_provider(tmp_path: Path) -> None:
    table = TABLE.replace('"m-*"', '"router/m-*"')
    assert cost(spend(talk(), "router/m-1", input=1_000_000), table, tmp_path)[0] == pytest.approx(2.0)
    assert cost(spend(talk(), "m-1", input=1_000_000), table, tmp_path) == (None, None)


def test_writing_to_a_cache_without_a_price_of_its_own_costs_what_input_costs(tmp_path: Path) -> None:
    assert cost(spend(talk(), "m-small", cache_write=1_000_000), TABLE, tmp_path)[0] == pytest.approx(2.0)


def test_reasoning_is_part_of_the_output_and_paid_once(tmp_path: Path) -> None:
    assert cost(spend(talk(), "m-small", output=1_000_000, reasoning=400_000), TABLE, tmp_path)[0] == pytest.approx(
        10.0
    )


def test_the_price_of_a_later_day_does_not_hold(tmp_path: Path) -> None:
    assert cost(spend(talk(), "m-large", input=1_000_000), TABLE, tmp_path)[0] == pytest.approx(20.0)
    assert cost(spend(talk(), "m-small", input=1), TABLE.replace("2026-01-01", "2026-01-09"), tmp_path) == (None, None)


def test_one_model_without_a_price_makes_the_cost_unavailable(tmp_path: Path) -> None:
    one = spend(spend(talk(), "m-small", input=5), "secret-model", input=5)
    assert cost(one, TABLE, tmp_path) == (None, None)


def test_a_session_without_tokens_has_no_cost(tmp_path: Path) -> None:
    assert cost(talk().agent("Done."), TABLE, tmp_path) == (None, None)


def test_the_cost_that_a_log_states_wins(tmp_path: Path) -> None:
    one = spend(talk(logged_cost_usd=0.25), "m-small", input=1_000_000)
    assert cost(one, TABLE, tmp_path) == (0.25, "logged")


def test_tokens_that_only_the_session_states_are_its_models() -> None:
    sessions, steps = frames(talk(input_tokens=7, output_tokens=3), spend(talk("x", session_id="s2"), None, output=4))
    rows = session_usage(sessions, steps).select("model", "n_responses", "input_tokens", "output_tokens").rows()
    assert sorted(rows) == [("m-small", None, 7, 3), ("x", 1, None, 4)]


def test_tokens_without_any_model_keep_an_empty_name() -> None:
    assert session_usage(*frames(spend(talk(model=None), None, input=4)))["model"].to_list() == [""]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no \\[\\[price"),
        ("price = 3", "no \\[\\[price"),
        ("price = [3]", "keys other"),
        ("[[price]]\nmodels = []\nfrom = 2026-01-01\ninput = 1\noutput = 1", "models"),
        ("[[price]]\nmodels = ['a']\nfrom = '2026-01-01'\ninput = 1\noutput = 1", "from"),
        ("[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = -1\noutput = 1", "input"),
        ("[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1", "output"),
        ("[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = inf\noutput = 1", "input"),
        ("[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = true\noutput = 1", "input"),
        ("[[price]]\nmodel = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1", "keys other"),
        ("[[price]]\nvendor = 'x'\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1", "vendor must be"),
        ("vendors = 3\n[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1", "list"),
        ("[vendors.x]\nlist = 'x'\n[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1", "as_of"),
        ("[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1\nlong = 3", "long has keys"),
        (
            "[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1\nlong = {above = 5, input = 1, output = 1}",
            "long.above",
        ),
        (
            "[[price]]\nmodels = ['a']\nfrom = 2026-01-01\ninput = 1\noutput = 1\nlong = {above = 200000, input = 1}",
            "output",
        ),
        ("[[price", "."),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(EvalpipeError, match=what) as error:
        load_prices(path)
    assert error.value.code == "PRICES_INVALID"


def test_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError, match="PRICES_INVALID"):
        load_prices(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("model", "day", "price"),
    [
        ("claude-opus-4-1-20250805", DAY, (15.0, 75.0)),
        ("anthropic/claude-opus-4-5-20251101", DAY, (5.0, 25.0)),
        ("claude-opus-4-5-20251101", date(2025, 11, 1), None),
        ("claude-sonnet-4-5-20250929", DAY, (3.0, 15.0)),
        ("claude-3-5-haiku-20241022", date(2024, 11, 10), (1.0, 5.0)),
        ("claude-3-5-haiku-20241022", DAY, (0.8, 4.0)),
        ("GPT-4o-mini-2024-07-18", DAY, (0.15, 0.6)),
        ("gpt-4o", DAY, (2.5, 10.0)),
        ("o3", date(2025, 5, 1), (10.0, 40.0)),
        ("models/gemini-2.5-pro", DAY, (1.25, 10.0)),
        ("claude-opus-4-8", DAY, (5.0, 25.0)),
        ("claude-opus-5-5", DAY, None),
        ("claude-sonnet-4-6", DAY, (3.0, 15.0)),
        ("gpt-5.4-2026-03-05", date(2026, 4, 1), (2.5, 15.0)),
        ("somebody-elses-model", DAY, None),
    ],
)
def test_the_shipped_table(model: str, day: date, price: tuple[float, float] | None) -> None:
    found = PRICES.of(model, day)
    assert (None if found is None else (found.rates.input, found.rates.output)) == price


@pytest.mark.parametrize(
    ("model", "day", "above", "read"),
    [
        ("o3-mini", DAY, 0, 0.55),
        ("o4-mini", DAY, 0, 0.275),
        ("gemini-2.5-pro", date(2025, 7, 1), 0, 0.31),
        ("gemini-2.5-pro", DAY, 0, 0.125),
        ("gemini-2.5-pro", DAY, 128_000, 0.125),
        ("gemini-2.5-pro", DAY, 200_000, 0.25),
        ("gemini-2.5-pro", DAY, 272_000, 0.25),
        ("claude-sonnet-4-5-20250929", DAY, 200_000, 0.60),
        ("claude-sonnet-4-6", DAY, 200_000, 0.30),
        ("grok-4-0709", DAY, 128_000, 1.5),
    ],
)
def test_cached_input_of_the_shipped_table(model: str, day: date, above: int, read: float) -> None:
    found = PRICES.of(model, day)
    assert found is not None
    assert found.of_prompt(above).cache_read == read


def test_every_shipped_row_names_the_list_that_it_follows() -> None:
    table = tomllib.loads((data_dir() / "prices.toml").read_text("utf-8"))
    assert {row.get("vendor") for row in table["price"]} == set(table["vendors"])
    for row in table["price"]:
        if row["vendor"] == "anthropic":
            assert row["cache_write_1h"] == pytest.approx(2 * row["input"])
            assert row["cache_write"] == pytest.approx(1.25 * row["input"], rel=0.05)


LONG = TABLE.replace("cache_read = 0.5\n", "cache_read = 0.5\nlong = { above = 200_000, input = 4.0, output = 15.0 }\n")
HOUR = TABLE.replace("cache_read = 0.5\n", "cache_read = 0.5\ncache_write = 2.5\ncache_write_1h = 4.0\n")


def test_a_long_prompt_makes_the_whole_response_dearer_and_no_other(tmp_path: Path) -> None:
    one = spend(talk(), "m-small", input=100_000, cache_read=100_000, output=1_000)
    assert cost(one, LONG, tmp_path)[0] == pytest.approx(0.2 + 0.05 + 0.01)
    one = spend(one, "m-small", input=100_000, cache_read=100_001, output=1_000)
    assert cost(one, LONG, tmp_path)[0] == pytest.approx(0.26 + 0.4 + 100_001 * 4.0 / 1e6 + 0.015)
    both = spend(spend(talk(), "m-small", input=150_000), "m-small", input=150_000)
    assert cost(both, LONG, tmp_path)[0] == pytest.approx(0.6), "the sum of prompts is not a long prompt"


def test_a_total_that_may_hide_long_prompts_is_unavailable(tmp_path: Path) -> None:
    assert cost(talk(input_tokens=200_001, output_tokens=1), LONG, tmp_path) == (None, None)
    assert cost(talk(input_tokens=200_000, output_tokens=0), LONG, tmp_path)[0] == pytest.approx(0.4)
    assert cost(talk(input_tokens=200_001, output_tokens=0), TABLE, tmp_path)[0] == pytest.approx(0.400002)


def test_what_is_cached_for_an_hour_has_its_own_price(tmp_path: Path) -> None:
    one = spend(talk(), "m-small", cache_write=1_000_000, cache_write_1h=600_000)
    assert cost(one, HOUR, tmp_path)[0] == pytest.approx(0.4 * 2.5 + 0.6 * 4.0)
    assert cost(one, TABLE, tmp_path) == (None, None), "no price is listed for it"
    short = spend(talk(), "m-small", cache_write=1_000_000, cache_write_1h=0)
    assert cost(short, TABLE, tmp_path)[0] == pytest.approx(2.0)


def test_no_two_shipped_rows_claim_one_pattern_from_one_day() -> None:
    claims = [(pattern, row.since) for row in PRICES.rows for pattern in row.patterns]
    assert len(claims) == len(set(claims))
    assert load_prices(data_dir() / "prices.toml").digest == PRICES.digest


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"),
        ("bedrock/global.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
    ],
)
def test_names_that_clouds_give_to_models_have_the_models_price(written: str, name: str) -> None:
    prices = load_prices(data_dir() / "prices.toml")
    day = date(2026, 1, 5)
    assert prices.of(written, day) == prices.of(name, day) is not None
    assert prices.of(f"nobodys.{name}", day) is None
