"""Contracts of layer 2, ``masked``: layer 1 after field policy, masking and pseudonyms.

Derived from ``raw`` so that the two cannot drift apart; what is dropped is named here.
"""

from evalpipe.contracts.model import Column, Kind, Sensitivity, Table
from evalpipe.contracts.tables import raw

S, I64 = Kind.STR, Kind.I64

_MEMBER = Column(
    "member",
    S,
    "Keyed token of the archive member; empty for a plain file.",
    nullable=False,
    key=True,
    sensitivity=Sensitivity.PSEUDONYM,
)

SESSIONS = Table(
    layer="masked",
    name="sessions",
    grain="one row a session",
    meaning="Sessions with pseudonyms for people, sessions and folders.",
    sort=("session_id",),
    columns=raw.SESSIONS.without("content_digest"),
)

STEPS = Table(
    layer="masked",
    name="steps",
    grain="one row a step",
    meaning="Steps with masked text. Text is a working column and never in the warehouse.",
    sort=("session_id", "seq"),
    columns=raw.STEPS.columns,
)

QUARANTINE = Table(
    layer="masked",
    name="quarantine",
    grain="one row a record or file that could not be read",
    meaning="What could not be read and why, without paths.",
    sort=("file_id", "member", "byte_offset", "line", "code", "session_id", "digest"),
    columns=(*raw.QUARANTINE.without("source_file", "member"), _MEMBER),
)

FILES = Table(
    layer="masked",
    name="files",
    grain="one row a source file, or archive member",
    meaning="The reading balance of every file, without paths.",
    sort=("file_id", "member"),
    columns=(*raw.FILES.without("source_file", "member"), _MEMBER),
)

COPIES = Table(
    layer="masked",
    name="copies",
    grain="one row a copy of a session that does not count",
    meaning=raw.COPIES.meaning,
    sort=raw.COPIES.sort,
    columns=raw.COPIES.columns,
)

REDACTIONS = Table(
    layer="masked",
    name="redactions",
    grain="one row a day, source, field, entity, subtype, rule and rule set",
    meaning="How often each masking rule fired, in counts only. The day is no column, so the key holds within one day and the warehouse has a row for each: add them up. Text that was scanned again keeps the counts of both scans.",
    sort=("source", "field", "entity", "subtype", "rule_id", "ruleset"),
    columns=(
        Column("source", S, "Reader that produced the text.", nullable=False, key=True),
        Column("field", S, "Field that was masked, such as steps.output.", nullable=False, key=True),
        Column("entity", S, "Entity, after Presidio's names; WITHHELD for fields over budget or in dispute.", nullable=False, key=True),
        Column("subtype", S, "Kind of secret; empty otherwise.", nullable=False, key=True),
        Column("rule_id", S, "Rule that fired.", nullable=False, key=True),
        Column("ruleset", S, "Digest of the rule set.", nullable=False, key=True),
        Column("key_epoch", S, "Epoch of the masking key; not the key.", nullable=False),
        Column("n_rows", I64, "Values that held at least one hit.", nullable=False, low=0),
        Column("n_hits", I64, "Spans replaced.", nullable=False, low=0),
        Column("n_bytes", I64, "Bytes replaced.", nullable=False, low=0),
    ),
)  # fmt: skip

VECTORS = Table(
    layer="masked",
    name="vectors",
    grain="one row a session in tier vectors",
    meaning="Signals of sessions whose text is not stored: a working table, from which signals are made.",
    sort=("session_id",),
    columns=raw.VECTORS.columns,
    is_published=False,
)

RESCANS = Table(
    layer="masked",
    name="rescans",
    grain="one row a re-scan, field and entity",
    meaning="Days whose raw text was gone when the rules changed: what scanning the masked text again added.",
    sort=("scan", "field", "entity"),
    columns=(
        Column("scan", I64, "Number of the re-scan of the slice, from 1.", nullable=False, key=True, low=1),
        Column("field", S, "Field that was scanned.", nullable=False, key=True),
        Column("entity", S, "Entity.", nullable=False, key=True),
        Column("ruleset", S, "Digest of the rule set of the re-scan.", nullable=False),
        Column("n_hits_before", I64, "Spans replaced before it.", nullable=False, low=0),
        Column("n_hits_after", I64, "Spans replaced with it.", nullable=False, low=0),
    ),
)  # fmt: skip

TABLES = (SESSIONS, STEPS, QUARANTINE, FILES, COPIES, REDACTIONS, VECTORS, RESCANS)
