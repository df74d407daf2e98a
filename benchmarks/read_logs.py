"""How fast logs are read, against a bare ``orjson.loads`` loop over the same lines.

    python benchmarks/read_logs.py LOG.jsonl|FOLDER|ARCHIVE... [--repeats 7]

Prints CPU time (``time.process_time``, so that threads of Polars count) as the median and the
smallest of several repeats, and the ratio bare / evalpipe. 1.0 would mean that normalising into
frames costs nothing; the target is at least 0.4. Both sides start from the same uncompressed bytes
in files, so decompression is in neither; nor is the digest of the files, which a landing takes once.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from functools import partial
from pathlib import Path

import orjson

from evalpipe.sources import Batch, ReadOptions, discover, fingerprint, parse_batch, plan_batches
from evalpipe.sources.streams import BLOCK, open_members

OPTIONS = ReadOptions(date(2000, 1, 1), date(2100, 1, 1), date(2026, 1, 1), b"benchmark")


def unpack(sources: list[Path], folder: Path) -> int:
    """Write every stream of the sources as a plain file of its own; returns the bytes."""
    n_bytes = 0
    for source in discover(sources):
        with ExitStack() as stack:
            for member in open_members(source, stack):
                if member.stream is None:
                    continue
                with (folder / f"{n_bytes:012d}.jsonl").open("wb") as file:
                    while block := member.stream.read(BLOCK):
                        n_bytes += file.write(block)
    return n_bytes


def bare(files: list[Path]) -> None:
    for path in files:
        with path.open("rb") as file:
            for line in file:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


def parse(batches: list[Batch]) -> None:
    for batch in batches:
        for _chunk in parse_batch(batch, OPTIONS):
            pass


def cpu(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("sources", nargs="+", type=Path)
    arguments.add_argument("--repeats", type=int, default=7)
    options = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="read_logs_"))
    try:
        n_bytes = unpack(options.sources, folder)
        files = sorted(folder.iterdir())
        # Alternating, so that a busy machine slows both sides alike.
        batches = list(plan_batches([fingerprint(path) for path in files], 1 << 28))
        pairs = [(cpu(partial(bare, files)), cpu(partial(parse, batches))) for _ in range(options.repeats)]
    finally:
        shutil.rmtree(folder)
    report("bare orjson.loads", [bare_s for bare_s, _ in pairs], n_bytes)
    report("evalpipe", [parse_s for _, parse_s in pairs], n_bytes)
    ratios = [bare_s / parse_s for bare_s, parse_s in pairs]
    print(
        f"{'ratio':18s} median {statistics.median(ratios):7.2f}    (smallest {min(ratios):.2f}, largest {max(ratios):.2f})"
    )


def report(name: str, times: list[float], n_bytes: int) -> None:
    best = min(times)
    print(f"{name:18s} median {statistics.median(times):7.3f} s  best {best:7.3f} s  {n_bytes / best / 1e6:6.0f} MB/s")


if __name__ == "__main__":
    main()
