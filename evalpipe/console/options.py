"""Options that many verbs share, and the settings that they name.

Belongs here: an option that has one meaning wherever it is written. Does not belong here: what a
person types after it (``arguments.py``), options of one verb.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalpipe import settings as settings_module
from evalpipe.settings import Settings

Home = Annotated[Path | None, typer.Option("--home", help="Folder of lake, warehouse and reports [.evalpipe].")]
Criteria = Annotated[str | None, typer.Option("--criteria", help="Criteria name or file [default].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Dagster's log and full tracebacks.")]
Window = Annotated[
    str, typer.Option("--window", help="What to score: 'all', or a trailing number of days such as 28d.")
]
Scored = Annotated[
    str | None,
    typer.Option("--window", help="Which analysis: 'all', or days such as 28d [that of the newest as-of day]."),
]

CANDIDATE = "Version that may ship: its label, with / or : for the dot, or a beginning or model that only it has."
BASELINE = "Version that it is compared with, written likewise."


def settings_of(home: Path | None, criteria: str | None) -> Settings:
    """Settings of a home that may have to be made."""
    return settings_module.load(home=home, criteria=criteria)


def existing(home: Path | None, criteria: str | None) -> Settings:
    """Settings of a home that is there already: what only reads makes none.

    Raises:
        EvalpipeError: ``NO_HOME``.
    """
    return settings_module.require_home(settings_of(home, criteria))
