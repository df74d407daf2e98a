"""What an unknown file is like: said in words of ours, never in words of the file."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.sources import resemble
from evalpipe.sources.registry import READERS
from evalpipe.sources.resemble import MARKS, likeness


@pytest.mark.parametrize(
    ("head", "form", "name"),
    [
        (b'{"thread": 1, "role": "user", "content": "a"}\n{"thread": 1, "role": "bot", "content": "b"}\n', "JSON lines", "openai_messages"),
        (b'{\n "run": {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1"', "one JSON document", "otlp"),
        (b'[{"conversations": [{"from": "x", "value": "y"', "one JSON array", "sharegpt"),
        (b'{"colour": "red"}\n', "JSON lines", ""),
        (b"a,b,c\n1,2,3\n4,5,6\n", "a table in text", ""),
        (b"# Title\n\nwords\n", "Markdown or other text", ""),
        (b"<html><body>", "XML or HTML", ""),
        (b"\x00\x01\x02" * 50, "a binary file", ""),
        (b"just some words", "plain text", ""),
        (b"", "an empty file", ""),
        (b"{]", "damaged JSON", ""),
    ],
)  # fmt: skip
def test_form_and_nearest_format(head: bytes, form: str, name: str) -> None:
    found = likeness(head)
    assert (found.form, found.format) == (form, name)
    assert str(found).startswith(form)


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=8), st.booleans())
def test_no_word_of_the_file_is_repeated(record: dict[str, str], is_spread: bool) -> None:
    found = likeness(json.dumps(record, indent=1 if is_spread else None).encode())
    assert set(found.found) | set(found.missing) <= set().union(*MARKS.values())


@given(st.binary(max_size=300))
def test_any_bytes_have_a_form(head: bytes) -> None:
    assert likeness(head).form


def test_every_mark_is_of_a_format_that_is_read() -> None:
    assert set(MARKS) <= {reader.name for reader in READERS}


def test_a_member_of_an_archive_is_looked_at(tmp_path: Path) -> None:
    rows: list[tuple[str, dict[str, Any]]] = [("a.json", {"x": 1}), ("b.json", {"role": "u", "content": "c", "y": 1})]
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name, row in rows:
            (tmp_path / name).write_text(json.dumps(row))
            archive.add(tmp_path / name, name)
    found = resemble(tmp_path / "x.tar", "b.json")
    assert found is not None
    assert found.format == "openai_messages"
    assert resemble(tmp_path / "none", "") is None
