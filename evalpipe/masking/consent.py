"""Consent: sessions whose user or source has withdrawn it keep no text.

Belongs here: putting a consent ledger on sessions, which of its rows concern which, and emptying the
text of their steps. Does not belong here: reading the ledger (``steps/ledger.py``), days whose slices
cannot be made anew (``steps/withdrawal.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN as WITHDRAWN
from evalpipe.masking.people import canonical

if TYPE_CHECKING:
    from evalpipe.masking.plan import MaskPlan

_TEXTS = ("text", "arguments", "output")


def apply_consent(
    sessions: pl.DataFrame, steps: pl.DataFrame, ledger: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put the ledger's word on sessions, and empty the text of those that are withdrawn.

    Counts, times, tools and exit codes stay: they say nothing about what a person wrote.

    Args:
        sessions: raw.sessions, ids as logged.
        steps: raw.steps of these sessions.
        ledger: ``user_id, tenant, source, status, legal_basis``; a row names a user or a source. A
            withdrawal wins over a grant, whoever gave which.

    Returns:
        Sessions with ``consent`` replaced where a row matches (the legal basis of a grant, or
        ``withdrawn``), and the steps.
    """
    if not ledger.is_empty():
        is_gone = pl.col("consent") == WITHDRAWN
        told = pl.coalesce(_told(sessions, ledger), "consent")
        sessions = sessions.with_columns(consent=pl.when(is_gone).then("consent").otherwise(told))
    return sessions, without_text(steps, sessions.filter(pl.col("consent") == WITHDRAWN)["session_id"])


def withdrawn(sessions: pl.DataFrame, ledger: pl.DataFrame) -> pl.Series:
    """Ids of sessions whose consent is withdrawn, by their log or by the ledger.

    Args:
        sessions: ``session_id, user_id, tenant, source, consent`` as logged; a session may have several
            copies, and is withdrawn if one of them is.
        ledger: As for :func:`apply_consent`.
    """
    is_gone = sessions["consent"].fill_null("") == WITHDRAWN
    if not ledger.is_empty():
        is_gone |= _told(sessions, ledger).fill_null("") == WITHDRAWN
    return sessions.filter(is_gone)["session_id"].unique()


def without_text(steps: pl.DataFrame, gone: pl.Series) -> pl.DataFrame:
    """Steps with the text of some sessions emptied.

    Args:
        steps: raw.steps or masked.steps.
        gone: Ids of the sessions.
    """
    if gone.is_empty():
        return steps
    is_gone = pl.col("session_id").is_in(gone.implode())
    return steps.with_columns(pl.when(~is_gone).then(pl.col(name)).alias(name) for name in _TEXTS)


def without_spans(sessions: pl.DataFrame, gone: pl.Series) -> pl.DataFrame:
    """Landed sessions with the spans of some of them emptied, which hold their text.

    Args:
        sessions: Landed sessions, with or without ``spans``.
        gone: Ids of the sessions.
    """
    if gone.is_empty() or "spans" not in sessions.columns:
        return sessions
    is_gone = pl.col("session_id").is_in(gone.implode())
    return sessions.with_columns(spans=pl.when(~is_gone).then("spans"))


def concerning(ledger: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Rows of a consent ledger that name somebody, or a source, of some sessions.

    Args:
        ledger: As for :func:`apply_consent`.
        people: ``user_id, tenant, source`` of the sessions, ids as logged.

    Returns:
        The rows, each once, sorted.
    """
    place = people.unique()  # once: its order is another one each time
    place = place.with_columns(pl.col("tenant").fill_null(""), canonical=_canonical(place))
    rows = ledger.unique().with_row_index("row")
    of_tenant = pl.col("of_tenant").is_null() | (pl.col("of_tenant") == pl.col("tenant"))
    named = rows.rename({"tenant": "of_tenant"}).with_columns(canonical=_canonical(rows))
    found = pl.concat([
        place.join(named.drop("source"), on="canonical", how="inner").filter(of_tenant).select("row"),
        place.join(named.drop("user_id", "canonical"), on="source", how="inner").filter(of_tenant).select("row"),
    ])  # fmt: skip
    return rows.join(found.unique(), on="row", how="semi").drop("row").sort(pl.all(), nulls_last=True)


def with_tokens(ledger: pl.DataFrame, plan: MaskPlan) -> pl.DataFrame:
    """A consent ledger that also knows the people of edge files, who come as tokens.

    A user's token depends on the tenant, so a row without one holds in the tenants that other rows name,
    and where sessions have none.

    Args:
        ledger: As for :func:`apply_consent`, ids as logged.
        plan: Makes the tokens.
    """
    tenants = sorted({tenant or "" for tenant in [*ledger["tenant"], ""]})
    rows: list[dict[str, object]] = []
    for row in ledger.iter_rows(named=True):
        user, tenant = row["user_id"], row["tenant"]
        token = None if tenant is None else plan.rekey("t", tenant) if tenant else tenant
        if user is None:
            rows += [{**row, "tenant": token}] if tenant is not None else []
        else:
            places = tenants if tenant is None else [tenant]
            users = [name for place in places for name in plan.users(user, place)]
            rows += [{**row, "user_id": name, "tenant": token} for name in users]
    return pl.concat([ledger, pl.DataFrame(rows, schema=ledger.schema)])


def _canonical(people: pl.DataFrame) -> pl.Series:
    """Ids of users in the form under which an erasure takes them for one person too."""
    ids = people["user_id"].cast(pl.String)
    distinct = [user for user in ids.unique() if user is not None]
    return ids.replace({user: canonical(user) for user in distinct}) if distinct else ids


def _told(sessions: pl.DataFrame, ledger: pl.DataFrame) -> pl.Series:
    """What the ledger says of each session; null where it is silent."""
    word = pl.when(pl.col("status") == WITHDRAWN).then(pl.lit(WITHDRAWN))
    rows = ledger.with_columns(said=word.otherwise(pl.coalesce("legal_basis", pl.lit("granted"))))
    place = sessions.select("session_id", "source", tenant=pl.col("tenant").fill_null(""), user_id=_canonical(sessions))
    rows = rows.rename({"tenant": "of_tenant"}).with_columns(user_id=_canonical(rows))
    users = rows.filter(pl.col("user_id").is_not_null()).select("user_id", "of_tenant", "said")
    sources = rows.filter(pl.col("source").is_not_null()).select("source", "of_tenant", "said")
    found = pl.concat(
        [
            place.join(users, on="user_id", how="inner").select("session_id", "tenant", "of_tenant", "said", rank=0),
            place.join(sources, on="source", how="inner").select("session_id", "tenant", "of_tenant", "said", rank=1),
        ]
    )
    # A row without a tenant is of that id in every tenant: too much withheld is mended by a better row,
    # too little is not mended at all.
    said = found.filter(pl.col("of_tenant").is_null() | (pl.col("of_tenant") == pl.col("tenant")))
    # The withdrawal first, then users before sources, then the first by name.
    ranked = said.with_columns(is_kept=pl.col("said") != WITHDRAWN).sort("is_kept", "rank", "said")
    first = ranked.select("session_id", "said").unique("session_id", keep="first", maintain_order=True)
    return place.join(first, on="session_id", how="left", maintain_order="left")["said"]
