"""Small logs of benchmarks, data sets and message interfaces in their real shapes, written for these tests."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe_tests.sources.helpers import Read, lines

T = "2026-01-05T10:00:0{}.000Z"


def atif(**fields: Any) -> dict[str, Any]:
    steps = [
        {"step_id": 1, "source": "system", "message": "You are a careful worker."},
        {"step_id": 2, "source": "user", "message": "count the files", "timestamp": T.format(1)},
        {
            "step_id": 3,
            "source": "agent",
            "message": "I list them.",
            "timestamp": T.format(2),
            "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}],
            "observation": {
                "results": [{"source_call_id": "c1", "content": "a\n[The command completed with exit code 2.]"}]
            },
            "metrics": {"prompt_tokens": 10, "completion_tokens": 4, "cached_tokens": 6, "cost_usd": 0.5},
        },
        {"step_id": 4, "source": "agent", "message": "One.", "timestamp": T.format(3), "model_name": "big"},
    ]
    return {
        "schema_version": "ATIF-v1.5",
        "session_id": "run-1",
        "agent": {"name": "worker", "version": "3.1", "model_name": "small"},
        "steps": steps,
        "final_metrics": {"total_prompt_tokens": 999, "total_completion_tokens": 99, "total_cost_usd": 9.0},
        **fields,
    }


def trace(episode: int, **fields: Any) -> dict[str, Any]:
    said = [
        {"role": "user", "content": "make hello.txt"},
        {"role": "assistant", "content": json.dumps({"commands": [{"keystrokes": "touch hello.txt\n"}]})},
        {"role": "user", "content": "New output: $"},
        {"role": "assistant", "content": "done"},
    ]
    return {
        "conversations": said[: 2 + 2 * episode],
        "agent": "terminus",
        "model": "m",
        "model_provider": "p",
        "date": "2026-01-05T10:00:00",
        "task": "hello",
        "episode": f"episode-{episode}",
        "run_id": "r1",
        "trial_name": "hello__abc",
        "result": "1.0",
        **fields,
    }


def trial(**fields: Any) -> dict[str, Any]:
    return {
        "id": "6d0f0a40-0000-4000-8000-000000000001",
        "task_name": "hello",
        "trial_name": "hello__abc",
        "task_checksum": "x",
        "source": "tb",
        "agent_info": {"name": "worker", "version": "3", "model_info": {"name": "m", "provider": "p"}},
        "agent_result": {"n_input_tokens": 30, "n_cache_tokens": 10, "n_output_tokens": 5, "cost_usd": 0.25},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": "2026-01-05T10:00:00",
        "finished_at": "2026-01-05T10:05:00",
        **fields,
    }


EVAL = {"run_id": "run", "task": "capitals", "task_id": "t", "model": "lab/m", "created": "2026-01-05T10:00:00Z"}


def answer(message_id: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"id": message_id, "role": "assistant", "content": content, "model": "m-2026", **fields}


def model_event(message: dict[str, Any], second: int, span: str = "solver", **fields: Any) -> dict[str, Any]:
    return {
        "event": "model",
        "uuid": f"e{message.get('id')}",
        "span_id": span,
        "timestamp": T.format(second),
        "completed": T.format(second + 1),
        "model": "lab/m",
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "capital of X?"}],
        "output": {
            "choices": [{"message": message}],
            "usage": {"input_tokens": 7, "output_tokens": 2, "input_tokens_cache_read": 3},
        },
        **fields,
    }


def span(name: str, kind: str, parent: str | None = None) -> dict[str, Any]:
    return {
        "event": "span_begin",
        "id": name,
        "type": kind,
        "name": name,
        "parent_id": parent,
        "timestamp": T.format(0),
    }


ASKS = answer("a1", "", tool_calls=[{"id": "k1", "function": "lookup", "arguments": {"q": "X"}}])
SAYS = answer("a2", "Y")


def sample(**fields: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "epoch": 2,
        "input": "capital of X?",
        "target": "Y",
        "uuid": "sample-uuid-1",
        "messages": [
            {"id": "m0", "role": "system", "content": "Be brief."},
            {"id": "m1", "role": "user", "content": "capital of X?", "source": "input"},
            ASKS,
            {"role": "tool", "tool_call_id": "k1", "function": "lookup", "content": "X: Y"},
            SAYS,
        ],
        "events": [
            span("solver", "solver"),
            model_event(ASKS, 1),
            {
                "event": "tool",
                "id": "k1",
                "span_id": "solver",
                "function": "lookup",
                "arguments": {"q": "X"},
                "result": "X: Y",
                "timestamp": T.format(3),
                "completed": T.format(4),
            },
            model_event(SAYS, 5),
            span("scorers", "scorers"),
            span("grade", "scorer", "scorers"),
            model_event(answer("g1", "GRADE: C"), 7, "grade"),
        ],
        "scores": {"match": {"value": "C", "answer": "Y"}},
        "model_usage": {"lab/m": {"input_tokens": 21, "output_tokens": 6}},
        **fields,
    }


def inspect_log(*samples: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": EVAL, "samples": list(samples or [sample()]), **fields}


def eval_archive(*samples: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": EVAL}))
        for n, one in enumerate(samples or [sample()]):
            archive.writestr(f"samples/{n}_epoch_1.json", json.dumps(one, indent=1))
    return buffer.getvalue()


def tb(**fields: Any) -> dict[str, Any]:
    return {
        "id": "0b0c7d4e-0000-4000-8000-000000000001",
        "trial_name": "fix-it.2-of-5.2026-01-05__10-00-00",
        "task_id": "fix-it",
        "instruction": "Fix it.",
        "is_resolved": True,
        "failure_mode": "unset",
        "parser_results": {"test_a": "passed"},
        "total_input_tokens": 12,
        "total_output_tokens": 3,
        "trial_started_at": "2026-01-05T10:00:00+00:00",
        "trial_ended_at": "2026-01-05T10:09:00+00:00",
        **fields,
    }


def mcp(**fields: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "service": "github",
        "task": "find",
        "run": "run-3",
        "success": False,
        "error_message": None,
        "turn_count": 4,
        "input_tokens": 9,
        "output_tokens": 2,
        "reasoning_tokens": None,
        **fields,
    }


def node(kind: str, text: str, *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"node_type": kind, "description": text, "pruned": False, "children": list(children), **fields}


def act(name: str, arguments: str, code: int, observation: str, *children: dict[str, Any]) -> dict[str, Any]:
    inner = node("Action Input", arguments, *children, observation=observation, observation_code=code)
    return node("Action", name, inner)


FINISH = act("Finish", '{"return_type": "give_answer", "final_answer": "It is 7."}', 3, '{"response": "ok"}')


def tree(*children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    tried = act("dead_end", "{}", 1, '{"error": "No such function name"}')
    found = node("Thought", "try the other", act("sum", '{"a": 3}', 0, '{"error": "", "response": "7"}', FINISH))
    return {
        "win": True,
        "tree": {"size": 6, "tree": node("Action Input", "", *(children or (tried, found)))},
        "answer_generation": {
            "query": "what is 3 and 4?",
            "finish_type": "give_answer",
            "final_answer": "It is 7.",
            "total_tokens": 100,
            "function": [{"name": "sum"}, {"name": "Finish"}],
        },
        **fields,
    }


def tooleval() -> dict[str, Any]:
    called = str({"name": "sum", "arguments": "{}", "response": '{"error": "no key", "response": ""}'})
    final = '{"return_type": "give_answer", "final_answer": "7"}'
    details = {
        "role": "system",
        "message": "",
        "next": [
            {
                "role": "user",
                "message": "what is 3 and 4?",
                "next": [
                    {
                        "role": "tool",
                        "message": called,
                        "next": [
                            {"role": "tool", "message": str({"name": "Finish", "arguments": final, "response": ""})}
                        ],
                    }
                ],
            }
        ],
    }
    reply = {"method": "m-1_CoT@1", "total_steps": 3, "final_answer": final, "answer_details": [details]}
    return {
        "11": {"query": "what is 3 and 4?", "available_tools": [{"name": "sum"}], "answer": reply},
        "12": {"query": "q", "available_tools": [], "answer": {**reply, "final_answer": ""}},
    }


def run(**fields: Any) -> dict[str, Any]:
    history = [
        {"role": "user", "content": "Use GET, POST or FINISH. How old?"},
        {"role": "agent", "content": "GET http://fhir.example/Patient?id=1"},
        {"role": "user", "content": "Error in sending the GET request: 400"},
        {"role": "agent", "content": "GET http://fhir.example/Patient/1"},
        {"role": "user", "content": "Here is the response: 40"},
        {"role": "agent", "content": "FINISH([40])"},
    ]
    return {
        "index": 5,
        "error": None,
        "info": None,
        "output": {"index": 5, "status": "completed", "result": "[40]", "history": history},
        "time": {"timestamp": 1767607200000, "str": "2026-01-05 10:00:00"},
        "scored_status": "completedCorrect",
        **fields,
    }


def failure() -> dict[str, Any]:
    output = {"index": None, "status": "running", "result": None, "history": None}
    found = run(index=6, error="AGENT_FAILED", info="Failed.", output=output)
    del found["scored_status"]
    return found


def mistake(**fields: Any) -> dict[str, Any]:
    return {
        "is_correct": False,
        "question": "How many rows?",
        "question_ID": "q-1",
        "level": "2",
        "ground_truth": "GOLD-TRUTH",
        "history": [
            {"role": "assistant", "name": "Expert", "content": "Run this:\n```python\nprint(1)\n```"},
            {"role": "user", "name": "Computer_terminal", "content": "exitcode: 1 (execution failed)\nCode output: x"},
            {"role": "user", "name": "Computer_terminal", "content": "There is no code from the last 1 message"},
            {"role": "assistant", "name": "Expert", "content": "Four. TERMINATE"},
        ],
        "mistake_agent": "GOLD-AGENT",
        "mistake_step": "0",
        "mistake_reason": "GOLD-REASON",
        **fields,
    }


def chat_row(**fields: Any) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "k1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "k1", "content": "sun"},
            {"role": "assistant", "content": "Sun."},
        ],
        "tools": [{"type": "function", "function": {"name": "weather"}}],
        **fields,
    }  # fmt: skip


def claude_row(**fields: Any) -> dict[str, Any]:
    return {
        "model": "claude",
        "system": "Be kind.",
        "messages": [
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "k1", "name": "weather", "input": {"at": "x"}}],
             "usage": {"input_tokens": 4, "output_tokens": 2, "cache_read_input_tokens": 8}},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "k1", "content": [{"type": "text", "text": "no"}], "is_error": True},
                {"type": "text", "text": "and now?"}]},
            {"role": "assistant", "content": "Rain."},
        ],
        **fields,
    }  # fmt: skip


def response(response_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": response_id,
        "object": "response",
        "created_at": 1767607200,
        "model": "m",
        "status": "completed",
        "input": "weather?",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "k1", "name": "weather", "arguments": "{}"},
        ],
        "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3},
        **fields,
    }


STREAM: list[dict[str, Any]] = [
    {"role": "user", "content": "weather?"},
    {
        "type": "message_start",
        "message": {"id": "m", "model": "claude", "usage": {"input_tokens": 4, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "k", "name": "w", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"at":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"x"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 6}},
    {"type": "message_stop"},
]


def event(kind: str, second: int, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"sevt_{kind}_{second}", "processed_at": T.format(second), **fields}


EVENTS: list[dict[str, Any]] = [
    event("session.status_running", 0, session_thread_id="main"),
    event("user.message", 1, content=[{"type": "text", "text": "what day?"}]),
    event("span.model_request_start", 1),
    event("agent.tool_use", 2, name="bash", input={"command": "date"}),
    event(
        "span.model_request_end", 2, model_usage={"input_tokens": 2, "output_tokens": 5, "cache_read_input_tokens": 7}
    ),
    event("user.tool_confirmation", 3, tool_use_id="sevt_agent.tool_use_2", result="deny", deny_message="ask me first"),
    event("agent.tool_result", 4, tool_use_id="sevt_agent.tool_use_2", is_error=True, content=[]),
    event("agent.message", 5, content=[{"type": "text", "text": "May I?"}]),
    event("span.model_request_end", 5, model_usage={"input_tokens": 3, "output_tokens": 1}),
    event("session.error", 6, error={"type": "overloaded", "message": "busy"}),
    event("session.status_idle", 7, stop_reason={"type": "retries_exhausted"}),
]


def recorded() -> list[Any]:
    agent = {"name": "Helper", "version": 4, "model": {"id": "claude"}, "system": "Help."}
    return [
        ["client.beta.sessions.create", {"id": "sesn_1", "agent": agent, "created_at": T.format(0)}],
        ["client.beta.sessions.events.send", ["sesn_1", {"events": [EVENTS[1]]}]],
        *[["client.beta.sessions.events.stream", one] for one in EVENTS],
    ]


def sharegpt(**fields: Any) -> dict[str, Any]:
    turns = [
        ("human", "sum 1 2"),
        ("function_call", '{"name": "sum", "arguments": {"a": 1}}'),
        ("observation", "3"),
        ("gpt", "3"),
    ]
    return {"id": "identity_0", "conversations": [{"from": a, "value": b} for a, b in turns], **fields}


def wildchat(**fields: Any) -> dict[str, Any]:
    ip = "ab12"
    return {
        "conversation_hash": "c0ffee",
        "model": "gpt-x",
        "timestamp": "2026-01-05T10:09:00",
        "conversation": [
            {
                "role": "user",
                "content": "hi",
                "hashed_ip": ip,
                "timestamp": None,
                "toxic": False,
                "language": "English",
            },
            {"role": "assistant", "content": "hello", "timestamp": "2026-01-05T10:01:00", "language": "English"},
            {"role": "user", "content": "bye", "hashed_ip": ip, "timestamp": None},
            {"role": "assistant", "content": "bye", "timestamp": "2026-01-05T10:09:00"},
        ],
        "turn": 2,
        "language": "English",
        "toxic": False,
        "redacted": False,
        "hashed_ip": ip,
        **fields,
    }


def lmsys() -> dict[str, Any]:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    return {"conversation_id": "beef", "model": "gpt-y", "conversation": said, "turn": 1, "redacted": False}


#: (source, records of one file), one entry a kind of record.
LOGS: dict[str, tuple[str, list[Any]]] = {
    "atif": ("atif", [atif()]),
    "harbor-traces": ("harbor_traces", [trace(0), trace(1)]),
    "harbor-trial": ("harbor_trials", [trial()]),
    "inspect-samples": ("inspect", [sample()]),
    "inspect-events": ("inspect", [{"events": sample()["events"]}]),
    "terminal-bench": ("terminal_bench", [tb()]),
    "mcpmark": ("mcpmark", [mcp()]),
    "toolbench": ("toolbench", [tree()]),
    "tooleval": ("toolbench", [tooleval()]),
    "agentbench": ("agentbench", [run(), failure()]),
    "whowhen": ("whowhen", [mistake()]),
    "chat-rows": ("openai_messages", [chat_row()]),
    "chat-messages": ("openai_messages", chat_row()["messages"]),
    "claude-rows": ("anthropic_messages", [claude_row()]),
    "claude-messages": ("anthropic_messages", claude_row()["messages"][1:]),
    "responses": ("openai_responses", [response("resp_1"), response("resp_2", previous_response_id="resp_1")]),
    "stream": ("anthropic_messages", STREAM[1:]),
    "events": ("anthropic_events", EVENTS),
    "sharegpt": ("sharegpt", [sharegpt()]),
    "wildchat": ("wildchat", [wildchat()]),
    "lmsys": ("lmsys_chat", [lmsys()]),
}


def read(folder: Path, *records: Any, name: str = "log.jsonl") -> Read:
    """What the records are read as, one a line."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*[json.dumps(record) for record in records]))
    return Read(path)


def read_document(folder: Path, value: Any, name: str = "log.json") -> Read:
    """What one JSON document over several lines is read as."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
    return Read(path)


def read_parquet(folder: Path, *records: dict[str, Any]) -> Read:
    """What the records are read as out of Parquet."""
    pl.DataFrame(list(records)).write_parquet(folder / "part.parquet")
    return Read(folder / "part.parquet")
