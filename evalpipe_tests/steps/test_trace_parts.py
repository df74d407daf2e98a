"""A trace in several files: wherever it was cut and whichever part comes first, it is the session of one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evalpipe.steps.context import Context
from evalpipe.steps.land import land
from evalpipe_tests.sources import traces
from evalpipe_tests.sources.test_trace_sessions import asked_by
from evalpipe_tests.steps.world import make, opened, rows, write

UUID = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35"
OTLP = traces.OTLP["resourceSpans"][0]["scopeSpans"][0]["spans"]
#: What a file tells of itself, not of the session.
_OF_FILE = ("file_id",)
Record = dict[str, Any]


def _named(records: list[Record], session_id: str = UUID) -> list[Record]:
    """The records with a session id that nobody gives twice."""
    return [json.loads(json.dumps(record).replace('"s1"', f'"{session_id}"')) for record in records]


def _otlp(session_id: str = UUID) -> list[Record]:
    return _named([traces.otlp(span) for span in OTLP], session_id)


def _phoenix(session_id: str = UUID) -> list[Record]:
    return _named(traces.PHOENIX, session_id)


def _landed(home: Path, files: list[Path]) -> None:
    """Land files one after the other, each followed by a run of the days concerned."""
    for file in files:
        with opened(home) as context:
            land(context, [file])
            stale = context.plan().days
            assert {name: done.red for name, done in make(context, "raw", days=stale).items() if done.red} == {}


def _files(folder: Path, parts: list[list[Record]]) -> list[Path]:
    return [write(folder / f"part{n}.jsonl", *part) for n, part in enumerate(parts)]


def _made(context: Context) -> tuple[pl.DataFrame, pl.DataFrame]:
    return rows(context, "raw.sessions").drop(_OF_FILE), rows(context, "raw.steps")


def _one(folder: Path, records: list[Record]) -> tuple[pl.DataFrame, pl.DataFrame]:
    _landed(folder / "home", [write(folder / "one.jsonl", *records)])
    with opened(folder / "home") as context:
        return _made(context)


def _langfuse() -> list[Record]:
    """A trace and its observations, as pages and exports hold them apart."""
    return _named([traces.LANGFUSE_TRACE, *traces.LANGFUSE_OBSERVATIONS])


def _cuts(n: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each place to cut, the first also with the later part landed first."""
    for cut in range(1, n):
        yield cut, (0, 1)
        if cut == n // 2:
            yield cut, (1, 0)


LOGS = {"otlp": _otlp(), "phoenix": _phoenix(), "langfuse": _langfuse()}


@pytest.mark.parametrize("source", LOGS)
def test_a_trace_that_was_cut_between_any_two_spans_is_the_session_of_one_file(tmp_path: Path, source: str) -> None:
    records = LOGS[source]
    expected = _one(tmp_path / "one", records)
    assert expected[0].height == 1
    for cut, order in _cuts(len(records)):
        home = tmp_path / f"{cut}{order[0]}"
        files = _files(home / "logs", [records[:cut], records[cut:]])
        _landed(home / "home", [files[n] for n in order])
        with opened(home / "home") as context:
            for left, right in zip(_made(context), expected, strict=True):
                assert_frame_equal(left, right)


def test_three_parts_that_overlap_make_one_session_in_any_order_and_a_second_landing_is_nothing_new(
    tmp_path: Path,
) -> None:
    records = _otlp()
    expected = _one(tmp_path / "one", records)
    # The last is a snapshot that the others hold.
    parts = [records[:3], records[2:5], records[4:], records[1:4]]
    made = []
    for n, order in enumerate([(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)]):
        home, files = tmp_path / f"home{n}", _files(tmp_path / "logs", parts)
        _landed(home, [files[place] for place in order])
        _landed(home, files)
        with opened(home) as context:
            for left, right in zip(_made(context), expected, strict=True):
                assert_frame_equal(left, right)
            copies = rows(context, "raw.copies")
            made.append(copies)
            assert copies["counted_n_messages"].unique().to_list() == expected[0]["n_messages"].to_list()
            # Of the second and the fourth, spans of the first trace come without a name.
            assert sorted(copies["rule"]) == ["merged", "merged", "same_session", "same_session"]
            assert rows(context, "raw.files")["n_sessions"].sum() == 1 + copies.height
    assert all(copies.equals(made[0]) for copies in made)


def test_traces_of_one_session_in_files_of_their_own_are_one_session(tmp_path: Path) -> None:
    # The second trace resends what was said in the first.
    spans = _named(OTLP)
    parts = [[traces.otlp(*(s for s in spans if s["traceId"] == trace))] for trace in ("t1", "t2")]
    _landed(tmp_path / "home", _files(tmp_path / "logs", parts))
    with opened(tmp_path / "home") as context:
        sessions, steps = _made(context)
        assert sessions["n_turns"].to_list() == [2]
        assert steps.filter(origin="human")["text"].to_list() == [traces.ASK, traces.THANKS]


def test_names_and_numbers_join_nothing_but_what_shares_a_trace(tmp_path: Path) -> None:
    one = _named(OTLP[:4], "chat-1")
    call = traces.chat("l9", "a9", 11, [traces.parts("user", "Hi")], [traces.parts("assistant", "Hello")], "t2")
    other = _named([traces.agent("a9", 10, 12, "t2"), call], "chat-1")
    parts = [[traces.otlp(*one[:2])], [traces.otlp(*one[2:])], [traces.otlp(*other)]]
    _landed(tmp_path / "home", _files(tmp_path / "logs", parts))
    with opened(tmp_path / "home") as context:
        assert rows(context, "raw.sessions")["n_turns"].to_list() == [1]
        assert rows(context, "raw.steps")["step_id"].to_list() == ["l1:m0", "l1", "c1", "l2"]
        assert sorted(rows(context, "raw.copies")["rule"]) == ["merged", "same_session"]


def _asked(user: str, trace: str, day: str, second: int) -> Record:
    row = json.dumps(asked_by(user, trace, second, f"{user} {day}"))
    record: Record = json.loads(row.replace("2026-01-05", f"2026-01-0{day}"))
    return record


ANN = [_asked("ann", "a0", "5", 0), _asked("ann", "a1", "6", 0)]
BOB = [_asked("bob", "b0", "5", 10), _asked("bob", "b1", "6", 10)]


def _words_of_users(home: Path) -> list[tuple[str | None, list[str]]]:
    """What each session holds of its user's words."""
    with opened(home) as context:
        sessions, steps = _made(context)
        users = dict(sessions.select("session_id", "user_id").iter_rows())
        said = (
            steps.filter(kind="user").sort("session_id", "seq").group_by("session_id", maintain_order=True).agg("text")
        )
        return sorted((users[session_id], texts) for session_id, texts in said.iter_rows())


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_short_id_of_two_users_on_two_days_is_four_sessions(tmp_path: Path, *, is_turned: bool) -> None:
    days = [[ANN[0], BOB[0]], [BOB[1], ANN[1]] if is_turned else [ANN[1], BOB[1]]]
    _landed(tmp_path / "home", _files(tmp_path / "logs", days))
    assert _words_of_users(tmp_path / "home") == [
        ("ann", ["ann 5"]), ("ann", ["ann 6"]), ("bob", ["bob 5"]), ("bob", ["bob 6"]),
    ]  # fmt: skip


def test_a_log_that_grows_by_a_second_user_counts_the_first_once(tmp_path: Path) -> None:
    for rows_now in ([ANN[0]], [ANN[0], BOB[0]], [ANN[0], BOB[0], ANN[1]]):
        _landed(tmp_path / "home", [write(tmp_path / "log.jsonl", *rows_now)])
    assert _words_of_users(tmp_path / "home") == [("ann", ["ann 5", "ann 6"]), ("bob", ["bob 5"])]


def test_a_trace_that_names_its_user_in_another_file_joins_no_two_people(tmp_path: Path) -> None:
    child = {**asked_by(None, "a0", 0, "child"), "context.span_id": "c0", "parent_id": "a0"}
    _landed(tmp_path / "home", _files(tmp_path / "logs", [[child, BOB[0]], [ANN[0], BOB[1]]]))
    assert _words_of_users(tmp_path / "home") == [
        ("ann", ["ann 5"]), ("bob", ["bob 6"]), ("bob", ["child", "bob 5"]),
    ]  # fmt: skip


def test_spans_of_one_id_that_began_at_another_time_contradict_and_are_not_mixed(tmp_path: Path) -> None:
    later = json.loads(json.dumps(_otlp()[2:4]).replace(traces.nanos(2), traces.nanos(30)))
    _landed(tmp_path / "home", _files(tmp_path / "logs", [_otlp()[:3], later]))
    with opened(tmp_path / "home") as context:
        assert rows(context, "raw.copies").select("session_id", "rule").rows() == [("otlp:t1", "same_session")]
        assert rows(context, "raw.steps").filter(kind="tool")["started_at"].dt.second().to_list() == [2]


def test_a_part_in_which_nothing_names_the_conversation_is_found_by_its_trace(tmp_path: Path) -> None:
    # The agent's span, which alone names the conversation, ends last and comes in the next file.
    by_end = sorted(_named(OTLP), key=lambda span: int(span["endTimeUnixNano"]))
    records = [traces.otlp(span) for span in by_end]
    expected = _one(tmp_path / "one", records)
    for n, order in enumerate([(0, 1), (1, 0)]):
        files = _files(tmp_path / "logs", [records[:2], records[2:]])
        _landed(tmp_path / f"home{n}", [files[place] for place in order])
        with opened(tmp_path / f"home{n}") as context:
            for left, right in zip(_made(context), expected, strict=True):
                assert_frame_equal(left, right)
            (copy,) = rows(context, "raw.copies").rows(named=True)
            assert (copy["session_id"], copy["rule"]) == ("otlp:t1", "merged")
            assert copy["counted_session_id"] == f"otlp:{UUID}"


def test_a_trace_that_two_conversations_hold_gives_its_parts_to_neither(tmp_path: Path) -> None:
    call = _named([traces.otlp(span) for span in OTLP[1:3]])
    other = _otlp("8d3a11aa-2b1c-4f56-9e0d-7a6b5c4d3e2f")
    parts = [_otlp()[:1], [other[3], other[0]], call]
    _landed(tmp_path / "home", _files(tmp_path / "logs", parts))
    with opened(tmp_path / "home") as context:
        assert "otlp:t1" in rows(context, "raw.sessions")["session_id"].to_list()
        assert rows(context, "raw.copies").is_empty()


def test_single_traces_that_were_downloaded_are_one_session_under_its_own_id(tmp_path: Path) -> None:
    download = {"trace": traces.LANGFUSE_TRACE, "observations": traces.LANGFUSE_OBSERVATIONS}
    later = json.loads(json.dumps(download).replace('"t1"', '"t2"').replace('"trace_id": "t1"', ""))
    for item in later["observations"]:
        item["id"] += "b"
        item["startTime"], item["endTime"] = (item[key].replace("10:00:", "10:05:") for key in ("startTime", "endTime"))
        if item.get("parentObservationId"):
            item["parentObservationId"] += "b"
    later["trace"]["timestamp"] = later["trace"]["timestamp"].replace("10:00:", "10:05:")
    _landed(tmp_path / "home", _files(tmp_path / "logs", [_named([download]), _named([later])]))
    with opened(tmp_path / "home") as context:
        sessions = rows(context, "raw.sessions")
        assert sessions["session_id"].to_list() == [f"langfuse:{UUID}"]
        assert sessions["n_turns"].to_list() == [2]
        assert sessions["logged_cost_usd"].to_list() == [1.5]


def _span_texts(context: Context) -> list[str | None]:
    paths = sorted(context.landing.root.glob("day=*/*.sessions.parquet"))
    return [text for path in paths for text in pl.read_parquet(path)["spans"]]


@pytest.mark.parametrize("is_known_before", [False, True])
def test_of_a_user_who_withdraws_the_parts_are_one_session_without_text(
    tmp_path: Path, *, is_known_before: bool
) -> None:
    spans = _named(OTLP)
    parts = [[traces.otlp(*(s for s in spans if s["traceId"] == trace))] for trace in ("t1", "t2")]
    files = _files(tmp_path / "logs", parts)

    def withdraw() -> None:
        (tmp_path / "consent.csv").write_text("user_id,source,status\nu1,,withdrawn\n")
        (tmp_path / "evalpipe.toml").write_text('consent = "consent.csv"\n')

    if is_known_before:
        withdraw()
    _landed(tmp_path / "home", files)
    withdraw()
    with opened(tmp_path / "home") as context:
        make(context, "raw")
        assert _span_texts(context) == [None, None]
        sessions, steps = _made(context)
        assert sessions["session_id"].to_list() == [f"otlp:{UUID}"]
        assert set(steps["step_id"]) >= {"l1", "l2", "l3"}
        assert steps.select("text", "arguments", "output").null_count().row(0) == (steps.height,) * 3
        assert rows(context, "raw.copies")["rule"].to_list() == ["merged"]


def test_a_session_that_was_joined_stays_one_when_its_logs_expire(tmp_path: Path) -> None:
    records = _otlp()
    _landed(tmp_path / "home", _files(tmp_path / "logs", [records[:3], records[3:]]))
    with opened(tmp_path / "home") as context:
        before = context.landing.day_inputs()
        for path in context.landing.root.glob("day=*/*.parquet"):
            path.unlink()
        for path in context.landing.root.glob("_batches/*.json"):
            path.write_bytes(path.read_bytes())  # whoever has read the index before looks again
        assert context.landing.day_inputs() == before


def test_a_part_that_names_no_user_loses_its_text_with_the_part_that_does(tmp_path: Path) -> None:
    records = _otlp()[:4]
    files = _files(tmp_path / "logs", [records[:3], records[3:]])
    (tmp_path / "consent.csv").write_text("user_id,source,status\nu1,,withdrawn\n")
    (tmp_path / "evalpipe.toml").write_text('consent = "consent.csv"\n')
    _landed(tmp_path / "home", files)
    with opened(tmp_path / "home") as context:
        assert rows(context, "raw.copies").select("session_id", "rule").rows() == [("otlp:t1", "merged")]
        assert _span_texts(context) == [None, None]
        steps = rows(context, "raw.steps")
        assert steps.select("text", "arguments", "output").null_count().row(0) == (steps.height,) * 3
