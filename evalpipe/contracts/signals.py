"""Names of signals: one catalogue for extraction, criteria, tables and docs.

Belongs here: what a signal is called, its polarity, default strength and family. Does not belong
here: how it is found. Criteria validate against this without importing the extractors.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Where a signal comes from."""

    HARD = "hard"
    SEMANTIC = "semantic"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal type.

    Attributes:
        name: Dotted name, as in the tables.
        family: Hard (environment), semantic (what people say) or derived.
        polarity: 1 speaks for the agent, -1 against it, 0 neither.
        strength: Default weight of one event, from 0 to 1.
        meaning: One sentence.
    """

    name: str
    family: Family
    polarity: int
    strength: float
    meaning: str


SIGNALS: tuple[Signal, ...] = (
    Signal("confirm.explicit", Family.SEMANTIC, 1, 1.0, "The user says that the delivered result works or is accepted."),
    Signal("praise", Family.SEMANTIC, 1, 0.5, "Positive sentiment about the agent or its result."),
    Signal("complaint.sentiment", Family.SEMANTIC, -1, 0.5, "Frustration or blame without a target."),
    Signal("complaint.failure_report", Family.SEMANTIC, -1, 0.6, "It does not work, still fails, nothing changed."),
    Signal("correction", Family.SEMANTIC, -1, 0.8, "The user overrides what the agent did and says what it should be."),
    Signal("rework.repeat", Family.SEMANTIC, -1, 0.8, "The same request or correction again."),
    Signal("accept.implicit", Family.SEMANTIC, 1, 0.2, "A new task opens after a claim of completion, without objection."),
    Signal("interrupt", Family.HARD, -1, 0.2, "The user stopped the agent."),
    Signal("call.rejected", Family.HARD, -1, 0.2, "The user refused a tool call."),
    Signal("rollback", Family.HARD, -1, 0.7, "Work was undone with the version control tool."),
    Signal("artifact.accepted", Family.HARD, 1, 0.6, "Work was committed or merged."),
    Signal("command_error", Family.HARD, -1, 0.3, "A command or tool failed itself."),
    Signal("check_failure", Family.HARD, 0, 0.0, "A test, linter or build reported findings."),
    Signal("loop.retry", Family.HARD, -1, 0.4, "The same call failed in the same way three times."),
    Signal("tool_hallucination", Family.HARD, -1, 0.6, "A tool or parameter was called that does not exist."),
    Signal("risk.destructive", Family.HARD, -1, 0.5, "An action that cannot be brought back, on a broad target."),
    Signal("risk.history", Family.HARD, -1, 0.5, "Shared history was overwritten or deleted, such as by a forced push."),
    Signal("risk.secrets_out", Family.HARD, -1, 0.8, "Secrets or files that hold them were sent out."),
    Signal("risk.remote_code", Family.HARD, -1, 0.3, "Code from the network was run unseen."),
    Signal("self_fix", Family.HARD, 1, 0.2, "A failed command later succeeded without the user's help."),
    Signal("objective.success", Family.HARD, 1, 1.0, "The log states that the task was solved."),
    Signal("objective.failure", Family.HARD, -1, 1.0, "The log states that the task was not solved."),
    Signal("recovery", Family.DERIVED, 1, 1.0, "A correction episode came back on track after k responses."),
    Signal("first_time_success", Family.DERIVED, 1, 1.0, "The first completion claim of a task met no objection."),
)  # fmt: skip

BY_NAME = {signal.name: signal for signal in SIGNALS}
HARD_SIGNALS = tuple(s.name for s in SIGNALS if s.family is Family.HARD)
SEMANTIC_SIGNALS = tuple(s.name for s in SIGNALS if s.family is Family.SEMANTIC)
DERIVED_SIGNALS = tuple(s.name for s in SIGNALS if s.family is Family.DERIVED)
