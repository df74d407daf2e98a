"""Finding files, naming them by content, packing them."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources import SourceFile, discover, fingerprint, plan_batches, reader_versions, registry
from evalpipe_tests.sources.helpers import SAMPLES, Claude, Read, lines, write


def test_files_below_folders_are_found_sorted_and_once(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "a/1.jsonl", "a/.hidden", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe")
    found = discover([tmp_path / "b", tmp_path, tmp_path / "c.txt"])
    assert [str(p.relative_to(tmp_path)) for p in found] == [
        "a/.hidden", "a/1.jsonl", "b/2.jsonl", "c.txt", "pipe",
    ]  # fmt: skip


def test_what_is_no_file_has_a_code_and_is_never_opened_for_reading(tmp_path: Path) -> None:
    root, outside = tmp_path / "logs", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    write(root, Claude().user("hi"), name="log.jsonl")
    write(outside, Claude("s2").user("hi"), name="other.jsonl")
    os.mkfifo(root / "pipe")
    (root / "link-to-file").symlink_to(outside / "other.jsonl")
    (root / "link-to-folder").symlink_to(outside)
    (root / "link-to-itself").symlink_to(root / "link-to-itself")
    (root / "link-to-root").symlink_to(root)
    (root / "link-to-nothing").symlink_to(root / "nothing")
    (root / "link-to-device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))
        read = Read(root)
    assert read.sessions["session_id"].to_list() == ["claude_code:s1", "claude_code:s2"]
    refused = {Path(name).name: code for name, code in read.quarantine.select("source_file", "code").rows()}
    names = ("pipe", "socket", "link-to-folder", "link-to-itself", "link-to-nothing", "link-to-device")
    assert refused == dict.fromkeys(names, "NOT_A_FILE")


def test_a_pipe_that_is_named_itself_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Read(tmp_path / "pipe").codes == ["NOT_A_FILE"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    assert Read(tmp_path).codes == ["UNREADABLE_FILE"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"caf\xe9.jsonl", "caf%E9.jsonl"),
        (b"50%\xff.jsonl", "50%25%FF.jsonl"),
        (b"a\nb\x1b[31m.jsonl", "a%0Ab%1B[31m.jsonl"),
        ("a\u202eb\u2028.jsonl".encode(), "a%E2%80%AEb%E2%80%A8.jsonl"),
        ("日志 50%.jsonl".encode(), "日志 50%.jsonl"),
    ],
)
def test_any_name_of_a_file_can_be_landed(tmp_path: Path, name: bytes, shown: str) -> None:
    (tmp_path / os.fsdecode(name)).write_bytes(lines(Claude().user("hi"), "{"))
    read = Read(tmp_path)
    assert read.sessions.height == 1
    assert read.codes == ["BAD_JSON"]
    for table in (read.files, read.quarantine):
        assert [Path(path).name for path in table["source_file"]] == [shown]


def test_a_missing_path_is_named_in_one_printable_line(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError) as caught:
        discover([tmp_path / os.fsdecode(b"no\nsuch\xff")])
    assert "no%0Asuch%FF" in str(caught.value).encode().decode()


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError, match=r"SOURCE_NOT_FOUND.*nowhere"):
        discover([tmp_path / "nowhere"])


def test_a_fingerprint_depends_on_the_bytes_alone(tmp_path: Path) -> None:
    for name, data in (("a", b"x" * 3_000_000), ("b", b"x" * 3_000_000), ("c", b"y")):
        (tmp_path / name).write_bytes(data)
    a, b, c = (fingerprint(tmp_path / name) for name in "abc")
    assert a.digest == b.digest != c.digest
    assert (a.n_bytes, c.n_bytes) == (3_000_000, 1)
    assert not a.code


def test_an_unreadable_file_has_a_digest_of_its_own(tmp_path: Path) -> None:
    gone, other = fingerprint(tmp_path / "gone"), fingerprint(tmp_path / "other")
    assert gone.code == "UNREADABLE_FILE"
    assert gone.digest != other.digest


def test_batches_are_packed_by_path_without_twins(tmp_path: Path) -> None:
    for name, size in (("d", 10), ("a", 60), ("b", 50), ("c", 500), ("twin_of_b", 50)):
        (tmp_path / name).write_bytes(name[-1:].encode() * size)
    files = [fingerprint(path) for path in sorted(tmp_path.iterdir())]
    batches = list(plan_batches(files, 100))
    assert [[f.path.name for f in batch.files] for batch in batches] == [["a"], ["b"], ["c"], ["d"]]
    assert [f.path.name for f in next(plan_batches(files, 110)).files] == ["a", "b"]
    left = [file for file in files[2:] if file.path.name != "twin_of_b"]
    assert list(plan_batches(left, 100)) == batches[2:], "what a crash left over is packed as it was"
    assert len({batch.digest for batch in batches}) == 4
    assert list(plan_batches([], 100)) == []
    assert pickle.loads(pickle.dumps(batches)) == batches


def test_a_batch_is_given_before_files_beyond_it_are_read(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    read: list[str] = []

    def files() -> Iterator[SourceFile]:
        for path in discover([tmp_path]):
            assert isinstance(path, Path)
            read.append(path.name)
            yield fingerprint(path)

    assert [f.path.name for f in next(plan_batches(files(), 1)).files] == ["a"]
    assert read == ["a", "b"]


def test_a_new_reader_version_is_a_new_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    files = [fingerprint(tmp_path / "a")]
    before = next(plan_batches(files, 10)).digest
    first, *others = registry.READERS
    monkeypatch.setattr(registry, "READERS", (replace(first, version="next"), *others))
    assert next(plan_batches(files, 10)).digest != before


def test_readers_have_versions() -> None:
    own = {"evalpipe_jsonl", "claude_code", "codex", "tau_bench", "tau2_bench"}
    assert own <= set(reader_versions())
    assert all(reader_versions().values())


def test_every_source_stands_in_the_page_of_formats() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert {reader.name for reader in registry.READERS} <= listed


FIELDS = {
    "user": "user_id", "workspace": "workspace", "release": "agent_release", "model": "model", "tokens": "input_tokens",
    "cost": "logged_cost_usd", "end": "end_status_logged",
}  # fmt: skip
FIELDS_OF_STEPS = {"times of steps": "started_at", "exit codes": "exit_code"}
WORDS = {"log", "inferred", "run", "no", "no steps"}


def fields_table() -> dict[str, dict[str, str]]:
    """Source to field to word, of the table in the page of formats."""
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    lines = page.split("## Which fields exist")[1].split("\n## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0].strip("`"): dict(zip(table[0][1:], row[1:], strict=True)) for row in table[1:]}


def test_the_table_of_fields_has_a_row_for_every_source() -> None:
    table = fields_table()
    assert set(table) == {reader.name for reader in registry.READERS}
    assert {word for row in table.values() for word in row.values()} <= WORDS


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample logs are not beside the repository")
def test_fields_that_a_format_has_no_place_for_are_null_in_its_samples() -> None:
    table = fields_table()
    folders = [p for p in sorted(SAMPLES.iterdir()) if p.is_dir() and p.name not in ("labelled_signals", "pii_secrets")]
    wrong = []
    for folder in folders:
        read = Read(folder)
        for (source,), sessions in read.sessions.group_by("source"):
            steps = read.steps.join(sessions.select("session_id"), on="session_id", how="semi")
            told = [(f, sessions[c]) for f, c in FIELDS.items()] + [(f, steps[c]) for f, c in FIELDS_OF_STEPS.items()]
            failed = steps.filter("is_error").height
            wrong += [
                (source, f) for f, values in told if table[str(source)][f] == "no" and values.null_count() < len(values)
            ]
            wrong += [(source, "failed calls")] if failed and table[str(source)]["failed calls"] == "no" else []
    assert wrong == []
