"""Messages in every shape in which model calls are logged, and the odd values around them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalpipe.sources.readers.chat import Call, Message, read_messages
from evalpipe.sources.readers.span_values import any_time, as_json, flatten, is_same, listed, nest

CALL = Call("c1", "track", '{"parcel":7}')
ASKED = Message("assistant", None, (CALL,))
RESULT = Message("tool", "Bonn", (), "c1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hello", [Message("user", "hello")]),
        ('"hello"', [Message("user", "hello")]),
        ("", []),
        ("system: Be brief.\nuser: two\nlines\nassistant: ok", [Message("system", "Be brief."), Message("user", "two\nlines"), Message("assistant", "ok")]),
        ("we met user: bob", [Message("user", "we met user: bob")]),
        ({"role": "user", "content": "a"}, [Message("user", "a")]),
        ({"role": "developer", "content": "a"}, [Message("system", "a")]),
        ({"role": "user", "content": None}, []),
        # OpenAI chat
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"parcel":7}'}}]}, [ASKED]),
        ({"role": "tool", "tool_call_id": "c1", "content": "Bonn"}, [RESULT]),
        ({"choices": [{"message": {"role": "assistant", "content": "a"}}]}, [Message("assistant", "a")]),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]}, [Message("user", "a\nb")]),
        # OpenAI responses
        ([{"type": "reasoning", "summary": []}, {"type": "function_call", "call_id": "c1", "name": "track", "arguments": '{"parcel":7}'}, {"type": "function_call_output", "call_id": "c1", "output": "Bonn"}], [ASKED, RESULT]),
        ({"id": "resp_1", "instructions": "x", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]}, [Message("assistant", "a")]),
        # Anthropic
        ({"system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, [Message("system", "Be brief."), Message("user", "a")]),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "id": "c1", "name": "track", "input": {"parcel": 7}}]}, [ASKED]),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Bonn"}], "is_error": True}, {"type": "text", "text": "and?"}]}, [RESULT._replace(is_error=True), Message("user", "and?")]),
        # Gemini
        ({"contents": [{"role": "user", "parts": [{"text": "a"}]}], "config": {"system_instruction": "Be brief."}}, [Message("system", "Be brief."), Message("user", "a")]),
        ({"role": "model", "parts": [{"thought": True, "text": "hm"}, {"functionCall": {"name": "track", "args": {"parcel": 7}}}]}, [Message("assistant", None, (CALL._replace(call_id=None),))]),
        ({"role": "user", "parts": [{"function_response": {"name": "track", "response": {"city": "Bonn"}}}]}, [Message("tool", '{"city":"Bonn"}', (), None, "track")]),
        ({"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]}, [Message("assistant", "a")]),
        # OpenTelemetry
        ({"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "a"}, {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"parcel": 7}}]}, [Message("assistant", "a", (CALL,))]),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "Bonn"}]}, [RESULT]),
        # LangChain
        ({"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "", "tool_calls": [{"name": "track", "args": {"parcel": 7}, "id": "c1"}]}}, [ASKED]),
        ({"type": "human", "content": "a"}, [Message("user", "a")]),
        ({"type": "human", "data": {"content": "a", "type": "human"}}, [Message("user", "a")]),
        ({"type": "tool", "content": "Bonn", "tool_call_id": "c1", "status": "error"}, [RESULT._replace(is_error=True)]),
        ({"generations": [[{"text": "a", "type": "ChatGeneration"}]]}, [Message("user", "a")]),
        ({"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "track", "arguments": '{"parcel":7}'}}]}, "tool_calls": [{"name": "track", "args": {"parcel": 7}, "id": "c1"}]}, [ASKED]),
        ({"role": "tool", "content": {"type": "function", "function": {"name": "track", "parameters": {}}}}, []),
        ({"role": "get_weather", "content": "sun", "tool_call_id": "c1"}, [Message("tool", "sun", (), "c1")]),
        # OpenInference
        ({"message.role": "assistant", "message.tool_calls": [{"tool_call.id": "c1", "tool_call.function.name": "track", "tool_call.function.arguments": '{"parcel":7}'}]}, [ASKED]),
        ({"message.role": "user", "message.contents": [{"message_content.type": "text", "message_content.text": "a"}]}, [Message("user", "a")]),
        ({"message": {"role": "user", "content": "a"}}, [Message("user", "a")]),
        # Envelopes of applications
        ({"question": "a", "top_k": 3}, [Message("user", "a")]),
        ({"inputs": {"message": "a"}}, [Message("user", "a")]),
        ({"args": ["a"], "kwargs": {}}, [Message("user", "a")]),
        ({"rows": [1, 2], "ok": True}, []),
        # A call that was logged as text
        ({"role": "assistant", "content": '{"type":"tool_call","id":"c1","name":"track","arguments":{"parcel":7}}'}, [ASKED]),
        ({"role": "assistant", "content": '{"type":"tool_call"'}, [Message("assistant", '{"type":"tool_call"')]),
        # A user's own JSON stays text
        ({"role": "user", "content": '{"messages": "x"}'}, [Message("user", '{"messages": "x"}')]),
    ],
)  # fmt: skip
def test_messages(value: Any, expected: list[Message]) -> None:
    assert read_messages(value, "user") == expected
    if type(value) is not str:
        assert read_messages(json.dumps(value), "user") == expected
        assert read_messages(repr(value), "user") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1767607202123456789", "2026-01-05T10:00:02.123456Z"),
        (1_767_607_202_123_456_789, "2026-01-05T10:00:02.123456Z"),
        (0, None),
        ("0", None),
        ("later", None),
        (10**30, None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_nanoseconds_keep_their_microseconds(value: Any, expected: str | None) -> None:
    assert any_time(value) == expected


def test_numbers_tell_their_unit_by_their_size() -> None:
    at = "2026-01-05T10:00:02.000000Z"
    assert {any_time(1_767_607_202 * 10**n) for n in (0, 3, 6, 9)} == {at}
    assert any_time("2026-01-05T10:00:02.000Z") == any_time("2026-01-05 10:00:02+00:00") == at


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{'a': None}", '{"a":null}'),
        ('{ "a": 1}', '{ "a": 1}'),
        ("{broken", "{broken"),
        ('"x"', "x"),
        ("plain", "plain"),
        ("None", None),
        ({"a": [1]}, '{"a":[1]}'),
        ("{1, 2}", "{1, 2}"),
        ("[b'x']", "[b'x']"),
    ],
)
def test_results_as_json(value: Any, expected: str | None) -> None:
    assert as_json(value) == expected


def test_dotted_names() -> None:
    assert nest({"a.1.b": 1, "a.0.b": 0, "c": 2, "a.10.b": 3}) == {"a": [{"b": 0}, {"b": 1}, {"b": 3}], "c": 2}
    assert nest({"m": "whole", "m.part": 1}) == {"m": {"part": 1}} == nest({"m.part": 1, "m": "whole"})
    assert flatten({"a": {"b": {"c": 1}}, "d": []}) == {"a.b.c": 1, "d": []}
    assert listed({"p.0.x": 1, "p.1.x": 2, "q": '["z"]'}, "p") == [{"x": 1}, {"x": 2}]
    assert listed({"q": '["z"]'}, "q") == ["z"]
    assert listed({}, "q") is None


def test_same_arguments_however_spaced() -> None:
    assert is_same('{"a": 1}', "{'a':1}")
    assert not is_same('{"a": 1}', '{"a": 2}')
    assert not is_same(None, "{}")
