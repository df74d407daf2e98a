"""Ledgers that people keep beside the logs: assignments and consent.

Belongs here: reading CSV, JSON lines or Parquet, checking every row, and replacing ids by the tokens
that masked tables hold, so that a ledger joins without any id being stored. Does not belong here:
the match itself (``signals/ledger.py``), masking.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import MaskPlan
from evalpipe.signals.ledger import LEDGER, UNIT_COLUMN, UNITS, VERSION_COLUMNS, empty_ledger, with_epochs
from evalpipe.sources import reader_versions

_ASSIGNMENT_COLUMNS = (
    "policy", "unit", "unit_id", "tenant", "source", *VERSION_COLUMNS, "probability", "starts_at", "ends_at", "epoch",
)  # fmt: skip
_CONSENT_COLUMNS = ("user_id", "tenant", "source", "status", "legal_basis")
STATUSES = ("granted", "withdrawn")
#: Digits of a day that is written without dashes.
_DAY_DIGITS = 8
_NO_SOURCE = "the source is no reader of this installation (docs/formats.md lists them)"

#: Consent after reading: one row a user or a whole source.
CONSENT = pl.Schema({"user_id": pl.String, "tenant": pl.String, "source": pl.String, "status": pl.String,
                     "legal_basis": pl.String})  # fmt: skip


def load_assignments(path: str, plan: MaskPlan) -> pl.DataFrame:
    """The assignment ledger with tokens in place of ids.

    Args:
        path: CSV, JSON lines or Parquet; empty for none.
        plan: Makes the tokens.

    Returns:
        Rows of ``evalpipe.signals.ledger.LEDGER``.

    Raises:
        EvalpipeError: ``LEDGER_INVALID`` with the row and what is wrong. One wrong row refuses the
            whole ledger: an assignment that is left out would bias what is computed from the rest.
    """
    if not path:
        return empty_ledger()
    said = enumerate(_rows(path, _ASSIGNMENT_COLUMNS), 1)
    rows = [one for n, row in said for one in _assignment(row, f"{path}, row {n}", plan)]
    return with_epochs(pl.DataFrame(rows, schema=LEDGER, orient="row"))


def unmatched(path: str, plan: MaskPlan, sessions: pl.DataFrame) -> dict[str, int]:
    """Rows of the assignment ledger that name a unit of which there is no session.

    Such a row says nothing, and so its unit counts as one that nobody assigned: a misspelt id, a row that
    lacks the tenant that the log names, or a unit that has not come yet.

    Args:
        path: The ledger, which :func:`load_assignments` can read.
        plan: Makes the tokens.
        sessions: ``session_id`` and ``user_id`` of all masked sessions.

    Returns:
        Number of rows by unit, for units with any.
    """
    known = {unit: frozenset(sessions[column].drop_nulls()) for unit, column in UNIT_COLUMN.items()}
    # A user has a token by each spelling that slices may hold; one of them is enough.
    named = (row for row in _rows(path, _ASSIGNMENT_COLUMNS) if row["unit_id"] is not None)
    return dict(Counter(row["unit"] for row in named if known[row["unit"]].isdisjoint(_tokens(row, plan))))


def load_consent(path: str) -> pl.DataFrame:
    """The consent ledger; ids are as logged and stay in memory.

    Args:
        path: CSV, JSON lines or Parquet; empty for none.

    Returns:
        Rows of ``CONSENT``.

    Raises:
        EvalpipeError: ``LEDGER_INVALID`` with the row and what is wrong.
    """
    if not path:
        return pl.DataFrame(schema=CONSENT)
    rows = []
    for number, row in enumerate(_rows(path, _CONSENT_COLUMNS), 1):
        where = f"{path}, row {number}"
        for name, value in row.items():
            if value is not None and (type(value) is not str or value != value.strip()):
                raise EvalpipeError("LEDGER_INVALID", f"{name} must be text without outer blanks", where=where)
        if row["status"] not in STATUSES:
            raise EvalpipeError("LEDGER_INVALID", f"status must be one of {', '.join(STATUSES)}", where=where)
        if (row["user_id"] is None) == (row["source"] is None):
            raise EvalpipeError("LEDGER_INVALID", "either user_id or source must be given", where=where)
        if row["source"] is not None and row["source"] not in reader_versions():
            raise EvalpipeError("LEDGER_INVALID", _NO_SOURCE, where=where)
        rows.append(tuple(row[name] for name in CONSENT))
    return pl.DataFrame(rows, schema=CONSENT, orient="row")


def _rows(path: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    file = Path(path)
    try:
        if file.suffix.lower() == ".parquet":
            frame = pl.read_parquet(file)
        elif file.suffix.lower() in (".jsonl", ".ndjson"):
            frame = pl.read_ndjson(file, infer_schema_length=None)
        elif file.suffix.lower() == ".csv":
            frame = pl.read_csv(file, infer_schema=False)
        else:
            raise EvalpipeError("LEDGER_INVALID", "it must end in .csv, .jsonl or .parquet", where=path)
    except (OSError, pl.exceptions.PolarsError) as error:
        # A library's message may quote the row.
        raise EvalpipeError("LEDGER_INVALID", f"it cannot be read ({type(error).__name__})", where=path) from None
    unknown = sorted(set(frame.columns) - set(columns))
    if unknown:
        what = f"column {unknown[0]} is unknown; known are {', '.join(columns)}"
        raise EvalpipeError("LEDGER_INVALID", what, where=path)
    missing = [name for name in columns if name not in frame.columns]
    # Ids are often whole numbers, and are text in the logs.
    frame = frame.with_columns(pl.col(pl.Int64, pl.Int32).cast(pl.String)).with_columns(
        pl.lit(None).alias(name) for name in missing
    )
    return [
        {name: None if value == "" else value for name, value in row.items()} for row in frame.iter_rows(named=True)
    ]


def _assignment(row: dict[str, Any], where: str, plan: MaskPlan) -> list[tuple[Any, ...]]:
    texts = ("policy", "unit", "unit_id", "tenant", "source", *VERSION_COLUMNS, "epoch")
    start, end, probability = _time(row["starts_at"]), _time(row["ends_at"]), _probability(row["probability"])
    is_arm = row["unit_id"] is None
    faults = (
        *(
            (row[name] is not None and (type(row[name]) is not str or row[name] != row[name].strip()),
             f"{name} must be text without outer blanks")
            for name in texts
        ),
        (not row["policy"], "policy is missing"),
        (row["unit"] not in UNITS, f"unit must be one of {', '.join(UNITS)}"),
        (start is None, "starts_at must be a day or an ISO time"),
        (row["ends_at"] is not None and (end is None or (start is not None and end <= start)),
         "ends_at must be a time after starts_at"),
        (row["probability"] is not None and probability is None, "probability must lie between 0 and 1"),
        (is_arm and not any(row[name] for name in VERSION_COLUMNS),
         "a row without unit_id is an arm and must name agent, agent_release or model"),
        (not is_arm and row["unit"] == "session" and row["source"] is None and ":" not in str(row["unit_id"]),
         "a session needs its source, such as claude_code"),
        (not is_arm and row["unit"] == "session" and _source(row) not in reader_versions(), _NO_SOURCE),
    )  # fmt: skip
    fault = next((what for is_wrong, what in faults if is_wrong), None)
    if fault is not None or start is None:
        raise EvalpipeError("LEDGER_INVALID", fault or "", where=where)
    labels = [plan.mask_text(row[name], "")[0] if row[name] else None for name in VERSION_COLUMNS]
    rest = (*labels, probability, start, end, row["epoch"] or None)
    return [(row["policy"], row["unit"], token, *rest) for token in _tokens(row, plan)]


def _tokens(row: dict[str, Any], plan: MaskPlan) -> list[str] | list[None]:
    """The tokens that masked tables hold in place of the unit's id, those of older slices too."""
    if row["unit_id"] is None:
        return [None]
    if row["unit"] == "user":
        return plan.users(row["unit_id"], row["tenant"] or "")
    # The id as the lake holds it has its source in front, and may be given so beside the source too.
    return [plan.rekey("s", f"{_source(row)}:{str(row['unit_id']).removeprefix(f'{_source(row)}:')}")]


def _source(row: dict[str, Any]) -> str:
    """Source of a session unit: its own column, else what stands before the colon."""
    return row["source"] or str(row["unit_id"]).partition(":")[0]


def _time(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if not isinstance(value, str):
        return None
    if value.isdigit() and len(value) != _DAY_DIGITS:
        return None  # a count of seconds or milliseconds would be read as a day in some other century
    try:
        return _time(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None


def _probability(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else -1.0
    except ValueError:
        return None
    return number if 0.0 <= number <= 1.0 else None
