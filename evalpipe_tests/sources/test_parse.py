"""The reading of files: formats, balance, dates, chunks."""

from __future__ import annotations

import gc
import hashlib
import pickle
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts.errors import QUARANTINE_CODES, EvalpipeError
from evalpipe.sources import chunk, fingerprint, parse_batch, plan_batches
from evalpipe.sources.readers.claude_code import ClaudeParser
from evalpipe.sources.registry import sniff
from evalpipe_tests.sources.helpers import OPTIONS, Claude, Read, lines, tar, text, write


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "EMPTY_FILE"),
        (b" \n\n", "EMPTY_FILE"),
        (b"# Read me\n", "UNKNOWN_FORMAT"),
        (b"a,b\n1,2\n", "UNKNOWN_FORMAT"),
        (b'{"session_id":"x","lines":79}\n', "UNKNOWN_FORMAT"),
        (b'{\n  "messages": []\n}\n', "UNKNOWN_FORMAT"),
        (b"[1,2,3]", "UNKNOWN_FORMAT"),
        (b"\x00" * 600, "UNKNOWN_FORMAT"),
    ],
)
def test_files_that_no_reader_takes(tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "x").write_bytes(data)
    read = Read(tmp_path)
    row = read.quarantine.row(0, named=True)
    assert (row["code"], row["line"], row["source"], row["n_bytes"]) == (code, 0, "unknown", len(data))
    f = read.file()
    assert (f["rows_read"], f["rows_quarantined"], f["n_bytes"], f["day"]) == (1, 1, len(data), OPTIONS.undated_day)


def test_the_first_lines_may_be_damaged(tmp_path: Path) -> None:
    c = Claude()
    read = Read(write(tmp_path, 'ssion":"cut', '{"type":"user"', {"x": 1}, c.user("go")))
    assert read.sessions.height == 1
    assert read.codes == ["BAD_JSON", "BAD_JSON", "NOT_A_RECORD"]


def test_a_first_line_beyond_the_head_is_recognised_by_its_marks() -> None:
    c = Claude()
    assert sniff(lines(c.user("x" * 200_000))[: 1 << 16]).name == "claude_code"  # type: ignore[union-attr]


def test_two_objects_on_one_line_are_both_kept(tmp_path: Path) -> None:
    c = Claude()
    glued = lines(c.user("one"))[:-1] + lines(c.agent(text("two")))[:-1]
    read = Read(write(tmp_path, glued, c.user("three")))
    assert read.rows("text") == ["one", "two", "three"]
    assert read.file()["rows_read"] == 3


def test_a_cut_last_line_is_quarantined_with_its_place(tmp_path: Path) -> None:
    c = Claude()
    data = lines(c.user("é"), c.agent(text("two")))
    path = tmp_path / "x.jsonl"
    path.write_bytes(data[:-30])
    read = Read(path)
    row = read.quarantine.row(0, named=True)
    bad = data[:-30].split(b"\n")[1]
    assert (row["code"], row["line"], row["n_bytes"]) == ("BAD_JSON", 2, len(bad))
    assert data[row["byte_offset"] :].startswith(bad)
    assert row["digest"] == hashlib.blake2b(bad, key=OPTIONS.digest_key, digest_size=16).hexdigest()
    assert row["day"] == date(2026, 1, 5)


def test_broken_records_of_every_kind_stand_alone(tmp_path: Path) -> None:
    c = Claude()
    deep = b'{"type":"user","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    surrogate = lines(c.user("half \ud83d"))[:-1]
    read = Read(
        write(
            tmp_path,
            c.user("a"),
            b'{"x":"\xff"}',
            deep,
            surrogate,
            b"\x00\x00\x00",
            b'{"type":"user","type":7}',
            c.agent(text("b")),
        )
    )
    assert read.rows("text") == ["a", "half \ufffd", "b"]
    assert read.codes == ["BAD_ENCODING", "BAD_JSON", "NOT_A_RECORD", "TOO_DEEP"]
    assert set(read.codes) <= set(QUARANTINE_CODES)


def test_a_record_above_the_limit_is_quarantined_and_the_rest_read(tmp_path: Path) -> None:
    c = Claude()
    big = c.agent(text("x" * 3_000_000))
    read = Read(write(tmp_path, c.user("a"), big, c.agent(text("b"))), max_record_bytes=1_000_000)
    assert read.rows("text") == ["a", "b"]
    row = read.quarantine.row(0, named=True)
    assert (row["code"], row["line"]) == ("RECORD_TOO_LARGE", 2)
    assert row["n_bytes"] == len(lines(big)) - 1
    assert row["digest"] == hashlib.blake2b(lines(big)[:-1], key=OPTIONS.digest_key, digest_size=16).hexdigest()


def test_quarantine_never_holds_the_bytes(tmp_path: Path) -> None:
    secret = "hunter2-is-my-password"
    read = Read(write(tmp_path, Claude().user("x"), '{"type":"' + secret))
    assert secret not in str(read.quarantine.rows())
    other = Read(tmp_path, digest_key=b"another key")
    assert other.quarantine["digest"].item() != read.quarantine["digest"].item()


def test_a_session_that_starts_too_late_is_quarantined_record_by_record(tmp_path: Path) -> None:
    ahead, fine = Claude("ahead", day="2026-12-02"), Claude("fine")
    records = [
        fine.user("a"),
        ahead.user("b"),
        ahead.agent(text("c")),
        ahead.line("system", subtype="turn_duration"),
        fine.user("d"),
    ]
    path = write(tmp_path, *records)
    read = Read(path)
    assert read.sessions["session_id"].to_list() == ["claude_code:fine"]
    rows = read.quarantine.select("code", "session_id", "line", "byte_offset", "n_bytes", "digest").rows()
    data = path.read_bytes()
    assert [row[:3] for row in rows] == [
        ("FUTURE_DATE", "claude_code:ahead", 2),
        ("FUTURE_DATE", "claude_code:ahead", 3),
    ]
    for _, _, _, offset, n_bytes, digest in rows:
        part = data[offset : offset + n_bytes]
        assert b'"ahead"' in part
        assert digest == hashlib.blake2b(part, key=OPTIONS.digest_key, digest_size=16).hexdigest()
    f = read.file()
    assert (f["rows_read"], f["rows_kept"], f["rows_noise"], f["rows_quarantined"], f["n_sessions"]) == (5, 2, 1, 2, 1)


@pytest.mark.parametrize(
    ("day", "code"),
    [
        ("2026-12-02", "FUTURE_DATE"),
        ("2026-12-01", None),
        ("2024-01-01", None),
        ("2023-12-31", "DATE_OUT_OF_RANGE"),
        ("0001-01-01", "DATE_OUT_OF_RANGE"),
        ("9999-12-31", "FUTURE_DATE"),
    ],
)
def test_days_that_a_home_takes(tmp_path: Path, day: str, code: str | None) -> None:
    read = Read(write(tmp_path, Claude(day=day).user("x")))
    assert read.codes == ([code] if code else [])
    assert read.sessions.height == (0 if code else 1)


def test_rejected_sessions_in_archives_and_documents_are_found_again(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(
        tar([("a", lines(Claude("a").user("x"))), ("b", lines(Claude("b", "2030-01-01").user("y")))])
    )
    sims = [
        {"id": str(i), "reward_info": None, "messages": [], "start_time": f"{2030 - i * 4}-01-01T00:00:00"}
        for i in range(2)
    ]
    (tmp_path / "y.json").write_text(
        '{"info":{"num_trials":1},"simulations":' + str(sims).replace("'", '"').replace("None", "null") + "}"
    )
    read = Read(tmp_path)
    assert read.quarantine.sort("source").select("code", "member", "line").rows() == [
        ("FUTURE_DATE", "b", 1),
        ("FUTURE_DATE", "", 1),
    ]
    assert read.sessions.height == 2


def test_undated_sessions_are_given_the_assigned_day(tmp_path: Path) -> None:
    c = Claude()
    read = Read(write(tmp_path, c.user("x", timestamp=None), c.agent(text("y"), timestamp="when?")))
    s = read.session
    assert not s["is_dated"]
    assert s["day"] == OPTIONS.undated_day
    assert (s["started_at"].hour, s["ended_at"]) == (0, s["started_at"])


def test_chunks_close_at_their_size_and_hold_sessions_whole(tmp_path: Path) -> None:
    for i in range(6):
        c = Claude(f"s{i}")
        write(tmp_path, c.user("go"), *[c.agent(text("x" * 1000)) for _ in range(5)], name=f"{i}.jsonl")
    read = Read(tmp_path, chunk_bytes=12_000)
    assert [chunk.sessions.height for chunk in read.chunks if chunk.sessions.height] == [3, 3]
    assert read.sessions["session_id"].n_unique() == 6


def interleaved(n_sessions: int, n_rounds: int) -> list[dict[str, Any]]:
    writers = [Claude(f"s{i:02d}") for i in range(n_sessions)]
    # Session i is open from round i to round i + n_rounds.
    return [
        writer.user(f"{i} {turn} " + "x" * 500)
        for turn in range(n_sessions + n_rounds)
        for i, writer in enumerate(writers)
        if i <= turn < i + n_rounds
    ]


def test_a_file_of_many_sessions_is_read_without_holding_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalpipe.sources.lines.BLOCK_BYTES", 4096)
    path = write(tmp_path, *interleaved(40, 4))
    most_open = 0
    original = ClaudeParser.feed

    def feed(self: ClaudeParser, record: dict[str, Any]) -> str:
        nonlocal most_open
        most_open = max(most_open, len(self.sessions))
        return original(self, record)

    monkeypatch.setattr(ClaudeParser, "feed", feed)
    read = Read(path, chunk_bytes=10_000)
    assert read.sessions.height == 40
    assert read.sessions["n_steps"].to_list() == [4] * 40
    assert most_open < 25
    assert len(read.chunks) > 5
    whole = Read(path)
    assert len(whole.chunks) == 1
    assert read.sessions.sort("session_id").drop("file_id").equals(whole.sessions.drop("file_id"))


def test_rejected_sessions_of_a_large_file_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.sources.lines.BLOCK_BYTES", 4096)
    ahead = Claude("ahead", day="2030-01-01")
    path = write(tmp_path, *interleaved(10, 4), ahead.user("a"), *interleaved(5, 1), ahead.user("b"))
    read = Read(path, chunk_bytes=5_000)
    assert read.codes == ["FUTURE_DATE"] * 2


def test_reading_twice_gives_the_same_frames(tmp_path: Path) -> None:
    c = Claude()
    write(tmp_path, c.user("a"), c.agent(text("b")), "junk", {"type": "user"})
    batch = next(plan_batches([fingerprint(tmp_path / "log.jsonl")], 1))
    first, second = (list(parse_batch(pickle.loads(pickle.dumps(batch)), OPTIONS)) for _ in range(2))
    for name in ("sessions", "steps", "quarantine", "files"):
        assert getattr(first[0], name).equals(getattr(second[0], name))


def test_a_reader_that_loses_a_record_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.sources.ledger.Ledger.quarantine", lambda *_, **__: None)
    path = write(tmp_path, Claude().user("a"), "junk")
    with pytest.raises(EvalpipeError, match="ROWS_UNACCOUNTED"):
        Read(path)


def test_many_bad_rows_are_handed_on_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.sources.ledger._WAITING_ROWS", 10)
    monkeypatch.setattr("evalpipe.sources.lines.BLOCK_BYTES", 256)
    read = Read(write(tmp_path, Claude().user("a"), *["junk"] * 300), chunk_bytes=256 * 100)
    assert read.codes == ["BAD_JSON"] * 300
    assert len(read.chunks) > 1
    assert read.quarantine["line"].sort().to_list() == list(range(2, 302))
    assert read.quarantine.select(pl.col("byte_offset").n_unique()).item() == 300


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_left_as_it_was(tmp_path: Path, is_on: bool) -> None:
    batch = next(plan_batches([fingerprint(write(tmp_path, Claude().user("a")))], 1))
    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        for _ in parse_batch(batch, OPTIONS):
            assert gc.isenabled() == is_on
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_steps_stay_with_their_sessions_however_they_are_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sessions that do not come in the order of their ids, one of them twice, in many pieces.
    for place, (session, n) in enumerate((("c", 2), ("a", 3), ("b", 1), ("b", 4), ("d", 1))):
        c = Claude(session)
        write(tmp_path, *[c.user(f"{session}{k}") for k in range(n)], name=f"{place}.jsonl")
    monkeypatch.setattr(chunk, "_PIECE_VALUES", 1)
    read = Read(tmp_path)
    steps = read.steps.select("session_id", "seq", "text").rows()
    told = [("a", 3), ("b", 4), ("c", 2), ("d", 1)]
    assert steps == [(f"claude_code:{s}", k, f"{s}{k}") for s, n in told for k in range(n)]


def test_reading_loads_no_pandas(tmp_path: Path) -> None:
    path = write(tmp_path, Claude().user("go"))
    code = (
        "import sys; from pathlib import Path; from evalpipe.sources import fingerprint, parse_batch, plan_batches\n"
        "from evalpipe_tests.sources.helpers import OPTIONS\n"
        f"found = list(parse_batch(next(iter(plan_batches([fingerprint(Path({str(path)!r}))], 1))), OPTIONS))\n"
        "sys.exit('pandas' in sys.modules or not found[0].steps.height)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
