"""The small logs that fuzzing starts from: every reader has at least one that it reads in full.

Belongs here: which records there are and how a file of them is written. The records themselves stand
beside the tests of their formats (``evalpipe_tests/sources``). Does not belong here: damage
(``values.py``, ``edits.py``, ``bytes_.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from evalpipe.sources.readers.base import Reader
from evalpipe.sources.registry import HEAD_BYTES, READERS, sniff
from evalpipe_tests.sources import bench_logs, coding_logs, traces
from evalpipe_tests.sources.test_reading_properties import CLAUDE, CODEX, OWN, SIMULATION, TAU

#: How records are written: the shapes of readers, and an array that is spread over lines.
FORMS = ("lines", "items", "spread", "whole", "text")


@dataclass(frozen=True)
class Seed:
    """One log: records of one file, and the form in which they are written.

    Attributes:
        family: Name of the reader that reads it.
        name: Name of the seed.
        form: One of :data:`FORMS`.
        records: JSON values, or texts where the form is ``text``.
    """

    family: str
    name: str
    form: str
    records: tuple[Any, ...]

    @cached_property
    def data(self) -> bytes:
        return write(list(self.records), self.form)

    @property
    def reader(self) -> Reader | None:
        return sniff(self.data[:HEAD_BYTES])


def write(records: list[Any], form: str) -> bytes:
    """A file of records, without any damage."""
    if form == "text":
        return "".join(map(str, records)).encode("utf-8", "surrogatepass")
    if form == "lines":
        return b"".join(json.dumps(record).encode() + b"\n" for record in records)
    value: Any = records[0] if form == "whole" and records else records
    return json.dumps(value, indent=None if form == "items" else 1).encode()


def _logs() -> list[tuple[str, str, list[Any]]]:
    """(source, name, records) of every log that tests of sources hold."""
    found: list[tuple[str, str, list[Any]]] = [
        ("claude_code", "claude_code", CLAUDE),
        ("codex", "codex", CODEX),
        ("evalpipe_jsonl", "own", OWN),
        ("tau_bench", "tau", TAU[0]),
        ("tau2_bench", "tau2", [TAU[1]]),
        ("tau2_bench", "tau2-lines", [{"_config": {}, **SIMULATION}]),
        ("inspect", "inspect", [bench_logs.inspect_log()]),
        ("anthropic_events", "recorded", bench_logs.recorded()),
        ("langsmith", "langsmith-call", [run for run in traces.LANGSMITH if run["run_type"] == "llm"]),
    ]
    found += [(source, name, records) for name, (source, records) in bench_logs.LOGS.items()]
    found += [(source, name, records) for name, (source, records) in traces.FORMATS.items()]
    return found + [(log.source, name, log.records) for name, log in coding_logs.LOGS.items()]


@cache
def seeds() -> tuple[Seed, ...]:
    """All seeds: every log in each form in which its own reader recognises it."""
    out: dict[bytes, Seed] = {}
    for source, name, records in _logs():
        is_text = all(isinstance(record, str) for record in records)
        for form in ("text",) if is_text else FORMS[:-1]:
            seed = Seed(source, f"{name}/{form}", form, tuple(records))
            reader = seed.reader
            if reader is not None and reader.name == source:
                out.setdefault(seed.data, seed)
    return tuple(out.values())


@cache
def families() -> dict[str, tuple[Seed, ...]]:
    """Seeds by the name of their reader."""
    names = sorted({reader.name for reader in READERS})
    return {name: tuple(seed for seed in seeds() if seed.family == name) for name in names}
