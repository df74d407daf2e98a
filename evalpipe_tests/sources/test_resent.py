"""History that calls resend must be read as if every call stood alone."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from evalpipe.sources.readers import resent
from evalpipe.sources.readers.resent import Items, Texts

Read = tuple[str, Any]


class Counted:
    """Reads items as themselves, and counts."""

    def __init__(self) -> None:
        self.n = 0

    def one(self, value: dict[str, Any], role: str, depth: int) -> list[Read]:
        self.n += 1
        return [(f"{role}{depth}", repr(value))]

    def many(self, values: list[Any], role: str) -> list[Read]:
        self.n += len(values)
        return [(role, repr(value)) for value in values]


def test_an_item_is_read_once() -> None:
    counted = Counted()
    items: Items[Read] = Items(counted.one)
    assert items.read({"a": [1]}, "user", 1) == items.read({"a": [1]}, "user", 1) == (("user1", "{'a': [1]}"),)
    assert counted.n == 1


@pytest.mark.parametrize("other", [{"a": True}, {"a": 1.0}, {"a": "1"}, {"b": 1}])
def test_items_that_python_takes_for_equal_are_told_apart(other: dict[str, Any]) -> None:
    items: Items[Read] = Items(Counted().one)
    items.read({"a": 1}, "user", 1)
    assert items.read(other, "user", 1) == (("user1", repr(other)),)


def test_role_and_depth_belong_to_an_item() -> None:
    items: Items[Read] = Items(Counted().one)
    found = [items.read({}, role, depth)[0][0] for role in ("user", "assistant") for depth in (1, 2)]
    assert found == ["user1", "user2", "assistant1", "assistant2"]


def test_items_that_are_no_json_are_read_each_time() -> None:
    items: Items[Read] = Items(Counted().one)
    assert items.read({"a": "\ud800"}, "user", 1) == (("user1", repr({"a": "\ud800"})),)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resent, "_MAX_BYTES", 100)
    items: Items[Read] = Items(Counted().one)
    for n in range(50):
        items.read({"a": n}, "user", 1)
        assert len(items._known) <= 15
    assert items.read({"a": 3}, "user", 1) == (("user1", "{'a': 3}"),)


def test_a_list_that_goes_on_is_read_from_where_it_ended() -> None:
    counted = Counted()
    texts: Texts[Read] = Texts(counted.many)
    for n in range(1, 30):
        text = orjson.dumps(list(range(n))).decode()
        assert texts.read(text, "user") == [("user", repr(k)) for k in range(n)]
    assert counted.n == 29


@pytest.mark.parametrize(
    "later",
    [
        "[1,2]",
        "[1]",
        "[12]",
        "[1, 3]",
        "[1 ,3]",
        "[1,]",
        "[1,2",
        "[1,2]]",
        "[1]x",
        "[1 2]",
        "[1,'2']",
        "[1,2],[3]",
        "[1]\n",
        "[]",
    ],
)
def test_what_only_begins_alike_is_read_as_if_alone(later: str) -> None:
    texts: Texts[Read] = Texts(Counted().many)
    texts.read("[1]", "user")
    alone: Texts[Read] = Texts(Counted().many)
    assert texts.read(later, "user") == alone.read(later, "user")


def test_a_list_in_pythons_words_is_not_gone_on_with_as_json() -> None:
    texts: Texts[Read] = Texts(Counted().many)
    texts.read("['a']", "user")
    assert texts.read("['a',null]", "user") == [("user", repr("['a',null]"))]


def test_conversations_that_alternate_keep_their_places() -> None:
    counted = Counted()
    texts: Texts[Read] = Texts(counted.many)
    for n in range(1, 20):
        for talk in "abc":
            texts.read(orjson.dumps([f"{talk}{k}" for k in range(n)]).decode(), "user")
    assert counted.n == 3 * 19


def test_what_was_read_can_be_changed_by_its_reader() -> None:
    texts: Texts[Read] = Texts(Counted().many)
    texts.read("[1]", "user").clear()
    assert texts.read("[1]", "user") == [("user", "1")]
