"""Files of other shapes than lines: zip, Parquet, ``.eval``, whole documents, text, foreign readers."""

from __future__ import annotations

import json
import random
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources import containers, registry
from evalpipe.sources.containers import EVAL_HEADER, EVAL_SAMPLE, open_file
from evalpipe.sources.readers.base import KEPT, NOISE, FileContext, Parser, Reader, Record, json_readers
from evalpipe.sources.session import TEXT, Session, user_row
from evalpipe_tests.sources.helpers import Read

LINES = (
    {"evalpipe": 1, "type": "session", "session_id": "a", "agent": "helper", "started_at": "2026-01-02T03:04:05Z"},
    {"type": "step", "session_id": "a", "kind": "user", "text": "hello", "at": "2026-01-02T03:04:06Z"},
)


class NoteParser(Parser):
    """Sessions of a format that only these tests know."""

    def feed(self, record: Record) -> str:
        """Take one record."""
        text = str(record.get("note") or record.get("text"))
        if text.startswith("#"):
            return NOISE
        session = Session("notes", f"{self.context.stem}/{len(self.sessions)}", "helper")
        session.rows.append(user_row("1", "human", text, None))
        self.sessions[text] = self.current = session
        return KEPT


NOTES = Reader("notes", "1", "lines", lambda record: "note" in record, NoteParser)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "READERS", registry.READERS + json_readers(NOTES))


def members(path: Path) -> list[tuple[str, bytes, str]]:
    with ExitStack() as stack:
        return [
            (m.name, b"".join(iter(lambda m=m: m.stream.read(7), b"")) if m.stream else b"", m.code)  # type: ignore[misc]
            for m in open_file(path, stack)
        ]


def test_members_of_a_zip_are_read_and_unsafe_ones_are_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one/a.jsonl", "".join(json.dumps(line) + "\n" for line in LINES))
        archive.writestr("../b.jsonl", "{}")
        archive.writestr("empty.jsonl", "")
    read = Read(tmp_path / "logs.zip")
    assert read.sessions["session_id"].to_list() == ["evalpipe_jsonl:a"]
    assert dict(read.quarantine.select("member", "code").rows()) == {
        "../b.jsonl": "UNSAFE_PATH",
        "empty.jsonl": "EMPTY_FILE",
    }


@pytest.mark.parametrize("data", [b"PK\x03\x04" + bytes(40), b"PAR1" + bytes(40)])
def test_a_broken_container_is_unreadable(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert Read(tmp_path).quarantine["code"].to_list() == ["UNREADABLE_FILE"]


def test_a_member_that_breaks_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad.jsonl", "y" * 500)
        archive.writestr("good.jsonl", "".join(json.dumps(line) + "\n" for line in LINES))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"y" * 500, b"z" * 500))
    read = Read(path)
    assert read.sessions.height == 1
    assert read.quarantine.select("member", "code").rows() == [("bad.jsonl", "UNREADABLE_FILE")]


def test_a_member_without_a_name_is_read_like_the_others(tmp_path: Path) -> None:
    """It once stopped the landing of all files."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), "one")
        archive.writestr("b.txt", "two")
    assert members(path) == [("(damaged)", b"one", ""), ("b.txt", b"two", "")]


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_member_of_any_compression_that_is_damaged_stops_no_other_file(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("log.jsonl", random.Random(1).randbytes(5000))
    data = path.read_bytes()
    path.write_bytes(data[:60] + b"\xff" * 20 + data[80:])
    assert Read(path).codes == ["UNREADABLE_FILE"]


def test_rows_of_parquet_are_read_as_lines(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{**dict.fromkeys({*LINES[0], *LINES[1]}), **line} for line in LINES])
    pq.write_table(table, tmp_path / "logs.parquet")
    read = Read(tmp_path)
    assert read.sessions.select("session_id", "n_turns").rows() == [("evalpipe_jsonl:a", 1)]
    assert read.file()["rows_read"] == 2


def test_an_eval_becomes_header_and_samples(tmp_path: Path) -> None:
    path = tmp_path / "run.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/2_epoch_1.json", '{"id": 2,\n "x": "\\n"}')
        archive.writestr("_journal/summaries/1.json", "[]")
        archive.writestr("samples/3_epoch_1.json", "{broken\n}")
        archive.writestr("header.json", '{"status": "success"}')
    [(name, data, code)] = members(path)
    lines = data.split(b"\n")
    assert (name, code, lines[3]) == ("", "", b"")
    assert json.loads(lines[0]) == {EVAL_HEADER: {"status": "success"}}
    assert json.loads(lines[1]) == {EVAL_SAMPLE: {"id": 2, "x": "\n"}}
    assert lines[2] == b'{"%s": {broken }}' % EVAL_SAMPLE.encode()


def test_what_stands_beside_a_run_in_its_archive_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1.json", '{"id": 1}')
        archive.writestr("header.json", "{}")
        archive.writestr("summaries.json", "[]")
        archive.writestr("other/s1.jsonl", "".join(json.dumps(line) + "\n" for line in LINES))
    assert [name for name, _, _ in members(path)] == ["", "other/s1.jsonl"]
    assert "evalpipe_jsonl:a" in Read(path).sessions["session_id"].to_list()


def test_rows_of_parquet_are_held_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_BATCH_BYTES", 50_000)
    rng = random.Random(1)
    table = pa.table({"text": ["".join(rng.choices("abcdefgh", k=20_000)) for _ in range(30)]})
    pq.write_table(table, tmp_path / "x.parquet", use_dictionary=False, compression="none")
    asked = []
    whole = pq.ParquetFile.iter_batches

    def watched(self: pq.ParquetFile, size: int) -> object:
        asked.append(size)
        return whole(self, size)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    [(_, data, _)] = members(tmp_path / "x.parquet")
    assert (asked, data.count(b"\n")) == ([2], 30)


def as_zstandard(data: bytes) -> bytes:
    """The zip archive, whose members hold Zstandard frames as they are, with that method declared."""
    patched = bytearray(data)
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = 0
        while (start := data.find(mark, start)) >= 0:
            patched[start + at : start + at + 2] = (93).to_bytes(2, "little")
            start += 4
    return bytes(patched)


def test_members_compressed_with_zstandard_are_read(tmp_path: Path) -> None:
    """Inspect writes such archives; the standard library reads them from Python 3.14 on."""
    compress = zstandard.ZstdCompressor().compress
    with zipfile.ZipFile(tmp_path / "stored.zip", "w") as archive:
        archive.writestr("samples/1_epoch_1.json", compress(b'{"id": 1}'))
        archive.writestr("samples/2_epoch_1.json", compress(b'{"id": 2}')[:-2])
        archive.writestr("header.json", compress(b'{"status": "success"}'))
    path = tmp_path / "run.eval"
    path.write_bytes(as_zstandard((tmp_path / "stored.zip").read_bytes()))
    with ExitStack() as stack:
        [member] = open_file(path, stack)
        assert member.stream is not None
        assert member.stream.peek(50).split(b"\n")[0] == b'{"%s":{"status":"success"}}' % EVAL_HEADER.encode()
    assert "BAD_JSON" in Read(path).codes, "a sample that is cut is one bad line"


def test_a_broken_or_huge_sample_of_an_eval_is_one_bad_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_PARSED_BYTES", 1000)
    path = tmp_path / "run.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1.json", json.dumps({"broken": "y" * 500}))
        archive.writestr("samples/2.json", json.dumps({"huge": "x" * 600_000}, indent=1))
        archive.writestr("samples/3.json", "{}")
    path.write_bytes(path.read_bytes().replace(b"y" * 500, b"z" * 500))
    [(_, data, _)] = members(path)
    lines = data.split(b"\n")
    assert len(lines) == 5
    with pytest.raises(json.JSONDecodeError):
        json.loads(lines[1])
    assert len(json.loads(lines[2])[EVAL_SAMPLE]["huge"]) == 600_000
    assert json.loads(lines[3]) == {EVAL_SAMPLE: {}}


def test_a_value_that_python_has_no_type_for_stops_one_file_only(tmp_path: Path) -> None:
    far = pa.array([10**7], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"at": far}), tmp_path / "far.parquet")
    (tmp_path / "good.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    read = Read(tmp_path)
    assert read.sessions.height == 1
    assert read.quarantine["code"].to_list() == ["UNREADABLE_FILE"]


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize(
    ("text", "n_sessions"),
    [
        ('{"note": "a"}\n{"note": "b"}\n', 2),
        ('{"note": "a"}', 1),
        ('[{"note": "a"},\n {"note": "b"}, {"note": "#"}]', 2),
        ('{\n "note": "a",\n "more": {"x": [1, 2]}\n}\n', 1),
        ('{"note": "' + "a" * 100_000 + '"}\n{"note": "b"}\n', 2),
        ('{\n "note": "' + "a" * 100_000 + '"\n}\n', 1),
        ('[{"x": "' + "a" * 100_000 + '", "note": "b"}]', 0),
    ],
)
def test_one_reader_takes_lines_arrays_and_documents(tmp_path: Path, text: str, n_sessions: int) -> None:
    (tmp_path / "x.json").write_text(text)
    read = Read(tmp_path)
    assert read.sessions.height == n_sessions
    assert read.files["source"].to_list() == ["notes" if n_sessions else "unknown"]


@pytest.mark.usefixtures("added")
def test_a_document_above_the_limit_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{\n "note": "' + "a" * 600_000 + '"\n}\n')
    read = Read(tmp_path, max_record_bytes=500_000)
    assert read.quarantine.select("code", "n_bytes").rows() == [("RECORD_TOO_LARGE", 600_016)]


class FaultyParser(NoteParser):
    """Raises where its records say so."""

    def feed(self, record: Record) -> str:
        if record["note"] == "bad":
            raise KeyError("secret text")
        return super().feed(record)

    def finish(self, session: Session) -> None:
        if session.rows[0][TEXT] == "bad end":
            raise ZeroDivisionError
        super().finish(session)


def test_what_a_reader_raises_on_is_quarantined_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = replace(NOTES, name="faulty", parser=FaultyParser, recognise=lambda record: "note" in record)
    rude = replace(NOTES, name="rude", recognise=lambda record: record["kind"] == "rude", hint=lambda _: False)
    monkeypatch.setattr(registry, "READERS", (*registry.READERS, rude, faulty))
    (tmp_path / "a.jsonl").write_text('{"note": "a"}\n{"note": "bad"}\n{"note": "bad end"}\n{"note": "b"}\n')
    (tmp_path / "b.jsonl").write_text('{"foo": 1}\n')
    (tmp_path / "c.jsonl").write_text('{"note": "c"}\n')
    read = Read(tmp_path)
    assert sorted(read.steps["text"]) == ["a", "b", "c"]
    found = read.quarantine.sort("source_file", "line").select("source", "code", "line").rows()
    assert found == [("faulty", "READER_FAILED", 2), ("faulty", "READER_FAILED", 3), ("rude", "READER_FAILED", 0)]
    assert "secret" not in str(read.quarantine.to_dicts())


def test_text_is_cut_where_the_reader_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begins(line: bytes) -> bool:
        return line.startswith(b"== ")

    reader = Reader("text_notes", "1", "text", lambda _: False, NoteParser, begins, cut=begins)
    monkeypatch.setattr(registry, "READERS", (*registry.READERS, reader))
    (tmp_path / "x.md").write_bytes(b"== one\nfirst\n\n== two\n== \xff\n== " + b"x" * 400)
    read = Read(tmp_path, max_record_bytes=300)
    assert sorted(read.steps["text"]) == ["== one\nfirst\n", "== two"]
    assert read.quarantine.select("code", "byte_offset", "line").rows() == [
        ("BAD_ENCODING", 21, 5),
        ("RECORD_TOO_LARGE", 26, 6),
    ]


def test_a_line_that_is_left_out_ends_the_record_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begins(line: bytes) -> bool:
        return line.startswith(b"== ")

    reader = Reader("text_notes", "1", "text", lambda _: False, NoteParser, begins, cut=begins)
    monkeypatch.setattr(registry, "READERS", (*registry.READERS, reader))
    (tmp_path / "x.md").write_bytes(b"== \xff\n" + b"x" * 400 + b"\nrest\n")
    read = Read(tmp_path, max_record_bytes=300)
    found = read.quarantine.sort("byte_offset").select("code", "byte_offset", "line", "n_bytes").rows()
    assert found == [("BAD_ENCODING", 0, 1, 4), ("RECORD_TOO_LARGE", 5, 2, 400)]
    assert read.steps["text"].to_list() == ["rest"]


def package(folder: Path, target: str, code: str) -> None:
    """An installed package with one entry point, as a test of what other people write."""
    (folder / "notes_for_evalpipe.py").write_text(code)
    info = folder / "notes_for_evalpipe-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notes-for-evalpipe\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\nnotes = notes_for_evalpipe:{target}\n")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    registry.added_readers.cache_clear()
    yield folder
    registry.added_readers.cache_clear()
    sys.modules.pop("notes_for_evalpipe", None)


OWN = "from evalpipe_tests.sources.test_containers import NOTES, NoteParser\nfrom dataclasses import replace\n"


def test_another_package_adds_a_reader(tmp_path: Path, path: Path) -> None:
    package(path, "READERS", OWN + "READERS = (NOTES,)\n")
    (tmp_path / "x.jsonl").write_text('{"note": "a"}\n')
    assert Read(tmp_path / "x.jsonl").sessions["source"].to_list() == ["notes"]
    assert registry.reader_versions()["notes"] == "1"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("MISSING", OWN),
        ("READERS", "READERS = 3\n"),
        ("READERS", "READERS = []\n"),
        ("READERS", "raise RuntimeError('secret text')\n"),
        ("READERS", OWN + "READERS = replace(NOTES, name='codex')\n"),
    ],
)
def test_a_reader_that_cannot_be_used_is_an_error_of_its_own(path: Path, target: str, code: str) -> None:
    package(path, target, code)
    with pytest.raises(EvalpipeError) as error:
        registry.all_readers()
    assert error.value.code == "BAD_READER"
    assert "secret" not in str(error.value)


def test_context_names_the_file() -> None:
    assert FileContext("a/b.json.gz").stem == "b"
