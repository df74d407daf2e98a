"""The command line in processes of its own that need not load everything anew.

Run as a script, it loads what ``evalpipe run`` loads, then forks a process for each request that comes in:
a line of JSON with arguments, folder, environment and the files for what is printed. In that process
``evalpipe.cli`` runs as it does under its own name. Tests that kill a command, or signal it, start it
themselves instead (``Cli.start``).
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

_SECONDS = 300


def call(args: Sequence[str], folder: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one command to its end.

    Args:
        args: What follows ``evalpipe``.
        folder: Working folder.
        environ: The whole environment.

    Returns:
        Exit code and what was printed.

    Raises:
        TimeoutError: The command took longer than five minutes.
    """
    server = _server()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        request = {"args": list(args), "folder": str(folder), "environ": dict(environ)}
        # The files are reached through this process: they have no names.
        request |= {name: f"/proc/{os.getpid()}/fd/{file.fileno()}" for name, file in (("out", out), ("err", err))}
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        if code == -signal.SIGALRM:
            raise TimeoutError(f"evalpipe {' '.join(args)}: more than {_SECONDS} s")
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
    return subprocess.CompletedProcess(list(args), code, *printed)


@cache
def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-m", "evalpipe_tests.end_to_end.preloaded"]
    process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    # It ends when nothing more can come.
    process.communicate()


def _serve() -> None:
    import great_expectations  # noqa: F401 - loaded here so that no child has to

    import evalpipe.cli
    import evalpipe.console.doctor
    import evalpipe.console.flow  # noqa: F401 - as above
    from evalpipe.definitions import build_defs
    from evalpipe.masking.engine import engine_for
    from evalpipe.masking.rules import default_dir
    from evalpipe.signals.patterns import load_patterns, locate
    from evalpipe.signals.text import fold

    build_defs()
    engine_for(default_dir())
    # Compiles what places hits. Nothing here may make Polars work: its threads do not outlive a fork.
    for pattern in load_patterns():
        for example in pattern.match:
            locate(pattern, fold(example))
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            answers.close()
            _child(request)
        _, status = os.waitpid(pid, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


def _child(request: dict[str, Any]) -> NoReturn:
    code = 1
    try:
        signal.alarm(_SECONDS)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_APPEND), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environ"])
        sys.argv = ["evalpipe", *request["args"]]
        from evalpipe.cli import main

        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        # What the command registered for its end, such as locks and folders of its own.
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
