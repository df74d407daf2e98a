"""One JSON object a line, as people and tools write it: the one reader of files that are given by hand.

Belongs here: what a line may be and why it is refused. Does not belong here: logs (``sources``, which
read by the gigabyte), what the fields of a row mean.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any


class BadLineError(ValueError):
    """A line that is no JSON object; ``code`` says why: BAD_ENCODING, BAD_JSON, TOO_DEEP, NOT_A_RECORD."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def json_object(line: bytes) -> dict[str, Any]:
    """The object of a line.

    Args:
        line: Its bytes; editors put a byte order mark in front of the first one.

    Raises:
        BadLineError: It is none, or holds half a character (a lone surrogate spelt out).
    """
    try:
        row = json.loads(line.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
        if b"\\ud" in line.lower():
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeError:
        raise BadLineError("BAD_ENCODING") from None
    except ValueError:  # also a number of too many digits
        raise BadLineError("BAD_JSON") from None
    except RecursionError:
        raise BadLineError("TOO_DEEP") from None
    if not isinstance(row, dict):
        raise BadLineError("NOT_A_RECORD")
    return row


def lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers from 1.

    Args:
        data: A whole file.
    """
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if line.strip():
            yield number, line
