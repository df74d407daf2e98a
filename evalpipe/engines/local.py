"""The local engine: worker processes on this machine, kept from one call to the next.

Belongs here: starting, feeding and ending workers. Does not belong here: what a worker does
(``engines/worker.py``).

The workers are fresh interpreters and not forks, because importing Polars starts threads, and a fork
copies locks that those threads hold. They are not ``multiprocessing`` children either: those import
the main module of their parent again, which for a Dagster run costs seconds and a hundred megabytes
each, and they outlive a parent that is killed. A worker here ends when its pipe to the parent closes,
which the kernel sees to however the parent dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.engines import wire
from evalpipe.engines.base import Result, Task

#: Below so many bytes of input the work is done before workers would have started.
INLINE_BYTES = 4_000_000
#: What is set for the allocators of a worker. They keep what a part of a slice has freed, Polars' for ten seconds and
#: the C library's until the process ends: between two parts that is half of what a worker holds, and giving it back
#: at once costs no time that can be measured.
_ALLOCATORS = {
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "262144",
    "MALLOC_TRIM_THRESHOLD_": "4194304",
}


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection
    task: int | None = None  # index of the task that it works on


class LocalEngine:
    """Runs kernels in this process or in worker processes of this machine.

    Args:
        workers: Number of processes; 1 runs kernels in this process.
        threads: Polars threads of each worker; more than one only helps where cores are idle.
        inline_bytes: Work of less input than this runs in this process.
    """

    def __init__(self, workers: int, *, threads: int = 1, inline_bytes: int = INLINE_BYTES) -> None:
        if workers < 1:
            raise EvalpipeError("BAD_ARGUMENT", "there must be at least one worker.", where="workers")
        self.workers = workers
        self.threads = threads
        self.inline_bytes = inline_bytes
        self._pool: list[_Worker] = []
        self._is_mapping = False
        self._closings = 0

    def map(
        self, kernel: Callable[[Task], Result], tasks: Sequence[Task], *, weight: Callable[[Task], int] | None = None
    ) -> Iterator[Result]:
        """Apply the kernel to every task; see :meth:`evalpipe.engines.base.Engine.map`.

        At most twice as many tasks as workers are out at once, results that wait for their turn
        included, so memory is bounded by that many parts. If a kernel fails or the caller stops
        early, workers that are still at work are ended.

        Raises:
            EvalpipeError: ``RUN_FAILED`` if a worker dies, as when memory runs out.
        """
        n_bytes = sum(map(weight, tasks)) if weight else 0
        is_small = 0 < n_bytes < self.inline_bytes
        if self.workers == 1 or len(tasks) < 2 or is_small:
            return map(kernel, tasks)
        return self._spread(kernel, tasks)

    def close(self) -> None:
        """End all workers; the engine starts new ones if it is used again."""
        for worker in self._pool:
            self._end(worker, at_once=worker.task is not None)
        self._pool = []
        self._closings += 1

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spread(self, kernel: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        if self._is_mapping:
            raise RuntimeError("an engine does one map at a time")
        self._is_mapping = True
        closings = self._closings
        try:
            done: dict[int, wire.Outcome] = {}
            sent = 0
            for turn in range(len(tasks)):
                limit = turn + 2 * self.workers
                while turn not in done:
                    sent = self._feed(kernel, tasks, sent, limit)
                    done.update(self._collect())
                # Workers go on while the caller uses this result.
                done.update(self._collect(timeout=0.0))
                sent = self._feed(kernel, tasks, sent, limit)
                yield done.pop(turn).unwrap()
                if self._closings != closings:
                    raise RuntimeError("the engine was closed while a map was under way")
        finally:
            self._is_mapping = False
            self._end_busy()

    def _feed(self, kernel: Callable[[Any], Any], tasks: Sequence[Any], sent: int, limit: int) -> int:
        """Give tasks to idle workers, starting workers as needed; how many tasks are out or done."""
        for _ in range(min(limit, len(tasks)) - sent):
            idle = next((worker for worker in self._pool if worker.task is None), None)
            if idle is None and len(self._pool) < self.workers:
                idle = self._start()
            if idle is None:
                break
            message = wire.pack((kernel, tasks[sent]))
            idle.task = sent
            sent += 1
            try:
                idle.pipe.send_bytes(message)
            except OSError:
                raise self._died(idle) from None
        return sent

    def _collect(self, timeout: float | None = None) -> dict[int, wire.Outcome]:
        """Wait until a worker answers, and take every answer that is there."""
        busy = {worker.pipe: worker for worker in self._pool if worker.task is not None}
        answers: dict[int, wire.Outcome] = {}
        for pipe in wait(list(busy), timeout):
            worker = busy[pipe]  # type: ignore[index]  # wait() gives back what it was given
            try:
                answer = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                raise self._died(worker) from None
            if worker.task is not None:
                answers[worker.task] = wire.unpack(answer)
            worker.task = None
        return answers

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "evalpipe.engines.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a kernel prints must not mix with what the command prints
                env={**os.environ, **self._environment()},
            )
        finally:
            theirs.close()
        worker = _Worker(process, ours)
        self._pool.append(worker)
        return worker

    def _environment(self) -> dict[str, str]:
        return {
            # Kernels are found where this process finds them.
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
            "POLARS_MAX_THREADS": str(self.threads),
            "OMP_NUM_THREADS": str(self.threads),  # pyarrow takes this one too
            "OPENBLAS_NUM_THREADS": str(self.threads),
            **{name: os.environ.get(name, value) for name, value in _ALLOCATORS.items()},
        }

    def _end(self, worker: _Worker, *, at_once: bool) -> None:
        worker.pipe.close()
        if at_once:
            worker.process.kill()
        worker.process.wait()

    def _end_busy(self) -> None:
        """A worker that still works on a task of an ended map holds memory and answers too late."""
        for worker in [w for w in self._pool if w.task is not None]:
            self._pool.remove(worker)
            self._end(worker, at_once=True)

    def _died(self, worker: _Worker) -> EvalpipeError:
        self._pool.remove(worker)
        self._end(worker, at_once=False)
        code = worker.process.returncode
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        fix = "If memory ran out, lower the number of workers or max_batch_bytes; then run again."
        what = f"a worker process died ({how}) on task {worker.task} of a step."
        return EvalpipeError("RUN_FAILED", what, where="engines.local", fix=fix)
