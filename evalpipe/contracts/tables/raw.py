"""Contracts of layer 1, ``raw``: sessions and steps as logged, normalised. Restricted throughout.

``masked`` (layer 2) derives its tables from these, so a column is declared once. Whether a column
was fixed before the agent version could act (``Timing.PRE``) is declared here and nowhere else.
"""

from evalpipe.contracts.model import Column, Kind, Sensitivity, Table, Timing

S, B, I32, I64, F64, TS, DATE, LIST = (
    Kind.STR, Kind.BOOL, Kind.I32, Kind.I64, Kind.F64, Kind.TIMESTAMP, Kind.DATE, Kind.STR_LIST,
)  # fmt: skip
RESTRICTED, PSEUDONYM, TEXT = Sensitivity.RESTRICTED, Sensitivity.PSEUDONYM, Sensitivity.TEXT
PRE, POST = Timing.PRE, Timing.POST

#: What a log can say about how a session ended. Null where it says nothing.
END_STATUS_LOGGED = ("completed", "interrupted", "error", "timeout")

#: ``sessions.consent`` of a session whose text is withheld, in a log as in the consent ledger.
CONSENT_WITHDRAWN = "withdrawn"

#: What produced a step. ``tool`` steps hold call and result together.
STEP_KINDS = ("user", "agent", "model", "tool", "graph", "system")

#: Who wrote the text of a step. Only ``human`` and ``queued`` are turns of a person.
STEP_ORIGINS = (
    "human",  # typed by the user (or by a benchmark's simulated user)
    "queued",  # typed by the user while the agent worked, logged apart from the turns
    "agent",  # written by the agent
    "tool",  # a tool call with its result
    "interrupt",  # the user stopped the agent; the log stores it as a user message
    "command",  # a slash command and its expansion
    "local_command",  # a shell command that the user ran inside the harness, and its output
    "meta",  # text that the harness put into a user message
    "injected",  # context that the harness or IDE added beside the user's words
    "notification",  # a background task reporting to the agent
    "compaction",  # a summary that replaces earlier turns
    "synthetic",  # an agent message that no model wrote
    "system",  # a line of the harness itself, such as an API error
    "feedback",  # a mark or an approval that the user gave by hand
)

#: Origin of a mark that the user gave, and the names of such steps. Their arguments hold ``rating``: 1, 0 or -1.
FEEDBACK, RATING, APPROVAL = "feedback", "rating", "approval"

#: Why a tool call gave no ordinary result. Null where it did.
STEP_ERRORS = ("refused", "interrupted", "cascade", "no_result", "tool_error", "timeout", "api_error")

SESSIONS = Table(
    layer="raw",
    name="sessions",
    grain="one row a session",
    meaning="Sessions as logged, one copy each: docs/formats.md says which copy counts.",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Id of the conversation as logged, prefixed by the source.", nullable=False, key=True, sensitivity=PSEUDONYM, timing=PRE),
        Column("source", S, "Reader that produced the row, such as claude_code.", nullable=False, timing=PRE),
        Column("reader_version", S, "Version of that reader.", nullable=False, timing=PRE),
        Column("file_id", S, "Digest of the file that the winning copy came from; joins raw.files.", nullable=False, sensitivity=PSEUDONYM, timing=PRE),
        Column("agent", S, "Agent or harness name.", nullable=False, timing=PRE),
        Column("agent_release", S, "Release of the agent, as logged.", timing=PRE),
        Column("model", S, "Model that answered most turns; null if no model is named.", timing=PRE),
        Column("n_models", I32, "Number of distinct models that answered.", nullable=False, low=0, timing=POST),
        Column("user_id", S, "User the session belongs to; null if the log names none.", sensitivity=PSEUDONYM, timing=PRE),
        Column("tenant", S, "Organisation the session belongs to.", sensitivity=PSEUDONYM, timing=PRE),
        Column("workspace", S, "Working folder or project; tells whether a later session continues this one.", sensitivity=PSEUDONYM, timing=PRE),
        Column("parent_session_id", S, "Session that this one was forked or resumed from.", sensitivity=PSEUDONYM, timing=PRE),
        Column("started_at", TS, "Time of the first record.", nullable=False, timing=PRE),
        Column("ended_at", TS, "Time of the last record.", nullable=False, timing=POST),
        Column("is_dated", B, "False where the log has no date and the day was assigned.", nullable=False, timing=PRE),
        Column("is_clock_repaired", B, "True where a step starts before its turn or parent, or ends before it starts.", nullable=False, timing=POST),
        Column("end_status_logged", S, "How the session ended, if the log itself says so.", values=END_STATUS_LOGGED, timing=POST),
        Column("scenario_declared", S, "Scenario or benchmark domain that the log declares.", timing=PRE),
        Column("task_id", S, "Task of a controlled task set that the session attempts.", timing=PRE),
        Column("trial", I32, "Repeat index of that task.", low=0, timing=PRE),
        Column("objective_reward", F64, "Reward or score that the log states for the session.", timing=POST),
        Column("is_objective_success", B, "Whether the log states that the task was solved; null if it does not say.", timing=POST),
        Column("harness", S, "Harness or runtime that ran the agent, if named apart from it.", timing=PRE),
        Column("tools", LIST, "Names of the tools offered, sorted; null if the log does not list them.", timing=PRE),
        Column("prompt_version", S, "Version or digest of the system prompt.", timing=PRE),
        Column("retrieval_version", S, "Version of the retrieval index.", timing=PRE),
        Column("assignment_policy", S, "Routing policy that chose the version, if logged.", timing=PRE),
        Column("assignment_unit", S, "What the policy assigned.", values=("session", "user"), timing=PRE),
        Column("assignment_probability", F64, "Probability with which this version was chosen.", low=0.0, high=1.0, timing=PRE),
        Column("routing_epoch", S, "Period between two changes of routing, if logged.", timing=PRE),
        Column("consent", S, "Consent or legal basis, if known; of a session that is 'withdrawn' no text is kept.", timing=PRE),
        Column("n_turns", I32, "Turns of a person.", nullable=False, low=0, timing=POST),
        Column("n_steps", I32, "Steps.", nullable=False, low=0, timing=POST),
        Column("n_tool_calls", I32, "Tool calls, those of sub-agents included.", nullable=False, low=0, timing=POST),
        Column("n_messages", I32, "Distinct messages; the largest copy of a session wins.", nullable=False, low=0, timing=POST),
        Column("input_tokens", I64, "Uncached input tokens; each response counted once.", low=0, timing=POST),
        Column("output_tokens", I64, "Output tokens, reasoning included.", low=0, timing=POST),
        Column("cache_read_tokens", I64, "Input tokens read from a cache.", low=0, timing=POST),
        Column("cache_write_tokens", I64, "Input tokens written to a cache.", low=0, timing=POST),
        Column("reasoning_tokens", I64, "The part of the output that was reasoning, where told apart.", low=0, timing=POST),
        Column("logged_cost_usd", F64, "Cost that the log itself states.", low=0.0, timing=POST),
        Column("content_digest", S, "Digest of the session's normalised content.", nullable=False, sensitivity=RESTRICTED, timing=POST),
    ),
)  # fmt: skip

STEPS = Table(
    layer="raw",
    name="steps",
    grain="one row a step",
    meaning="Atomic events of a session in order: messages and tool calls with their results.",
    sort=("session_id", "seq"),
    columns=(
        Column("session_id", S, "Session of the step.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("seq", I32, "Position in the session, from 0.", nullable=False, key=True, low=0),
        Column("step_id", S, "Id of the message or call as logged, else the position.", nullable=False, sensitivity=PSEUDONYM),
        Column("parent_id", S, "Step that this one belongs to, for steps of a sub-agent.", sensitivity=PSEUDONYM),
        Column("turn", I32, "Turn that the step belongs to; 0 is before the first human message.", nullable=False, low=0),
        Column("kind", S, "What the step is.", nullable=False, values=STEP_KINDS),
        Column("origin", S, "Who or what wrote it.", nullable=False, values=STEP_ORIGINS),
        Column("name", S, "Tool name for tool steps; rating or approval for feedback."),
        Column("text", S, "Message text; for a refused call the reason that the user gave.", sensitivity=TEXT, is_published=False),
        Column("arguments", S, "Tool arguments as JSON text.", sensitivity=TEXT, is_published=False),
        Column("output", S, "Tool result text.", sensitivity=TEXT, is_published=False),
        Column("exit_code", I32, "Exit code, where the log states one (also as a text prefix)."),
        Column("is_error", B, "The log's own error flag on the result; null if it has none."),
        Column("error", S, "Why the call gave no ordinary result.", values=STEP_ERRORS),
        Column("started_at", TS, "Time of the step or of the call."),
        Column("ended_at", TS, "Time of the result."),
        Column("first_token_ms", I64, "Milliseconds to the first token, where logged.", low=0),
        Column("model", S, "Model that wrote the step."),
        Column("input_tokens", I64, "Uncached input tokens of the response.", low=0),
        Column("output_tokens", I64, "Output tokens of the response, reasoning included.", low=0),
        Column("cache_read_tokens", I64, "Input tokens read from a cache.", low=0),
        Column("cache_write_tokens", I64, "Input tokens written to a cache.", low=0),
        Column("reasoning_tokens", I64, "The part of that output that was reasoning.", low=0),
        Column("cache_write_1h_tokens", I64, "The part of cache_write_tokens that is kept for an hour, where told apart.", low=0),
    ),
)  # fmt: skip

QUARANTINE = Table(
    layer="raw",
    name="quarantine",
    grain="one row a record or file that could not be read",
    meaning="What could not be read, where and why; a keyed digest stands for the bytes.",
    sort=("file_id", "member", "byte_offset", "line", "code", "session_id", "digest"),
    columns=(
        Column("file_id", S, "Digest of the file.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("source_file", S, "Path of the file.", nullable=False, sensitivity=RESTRICTED),
        Column("member", S, "Member of an archive; empty for a plain file.", nullable=False, key=True, sensitivity=RESTRICTED),
        Column("source", S, "Reader, or 'unknown'.", nullable=False),
        Column("byte_offset", I64, "Offset of the record in the decompressed stream.", nullable=False, key=True, low=0),
        Column("line", I64, "Line or element number from 1; 0 for the whole file.", nullable=False, key=True, low=0),
        Column("code", S, "Stable code (docs/errors.md).", nullable=False, key=True),
        Column("session_id", S, "Session concerned; empty where unknown.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("n_bytes", I64, "Size of the record.", nullable=False, low=0),
        Column("digest", S, "Keyed digest of the record.", nullable=False, sensitivity=PSEUDONYM),
    ),
)  # fmt: skip

FILES = Table(
    layer="raw",
    name="files",
    grain="one row a source file, or archive member",
    meaning="Every row read is kept, declared noise, or quarantined; the balance is checked.",
    sort=("file_id", "member"),
    columns=(
        Column("file_id", S, "Digest of the file.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("source_file", S, "Path of the file.", nullable=False, sensitivity=RESTRICTED),
        Column("member", S, "Member of an archive; empty for a plain file.", nullable=False, key=True, sensitivity=RESTRICTED),
        Column("source", S, "Reader, or 'unknown'.", nullable=False),
        Column("reader_version", S, "Version of that reader.", nullable=False),
        Column("n_bytes", I64, "Bytes after decompression.", nullable=False, low=0),
        Column("rows_read", I64, "Records found.", nullable=False, low=0),
        Column("rows_kept", I64, "Records that became part of a session.", nullable=False, low=0),
        Column("rows_noise", I64, "Records that the reader declares to carry nothing to analyse.", nullable=False, low=0),
        Column("rows_quarantined", I64, "Records that could not be read.", nullable=False, low=0),
        Column("n_sessions", I64, "Sessions found in the file, before copies are resolved.", nullable=False, low=0),
    ),
)  # fmt: skip

#: Why a copy of a session does not count by itself.
COPY_RULES = (
    "same_session",  # another copy under the same id is larger
    "merged",  # a part of a session that several files hold: its steps are in the session that counts
    "same_id",  # another source carries the same id
    "same_words",  # another source logs the same words at the same time
    "same_trial",  # the result of a trial: its outcome is in the session that another file logs
)

COPIES = Table(
    layer="raw",
    name="copies",
    grain="one row a copy of a session that does not count",
    meaning="Copies that were read and are no session of their own, with the session that counts for them.",
    sort=("session_id", "copy"),
    columns=(
        Column("session_id", S, "Session that the copy is of, by its own id.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("copy", I32, "Rank among the copies under this id; 0 is the largest.", nullable=False, key=True, low=0),
        Column("source", S, "Reader that produced the copy.", nullable=False),
        Column("file_id", S, "Digest of the file that holds the copy; joins files.", nullable=False, sensitivity=PSEUDONYM),
        Column("rule", S, "Why the copy does not count by itself; the steps of a 'merged' one and the outcome of a 'same_trial' are in the session.", nullable=False, values=COPY_RULES),
        Column("n_messages", I32, "Distinct messages of the copy.", nullable=False, low=0),
        Column("counted_session_id", S, "Session that counts for it; joins sessions.", nullable=False, sensitivity=PSEUDONYM),
        Column("counted_source", S, "Reader of the session that counts.", nullable=False),
        Column("counted_n_messages", I32, "Distinct messages of the session that counts.", nullable=False, low=0),
    ),
)  # fmt: skip

VECTORS = Table(
    layer="raw",
    name="vectors",
    grain="one row a session whose signals were extracted beside the agent",
    meaning="Signals of sessions that came without text (docs/privacy-tiers.md).",
    sort=("session_id",),
    columns=(
        Column("session_id", S, "Session.", nullable=False, key=True, sensitivity=PSEUDONYM),
        Column("extraction", S, "Version of the extraction.", nullable=False),
        Column("signals", S, "Rows of the signals tables as JSON, without text.", nullable=False, is_published=False),
    ),
)  # fmt: skip

TABLES = (SESSIONS, STEPS, QUARANTINE, FILES, COPIES, VECTORS)
