"""Damaged files through a whole home: landing, raw, masked, signals, outcomes.

Belongs here: what must hold of a home whatever lay in the folder. Does not belong here: what must hold
of reading one file (``judge.py``): that is asked of many more inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from evalpipe import sources
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.land import land
from evalpipe_tests.fuzz.campaign import family_of
from evalpipe_tests.fuzz.inputs import make as make_input
from evalpipe_tests.fuzz.judge import MARKER, WrongError, scratch
from evalpipe_tests.steps.world import DAY, make, opened, rows

_PAIRS = (("raw.files", "masked.files"), ("raw.sessions", "masked.sessions"), ("raw.steps", "masked.steps"))


def write(numbers: Sequence[int], folder: Path) -> list[Path]:
    """The inputs of the numbers as files, each in a folder of its own since names repeat."""
    paths = []
    for number in numbers:
        made = make_input(number, family_of(number))
        path = folder / str(number) / made.name
        path.parent.mkdir(parents=True)
        path.write_bytes(made.data)
        paths.append(path)
    return paths


def check_home(paths: Sequence[Path], home: Path) -> None:
    """Land files into a new home and make all its day steps.

    Raises:
        WrongError: Something does not hold; its text names it.
        EvalpipeError: Landing stopped.
    """
    with opened(home) as context:
        digests = {sources.fingerprint(path).digest for path in paths}
        landed = land(context, paths, undated_as=DAY)
        if landed.n_new_files != len(digests):
            raise WrongError("files were found that are not those there")
        if land(context, paths, undated_as=DAY).n_new_files:
            raise WrongError("a file that was landed counts as new")
        for step, result in make(context).items():
            for error in result.red.values():
                raise WrongError(f"{step} refused a day: {error}")
        if set(rows(context, "raw.files")["file_id"]) != digests:
            raise WrongError("a file without its balance")
        for before, after in _PAIRS:
            if rows(context, before).height != rows(context, after).height:
                raise WrongError(f"rows of {before} are not those of {after}")
        quarantine = rows(context, "masked.quarantine").drop("session_id")
        if MARKER in str(quarantine.to_dicts()):
            raise WrongError("text of a log in masked.quarantine")


def find_fault(numbers: Sequence[int]) -> tuple[str, list[int]]:
    """What is wrong with a home of these inputs, and the fewest of them that halving finds.

    Returns:
        The fault, empty if there is none, and the numbers.
    """
    fault = _fault(numbers)
    found = list(numbers)
    while fault and len(found) > 1:
        half = len(found) // 2
        part = next((part for part in (found[:half], found[half:]) if _fault(part)), None)
        if part is None:
            break
        found = part
    return (_fault(found), found) if fault else ("", [])


def _fault(numbers: Sequence[int]) -> str:
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        try:
            check_home(write(numbers, Path(folder, "logs")), Path(folder, "home"))
        except (EvalpipeError, WrongError) as error:
            return f"{type(error).__name__}: {error}"
    return ""
