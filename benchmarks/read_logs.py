"""How fast logs are read and landed, format by format, against a bare ``orjson.loads`` loop.

    python benchmarks/read_logs.py [LOGS...] [--megabytes 24] [--repeats 5] [--only FORMAT,...] [--peers VENV]

Made-up logs (``_made_logs.py``) of each format first, then a real bundle of Claude Code sessions where
``../shared/samples`` is there, and whatever is named. Each row runs in a process of its own:

- *bare*: ``orjson.loads`` on every line; *read*: lines to frames; *landed*: frames to Parquet as well;
- MB/s are uncompressed bytes per second of CPU time (all threads), the best of the repeats; *ratio* is
  bare / read, the median of pairs that alternate. 1.0 would mean that normalising costs nothing; the
  target is 0.4;
- *peak* is the largest memory of that process, libraries included.

``--peers`` names a virtual environment that holds ``agent-session-analytics``, ``duckdb-cli`` and
``claude-code-to-sqlite``. They and ``evalpipe`` (read, normalise, write) then run on the same Claude
Code files as whole processes, start-up included, because that is all that can be measured of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import orjson
from _made_logs import FORMATS, talks

from evalpipe.sources import Batch, ReadOptions, discover, fingerprint, parse_batch, plan_batches
from evalpipe.sources.streams import BLOCK, open_members
from evalpipe.store.landing import LANDED, stage_chunk

OPTIONS = ReadOptions(date(2000, 1, 1), date(2100, 1, 1), date(2026, 1, 1), b"benchmark", chunk_bytes=12_000_000)
BATCH_BYTES = 32_000_000
REAL = Path(__file__).resolve().parents[2] / "shared/samples/claude_code_jsonl/entire_cli_sessions_A.tar.zst"


# ---- inputs


def make(name: str, n_bytes: int, folder: Path) -> None:
    """Write made-up logs of a format; ``..._short`` has a twelfth of the text in each line."""
    bare_name = name.removesuffix("_short")
    write, is_file_each = FORMATS[bare_name]
    logs: list[bytes] = []
    n_made = n_batch = 0
    while n_made < n_bytes:
        n_batch += 1
        for talk in talks(50, 8, 0.08 if name != bare_name else 1.0, seed=n_batch):
            logs.append(b"".join(orjson.dumps(record) + b"\n" for record in write(talk)))
            n_made += len(logs[-1])
    for n, log in enumerate(logs if is_file_each else [b"".join(logs)]):
        (folder / f"{n:06d}.jsonl").write_bytes(log)


def unpack(source: Path, folder: Path) -> None:
    """Write every stream of a source as a plain file of its own."""
    n = 0
    for path in discover([source]):
        with ExitStack() as stack:
            for member in open_members(path, stack):
                if member.stream is None:
                    continue
                n += 1
                with (folder / f"{n:06d}.jsonl").open("wb") as file:
                    while block := member.stream.read(BLOCK):
                        file.write(block)


# ---- what is timed


def bare(files: list[Path]) -> None:
    for path in files:
        with path.open("rb") as file:
            for line in file:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


def read(batches: list[Batch]) -> None:
    for batch in batches:
        for _chunk in parse_batch(batch, OPTIONS):
            pass


def land(batches: list[Batch]) -> None:
    with tempfile.TemporaryDirectory(prefix="read_logs_") as folder:
        for batch in batches:
            for index, chunk in enumerate(parse_batch(batch, OPTIONS)):
                tables = {name: getattr(chunk, name) for name in LANDED}
                stage_chunk(batch.digest, index, tables, Path(folder))


def cpu(work: Callable[[Any], None], of: Any) -> float:
    start = time.process_time()
    work(of)
    return time.process_time() - start


def child(folder: Path, repeats: int) -> None:
    """Time one folder and print the result; with no repeats, land it once and print nothing."""
    files = sorted(folder.iterdir())
    batches = list(plan_batches([fingerprint(path) for path in files], BATCH_BYTES))
    if not repeats:
        land(batches)
        return
    cpu(read, batches)  # what is loaded once
    # Alternating, so that a busy machine slows all sides alike.
    rounds = [(cpu(bare, files), cpu(read, batches), cpu(land, batches)) for _ in range(repeats)]
    print(json.dumps({"rounds": rounds, "bytes": sum(path.stat().st_size for path in files)}))


# ---- processes


def run(command: list[str], environment: dict[str, str] | None = None) -> tuple[str, float, int]:
    """Output, CPU seconds and peak bytes of a command and of all that it starts.

    Raises:
        OSError: The command cannot be started, or fails.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **(environment or {})}
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise OSError(f"{Path(command[0]).name} ended with {process.returncode}")
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def own(folder: Path, repeats: int) -> tuple[str, float, int]:
    return run([sys.executable, __file__, "--child", str(folder), "--repeats", str(repeats)])


def row(name: str, folder: Path, repeats: int) -> None:
    output, _, peak = own(folder, repeats)
    found = json.loads(output)
    rounds, megabytes = found["rounds"], found["bytes"] / 1e6
    speeds = [megabytes / min(column) for column in zip(*rounds, strict=True)]
    ratio = statistics.median(bare_s / read_s for bare_s, read_s, _ in rounds)
    print(
        f"{name:24.24s} {megabytes:6.0f}" + "".join(f" {s:8.0f}" for s in speeds) + f" {ratio:8.2f} {peak / 2**20:9.0f}"
    )


def peers(venv: Path, folder: Path, work: Path) -> None:
    """Whole processes on the same Claude Code files."""
    home = work / "home"
    projects = home / ".claude/projects/made"
    projects.mkdir(parents=True)
    for path in folder.iterdir():
        (projects / path.name).symlink_to(path)
    place = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "XDG_CACHE_HOME": str(home / ".cache")}
    place["PATH"] = f"{venv / 'bin'}:{os.environ['PATH']}"
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    commands = {
        "agent-session-analytics": ["ingest", "--force"],
        "claude-code-to-sqlite": ["sessions", "--silent", str(work / "peer.db"), str(home / ".claude/projects")],
    }
    print(f"\n{'whole process, ' + format(megabytes, '.0f') + ' MB':32s} {'CPU s':>8s} {'MB/s':>8s} {'peak MiB':>9s}")
    timed: list[tuple[str, Callable[[], tuple[str, float, int]]]] = [("evalpipe", lambda: own(folder, 0))]
    for name, options in commands.items():
        timed.append((name, lambda name=name, options=options: run([str(venv / "bin" / name), *options], place)))  # type: ignore[misc]
    for name, start in timed:
        try:
            _, seconds, peak = start()
        except OSError as error:
            print(f"{name:32s} not measured: {error}")
            continue
        print(f"{name:32s} {seconds:8.2f} {megabytes / seconds:8.1f} {peak / 2**20:9.0f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("sources", nargs="*", type=Path)
    arguments.add_argument("--megabytes", type=float, default=24)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--only", default="", help="formats, by comma; all by default")
    arguments.add_argument("--peers", type=Path, metavar="VENV")
    arguments.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.child:
        child(options.child, options.repeats)
        return
    wanted = [name for name in options.only.split(",") if name] or [*FORMATS, "evalpipe_jsonl_short"]
    real = [REAL] if REAL.is_file() and not options.only else []
    print(f"{'MB/s of CPU':24s} {'MB':>6s} {'bare':>8s} {'read':>8s} {'landed':>8s} {'ratio':>8s} {'peak MiB':>9s}")
    work = Path(tempfile.mkdtemp(prefix="read_logs_"))
    try:
        claude = None
        for name in [*wanted, *real, *options.sources]:
            folder = work / f"in{len(list(work.iterdir()))}"
            folder.mkdir()
            if isinstance(name, str):
                make(name, int(options.megabytes * 1e6), folder)
            else:
                unpack(name, folder)
            row(name if isinstance(name, str) else name.name, folder, options.repeats)
            if name in ("claude_code", REAL):
                claude = folder
            else:
                shutil.rmtree(folder)
        if options.peers is None or claude is None:
            print("\npeers: not measured (--peers VENV names an environment that holds them)")
        else:
            peers(options.peers.resolve(), claude, work)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
