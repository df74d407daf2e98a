"""Settings: ``evalpipe.toml`` and the environment become one typed object.

Belongs here: what a person who runs evalpipe may set, and where a home's files lie. Does not belong
here: what decides a number (criteria) or secrets (the masking key is a file of its own, or comes
from the environment, and is never a setting).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tiers import Tiers

#: Layout of a home; ``home.json`` holds it, so that no later version misreads an old home.
HOME_LAYOUT = 3
SETTINGS_FILE = "evalpipe.toml"
ENV_PREFIX = "EVALPIPE_"
_MEMORY = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})? ?([KMGT]i?)?B", re.IGNORECASE)


_DEFAULT_CRITERIA = "default"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may set.

    Attributes:
        home: Folder of lake, warehouse, reports and Dagster's own files.
        sources: Files, folders, patterns and prefixes of buckets that the nightly job reads.
        criteria: Name of a criteria file in ``data/criteria``, or a path.
        prices: Price table of models in place of the shipped one; empty for that.
        assignments: Assignment ledger (CSV, JSON lines or Parquet); empty for none.
        consent: Consent ledger, likewise.
        tiers: What of sessions is stored, by source (``contracts/tiers.py``).
        ner: Model that looks for names in prose behind the rules, such as ``spacy:en_core_web_sm``; empty for none.
        labels: Files of labelled turns that a borderline classifier is trained on; the shipped corpus where empty.
        retention: File of periods after which text expires, in place of the shipped one; empty for that.
        first_day: First UTC day of the home; fixed when the home is made.
        workers: Processes that parse, mask and extract.
        batch_bytes: Input that one landing batch holds at most; bounds memory.
        part_bytes: Text that one part of a slice holds at most; bounds memory.
        max_record_bytes: Larger records are quarantined.
        max_session_bytes: Sessions that were logged in more bytes are quarantined; bounds memory.
        duckdb_memory: Memory that building the warehouse may take.
    """

    home: Path = Path(".evalpipe")
    sources: tuple[str, ...] = ()
    criteria: str = _DEFAULT_CRITERIA
    prices: str = ""
    assignments: str = ""
    consent: str = ""
    tiers: Tiers = field(default_factory=Tiers)
    ner: str = ""
    labels: tuple[str, ...] = ()
    retention: str = ""
    first_day: date = date(2023, 1, 1)
    workers: int = 2
    batch_bytes: int = 32_000_000
    part_bytes: int = 12_000_000
    max_record_bytes: int = 64_000_000
    max_session_bytes: int = 128_000_000
    duckdb_memory: str = "512MB"

    @property
    def criteria_option(self) -> str:
        """What a command that is named to a person needs to mean these criteria, with a space before it."""
        return "" if self.criteria == _DEFAULT_CRITERIA else f" --criteria {shlex.quote(self.criteria)}"

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

    @property
    def tombstones(self) -> Path:
        """Tags of everyone who was erased; it names nobody."""
        return self.home / "tombstones.json"

    @property
    def erasure_record(self) -> Path:
        """What an erasure that was begun takes away; it is there until all of it is gone."""
        return self.lake / "raw" / "_erasure.json"

    @property
    def tombstone_key_file(self) -> Path:
        """The key of those tags, unless the environment gives it."""
        return self.home / "tombstone.key"


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
        except UnicodeDecodeError as error:
            what = f"the file is not UTF-8 at byte {error.start}"
            raise EvalpipeError("SETTINGS_INVALID", what, where=str(path), fix="Save it as UTF-8.") from None
        except tomllib.TOMLDecodeError as error:
            raise EvalpipeError("SETTINGS_INVALID", str(error), where=str(path)) from None
        except OSError as error:
            raise EvalpipeError("FILE_FAILED", error.strerror or type(error).__name__, where=str(path)) from None
    names = {item.name for item in fields(Settings)}
    for name in names:
        if (text := environ.get(ENV_PREFIX + name.upper())) is not None:
            values[name] = text
    values |= {name: value for name, value in overrides.items() if value is not None}
    unknown = sorted(set(values) - names)
    if unknown:
        raise EvalpipeError("SETTINGS_INVALID", f"unknown key; known are {sorted(names)}", where=unknown[0])
    settings = Settings(**{name: _typed(name, value) for name, value in values.items()})
    return replace(
        settings,
        home=_placed(folder, settings.home, "home"),
        prices=_named(folder, settings.prices, "prices"),
        assignments=_named(folder, settings.assignments, "assignments"),
        consent=_named(folder, settings.consent, "consent"),
        retention=_named(folder, settings.retention, "retention"),
    )


def _named(folder: Path, file: str, name: str) -> str:
    return str(_placed(folder, Path(file), name)) if file else ""


def _placed(folder: Path, path: Path, name: str) -> Path:
    """A path of a setting, relative to the folder of ``evalpipe.toml``."""
    try:
        return (folder / path.expanduser()).resolve()
    except RuntimeError:
        raise EvalpipeError("SETTINGS_INVALID", "no user of that name", where=f"{name} {path}") from None


def _typed(name: str, value: object) -> Any:
    default = getattr(Settings(), name)
    try:
        if isinstance(default, Tiers):
            return Tiers.parse(value)
        if isinstance(default, tuple):
            if isinstance(value, str):
                return _split(value)
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                return tuple(value)
            raise ValueError("must be a list of strings")
        if isinstance(default, Path) and isinstance(value, (str, Path)) and str(value):
            return Path(value)
        if isinstance(default, date):
            return _day(value)
        if isinstance(default, int):
            return _count(value)
        if not isinstance(value, str) or not value:
            raise ValueError("must be a text")
        if name == "duckdb_memory" and not (_MEMORY.fullmatch(value) and value.strip("0. ")[:1].isdigit()):
            raise ValueError("must be a size such as 512MB or 2GB")
        return value
    except ValueError as error:
        raise EvalpipeError("SETTINGS_INVALID", str(error), where=name) from None


def _split(text: str) -> tuple[str, ...]:
    """Sources in one variable of the environment, between the separators of the system's paths.

    A colon in ``s3://``, or in the address of an endpoint in a query, separates nothing.
    """
    found: list[str] = []
    for part in text.split(os.pathsep):
        last = found[-1] if found else ""
        is_scheme = part.startswith("//") and re.search(r"(^s3|=https?)$", last) is not None
        is_port = re.search(r"[?&]endpoint=[^&]+$", last) is not None and re.match(r"\d+(/|&|$)", part) is not None
        if is_scheme or is_port:
            found[-1] += os.pathsep + part
        elif part:
            found.append(part)
    return tuple(found)


def _day(value: object) -> date:
    # A TOML datetime is a date to Python, and would write a home that nothing can open.
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("must be a day, written YYYY-MM-DD without a time") from None


def _count(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value)
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ValueError("must be a whole number, at least 1")
    return int(text)


def is_home(folder: Path) -> bool:
    """Whether a folder is a home."""
    return (folder / "home.json").is_file()


def require_home(settings: Settings) -> Settings:
    """Check that a home exists, for what only reads: reading makes nothing.

    Args:
        settings: Settings as loaded.

    Returns:
        The same settings.

    Raises:
        EvalpipeError: ``NO_HOME``.
    """
    if not is_home(settings.home):
        where = settings.home
        what = (
            "nothing is there."
            if not where.exists()
            else "the folder was not made by evalpipe."
            if where.is_dir()
            else "it is a file, not a folder."
        )
        raise EvalpipeError("NO_HOME", what, where=str(where))
    return settings


def open_home(settings: Settings) -> Settings:
    """Make the home if it is new, or check that it fits, and return settings that agree with it.

    Args:
        settings: Settings as loaded.

    Returns:
        Settings with the ``first_day`` that the home was made with.

    Raises:
        EvalpipeError: ``HOME_INCOMPATIBLE`` for another layout, ``HOME_DAMAGED`` where
            ``home.json`` cannot be read, ``HOME_UNUSABLE`` where no home can be made.
    """
    if is_home(settings.home):
        return replace(settings, first_day=_first_day_of(settings))
    try:
        _make_home(settings)
    except OSError as error:
        what = f"{error.strerror or type(error).__name__}."
        raise EvalpipeError("HOME_UNUSABLE", what, where=str(error.filename or settings.home)) from None
    return replace(settings, first_day=_first_day_of(settings))


def _first_day_of(settings: Settings) -> date:
    home = settings.home
    try:
        found = json.loads((home / "home.json").read_text("utf-8"))
        layout, first_day = found["layout"], date.fromisoformat(found["first_day"])
    except OSError as error:
        raise EvalpipeError("HOME_UNUSABLE", f"{error.strerror}.", where=str(error.filename)) from None
    except (ValueError, KeyError, TypeError):
        form = json.dumps({"layout": HOME_LAYOUT, "first_day": settings.first_day.isoformat()})
        fix = f"Restore it, or write {form} into it, with the first_day that the home was made with."
        where = str(home / "home.json")
        raise EvalpipeError("HOME_DAMAGED", "it does not say what home this is.", where=where, fix=fix) from None
    if layout != HOME_LAYOUT:
        raise EvalpipeError("HOME_INCOMPATIBLE", f"layout {layout}, not {HOME_LAYOUT}", where=str(home))
    return first_day


def _make_home(settings: Settings) -> None:
    home = settings.home
    home.mkdir(parents=True, exist_ok=True)
    # Dagster's history names source paths, and masked text is still personal data.
    home.chmod(0o700)
    # A home lies in a working folder by default, and must not be committed with the code there. A
    # folder that is itself a checkout keeps its own rules.
    ignore = home / ".gitignore"
    if not ignore.exists() and not (home / ".git").exists():
        ignore.write_text("*\n", "utf-8")
    # A link is atomic and keeps the first of two processes that make the home at once.
    draft = home / f".home.{os.getpid()}"
    try:
        draft.write_text(json.dumps({"layout": HOME_LAYOUT, "first_day": settings.first_day.isoformat()}), "utf-8")
        with suppress(FileExistsError):
            os.link(draft, home / "home.json")
    finally:
        draft.unlink(missing_ok=True)


def peek_first_day(settings: Settings) -> date:
    """First day of the home, without making a home that does not exist yet."""
    return open_home(settings).first_day if is_home(settings.home) else settings.first_day
