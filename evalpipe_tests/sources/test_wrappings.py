"""Wrappings: gzip, zstd, tar, byte order marks; and what is broken in them."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import zstandard

from evalpipe.sources import fingerprint, parse_batch, plan_batches
from evalpipe_tests.sources.helpers import OPTIONS, Claude, Read, lines, tar, text


def log(session_id: str, n: int = 1) -> bytes:
    c = Claude(session_id)
    return lines(c.user("go"), *[c.agent(text("word " * 50)) for _ in range(n)])


ZSTD = zstandard.ZstdCompressor()


@pytest.mark.parametrize("name", ["log.jsonl", "log.gz", "misnamed.txt"])
def test_the_wrapping_is_read_from_the_bytes_not_from_the_name(tmp_path: Path, name: str) -> None:
    plain = log("s1", 20)
    wrapped = [plain, gzip.compress(plain), ZSTD.compress(plain)]
    for data in wrapped:
        (tmp_path / name).write_bytes(data)
        read = Read(tmp_path / name)
        assert read.session["session_id"] == "claude_code:s1"
        assert read.file()["n_bytes"] == len(plain)


@pytest.mark.parametrize("compress", [gzip.compress, ZSTD.compress])
def test_several_frames_are_one_stream(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    data = log("s1", 3)
    (tmp_path / "x").write_bytes(compress(data[:500]) + compress(data[500:]))
    assert Read(tmp_path).session["n_steps"] == 4


@pytest.mark.parametrize("compress", [lambda b: b, gzip.compress, ZSTD.compress])
def test_members_of_an_archive_are_files_of_their_own(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    inner = [("p/a.jsonl", log("a")), ("p/b.jsonl.gz", gzip.compress(log("b"))), ("p/c.zst", ZSTD.compress(log("c")))]
    (tmp_path / "x.tar").write_bytes(compress(tar(inner)))
    read = Read(tmp_path)
    assert read.sessions["session_id"].to_list() == ["claude_code:a", "claude_code:b", "claude_code:c"]
    assert read.files["member"].to_list() == ["p/a.jsonl", "p/b.jsonl.gz", "p/c.zst"]
    assert read.files["file_id"].n_unique() == 1


def test_one_bad_member_never_stops_the_others(tmp_path: Path) -> None:
    members = [
        ("../out.jsonl", log("x")),
        ("/abs.jsonl", log("x")),
        ("a/../../b.jsonl", log("x")),
        ("C:/x.jsonl", log("x")),
        ("empty.jsonl", b""),
        ("cut.jsonl.gz", gzip.compress(log("cut", 500))[:-20]),
        ("notgz.gz", b"\x1f\x8b" + b"junk" * 9),
        ("readme.md", b"# Logs\n"),
        ("good.jsonl", log("good")),
    ]
    (tmp_path / "x.tar").write_bytes(tar(members))
    read = Read(tmp_path)
    assert "claude_code:good" in read.sessions["session_id"].to_list()
    codes = dict(read.quarantine.select("member", "code").rows())
    assert codes == {
        "../out.jsonl": "UNSAFE_PATH",
        "/abs.jsonl": "UNSAFE_PATH",
        "a/../../b.jsonl": "UNSAFE_PATH",
        "C:/x.jsonl": "UNSAFE_PATH",
        "empty.jsonl": "EMPTY_FILE",
        "cut.jsonl.gz": "UNREADABLE_FILE",
        "notgz.gz": "UNREADABLE_FILE",
        "readme.md": "UNKNOWN_FORMAT",
    }
    # What could be decompressed of the cut member was kept.
    assert read.sessions.filter(pl.col("session_id") == "claude_code:cut")["n_steps"].item() > 100


def test_links_and_devices_are_not_followed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"special{kind.decode()}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    (tmp_path / "x.tar").write_bytes(buffer.getvalue())
    assert Read(tmp_path).codes == ["UNSAFE_PATH"] * 3


def test_a_damaged_header_is_reported_and_later_members_are_read(tmp_path: Path) -> None:
    data = bytearray(tar([("a.jsonl", log("a")), ("b.jsonl", log("b")), ("c.jsonl", log("c"))]))
    at = data.index(b"b.jsonl")
    data[at : at + 100] = b"\xff" * 100
    (tmp_path / "x.tar").write_bytes(data)
    read = Read(tmp_path)
    assert read.sessions["session_id"].to_list() == ["claude_code:a", "claude_code:c"]
    assert read.quarantine.select("member", "code").rows() == [("(damaged)", "UNREADABLE_FILE")]


def test_a_negative_size_is_a_damaged_header(tmp_path: Path) -> None:
    data = bytearray(tar([("a.jsonl", log("a")), ("b.jsonl", log("b"))]))
    data[124:136] = b"\xff" * 12
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    (tmp_path / "x.tar").write_bytes(data)
    read = Read(tmp_path)
    assert read.session["session_id"] == "claude_code:b"
    assert read.codes == ["UNREADABLE_FILE"]


@pytest.mark.parametrize("compress", [lambda b: b, gzip.compress, ZSTD.compress])
def test_a_cut_archive_keeps_its_whole_members(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    noise = random.Random(1).randbytes(600_000).hex().encode()
    whole = compress(tar([("a.jsonl", log("a")), ("noise.bin", noise), ("b.jsonl", log("b"))]))
    (tmp_path / "x.tar").write_bytes(whole[: len(whole) // 2])
    read = Read(tmp_path)
    assert read.session["session_id"] == "claude_code:a"
    assert set(read.codes) == {"UNREADABLE_FILE"}
    assert "(rest of the archive)" in read.files["member"].to_list()


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_repeated_names(tmp_path: Path, form: int) -> None:
    name = "folder/" * 30 + "ü.jsonl"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for session_id in ("a", "b"):
            data = log(session_id)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    (tmp_path / "x.tar").write_bytes(buffer.getvalue())
    read = Read(tmp_path)
    assert read.files["member"].to_list() == [name, f"{name}#2"]
    assert read.sessions.height == 2


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_odd_names_in_archives(tmp_path: Path, form: int) -> None:
    names = ["a\nb.jsonl", "a\n20 path=evil.jsonl", "caf\udce9" + "x" * 100 + ".jsonl", "tab\t.jsonl"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as archive:
        for number, name in enumerate(names):
            data = log(f"s{number}")
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    (tmp_path / "x.tar").write_bytes(buffer.getvalue())
    read = Read(tmp_path)
    assert read.sessions.height == 4
    shown = ["a%0A20 path=evil.jsonl", "a%0Ab.jsonl", "caf%E9" + "x" * 100 + ".jsonl", "tab%09.jsonl"]
    assert read.files["member"].to_list() == shown


def test_a_size_in_an_extended_header_counts(tmp_path: Path) -> None:
    # Archivers write the size there where it does not fit the header.
    data, after = log("big"), log("after")
    fact = b"%d size=%d\n" % (len(f"00 size={len(data)}\n"), len(data))
    extended = tarfile.TarInfo("x")
    extended.type, extended.size = tarfile.XHDTYPE, len(fact)
    member = tarfile.TarInfo("big.jsonl")
    archive = extended.tobuf() + fact.ljust(512, b"\0") + member.tobuf() + data.ljust(-(-len(data) // 512) * 512, b"\0")
    (tmp_path / "x.tar").write_bytes(archive + tar([("after.jsonl", after)]))
    assert Read(tmp_path).sessions["session_id"].to_list() == ["claude_code:after", "claude_code:big"]


def steps_of_a_cut_log(tmp_path: Path, data: bytes) -> int:
    (tmp_path / "x").write_bytes(data)
    read = Read(tmp_path)
    assert "UNREADABLE_FILE" in read.codes
    return int(read.sessions["n_steps"].sum())


def test_a_short_cut_gzip_file_keeps_the_records_before_the_cut(tmp_path: Path) -> None:
    plain = log("s1", 9)
    data = gzip.compress(plain, 0)
    assert steps_of_a_cut_log(tmp_path, data[: len(data) // 2]) == 5
    # Nothing but the checksum is missing, or wrong.
    assert steps_of_a_cut_log(tmp_path, data[:-8]) == 10
    assert steps_of_a_cut_log(tmp_path, gzip.compress(plain)[:-8] + b"\1" * 8) == 10


def test_the_record_that_a_file_is_cut_in_has_a_place(tmp_path: Path) -> None:
    plain = log("s1", 3)
    (tmp_path / "x").write_bytes(gzip.compress(plain[:-40])[:-8])
    read = Read(tmp_path)
    at = plain.rindex(b"\n", 0, -1) + 1
    assert read.quarantine.select("code", "byte_offset", "line").rows() == [
        ("BAD_JSON", at, 4),
        ("UNREADABLE_FILE", len(plain) - 40, 0),
    ]
    assert read.session["n_steps"] == 3


def test_a_damaged_gzip_file_keeps_what_came_before_the_damage(tmp_path: Path) -> None:
    plain = log("s1", 2000)
    data = bytearray(gzip.compress(plain, 0))
    blocks = [len(data) - 8 - 65_000, len(data) - 8 - 64_000]
    data[blocks[0] : blocks[1]] = b"\xff" * 1000
    assert steps_of_a_cut_log(tmp_path, bytes(data)) > 1800


def test_a_short_cut_zstd_file_keeps_its_whole_blocks(tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    plain = log("s1", 9)
    half = compressor.compress(plain[: len(plain) // 2]) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    rest = compressor.compress(plain[len(plain) // 2 :]) + compressor.flush()
    assert steps_of_a_cut_log(tmp_path, half + rest[:-3]) == 5


@pytest.mark.parametrize("compress", [lambda b: b, partial(gzip.compress, compresslevel=0)])
def test_a_short_cut_archive_keeps_the_records_before_the_cut(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    data = compress(tar([("a.jsonl", log("s1", 9))]))
    assert steps_of_a_cut_log(tmp_path, data[: 512 + len(log("s1", 9)) // 2]) == 5


def test_a_cut_document_keeps_its_whole_elements_without_their_late_header(tmp_path: Path) -> None:
    simulation = {"id": "x", "task_id": "1", "trial": 0, "termination_reason": "user_stop"}
    simulation["messages"] = [{"role": "user", "content": "hi"}]
    first, second = (json.dumps({**simulation, "id": name}) for name in ("one", "two"))
    plain = f'{{"tasks": [], "simulations": [{first}, {second}], "info": {{"agent_info": {{}}}}}}'.encode()
    (tmp_path / "x").write_bytes(gzip.compress(plain, 0)[: plain.index(b'"two"') + 30])
    read = Read(tmp_path)
    assert read.sessions.height == 1
    assert read.codes == ["UNREADABLE_FILE"]


def test_gzip_members_may_be_padded_with_zeros_but_not_with_junk(tmp_path: Path) -> None:
    data = gzip.compress(log("s1", 3))
    (tmp_path / "padded").write_bytes(data + b"\0" * 5000)
    assert Read(tmp_path).codes == []
    (tmp_path / "padded").write_bytes(data + b"\0" * 70_000 + gzip.compress(b"") + b"junk")
    read = Read(tmp_path)
    assert read.codes == ["UNREADABLE_FILE"]
    assert read.session["n_steps"] == 4


@pytest.mark.parametrize("cut", [5, 40, 200])
@pytest.mark.parametrize("compress", [gzip.compress, ZSTD.compress])
def test_a_cut_file_is_reported_and_keeps_what_came_before(
    tmp_path: Path, compress: Callable[[bytes], bytes], cut: int
) -> None:
    data = compress(log("s1", 3000))
    (tmp_path / "x").write_bytes(data[:-cut])
    read = Read(tmp_path)
    assert "UNREADABLE_FILE" in read.codes
    assert read.quarantine.filter(code="UNREADABLE_FILE")["line"].to_list() == [0]


def test_a_file_that_is_nothing_but_a_broken_wrapping(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8bnonsense")
    (tmp_path / "y.zst").write_bytes(b"\x28\xb5\x2f\xfdnonsense")
    read = Read(tmp_path)
    assert read.codes == ["UNREADABLE_FILE"] * 2
    assert read.files["rows_read"].to_list() == [1, 1]


def test_a_file_that_vanished_after_its_fingerprint(tmp_path: Path) -> None:
    chunks = list(parse_batch(next(plan_batches([fingerprint(tmp_path / "gone")], 1)), OPTIONS))
    assert chunks[0].quarantine["code"].to_list() == ["UNREADABLE_FILE"]
    assert chunks[0].files["rows_quarantined"].to_list() == [1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_byte_order_marks(tmp_path: Path, encoding: str) -> None:
    c = Claude()
    plain = lines(c.user("grüße 你好 🎉"), c.agent(text("ok"))).decode()
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    (tmp_path / "x.jsonl").write_bytes(mark + plain.encode(encoding))
    assert Read(tmp_path).rows("text") == ["grüße 你好 🎉", "ok"]


def test_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    c = Claude()
    data = lines(c.user("a"), "", c.agent(text("b")), "   ").replace(b"\n", b"\r\n")
    (tmp_path / "x.jsonl").write_bytes(data)
    read = Read(tmp_path)
    assert read.rows("text") == ["a", "b"]
    assert read.file()["rows_read"] == 2
