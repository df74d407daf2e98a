"""Every reader has a seed, and an undamaged seed is read in full."""

from __future__ import annotations

import random
from pathlib import Path

from evalpipe.sources.readers.base import Reader
from evalpipe.sources.registry import READERS
from evalpipe_tests.fuzz.inputs import make
from evalpipe_tests.fuzz.judge import judge
from evalpipe_tests.fuzz.seeds import seeds
from evalpipe_tests.fuzz.values import raw, twice, written


def test_every_reader_has_a_seed() -> None:
    known = [seed.reader for seed in seeds()]
    lacking = [f"{reader.name} ({reader.shape})" for reader in READERS if reader not in known]
    assert lacking == [], "add a small log of it to the tests of its format, and to fuzz/seeds.py"


def test_every_reader_finds_a_session_in_a_seed_of_its_own(tmp_path: Path) -> None:
    paths: dict[Path, Reader] = {}
    for number, seed in enumerate(seeds()):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(seed.data)
        assert seed.reader is not None
        paths[path] = seed.reader
    found = judge(list(paths))
    assert [verdict.detail for verdict in found if verdict.fault] == []
    fruitful = [paths[verdict.path] for verdict in found if verdict.n_sessions]
    assert [f"{reader.name} ({reader.shape})" for reader in READERS if reader not in fruitful] == []


def test_a_number_always_gives_the_same_input() -> None:
    before = [make(number) for number in range(400)]
    assert before == [make(number) for number in range(400)]
    assert len({made.data for made in before}) > 300


def test_placeholders_become_what_they_stand_for() -> None:
    records = [{"a": raw("1e999"), "b": f"x{raw('é')}y"}, {"a": 1, twice("a", random.Random(1)): 2}]
    assert written(records, "lines").decode() == '{"a": 1e999, "b": "xéy"}\n{"a": 1, "a": 2}\n'
