"""What a table contract is: columns with type, unit, key, sensitivity and meaning.

Belongs here: the vocabulary of contracts. Does not belong here: any concrete table
(``contracts/tables``), and anything rendered from a contract (``contracts/render.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Logical column type; ``render`` maps it to Polars, Arrow and DuckDB."""

    STR = "string"
    BOOL = "boolean"
    I32 = "int32"
    I64 = "int64"
    F64 = "float64"
    DATE = "date"
    TIMESTAMP = "timestamp_us_utc"
    STR_LIST = "list<string>"


class Sensitivity(StrEnum):
    """Who may see a column.

    ``PUBLIC``: counts, codes, names of models and tools. ``PSEUDONYM``: a keyed token that stands
    for a person or a session. ``TEXT``: masked free text; never in the warehouse unless the column
    says so. ``RESTRICTED``: raw text, raw identifiers and paths; never leaves ``lake/raw``.
    """

    PUBLIC = "public"
    PSEUDONYM = "pseudonym"
    TEXT = "text"
    RESTRICTED = "restricted"


class Timing(StrEnum):
    """Whether a session column could have been changed by the version that was assigned."""

    PRE = "pre_treatment"
    POST = "post_treatment"
    NONE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table contract.

    Attributes:
        name: Column name; units are a suffix (``_ms``, ``_usd``, ``_tokens``).
        kind: Logical type.
        meaning: One sentence for the data dictionary.
        nullable: Whether null is a legal value (null means "not known", never zero).
        key: Whether the column is part of the table's primary key.
        sensitivity: Who may see it.
        timing: Pre- or post-treatment, for session columns.
        is_published: Whether the warehouse carries the column.
        values: Closed set of legal values, or empty for open.
        low, high: Inclusive bounds of legal values, or ``None``.
    """

    name: str
    kind: Kind
    meaning: str
    nullable: bool = True
    key: bool = False
    sensitivity: Sensitivity = Sensitivity.PUBLIC
    timing: Timing = Timing.NONE
    is_published: bool = True
    values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table contract: ``layer.name`` with its grain, columns and total sort order."""

    layer: str
    name: str
    grain: str
    meaning: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...] = ()
    is_published: bool = True
    _by_name: dict[str, Column] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.full_name}: duplicate column names")
        unknown = [name for name in self.sort if name not in names]
        if unknown:
            raise ValueError(f"{self.full_name}: sort names unknown columns {unknown}")
        object.__setattr__(self, "_by_name", {column.name: column for column in self.columns})

    @property
    def full_name(self) -> str:
        """``layer.name``, the name used in SQL, docs and manifests."""
        return f"{self.layer}.{self.name}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the primary-key columns."""
        return tuple(column.name for column in self.columns if column.key)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def without(self, *names: str) -> tuple[Column, ...]:
        """The columns except those named; used to derive one layer's table from another's."""
        return tuple(column for column in self.columns if column.name not in names)
