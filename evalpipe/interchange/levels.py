"""The three levels: ``root_step``, ``agent_steps`` and their ``steps``, as Coze Loop keeps them.

Belongs here: the mapping of a session to one trajectory with totals on each level. The root is the
session, the first agent is the session's agent, each sub-agent is one more; the steps of an agent
are its atomic steps: agent, model, tool and graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalpipe.interchange.values import arguments_of, has_failed, iso, known, total

_TYPES = {"agent": "model", "model": "model", "tool": "tool", "graph": "graph", "user": "agent", "system": "graph"}


def to_levels(session: Mapping[str, Any], steps: list[Mapping[str, Any]]) -> dict[str, Any]:
    """One trajectory of three levels.

    Args:
        session: Row of masked.sessions.
        steps: Rows of masked.steps of the session, in order.

    Returns:
        ``id``, ``root_step`` (input, output and totals of the whole), ``agent_steps`` (the session's
        agent, then sub-agents in order of their first step, each with its totals and its steps).
    """
    by_agent: dict[str | None, list[Mapping[str, Any]]] = {None: []}
    for step in steps:
        by_agent.setdefault(step["parent_id"], []).append(step)
    first = next((s["text"] for s in steps if s["origin"] in ("human", "queued") and s["text"]), None)
    last = next((s["text"] for s in reversed(by_agent[None]) if s["kind"] == "agent" and s["text"]), None)
    root = known({
        "id": session["session_id"],
        "name": session["agent"],
        "input": first,
        "output": last,
        "basic_info": _basic(session),
        "metrics_info": _metrics(steps, session),
        "metadata": known({
            "session_id": session["session_id"], "user_id": session["user_id"], "model": session["model"],
            "agent_version": session["agent_release"], "end_status": session["end_status_logged"],
        }),
    })  # fmt: skip
    agents = [
        known({
            "id": session["session_id"] if parent is None else parent,
            "parent_id": None if parent is None else session["session_id"],
            "name": session["agent"] if parent is None else "sub-agent",
            "basic_info": _basic(session) if parent is None else _span(own),
            "metrics_info": _metrics(own),
            "steps": [_step(step) for step in own],
        })
        for parent, own in by_agent.items()
    ]  # fmt: skip
    return {"id": session["session_id"], "root_step": root, "agent_steps": agents}


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    kind = _TYPES[step["kind"]]
    is_tool = kind == "tool"
    said = {"role": "user" if step["kind"] == "user" else "assistant", "content": step["text"]}
    model = known({
        "model_name": step["model"], "input_tokens": step["input_tokens"], "output_tokens": step["output_tokens"],
        "input_read_cached_tokens": step["cache_read_tokens"],
        "input_creation_cached_tokens": step["cache_write_tokens"],
        "reasoning_tokens": step["reasoning_tokens"], "latency_first_resp_ms": step["first_token_ms"],
    })  # fmt: skip
    return known({
        "id": step["step_id"],
        "type": kind,
        "name": step["name"] or step["origin"],
        "input": arguments_of(step["arguments"]) if is_tool else said if step["kind"] == "user" else None,
        "output": step["output"] if is_tool else said if step["kind"] != "user" else None,
        "basic_info": _span([step]),
        "model_info": model if kind == "model" and model else None,
        "metadata": known({"origin": step["origin"], "exit_code": step["exit_code"], "turn": step["turn"]}),
    })  # fmt: skip


def _basic(session: Mapping[str, Any]) -> dict[str, Any]:
    lasted = (session["ended_at"] - session["started_at"]).total_seconds() if session["is_dated"] else None
    return known({
        "started_at": iso(session["started_at"]) if session["is_dated"] else None,
        "duration_ms": None if lasted is None else round(lasted * 1000),
    })  # fmt: skip


def _span(steps: list[Mapping[str, Any]]) -> dict[str, Any]:
    starts = [step["started_at"] for step in steps if step["started_at"] is not None]
    ends = [step["ended_at"] for step in steps if step["ended_at"] is not None]
    lasted = (max(ends) - min(starts)).total_seconds() if starts and ends else None
    failed = steps[0] if len(steps) == 1 and has_failed(steps[0]) else None
    return known({
        "started_at": iso(min(starts)) if starts else None,
        "duration_ms": None if lasted is None else max(0, round(lasted * 1000)),
        "error": None if failed is None else known({"code": failed["exit_code"] or 1, "msg": failed["error"]}),
    })  # fmt: skip


def _metrics(steps: list[Mapping[str, Any]], session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Tokens, share of failed calls, time to the first token. Unknown sums are left out."""
    calls = [step for step in steps if step["kind"] == "tool" and step["name"] is not None]
    n_failed = sum(map(has_failed, calls))
    firsts = [step["first_token_ms"] for step in steps if step["first_token_ms"] is not None]
    source = steps if session is None else [session]
    return known({
        "input_tokens": total(source, "input_tokens"),
        "output_tokens": total(source, "output_tokens"),
        "input_read_cached_tokens": total(source, "cache_read_tokens"),
        "input_creation_cached_tokens": total(source, "cache_write_tokens"),
        "total_tokens": total(source, "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
        "tool_calls": len(calls),
        "tool_errors": n_failed,
        "tool_error_rate": n_failed / len(calls) if calls else None,
        "latency_first_resp_ms": min(firsts) if firsts else None,
    })  # fmt: skip
