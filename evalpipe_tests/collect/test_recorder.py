"""The recorder: what it writes is what is read, whatever happens to the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.collect import Recorder
from evalpipe_tests.sources.helpers import Read


def record(folder: Path) -> Recorder:
    return Recorder(folder, agent="helper", agent_release="2.1", harness="runner")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines() if line]


def test_a_session_is_read_as_it_was_recorded(tmp_path: Path) -> None:
    assignment = {"policy": "ab", "unit": "user", "probability": 0.25, "epoch": "e1"}
    with record(tmp_path).session(
        "s1", model="m-a", user_id="u1", workspace="/w", tools=["Bash"], assignment=assignment, consent="terms",
        task_id="t", trial=2,
    ) as session:  # fmt: skip
        session.user("List the files.")
        with session.tool("Bash", {"command": "ls"}) as call:
            session.agent("inside", parent_id=call.step_id)
            call.finish("a.py", exit_code=0, is_error=False)
        session.agent("One: a.py.", tokens={"input": 900, "output": 12}, first_token_ms=40)
        session.interrupt()
        session.end("completed", is_success=True, reward=0.5, cost_usd=0.01)
    back = Read(tmp_path)
    row = back.sessions.row(0, named=True)
    expected = {
        "session_id": "evalpipe_jsonl:s1", "agent": "helper", "agent_release": "2.1", "harness": "runner",
        "model": "m-a", "user_id": "u1", "workspace": "/w", "tools": ["Bash"], "assignment_policy": "ab",
        "assignment_unit": "user", "assignment_probability": 0.25, "routing_epoch": "e1", "consent": "terms",
        "task_id": "t", "trial": 2, "end_status_logged": "completed", "is_objective_success": True,
        "objective_reward": 0.5, "logged_cost_usd": 0.01, "n_turns": 1, "n_tool_calls": 1, "input_tokens": 900,
        "is_dated": True, "is_clock_repaired": False,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    steps = back.steps.select("kind", "origin", "text", "output", "exit_code", "error").rows()
    assert steps == [
        ("user", "human", "List the files.", None, None, None),
        ("tool", "tool", None, "a.py", 0, None),
        ("agent", "agent", "inside", None, None, None),
        ("agent", "agent", "One: a.py.", None, None, None),
        ("user", "interrupt", None, None, None, None),
    ]
    call = back.steps.row(1, named=True)
    assert call["ended_at"] >= call["started_at"]
    assert back.steps["parent_id"][2] == call["step_id"]
    assert back.quarantine.is_empty()


@pytest.mark.parametrize(
    ("error", "status", "result"),
    [
        (RuntimeError("it broke"), "error", "tool_error"),
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        (TimeoutError(), "timeout", "timeout"),
    ],
)
def test_what_leaves_the_block_is_the_end(tmp_path: Path, error: BaseException, status: str, result: str) -> None:
    with pytest.raises(type(error)), record(tmp_path).session() as session, session.tool("Bash"):
        raise error
    back = Read(tmp_path)
    assert back.sessions["end_status_logged"].to_list() == [status]
    assert back.steps.select("error", "output", "is_error").rows() == [(result, str(error), True)]


def test_a_refused_call_keeps_the_users_reason(tmp_path: Path) -> None:
    with record(tmp_path).session() as session:
        session.tool("Bash").finish(error="refused", reason="not on Fridays")
    assert Read(tmp_path).steps.select("error", "text").rows() == [("refused", "not on Fridays")]


KILLED = """
import os, signal, sys
from evalpipe.collect import Recorder
session = Recorder(sys.argv[1], agent="helper").session("s1")
session.user("go")
session.tool("Bash", {"command": "sleep 9"})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_loses_nothing_and_makes_up_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    back = Read(tmp_path)
    assert back.sessions.select("n_turns", "n_tool_calls", "end_status_logged").rows() == [(1, 1, None)]
    assert back.steps.select("name", "error").rows() == [(None, None), ("Bash", "no_result")]


def test_threads_share_a_file_and_lines_stay_whole(tmp_path: Path) -> None:
    recorder = record(tmp_path)

    def work(number: int) -> None:
        with recorder.session(f"s{number}") as session:
            for turn in range(50):
                session.user(f"{number}-{turn} " + "x" * 5000)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(tmp_path.iterdir())) == 1
    assert Read(tmp_path).sessions["n_turns"].to_list() == [50] * 8


def test_a_forked_child_writes_a_file_of_its_own(tmp_path: Path) -> None:
    code = """
import os, sys
from evalpipe.collect import Recorder
recorder = Recorder(sys.argv[1], agent="helper")
recorder.session("parent").user("one")
if os.fork() == 0:
    recorder.session("child").user("two")
    os._exit(0)
os.wait()
recorder.session("again").user("three")
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert sorted(len(path.read_text().splitlines()) for path in tmp_path.iterdir()) == [2, 4]
    assert Read(tmp_path).sessions.height == 3


def test_a_full_disk_does_not_break_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record(tmp_path)
    session = recorder.session("s1")
    write = os.write

    def half(file: int, data: bytes) -> int:
        return write(file, data[: len(data) // 2])

    def none(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "write", half)
        with pytest.warns(RuntimeWarning, match="loses records"):
            session.user("half of me")
        full.setattr(os, "write", none)
        session.user("none of me")
    session.user("whole")
    assert recorder.n_lost == 2
    back = Read(tmp_path)
    assert back.steps["text"].to_list() == ["whole"]
    assert back.quarantine["code"].to_list() == ["BAD_JSON"]


def test_values_that_are_no_json_do_not_break_the_agent(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    loop: list[Any] = []
    loop.append(loop)
    with recorder.session() as session:
        session.tool("A", {"path": Path("/x"), (1, 2): 3, "n": float("nan")}).finish({"ok"})
        session.user("half a \ud83d pair")
        with pytest.warns(RuntimeWarning, match="cannot be written as JSON"):
            session.tool("B", loop)
    assert recorder.n_lost == 1
    back = Read(tmp_path)
    assert back.steps["arguments"][0] == '{"path":"/x","n":null}'
    assert back.steps["text"][1] == "half a \ufffd pair"


class Unprintable:
    def __str__(self) -> str:
        raise AttributeError("no words")


def test_a_value_that_cannot_print_does_not_break_the_agent(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.session() as session, pytest.warns(RuntimeWarning):
        session.tool("A", {"x": Unprintable()})
    assert recorder.n_lost == 1


def test_a_fork_while_another_thread_writes_does_not_hang_the_child(tmp_path: Path) -> None:
    code = """
import os, sys
from evalpipe.collect import Recorder
recorder = Recorder(sys.argv[1], agent="helper")
recorder._lock.acquire()
if os.fork() == 0:
    recorder.session("child").user("two")
    os._exit(0)
os.wait()
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
    assert Read(tmp_path).sessions["n_turns"].to_list() == [1]


def test_wrong_arguments_raise_at_once(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with pytest.raises(ValueError, match="assignment has unknown keys"):
        recorder.session(assignment={"arm": "a"})
    session = recorder.session()
    with pytest.raises(ValueError, match="unknown kinds"):
        session.agent("x", tokens={"prompt": 3})
    with pytest.raises(ValueError, match="status is none of"):
        session.end("done")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="error is none of"):
        session.tool("x").finish(error="bad")


def test_the_file_is_its_owners_and_a_closed_recorder_goes_on_in_a_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    with Recorder(folder, agent="helper", is_durable=True) as recorder:
        recorder.session("a")
    recorder.session("b")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600, 0o600]


def test_a_second_result_or_end_is_ignored(tmp_path: Path) -> None:
    with record(tmp_path).session() as session:
        call = session.tool("Bash")
        call.finish("one")
        call.finish("two")
        session.end("timeout")
    assert [row["type"] for row in rows(tmp_path)] == ["session", "step", "result", "end"]
    assert Read(tmp_path).sessions["end_status_logged"].to_list() == ["timeout"]


def test_importing_the_recorder_loads_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import evalpipe.collect\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names) - {'evalpipe'}\n"
        "sys.exit(', '.join(new) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_marks_are_no_turns(tmp_path: Path) -> None:
    with record(tmp_path).session() as session:
        session.user("go")
        session.agent("done")
        session.feedback(-1, "too long")
        session.feedback(1, is_approval=True)
        with pytest.raises(ValueError, match="rating"):
            session.feedback(5)  # type: ignore[arg-type]
    steps = Read(tmp_path).steps.filter(pl.col("origin") == "feedback").select("name", "arguments", "text", "turn")
    assert steps.rows() == [("rating", '{"rating":-1}', "too long", 1), ("approval", '{"rating":1}', None, 1)]


def test_ids_and_counts_of_other_types_are_written_as_the_log_has_them(tmp_path: Path) -> None:
    name = uuid.uuid4()
    with record(tmp_path).session(
        name, user_id=42, consent="withdrawn", trial=np.int64(3),  # type: ignore[arg-type]
        assignment={"policy": "ab", "unit": "user", "probability": Decimal("0.25"), "epoch": 7},
    ) as session:  # fmt: skip
        session.user("Hello there.")
        session.agent("Hi.", tokens={"input": np.int64(900)}, first_token_ms=np.float64(40.4))  # type: ignore[arg-type]
        session.end("completed", is_success=np.True_, reward=np.float64(0.5), cost_usd=Decimal("0.01"))  # type: ignore[arg-type]
    row = Read(tmp_path).sessions.row(0, named=True)
    expected = {
        "session_id": f"evalpipe_jsonl:{name}", "user_id": "42", "consent": "withdrawn", "trial": 3,
        "assignment_probability": 0.25, "routing_epoch": "7", "input_tokens": 900, "is_objective_success": True,
        "objective_reward": 0.5, "logged_cost_usd": 0.01,
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected


@pytest.mark.parametrize(
    "wrong",
    [
        lambda r: r.session(user_id=["u"]), lambda r: r.session(consent=True), lambda r: r.session(tools="Bash"),
        lambda r: r.session(assignment={"probability": 2}), lambda r: r.session(assignment={"unit": "team"}),
        lambda r: r.session().user(["text"]), lambda r: r.session().agent("x", tokens={"input": 1.5}),
        lambda r: r.session().end(is_success="yes"), lambda r: r.session().end(reward="1"),
        lambda r: r.session().end(cost_usd=float("nan")), lambda r: r.session().tool("Bash").finish(exit_code="0"),
        lambda r: Recorder("x", agent=""),
    ],
)  # fmt: skip
def test_what_the_log_cannot_say_raises_at_once(tmp_path: Path, wrong: Callable[[Recorder], object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        wrong(record(tmp_path))


def test_a_session_that_goes_on_in_another_file_is_told_by_its_steps(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    session = recorder.session(str(uuid.uuid4()))
    session.user("One.")
    session.agent("Two.")
    recorder.close()
    session.user("Three.")
    session.agent("Four.")
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 2
    steps = [row for row in rows(tmp_path) if row["type"] == "step"]
    assert len({row["step_id"] for row in steps}) == 4
    back = Read(tmp_path)
    assert back.quarantine.is_empty(), "a file that begins in the middle is known for what it is"


def test_a_handler_that_records_while_a_line_is_written_waits_for_nobody(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from evalpipe.collect import Recorder
recorder = Recorder(sys.argv[1], agent="helper")
session = recorder.session("s")
signal.signal(signal.SIGUSR1, lambda *_: session.interrupt())
append = recorder._append
def slow(line):
    if b"Here" in line:
        os.kill(os.getpid(), signal.SIGUSR1)
    append(line)
recorder._append = slow
session.user("Here.")
session.agent("There.")
recorder.close()
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    told = [(row.get("origin"), row.get("text")) for row in rows(tmp_path) if row["type"] == "step"]
    assert told == [("human", "Here."), ("interrupt", None), (None, "There.")]
