"""The long run: ``python -m evalpipe_tests.fuzz --inputs 200000 --seed 1``.

Belongs here: the command line, the table of a run, and keeping what failed. Does not belong here:
the run itself (``campaign.py``).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from evalpipe_tests.fuzz.campaign import ROUND, Outcome, family_of, options_of, run
from evalpipe_tests.fuzz.inputs import make
from evalpipe_tests.fuzz.judge import judge, scratch
from evalpipe_tests.fuzz.minimise import minimise, same_fault

_SHOWN_CODES = 4

#: Inputs between two lines of progress where there is no terminal.
_PLAIN_LINES = 10_000
_PLAIN_WIDTH = 200


def main() -> int:
    """Run, print the table, keep failing inputs; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m evalpipe_tests.fuzz", description="Damaged logs of every format.")
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path(".fuzz"), help="folder for inputs that failed")
    parser.add_argument("--number", type=int, help="judge this one input again and keep it")
    arguments = parser.parse_args()
    for stop in (signal.SIGINT, signal.SIGTERM):  # in the background, too, what was found so far is told
        signal.signal(stop, signal.default_int_handler)
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    if arguments.number is not None:
        made = make(arguments.number, family_of(arguments.number))
        console.print(f"{made.family}: {', '.join(made.steps)}; {len(made.data)} bytes", markup=False)
        return _keep(arguments.number, arguments.keep, console, seed=None)
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task("", total=arguments.inputs)

        def advance(n: int) -> None:
            before = progress.tasks[0].completed
            progress.advance(task, n)
            if not sys.stdout.isatty() and (before + n) // _PLAIN_LINES > before // _PLAIN_LINES:
                console.print(f"reading: {int(before + n)} of {arguments.inputs}", highlight=False)

        outcome = run(arguments.inputs, arguments.seed, arguments.processes, advance)
    console.print(_table(outcome))
    for fault, n in outcome.counts.most_common():
        console.print(f"{n} x {fault}", markup=False, highlight=False)
        _keep(outcome.faults[fault][0], arguments.keep, console, seed=arguments.seed)
    return int(bool(outcome.faults))


def _table(outcome: Outcome) -> Table:
    table = Table("family", "inputs", "sessions", "quarantined", "most frequent codes", "faults", "slowest, s (input)")
    for family, found in sorted(outcome.sums.items()):
        codes = ", ".join(f"{code} {n}" for code, n in found.codes.most_common(_SHOWN_CODES))
        seconds, number = found.slowest
        counts = (found.n_inputs, found.n_sessions, found.codes.total())
        table.add_row(family, *map(str, counts), codes, str(found.n_faults), f"{seconds:.2f} ({number})")
    sums = outcome.sums.values()
    totals = (sum(s.n_inputs for s in sums), sum(s.n_sessions for s in sums), sum(s.codes.total() for s in sums))
    table.add_section()
    table.add_row("all", *map(str, totals), "", str(sum(s.n_faults for s in sums)), "")
    return table


def _keep(number: int, folder: Path, console: Console, seed: int | None) -> int:
    """Judge one input alone, and keep it as it is and made small."""
    made = make(number, family_of(number))
    options = {} if seed is None else options_of(seed * 10**9 + (number - seed * 10**9) // ROUND * ROUND)
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.input").write_bytes(made.data)
    with tempfile.TemporaryDirectory(dir=scratch()) as inner:
        path = Path(inner, made.name)
        path.write_bytes(made.data)
        verdict = judge([path], **options)[0]
        console.print(verdict.detail or verdict.fault or "It passes alone.", markup=False, highlight=False)
        if verdict.fault and not verdict.fault.startswith("hang"):
            small = minimise(made.data, same_fault(Path(inner), made.name, verdict.fault, options))
            (folder / f"{number}.small").write_bytes(small)
            console.print(f"{folder / f'{number}.small'}: {len(small)} bytes, options {options}", markup=False)
    return int(bool(verdict.fault))


if __name__ == "__main__":
    sys.exit(main())
