from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria, available, diff, load
from evalpipe.criteria.load import build
from evalpipe.criteria.validate import problems
from evalpipe.locations import data_dir

DEFAULT = (data_dir() / "criteria" / "default.toml").read_text(encoding="utf-8")


def test_every_shipped_file_is_valid_and_listed() -> None:
    names = available()
    assert "default" in names
    for name in names:
        assert load(name, extractors="x").name == name


def test_a_file_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DEFAULT.replace('name = "default"', 'name = "mine"'), encoding="utf-8")
    by_name = load("mine", extractors="x", directory=tmp_path)
    assert by_name == load(path, extractors="x") == load(str(path), extractors="x")
    assert available(tmp_path) == ["mine"]


def test_values_keep_their_meaning(edited: Callable[..., Criteria]) -> None:
    criteria = edited()
    assert criteria.outcomes.compare_by == ("agent", "model")
    assert criteria.outcomes.weights["confirm.explicit"] == 1.0
    assert criteria.outcomes.weights["loop.retry"] == 0.0  # not named in the file
    assert [gate.name for gate in criteria.gates] == ["outcome_no_worse", "corrections_no_worse"]


def test_gates_may_be_absent(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text(DEFAULT[: DEFAULT.index("[[gates]]")], encoding="utf-8")
    assert load(path, extractors="x").gates == ()


def test_unknown_name_offers_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError) as error:
        load("defualt", extractors="x")
    assert error.value.code == "CRITERIA_NOT_FOUND"
    assert "'default'" in error.value.what
    with pytest.raises(EvalpipeError) as error:
        load(tmp_path / "absent.toml", extractors="x")
    assert error.value.code == "CRITERIA_NOT_FOUND"


def test_two_files_may_not_call_themselves_alike(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(DEFAULT, encoding="utf-8")
    with pytest.raises(EvalpipeError) as error:
        load("mine", extractors="x", directory=tmp_path)
    assert error.value.where == "mine.toml: name"
    assert 'name = "mine"' in error.value.fix


@pytest.mark.parametrize("content", [b"name = default\n", b"name = 'a'\nname = 'b'\n", b"\xff\xfe"])
def test_what_is_not_toml_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(EvalpipeError) as error:
        load(path, extractors="x")
    assert error.value.code == "CRITERIA_INVALID"
    assert "not TOML" in error.value.what


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)


def _render(data: dict[str, Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """The same file with keys in another order and other comments and whitespace."""
    noise = st.sampled_from(["", "  # why", "\n\n# a comment = 1\n", "   "])
    key_space = st.sampled_from(["", " ", "    "])
    lines: list[str] = []

    def pairs(items: dict[str, Any]) -> None:
        lines.extend(
            f'{draw(key_space)}"{key}"{draw(key_space)}={draw(key_space)}{_toml(items[key])}{draw(noise)}'
            for key in draw(st.permutations(list(items)))
        )

    pairs({k: v for k, v in data.items() if not isinstance(v, dict) and k != "gates"})
    sections = [k for k, v in data.items() if isinstance(v, dict)]
    for section in draw(st.permutations([*sections, "gates"])):
        if section == "gates":
            for gate in data["gates"]:
                lines.append("[[gates]]")
                pairs(gate)
            continue
        lines.append(f"[{section}]")
        pairs({k: v for k, v in data[section].items() if not isinstance(v, dict)})
        for name, table in data[section].items():
            if isinstance(table, dict):
                lines.append(f"[{section}.{name}]")
                pairs(table)
    return "\n".join(lines) + "\n"


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_comments_order_and_whitespace_change_no_hash(data: st.DataObject) -> None:
    parsed = tomllib.loads(DEFAULT)
    again = tomllib.loads(_render(parsed, data.draw))
    assert problems(again) == []
    first, second = build(parsed, extractors="x"), build(again, extractors="x")
    assert (first.hash, first.measurement) == (second.hash, second.measurement)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("score_threshold = 0.0", "score_threshold = 0"),
        ('"praise" = 0.5', '"praise" = 0.50'),
        ('"interrupt" = 0.0\n', ""),
        ("withhold_over_bytes = 8_000_000", "withhold_over_bytes = 8000000"),
    ],
)
def test_another_way_to_write_a_value_changes_no_hash(edited: Callable[..., Criteria], old: str, new: str) -> None:
    assert edited((old, new)).hash == edited().hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"praise" = 0.5', '"praise" = 0.4'),
        ("min_confidence = 0.75", "min_confidence = 0.7"),
        ('population = "traffic"', 'population = "equal"'),
    ],
)
def test_a_change_of_meaning_is_a_new_measurement(edited: Callable[..., Criteria], old: str, new: str) -> None:
    assert edited((old, new)).measurement != edited().measurement


def test_new_extractors_are_a_new_measurement(edited: Callable[..., Criteria]) -> None:
    assert edited(extractors="x2").measurement != edited(extractors="x1").measurement


@pytest.mark.parametrize(
    ("old", "new"),
    [('ruleset = "default"', 'ruleset = "strict"'), ("margin = 0.05", "margin = 0.02"), ('"1.2"', '"1.3"')],
)
def test_masking_gates_and_version_keep_the_measurement(edited: Callable[..., Criteria], old: str, new: str) -> None:
    assert edited((old, new)).measurement == edited().measurement
    assert edited((old, new)).hash != edited().hash


def test_the_demo_differs_from_the_default_in_what_it_declares_only() -> None:
    changes = {change.path for change in diff(load("default", extractors="x"), load("demo", extractors="x"))}
    assert changes == {"name", "description", "estimand.design"}
    assert load("default", extractors="x").estimand.design == "as_logged"
