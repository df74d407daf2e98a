"""The reader of JSON lines that people hand in."""

from __future__ import annotations

import pytest

from evalpipe.contracts.json_lines import BadLineError, json_object, lines


def test_objects_are_read_with_and_without_a_byte_order_mark() -> None:
    assert json_object(b'\xef\xbb\xbf{"a": 1}') == json_object(b'{"a": 1}\r') == {"a": 1}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\xff\xfe", "BAD_ENCODING"),
        (b'{"a": "\\ud800"}', "BAD_ENCODING"),
        (b"{broken", "BAD_JSON"),
        (b"1" * 5000, "BAD_JSON"),
        (b"[" * 100_000, "TOO_DEEP"),
        (b"[1]", "NOT_A_RECORD"),
    ],
)
def test_what_is_no_object_is_refused_with_its_reason(line: bytes, code: str) -> None:
    with pytest.raises(BadLineError) as caught:
        json_object(line)
    assert caught.value.code == code


def test_blank_lines_count_and_are_left_out() -> None:
    assert list(lines(b"\xef\xbb\xbfa\n\n  \nb\r\n")) == [(1, b"a"), (4, b"b\r")]
