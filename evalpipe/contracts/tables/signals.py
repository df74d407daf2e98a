"""Contracts of layer 3, ``signals``: hard, semantic and derived signals apart, tasks, outcomes.

Hard and semantic rows never share a table, so that an analysis can be made without either.
"""

from evalpipe.contracts.metrics import METRICS
from evalpipe.contracts.model import Column, Kind, Sensitivity, Table, Timing
from evalpipe.contracts.signals import DERIVED_SIGNALS, EPISODE_ENDS, HARD_SIGNALS, SEMANTIC_SIGNALS
from evalpipe.contracts.tables.process import PROCESS, process_columns
from evalpipe.contracts.taxonomy import LAYERS

S, B, I32, I64, F64, TS, DATE, LIST = (
    Kind.STR, Kind.BOOL, Kind.I32, Kind.I64, Kind.F64, Kind.TIMESTAMP, Kind.DATE, Kind.STR_LIST,
)  # fmt: skip
PSEUDONYM = Sensitivity.PSEUDONYM
PRE, POST = Timing.PRE, Timing.POST

#: How a session ended, inferred from its last task, the log and the day after.
END_STATUS = ("completed", "abandoned", "interrupted", "error", "timeout", "open")


def _where(*, is_key: bool = True) -> tuple[Column, ...]:
    return (
        Column("signal_id", S, "Deterministic id of the row.", nullable=False, key=is_key),
        Column("session_id", S, "Session.", nullable=False, sensitivity=PSEUDONYM),
        Column("task_id", S, "Task inside the session; joins signals.tasks.", sensitivity=PSEUDONYM),
        Column("turn", I32, "Turn of the signal.", nullable=False, low=0),
    )


def _how() -> tuple[Column, ...]:
    return (
        Column("snippet", S, "At most 160 characters of masked text around the evidence.", sensitivity=Sensitivity.TEXT),
        Column("span_start", I32, "Start of the evidence in the masked field, in characters.", nullable=False, low=0),
        Column("span_end", I32, "End of the evidence.", nullable=False, low=0),
        Column("extractor", S, "Extractor that made the row.", nullable=False),
        Column("extractor_version", S, "Version of that extractor.", nullable=False),
    )  # fmt: skip


HARD = Table(
    layer="signals",
    name="hard",
    grain="one row a signal from the environment",
    meaning="Signals from tools and events: command errors, refusals, interrupts, retries.",
    sort=("session_id", "seq", "signal", "signal_id"),
    columns=(
        *_where(),
        Column("seq", I32, "Step of the signal.", nullable=False, low=0),
        Column("signal", S, "Signal type.", nullable=False, values=HARD_SIGNALS),
        Column("polarity", I32, "-1, 0 or 1.", nullable=False, low=-1, high=1),
        Column("strength", F64, "Weight of one event before criteria apply.", nullable=False, low=0.0, high=1.0),
        Column("confidence", F64, "Estimated precision of the rule.", nullable=False, low=0.0, high=1.0),
        Column("category", S, "Kind of failure, such as path_not_found."),
        Column("layer", S, "Layer that the failure is attributed to.", values=tuple(LAYERS)),
        Column("exit_code", I32, "Exit code, where known."),
        Column("exit_scope", S, "What the exit code speaks of.", values=("program", "last_of_chain", "masked", "unknown")),
        Column("is_hidden", B, "Whether the failure does not show in the exit code.", nullable=False),
        Column("tool", S, "Tool called."),
        Column("target_key", S, "Digest of tool, program and normalised arguments; equal for retries."),
        Column("rule_id", S, "Row of the rule table.", nullable=False),
        Column("field", S, "Field of the step that the span lies in; null where the signal has no text.", values=("text", "arguments", "output")),
        *_how(),
    ),
)  # fmt: skip

SEMANTIC = Table(
    layer="signals",
    name="semantic",
    grain="one row a signal in what a person said",
    meaning="Confirmations, praise, complaints, corrections, found by reviewed patterns.",
    sort=("session_id", "turn", "seq", "signal", "signal_id"),
    columns=(
        *_where(),
        Column("seq", I32, "Step of the user's message.", nullable=False, low=0),
        Column("signal", S, "Signal type.", nullable=False, values=SEMANTIC_SIGNALS),
        Column("polarity", I32, "-1, 0 or 1.", nullable=False, low=-1, high=1),
        Column("strength", F64, "Weight of one event before criteria apply.", nullable=False, low=0.0, high=1.0),
        Column("confidence", F64, "Estimated precision of the pattern.", nullable=False, low=0.0, high=1.0),
        Column("lang", S, "Language of the turn.", nullable=False),
        Column("method", S, "How it was found: by a rule, or by the borderline classifier, which makes candidates only.", nullable=False, values=("rule", "model")),
        Column("pattern_id", S, "Pattern that fired.", nullable=False),
        Column("prev_turn_seq", I32, "Step of the previous human message."),
        Column("target", S, "What the turn speaks of, where it can be read."),
        *_how(),
        Column("probability", F64, "Calibrated probability of the classifier; null for a rule.", low=0.0, high=1.0),
        Column("model_version", S, "Digest of the classifier's weights; null for a rule."),
        Column("old_value", S, "Value that a correction rejects, in masked text, where it can be read.", sensitivity=Sensitivity.TEXT),
        Column("new_value", S, "Value that it wants instead, in masked text, where it can be read.", sensitivity=Sensitivity.TEXT),
        Column("agent_seq", I32, "Last step of the agent since the previous human message that holds the rejected value; null where none does.", low=0),
    ),
)  # fmt: skip

CANDIDATES = Table(
    layer="signals",
    name="candidates",
    grain="one row a borderline observation",
    meaning="Borderline rows for review only, of unsure rules and of the classifier where no rule fires; nothing that counts reads them.",
    sort=SEMANTIC.sort,
    columns=SEMANTIC.columns,
)

DERIVED = Table(
    layer="signals",
    name="derived",
    grain="one row a derived signal",
    meaning="Recovery, first-time success and broken promises, computed from other rows.",
    sort=("session_id", "signal", "signal_id"),
    columns=(
        *_where(),
        Column("signal", S, "Signal type.", nullable=False, values=DERIVED_SIGNALS),
        Column(
            "value",
            F64,
            "Value, such as 1/k for a recovery after k responses; 0 for one that was not seen.",
            nullable=False,
        ),
        Column(
            "value_high",
            F64,
            "The value if the response that nobody judged was right: the upper bound of a censored recovery.",
            nullable=False,
            low=0.0,
            high=1.0,
        ),
        Column("k", I32, "Agent responses until recovery; null if it was not seen.", low=1),
        Column(
            "n_judged",
            I32,
            "Of a recovery, responses whose reception was seen: the time under observation; else null.",
            low=0,
        ),
        Column("is_censored", B, "Whether the session ended before it could be seen.", nullable=False),
        Column(
            "ending",
            S,
            "How a correction episode ended: strong (confirmed or praised), weak (not objected to), rejected (the last word is an objection), censored (nobody spoke after the answer); else null.",
            values=EPISODE_ENDS,
        ),
        Column("target", S, "Token of what a correction episode is about, where it can be read."),
        Column("inputs", LIST, "Ids of the rows it was computed from.", nullable=False),
        Column("definition_version", S, "Version of the definition.", nullable=False),
    ),
)

TASKS = Table(
    layer="signals",
    name="tasks",
    grain="one row a task inside a session",
    meaning="Goals inside a session, with where they begin and how they closed.",
    sort=("session_id", "task_index"),
    columns=(
        Column("task_id", S, "Deterministic id.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("session_id", S, "Session.", nullable=False, sensitivity=PSEUDONYM),
        Column("task_index", I32, "Position in the session, from 0.", nullable=False, low=0),
        Column("first_turn", I32, "First turn.", nullable=False, low=0),
        Column("last_turn", I32, "Last turn.", nullable=False, low=0),
        Column("closed_by", S, "What closed it.", nullable=False, values=("confirm", "praise", "accept.implicit", "negative", "next_task", "session_end")),
        Column("closing_signal_id", S, "Row of signals.semantic or signals.candidates that closed it; null where none did."),
        Column("n_errors", I32, "Results judged as errors of a command or tool, whatever their confidence.", nullable=False, low=0),
        *process_columns(),
        Column("extractor_version", S, "Version of the task splitter.", nullable=False),
    ),
)  # fmt: skip

SESSION_FEATURES = Table(
    layer="signals",
    name="session_features",
    grain="one row a session",
    meaning="What extraction says of a whole session: scenario, language, counts, how it closed.",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("scenario", S, "Scenario: declared, else inferred from the first user turn and the tools offered.", nullable=False, timing=PRE),
        Column("scenario_method", S, "Where the scenario comes from.", nullable=False, values=("declared", "rule", "default"), timing=PRE),
        Column("task_type", S, "First task type of the criteria that holds, told from the same evidence; null if none does.", timing=PRE),
        Column("language", S, "Language of the first human turn; 'und' if it cannot be told.", nullable=False, timing=PRE),
        Column("n_human_turns", I32, "Turns of a person.", nullable=False, low=0, timing=POST),
        Column("n_tool_calls", I32, "Tool calls.", nullable=False, low=0, timing=POST),
        Column("n_command_calls", I32, "Tool calls that ran a command or gave a status.", nullable=False, low=0, timing=POST),
        Column("n_command_errors", I32, "Calls that failed themselves.", nullable=False, low=0, timing=POST),
        Column("n_check_failures", I32, "Tests, linters and builds that reported findings.", nullable=False, low=0, timing=POST),
        Column("n_logical_commands", I32, "Distinct commands, retries counted once.", nullable=False, low=0, timing=POST),
        Column("n_first_try_successes", I32, "Distinct commands whose first run succeeded.", nullable=False, low=0, timing=POST),
        Column("n_retries", I32, "Runs of a command beyond its first.", nullable=False, low=0, timing=POST),
        Column("n_self_repairs", I32, "Errors whose command later succeeded without a user turn between.", nullable=False, low=0, timing=POST),
        Column("n_interrupts", I32, "Interrupt messages, those that a harness logs with a refused call included.", nullable=False, low=0, timing=POST),
        Column("n_refused_calls", I32, "Tool calls that the user refused.", nullable=False, low=0, timing=POST),
        Column("n_confirmations", I32, "Explicit confirmations.", nullable=False, low=0, timing=POST),
        Column("n_praise", I32, "Praise.", nullable=False, low=0, timing=POST),
        Column("n_complaints", I32, "Complaints.", nullable=False, low=0, timing=POST),
        Column("n_corrections", I32, "Corrections.", nullable=False, low=0, timing=POST),
        Column("n_recovered_corrections", I32, "Correction episodes that came back on track.", nullable=False, low=0, timing=POST),
        Column("n_episodes", I32, "Correction episodes.", nullable=False, low=0, timing=POST),
        Column("sum_steerability", F64, "Sum over episodes of 1/k, 0 where never recovered.", nullable=False, low=0.0, timing=POST),
        Column("turns_to_confirmation", I32, "Human turns up to the last explicit confirmation.", low=0, timing=POST),
        Column("calls_to_confirmation", I32, "Tool calls up to that confirmation.", low=0, timing=POST),
        Column("has_final_confirmation", B, "An explicit confirmation and no complaint or correction after it.", nullable=False, timing=POST),
        Column("is_last_task_unresolved", B, "Last user turn negative, agent waiting, or a running call interrupted.", nullable=False, timing=POST),
        Column("has_closing_signal", B, "The last task has a positive closing signal.", nullable=False, timing=POST),
        Column("is_last_turn_interrupted", B, "The session ends on an interrupt.", nullable=False, timing=POST),
        Column("is_last_step_error", B, "The session ends on an error of the harness or the API.", nullable=False, timing=POST),
        Column("extractor_version", S, "Version of the extraction.", nullable=False),
    ),
)  # fmt: skip


TURN_COVERAGE = Table(
    layer="signals",
    name="turn_coverage",
    grain="one row a session in which a person spoke",
    meaning="Turns that patterns could not read, by reason.",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("n_turns", I32, "Turns of a person.", nullable=False, low=0),
        Column("n_without_prose", I32, "Turns of which quotes, code and logs leave no prose.", nullable=False, low=0),
        Column("n_unknown_language", I32, "Turns with prose whose language no rule knows.", nullable=False, low=0),
    ),
)

SESSION_USAGE = Table(
    layer="signals",
    name="session_usage",
    grain="one row a session, model and size of prompt",
    meaning="Tokens of a session by the model that used them and the size of its prompts, sub-agents included; each response counted once.",
    sort=("session_id", "model", "prompt_above_tokens"),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("model", S, "Model as logged; empty where none is named.", nullable=False, key=True),
        Column("prompt_above_tokens", I64, "Responses whose prompt (input, cached or not) has more tokens than this, and not more than the next such limit; 0 where only the session's total is logged.", nullable=False, key=True, low=0),
        Column("n_responses", I32, "Responses that state tokens; null where only the session's total is logged.", low=1),
        Column("input_tokens", I64, "Uncached input tokens.", low=0),
        Column("output_tokens", I64, "Output tokens, reasoning included.", low=0),
        Column("cache_read_tokens", I64, "Input tokens read from a cache.", low=0),
        Column("cache_write_tokens", I64, "Input tokens written to a cache.", low=0),
        Column("cache_write_1h_tokens", I64, "The part of them that is kept for an hour, where told apart.", low=0),
        Column("reasoning_tokens", I64, "The part of the output that was reasoning, where told apart.", low=0),
    ),
)  # fmt: skip


def _metric_columns() -> tuple[Column, ...]:
    out: list[Column] = []
    for metric in METRICS:
        out.append(Column(f"{metric.name}_num", F64, f"Numerator: {metric.numerator}", low=metric.low, timing=POST))
        out.append(Column(f"{metric.name}_den", F64, f"Denominator: {metric.denominator}", low=0.0, timing=POST))
    return tuple(out)


SESSION_OUTCOMES = Table(
    layer="signals",
    name="session_outcomes",
    grain="one row a session",
    meaning="One (numerator, denominator) pair a metric, with what a comparison needs to know of the session.",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("day", DATE, "UTC day of the session's start.", nullable=False, timing=PRE),
        Column("measurement", S, "Hash of extraction, outcomes and estimand.", nullable=False),
        Column("is_settled", B, "Whether the days that this row looks ahead to are closed.", nullable=False),
        Column("source", S, "Reader.", nullable=False, timing=PRE),
        Column("agent", S, "Agent or harness.", nullable=False, timing=PRE),
        Column("agent_release", S, "Release of the agent.", timing=PRE),
        Column("model", S, "Model that answered most turns.", timing=PRE),
        Column("n_models", I32, "Distinct models that answered.", nullable=False, low=0, timing=POST),
        Column("user_id", S, "User; null where the log names none.", sensitivity=PSEUDONYM, timing=PRE),
        Column("scenario", S, "Scenario.", nullable=False, timing=PRE),
        Column("scenario_method", S, "Where the scenario comes from; null in rows that were made before it was kept.", values=("declared", "rule", "default"), timing=PRE),
        Column("task_type", S, "Task type that the criteria declare; null if none holds.", timing=PRE),
        Column("language", S, "Language of the first human turn.", nullable=False, timing=PRE),
        Column("task_id", S, "Task of a controlled task set.", timing=PRE),
        Column("trial", I32, "Repeat index.", timing=PRE),
        Column("routing_epoch", S, "Routing epoch; 'all' where none is logged.", nullable=False, timing=PRE),
        Column("assignment_policy", S, "Routing policy.", timing=PRE),
        Column("assignment_unit", S, "What was assigned.", values=("session", "user"), timing=PRE),
        Column("assignment_probability", F64, "Probability of the version chosen.", low=0.0, high=1.0, timing=PRE),
        Column("assigned_arm", S, "Arm that the ledger's row names, as in signals.routing_arms; null where no row matches.", timing=PRE),
        Column("assignment_source", S, "Who says so: the ledger or the log; null where nobody does.", values=("ledger", "logged"), timing=PRE),
        Column("is_as_assigned", B, "Whether the version is the one that the ledger assigned to this unit; null where it names none.", timing=POST),
        Column("started_at", TS, "Start.", nullable=False, timing=PRE),
        Column("duration_ms", I64, "Time from the first to the last record, pauses included.", nullable=False, low=0, timing=POST),
        Column("n_human_turns", I32, "Turns of a person.", nullable=False, low=0, timing=POST),
        Column("n_tool_calls", I32, "Tool calls.", nullable=False, low=0, timing=POST),
        Column("total_tokens", I64, "All tokens; reasoning is part of the output.", low=0, timing=POST),
        Column("cost_usd", F64, "Cost that the log states, else tokens at the price table's prices; null where a price is unknown.", low=0.0, timing=POST),
        Column("cost_source", S, "Where the cost comes from; null where it is unavailable.", values=("logged", "priced"), timing=POST),
        Column("end_status", S, "How the session ended.", nullable=False, values=END_STATUS, timing=POST),
        Column("signal_score", F64, "Weighted sum of signals under the criteria.", nullable=False, timing=POST),
        *_metric_columns(),
    ),
)  # fmt: skip

SESSION_SCORES = Table(
    layer="signals",
    name="session_scores",
    grain="one row a session that has an outcome",
    meaning="Signal score of a session by family, every signal with its weight of the catalogue: what an ablation needs.",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("measurement", S, "Hash of extraction, outcomes and estimand.", nullable=False),
        Column("hard_score", F64, "Sum over signals from the environment.", nullable=False),
        Column("semantic_score", F64, "Sum over what people said.", nullable=False),
    ),
)

ROUTING_ARMS = Table(
    layer="signals",
    name="routing_arms",
    grain="one row a day, policy, routing epoch and arm",
    meaning="Arms between which the assignment ledger's policies chose on a day, also those that served nobody.",
    sort=("day", "policy", "routing_epoch", "unit", "arm"),
    columns=(
        Column("day", DATE, "UTC day.", nullable=False, key=True),
        Column("policy", S, "Routing policy.", nullable=False, key=True),
        Column("routing_epoch", S, "Routing epoch.", nullable=False, key=True),
        Column("unit", S, "What is assigned.", nullable=False, key=True, values=("session", "user")),
        Column("arm", S, "Agent, release and model that the ledger names; * stands for any.", nullable=False, key=True),
        Column("agent", S, "Agent that it names."),
        Column("agent_release", S, "Release that it names."),
        Column("model", S, "Model that it names."),
        Column("probability_low", F64, "Lowest probability of the arm that a row states; null where none does.", low=0.0, high=1.0),
        Column("probability_high", F64, "Highest; the same where the arm has one probability.", low=0.0, high=1.0),
    ),
)  # fmt: skip

TABLES = (
    HARD, SEMANTIC, CANDIDATES, DERIVED, TASKS, PROCESS, SESSION_FEATURES, TURN_COVERAGE, SESSION_USAGE,
    SESSION_OUTCOMES, SESSION_SCORES, ROUTING_ARMS,
)  # fmt: skip
