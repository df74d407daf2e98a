"""A small world, run through the real command line."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evalpipe.simulate import Spec, Truth, simulate
from evalpipe_tests.end_to_end import preloaded

START = date(2026, 1, 5)
DAYS = 4
#: One key for all homes of the tests: bytes can be compared only under one key.
KEY = "5e" * 32


@dataclass(frozen=True)
class Cli:
    """The command line in processes of its own."""

    folder: Path

    def environ(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVALPIPE_", "DAGSTER_"))}
        return kept | {"EVALPIPE_KEY": KEY, "COLUMNS": "200", "NO_COLOR": "1"}

    def start(self, *args: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "evalpipe.cli", *map(str, args)],
            cwd=self.folder, env=self.environ(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *args: str | Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = preloaded.call([str(arg) for arg in args], self.folder, self.environ())
        if expect is not None:
            assert done.returncode == expect, f"{args}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args: str | Path, expect: int | None = 0) -> Any:
        return json.loads(self(*args, "--json", expect=expect).stdout)

    def rows(self, home: Path, query: str) -> list[dict[str, Any]]:
        done = self("sql", query, "--home", home, "--format", "json")
        return [json.loads(line) for line in done.stdout.splitlines()]


def files_of(root: Path) -> dict[str, str]:
    """Digest of every file of a lake, staging and lock files left out."""
    return {
        str(path.relative_to(root)): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "_staging" not in path.parts
    }


def times_of(root: Path) -> dict[str, int]:
    """Modification time of every file of a lake."""
    return {
        str(path.relative_to(root)): path.stat().st_mtime_ns
        for path in sorted(root.rglob("*"))
        if path.is_file() and "_staging" not in path.parts
    }


@dataclass(frozen=True)
class World:
    """Simulated logs with their truth."""

    logs: Path
    truth: Truth


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("cwd"))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    logs = tmp_path_factory.mktemp("world") / "logs"
    # Routed alike: merged strata of so few sessions would leave an imbalance that bars every gate.
    spec = Spec(sessions=400, days=DAYS, start=START, canary_rate=0.2, confounding=0)
    return World(logs, simulate(logs, spec))


@pytest.fixture(scope="session")
def days(world: World) -> list[Path]:
    """Folders of the nights, without late files."""
    return sorted(path for path in world.logs.iterdir() if path.name.startswith("day="))


@pytest.fixture(scope="session")
def home(cli: Cli, days: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home into which everything but the late files was run. Tests read it and leave it as it is."""
    made = tmp_path_factory.mktemp("home") / "home"
    cli("run", *days, "--home", made)
    return made
