"""What every verb does around its work: errors to exit codes, jobs with progress, names as typed.

Belongs here: the frame of a verb. Does not belong here: verbs and their options (``cli.py``).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from evalpipe.console import arguments, show
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import Settings

#: As a shell reports a program that a signal ended.
INTERRUPTED = 130
PIPE_CLOSED = 141
#: Versions that are listed where one is not found; a home may hold hundreds.
_LISTED = 30


@contextmanager
def handled(*, as_json: bool, debug: bool) -> Iterator[None]:
    """Turn an error into one line and its exit code; ``--debug`` adds the traceback and changes no code."""
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        show.note("Interrupted. What was committed stays; run again to go on.")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of a pipe went away, as `| head` does; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, a person gets one line and a code
        if debug:
            traceback.print_exc()
        known = known_error(error)
        show.show_error(known, as_json=as_json)
        raise typer.Exit(known.exit) from None


def known_error(error: Exception) -> EvalpipeError:
    """An error with a code. The message of one that nobody foresaw is left out: it may quote a log."""
    if isinstance(error, EvalpipeError):
        return error
    if isinstance(error, OSError) and error.strerror:
        is_gone = isinstance(error, FileNotFoundError)
        fix = "Nothing is there under that name: check its spelling, and that its folder exists." if is_gone else ""
        return EvalpipeError("FILE_FAILED", f"{error.strerror}.", where=str(error.filename or ""), fix=fix)
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if "evalpipe" in Path(frame.filename).parts), frames[-1])
    where = f"{Path(last.filename).name}:{last.lineno}"
    return EvalpipeError("INTERNAL_ERROR", f"{type(error).__name__} was raised.", where=where)


@contextmanager
def running(settings: Settings, *, debug: bool) -> Iterator[Any]:
    """Jobs of a home, with progress on the terminal."""
    from evalpipe.console.progress import Bars
    from evalpipe.orchestration.runner import open_runner
    from evalpipe.steps.progress import showing

    with Bars() as bars, showing(bars), open_runner(settings, verbosity="DEBUG" if debug else "CRITICAL") as made:
        yield made


def version_in(text: str, known: list[str]) -> str:
    """The label that a version was typed for, told where it is another text."""
    try:
        found = arguments.version(text, known)
    except EvalpipeError as error:
        if error.code == "UNKNOWN_VERSION":
            show.note("Versions of this analysis:")
            for label in known[:_LISTED]:
                show.note(f"  {label}")
            if len(known) > _LISTED:
                show.note(f"  and {len(known) - _LISTED} more: evalpipe sql 'from analysis.leaderboard'")
        raise
    if found != text:
        show.note(f"'{text}' is read as '{found}'")
    return found
