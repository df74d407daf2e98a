"""Sources that are named by a pattern."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources import discover, short_name
from evalpipe.sources.patterns import matches


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "top.jsonl",
        "a/1.jsonl",
        "a/1.txt",
        "a/deep/2.jsonl",
        "b/.hidden/3.jsonl",
        "b/[x].jsonl",
        "b/x.jsonl",
    ):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs"


def found(*sources: str | Path) -> list[str]:
    return [str(item) for item in discover(sources)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("logs/*.jsonl", ["top.jsonl"]),
        ("logs/*/*.jsonl", ["a/1.jsonl", "b/[x].jsonl", "b/x.jsonl"]),
        ("logs/**/*.jsonl", ["a/1.jsonl", "a/deep/2.jsonl", "b/.hidden/3.jsonl", "b/[x].jsonl", "b/x.jsonl", "top.jsonl"]),
        ("logs/a/**", ["a/1.jsonl", "a/1.txt", "a/deep/2.jsonl"]),
        ("logs/[a]", ["a/1.jsonl", "a/1.txt", "a/deep/2.jsonl"]),
        ("logs/?/?.jsonl", ["a/1.jsonl", "b/x.jsonl"]),
        ("logs/[!a]/x.*", ["b/x.jsonl"]),
        ("logs/**/deep", ["a/deep/2.jsonl"]),
        ("logs/b/[x].jsonl", ["b/[x].jsonl"]),
    ],
)  # fmt: skip
def test_a_pattern_names_files_and_folders(logs: Path, pattern: str, names: list[str]) -> None:
    assert found(pattern) == [f"logs/{name}" for name in names]
    assert found(str(logs.parent / pattern)) == [str(logs / name) for name in names]


def test_a_pattern_without_a_match_is_an_error_that_names_it(logs: Path) -> None:
    with pytest.raises(EvalpipeError, match=r"SOURCE_NOT_FOUND \[logs/\*\*/\*\.log\]: Nothing matches"):
        discover([logs, "logs/**/*.log"])


def test_several_sources_that_name_one_file_name_it_once(logs: Path) -> None:
    assert found("logs/*.jsonl", "logs/top*", "logs/top.jsonl") == ["logs/top.jsonl"]


def test_a_tilde_in_quotes_is_the_home_of_the_user(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(logs))
    assert found("~/*.jsonl") == found("~/top.jsonl") == [str(logs / "top.jsonl")]


def test_a_star_pair_does_not_follow_links_to_folders(logs: Path) -> None:
    (logs / "a" / "loop").symlink_to(logs)
    assert found("logs/**/1.jsonl") == ["logs/a/1.jsonl"]
    assert found("logs/a/l*/top.jsonl") == ["logs/a/loop/top.jsonl"], "a part that matches a link follows it"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_cannot_be_listed_is_named_itself(logs: Path) -> None:
    (logs / "closed").mkdir(mode=0o000)
    assert "logs/closed" in found("logs/**/*.jsonl")


@pytest.mark.parametrize(
    ("path", "pattern", "is_match"),
    [
        ("a/b.jsonl", "**/*.jsonl", True),
        ("b.jsonl", "**/*.jsonl", True),
        ("a/b/c", "a/*", True),
        ("a", "a/*", False),
        ("x/y/z", "x/**/**/z", True),
        ("x/z", "x/**/z", True),
        ("x/y/z/w", "**/y", True),
        ("x/yy/z", "**/y", False),
        ("a/b", "**", True),
        ("a/b/c/d", "a/**/c/?", True),
        ("a/b/c/d/c", "a/**/d/c", True),
    ],
)
def test_paths_match_by_parts(path: str, pattern: str, is_match: bool) -> None:
    assert matches(path.split("/"), pattern.split("/")) is is_match


@pytest.mark.parametrize(
    ("name", "sources", "shown"),
    [
        ("logs/a/1.jsonl", ["logs"], "a/1.jsonl"),
        ("logs/a/1.jsonl", ["./logs/"], "a/1.jsonl"),
        ("logs/a/1.jsonl", ["logs/a/1.jsonl"], "1.jsonl"),
        ("logs/a/1.jsonl", ["logs/**/*.jsonl"], "a/1.jsonl"),
        ("/srv/logs/a/1.jsonl", ["/srv/other", "/srv/logs"], "logs/a/1.jsonl"),
        ("/1.jsonl", ["/"], "1.jsonl"),
    ],
)
def test_a_file_is_shown_below_its_source(name: str, sources: list[str], shown: str) -> None:
    assert short_name(Path(name), sources) == shown
