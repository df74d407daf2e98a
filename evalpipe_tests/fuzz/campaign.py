"""Many rounds of inputs on several processes, and what came of them.

Belongs here: spreading numbers over processes, the watch over processes that answer no more, and sums a
family. Does not belong here: making one input (``inputs.py``), judging it (``judge.py``), or the command
line (``__main__.py``).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from evalpipe_tests.fuzz.inputs import make
from evalpipe_tests.fuzz.judge import LIMIT_SECONDS, Verdict, judge, scratch
from evalpipe_tests.fuzz.seeds import families

#: Inputs that are read as one batch: frames cost as much for one small file as for forty.
ROUND = 40

# A process that answers nothing for so long hangs where no signal reaches it.
_SILENT_SECONDS = 60 * LIMIT_SECONDS


@dataclass
class Sum:
    """What came of the inputs of one family."""

    n_inputs: int = 0
    n_sessions: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    n_faults: int = 0
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, number: int, verdict: Verdict) -> None:
        self.n_inputs += 1
        self.n_sessions += verdict.n_sessions
        self.codes += verdict.codes
        self.n_faults += bool(verdict.fault)
        self.slowest = max(self.slowest, (verdict.seconds, number))


@dataclass
class Outcome:
    """Sums by family, and of each fault the first numbers, how often it came, and its detail."""

    sums: dict[str, Sum] = field(default_factory=dict)
    faults: dict[str, list[int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)

    def add(self, family: str, number: int, verdict: Verdict) -> None:
        self.sums.setdefault(family, Sum()).add(number, verdict)
        if verdict.fault:
            self.faults.setdefault(verdict.fault, []).append(number)
            self.counts[verdict.fault] += 1
            self.details.setdefault(verdict.fault, verdict.detail)


def number_of(seed: int, index: int) -> int:
    """The number of an input of a run."""
    return seed * 10**9 + index


def family_of(number: int) -> str:
    """Families take turns, so that each gets its share."""
    names = sorted(families())
    return names[number % len(names)]


def options_of(first: int) -> dict[str, Any]:
    """Limits of a round: now and then so small that everything is too large, or a chunk of its own."""
    choose = random.Random(first)
    options: dict[str, Any] = {}
    if choose.random() < 0.15:
        options["max_record_bytes"] = choose.choice((1, 50, 300, 2000, 20_000))
    if choose.random() < 0.1:
        options["chunk_bytes"] = choose.choice((1, 100, 3000, 100_000))
    if choose.random() < 0.2:
        options |= {"held_bytes": choose.choice((1, 200, 5000)), "spool": scratch()}
    if choose.random() < 0.05:
        options["max_session_bytes"] = choose.choice((1, 400, 5000))
    return options


def judge_numbers(numbers: list[int], folder: Path) -> list[tuple[str, int, Verdict]]:
    """One round: make the inputs of the numbers and judge them under the limits of the first."""
    paths: dict[Path, tuple[str, int]] = {}
    for place, number in enumerate(numbers):
        made = make(number, family_of(number))
        path = folder / str(place) / made.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(made.data)
        paths[path] = (made.family, number)
    verdicts = judge(list(paths), **options_of(numbers[0]))
    for path in paths:
        path.unlink()
    return [(*paths[verdict.path], verdict) for verdict in verdicts]


def _work(numbers: list[list[int]], pipe: Connection) -> None:
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        for round_ in numbers:
            pipe.send(("start", round_[0]))
            pipe.send(("done", judge_numbers(round_, Path(folder))))
    pipe.send(("end", None))


def run(n_inputs: int, seed: int, n_processes: int, progress: Callable[[int], None]) -> Outcome:
    """Judge many inputs.

    Args:
        n_inputs: How many.
        seed: Another seed gives other inputs.
        n_processes: Processes beside this one.
        progress: Called with the number of inputs that were judged since the last call.

    Returns:
        What came of them. A process that died or answers nothing is a fault of the round that it began.
    """
    numbers = [number_of(seed, index) for index in range(n_inputs)]
    rounds = [numbers[at : at + ROUND] for at in range(0, n_inputs, ROUND)]
    crew = _Crew(Outcome(), progress)
    for worker in range(n_processes):
        crew.start(rounds[worker::n_processes])
    while crew.at_work:
        crew.hear()
    return crew.outcome


@dataclass
class _Crew:
    """Processes that judge rounds. One that fails is replaced by another, which goes on after the round."""

    outcome: Outcome
    progress: Callable[[int], None]
    at_work: dict[Connection, tuple[BaseProcess, list[list[int]]]] = field(default_factory=dict)
    begun: dict[Connection, tuple[int, float]] = field(default_factory=dict)

    def start(self, share: list[list[int]]) -> None:
        if not share:
            return
        # The frames are small: more threads only wait for each other.
        os.environ["POLARS_MAX_THREADS"] = "1"
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(share, theirs), daemon=True)
        process.start()
        theirs.close()
        self.at_work[mine] = (process, share)
        self.begun[mine] = (share[0][0], time.monotonic())

    def hear(self) -> None:
        for pipe in wait(list(self.at_work), timeout=5):
            assert isinstance(pipe, Connection)
            try:
                self._take(pipe, *pipe.recv())
            except EOFError:
                self._replace(pipe, "died: process")
        for pipe, (_, since) in list(self.begun.items()):
            if time.monotonic() - since > _SILENT_SECONDS:
                self._replace(pipe, "hang: process")

    def _take(self, pipe: Connection, word: str, value: Any) -> None:
        if word == "start":
            self.begun[pipe] = (value, time.monotonic())
        elif word == "done":
            for family, number, verdict in value:
                self.outcome.add(family, number, verdict)
            self.progress(len(value))
        else:
            self.at_work.pop(pipe)[0].join()
            del self.begun[pipe]

    def _replace(self, pipe: Connection, why: str) -> None:
        process, share = self.at_work.pop(pipe)
        first, _ = self.begun.pop(pipe)
        process.kill()
        self.outcome.add(family_of(first), first, Verdict(Path(), f"{why} in the round of this input"))
        at = next(place for place, numbers in enumerate(share) if numbers[0] == first)
        self.start(share[at + 1 :])
