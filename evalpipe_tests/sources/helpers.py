"""Small logs in the real shapes, written for these tests, and a short way to read them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts.render import conform
from evalpipe.contracts.tables import raw
from evalpipe.sources import ReadOptions, discover, fingerprint, parse_batch, plan_batches
from evalpipe.store.landing import LANDED_ONLY

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
SAMPLES = SHARED / "samples"

OPTIONS = ReadOptions(
    first_day=date(2024, 1, 1), today=date(2026, 11, 30), undated_day=date(2026, 11, 1), digest_key=b"tests only"
)
CODES_OF_FILES = ("UNREADABLE_FILE", "EMPTY_FILE", "UNKNOWN_FORMAT", "UNSAFE_PATH", "NO_SESSION")


class Read:
    """All chunks of a reading, joined, with the contracts and the balance checked."""

    def __init__(self, *paths: Path, max_bytes: int = 1 << 28, **options: Any) -> None:
        settings = replace(OPTIONS, **options)
        batches = plan_batches([fingerprint(path) for path in discover(paths)], max_bytes)
        self.chunks = [chunk for batch in batches for chunk in parse_batch(batch, settings)]
        self.sessions = self._table("sessions")
        self.steps = self._table("steps")
        self.quarantine = self._table("quarantine")
        self.files = self._table("files")
        self._balance()

    def _table(self, name: str) -> pl.DataFrame:
        contract = getattr(raw, name.upper())
        frames = []
        for chunk in self.chunks:
            frame = getattr(chunk, name)
            assert frame.columns[0] == "day"
            if "copy" in frame.columns:  # the largest copy in its chunk
                frame = frame.filter(pl.col("copy") == 0).drop(LANDED_ONLY[name])
            conform(contract, frame.drop("day"))
            frames.append(frame)
        return pl.concat(frames)

    def _balance(self) -> None:
        parts = pl.sum_horizontal("rows_kept", "rows_noise", "rows_quarantined")
        assert self.files.filter(pl.col("rows_read") != parts).is_empty()
        assert self.files["rows_quarantined"].sum() == self.quarantine.height
        for chunk in self.chunks:
            sizes = chunk.steps.group_by("session_id", "copy").len().rows()
            told = chunk.sessions.select("session_id", "copy", "n_steps").rows()
            assert {(k, c): n for k, c, n in sizes} == {(k, c): n for k, c, n in told if n}
            order = chunk.steps.select("session_id", "copy", "seq").rows()
            assert order == sorted(order)

    @property
    def codes(self) -> list[str]:
        return sorted(self.quarantine["code"])

    @property
    def session(self) -> dict[str, Any]:
        assert self.sessions.height == 1
        return self.sessions.row(0, named=True)

    def rows(self, *names: str, **where: Any) -> list[Any]:
        """Values of the steps that match: tuples, or bare values for one name."""
        found = self.steps.filter(**where) if where else self.steps
        rows = found.select(names).rows()
        return [row[0] for row in rows] if len(names) == 1 else rows

    def file(self) -> dict[str, Any]:
        assert self.files.height == 1
        return self.files.row(0, named=True)


def lines(*records: Mapping[str, Any] | str | bytes) -> bytes:
    """JSON lines; text and bytes are taken as they are."""
    out = []
    for record in records:
        if isinstance(record, bytes):
            out.append(record)
        else:
            out.append(record.encode() if isinstance(record, str) else json.dumps(record).encode())
    return b"\n".join(out) + b"\n"


def write(folder: Path, *records: Mapping[str, Any] | str | bytes, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_bytes(lines(*records))
    return path


def tar(members: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


class Claude:
    """Writes Claude Code lines with running ids and times."""

    def __init__(self, session_id: str = "s1", day: str = "2026-01-05") -> None:
        self.session_id = session_id
        self.day = day
        self.n = 0

    def line(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.n += 1
        record = {
            "type": kind,
            "parentUuid": None,
            "isSidechain": False,
            "cwd": "/home/ana/shop",
            "sessionId": self.session_id,
            "version": "2.1.0",
            "uuid": f"{self.session_id}-u{self.n}",
            "timestamp": f"{self.day}T10:{self.n // 60:02d}:{self.n % 60:02d}.000Z",
        }
        return {**record, **fields}

    def user(self, content: str | list[Any], **fields: Any) -> dict[str, Any]:
        return self.line("user", message={"role": "user", "content": content}, **fields)

    def agent(self, *blocks: dict[str, Any], message_id: str | None = None, **fields: Any) -> dict[str, Any]:
        message = {
            "id": message_id or f"msg_{self.n}",
            "role": "assistant",
            "model": fields.pop("model", "model-a"),
            "content": list(blocks),
            "usage": fields.pop("usage", {"input_tokens": 3, "output_tokens": 5}),
        }
        return self.line("assistant", message=message, **fields)

    def queue(self, operation: str, content: str | None = None) -> dict[str, Any]:
        record = self.line("queue-operation", operation=operation, content=content)
        return {
            k: record[k] for k in ("type", "operation", "sessionId", "timestamp", "content") if record[k] is not None
        }


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}
