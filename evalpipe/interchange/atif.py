"""ATIF, the Agent Trajectory Interchange Format (Harbor), version 1.5.

Belongs here: the mapping of a session to one trajectory. Prompt tokens of ATIF include cached ones.
What ATIF has no field for (origins, errors, exit codes) stands under ``extra``, so that nothing that
an analysis needs is lost on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalpipe.interchange.values import arguments_of, iso, known, total

SCHEMA_VERSION = "ATIF-v1.5"
_FACTS = (
    "source", "user_id", "end_status_logged", "task_id", "trial", "objective_reward", "is_objective_success",
)  # fmt: skip
_SOURCES = {"user": "user", "system": "system"}


def to_atif(session: Mapping[str, Any], steps: list[Mapping[str, Any]]) -> dict[str, Any]:
    """One trajectory.

    Args:
        session: Row of masked.sessions.
        steps: Rows of masked.steps of the session, in order.

    Returns:
        The document. A response and the calls after it are one ATIF step; calls that no response
        precedes have one of their own, with an empty message.
    """
    out: list[dict[str, Any]] = []
    for step in steps:
        if step["kind"] == "tool":
            if not out or out[-1]["source"] != "agent" or out[-1].get("_parent") != step["parent_id"]:
                out.append({"source": "agent", "message": "", "_parent": step["parent_id"], **_when(step)})
            _add_call(out[-1], step)
        else:
            out.append(_message(step))
    for number, item in enumerate(out, 1):
        item.pop("_parent", None)
        out[number - 1] = {"step_id": number, **item}
    agent = known({
        "name": session["agent"], "version": session["agent_release"] or "unknown", "model_name": session["model"],
    })  # fmt: skip
    metrics = known({
        "total_prompt_tokens": total([session], "input_tokens", "cache_read_tokens", "cache_write_tokens"),
        "total_completion_tokens": session["output_tokens"],
        "total_cached_tokens": session["cache_read_tokens"],
        "total_cost_usd": session["logged_cost_usd"],
        "total_steps": len(out),
    })  # fmt: skip
    extra = known({name: session[name] for name in _FACTS})
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": session["session_id"],
        "agent": agent,
        "steps": out,
        "final_metrics": metrics,
        "extra": extra,
    }


def _when(step: Mapping[str, Any]) -> dict[str, Any]:
    return known({"timestamp": iso(step["started_at"])})


def _message(step: Mapping[str, Any]) -> dict[str, Any]:
    source = _SOURCES.get(step["kind"], "agent")
    item: dict[str, Any] = {
        "source": source,
        "message": step["text"] or "",
        "_parent": step["parent_id"],
        **_when(step),
    }
    extra = known({"origin": None if step["origin"] in ("human", "agent", "system") else step["origin"],
                   "parent_step_id": step["parent_id"], "error": step["error"]})  # fmt: skip
    if extra:
        item["extra"] = extra
    if source == "agent":
        item |= known({"model_name": step["model"]})
        metrics = known({
            "prompt_tokens": total([step], "input_tokens", "cache_read_tokens", "cache_write_tokens"),
            "completion_tokens": step["output_tokens"],
            "cached_tokens": step["cache_read_tokens"],
        })  # fmt: skip
        if metrics:
            item["metrics"] = metrics
    return item


def _add_call(item: dict[str, Any], step: Mapping[str, Any]) -> None:
    if step["name"] is not None:
        call = {
            "tool_call_id": step["step_id"],
            "function_name": step["name"],
            "arguments": arguments_of(step["arguments"]),
        }
        item.setdefault("tool_calls", []).append(call)
    result = known({
        "source_call_id": step["step_id"] if step["name"] is not None else None,
        "content": step["output"] if step["output"] is not None else step["text"],
    })  # fmt: skip
    told = known({name: step[name] for name in ("exit_code", "is_error", "error")})
    if told:
        result["extra"] = told
    if len(result) > 1 or "content" in result:
        item.setdefault("observation", {"results": []})["results"].append(result)
