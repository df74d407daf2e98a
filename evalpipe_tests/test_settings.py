"""Settings are right or refused in one line; a home is made once, closed, and never committed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import Settings, load, open_home, require_home


@pytest.mark.parametrize(
    "line",
    [
        "first_day = 2026-01-01T00:00:00",
        "first_day = 2026-01-01T00:00:00Z",
        "first_day = 10:00:00",
        "first_day = 2026",
        'first_day = "soon"',
        'duckdb_memory = "lots"',
        'duckdb_memory = "-1GB"',
        'duckdb_memory = "0MB"',
        'duckdb_memory = "512MB; SELECT 1"',
        "duckdb_memory = 512",
        "workers = true",
        "workers = 1.5",
        'workers = "²"',
        "workers = 0",
        "home = 5",
        'home = ""',
        'home = "~nobody-of-that-name/x"',
        "criteria = 1",
        "sources = [1]",
        "colour = 1",
        "first_day = ",
    ],
)
def test_a_bad_line_is_one_error_and_makes_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "evalpipe.toml").write_text(f"{line}\n", "utf-8")
    with pytest.raises(EvalpipeError, match="SETTINGS_INVALID") as caught:
        load(folder=tmp_path, environ={})
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["evalpipe.toml"]


def test_a_file_in_another_encoding_is_refused_by_byte(tmp_path: Path) -> None:
    (tmp_path / "evalpipe.toml").write_bytes('criteria = "größer"\n'.encode("latin-1"))
    with pytest.raises(EvalpipeError, match=r"SETTINGS_INVALID.*evalpipe\.toml.*UTF-8 at byte 14"):
        load(folder=tmp_path, environ={})


@pytest.mark.parametrize("size", ["512MB", "1 GB", "1.5GiB", "800000KB"])
def test_sizes(tmp_path: Path, size: str) -> None:
    assert load(folder=tmp_path, environ={"EVALPIPE_DUCKDB_MEMORY": size}).duckdb_memory == size


def test_a_new_home_is_closed_and_ignored_by_git(tmp_path: Path) -> None:
    home = open_home(Settings(home=tmp_path / "home")).home
    assert (home / ".gitignore").read_text() == "*\n"
    assert home.stat().st_mode & 0o077 == 0
    assert sorted(os.listdir(home)) == [".gitignore", "home.json"]


def test_rules_of_a_checkout_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / ".gitignore").write_text("lake\n")
    open_home(Settings(home=tmp_path / "own"))
    assert (tmp_path / "own" / ".gitignore").read_text() == "lake\n"
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    open_home(Settings(home=tmp_path / "checkout"))
    assert not (tmp_path / "checkout" / ".gitignore").exists()


def test_reading_makes_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name in ("nowhere", "file", "folder"):
        with pytest.raises(EvalpipeError, match="NO_HOME"):
            require_home(Settings(home=tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    made = open_home(Settings(home=tmp_path / "home"))
    assert require_home(made) == made


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for home in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/evalpipe")):
        with pytest.raises(EvalpipeError, match="HOME_UNUSABLE"):
            open_home(Settings(home=home))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"layout": 2, "first_day": "2026-01-01T00:00:00+01:00"}'])
def test_a_damaged_home_is_said_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "home.json").write_text(text)
    with pytest.raises(EvalpipeError, match="HOME_DAMAGED"):
        open_home(Settings(home=tmp_path))


def test_another_layout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home.json").write_text(json.dumps({"layout": 99, "first_day": "2026-01-01"}))
    with pytest.raises(EvalpipeError, match=r"HOME_INCOMPATIBLE.*layout 99"):
        open_home(Settings(home=tmp_path))


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("/var/log/agents", ("/var/log/agents",)),
        ("/var/log/a::/b/*.jsonl", ("/var/log/a", "/b/*.jsonl")),
        ("s3://logs/a:/b:s3://logs/c", ("s3://logs/a", "/b", "s3://logs/c")),
        (
            "/b:s3://logs/a?region=x&endpoint=http://host:9000:s3://logs/c:2026",
            ("/b", "s3://logs/a?region=x&endpoint=http://host:9000", "s3://logs/c", "2026"),
        ),
        ("s3://logs/a?endpoint=https://host:/b", ("s3://logs/a?endpoint=https://host", "/b")),
    ],
)
def test_sources_of_the_environment_are_separated_as_paths_are(
    tmp_path: Path, text: str, sources: tuple[str, ...]
) -> None:
    assert load(folder=tmp_path, environ={"EVALPIPE_SOURCES": text}).sources == sources
