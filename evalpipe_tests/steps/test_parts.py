"""One session in several files: wherever it was cut and whichever part comes first, it is the session of one file."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evalpipe.sources import Part, join_parts
from evalpipe.steps.land import land
from evalpipe.store.parts import Joined, joined_sessions, step_facts
from evalpipe_tests.sources.helpers import Read
from evalpipe_tests.steps.world import DAY, make, opened, rows, write

UUID = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35"
START = datetime(2026, 1, 5, 23, 58)
Line = dict[str, Any]


def _at(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds") + "Z"


def _claude(n_turns: int = 3, session_id: str = UUID) -> list[Line]:
    """Questions with one answer each, cut into lines, and a call of a tool."""
    lines: list[Line] = []

    def line(kind: str, **message: Any) -> None:
        head = {
            "type": kind,
            "uuid": f"{session_id}-{len(lines)}",
            "sessionId": session_id,
            "timestamp": _at(20 * len(lines)),
        }
        lines.append({**head, "version": "2.0.1", "cwd": "/home/ada/app", "message": message})

    for turn in range(n_turns):
        line("user", role="user", content=f"Question {turn}")
        answer = {"id": f"msg{turn}", "role": "assistant", "model": f"m-{turn % 2}"}
        line(
            "assistant", **answer, content=[{"type": "text", "text": f"Let me look {turn}"}], usage={"output_tokens": 1}
        )
        call = {"type": "tool_use", "id": f"call{turn}", "name": "Bash", "input": {"command": "ls"}}
        line("assistant", **answer, content=[call], usage={"input_tokens": 3, "output_tokens": 9})
        result = {"type": "tool_result", "tool_use_id": f"call{turn}", "content": "a.txt", "is_error": turn == 1}
        line("user", role="user", content=[result])
    return lines


def _own(n_turns: int = 3, session_id: str = UUID) -> list[Line]:
    """Steps of evalpipe's own lines; the header is the first."""
    lines: list[Line] = [
        {"evalpipe": 1, "type": "session", "session_id": session_id, "agent": "acme", "model": "m-1", "user_id": "u-1",
         "started_at": _at(0), "tools": ["sh"], "scenario": "repair"}
    ]  # fmt: skip
    for turn in range(n_turns):
        head = {"type": "step", "session_id": session_id}
        lines.append({**head, "step_id": f"u{turn}", "kind": "user", "text": f"Question {turn}", "at": _at(60 * turn)})
        # Written when it is over: the line before it may begin later.
        lines.append({**head, "step_id": f"t{turn}", "kind": "tool", "name": "sh", "arguments": {"n": turn}, "output": "ok",
                      "started_at": _at(60 * turn + 5), "ended_at": _at(60 * turn + 40)})  # fmt: skip
        lines.append({**head, "step_id": f"a{turn}", "kind": "agent", "text": f"Answer {turn}", "at": _at(60 * turn + 41),
                      "model": "m-1", "tokens": {"input": 5, "output": turn}})  # fmt: skip
    lines.append(
        {"type": "end", "session_id": session_id, "status": "completed", "at": _at(60 * n_turns), "cost_usd": 0.5}
    )
    return lines


LOGS = {"claude_code": _claude, "evalpipe_jsonl": _own}
_RANK = ["session_id", "n_messages", "content_digest"]


def _copies(folder: Path, parts: list[list[Line]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What is landed of files: sessions and steps with their places."""
    sessions, steps = [], []
    for name, lines in enumerate(parts):
        for chunk in Read(write(folder / f"session.{name}.jsonl", *lines)).chunks:
            stem = pl.lit(str(name)).alias("stem")
            sessions.append(chunk.sessions.with_columns(stem))
            steps.append(chunk.steps.with_columns(stem))
    return pl.concat(sessions).sort(_RANK, descending=[False, True, False]), pl.concat(steps)


def _joined(sessions: pl.DataFrame, steps: pl.DataFrame) -> list[Joined]:
    where = ["session_id", "day", "stem", "copy"]
    return joined_sessions(
        sessions, lambda some: step_facts(steps.join(some, on=where, how="semi", maintain_order="left"))
    )


def _whole(folder: Path, parts: list[list[Line]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    sessions, steps = _copies(folder, parts)
    (found,) = _joined(sessions, steps)
    assert len(found.places) == len(parts)

    def of(frame: pl.DataFrame, place: tuple[Any, ...]) -> pl.DataFrame:
        return frame.filter(pl.col("day") == place[0], pl.col("stem") == place[1], pl.col("copy") == place[2])

    chunk = join_parts(
        [(found.session_id, [Part(of(sessions, place), of(steps, place)) for place in found.places], found.n_messages)]
    )
    return chunk.sessions, chunk.steps


@pytest.mark.parametrize("source", LOGS)
@pytest.mark.parametrize("n_parts", [2, 3])
def test_a_session_that_was_cut_anywhere_is_the_session_of_one_file(tmp_path: Path, source: str, n_parts: int) -> None:
    lines = LOGS[source](4 - n_parts + 1)
    one = Read(write(tmp_path / "one.jsonl", *lines)).chunks[0]
    first = 2 if source == "evalpipe_jsonl" else 1  # a header alone has no step
    last = len(lines) - (1 if source == "evalpipe_jsonl" else 0)
    for cuts in itertools.combinations(range(first, last), n_parts - 1):
        places = [0, *cuts, len(lines)]
        parts = [lines[start:end] for start, end in itertools.pairwise(places)]
        for n, order in enumerate(itertools.permutations(parts)):
            if n not in (0, n_parts):
                continue
            sessions, steps = _whole(tmp_path / f"{cuts}{n}", list(order))
            told = sessions.drop("file_id", "said_digest", "first_step_at")
            assert_frame_equal(told, one.sessions.select(told.columns), check_row_order=False)
            assert_frame_equal(steps, one.steps)


def test_whoever_withdraws_in_one_part_does_so_for_the_whole(tmp_path: Path) -> None:
    lines = _own()
    header = {**lines[0], "agent_release": "2.0"}
    parts = [[{**header, "consent": "granted"}, *lines[1:6]], [{**header, "consent": "withdrawn"}, *lines[6:]]]
    sessions, _ = _whole(tmp_path, parts)
    assert sessions.select("consent", "agent", "agent_release", "end_status_logged").rows() == [
        ("withdrawn", "acme", "2.0", "completed")
    ]


def _taken(folder: Path, *parts: list[Line]) -> list[list[str]]:
    return [[place[1] for place in item.places] for item in _joined(*_copies(folder, list(parts)))]


def test_parts_that_share_steps_are_joined_and_each_step_is_there_once(tmp_path: Path) -> None:
    lines = _claude()
    sessions, steps = _whole(tmp_path, [lines[:8], lines[4:]])
    one = Read(write(tmp_path / "one.jsonl", *lines)).chunks[0]
    assert_frame_equal(steps, one.steps)
    assert sessions["n_messages"].item() >= 10


def test_a_copy_that_another_holds_is_no_part(tmp_path: Path) -> None:
    lines = _claude()
    assert _taken(tmp_path / "a", lines, lines[4:]) == []
    assert _taken(tmp_path / "b", lines[:6], lines[:9]) == []
    assert _taken(tmp_path / "c", lines[:6], lines[:9], lines[9:]) == [["1", "2"]]


def test_a_session_that_was_taken_up_again_from_its_middle_is_not_mixed_with_what_it_was(tmp_path: Path) -> None:
    before, after = _own(), _own()
    for line in after[4:]:
        if "step_id" in line:
            line["step_id"] += "again"
    assert _taken(tmp_path / "a", before, after) == []
    rest = [{**after[0], "started_at": _at(600)}, {**before[1], "step_id": "u9", "at": _at(600)}]
    assert sorted(*_taken(tmp_path / "b", before, after, rest)) in (["0", "2"], ["1", "2"])


def test_copies_that_contradict_each_other_are_not_joined(tmp_path: Path) -> None:
    lines, others = _own(), _own()
    others[4]["text"] = "Something else"
    assert _taken(tmp_path, lines[:6], [others[0], *others[4:]]) == []


def test_ids_that_anybody_may_give_join_nothing(tmp_path: Path) -> None:
    lines = _own(session_id="chat-1")
    assert _taken(tmp_path, lines[:5], lines[5:]) == []


def test_sessions_of_other_formats_are_not_joined(tmp_path: Path) -> None:
    sessions, steps = _copies(tmp_path, [_claude()[:4], _claude()[4:]])
    assert _joined(sessions.with_columns(source=pl.lit("codex")), steps) == []


def test_parts_on_two_days_make_one_session_in_any_order_of_landing(tmp_path: Path) -> None:
    lines = _claude()
    parts = [lines[:5], lines[5:8], lines[8:]]
    found = []
    for n, order in enumerate([(0, 1, 2), (2, 0, 1), (1, 2, 0)]):
        for part in order:
            with opened(tmp_path / f"home{n}") as context:
                land(context, [write(tmp_path / f"logs{n}" / f"session.{part}.jsonl", *parts[part])])
                assert {name: done.red for name, done in make(context, "raw").items() if done.red} == {}
        with opened(tmp_path / f"home{n}") as context:
            sessions, copies = rows(context, "raw.sessions"), rows(context, "raw.copies")
            assert sessions["started_at"].dt.date().to_list() == [DAY]
            assert sessions["n_turns"].to_list() == [3]
            assert copies["rule"].to_list() == ["merged", "merged"]
            assert copies["counted_n_messages"].to_list() == [12, 12]
            found.append((sessions, rows(context, "raw.steps"), copies))
    for other in found[1:]:
        for left, right in zip(found[0], other, strict=True):
            assert_frame_equal(left, right)
    with opened(tmp_path / "home0") as context:
        make(context)
        before = context.landing.day_inputs()
        for path in context.landing.root.glob("day=*/*.steps.parquet"):
            path.unlink()
        for path in context.landing.root.glob("_batches/*.json"):
            path.write_bytes(path.read_bytes())  # whoever has read the index before looks again
        # What expires must not become two sessions on two days.
        assert context.landing.day_inputs() == before
        assert context.plan().days == []
        assert rows(context, "masked.sessions")["n_steps"].to_list() == [9]
        assert rows(context, "masked.steps").height == 9
    with opened(tmp_path / "one") as context:
        land(context, [write(tmp_path / "one.jsonl", *lines)])
        make(context, "raw")
        assert_frame_equal(rows(context, "raw.steps"), found[0][1])
        assert rows(context, "raw.copies").is_empty()
