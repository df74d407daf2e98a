"""What the verbs ``erase`` and ``retention`` do and show. Neither names a person.

Belongs here: opening the home alone, printing. Does not belong here: erasing (``steps/erase.py``).
"""

from __future__ import annotations

import json
from dataclasses import asdict

from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.tombstones import Subject
from evalpipe.settings import Settings
from evalpipe.steps import erase as erase_step
from evalpipe.steps import retention as retention_step
from evalpipe.steps.context import open_context


def subject_of(user: str | None, token: str | None, tenant: str | None, source: str | None) -> Subject:
    """Whom the options name.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` where neither or both of user and token are given, or a tenant
            beside a token, which belongs to one already.
    """
    if bool(user) == bool(token):
        raise EvalpipeError("BAD_ARGUMENT", "name one person, by --user or by --token", where="--user")
    if token and tenant is not None:
        raise EvalpipeError("BAD_ARGUMENT", "a token belongs to one tenant already", where="--tenant")
    return Subject(user or token or "", tenant, source, is_token=bool(token))


def erase(settings: Settings, subject: Subject, *, dry_run: bool, as_json: bool) -> None:
    """Erase a person and tell in counts what went.

    Args:
        settings: Settings of a home.
        subject: Whom.
        dry_run: Only tell what would go.
        as_json: Print JSON for a script.
    """
    if not as_json:
        show.note(f"Waiting until nobody else works on this home, then {'counting' if dry_run else 'erasing'}.")
    with open_context(settings, alone=True) as context:
        done = erase_step.erase(context, subject, dry_run=dry_run)
    if as_json:
        print(json.dumps(asdict(done)))
        return
    will = "would be " if done.is_dry else ""
    if not done.n_sessions:
        show.line("No session of that person is in this home." + ("" if done.is_dry else " Later logs leave them out."))
        return
    show.line(f"{done.n_sessions:,} sessions and {done.n_files:,} files of nobody else {will}erased.")
    show.line(f"{done.n_days:,} days and {done.n_analyses:,} analyses {will}made anew.")
    if not done.is_dry:
        show.line(f"{done.n_corrections:,} published numbers moved: analysis.corrections, reason 'erasure'.")
        show.line("Logs outside this home, ledgers, exports and backups are yours to erase (docs/privacy.md).")


def expire(settings: Settings, *, as_json: bool) -> None:
    """Take away what has expired and tell in counts what went.

    Args:
        settings: Settings of a home.
        as_json: Print JSON for a script.
    """
    erase_step.resume(settings)
    done = retention_step.enforce(settings)
    if as_json:
        days = [day.isoformat() for day in done.days] if done else []
        print(json.dumps({"n_batches": done.n_batches if done else 0, "days": days}))
    elif done is None:
        show.line("Nothing has been kept for longer than it may be.")
    else:
        show.line(f"{done.n_batches:,} landed batches on {len(done.days):,} days: what has expired of them is gone.")
