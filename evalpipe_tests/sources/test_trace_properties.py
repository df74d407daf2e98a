"""Trace readers take any JSON value in any place: nothing crashes, every record is accounted for."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.sources.readers.base import KEPT, NOISE, FileContext
from evalpipe.sources.readers.chat import read_messages
from evalpipe.sources.readers.thread import overlap
from evalpipe.sources.registry import READERS
from evalpipe_tests.sources.helpers import lines
from evalpipe_tests.sources.test_reading_properties import STRANGE, places, put, read
from evalpipe_tests.sources.traces import FORMATS, agent, otel_log, otlp

_LOGS = [
    otel_log(0, "gen_ai.user.message", {"content": "x"}, "a1"),
    otel_log(1, "gen_ai.choice", {"content": "y"}, "a1"),
]
CASES = {
    **FORMATS,
    "otlp_logs": ("otlp", [{"resourceLogs": [{"scopeLogs": [{"logRecords": _LOGS}]}]}, otlp(agent("a1", 0, 5))]),
}
CODES = {"NOT_A_RECORD", "BAD_FIELD"}
#: As deep as a log may nest.
DEEP_TEXTS = [left * 900 + "1" + right * 900 for left, right in (("[", "]"), ('{"role":', "}"), ('{"a.b":', "}"))]
DEEP = [orjson.loads(text) for text in DEEP_TEXTS]
VALUES: list[Any] = [
    *STRANGE, "{'a': [1]}", '{"a": {"b": "c"}}', '"x"', "[[[{}]]]", [{"role": "user"}], [{"role": ["x"]}], -(2**63),
]  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["role", "content", "parts", "type", "messages", "id", "text", "x.0.y", "kwargs"]) | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def parse(source: str, records: list[Any]) -> None:
    """Straight through the parser, which is faster than through files."""
    reader = next(r for r in READERS if r.name == source and r.shape == "lines")
    parser = reader.parser(FileContext("log.jsonl"))
    n_kept = 0
    for record in records:
        if type(record) is not dict:
            continue
        assert type(reader.recognise(record)) is bool
        status = parser.feed(record)
        assert status in CODES | {KEPT, NOISE}
        n_kept += status is KEPT
    assert 0 <= parser.close() <= n_kept
    for session in parser.sessions.values():
        parser.finish(session)
        ids = {row[0] for row in session.rows}
        assert all(row[1] is None or row[1] in ids for row in session.rows)


@pytest.mark.parametrize("name", CASES)
def test_every_single_field_may_be_anything(name: str) -> None:
    source, records = CASES[name]
    for at, record in enumerate(records):
        for place in places(record):
            for new in [*VALUES, *DEEP, *DEEP_TEXTS]:
                parse(source, [*records[:at], put(record, place, new), *records[at + 1 :]])


def mutated(value: Any, choose: random.Random) -> Any:
    """The value with inner values exchanged, dropped or repeated."""
    if choose.random() < 0.03:
        return choose.choice(VALUES)
    if isinstance(value, dict):
        return {k: mutated(v, choose) for k, v in value.items() if choose.random() > 0.02}
    if isinstance(value, list):
        return [mutated(v, choose) for v in value for _ in range(choose.choice((1, 1, 1, 1, 1, 2)))]
    if isinstance(value, str) and value.startswith(('{"', '[{"')) and choose.random() < 0.5:
        return json.dumps(mutated(json.loads(value), choose))
    return value


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 2**32))
def test_mutated_logs_balance(name: str, seed: int) -> None:
    choose = random.Random(seed)
    records = FORMATS[name][1]
    # The untouched first record keeps the file recognisable; Read checks the balance and the contracts.
    read(lines(records[0], *[json.dumps(mutated(record, choose)) for record in records for _ in range(2)]))


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted({key for _, records in CASES.values() for r in records for key in r})),
        json_values,
        max_size=6,
    )
)
def test_any_object_can_be_asked_about(record: dict[str, Any]) -> None:
    for source, _ in CASES.values():
        parse(source, [record])


@settings(max_examples=300, deadline=None)
@given(json_values, st.sampled_from(["user", "assistant"]))
def test_messages_are_read_from_any_value(value: Any, role: str) -> None:
    for form in (value, json.dumps(value), repr(value)):
        for message in read_messages(form, role):
            assert message.role in ("user", "assistant", "system", "tool")
            assert message.text is None or type(message.text) is str


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 12), st.lists(st.integers(0, 3), max_size=4))
def test_a_resent_window_is_never_new(known: list[int], window: int, fresh: list[int]) -> None:
    later = known[-window:] + fresh if window else fresh
    n_seen = overlap(known, later)
    assert known[len(known) - n_seen :] == later[:n_seen]
    assert n_seen >= min(window, len(known))
