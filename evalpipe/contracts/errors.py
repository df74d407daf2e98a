"""Errors that a person can act on, and the catalogue of their stable codes.

Belongs here: the exception classes and one row a code (what it means, how to fix it). Does not
belong here: where an error is raised or shown. A code never changes its meaning; a retired code is
never used again. The catalogue is printed in ``docs/errors.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from evalpipe.contracts.names import printable_name


class Exit(IntEnum):
    """Exit codes of the command line; each says something that no other says.

    A command that is interrupted ends with 130 and one whose reader went away with 141, as a shell
    reports any program that a signal ended.
    """

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    SOME_SLICES_RED = 4
    REFUSED = 5
    FAILED = 6


#: Ends of a command by a signal, as a shell reports them.
SIGNAL_MEANINGS: dict[int, str] = {130: "interrupted", 141: "what read the output went away"}

#: What each exit code means, as ``--help`` and the documentation print it.
EXIT_MEANINGS: dict[Exit, str] = {
    Exit.OK: "done, or the gate passed",
    Exit.GATE_FAILED: "the gate failed, or validation missed a target",
    Exit.USAGE: "the command or a setting is wrong, or what it names does not exist",
    Exit.INCONCLUSIVE: "the gate is inconclusive, or validation needs more replications",
    Exit.SOME_SLICES_RED: "some days or rows were refused, and days kept their old version; the others are done",
    Exit.REFUSED: "refused for safety: key, home, mixed or outdated measurement",
    Exit.FAILED: "a step failed, or evalpipe itself",
}


@dataclass(frozen=True, slots=True)
class Code:
    """One stable code: its meaning and the fix that a person can apply."""

    name: str
    meaning: str
    fix: str
    exit: Exit = Exit.OK


def _codes(*rows: Code) -> dict[str, Code]:
    return {row.name: row for row in rows}


#: Codes of quarantined input: one bad record or file never stops the others.
QUARANTINE_CODES = _codes(
    Code(
        "UNREADABLE_FILE",
        "The file could not be opened or decompressed.",
        "Check permissions and that the file is whole, then run again.",
    ),
    Code(
        "NOT_A_FILE",
        "A pipe, socket, device, dead link, or a link to a folder outside the paths that were named.",
        "Name the file or folder behind it, save a pipe to a file, or leave it out.",
    ),
    Code("EMPTY_FILE", "The file holds no bytes.", "Export it again, or delete it."),
    Code(
        "UNKNOWN_FORMAT",
        "No reader recognises the file.",
        "Convert it to evalpipe JSONL (docs/evalpipe-jsonl.md), or install a reader for it.",
    ),
    Code("BAD_JSON", "The record is not valid JSON.", "Export the file again; the other records were kept."),
    Code("BAD_ENCODING", "The record is not valid UTF-8.", "Re-encode the file as UTF-8."),
    Code(
        "TOO_DEEP",
        "The record is nested deeper than the parser allows.",
        "Flatten the record or drop it at the source.",
    ),
    Code(
        "NOT_A_RECORD",
        "The record is JSON but not an object of this format.",
        "Check that the file holds one format only.",
    ),
    Code(
        "BAD_FIELD",
        "A field that the format requires is missing or of another type.",
        "Check the exporter's version; see docs/formats.md for the fields that are read.",
    ),
    Code(
        "RECORD_TOO_LARGE",
        "The record is larger than max_record_bytes.",
        "Raise max_record_bytes in evalpipe.toml, or cut the output at the source.",
    ),
    Code(
        "SESSION_TOO_LARGE",
        "The session, or the trace, was logged in more bytes than max_session_bytes.",
        "Raise max_session_bytes in evalpipe.toml (memory grows with it), or end such sessions earlier.",
    ),
    Code(
        "READER_FAILED",
        "The reader of this format raised an error on the record, the session or the file.",
        "Report it with the source and the place that the row names; of an installed reader, to its package.",
    ),
    Code("NO_SESSION_ID", "The record names no session.", "Give every record a session id."),
    Code(
        "FUTURE_DATE",
        "The session starts more than 24 hours ahead of the run.",
        "Correct the clock of the machine that wrote the log.",
    ),
    Code(
        "DATE_OUT_OF_RANGE",
        "The session starts before the first day of this home.",
        "Make a home with an earlier first_day, or leave the session out.",
    ),
    Code(
        "EDGE_OTHER_FORMAT",
        "An edge file was written in a form that this version does not read.",
        "Use the same version of evalpipe beside the agent, and land the file again.",
    ),
    Code(
        "EDGE_OTHER_KEY",
        "An edge file was made with another masking key, so its people would be others here.",
        "Give evalpipe edge the key of this home (EVALPIPE_KEY or --key-file), and land the file again.",
    ),
    Code(
        "EDGE_OTHER_CRITERIA",
        "The signals of an edge file were extracted under other criteria.",
        "Run evalpipe edge with the criteria of this home and the same version of evalpipe; land the file again.",
    ),
    Code(
        "UNSAFE_PATH", "An archive member's path leads outside the archive.", "Repack the archive with relative paths."
    ),
    Code(
        "NO_SESSION",
        "The file was read and holds no session.",
        "Nothing to do if the file is meant to be empty of sessions.",
    ),
)

#: Codes of errors that stop a command.
ERROR_CODES = _codes(
    Code(
        "BAD_READER",
        "A reader that another package adds cannot be used.",
        "Mend or remove the package whose entry point in the group evalpipe.readers is named.",
        Exit.USAGE,
    ),
    Code(
        "LEDGER_INVALID",
        "An assignment or consent ledger cannot be used.",
        "Mend the row named (docs/ledgers.md), then run again.",
        Exit.USAGE,
    ),
    Code(
        "PRICES_INVALID",
        "The price table cannot be used.",
        "Mend the row named, in the form of data/prices.toml.",
        Exit.USAGE,
    ),
    Code(
        "SOURCE_NOT_FOUND",
        "A source does not exist, or its pattern matches nothing.",
        "Check the path, bucket or pattern; quote a pattern, so that the shell leaves it alone.",
        Exit.USAGE,
    ),
    Code(
        "SOURCE_DENIED",
        "An object store does not let these credentials list or read a source.",
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, of a user who may s3:ListBucket and "
        "s3:GetObject; a public bucket takes ?anonymous=true.",
        Exit.USAGE,
    ),
    Code(
        "SOURCE_UNREACHABLE",
        "An object store could not be reached, or answered with an error; what was landed before stays.",
        "Check AWS_ENDPOINT_URL, AWS_REGION and the network, then run again.",
        Exit.USAGE,
    ),
    Code(
        "CORPUS_INVALID",
        "A labelled corpus breaks its layout.",
        "Mend the line named, in the layout of docs/masking.md.",
        Exit.USAGE,
    ),
    Code(
        "REVIEW_INVALID",
        "A file of labels cannot be imported; nothing of it was.",
        "Mend the row named (docs/review.md), then import again.",
        Exit.USAGE,
    ),
    Code(
        "NO_TEXT_TO_REVIEW",
        "No masked text is left, or is kept, that a reviewer could read.",
        "Land newer logs, or keep text longer: data/retention.toml, and a tier that stores text.",
        Exit.USAGE,
    ),
    Code(
        "LABELS_INVALID",
        "A file of labelled rows holds none that can be used.",
        "Mend the lines that were named, in the layouts of docs/signal-evaluation.md.",
        Exit.USAGE,
    ),
    Code(
        "MODEL_INVALID",
        "The weights of the borderline classifier cannot be used.",
        "Restore data/models/borderline.npz, or make it: evalpipe signals train (docs/borderline.md).",
        Exit.FAILED,
    ),
    Code(
        "JUDGE_UNUSABLE",
        "The judge of borderline turns is not set up, or does not answer.",
        "Name an endpoint and a model: docs/borderline.md. What was judged before is kept.",
        Exit.USAGE,
    ),
    Code(
        "NER_UNUSABLE",
        "The model of names that the setting ner names cannot be used.",
        "Install it (docs/masking.md), or take the setting out.",
        Exit.USAGE,
    ),
    Code(
        "NER_FAILED",
        "The model of names failed or did not come back in time.",
        "Nothing was masked with half an answer; mend the model, or take the setting ner out.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "ROWS_REFUSED",
        "Some rows of a file could not be masked and were left out; the others are written.",
        "Mend the lines that were named, then run again.",
        Exit.SOME_SLICES_RED,
    ),
    Code("BAD_ARGUMENT", "An argument does not have the form that is asked for.", "See --help.", Exit.USAGE),
    Code(
        "BOARD_INVALID",
        "A CSV of published rows cannot be read as a board.",
        "Mend the column and row named (docs/criteria.md, Boards).",
        Exit.USAGE,
    ),
    Code(
        "VIEW_INVALID", "A view of a board breaks a rule.", "Mend the named key (docs/criteria.md, Boards).", Exit.USAGE
    ),
    Code("CRITERIA_NOT_FOUND", "No criteria file of that name.", "List them with: evalpipe criteria list", Exit.USAGE),
    Code("CRITERIA_INVALID", "The criteria file breaks a rule.", "Mend the named key.", Exit.USAGE),
    Code(
        "SETTINGS_INVALID", "evalpipe.toml or an EVALPIPE_ variable breaks a rule.", "Mend the named key.", Exit.USAGE
    ),
    Code(
        "MIXED_MEASUREMENTS",
        "The rows asked for were made under more than one measurement.",
        "Name one with --measurement, or compute the missing days: evalpipe backfill A..B",
        Exit.REFUSED,
    ),
    Code(
        "MIXED_KEYS",
        "The window, or a home whose key is being rotated, holds slices masked under different keys.",
        "Recompute the older slices: evalpipe backfill A..B, or finish the rotation: evalpipe keys rotate",
        Exit.REFUSED,
    ),
    Code(
        "MIXED_SIGNALS",
        "Some days of the window count a signal that reviews have demoted since, and others do not.",
        "Recompute the days named: evalpipe backfill A..B",
        Exit.REFUSED,
    ),
    Code(
        "KEY_MISSING",
        "The home has slices, and the key that they were masked with is not there.",
        "Restore masking.key (mode 0600) or set EVALPIPE_KEY; without it, only a new home can go on.",
        Exit.REFUSED,
    ),
    Code(
        "KEY_CHANGED",
        "The home has slices under a key that has nothing to do with the one given: every user would be a new person.",
        "Give the key that they were made with (masking.key, or EVALPIPE_KEY). To go on under this one for good, and "
        "make every day anew whose text is still there: evalpipe keys adopt",
        Exit.REFUSED,
    ),
    Code(
        "HOME_IN_USE",
        "The key can be rotated only while nothing else works on the home, and nothing else works meanwhile.",
        "Wait for the other process, or stop it, then run again.",
        Exit.REFUSED,
    ),
    Code(
        "STALE_RESULT",
        "The newest analysis is older than the sessions that it would be made from now.",
        "Run: evalpipe run SOURCE..., or evalpipe backfill A..B",
        Exit.REFUSED,
    ),
    Code("KEY_PERMISSIONS", "The key file can be read by others.", "chmod 600 the key file.", Exit.REFUSED),
    Code(
        "EDGE_KEEPS_KEY",
        "The key cannot be rotated: the home holds sessions of edge files, which are known by tokens of this key only.",
        "Make a new home with the new key, and land logs and new edge files there.",
        Exit.REFUSED,
    ),
    Code(
        "KEY_NEEDED",
        "The masking key of the home that an edge file is for is not given.",
        "Set EVALPIPE_KEY, or name its file with --key-file.",
        Exit.REFUSED,
    ),
    Code(
        "KEY_INVALID",
        "The masking key is not 32 bytes of hexadecimal.",
        "Set EVALPIPE_KEY to 64 hexadecimal digits, or unset it.",
        Exit.REFUSED,
    ),
    Code(
        "HOME_INCOMPATIBLE",
        "The home was made by another layout version or with another first_day.",
        "Use a new home, or the evalpipe version that made this one.",
        Exit.REFUSED,
    ),
    Code(
        "HOME_DAMAGED",
        "A file of the home is lost, or does not hold what evalpipe wrote there.",
        "Delete or restore the named file, then recompute: evalpipe backfill A..B",
        Exit.REFUSED,
    ),
    Code(
        "INPUT_EXPIRED",
        "The landed text that a recompute needs is gone.",
        "Keep the old slice, or delete the named index entry and land its source files again.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "SIGNALS_OUTDATED",
        "Sessions came without text, with signals that were extracted under other criteria.",
        "Run evalpipe edge with these criteria beside the agent, and land its file; the day keeps its old version.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "LEAK_FOUND",
        "The leak check found personal data or a secret in a staged slice.",
        "Nothing was published. See the failed check for field and rule, mend the rule, run again.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "ROWS_UNACCOUNTED",
        "Rows read differ from rows kept, declared noise and quarantined.",
        "This is a defect of a reader: report the format; the slice was not published.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "PROFILE_OUT_OF_BOUNDS",
        "A slice breaks a rule of data/quality that is of severity error.",
        "The day keeps its old version. Look at the named table and measure; mend the source, run again.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "ESTIMATES_INCOHERENT",
        "Estimates of one analysis contradict each other.",
        "This is a defect: the analysis keeps its old version, and nothing new is published.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "CONTRACT_BROKEN",
        "A frame does not have the columns or types of its contract.",
        "This is a defect: report it with the table and column named.",
        Exit.SOME_SLICES_RED,
    ),
    Code(
        "UNKNOWN_USER",
        "No session bears the token, so nothing could be erased or kept out by it.",
        "Take the token from masked.sessions.user_id of this home, or name the id as logged with --user.",
        Exit.USAGE,
    ),
    Code(
        "NO_HOME",
        "No home lies in that place.",
        "Name the home that exists with --home or EVALPIPE_HOME, or make one with: evalpipe run SOURCE...",
        Exit.USAGE,
    ),
    Code(
        "HOME_UNUSABLE",
        "The home cannot be made or written in that place.",
        "Name a folder that you may write with --home or EVALPIPE_HOME.",
        Exit.USAGE,
    ),
    Code(
        "FILE_FAILED",
        "The system refused to read or write a file.",
        "Check that it exists, that you may read or write it, and that the disk has room.",
        Exit.USAGE,
    ),
    Code(
        "NOTHING_READ",
        "The sources hold no session that could be read.",
        "Name a folder that holds logs, and see docs/formats.md for what is read.",
        Exit.USAGE,
    ),
    Code("NO_WAREHOUSE", "No warehouse has been published in this home.", "Run: evalpipe run SOURCE...", Exit.USAGE),
    Code("NO_RESULT", "No analysis exists for what was asked.", "Run: evalpipe run SOURCE...", Exit.USAGE),
    Code(
        "UNKNOWN_VERSION",
        "No session of that agent version in the warehouse.",
        "Take one of the versions that the message lists.",
        Exit.USAGE,
    ),
    Code("SQL_REFUSED", "The statement is not a read-only query.", "Use a SELECT.", Exit.REFUSED),
    Code(
        "SQL_FAILED",
        "The query could not be run.",
        "See the message; tables are listed by: evalpipe sql 'show all tables'",
        Exit.USAGE,
    ),
    Code("SQL_MODEL_INVALID", "A SQL model could not be loaded.", "Mend the named file in dbt_like_sql/.", Exit.USAGE),
    Code(
        "RUN_FAILED",
        "A step of the run failed; nothing that it was to write is published.",
        "See the message; run again with --debug for Dagster's own log.",
        Exit.FAILED,
    ),
    Code(
        "INTERNAL_ERROR",
        "evalpipe itself failed.",
        "This is a defect: report the named class and place; --debug prints more, which may quote your logs.",
        Exit.FAILED,
    ),
    Code(
        "INVALID_OUTCOMES",
        "Outcome rows hold duplicates, NaN or values outside their range.",
        "This is a defect: the named rows were not published.",
        Exit.SOME_SLICES_RED,
    ),
)


class EvalpipeError(Exception):
    """An error with a stable code, the place where it happened, and the fix.

    Never carries raw text of a log: ``where`` is a name, a path or a position.

    Args:
        code: A name in :data:`ERROR_CODES`.
        what: One sentence on what happened, beyond the catalogue's meaning.
        where: File, table, key or position; empty when the command itself is the place.
        fix: Overrides the catalogue's fix when a more exact one is known.
    """

    def __init__(self, code: str, what: str, *, where: str = "", fix: str = "") -> None:
        entry = ERROR_CODES[code]
        self.code = code
        self.what = what
        self.where = where
        self.fix = fix or entry.fix
        self.exit = entry.exit
        place = f" [{printable_name(where)}]" if where else ""
        super().__init__(f"{code}{place}: {what} Fix: {self.fix}")

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders; the default would call __init__ with the rendered text.
        return (_rebuild, (type(self), self.code, self.what, self.where, self.fix))


def _rebuild(cls: type[EvalpipeError], code: str, what: str, where: str, fix: str) -> EvalpipeError:
    return cls(code, what, where=where, fix=fix)
