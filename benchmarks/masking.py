"""How fast masking is, in MB of UTF-8 text per second of CPU time on one core.

Usage: ``python benchmarks/masking.py [FILE...]``. Without files the text is made of the repository's own
sources as an agent's tool output would show them, with examples of the rules strewn in. Ratios are what
counts: to a plain copy of the text, and to the same rules run one regular expression after the other.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import raw
from evalpipe.masking import (
    MaskingKey,
    MaskPlan,
    leak_check,
    mask_copies,
    mask_files,
    mask_part,
    mask_quarantine,
    plant_canaries,
)
from evalpipe.masking.engine import engine_for
from evalpipe.masking.locate import best_kind
from evalpipe.masking.rules import default_dir
from evalpipe.masking.templates import expand

ROOT = Path(__file__).resolve().parents[1]
ROW_BYTES = 2_300
MEGABYTES = 24
EXAMPLE_EVERY = 12
ROWS_PER_SESSION = 150
PLAIN_MEGABYTES = 1
AT = datetime(2026, 1, 5, tzinfo=UTC)


def texts(files: list[Path]) -> list[str]:
    """Rows of about 2.3 KB: numbered source lines, every twelfth row with an example of a rule."""
    files = files or sorted(
        p for d in ("evalpipe", "data", "docs") for p in (ROOT / d).rglob("*") if p.suffix in (".py", ".toml", ".md")
    )
    lines = [f"{n:6d}\t{line}" for f in files for n, line in enumerate(f.read_text("utf-8", "replace").splitlines(), 1)]
    rules = engine_for(default_dir()).ruleset.rules
    out: list[str] = []
    size, row = 0, [""]
    at = 0
    while size < MEGABYTES * 1_000_000:
        row.append(lines[at % len(lines)])
        at += 1
        if sum(map(len, row)) > ROW_BYTES:
            if len(out) % EXAMPLE_EVERY == 0:
                rule = rules[len(out) // EXAMPLE_EVERY % len(rules)]
                row.append(expand(rule.pos[0], rule.id.encode()).text)
            out.append("\n".join(row))
            size += len(out[-1].encode())
            row = ["cat -n /home/marcia77/app/file.py"] if len(out) % 7 == 0 else [""]
    return out


def frames(rows: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    steps, sessions = [], []
    for n in range(0, len(rows), ROWS_PER_SESSION):
        part = rows[n : n + ROWS_PER_SESSION]
        sid = f"s{n:07d}"
        counts = dict.fromkeys(("n_models", "n_turns", "n_steps", "n_tool_calls", "n_messages"), len(part))
        flags = {"is_dated": True, "is_clock_repaired": False, "started_at": AT, "ended_at": AT}
        names = {
            "source": "bench",
            "reader_version": "1",
            "file_id": "f",
            "agent": "a",
            "model": "m",
            "content_digest": "c",
        }
        sessions.append(
            {"session_id": sid, "user_id": "u1", "workspace": "/home/marcia77/app", **names, **counts, **flags}
        )
        base = {"session_id": sid, "turn": 1, "kind": "tool", "origin": "tool", "name": "Bash"}
        steps += [base | {"seq": i, "step_id": f"{i}", "output": text} for i, text in enumerate(part)]
    return render.frame(raw.SESSIONS, sessions), render.frame(raw.STEPS, steps)


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    rows = texts([Path(name) for name in sys.argv[1:]])
    raws = [row.encode() for row in rows]
    size = sum(map(len, raws)) / 1e6
    plan = MaskPlan(MaskingKey.from_bytes(bytes(32)))
    engine = plan.engine
    sessions, steps = frames(rows)
    canaries = plant_canaries(plan, AT.date())
    part = mask_part(pl.concat([sessions, canaries.sessions]), pl.concat([steps, canaries.steps]), plan)
    others = {
        "files": mask_files(canaries.files, plan),
        "quarantine": mask_quarantine(canaries.quarantine, plan),
        "copies": mask_copies(canaries.copies, plan),
    }
    changed = part.redactions["n_rows"].sum()
    spans = part.redactions["n_hits"].sum()
    print(f"{size:.1f} MB in {len(rows)} rows, {changed} values hit, {spans} spans, locator {best_kind()}")

    whole = b"".join(raws)
    rates = {
        "copy the text (memcpy)": size / seconds(lambda: bytearray(whole)),
        "locate anchors": size / seconds(lambda: [engine._locator.locate(r, 1 << 40) for r in raws]),
        "find + validate": size / seconds(lambda: [engine.find(r, plan.key.epoch) for r in raws]),
        "mask_part": size / seconds(lambda: mask_part(sessions, steps, plan)),
        "leak_check": size
        / seconds(lambda: leak_check(part.sessions, part.steps, canaries, part.redactions, plan, **others)),
    }
    few = raws[: max(1, int(len(raws) * PLAIN_MEGABYTES / size))]
    patterns = [
        re.compile((r.value or "|".join(r.anchors)).encode()) for r in engine.ruleset.rules if r.value or r.anchors
    ]
    plain = sum(map(len, few)) / 1e6 / seconds(lambda: [p.search(r) for r in few for p in patterns], 1)
    rates["the same rules, one re after the other"] = plain
    copy = rates["copy the text (memcpy)"]
    for name, rate in rates.items():
        print(f"{name:40s} {rate:9.1f} MB/s   {rate / copy:7.4f} of memcpy   {rate / plain:8.1f} x re")


if __name__ == "__main__":
    main()
