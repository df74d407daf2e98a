"""A worker process: takes tasks from its parent until the parent is gone.

Belongs here: the loop of ``python -m evalpipe.engines.worker FD``. Does not belong here: any kernel.

The kernel runs in a second thread, so that the first always listens to the parent: it ends the
process in the middle of a kernel as soon as the pipe closes, and no worker is left behind by a parent
that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from evalpipe.engines import collector, wire


def main(descriptor: int) -> None:
    """Work until the pipe closes; does not return."""
    # Ctrl-C goes to every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Connection(descriptor)
    executor = ThreadPoolExecutor(max_workers=1)

    def answer(future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            # A traceback does not travel; its lines of code do, and hold no value.
            error.add_note("In a worker process:\n" + "".join(traceback.format_tb(error.__traceback__)))
        outcome = wire.Outcome(error=error) if error is not None else wire.Outcome(future.result())
        with suppress(OSError):  # the parent is gone, and the loop below ends the process
            pipe.send_bytes(wire.pack_outcome(outcome))

    with collector.rarely():
        while True:
            try:
                message = pipe.recv_bytes()
            except (EOFError, OSError):
                os._exit(0)  # at once: a kernel may be at work, and its result is wanted by nobody
            executor.submit(_run, message).add_done_callback(answer)


def _run(message: bytes) -> Any:
    # Unpickled here, so that a kernel that cannot be imported is an answer and not a death.
    kernel, task = wire.unpack(message)
    return kernel(task)


if __name__ == "__main__":
    main(int(sys.argv[1]))
