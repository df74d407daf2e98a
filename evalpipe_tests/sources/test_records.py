"""Cutting streams into records: lines, elements, and bytes that orjson refuses."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.sources import elements as elements_module
from evalpipe.sources import lines as lines_module
from evalpipe.sources.decode import decode
from evalpipe.sources.elements import Broken, Element, elements
from evalpipe.sources.lines import Block, TooLarge, line_blocks
from evalpipe_tests.sources.helpers import Claude, Read, write

HASHER = partial(hashlib.blake2b, key=b"k", digest_size=16)


class Stream:
    """Bytes that arrive in pieces of any size, as from a decompressor."""

    def __init__(self, data: bytes, piece: int = 1 << 30) -> None:
        self.data, self.at, self.piece = data, 0, piece

    def read(self, size: int, /) -> bytes:
        block = self.data[self.at : self.at + min(size, self.piece)]
        self.at += len(block)
        return block


def cut_lines(data: bytes, max_bytes: int, piece: int) -> tuple[list[tuple[int, int, bytes]], list[TooLarge]]:
    kept, large = [], []
    for block in line_blocks(Stream(data, piece), max_bytes, HASHER):
        if isinstance(block, Block):
            offset = block.offset
            for number, line in enumerate(block.lines, block.number):
                kept.append((offset, number, line))
                offset += len(line) + 1
        else:
            large.append(block)
    return kept, large


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=12), st.booleans(),
    st.integers(0, 20), st.integers(1, 40),
)  # fmt: skip
def test_lines_are_the_lines_whatever_the_pieces(rows: list[bytes], is_ended: bool, max_bytes: int, piece: int) -> None:
    data = b"\n".join(rows) + (b"\n" if is_ended else b"")
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    at, want, want_large = 0, [], []
    for number, line in enumerate(expected, 1):
        if len(line) <= max_bytes:
            want.append((at, number, line))
        else:
            want_large.append(
                TooLarge(at, number, len(line), hashlib.blake2b(line, key=b"k", digest_size=16).hexdigest())
            )
        at += len(line) + 1
    assert cut_lines(data, max_bytes, piece) == (want, want_large)


def test_a_line_of_200_mb_is_passed_over_in_little_memory() -> None:
    class Long:
        left = 200_000_000

        def read(self, size: int, /) -> bytes:
            if self.left < 0:
                return b""
            if not self.left:
                self.left = -1
                return b"x\nnext\n"
            n = min(size, self.left)
            self.left -= n
            return b"x" * n

    tracemalloc.start()
    try:
        found = list(line_blocks(Long(), 4_000_000, HASHER))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [type(f) for f in found] == [TooLarge, Block]
    assert isinstance(found[0], TooLarge)
    assert found[0].n_bytes == 200_000_001
    assert found[1] == Block(200_000_002, 2, [b"next"])
    assert peak < 12_000_000


def cut(
    data: bytes, lists: frozenset[str] = frozenset({"rows"}), max_bytes: int = 1 << 20, piece: int = 1 << 20
) -> list[object]:
    return list(elements(Stream(data, piece), lists, max_bytes, HASHER))


TEXTS = st.text(max_size=6) | st.text('"\\\\{}[],: é', max_size=8)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(json_values, max_size=6), st.integers(1, 50), st.sampled_from([None, 2]), st.booleans())
def test_items_of_an_array_come_out_whole(items: list[object], piece: int, indent: int | None, is_ascii: bool) -> None:
    data = json.dumps(items, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    found = cut(data, piece=piece)
    assert all(isinstance(f, Element) and f.is_item and f.key == "" for f in found)
    assert [json.loads(f.data) for f in found] == items  # type: ignore[attr-defined]
    assert [f.number for f in found] == list(range(1, len(items) + 1))  # type: ignore[attr-defined]
    for f in found:
        assert data[f.offset : f.offset + len(f.data)] == f.data  # type: ignore[attr-defined]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["rows", "info", "a", "b\\n"]), json_values), st.integers(1, 50))
def test_members_of_an_object_come_out_whole(value: dict[str, object], piece: int) -> None:
    found = cut(json.dumps(value).encode(), piece=piece)
    expected: list[object] = []
    for key, member in value.items():
        expected += (
            [(key, True, x) for x in member] if key == "rows" and isinstance(member, list) else [(key, False, member)]
        )
    got = [(json.loads(f'"{f.key}"'), f.is_item, json.loads(f.data)) for f in found if isinstance(f, Element)]
    assert got == expected
    assert len(found) == len(expected)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b"[", b"{", b'{"rows":[', b'[{"a":"']), st.integers(1, 9))
def test_any_bytes_end(data: bytes, start: bytes, piece: int) -> None:
    found = cut(start + data, piece=piece)
    assert found == cut(start + data)
    if found and isinstance(last := found[-1], Broken):
        rest = (start + data)[last.offset :]
        assert (last.n_bytes, last.digest) == (len(rest), HASHER(rest).hexdigest())
    assert not any(isinstance(f, Broken) for f in found[:-1])


def test_what_breaks_the_grammar_ends_the_document() -> None:
    for data in (b"[1,", b"[1,}", b'{"rows":[{"a":1}', b"{1:2}", b'{"a" 1}', b'{"a', b"[1] 2", b'{"a":{"b"'):
        assert isinstance(cut(data)[-1], Broken), data
    assert cut(b"[]") == []
    assert cut(b'{"rows":[]} \n') == []


def test_a_large_element_is_passed_over_and_the_next_is_read() -> None:
    big = json.dumps({"x": "\\" * 700_001 + '"]}' * 100_000})
    found = cut(f'{{"rows":[{big},{{"y":1}}]}}'.encode(), max_bytes=1000, piece=70_000)
    assert [type(f) for f in found] == [TooLarge, Element]
    assert isinstance(found[0], TooLarge)
    assert found[0].n_bytes == len(big)
    assert found[0].digest == HASHER(big.encode()).hexdigest()


def test_passing_over_a_large_element_takes_little_memory() -> None:
    class Long:
        sent = -1

        def read(self, size: int, /) -> bytes:
            self.sent += 1
            if self.sent == 0:
                return b'[{"x":"'
            if self.sent < 400:
                return b"y" * min(size, 250_000)
            return b'"},2]' if self.sent == 400 else b""

    tracemalloc.start()
    try:
        found = list(elements(Long(), frozenset(), 4_000_000, HASHER))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [type(f) for f in found] == [TooLarge, Element]
    assert peak < 14_000_000


def values(data: bytes) -> tuple[list[object], str]:
    found, code, _ = decode(data)
    return [value for _, _, value in found], code


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}{"b":2}', ([{"a": 1}, {"b": 2}], "")),
        (b' {"a":1} \t{"b":2} ', ([{"a": 1}, {"b": 2}], "")),
        (b'{"a":1}{"b":', ([{"a": 1}], "BAD_JSON")),
        (b'{"a":"\\ud83d"}', ([{"a": "\ufffd"}], "")),
        (b'{"\\udc00":["\\ud83c\\udf89"]}', ([{"\ufffd": ["🎉"]}], "")),
        (b'{"a":NaN,"b":[Infinity]}', ([{"a": None, "b": [None]}], "")),
        (b'{"a":1,"a":2}', ([{"a": 2}], "")),
        (b'{"a":' + b"9" * 400 + b"}", ([{"a": None}], "")),
        (b'{"a":"\xff"}', ([], "BAD_ENCODING")),
        (b'{"a":"\x00"}', ([], "BAD_JSON")),
        (b"\x00" * 20, ([], "BAD_JSON")),
        (b"[" * 20_000 + b"]" * 20_000, ([], "TOO_DEEP")),
        (b'{"a":' * 20_000, ([], "TOO_DEEP")),
        (b"[" * 1200 + b"]" * 1200, ([], "TOO_DEEP")),
        (b'"' + b"[" * 20_000, ([], "BAD_JSON")),
    ],
)
def test_what_orjson_refuses(data: bytes, expected: tuple[list[object], str]) -> None:
    assert values(data) == expected


def test_places_of_concatenated_values_are_bytes() -> None:
    data = '{"a":"é"} {"b":"🎉"}x'.encode()
    found, code, rest = decode(data)
    assert [data[start:end] for start, end, _ in found] == ['{"a":"é"}'.encode(), '{"b":"🎉"}'.encode()]
    assert (code, data[rest:]) == ("BAD_JSON", b"x")


def test_block_sizes_are_what_memory_is_bounded_by() -> None:
    assert lines_module.BLOCK_BYTES <= 1 << 20
    assert elements_module.BLOCK <= 1 << 20


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n\n"])
def test_a_file_of_one_line_above_the_limit_is_too_large_whatever_its_format(tmp_path: Path, end: bytes) -> None:
    write(tmp_path, Claude().user("hi"), name="good.jsonl")
    data = b'{"text": "' + b"x" * 600_000 + b'"}' + end
    (tmp_path / "huge.jsonl").write_bytes(data)
    read = Read(tmp_path, max_record_bytes=100_000)
    assert read.sessions.height == 1
    assert read.quarantine.select("code", "line", "n_bytes").rows() == [("RECORD_TOO_LARGE", 1, len(data))]


def test_a_large_file_of_lines_in_no_format_is_of_an_unknown_format(tmp_path: Path) -> None:
    (tmp_path / "huge.jsonl").write_bytes(b'{"a": 1}\n' * 60_000)
    assert Read(tmp_path, max_record_bytes=100_000).codes == ["UNKNOWN_FORMAT"]
