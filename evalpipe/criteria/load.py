"""Reading criteria: by name from a folder, or by path, into the typed form.

Belongs here: finding and parsing the file. Does not belong here: rules of validity
(``criteria/validate.py``).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from evalpipe.contracts import signals
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.model import (
    Criteria,
    EstimandCriteria,
    ExtractionCriteria,
    GateCriterion,
    MaskingCriteria,
    OutcomesCriteria,
    Sampling,
    TaskType,
)
from evalpipe.criteria.rules import nearest
from evalpipe.criteria.validate import problems
from evalpipe.locations import data_dir

_SUFFIX = ".toml"


def available(directory: Path | None = None) -> list[str]:
    """Names of the criteria files in a folder, sorted.

    Args:
        directory: Folder to look in; the shipped one if not given.
    """
    return sorted(path.stem for path in _folder(directory).glob(f"*{_SUFFIX}"))


def load(name_or_path: str | Path, *, extractors: str, directory: Path | None = None) -> Criteria:
    """Read and check one criteria file.

    Args:
        name_or_path: A name (``default``), or the path of a ``.toml`` file.
        extractors: Digest of the extractors that are in force; part of the measurement.
        directory: Folder in which names are looked up; the shipped one if not given.

    Returns:
        The typed criteria. Numbers are normalised (``1`` and ``1.0`` hash alike) and a signal
        without a weight has weight 0, so that only a change of meaning changes a hash.

    Raises:
        EvalpipeError: ``CRITERIA_NOT_FOUND``, or ``CRITERIA_INVALID`` with ``file: key``.
    """
    path, shown, must_match = _locate(name_or_path, directory)
    data = _parse(path, shown)
    found = problems(data)
    if found:
        first, rest = found[0], sorted({problem.key for problem in found[1:]} - {found[0].key})
        more = f" Also wrong: {', '.join(rest)}." if rest else ""
        raise _invalid(f"{first.what}{more}", f"{shown}: {first.key}", first.fix)
    if must_match and data["name"] != path.stem:
        # Two files that call themselves alike could not be told apart in the tables.
        what, fix = f"{data['name']!r} is not the name of its file.", f'Write name = "{path.stem}".'
        raise _invalid(what, f"{shown}: name", fix)
    return build(data, extractors=extractors)


def build(data: Mapping[str, Any], *, extractors: str) -> Criteria:
    """The typed form of valid, parsed criteria.

    Args:
        data: Parsed TOML for which :func:`~evalpipe.criteria.validate.problems` is empty.
        extractors: Digest of the extractors that are in force.
    """
    scored = {signal.name: 0.0 for signal in signals.SIGNALS if signal.polarity}
    outcomes = _fields(OutcomesCriteria, data["outcomes"])
    outcomes["weights"] = scored | {k: v for k, v in outcomes["weights"].items() if k in scored}
    return Criteria(
        name=data["name"],
        version=data["version"],
        description=data.get("description", ""),
        masking=MaskingCriteria(**_fields(MaskingCriteria, data["masking"])),
        extraction=_extraction(data["extraction"]),
        outcomes=OutcomesCriteria(**outcomes),
        estimand=_estimand(data["estimand"]),
        gates=tuple(GateCriterion(**_fields(GateCriterion, gate)) for gate in data.get("gates", [])),
        extractors=extractors,
    )


def _extraction(values: Mapping[str, Any]) -> ExtractionCriteria:
    types = [
        TaskType(**{key: _normal(None, item) for key, item in row.items()}) for row in values.get("task_types", [])
    ]
    return ExtractionCriteria(**_fields(ExtractionCriteria, {**values, "task_types": types}))


def _estimand(values: Mapping[str, Any]) -> EstimandCriteria:
    rules = [
        Sampling(**{key: _normal(get_type_hints(Sampling)[key], item) for key, item in row.items()})
        for row in values.get("sampling", [])
    ]
    return EstimandCriteria(**_fields(EstimandCriteria, {**values, "sampling": rules}))


def _fields(model: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _normal(kind, values[key]) for key, kind in get_type_hints(model).items() if key in values}


def _normal(kind: object, value: Any) -> Any:
    if kind is float:
        return float(value)
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return {key: float(item) for key, item in value.items()}
    return value


def _folder(directory: Path | None) -> Path:
    return directory if directory is not None else data_dir() / "criteria"


def _locate(name_or_path: str | Path, directory: Path | None) -> tuple[Path, str, bool]:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(_SUFFIX) or os.sep in text:
        path = Path(name_or_path)
        if not path.is_file():
            raise EvalpipeError("CRITERIA_NOT_FOUND", "There is no such file.", where=text)
        return path, text, False
    known = available(directory)
    if text not in known:
        raise EvalpipeError("CRITERIA_NOT_FOUND", nearest(text, known), where=text)
    path = _folder(directory) / f"{text}{_SUFFIX}"
    return path, path.name, True


def _parse(path: Path, shown: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fix = "Mend the TOML: strings need quotes, and a key stands once."
        raise _invalid(f"The file is not TOML: {error}.", shown, fix) from error


def _invalid(what: str, where: str, fix: str) -> EvalpipeError:
    return EvalpipeError("CRITERIA_INVALID", what, where=where, fix=fix)
