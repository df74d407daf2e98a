"""The verbs that look after a home: ``doctor``, ``erase``, ``retention``, ``ui``.

Belongs here: their options. Does not belong here: what they do and show (``doctor.py``, ``erasure.py``,
``orchestration``).
"""

from __future__ import annotations

from typing import Annotated

import typer

from evalpipe.console import show
from evalpipe.console.entry import handled
from evalpipe.console.options import AsJson, Criteria, Debug, Home, existing, settings_of


def erase(
    user: Annotated[str | None, typer.Option("--user", help="Id of the person as the logs have it.")] = None,
    token: Annotated[
        str | None, typer.Option("--token", help="Or the pseudonym, as in masked.sessions.user_id.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only in this tenant [in all].")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only sessions of this reader [of all].")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and do nothing.")] = False,
    home: Home = None,
    criteria: Criteria = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Erase one person from every file of a home, for good.

    Later logs leave them out too.
    """
    from evalpipe.console import erasure

    with handled(as_json=as_json, debug=debug):
        subject = erasure.subject_of(user, token, tenant, source)
        erasure.erase(existing(home, criteria), subject, dry_run=dry_run, as_json=as_json)


def retention(home: Home = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Take away text that has been kept for long enough.

    How long is in data/retention.toml; every run does so at its end.
    """
    from evalpipe.console import erasure

    with handled(as_json=as_json, debug=debug):
        erasure.expire(existing(home, None), as_json=as_json)


def doctor(home: Home = None, criteria: Criteria = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """State of a home: what is stale, refused, published."""
    from evalpipe.console import doctor as look

    with handled(as_json=as_json, debug=debug):
        look.doctor(existing(home, criteria), as_json=as_json)


def ui(
    home: Home = None,
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 3000,
    debug: Debug = False,
) -> None:
    """Open Dagster's UI, with its daemon, on a home."""
    from evalpipe.orchestration.serve import serve

    with handled(as_json=False, debug=debug):
        raise typer.Exit(serve(settings_of(home, None), port, show.note, is_loud=debug))
