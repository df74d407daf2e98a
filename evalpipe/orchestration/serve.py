"""Dagster's UI and daemon as a child of this process.

Belongs here: starting it quietly, saying where it is, and ending it with this process. Does not
belong here: running jobs (``runner.py``).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.orchestration.runner import make_dagster_home
from evalpipe.settings import Settings, open_home

HOST = "127.0.0.1"
#: Dagster ends its own children within seconds; what is left then is killed.
_PATIENCE_SECONDS = 15.0
_POLL_SECONDS = 0.2


def serve(settings: Settings, port: int, say: Callable[[str], None], *, is_loud: bool = False) -> int:
    """Run Dagster's UI and daemon on a home until interrupted.

    SIGINT and SIGTERM are passed on; when this returns no process of Dagster is left.

    Args:
        settings: Settings of the home.
        port: Port on the loopback interface.
        say: Takes a line for the person who waits.
        is_loud: Show Dagster's own log from level info.

    Returns:
        0 after an interrupt, else Dagster's exit code.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for a port that cannot be had.
    """
    settings = open_home(settings)
    if not 0 < port < 65_536:
        raise EvalpipeError("BAD_ARGUMENT", "a port is from 1 to 65535", where=f"--port {port}")
    _require_free(port)
    environ = dict(os.environ)
    environ |= {"DAGSTER_HOME": str(make_dagster_home(settings)), "EVALPIPE_HOME": str(settings.home)}
    if not is_loud:
        environ["PYTHONWARNINGS"] = "ignore"  # for the developers of libraries, not for the person here
    level = "info" if is_loud else "error"
    command = [sys.executable, "-m", "dagster", "dev", "-m", "evalpipe.definitions", "-h", HOST, "-p", str(port)]
    command += ["--log-level", level, "--code-server-log-level", level]
    say("Starting Dagster's UI...")
    # A session of its own: an interrupt from the keyboard then reaches it through this process only, once.
    with subprocess.Popen(command, env=environ, start_new_session=True) as child, _passing_on(child) as caught:
        try:
            is_up = False
            while child.poll() is None and not caught:
                if not is_up and (is_up := _answers(port)):
                    say(f"Dagster's UI: http://{HOST}:{port}  (Ctrl-C ends it)")
                time.sleep(_POLL_SECONDS)
            if caught:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_PATIENCE_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return 0 if caught else child.returncode


@contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass SIGINT and SIGTERM on to a child, and list what came."""
    caught: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        caught.append(number)
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGINT)  # Dagster takes its servers down in order on this one

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            what = f"the port cannot be had: {error.strerror}"
            where = f"--port {port}"
            raise EvalpipeError("BAD_ARGUMENT", what, where=where, fix="Name another port.") from None


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(_POLL_SECONDS)
        return probe.connect_ex((HOST, port)) == 0
