"""What passes between a command and its run without passing through Dagster's history.

Belongs here: errors with their code on the way out of a step, and source paths on the way in. Dagster
keeps what it is given: run configuration, metadata and error text. A path names people and a message
of a library quotes values, so a run gets a label for its paths, and an error leaves a step as its
code, place and fix.
"""

from __future__ import annotations

import re
import secrets
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import dagster as dg

import evalpipe
from evalpipe.contracts.errors import ERROR_CODES, EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.store.manifest import STEP_LAYERS, STEP_TABLES

_SOURCES: dict[str, tuple[str | Path, ...]] = {}
_PLACES: dict[str, str] = {}

#: Errors whose place is a path of a source, whatever it looks like.
_NAMES_A_SOURCE = ("SOURCE_NOT_FOUND", "SOURCE_DENIED", "SOURCE_UNREACHABLE", "BAD_ARGUMENT")
#: Words of places that this program makes: tables, steps, layers, and what stands around a day.
_WORDS = frozenset({*TABLES, *STEP_TABLES, *STEP_LAYERS.values(), "day", "window", "all", "of", "manifest"})
_NUMBER = re.compile(r"(?:day=)?\d{4}-\d\d-\d\d|[xmw]=[0-9a-z]{1,64}|\d{1,4}d")
_OPTION = re.compile(r"--[a-z]+(?:-[a-z]+)*|EVALPIPE_[A-Z_]+")
_LINE = re.compile(r"(\w+\.py):\d+")


def keep_sources(sources: Sequence[str | Path]) -> str:
    """Keep sources in this process; returns the label that a run names them by, which says nothing."""
    label = secrets.token_hex(8)
    _SOURCES[label] = tuple(sources)
    return label


def kept_sources(label: str) -> tuple[str | Path, ...]:
    """Source paths by their label.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for a label that another process kept, as when a run of the
            command line is started again from the UI.
    """
    if label not in _SOURCES:
        raise EvalpipeError(
            "BAD_ARGUMENT",
            "the source paths of that run are not kept",
            where="sources",
            fix="Run the command again, or name sources in evalpipe.toml and leave the option empty.",
        )
    return _SOURCES[label]


@contextmanager
def coded() -> Iterator[None]:
    """Let an error leave a step as :class:`dagster.Failure` with code, place and fix, and no more."""
    try:
        yield
    except (dg.Failure, dg.DagsterError):
        raise
    except EvalpipeError as error:
        raise failure(error) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, its message may quote a value
        raise failure(unforeseen(error), "".join(traceback.format_tb(error.__traceback__))) from None


def unforeseen(error: Exception) -> EvalpipeError:
    """An exception without a code, as class and place; its message may quote a value."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "evalpipe" in Path(frame.filename).parts] or frames[-1:]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return EvalpipeError("RUN_FAILED", f"a step raised {type(error).__name__}", where=place)


def is_of_the_house(where: str) -> bool:
    """Whether a place is made of this program's own words, dates and digests, so that it can name nobody.

    Args:
        where: Place of an error: a table, a slice, an option, a line of our code. Not so are paths, names of
            files and keys of settings that somebody chose.
    """
    if _OPTION.fullmatch(where):
        return True
    line = _LINE.fullmatch(where)
    if line:
        return line[1] in _modules()
    return all(word in _WORDS or _NUMBER.fullmatch(word) for word in re.split(r"[ /,:]+", where) if word)


@cache
def _modules() -> frozenset[str]:
    return frozenset(path.name for path in Path(evalpipe.__file__).parent.rglob("*.py"))


def failure(error: EvalpipeError, frames: str = "") -> dg.Failure:
    """The failure that carries an error through Dagster."""
    metadata = {"code": error.code, "what": error.what, "where": error.where, "fix": error.fix}
    if error.code in _NAMES_A_SOURCE or not is_of_the_house(error.where):
        # A command in this process may say where; the history gets a label that says nothing.
        metadata["where"], metadata["place"] = "", secrets.token_hex(8)
        _PLACES[metadata["place"]] = error.where
    if frames:
        metadata["frames"] = frames
    return dg.Failure(description=f"{error.code}: {error.what}", metadata=metadata, allow_retries=False)


def carried(event: dg.DagsterEvent) -> EvalpipeError:
    """The error that a failed step carries, or ``RUN_FAILED`` with the class of one that carries none."""
    data = event.step_failure_data
    if data.user_failure_data is not None:
        found = {name: value.value for name, value in data.user_failure_data.metadata.items()}
        if str(found.get("code")) in ERROR_CODES:
            what, where, fix = (str(found.get(name) or "") for name in ("what", "where", "fix"))
            where = where or _PLACES.get(str(found.get("place")), "") or str(event.step_key)
            return EvalpipeError(str(found["code"]), what, where=where, fix=fix)
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return EvalpipeError(
        "RUN_FAILED", (error.cls_name if error else None) or "a step failed", where=str(event.step_key)
    )
