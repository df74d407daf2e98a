"""The verb ``criteria freeze``: the mix of work of a baseline as lines of a criteria file.

Belongs here: its words. Does not belong here: numbers (``steps/freeze.py``).
"""

from __future__ import annotations

import json
from datetime import date

from evalpipe.settings import Settings
from evalpipe.steps.context import open_context
from evalpipe.steps.freeze import frozen


def freeze(settings: Settings, version: str, days: tuple[date, date] | None, *, as_json: bool) -> None:
    """Print weights that are frozen as ``fixed:version``."""
    with open_context(settings) as context:
        first, last, weights = frozen(context, days)
    if as_json:
        print(json.dumps({"population": f"fixed:{version}", "population_weights": weights}, ensure_ascii=False))
        return
    print(block(version, first, last, weights), end="")


def block(version: str, first: date, last: date, weights: dict[str, float]) -> str:
    """Lines that take the place of ``population`` in a criteria file.

    Args:
        version: Name of the weights. first, last: Days of the baseline.
        weights: Weight of each kind of work; they sum to 1.
    """
    lines = [
        f"# Mix of work of the settled sessions from {first} to {last}. Put the first line in the place of",
        "# population, and the table behind the keys of [estimand].",
        f'population = "fixed:{version}"',
        "",
        "[estimand.population_weights]",
        # A basic string of TOML escapes as JSON does.
        *(f"{json.dumps(kind, ensure_ascii=False)} = {weight:.6f}" for kind, weight in weights.items()),
    ]
    return "\n".join(lines) + "\n"
