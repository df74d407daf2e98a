"""Scenarios: declared wins; else the opening words, the tools offered and the working folder."""

from __future__ import annotations

from typing import Any

import pytest

from evalpipe.signals import extract_part, rulefiles
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

BARE: dict[str, Any] = {"workspace": None}
#: A small set of openings written for this test, with the scenario that a reader would give.
OPENINGS = [
    ("fix the failing unit tests in src/parser.py", "coding"),
    ("Refactor this function to use async", "coding"),
    ("why does my docker build fail with exit code 137", "coding"),
    ("write a bash script that renames files", "coding"),
    ("add a REST endpoint for users", "coding"),
    ("how do I reverse a list in Python?", "coding"),
    ("帮我写一个函数，读取数据库", "coding"),
    ("部署到服务器时报错", "coding"),
    ("crie uma API em Node para o projeto", "coding"),
    ("corrija o bug na função de login", "coding"),
    ("draft an email to the supplier about the late shipment", "work"),
    ("summarize the minutes of yesterday's meeting", "work"),
    ("I want to cancel my order and get a refund", "work"),
    ("book a flight to Lisbon for Monday", "work"),
    ("make slides for the quarterly report", "work"),
    ("写一封邮件给客户", "work"),
    ("帮我做一份下季度的预算表格", "work"),
    ("preciso de uma proposta comercial para o cliente", "work"),
    ("monte a agenda da reunião de sexta", "work"),
    ("what is the capital of Peru?", "chat"),
    ("tell me a story about a dragon", "chat"),
    ("how are you today", "chat"),
    ("今天心情不好，陪我聊聊", "chat"),
    ("me conte uma piada", "chat"),
    ("recommend a novel by a Japanese author", "chat"),
]


def scenario(talk: Talk) -> tuple[str, str]:
    part = extract_part(*frames(talk), EXTRACTION)
    return part.session_features.select("scenario", "scenario_method").row(0)


def test_most_openings_are_told_right() -> None:
    told = [scenario(Talk(**BARE).user(text))[0] for text, _ in OPENINGS]
    wrong = [(text, got, want) for (text, want), got in zip(OPENINGS, told, strict=True) if got != want]
    assert len(wrong) <= 0.1 * len(OPENINGS), wrong


@pytest.mark.parametrize(
    ("session", "text", "expected"),
    [
        ({"scenario_declared": "airline"}, "fix the bug", ("airline", "declared")),
        ({"workspace": None}, "hello", ("chat", "default")),
        ({"workspace": None, "tools": ["get_order_details", "cancel_order"]}, "hello", ("work", "rule")),
        ({"workspace": None, "tools": ["Bash", "Edit"]}, "hello", ("coding", "rule")),
        ({"workspace": "w"}, "hello", ("coding", "rule")),
        ({"workspace": "w"}, "draft an email to my customer", ("work", "rule")),
    ],
)
def test_evidence(session: dict[str, Any], text: str, expected: tuple[str, str]) -> None:
    assert scenario(Talk(**session).user(text)) == expected


def test_what_the_agent_did_is_not_read() -> None:
    quiet = Talk(**BARE).user("hello")
    busy = Talk(**BARE).user("hello").bash("pytest -q").agent("I fixed the bug in a.py").user("now refactor the code")
    assert scenario(quiet) == scenario(busy) == ("chat", "default")


def test_rules_use_known_keys_and_known_scenarios() -> None:
    """A key that is misspelled would be a condition that is never asked."""
    keys = {"id", "scenario", "text", "unless", "tools", "unless_tools", "workspace"}
    rules = rulefiles.load("scenario.toml")["rule"]
    assert all(set(rule) <= keys and len(rule) > 2 for rule in rules)
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert {rule["scenario"] for rule in rules} == {"coding", "work", "chat"}


@pytest.mark.parametrize(
    ("session", "text", "expected"),
    [
        # Orders are what the code is about, where an agent sits in a folder of code.
        ({"workspace": None, "tools": ["Bash"]}, "the refund is booked twice", "coding"),
        ({"workspace": None}, "the refund is booked twice", "work"),
        # A question that has nothing to do with the tools is no work with them.
        ({"workspace": "w", "tools": ["Bash"]}, "who won the world cup in 2010?", "chat"),
        ({"workspace": None, "tools": ["get_order_details"]}, "who is my contact?", "work"),
        # Letters are folded on both sides, and patterns of one script leave the others alone.
        ({"workspace": None}, "RÉDIGE UN MAIL AU FOURNISSEUR", "work"),
        ({"workspace": None}, "見積書を作成して", "work"),
    ],
)
def test_keys_of_a_rule(session: dict[str, Any], text: str, expected: str) -> None:
    assert scenario(Talk(**session).user(text))[0] == expected
