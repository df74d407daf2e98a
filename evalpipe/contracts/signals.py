"""The catalogue of signals: one declaration for extraction, criteria, tables and docs.

Belongs here: what a signal is called, its polarity, default weight, family, kind of source and the
columns that hold its evidence. Does not belong here: how it is found. Criteria validate against this
without importing the extractors, and ``docs/signal-catalogue.md`` is written from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Where a signal comes from."""

    HARD = "hard"
    SEMANTIC = "semantic"
    DERIVED = "derived"


FAMILIES = tuple(family.value for family in Family)


class Origin(StrEnum):
    """Whose doing a signal reads."""

    WORDS = "words"
    ACTION = "user action"
    TOOL = "tool"
    LOG = "log"
    STRUCTURE = "structure"


#: What each kind of source is, for the documentation.
ORIGIN_MEANINGS: dict[Origin, str] = {
    Origin.WORDS: "what a person typed",
    Origin.ACTION: "what a person did: a rating, a refusal, an undo",
    Origin.TOOL: "what a tool or command gave back",
    Origin.LOG: "what the log states itself",
    Origin.STRUCTURE: "the order of turns, calls and other signals",
}


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal type.

    Attributes:
        name: Dotted name, as in the tables.
        family: Hard (environment), semantic (what people say) or derived: the table that its rows are in.
        polarity: 1 speaks for the agent, -1 against it, 0 neither.
        strength: Default weight of one event, from 0 to 1.
        origin: Whose doing it reads.
        evidence: Columns of its table that hold what it rests on, beside session, turn and step.
        meaning: One sentence.
        is_candidate: Whether it waits in ``signals.candidates`` until people have reviewed it.
    """

    name: str
    family: Family
    polarity: int
    strength: float
    origin: Origin
    evidence: tuple[str, ...]
    meaning: str
    is_candidate: bool = False


_SAID = ("snippet", "span_start", "span_end", "pattern_id")
_SEEN = ("snippet", "field", "rule_id")
_FAILED = ("tool", "exit_code", "exit_scope", "category", "layer", "target_key", *_SEEN)
_HARD, _SEMANTIC, _DERIVED = Family.HARD, Family.SEMANTIC, Family.DERIVED
_WORDS, _ACTION, _TOOL, _LOG, _STRUCTURE = Origin

SIGNALS: tuple[Signal, ...] = (
    Signal("confirm.explicit", _SEMANTIC, 1, 1.0, _WORDS, (*_SAID, "task_id"), "The user says that the delivered result works or is accepted."),
    Signal("praise", _SEMANTIC, 1, 0.5, _WORDS, _SAID, "Positive sentiment about the agent or its result."),
    Signal("complaint.sentiment", _SEMANTIC, -1, 0.5, _WORDS, _SAID, "Frustration or blame without a target."),
    Signal("complaint.failure_report", _SEMANTIC, -1, 0.6, _WORDS, (*_SAID, "target"), "It does not work, still fails, nothing changed."),
    Signal("correction", _SEMANTIC, -1, 0.8, _WORDS, (*_SAID, "target", "old_value", "new_value", "agent_seq", "prev_turn_seq"), "The user overrides what the agent did and says what it should be."),
    Signal("rework.repeat", _SEMANTIC, -1, 0.8, _STRUCTURE, (*_SAID, "prev_turn_seq"), "The same request or correction again."),
    Signal("urging", _SEMANTIC, 0, 0.0, _WORDS, _SAID, "The user wants it sooner, and says nothing of how good it is."),
    Signal("accept.implicit", _SEMANTIC, 1, 0.2, _STRUCTURE, (*_SAID, "prev_turn_seq", "task_id"), "A new task opens after a claim of completion, without objection.", is_candidate=True),
    Signal("explicit_feedback.positive", _HARD, 1, 1.0, _ACTION, _SEEN, "The user rated the answer well: thumbs up, stars, a score."),
    Signal("explicit_feedback.negative", _HARD, -1, 1.0, _ACTION, _SEEN, "The user rated the answer badly."),
    Signal("call.approved", _HARD, 1, 0.1, _ACTION, ("tool", "target_key", *_SEEN), "The user allowed a tool call that waited for it."),
    Signal("call.rejected", _HARD, -1, 0.2, _ACTION, ("tool", "target_key", *_SEEN), "The user refused a tool call."),
    Signal("edit.changed", _HARD, -1, 0.0, _ACTION, ("tool", "target_key", *_SEEN), "The user changed an edit of the agent before it was written."),
    Signal("interrupt", _HARD, -1, 0.2, _ACTION, ("tool", *_SEEN), "The user stopped the agent."),
    Signal("rollback", _HARD, -1, 0.7, _ACTION, ("tool", "target_key", *_SEEN), "Work was undone: with the version control tool, a checkpoint, or an undo command."),
    Signal("artifact.accepted", _HARD, 1, 0.6, _TOOL, ("tool", "target_key", *_SEEN), "Work was committed or merged."),
    Signal("command_error", _HARD, -1, 0.3, _TOOL, ("is_hidden", *_FAILED), "A command or tool failed itself."),
    Signal("check_failure", _HARD, 0, 0.0, _TOOL, ("is_hidden", *_FAILED), "A test, linter or build reported findings."),
    Signal("loop.retry", _HARD, -1, 0.4, _STRUCTURE, _FAILED, "The same call failed in the same way three times, with nothing changed between."),
    Signal("tool_hallucination", _HARD, -1, 0.6, _TOOL, _FAILED, "A tool or parameter was called that does not exist."),
    Signal("risk.destructive", _HARD, -1, 0.5, _TOOL, ("tool", "exit_code", "target_key", *_SEEN), "An action that cannot be brought back, on a broad target."),
    Signal("risk.history", _HARD, -1, 0.5, _TOOL, ("tool", "exit_code", "target_key", *_SEEN), "Shared history was overwritten or deleted, such as by a forced push."),
    Signal("risk.secrets_out", _HARD, -1, 0.8, _TOOL, ("tool", "exit_code", "target_key", *_SEEN), "Secrets or files that hold them were sent out."),
    Signal("risk.remote_code", _HARD, -1, 0.3, _TOOL, ("tool", "exit_code", "target_key", *_SEEN), "Code from the network was run unseen."),
    Signal("self_fix", _HARD, 1, 0.2, _STRUCTURE, ("tool", "target_key", "rule_id"), "A failed command later succeeded without the user's help."),
    Signal("objective.success", _HARD, 1, 1.0, _LOG, ("rule_id",), "The log states that the task was solved."),
    Signal("objective.failure", _HARD, -1, 1.0, _LOG, ("rule_id",), "The log states that the task was not solved."),
    Signal("recovery", _DERIVED, 1, 1.0, _STRUCTURE, ("k", "n_judged", "is_censored", "ending", "value_high", "inputs"), "A correction episode came back on track after k responses."),
    Signal("first_time_success", _DERIVED, 1, 1.0, _STRUCTURE, ("task_id", "inputs"), "The first completion claim of a task met no objection."),
    Signal("apology_repeat", _DERIVED, -1, 0.5, _STRUCTURE, ("inputs",), "The agent apologised or claimed a fix, and the same failure or request came back."),
)  # fmt: skip

BY_NAME = {signal.name: signal for signal in SIGNALS}
HARD_SIGNALS = tuple(s.name for s in SIGNALS if s.family is Family.HARD)
SEMANTIC_SIGNALS = tuple(s.name for s in SIGNALS if s.family is Family.SEMANTIC)
#: Signals that are not counted, however sure, until people have reviewed them.
CANDIDATE_SIGNALS = tuple(s.name for s in SIGNALS if s.is_candidate)
DERIVED_SIGNALS = tuple(s.name for s in SIGNALS if s.family is Family.DERIVED)

#: How a correction episode ends.
EPISODE_ENDS = ("strong", "weak", "rejected", "censored")
