"""Settings: ``evalpipe.toml`` and the environment become one typed object.

Belongs here: what a person who runs evalpipe may set, and where a home's files lie. Does not belong
here: what decides a number (criteria) or secrets (the masking key is a file of its own, or comes
from the environment, and is never a setting).
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError

#: Layout of a home; ``home.json`` holds it, so that no later version misreads an old home.
HOME_LAYOUT = 2
SETTINGS_FILE = "evalpipe.toml"
ENV_PREFIX = "EVALPIPE_"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may set.

    Attributes:
        home: Folder of lake, warehouse, reports and Dagster's own files.
        sources: Files or folders that the nightly job reads.
        criteria: Name of a criteria file in ``data/criteria``, or a path.
        first_day: First UTC day of the home; fixed when the home is made.
        workers: Processes that parse, mask and extract.
        batch_bytes: Input that one landing batch holds at most; bounds memory.
        part_bytes: Text that one part of a slice holds at most; bounds memory.
        max_record_bytes: Larger records are quarantined.
        duckdb_memory: Memory that building the warehouse may take.
    """

    home: Path = Path(".evalpipe")
    sources: tuple[str, ...] = ()
    criteria: str = "default"
    first_day: date = date(2023, 1, 1)
    workers: int = 2
    batch_bytes: int = 32_000_000
    part_bytes: int = 12_000_000
    max_record_bytes: int = 64_000_000
    duckdb_memory: str = "512MB"

    # ---- places in the home

    @property
    def lake(self) -> Path:
        """Parquet slices."""
        return self.home / "lake"

    @property
    def landing(self) -> Path:
        """Parsed input, waiting by day."""
        return self.lake / "raw" / "_landing"

    @property
    def warehouse(self) -> Path:
        """The published DuckDB file."""
        return self.home / "warehouse.duckdb"

    @property
    def reports(self) -> Path:
        """Rendered reports."""
        return self.home / "reports"

    @property
    def dagster_home(self) -> Path:
        """Dagster's run history."""
        return self.home / "dagster"

    @property
    def key_file(self) -> Path:
        """The masking key, unless the environment gives it."""
        return self.home / "masking.key"


def load(*, folder: Path | None = None, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Read settings: defaults, then ``evalpipe.toml``, then ``EVALPIPE_*``, then arguments.

    Args:
        folder: Where ``evalpipe.toml`` is looked for; the working folder by default.
        environ: Environment; the process's own by default.
        **overrides: Values that win over everything, ``None`` meaning not given.

    Returns:
        Settings with an absolute home.

    Raises:
        EvalpipeError: ``SETTINGS_INVALID`` for an unknown key or a value of another type.
    """
    folder = folder or Path.cwd()
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    path = folder / SETTINGS_FILE
    if path.is_file():
        try:
            values |= tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise EvalpipeError("SETTINGS_INVALID", str(error), where=str(path)) from None
    names = {item.name for item in fields(Settings)}
    for name in names:
        if (text := environ.get(ENV_PREFIX + name.upper())) is not None:
            values[name] = text
    values |= {name: value for name, value in overrides.items() if value is not None}
    unknown = sorted(set(values) - names)
    if unknown:
        raise EvalpipeError("SETTINGS_INVALID", f"unknown key; known are {sorted(names)}", where=unknown[0])
    settings = Settings(**{name: _typed(name, value) for name, value in values.items()})
    home = settings.home.expanduser()
    return replace(settings, home=(home if home.is_absolute() else folder / home).resolve())


def _typed(name: str, value: object) -> Any:
    default = getattr(Settings(), name)
    try:
        if isinstance(default, tuple):
            if isinstance(value, str):
                return tuple(part for part in value.split(os.pathsep) if part)
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                return tuple(value)
            raise ValueError("must be a list of strings")
        if isinstance(default, Path):
            return Path(str(value))
        if isinstance(default, date):
            return value if isinstance(value, date) else date.fromisoformat(str(value))
        if isinstance(default, int):
            number = int(str(value))
            if number < 1:
                raise ValueError("must be at least 1")
            return number
        return str(value)
    except ValueError as error:
        raise EvalpipeError("SETTINGS_INVALID", str(error), where=name) from None


def open_home(settings: Settings) -> Settings:
    """Make the home if it is new, or check that it fits, and return settings that agree with it.

    Args:
        settings: Settings as loaded.

    Returns:
        Settings with the ``first_day`` that the home was made with.

    Raises:
        EvalpipeError: ``HOME_INCOMPATIBLE`` for another layout, ``HOME_DAMAGED`` where ``home.json``
            cannot be read.
    """
    marker = settings.home / "home.json"
    if marker.is_file():
        try:
            found = json.loads(marker.read_text("utf-8"))
            layout, first_day = int(found["layout"]), date.fromisoformat(found["first_day"])
        except (ValueError, KeyError, TypeError):
            form = json.dumps({"layout": HOME_LAYOUT, "first_day": settings.first_day.isoformat()})
            fix = f"Restore it, or write {form} into it, with the first_day that the home was made with."
            raise EvalpipeError(
                "HOME_DAMAGED", "it does not say what home this is.", where=str(marker), fix=fix
            ) from None
        if layout != HOME_LAYOUT:
            raise EvalpipeError("HOME_INCOMPATIBLE", f"layout {layout}, not {HOME_LAYOUT}", where=str(settings.home))
        return replace(settings, first_day=first_day)
    settings.home.mkdir(parents=True, exist_ok=True)
    # Dagster's history names source paths, and masked text is still personal data.
    settings.home.chmod(0o700)
    # A link is atomic and keeps the first of two processes that make the home at once.
    draft = settings.home / f".home.{os.getpid()}"
    draft.write_text(json.dumps({"layout": HOME_LAYOUT, "first_day": settings.first_day.isoformat()}), "utf-8")
    try:
        os.link(draft, marker)
    except FileExistsError:
        draft.unlink()
        return open_home(settings)
    draft.unlink()
    return settings


def peek_first_day(settings: Settings) -> date:
    """First day of the home, without making a home that does not exist yet."""
    marker = settings.home / "home.json"
    return open_home(settings).first_day if marker.is_file() else settings.first_day
