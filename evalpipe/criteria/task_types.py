"""Rules on task types: what may be evidence of one, and what a type needs.

Belongs here: checks that need no text. Does not belong here: whether a pattern can run and does what
its examples say (``signals/task_types.py``), or what a type is (``criteria/model.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evalpipe.contracts.model import Timing
from evalpipe.contracts.tables import raw
from evalpipe.contracts.tables.signals import SESSION_FEATURES, SESSION_OUTCOMES
from evalpipe.criteria.problem import Problem

#: What is compared, or follows from it.
_VERSION = ("agent", "agent_release", "model", "source", "prompt_version", "retrieval_version")
#: Words for evidence that exists only after the agent acted, beside the columns that say so themselves.
_AFTER = (
    "tools_used", "tools_called", "calls", "commands", "output", "outputs", "answer", "response", "agent_text",
    "turns", "steps", "signals", "errors", "reward", "outcome",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Keys that are evidence; a type without any would take every session.
EVIDENCE = ("text", "tools", "scenario", "needs_workspace")
_FIX = "Use text, unless, tools, scenario and needs_workspace: what was there before the agent acted."


def refused_evidence(key: str, row: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of keys that would read what a version changes.

    Args:
        key: Dotted key of the type. row: The type as parsed.
    """
    post = {
        c.name for table in (raw.SESSIONS, SESSION_FEATURES, SESSION_OUTCOMES) for c in table if c.timing is Timing.POST
    }
    for name in row:
        if name in _VERSION:
            yield Problem(f"{key}.{name}", f"{name!r} is what is compared, or follows from it.", _FIX)
        elif name in post or name in _AFTER:
            what = f"{name!r} is post-treatment: the version changes it, so it would hide the effect."
            yield Problem(f"{key}.{name}", what, _FIX)


def task_type_rules(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of task types whose keys and types are right."""
    types = data["extraction"].get("task_types", [])
    names = [row["name"] for row in types]
    for index, row in enumerate(types):
        key, name = f"extraction.task_types[{index}]", row["name"]
        if not _NAME.fullmatch(name):
            yield Problem(f"{key}.name", "The value is not a plain name.", "Use letters, digits, '_', '.' and '-'.")
        if name in names[:index]:
            yield Problem(f"{key}.name", f"{name!r} stands twice.", "Give each task type its own name.")
        if not any(row.get(part) for part in EVIDENCE):
            yield Problem(key, "The type names no evidence, so every session would be of it.", _FIX)
        if row.get("unless") and not row.get("text"):
            yield Problem(f"{key}.unless", "'unless' stands without 'text'.", "Add what the message must hold.")
        if row.get("text") and not row.get("examples"):
            fix = "Write first messages of this type; they are tried each time the file is read."
            yield Problem(f"{key}.examples", "A pattern without an example cannot be checked.", fix)
        if (row.get("examples") or row.get("counterexamples")) and not row.get("text"):
            yield Problem(f"{key}.text", "There are examples and no pattern that they test.", "Add text, or drop them.")
    estimand = data["estimand"]
    for part in ("strata", "slices"):
        if "task_type" in estimand[part] and not types:
            fix = "Declare them with [[extraction.task_types]], or take the column out."
            yield Problem(f"estimand.{part}", "'task_type' is named and no task type is declared.", fix)
