"""Memory and speed of ``evalpipe run`` on one file, of any size, whose sessions stand mixed.

    python benchmarks/big_file.py [claude|traces|chat|responses|gz|archive ...] [--size 5000] [--only-landing]

Writes a log of about ``--size`` MB (60 by default) in each form, runs the real command on it in a new
home, and prints: the largest resident memory of one process, and the largest sum over all processes
of what is resident, a page that several share counted once; both while the file is read and over the
whole run, against the limit of 1,000 MB; and the speed of reading, as MB for each second of CPU time,
also as a ratio to a bare ``orjson.loads`` loop over the same records. ``--only-landing`` ends the
command when the file is read.

claude: Claude Code lines. traces: one JSON array of Langfuse observations. chat: OpenAI messages, a
conversation a line. responses: OpenAI responses that continue one another. gz: Claude Code lines,
compressed. archive: many Claude Code files in one tar, which both workers read.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

LIMIT_MB = 1_000
#: Sessions that go on at the same time, and messages of each.
OPEN_SESSIONS, MESSAGES = 60, 40
START = datetime(2026, 1, 5, tzinfo=UTC)

_random = random.Random(7)
_words = ["".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=_random.randint(2, 10))) for _ in range(4000)]
_texts = [" ".join(_random.choices(_words, k=_random.randint(40, 700))) for _ in range(3000)]


def when(session: int, at: int) -> str:
    moment = START + timedelta(minutes=session % 40_000, seconds=at * 20)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def claude(session: int, at: int) -> dict[str, Any]:
    text = _random.choice(_texts)
    head = {
        "uuid": f"{session:08d}-{at:04d}", "sessionId": f"session-{session:08d}", "timestamp": when(session, at),
        "version": "2.0.1", "cwd": "/home/dev/project", "parentUuid": f"{session:08d}-{at - 1:04d}" if at else None,
    }  # fmt: skip
    step, usage = at % 4, {"input_tokens": 900, "output_tokens": 90}
    answer = {"id": f"m{session}-{at}", "role": "assistant", "model": f"m-{session % 3}", "usage": usage}
    if step == 0:
        return {"type": "user", **head, "message": {"role": "user", "content": text[:400]}}
    if step == 1:
        call = {"type": "tool_use", "id": f"t{session}-{at}", "name": "Bash", "input": {"command": text[:200]}}
        return {"type": "assistant", **head, "message": {**answer, "content": [call]}}
    if step == 2:
        result = {"type": "tool_result", "tool_use_id": f"t{session}-{at - 1}", "content": text}
        return {"type": "user", **head, "message": {"role": "user", "content": [result]}}
    return {"type": "assistant", **head, "message": {**answer, "content": [{"type": "text", "text": text}]}}


def observation(session: int, at: int) -> dict[str, Any]:
    text = _random.choice(_texts)
    head = {
        "id": f"o{session}-{at}", "trace_id": f"t{session}-{at // 8}", "session_id": f"s{session}",
        "parent_observation_id": f"o{session}-{at // 8 * 8}" if at % 8 else None, "start_time": when(session, at),
        "end_time": when(session, at),
    }  # fmt: skip
    if at % 8 == 0:
        return {**head, "type": "AGENT", "name": "helper", "input": text[:300], "output": text[-300:]}
    if at % 2 == 0:
        return {**head, "type": "TOOL", "name": "search", "input": {"q": text[:100]}, "output": text}
    asked = [{"role": "user", "content": text[:300]}, {"role": "assistant", "content": text[300:]}]
    return {
        **head, "type": "GENERATION", "name": "call", "model": f"m-{session % 3}", "input": asked,
        "output": {"role": "assistant", "content": text[100:400]}, "usage_details": {"input": 900, "output": 90},
    }  # fmt: skip


def response(session: int, at: int) -> dict[str, Any]:
    said = [{"type": "output_text", "text": _random.choice(_texts)}]
    return {
        "id": f"resp_{session}_{at}", "object": "response", "model": f"m-{session % 3}",
        "previous_response_id": f"resp_{session}_{at - 1}" if at else None,
        "created_at": int(datetime.fromisoformat(when(session, at)).timestamp()),
        "input": _random.choice(_texts)[:500], "output": [{"type": "message", "role": "assistant", "content": said}],
        "usage": {"input_tokens": 900, "output_tokens": 90},
    }  # fmt: skip


def conversation(session: int) -> dict[str, Any]:
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": _random.choice(_texts), "timestamp": when(session, at)}
        for at in range(MESSAGES)
    ]
    return {"id": f"conversation-{session:08d}", "model": f"m-{session % 3}", "messages": messages}


MAKERS = {"claude": claude, "gz": claude, "archive": claude, "traces": observation, "responses": response}


def records(form: str) -> Iterator[bytes]:
    """Records without end; those of the sessions that are open take turns at random."""
    if form == "chat":
        session = 0
        while True:
            yield orjson.dumps(conversation(session))
            session += 1
    make = MAKERS[form]
    told = dict.fromkeys(range(OPEN_SESSIONS), 0)
    following = OPEN_SESSIONS
    while True:
        session = _random.choice(list(told))
        yield orjson.dumps(make(session, told[session]))
        told[session] += 1
        if told[session] == MESSAGES:
            del told[session]
            told[following] = 0
            following += 1


def write(form: str, folder: Path, size: int) -> tuple[Path, int]:
    """Write a log; returns it and its bytes, uncompressed."""
    n_bytes = 0
    if form == "archive":
        path = folder / "log.tar"
        with tarfile.open(path, "w") as archive:
            session = 0
            while n_bytes < size:
                data = b"\n".join(orjson.dumps(claude(session, at)) for at in range(MESSAGES)) + b"\n"
                info = tarfile.TarInfo(f"session-{session:08d}.jsonl")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
                n_bytes += len(data)
                session += 1
        return path, n_bytes
    path = folder / {"traces": "log.json", "gz": "log.jsonl.gz"}.get(form, "log.jsonl")
    begin, between, end = (b"[", b",\n", b"]") if form == "traces" else (b"", b"\n", b"\n")
    with gzip.open(path, "wb", 1) if form == "gz" else path.open("wb", 1 << 20) as file:
        file.write(begin)
        for record in records(form):
            file.write(record if not n_bytes else between + record)
            n_bytes += len(record) + len(between)
            if n_bytes >= size:
                break
        file.write(end)
    return path, n_bytes


def bare_mb_s(form: str) -> float:
    """Speed of a bare loop over some of the same records, which are all alike."""
    source = records(form)
    sample = [next(source) for _ in range(200 if form == "chat" else 5000)]
    best = min(_timed(sample) for _ in range(5))
    return sum(map(len, sample)) / best / 1e6


def _timed(sample: list[bytes]) -> float:
    begun = time.process_time()
    for record in sample:
        orjson.loads(record)
    return time.process_time() - begun


@dataclass
class Peaks:
    """Peak memory in MB: of the largest process, and summed."""

    largest: float = 0.0
    summed: float = 0.0

    def take(self, largest: float, summed: float) -> None:
        self.largest, self.summed = max(self.largest, largest), max(self.summed, summed)

    def __str__(self) -> str:
        ratio = self.summed / LIMIT_MB
        return f"largest process {self.largest:,.0f} MB, sum {self.summed:,.0f} MB ({ratio:.2f} of the limit)"


def look(pid: int) -> tuple[float, float, float]:
    """Of a process and its descendants: largest resident set (MB), sum of proportional sets (MB), CPU time (s)."""
    largest = summed = ticks = 0
    todo = [pid]
    while todo:
        now = todo.pop()
        try:
            rollup = Path(f"/proc/{now}/smaps_rollup").read_text()
            sizes = {line.split()[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
            # User and system time, counted from behind the name, which may hold spaces.
            ticks += sum(map(int, Path(f"/proc/{now}/stat").read_text().rpartition(")")[2].split()[11:13]))
            largest, summed = max(largest, sizes["Rss:"]), summed + sizes["Pss:"]
            for task in Path(f"/proc/{now}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError, PermissionError, KeyError):
            continue
    return largest / 1e3, summed / 1e3, ticks / os.sysconf("SC_CLK_TCK")


def measure(form: str, size_mb: int, *, only_landing: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="evalpipe-big-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        path, n_bytes = write(form, folder, size_mb * 1_000_000)
        home, reading, whole = folder / "home", Peaks(), Peaks()
        begun = time.monotonic()
        command = [sys.executable, "-m", "evalpipe.cli", "run", str(path), "--home", str(home)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        read_s = begun_cpu_s = cpu_s = 0.0
        while child.poll() is None:
            largest, summed, now_s = look(child.pid)
            whole.take(largest, summed)
            if not read_s:
                reading.take(largest, summed)
                cpu_s = max(cpu_s, now_s)
                if not (home / "lake/raw/_staging").exists():
                    begun_cpu_s = now_s
                if any((home / "lake/raw/_landing/_batches").glob("*.json")):
                    read_s = time.monotonic() - begun
                    if only_landing:
                        child.send_signal(signal.SIGINT)
            time.sleep(0.1)
        whole_s = time.monotonic() - begun
        if child.returncode and not only_landing:
            sys.exit(f"the run on {form} failed")
    bare = bare_mb_s(form)
    size = n_bytes / 1e6
    print(f"{form}: {size:,.0f} MB in one file")
    speed = size / max(cpu_s - begun_cpu_s, 0.01)
    print(f"  reading   {reading}; {size / read_s:.1f} MB/s from the start of the command")
    print(f"            {speed:.1f} MB for a second of CPU, {speed / bare:.2f} of bare orjson ({bare:.0f} MB/s)")
    if not only_landing:
        print(f"  whole run {whole}; {size / whole_s:.1f} MB/s")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("forms", nargs="*", default=["claude", "traces", "chat"])
    arguments.add_argument("--size", type=int, default=60)
    arguments.add_argument("--only-landing", action="store_true")
    options = arguments.parse_args()
    for form in options.forms:
        measure(form, options.size, only_landing=options.only_landing)


if __name__ == "__main__":
    main()
