"""Odd JSON values, those too that no JSON writer of Python's would write.

Belongs here: single values, and the writing of records that hold them. Does not belong here: where in
a record they go (``edits.py``), or damage to bytes (``damage.py``).
"""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

from evalpipe_tests.fuzz.judge import MARKER
from evalpipe_tests.fuzz.seeds import write

_OPEN, _CLOSE = "<raw:", ":raw>"
_WHOLE_OR_PART = re.compile(b'("?)%s((?:[0-9a-f]{2})*|[0-9]+-)%s("?)' % (_OPEN.encode(), _CLOSE.encode()))
_DEPTHS = (10, 100, 500, 999, 1000, 1001, 1022, 1023, 1024, 1025, 3000)
_DEEPEST = 100_000

TIMES: tuple[Any, ...] = (
    "0000-00-00T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00", "10000-01-01T00:00:00Z",
    "2026-01-05", "2026-01-05T24:00:00Z", "2026-01-05T23:59:60Z", "2026-01-05T10:00", "20260105T100000Z", "2026-W02-1",
    "2026-01-05T10:00:00,5Z", "2026-01-05t10:00:00z", "2026-01-05 10:00:00.123456789 UTC", "2026-02-30T00:00:00Z",
    "1969-12-31T23:59:59Z", "2031-01-01T00:00:00Z", "2026-01-05T10:00:00+99:99", "２０２６-01-05T10:00:00Z", "now", "",
    1767607200, 1767607200123, 1767607200123456, 1767607200123456789, 1767607200.5, "1767607200123", "17676072001234567890",
    0, -1, -62135596801, 253402300800, 10**18, 2**63, True, False, None, [], ["2026-01-05T10:00:00Z"], {"$date": 5}, 1e300,
)  # fmt: skip

IDS: tuple[Any, ...] = (
    None,
    0,
    1,
    -1,
    2**63,
    1.5,
    True,
    "",
    " ",
    "\x00",
    "a/b",
    "../x",
    "a\nb",
    "é" * 300,
    [],
    {},
    ["x"],
    {"id": "x"},
)

PLAIN: tuple[Any, ...] = (
    None, True, False, 0, -1, -0.0, 1.5, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 1e308, 5e-324,
    "", " ", "x", "\x00", "\u2028", "\ufeff", "\ufffe", "￾", "🏳️‍🌈", "\r", "\n", "\t\x0b\x1f\x7f", "%s{}", "null", "NaN", "[]", "{}", '{"a": [1]}', "{'a': None}",
    [], {}, [[]], [None], [{}], {"": None}, {"a": None}, {"role": "user"}, [{"type": "text"}], [{"type": "text", "text": 1}], ["x", 1, None],
)  # fmt: skip

#: JSON, or what some writers take for it.
_WRITTEN = (
    "1e999", "-1e999", "1E400", "NaN", "Infinity", "-Infinity", "-0", "0.1e-400", "01", "+1", ".5", "1.", "0x10", "1_000", "undefined",
    "'x'", "None", "True", '"\\ud800"', '"\\udc00\\ud800"', '"a\\ud83dz"', '"\\u0000"', '"\\x41"', '"\t"', '"\\', '"', "{", "[", "]", "}", "",
    ",", "[1,]", '{"a":1,}', '{"a" 1}', '{a:1}', '{1:2}', "[1 2]", '{"\\ud800": 1}', '{"a":1,"a":2,"a":null}', "/* c */ 1", "1 // c\n", "\ud800", "\udfff",
)  # fmt: skip


def one_of(values: tuple[Any, ...], choose: random.Random) -> Any:
    """One of the values, as a copy: edits change lists and objects in place."""
    return copy.deepcopy(choose.choice(values))


def raw(text: str) -> str:
    """A placeholder that :func:`written` replaces by this text, whatever it is."""
    return f"{_OPEN}{text.encode('utf-8', 'surrogatepass').hex()}{_CLOSE}"


def deep(choose: random.Random, depth: int = 0) -> str:
    """A placeholder for a value that nests this many levels."""
    depth = depth or (choose.choice(_DEPTHS) if choose.random() < 0.97 else _DEEPEST)
    left, right = choose.choice((("[", "]"), ('{"a":', "}"), ('[{"content":', "}]"), ('{"type":"text","text":[', "]}")))
    n = max(1, depth // max(1, left.count("[") + left.count("{")))
    return raw(
        left * n + choose.choice(("1", '"x"', "null", "[]", "")) + right * (n if choose.random() < 0.9 else n // 2)
    )


def _number(choose: random.Random) -> Any:
    digits = choose.choice((20, 100, 299, 300, 308, 309, 310, 400, 4299, 4300, 4301, 20_000))
    kind = choose.randrange(4)
    text = choose.choice(("1", "9", "-7")) + "0" * digits
    return raw(text if kind < 2 else text + ".5" if kind == 2 else f"0.{text.lstrip('-')}")


def odd(choose: random.Random) -> Any:
    """Any odd value; may hold placeholders of :func:`raw`."""
    kind = choose.random()
    if kind < 0.45:
        return one_of(PLAIN, choose)
    if kind < 0.6:
        return one_of(TIMES, choose)
    if kind < 0.75:
        return raw(choose.choice(_WRITTEN))
    if kind < 0.82:
        return _number(choose)
    if kind < 0.88:
        return deep(choose)
    if kind < 0.93:
        return json.dumps(odd_json(choose))
    if kind < 0.95:
        return choose.choice(("x", "é", "🎈", "\\", '"', "\n", "a.b[", "<", "`", "(")) * choose.choice(
            (300, 5000, 70_000)
        )
    return f"{MARKER} {one_of(IDS, choose)}"


def odd_json(choose: random.Random, depth: int = 0) -> Any:
    """A small random value of plain JSON."""
    if depth > 3 or choose.random() < 0.5:
        return one_of(PLAIN, choose)
    if choose.random() < 0.5:
        return [odd_json(choose, depth + 1) for _ in range(choose.randrange(4))]
    keys = ("role", "content", "type", "text", "id", "messages", "name", "arguments", "")
    return {choose.choice(keys): odd_json(choose, depth + 1) for _ in range(choose.randrange(4))}


def twice(key: str, choose: random.Random) -> str:
    """A key that is written as ``key`` though a dictionary holds that already."""
    return f"{key}{_OPEN}{choose.randrange(10**6)}-{_CLOSE}"


def written(records: list[Any], form: str) -> bytes:
    """A file of records in which placeholders are what they stand for."""
    return _filled(write(records, form))


def _filled(data: bytes) -> bytes:
    return _WHOLE_OR_PART.sub(_meant, data)


def _meant(match: re.Match[bytes]) -> bytes:
    quote, inner, other = match.groups()
    if inner.endswith(b"-"):
        return quote + other
    text = bytes.fromhex(inner.decode())
    return text if quote and other else quote + text + other
