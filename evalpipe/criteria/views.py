"""Views of boards: declared, versioned weights that add signals up to one number.

Belongs here: reading and checking a view. Does not belong here: what it makes of a board
(``analysis/board.py``). A view is no criteria: it scores no session, and nothing of a home rests on it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir

_SUFFIX = ".toml"
_KEYS = {"name", "version", "description", "headline", "weights"}


@dataclass(frozen=True, slots=True)
class View:
    """How signals are added up.

    Attributes:
        name, version, description: What a reader is told.
        headline: Column of the published number.
        weights: Weight by column; negative where lower is better.
    """

    name: str
    version: str
    description: str
    headline: str
    weights: Mapping[str, float]


def views() -> list[str]:
    """Names of the shipped views, sorted."""
    return sorted(path.stem for path in _folder().glob(f"*{_SUFFIX}"))


def load_view(name_or_path: str) -> View:
    """Read a view by name, or from a ``.toml`` file.

    Raises:
        EvalpipeError: ``VIEW_INVALID`` naming the file and the key.
    """
    is_path = name_or_path.endswith(_SUFFIX)
    path = Path(name_or_path) if is_path else _folder() / f"{name_or_path}{_SUFFIX}"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        what = f"no such view; there are: {', '.join(views())}"
        raise EvalpipeError("VIEW_INVALID", what, where=name_or_path) from error
    except ValueError as error:
        raise EvalpipeError("VIEW_INVALID", "it is not TOML in UTF-8", where=name_or_path) from error
    wrong = _problem(data)
    if wrong:
        raise EvalpipeError("VIEW_INVALID", wrong[1], where=f"{name_or_path}: {wrong[0]}")
    weights = {str(name): float(value) for name, value in data["weights"].items()}
    return View(data["name"], data["version"], data["description"], data["headline"], weights)


def _folder() -> Path:
    return data_dir() / "views"


def _problem(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Key and rule that a view breaks."""
    for key in sorted(_KEYS ^ set(data)):
        return key, "is missing" if key in _KEYS else "is no key of a view"
    for key in sorted(_KEYS - {"weights"}):
        if not isinstance(data[key], str) or not data[key]:
            return key, "must be text"
    weights = data["weights"]
    if not isinstance(weights, dict) or not weights:
        return "weights", "must be a table of columns and weights"
    for name, value in weights.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value == 0:
            return f"weights.{name}", "must be a number other than 0"
    return None
