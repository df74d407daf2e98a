"""The simulation's truth is stratified by scenario, so what people ask there must be told as what it is."""

from __future__ import annotations

import tomllib

import polars as pl
import pytest

from evalpipe.locations import data_dir
from evalpipe.signals.scenario import scenarios

WORDS = {"word": "harbour", "n": "12", "file": "src/app.py", "func": "load_rows"}


@pytest.mark.parametrize("lang", ["en", "pt", "zh"])
def test_every_request_is_told_as_its_scenario_in_a_session_of_a_coding_agent(lang: str) -> None:
    phrases = tomllib.loads((data_dir() / "simulate" / f"phrases_{lang}.toml").read_text("utf-8"))
    requests, topic = phrases["request"], phrases["follow"]["topic"]
    said = []
    for name in ("coding", "work", "chat"):
        for number, text in enumerate(requests[name]):
            topics = {"topic": topic[number % len(topic)], "topic2": topic[0]}
            said.append((name, text.format(**WORDS, **topics)))
    assert len(said) >= 30
    ids = [str(number) for number in range(len(said))]
    sessions = pl.DataFrame(
        {
            "session_id": ids,
            "scenario_declared": [None] * len(said),
            "workspace": ["w"] * len(said),
            "tools": [["Bash", "Edit"]] * len(said),
        },
        schema_overrides={"scenario_declared": pl.String},
    )
    turns = pl.DataFrame(
        {"session_id": ids, "text": [text for _, text in said], "prev_turn_seq": [None] * len(said)},
        schema_overrides={"prev_turn_seq": pl.Int32},
    )
    told = scenarios(sessions, turns)["scenario"].to_list()
    assert [(text, is_told) for (name, text), is_told in zip(said, told, strict=True) if name != is_told] == []
