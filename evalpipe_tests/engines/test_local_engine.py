"""The local engine: order, errors, memory in flight, and no process left behind."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.engines import LocalEngine, collector
from evalpipe.engines.wire import KernelError
from evalpipe_tests.engines import kernels


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    with LocalEngine(2) as running:
        yield running


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: object, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


@given(st.lists(st.integers(), max_size=12))
@settings(max_examples=15, deadline=None)
def test_results_are_those_of_this_process_in_order(tasks: list[int]) -> None:
    assert list(SHARED.map(kernels.square, tasks)) == [n * n for n in tasks]


def test_a_slow_task_does_not_change_the_order_nor_stop_the_others(engine: LocalEngine) -> None:
    found = list(engine.map(kernels.slow_first, range(6)))
    assert [n for n, _ in found] == list(range(6))
    assert os.getpid() not in {pid for _, pid in found}
    assert len({pid for _, pid in found}) == 2


def test_workers_are_kept_and_have_few_threads(engine: LocalEngine) -> None:
    first = set(engine.map(kernels.threads, range(8)))
    again = set(engine.map(kernels.threads, range(8)))
    assert {n for n, _ in first | again} == {1}
    assert len({pid for _, pid in first | again}) <= 2


def test_frames_go_both_ways(engine: LocalEngine) -> None:
    frames = [pl.DataFrame({"a": [n, 1]}) for n in range(4)]
    assert [f.item() for f in engine.map(kernels.total, frames)] == [1, 2, 3, 4]


def test_one_worker_one_task_or_little_input_runs_here(engine: LocalEngine) -> None:
    def here(found: Iterator[tuple[int, int]]) -> bool:
        return {pid for _, pid in found} == {os.getpid()}

    assert here(LocalEngine(1).map(kernels.slow_first, [1, 2]))
    assert here(engine.map(kernels.slow_first, [1]))
    assert here(engine.map(kernels.slow_first, [1, 2], weight=lambda _: 10))
    assert not here(engine.map(kernels.slow_first, [1, 2], weight=lambda _: 0))
    assert not here(engine.map(kernels.slow_first, [1, 2], weight=lambda _: 3_000_000))
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        LocalEngine(0)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_kernel_comes_whole_after_the_results_before_it(workers: int) -> None:
    with LocalEngine(workers) as engine:
        results = engine.map(kernels.refuse, range(5))
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(EvalpipeError) as caught:
            next(results)
        error = caught.value
        assert (error.code, error.what, error.where) == ("BAD_ARGUMENT", "two is refused.", "n")
        assert (error.fix, error.exit) == ("Take three.", EvalpipeError("BAD_ARGUMENT", "").exit)
        # The engine is not spoilt by it.
        assert list(engine.map(kernels.square, [1, 2, 3])) == [1, 4, 9]


def test_what_cannot_be_pickled_is_told_and_does_not_hang(engine: LocalEngine) -> None:
    with pytest.raises(KernelError, match=r"KeywordError cannot be pickled.*keyword n"):
        list(engine.map(kernels.raise_keyword, [1, 2]))
    with pytest.raises(KernelError, match="result cannot be pickled"):
        list(engine.map(kernels.give_lambda, [1, 2]))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        list(engine.map(lambda n: n, [1, 2]))
    assert list(engine.map(kernels.square, [1, 2])) == [1, 4]


def test_a_kernel_that_a_worker_cannot_import_is_an_error(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    list(engine.map(kernels.square, [1, 2]))  # workers are up before the module is made
    module = type(sys)("made_here")
    exec("def kernel(n):\n    return n\n", module.__dict__)
    module.__dict__["kernel"].__module__ = "made_here"
    monkeypatch.setitem(sys.modules, "made_here", module)
    with pytest.raises(ModuleNotFoundError, match="made_here") as caught:
        list(engine.map(module.__dict__["kernel"], [1, 2]))
    assert "wire.unpack(message)" in caught.value.__notes__[0]


@pytest.mark.parametrize(("kernel", "how"), [(kernels.die, "signal SIGKILL"), (kernels.leave, "exit code 7")])
def test_the_death_of_a_worker_is_said_and_survived(kernel: object, how: str) -> None:
    with LocalEngine(2) as engine:
        with pytest.raises(EvalpipeError) as caught:
            list(engine.map(kernel, range(4)))  # type: ignore[arg-type]
        assert caught.value.code == "RUN_FAILED"
        assert how in caught.value.what
        assert list(engine.map(kernels.square, range(4))) == [0, 1, 4, 9]


def test_tasks_in_flight_are_bounded(engine: LocalEngine, tmp_path: Path) -> None:
    tasks = [str(tmp_path / f"{n:02}") for n in range(20)]
    with closing(engine.map(kernels.mark, tasks)) as results:  # type: ignore[type-var]
        for turn in range(4):
            assert next(results) == tasks[turn]
            time.sleep(0.1)  # the caller is slow, the workers are not
            assert len(os.listdir(tmp_path)) <= turn + 2 * engine.workers


def test_a_caller_that_stops_early_leaves_no_task_at_work(tmp_path: Path) -> None:
    with LocalEngine(2) as engine:
        results = engine.map(kernels.mark_started, [str(tmp_path)] * 4)
        with pytest.raises(RuntimeError, match="one map at a time"):
            _interrupt_after_start(engine, results, tmp_path)
        results.close()  # type: ignore[attr-defined]
        pids = [int(name) for name in os.listdir(tmp_path)]
        assert len(pids) >= 1
        assert wait_until(lambda: not any(map(alive, pids)))
        assert list(engine.map(kernels.square, [2, 3])) == [4, 9]


def _interrupt_after_start(engine: LocalEngine, results: Iterator[object], folder: Path) -> None:
    """Stand inside a running map, as a caller that is interrupted does, and try a second one."""
    handler = signal.signal(signal.SIGALRM, lambda *_: list(engine.map(kernels.square, [1, 2])))
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    try:
        next(results)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def test_close_ends_the_workers_and_the_engine_can_be_used_again() -> None:
    engine = LocalEngine(2)
    pids = {pid for _, pid in engine.map(kernels.threads, range(6))}
    assert all(map(alive, pids))
    engine.close()
    assert not any(map(alive, pids))
    under_way = engine.map(kernels.square, range(9))
    next(under_way)
    engine.close()
    with pytest.raises(RuntimeError, match="closed while a map"):
        list(under_way)
    assert list(engine.map(kernels.square, [1, 2])) == [1, 4]
    engine.close()


# Whoever starts the tests in the background may ignore signals, and children inherit that.
PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from evalpipe.engines import LocalEngine, collector
from evalpipe_tests.engines import kernels
list(LocalEngine(2).map(kernels.mark_started, [sys.argv[1]] * 4))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_a_killed_parent(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    root = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": root}) as parent:
        assert wait_until(lambda: len(os.listdir(tmp_path)) == 2)
        pids = [int(name) for name in os.listdir(tmp_path)]
        assert all(map(alive, pids))
        parent.send_signal(how)
    assert wait_until(lambda: not any(map(alive, pids)))


CAREFUL_PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from evalpipe.engines import LocalEngine, collector
from evalpipe_tests.engines import kernels
try:
    with LocalEngine(2) as engine:
        list(engine.map(kernels.mark_started, [sys.argv[1]] * 4))
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_is_for_the_parent_to_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CAREFUL_PARENT, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True) as parent:
        assert wait_until(lambda: len(os.listdir(tmp_path)) == 2)
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        assert parent.communicate(timeout=20)[1] == ""
    assert parent.returncode == 130
    assert wait_until(lambda: not any(alive(int(name)) for name in os.listdir(tmp_path)))


SCRIPT = """
from evalpipe.engines import LocalEngine, collector
from evalpipe_tests.engines import kernels
with LocalEngine(2) as engine:
    print(sum(engine.map(kernels.say, [1, 2])))
"""


def test_a_script_without_a_main_guard_works_and_prints_stay_off_stdout(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "polars.py").write_text("raise SystemExit('a file of the working folder was imported')\n")
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-P", str(tmp_path / "script.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    assert done.stderr.count("from a kernel") == 2


SHARED = LocalEngine(2)


@pytest.fixture(scope="module", autouse=True)
def _close_shared() -> Iterator[None]:
    yield
    SHARED.close()


def test_a_worker_loads_nothing_that_no_kernel_asks_for() -> None:
    heavy = ("scipy.stats", "scipy.optimize", "dagster", "great_expectations", "pandas", "sqlglot", "duckdb")
    code = (
        "import sys\n"
        "import evalpipe.steps.land, evalpipe.steps.raw, evalpipe.steps.masked, evalpipe.steps.signals\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_workers_give_memory_back_at_once_unless_the_allocator_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    assert LocalEngine(2)._environment()["_RJEM_MALLOC_CONF"].startswith("dirty_decay_ms:0")
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "narenas:1")
    assert LocalEngine(2)._environment()["_RJEM_MALLOC_CONF"] == "narenas:1"


def test_the_collector_is_as_before_once_a_run_is_over() -> None:
    before = gc.get_threshold()
    with collector.rarely():
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
        with collector.rarely():
            pass
        assert gc.get_freeze_count() > 0, "what the outer one froze stays frozen"
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
