"""Contract of process metrics in layer 3: how a session or task went, whatever came of it.

One declaration serves sessions (``signals.process``) and tasks (columns of ``signals.tasks``).
"""

from evalpipe.contracts.model import Column, Kind, Sensitivity, Table, Timing

S, I32, I64, F64 = Kind.STR, Kind.I32, Kind.I64, Kind.F64


def process_columns(timing: Timing = Timing.NONE) -> tuple[Column, ...]:
    """Process metrics of a session or a task. Null is unknown: a log without steps counts none of them."""

    def count(name: str, meaning: str, kind: Kind = I32) -> Column:
        return Column(name, kind, meaning, low=0, timing=timing)

    return (
        count("n_steps", "Steps, those of sub-agents included; null, like all that follows, where the log has none."),
        count("n_responses", "Responses of the agent."),
        count("n_turns", "Turns of a person."),
        count("n_tool_calls", "Tool calls."),
        count("n_command_calls", "Tool calls that ran a command or gave a status."),
        count("n_command_errors", "Calls that failed themselves."),
        Column(
            "error_rate",
            F64,
            "Failed calls among those that gave a status; null without any.",
            low=0.0,
            high=1.0,
            timing=timing,
        ),
        count("n_check_failures", "Tests, linters and builds that reported findings."),
        count("n_checks_failing_at_end", "Distinct checks whose last run reported findings."),
        count("n_retries", "Runs of a call that had failed, with nothing edited between."),
        count("n_loops", "Calls that failed in the same way three times with nothing changed between."),
        count("n_fix_cycles", "Runs of a call that had failed, after an edit: test, edit, test."),
        count("n_self_fixed", "Failed calls that the agent repaired without the user."),
        Column(
            "self_fixed_share",
            F64,
            "Repaired among the failed calls; null without any.",
            low=0.0,
            high=1.0,
            timing=timing,
        ),
        count("n_refused_calls", "Tool calls that the user refused."),
        count("n_interrupts", "Times that the user stopped the agent."),
        count("n_rollbacks", "Times that work was undone."),
        count("n_hallucinated_calls", "Calls of tools or parameters that do not exist."),
        Column(
            "hallucinated_per_1000_calls",
            F64,
            "The same for a thousand tool calls; null without any.",
            low=0.0,
            timing=timing,
        ),
        count("output_tokens", "Output tokens, reasoning included; null where the log does not say.", I64),
        count("reasoning_tokens", "The part of the output that was reasoning, where told apart.", I64),
        count("total_tokens", "All tokens; reasoning is part of the output.", I64),
        count("first_response_ms", "Time from the first turn to the first sign of the agent; null without times.", I64),
        count(
            "turns_to_acceptance",
            "Turns before the one in which a person first confirmed or praised; null if nobody did.",
        ),
    )


PROCESS = Table(
    layer="signals",
    name="process",
    grain="one row a session",
    meaning="How a session went, whatever came of it: steps, calls, errors, retries, repairs, tokens, waiting. signals.tasks has the same for each task.",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=Sensitivity.PSEUDONYM),
        *process_columns(Timing.POST),
        Column("extractor_version", S, "Version of the extraction.", nullable=False),
    ),
)
