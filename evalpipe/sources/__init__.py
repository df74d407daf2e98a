"""Layer 1: logs of agents to the tables of ``raw``, one reader a format.

Belongs here: finding files, undoing their wrapping, recognising and reading formats, and accounting
for every record. Does not belong here: masking, signals, or any judgement of what a session is worth.
"""

from evalpipe.sources.buckets import StoredObject
from evalpipe.sources.discover import (
    Found,
    begins_with,
    check,
    discover,
    fingerprint,
    is_unread,
    plan_batches,
    short_name,
    unread_object,
)
from evalpipe.sources.edge import welcome
from evalpipe.sources.joining import Part, join_parts
from evalpipe.sources.model import Batch, Chunk, ReadOptions, SourceFile
from evalpipe.sources.named import Source
from evalpipe.sources.parse import parse_batch
from evalpipe.sources.registry import reader_versions
from evalpipe.sources.resemble import Likeness, resemble

__all__ = [
    "Batch",
    "Chunk",
    "Found",
    "Likeness",
    "Part",
    "ReadOptions",
    "Source",
    "SourceFile",
    "StoredObject",
    "begins_with",
    "check",
    "discover",
    "fingerprint",
    "is_unread",
    "join_parts",
    "parse_batch",
    "plan_batches",
    "reader_versions",
    "resemble",
    "short_name",
    "unread_object",
    "welcome",
]
