"""Small logs of coding agents in the real shapes, and which reader each belongs to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evalpipe_tests.sources.helpers import lines

SID = "0a1b2c3d-1111-2222-3333-444455556666"


def clock(second: int, day: str = "2026-01-05") -> str:
    return f"{day}T10:{second // 60:02d}:{second % 60:02d}.000Z"


def millis(second: int) -> int:
    return 1_767_607_200_000 + 1000 * second


# --- Gemini CLI -------------------------------------------------------------------------------------------------------


def gemini_message(number: int, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": f"m{number}", "timestamp": clock(number), "type": kind, "content": content, **fields}


def gemini_call(call_id: str, response: Any, status: str = "success", **fields: Any) -> dict[str, Any]:
    result = [{"functionResponse": {"id": call_id, "name": "run_shell_command", "response": response}}]
    return {
        "id": call_id, "name": "run_shell_command", "args": {"command": "make"}, "result": result, "status": status,
        "timestamp": clock(30), "displayName": "Shell", **fields,
    }  # fmt: skip


GEMINI_TOKENS = {"input": 100, "output": 7, "cached": 60, "thoughts": 5, "tool": 3, "total": 115}
GEMINI_MESSAGES = [
    gemini_message(1, "user", "build it"),
    gemini_message(
        2, "gemini", "On it.", model="gemini-x", tokens=GEMINI_TOKENS, thoughts=[{"subject": "s", "description": "d"}],
        toolCalls=[gemini_call("c1", {"output": "Command: make\nOutput: no rule\nExit Code: 2"})],
    ),
    gemini_message(3, "info", "Update available"),
    gemini_message(4, "user", [{"text": "again"}]),
    gemini_message(5, "gemini", "", model="gemini-y", toolCalls=[gemini_call("c2", {"error": "no such file"}, "error")]),
]  # fmt: skip
GEMINI_HEAD = {"sessionId": SID, "projectHash": "ab12", "startTime": clock(0), "lastUpdated": clock(90)}
GEMINI = {**GEMINI_HEAD, "messages": GEMINI_MESSAGES}
GEMINI_LINES = [
    GEMINI_HEAD,
    GEMINI_MESSAGES[0],
    {**GEMINI_MESSAGES[1], "toolCalls": [], "tokens": None},
    GEMINI_MESSAGES[1],
    {"$set": {"lastUpdated": clock(80)}},
    *GEMINI_MESSAGES[2:],
]
HISTORY = [
    {"role": "user", "parts": [{"text": "<session_context>\nToday is some day.\n</session_context>"}]},
    {"role": "user", "parts": [{"text": "fix the build"}]},
    {
        "role": "model",
        "parts": [
            {"text": "Looking."},
            {"functionCall": {"name": "glob", "args": {"pattern": "*.c"}}},
            {"functionCall": {"name": "glob", "args": {"pattern": "*.h"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "glob_1", "name": "glob", "response": {"output": "a.c"}}},
            {"functionResponse": {"id": "glob_2", "name": "glob", "response": {"error": "denied"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "Done."}]},
]

# --- OpenCode ---------------------------------------------------------------------------------------------------------

ROOT, CHILD = "ses_root1", "ses_child1"
OC_TOKENS = {"total": 42, "input": 20, "output": 7, "reasoning": 5, "cache": {"read": 8, "write": 2}}


def hook(kind: str, **properties: Any) -> list[Any]:
    return ["event", {"event": {"type": kind, "properties": properties}}]


def oc_session(session_id: str = ROOT, parent: str | None = None) -> dict[str, Any]:
    info = {
        "id": session_id, "version": "1.2.3", "directory": "/home/ana/shop", "title": "t",
        "time": {"created": millis(0), "updated": millis(9)},
    }  # fmt: skip
    return info if parent is None else {**info, "parentID": parent}


def oc_user(key: str, second: int, session_id: str = ROOT) -> dict[str, Any]:
    return {"id": key, "role": "user", "sessionID": session_id, "time": {"created": millis(second)}, "agent": "build"}


def oc_agent(key: str, second: int, session_id: str = ROOT, **fields: Any) -> dict[str, Any]:
    return {
        "id": key, "role": "assistant", "sessionID": session_id, "modelID": "model-a", "providerID": "p",
        "time": {"created": millis(second), "completed": millis(second + 1)}, "cost": 0.25, "tokens": OC_TOKENS, **fields,
    }  # fmt: skip


def oc_part(key: str, message: str, kind: str, session_id: str = ROOT, **fields: Any) -> dict[str, Any]:
    return {"id": key, "messageID": message, "sessionID": session_id, "type": kind, **fields}


def oc_tool(key: str, message: str, session_id: str = ROOT, tool: str = "bash", **state: Any) -> dict[str, Any]:
    state = {
        "status": "completed",
        "input": {"command": "make"},
        "time": {"start": millis(4), "end": millis(5)},
        **state,
    }
    return oc_part(key, message, "tool", session_id, tool=tool, callID=f"call_{key}", state=state)


OC_FINISH = {"tokens": OC_TOKENS, "cost": 0.25, "reason": "stop"}
OPENCODE_LINES: list[Any] = [
    hook("session.created", sessionID=ROOT, info=oc_session()),
    ["tool.definition", {"toolID": "bash"}, {"description": "runs"}],
    ["chat.message", {"sessionID": ROOT}, {
        "message": oc_user("m1", 1), "parts": [oc_part("p1", "m1", "text", text="build it")],
    }],
    hook("message.updated", sessionID=ROOT, info=oc_user("m1", 1)),
    hook("message.part.updated", sessionID=ROOT, part=oc_part("p1", "m1", "text", text="build it")),
    hook("message.updated", sessionID=ROOT, info=oc_agent("m2", 2, cost=0, tokens={"input": 0, "output": 0})),
    hook("message.part.updated", part=oc_part("p2", "m2", "text", text="")),
    hook("message.part.updated", part=oc_part("p2", "m2", "text", text="On it.")),
    hook("message.part.updated", part=oc_tool("p3", "m2", tool="task", status="pending", input={})),
    hook("session.created", sessionID=CHILD, info=oc_session(CHILD, ROOT)),
    hook("message.updated", info=oc_user("k1", 3, CHILD)),
    hook("message.part.updated", part=oc_part("k2", "k1", "text", CHILD, text="look around")),
    hook("message.updated", info=oc_agent("k3", 3, CHILD, modelID="model-b")),
    hook("message.part.updated", part=oc_tool("k4", "k3", CHILD, output="x", metadata={"exit": 2})),
    hook("message.part.updated", part=oc_tool("p3", "m2", tool="task", output="seen", metadata={"sessionId": CHILD})),
    hook("message.part.updated", part=oc_part("p4", "m2", "step-finish", **OC_FINISH)),
    hook("message.updated", info=oc_agent("m2", 2)),
    hook("session.idle", sessionID=ROOT),
]  # fmt: skip
OPENCODE = {
    "info": oc_session(),
    "messages": [
        {"info": oc_user("m1", 1), "parts": [oc_part("p1", "m1", "text", text="build it")]},
        {
            "info": oc_agent("m2", 2),
            "parts": [
                oc_part("p2", "m2", "text", text="On it."),
                oc_tool("p3", "m2", status="error", error="The user rejected permission to use this tool."),
                oc_part("p4", "m2", "step-finish", **OC_FINISH),
                oc_part("p5", "m2", "retry", error={"data": {"message": "busy"}}, time={"created": millis(3)}),
            ],
        },
        {
            "info": oc_agent("m3", 6, error={"name": "APIError", "data": {"message": "overloaded"}}),
            "parts": [],
        },
    ],
}

# --- pi ---------------------------------------------------------------------------------------------------------------

PI_USAGE = {"input": 3, "output": 9, "cacheRead": 50, "cacheWrite": 4, "totalTokens": 66, "cost": {"total": 0.5}}


def pi_entry(number: int, kind: str = "message", **fields: Any) -> dict[str, Any]:
    parent = f"e{number - 1}" if number > 1 else None
    return {"type": kind, "id": f"e{number}", "parentId": parent, "timestamp": clock(number), **fields}


def pi_user(number: int, text: str) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": millis(number)}
    return pi_entry(number, message=message)


def pi_agent(number: int, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {
        "role": "assistant", "content": list(blocks), "api": "a", "provider": "p", "model": "model-a",
        "usage": PI_USAGE, "stopReason": "stop", "timestamp": millis(number), **fields,
    }  # fmt: skip
    return pi_entry(number, message=message)


def pi_call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": "bash", "arguments": arguments}


def pi_result(number: int, call_id: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": content, "isError": is_error}
    return pi_entry(number, message=message)


PI_HEAD = {"type": "session", "version": 3, "id": SID, "timestamp": clock(0), "cwd": "/home/ana/shop"}
PI = [
    PI_HEAD,
    {"type": "model_change", "id": "x", "timestamp": clock(0), "provider": "p", "modelId": "model-a"},
    pi_user(1, "build it"),
    pi_agent(2, {"type": "text", "text": "On it."}, pi_call("t1", command="make"), stopReason="toolUse"),
    pi_result(3, "t1", "no rule\n\nCommand exited with code 2", is_error=True),
    pi_agent(4, {"type": "thinking", "thinking": "hm"}, pi_call("t2"), stopReason="aborted", errorMessage="aborted"),
    pi_user(5, "try again"),
    pi_agent(6, {"type": "text", "text": "Done."}),
]

# --- SpecStory --------------------------------------------------------------------------------------------------------


def specstory(session_id: str = SID, agent: str = "Claude Code", body: str = "") -> str:
    return (
        "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026-01-05 10:00:00Z\n\n"
        f"<!-- {agent} Session {session_id} (2026-01-05 10:00:00Z) -->\n\n{body or SPECSTORY_BODY}"
    )


SPECSTORY_BODY = """_**User (2026-01-05 10:00:00Z)**_

build it

---

_**Agent (model-a 2026-01-05 10:00:05Z)**_

<think><details><summary>Thought Process</summary>
I should run make.
</details></think>

_**Agent (model-a 2026-01-05 10:00:06Z)**_

On it.

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>
Build everything

`make all`

```text
Exit code 2
no rule
```
</details></tool-use>

---

_**User (2026-01-05 10:01:00Z)**_

thanks
"""

# --- OpenHands --------------------------------------------------------------------------------------------------------


def oh_time(second: int) -> str:
    return f"2026-01-05T10:00:{second:02d}.123456"


def oh_action(number: int, action: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    args = fields.pop("args", {})
    return {
        "id": number, "timestamp": oh_time(number), "source": source, "message": action, "action": action, "args": args,
        **fields,
    }  # fmt: skip


def oh_seen(number: int, observation: str, cause: int | None, content: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "id": number, "timestamp": oh_time(number), "source": "agent", "message": "m", "cause": cause,
        "observation": observation, "content": content, "extras": fields.pop("extras", {}), **fields,
    }  # fmt: skip


def oh_call(call_id: str, response: str = "r1", name: str = "execute_bash") -> dict[str, Any]:
    usage = {
        "prompt_tokens": 100, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }  # fmt: skip
    return {
        "tool_call_id": call_id, "function_name": name,
        "model_response": {"id": response, "model": "model-a", "usage": usage},
    }  # fmt: skip


OPENHANDS = [
    oh_action(0, "system", args={"content": "You help.", "tools": [{"function": {"name": "execute_bash"}}]}),
    oh_action(1, "message", "user", args={"content": "build it"}),
    oh_action(2, "recall", "user", args={"query": "build"}),
    oh_action(
        3, "run", args={"command": "make", "thought": "Let me build."}, tool_call_metadata=oh_call("t1"),
        llm_metrics={"accumulated_cost": 0.25},
    ),
    oh_action(4, "read", args={"path": "/a"}, tool_call_metadata=oh_call("t2", name="str_replace_editor")),
    oh_seen(5, "run", 3, "no rule", extras={"metadata": {"exit_code": 2}}, success=False),
    oh_seen(6, "read", 4, "text of a"),
    oh_seen(7, "agent_state_changed", None, extras={"agent_state": "running"}),
    oh_action(8, "finish", args={"final_thought": "Built."}, llm_metrics={"accumulated_cost": 0.75}),
]  # fmt: skip
OPENHANDS_EVALUATED = {
    "instance_id": "repo__task-1",
    "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "model-z"}, "dataset": "bench"},
    "history": OPENHANDS,
    "metrics": {"accumulated_cost": 0.9},
    "error": None,
    "test_result": {"report": {"resolved": True}},
}


def sdk(number: int, kind: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    return {"id": f"v{number}", "kind": kind, "source": source, "timestamp": oh_time(number), **fields}


def sdk_say(number: int, source: str, text: str, **fields: Any) -> dict[str, Any]:
    role = "user" if source == "user" else "assistant"
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return sdk(number, "MessageEvent", source, llm_message=message, **fields)


def sdk_call(number: int, call_id: str, name: str = "terminal", response: str = "r1", **action: Any) -> dict[str, Any]:
    action = action or {"command": "make"}
    return sdk(
        number, "ActionEvent", thought=[{"type": "text", "text": "Let me."}], action={"kind": "TerminalAction", **action},
        tool_name=name, tool_call_id=call_id, llm_response_id=response,
        tool_call={"id": call_id, "name": name, "arguments": json.dumps(action), "origin": "completion"},
    )  # fmt: skip


def sdk_result(number: int, call_id: str, text: str = "", **observation: Any) -> dict[str, Any]:
    seen = {"kind": "TerminalObservation", "content": [{"type": "text", "text": text}], **observation}
    return sdk(
        number, "ObservationEvent", "environment", observation=seen, tool_name="terminal", tool_call_id=call_id,
        action_id="a",
    )  # fmt: skip


SDK_STATE = {
    "agent": {"llm": {"model": "p/model-a"}},
    "execution_status": "running",
    "stats": {
        "usage_to_metrics": {
            "agent": {
                "accumulated_cost": 0.5,
                "accumulated_token_usage": {
                    "prompt_tokens": 100, "completion_tokens": 9, "cache_read_tokens": 60, "cache_write_tokens": 10,
                    "reasoning_tokens": 4,
                },
            },
            "condenser": {"accumulated_cost": 0.25, "accumulated_token_usage": {"prompt_tokens": 7, "completion_tokens": 1}},
        }
    },
}  # fmt: skip
OPENHANDS_SDK = [
    sdk(0, "SystemPromptEvent", system_prompt={"type": "text", "text": "You help."}, tools=[{"title": "terminal"}]),
    sdk(1, "ConversationStateUpdateEvent", "environment", key="full_state", value=SDK_STATE),
    sdk_say(2, "user", "build it"),
    sdk_call(3, "t1"),
    sdk_call(4, "t2"),
    sdk_result(5, "t1", "no rule", exit_code=2, is_error=False),
    sdk_result(6, "t2", "ok", metadata={"exit_code": 0}, is_error=False),
    sdk(7, "TokenEvent"),
    sdk_call(8, "t3", "finish", "r2", message="Built."),
    {**sdk_result(9, "t3", "Built."), "tool_name": "finish"},
]

# --- SWE-agent and mini-SWE-agent -------------------------------------------------------------------------------------


def swe_step(action: str, observation: str, thought: str = "Hm.") -> dict[str, Any]:
    return {
        "action": action,
        "observation": observation,
        "response": f"{thought}\n{action}",
        "state": "{}",
        "thought": thought,
    }


SWE = {
    "environment": "swe_main",
    "trajectory": [swe_step("open a.py", "text of a"), swe_step("", "no command"), swe_step("submit\n", "diff")],
    "history": [
        {"role": "system", "content": "You are a programmer.", "agent": "primary"},
        {"role": "user", "content": "An example", "agent": "primary", "is_demo": True},
        {"role": "assistant", "content": "ls", "action": "ls", "agent": "primary", "is_demo": True},
        {"role": "user", "content": "fix the issue", "agent": "primary"},
        {"role": "assistant", "content": "Hm.", "thought": "Hm.", "action": "open a.py", "agent": "primary"},
        {"role": "user", "content": "text of a", "agent": "primary"},
    ],
    "info": {
        "exit_status": "submitted",
        "submission": "diff",
        "model_stats": {"instance_cost": 0.5, "tokens_sent": 900, "tokens_received": 80, "api_calls": 3},
    },
}


def mini_agent(number: int, command: str, text: str = "Next.") -> dict[str, Any]:
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": command})},
    }
    response = {
        "id": f"resp{number}", "model": "model-a",
        "usage": {"prompt_tokens": 50, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 20}},
    }  # fmt: skip
    extra = {
        "actions": [{"command": command, "tool_call_id": f"c{number}"}], "response": response, "cost": 0.1,
        "timestamp": millis(number) / 1000,
    }  # fmt: skip
    return {"role": "assistant", "content": text, "tool_calls": [call], "extra": extra}


def mini_result(number: int, code: int, output: str, **extra: Any) -> dict[str, Any]:
    return {
        "role": "tool", "tool_call_id": f"c{number}",
        "content": f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>",
        "extra": {"returncode": code, "raw_output": output, "timestamp": millis(number) / 1000 + 0.5, **extra},
    }  # fmt: skip


SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch"
MINI = {
    "instance_id": "repo__task-1",
    "resolved": True,
    "trajectory_format": "mini-swe-agent-1.1",
    "info": {
        "exit_status": "Submitted", "submission": "diff", "mini_version": "2.0.0",
        "model_stats": {"instance_cost": 0.5, "api_calls": 2}, "config": {"model": {"model_name": "p/model-a"}},
    },
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "fix the issue"},
        mini_agent(1, "make"),
        mini_result(1, 2, "no rule"),
        mini_agent(2, SUBMIT),
        {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
    ],
}  # fmt: skip
MINI_TEXT = [
    {"role": "system", "content": "Answer with a ```mswea_bash_command block."},
    {"role": "user", "content": "fix the issue"},
    {"role": "assistant", "content": "Look.\n\n```mswea_bash_command\nls -la\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
    {"role": "assistant", "content": "Two.\n```mswea_bash_command\na\n```\n```mswea_bash_command\nb\n```"},
    {"role": "user", "content": "Please give exactly one action."},
    {"role": "assistant", "content": f"Done.\n```mswea_bash_command\n{SUBMIT}\n```"},
    {"role": "user", "content": "diff --git a b"},
]


@dataclass(frozen=True)
class Log:
    """One file of one format: its reader, its records, and how they lie in the file."""

    source: str
    shape: str
    records: list[Any]

    @property
    def data(self) -> bytes:
        return written(self.records, self.shape)


def written(records: list[Any], shape: str) -> bytes:
    if shape == "text":
        return "".join(records).encode()
    if shape == "items":
        return json.dumps(records).encode()
    if shape == "whole":
        return json.dumps(records[0], indent=1).encode()
    return lines(*[json.dumps(record) for record in records])


LOGS = {
    "gemini_document": Log("gemini_cli", "whole", [GEMINI]),
    "gemini_document_a_line": Log("gemini_cli", "lines", [GEMINI]),
    "gemini_documents": Log("gemini_cli", "items", [GEMINI]),
    "gemini_lines": Log("gemini_cli", "lines", GEMINI_LINES),
    "gemini_history": Log("gemini_history", "items", HISTORY),
    "gemini_history_lines": Log("gemini_history", "lines", HISTORY),
    "gemini_checkpoint": Log("gemini_history", "whole", [{"history": HISTORY, "authType": "x"}]),
    "opencode_hooks": Log("opencode", "lines", OPENCODE_LINES),
    "opencode_events": Log("opencode", "lines", [r[1]["event"] for r in OPENCODE_LINES if r[0] == "event"]),
    "opencode_export": Log("opencode", "whole", [OPENCODE]),
    "opencode_export_a_line": Log("opencode", "lines", [OPENCODE]),
    "opencode_exports": Log("opencode", "items", [OPENCODE]),
    "pi": Log("pi_agent", "lines", PI),
    "specstory": Log("specstory", "text", [specstory()]),
    "openhands_array": Log("openhands", "items", OPENHANDS),
    "openhands_lines": Log("openhands", "lines", OPENHANDS),
    "openhands_evaluated": Log("openhands", "lines", [OPENHANDS_EVALUATED]),
    "openhands_sdk": Log("openhands", "lines", OPENHANDS_SDK),
    "openhands_sdk_array": Log("openhands", "items", OPENHANDS_SDK),
    "openhands_sdk_evaluated": Log("openhands", "lines", [{**OPENHANDS_EVALUATED, "history": OPENHANDS_SDK}]),
    "openhands_trajectory": Log("openhands", "whole", [{"trajectory": OPENHANDS}]),
    "swe": Log("swe_agent", "whole", [SWE]),
    "swe_a_line": Log("swe_agent", "lines", [SWE]),
    "swe_history_only": Log("swe_agent", "whole", [{"history": SWE["history"]}]),
    "mini": Log("mini_swe_agent", "whole", [MINI]),
    "mini_a_line": Log("mini_swe_agent", "lines", [MINI]),
    "mini_list": Log("mini_swe_agent", "items", MINI_TEXT),
}
