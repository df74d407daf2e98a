"""Secrets of databases: values of an SQL statement that stand apart from their columns, and data source names.

Belongs here: pairing columns with values, the password before an address. Does not belong here:
statements whose cue stands right before the value, such as ``IDENTIFIED BY`` (``quoted_secret``).
"""

from __future__ import annotations

import re

from evalpipe.masking.validators.base import Facts, Found
from evalpipe.masking.validators.values import is_mixed, is_placeholder, words_of

_HEAD = re.compile(rb"[\w.`\"\[\]]{1,128}\s{0,4}\(([^()]{1,2000})\)\s{0,8}values\s{0,8}", re.IGNORECASE)
_ROW = re.compile(rb"[\s,]{0,8}\(")
_VALUE = re.compile(
    rb"\s{0,8}(?:[eEnN]?'((?:[^'\\]|''|\\.){0,4000})'|\"([^\"]{0,4000})\"|([^,()'\"]{1,200}))\s{0,8}([,)])"
)
_SECRET = frozenset({"password", "passwd", "pwd", "secret", "token", "apikey", "passphrase"})
_DSN = re.compile(rb":([^\s:\"'`]{3,100})@(?:tcp|unix)\(\Z")
_ROWS = 200


def sql_insert(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Quoted values of the columns of an ``INSERT INTO`` that name a secret; at most 200 rows."""
    head = _HEAD.match(v, end)
    if head is None:
        return None
    columns = [_names_secret(name.decode("utf-8", "replace")) for name in head.group(1).split(b",")]
    if not any(columns):
        return None
    out: list[Found] = []
    at = head.end()
    for _ in range(_ROWS):
        row = _ROW.match(v, at)
        if row is None:
            break
        at = row.end()
        for is_secret in columns:
            cell = _VALUE.match(v, at)
            if cell is None:
                return out or None
            at = cell.end()
            group = 1 if cell.group(1) is not None else 2
            value = cell.group(group)
            if is_secret and value is not None and is_mixed(value) and not is_placeholder(value, facts):
                out.append((cell.start(group), cell.end(group), ""))
            if cell.group(4) == b")":
                break
    return out or None


def dsn_password(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The password of a data source name ``user:password@tcp(``; ``end`` stands behind the bracket."""
    found = _DSN.search(v[max(0, end - 160) : end])
    if found is None or is_placeholder(found.group(1), facts):
        return None
    start = max(0, end - 160) + found.start(1)
    return [(start, start + len(found.group(1)), "")]


def _names_secret(column: str) -> bool:
    words = words_of(column)
    return words[-1:] != [] and (words[-1] in _SECRET or words[-2:] in (["api", "key"], ["secret", "key"]))
