"""The edge file: signals and pseudonymised metadata of sessions, made beside the agent (docs/privacy-tiers.md).

Belongs here: the form of its lines and the terms under which two sides understand each other. Does not
belong here: writing it (``steps/edge.py``), reading it (``sources/edge.py``).

The file is JSON lines under zstd. The first line is the header; each other line has a ``type``: a
``session`` with its row and its signals, or a ``file`` or ``quarantine`` row of the reading balance. No
line holds text of a log, a path, or an id that is not a keyed token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables import masked

#: Version of the form of the file.
FORMAT = "1"
#: The header's first key, by which the file is recognised, and the name of its source.
MARKER = "evalpipe_edge"
#: What the file begins with, decompressed.
HEAD = b'{"evalpipe_edge":'

#: How times are written.
TIME = "%Y-%m-%dT%H:%M:%S%.6fZ"
_TIME = pl.Datetime("us", "UTC")

#: The row of a session on a line: ``masked.sessions`` without the file, whose place the edge file takes.
SESSION = pl.Schema({
    name: pl.String() if dtype == _TIME else dtype
    for name, dtype in polars_schema(masked.SESSIONS).items() if name != "file_id"
})  # fmt: skip
TIMES = tuple(name for name, dtype in polars_schema(masked.SESSIONS).items() if dtype == _TIME)

#: Columns of a session's row that hold tokens, with the letter of their kind.
TOKENS = {"session_id": "s", "parent_session_id": "s", "user_id": "u", "tenant": "t", "workspace": "w"}


@dataclass(frozen=True, slots=True)
class EdgeTerms:
    """What the maker of an edge file and its reader must have in common.

    Attributes:
        key: Fingerprint of the masking key, which does not reveal it.
        extraction: Version of the extraction.
    """

    key: str
    extraction: str

    def objection(self, header: Mapping[str, Any]) -> str:
        """Code of what keeps a file from being read, by its header; empty where nothing does."""
        if header.get(MARKER) != FORMAT:
            return "EDGE_OTHER_FORMAT"
        if header.get("key") != self.key:
            return "EDGE_OTHER_KEY"
        return "" if header.get("extraction") == self.extraction else "EDGE_OTHER_CRITERIA"
