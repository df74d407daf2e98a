"""What lies around the bytes of a log: names, compression, archives, Parquet, and damage to those.

Belongs here: wrapping and file names. Does not belong here: damage to the log itself (``damage.py``).
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zipfile
from typing import Any

import polars as pl
import pyarrow as pa
import zstandard

from evalpipe_tests.fuzz.damage import cut_end, double, drop, overwrite, put_in
from evalpipe_tests.fuzz.values import written
from evalpipe_tests.sources.bench_logs import EVAL

NAMES = (
    "log.jsonl", "log.json", "log", "agent-1.jsonl", "results.json", "1_m_DFS.json", "a b.jsonl.gz", "é\u202e.json", "x" * 240, "-rf", "%00.json",
    "a\nb.jsonl", "trajectory.json", "output.jsonl", "..json", "log.jsonl.zst.gz", "G1_answer", "\udcff\udcfe.jsonl", "con.eval", "t.parquet",
)  # fmt: skip
_MEMBERS = (
    "log.jsonl", "a/b/c.json", "log.jsonl", "/abs", "../up", "C:\\x", "a\\..\\b", "", ".", "d/", "\x00", "samples/1_epoch_1.json", "header.json",
    "x" * 300, "é" * 60, "\udcff", "_journal/start.json", "a\nb",
)  # fmt: skip


def tar(members: list[tuple[str, bytes]], choose: random.Random) -> bytes:
    buffer = io.BytesIO()
    form = choose.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name[:40] if form == tarfile.USTAR_FORMAT else name)
            info.size = len(data)
            if choose.random() < 0.1:
                info.type = choose.choice(
                    (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.CONTTYPE)
                )
                info.linkname = choose.choice(("/etc/passwd", "..", "log.jsonl", ""))
            if form == tarfile.PAX_FORMAT and choose.random() < 0.2:
                info.pax_headers = {"size": choose.choice((str(len(data)), "-1", "x", "9" * 30)), "comment": "x"}
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zipped(members: list[tuple[str, bytes]], choose: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        seen: set[str] = set()
        for name, data in members:
            kind = choose.choice(
                (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
            )
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            if info.filename not in seen:  # the standard library warns of a second one
                archive.writestr(info, data, kind)
            seen.add(info.filename)
    return buffer.getvalue()


def eval_archive(records: list[Any], choose: random.Random) -> bytes:
    """An archive as Inspect writes it, whose samples are these records."""
    header = {"version": 2, "status": choose.choice(("success", "error", None)), "eval": EVAL}
    members = [(choose.choice(("header.json", "_journal/start.json")), json.dumps(header).encode())]
    members += [(f"samples/{n}_epoch_1.json", written([record], "whole")) for n, record in enumerate(records)]
    return zipped(members, choose)


def parquet(records: list[Any]) -> bytes | None:
    """The records as rows of Parquet; ``None`` where they are no table."""
    rows = [record for record in records if isinstance(record, dict)]
    if not rows:
        return None
    try:
        table = pa.Table.from_pylist(rows)
        buffer = io.BytesIO()
        pl.DataFrame(table).write_parquet(buffer)
    except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        return None
    return buffer.getvalue()


def wrapped(data: bytes, other: bytes, choose: random.Random) -> bytes:
    """The log inside one or two wrappings, one of which may be damaged."""
    for _ in range(choose.choice((1, 1, 2))):
        kind = choose.randrange(6)
        if kind == 0:
            data = gzip.compress(data, 1, mtime=0)
        elif kind == 1:
            data = gzip.compress(data[: len(data) // 2], 1, mtime=0) + gzip.compress(data[len(data) // 2 :], 1, mtime=0)
        elif kind == 2:
            data = zstandard.ZstdCompressor(level=1, write_checksum=choose.random() < 0.5).compress(data)
        else:
            members = [
                (choose.choice(_MEMBERS), choose.choice((data, other, b"", data))) for _ in range(choose.randrange(4))
            ]
            members.insert(choose.randrange(len(members) + 1), ("log.jsonl", data))
            data = (tar if kind < 5 else zipped)(members, choose)
        if choose.random() < 0.3:
            data = choose.choice((cut_end, drop, double, overwrite, put_in))(data, other, choose)
    return data
