"""A failing input made small: what is left of it still fails in the same way.

Belongs here: taking pieces away. Does not belong here: what failing means (``judge.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalpipe_tests.fuzz.judge import judge

_TRIES = 400


def minimise(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Take away halves, then smaller pieces, for as long as it still fails: lines first, then bytes.

    Args:
        data: Bytes that fail.
        fails: Whether bytes fail in the same way.
    """
    tries = [_TRIES]
    lines = _without(data.split(b"\n"), lambda parts: fails(b"\n".join(parts)), tries)
    small = b"\n".join(lines)
    letters = _without([small[at : at + 1] for at in range(len(small))], lambda parts: fails(b"".join(parts)), tries)
    return b"".join(letters)


def _without(parts: list[bytes], fails: Callable[[list[bytes]], bool], tries: list[int]) -> list[bytes]:
    size = len(parts) // 2
    while size and tries[0]:
        at = 0
        while at < len(parts) and tries[0]:
            tries[0] -= 1
            fewer = parts[:at] + parts[at + size :]
            if fewer and fails(fewer):
                parts = fewer
            else:
                at += size
        size //= 2
    return parts


def same_fault(folder: Path, name: str, fault: str, options: dict[str, Any]) -> Callable[[bytes], bool]:
    """Whether bytes, in a file of this name and under these limits, have this fault."""

    def fails(data: bytes) -> bool:
        path = folder / name
        path.write_bytes(data)
        return judge([path], **options)[0].fault == fault

    return fails
