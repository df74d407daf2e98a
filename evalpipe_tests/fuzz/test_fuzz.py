"""Damaged logs of every format: nothing crashes, nothing hangs, nothing is unaccounted for.

A few of the inputs of the long run (``python -m evalpipe_tests.fuzz``), and what that run once found.
"""

from __future__ import annotations

import copy
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalpipe_tests.fuzz.campaign import judge_numbers, run
from evalpipe_tests.fuzz.edits import places, put
from evalpipe_tests.fuzz.judge import judge
from evalpipe_tests.fuzz.landing import find_fault
from evalpipe_tests.fuzz.seeds import families, seeds
from evalpipe_tests.fuzz.values import raw, written
from evalpipe_tests.sources import coding_logs
from evalpipe_tests.sources.helpers import Claude, lines

_ROUND = 35


@settings(
    max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
@given(first=st.integers(0, 10**12))
def test_damaged_logs_are_read_or_quarantined(first: int, tmp_path: Path) -> None:
    for _, number, verdict in judge_numbers(list(range(first, first + _ROUND)), tmp_path):
        assert verdict.fault == "", f"python -m evalpipe_tests.fuzz --number {number}\n{verdict.detail}"


def test_a_home_takes_whatever_lies_in_the_folder() -> None:
    assert find_fault(range(40)) == ("", [])


def test_a_run_sums_up_every_input_of_every_family() -> None:
    told: list[int] = []
    outcome = run(80, seed=7, n_processes=1, progress=told.append)
    assert outcome.faults == {}
    assert sum(told) == sum(found.n_inputs for found in outcome.sums.values())
    assert set(outcome.sums) == set(families())


def test_any_field_may_nest_as_deep_as_a_log_may(tmp_path: Path) -> None:
    """Python does not print lists of that depth: a reader that looked up ``str(value)`` stopped the landing."""
    deep = raw("[" * 1015 + "]" * 1015)
    looked_up = {"type", "role", "status", "status_code", "event", "id", "task_id", "index", "name", "kind", "key"}
    paths: list[Path] = []
    for seed in (seed for seed in seeds() if seed.form == "lines"):
        for place, _ in places(list(seed.records))[1:]:
            if place[-1] in looked_up and len(place) < 6:
                path = tmp_path / f"{len(paths)}.jsonl"
                changed = put(copy.deepcopy(list(seed.records)), place, deep)
                path.write_bytes(written([*changed, *seed.records, *changed], "lines"))
                paths.append(path)
    assert len(paths) > 500
    for at in range(0, len(paths), 100):
        assert [verdict.detail for verdict in judge(paths[at : at + 100]) if verdict.fault] == []


_CLAUDE = families()["claude_code"][0].data
_LANGSMITH = families()["langsmith"][0].data


@pytest.mark.parametrize(
    "data",
    [
        _CLAUDE + b"\n" * 60_000,
        _CLAUDE + b"x\n" * 60_000,
        _CLAUDE + b"{}\n" * 60_000,
        _CLAUDE + b"{}" * 60_000 + b"\n",
        _LANGSMITH + b'{"a":' * 100_000,
    ],
    ids=["blank lines", "bad lines", "lines of no session", "values on one line", "depth"],
)
def test_many_bad_things_take_no_longer_than_they_are_many(data: bytes, tmp_path: Path) -> None:
    """Each was once measured from the start of its block: an hour for a megabyte of them."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    assert judge([path])[0].fault == ""


def _codes(data: bytes, path: Path) -> dict[str, int]:
    path.write_bytes(data)
    (verdict,) = judge([path])
    assert verdict.fault == "", verdict.detail
    return verdict.codes


def test_an_archive_of_nothing_is_accounted_for(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    folders = folder.tobuf() + bytes(1024)
    for data in (folders, gzip.compress(folders)):
        assert _codes(data, tmp_path / "log.tar") == {"NO_SESSION": 1}
    with_folder = io.BytesIO()
    with zipfile.ZipFile(with_folder, "w") as archive:
        archive.mkdir("folder")
    assert _codes(with_folder.getvalue(), tmp_path / "log.zip") == {"NO_SESSION": 1}


def test_the_place_of_what_leaves_the_grammar_holds_the_space_after_a_key(tmp_path: Path) -> None:
    for data in (b'{"info" "num_trials"', b'{\n "simulations": [],\n "info" \n 5}'):
        assert _codes(data, tmp_path / "log.json")["BAD_JSON"] == 1


_SPACES = " " * 200_000


@pytest.mark.parametrize(
    "data",
    [
        coding_logs.specstory(body=f"_**User**_\n\nbuild{_SPACES}it\n").encode(),
        lines(Claude().user(f"build{_SPACES}</system-reminder>")),
        lines(
            {
                "messages": [
                    {"role": "user", "content": f"###STOP### build{_SPACES}it"},
                    {"role": "assistant", "content": "x"},
                ]
            }
        ),
    ],
    ids=["specstory", "claude_code", "openai_messages"],
)
def test_much_white_space_is_looked_at_once(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    (verdict,) = judge([path])
    assert (verdict.fault, verdict.n_sessions) == ("", 1)


_MANY = 40_000


@pytest.mark.parametrize(
    "data",
    [
        coding_logs.specstory(body="_**User**_\n\nbuild it\n\n_**Agent**_\n\n" + "<think>" * _MANY + "\n").encode(),
        lines(Claude().user("build " + "<system-reminder>x</system-reminder>" * 40 + "</b>")),
        lines(Claude().user("build " + "<system-reminder>" * _MANY + "</system-reminder>")),
        lines(
            {
                "messages": [
                    {"role": "user", "content": "build it"},
                    {"role": "assistant", "content": "<tool_call>{" * _MANY + "</tool_call>"},
                ]
            }
        ),
    ],
    ids=["thoughts", "context", "unclosed_context", "calls"],
)
def test_many_tags_that_nothing_closes_are_looked_at_once(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    (verdict,) = judge([path])
    assert (verdict.fault, verdict.n_sessions) == ("", 1)
