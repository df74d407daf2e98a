"""One session in the logs of two exporters: when it is the same one, and whose copy counts.

Belongs here: the rule, over one row a session. Does not belong here: copies under one id
(``store/winners.py``), or a session in parts (``store/parts.py``).

The id of a session bears the name of its source, so an agent's own log and an export of it are two
sessions to begin with. They are taken for one in two cases only, because a session that is wrongly
thrown away is worse than one that counts twice:

- ``same_id``: both carry the same id, of a form that nobody gives twice (a UUID, a trace id, a ULID,
  ``ses_...``), and what both log overlaps in time. Numbers, names and short ids never join.
- ``same_words``: people typed the same, and the agent's last words are the same
  (``sources/said.py``), both logs have times, and they start within two minutes of each other. Where
  a source has two such sessions, as when a benchmark runs a task twice at once, or two agents wrote logs of their
  own, none is joined, and neither is a session that an id joins already.

The richer copy counts: one with words before one without, then the agent's own log before traces
before conversions (``RANKS``), then one with times, then the one with more messages. The rule reads
the set of sessions, never their order of arrival.
"""

from __future__ import annotations

import polars as pl

#: Rank of each source whose copies are richer or poorer than a trace. Others, added readers among
#: them, stand with the traces.
RANKS: dict[str, int] = {
    # What an agent or a harness writes itself, while it runs.
    **dict.fromkeys((
        "claude_code", "codex", "gemini_cli", "opencode", "pi_agent", "openhands", "swe_agent", "mini_swe_agent",
        "tau_bench", "tau2_bench", "inspect", "anthropic_events", "evalpipe_jsonl",
    ), 0),
    # What is made from such a log, and says less: no ids of calls, no exit codes, no tokens.
    **dict.fromkeys((
        "atif", "harbor_traces", "gemini_history", "anthropic_messages", "openai_messages", "openai_responses",
    ), 2),
    **dict.fromkeys(("specstory", "sharegpt", "wildchat", "lmsys_chat"), 3),
    # Outcomes without steps.
    **dict.fromkeys(("harbor_trials", "terminal_bench", "mcpmark"), 4),
}  # fmt: skip
_TRACES = 1

#: Logs that an agent writes of itself. Those of two agents never tell one session: a benchmark gives both
#: the same task at the same time, and a short answer may be the same.
AGENTS = frozenset({
    "claude_code", "codex", "gemini_cli", "opencode", "pi_agent", "openhands", "swe_agent", "mini_swe_agent",
})  # fmt: skip

#: Forms of ids that are made at random and long enough never to be made twice.
_UNIQUE = (
    r"^(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32}"
    r"|[0-7][0-9A-HJKMNP-TV-Z]{25}|ses_[0-9A-Za-z]{20,})$"
)
#: Ids of fewer different characters are placeholders, such as a UUID of zeros.
_LEAST_CHARACTERS = 8
#: Clocks of two exporters differ, and one may log what the other leaves out at either end.
SLACK = pl.duration(minutes=10)
_SAME_START = pl.duration(seconds=120)

#: What the rule reads of each session.
COLUMNS = (
    "session_id", "source", "n_messages", "n_turns", "said_digest", "started_at", "ended_at", "is_dated",
)  # fmt: skip


def same_sessions(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions that another exporter's copy stands for.

    Args:
        sessions: :data:`COLUMNS`, one row a session.

    Returns:
        ``session_id``, the ``counted_session_id`` that counts for it, and the ``rule``; one row a
        session that does not count, in order of ids. The session that counts is never among them.
    """
    ranked = _ranked(sessions)
    by_id = _by_id(ranked)
    # What an id has joined, words do not join on: a chain could end at another session of a source.
    joined = pl.concat([by_id["session_id"], by_id["counted_session_id"]])
    by_words = _by_words(ranked.filter(~pl.col("session_id").is_in(joined.implode())))
    return pl.concat([by_id, by_words]).sort("session_id")


def _ranked(sessions: pl.DataFrame) -> pl.DataFrame:
    """The richest copy first; ties go to the smaller id."""
    rank = pl.col("source").replace_strict(RANKS, default=_TRACES, return_dtype=pl.Int8)
    return (
        sessions.select(COLUMNS)
        .with_columns(rank=rank, native=_native(), is_mute=(pl.col("n_turns") == 0).fill_null(value=False))
        .sort(
            ["is_mute", "rank", "is_dated", "n_messages", "session_id"],
            descending=[False, False, True, True, False],
        )
    )


def has_unique_id() -> pl.Expr:
    """Whether the id of a row's session, after the name of its source, is one that nobody gives twice."""
    native = _native()
    different = native.str.to_lowercase().str.split("").list.n_unique()
    return native.str.contains(_UNIQUE) & (different >= _LEAST_CHARACTERS)


def _native() -> pl.Expr:
    return pl.col("session_id").str.replace(r"^[^:]*:", "")


def _by_id(ranked: pl.DataFrame) -> pl.DataFrame:
    named = ranked.filter(has_unique_id()).with_columns(pl.col("native").str.to_lowercase())
    shared = named.filter(pl.col("source").n_unique().over("native") > 1).with_columns(
        counted_session_id=pl.col("session_id").first().over("native"),
        first_at=pl.col("started_at").first().over("native"),
        last_at=pl.col("ended_at").first().over("native"),
        is_best_dated=pl.col("is_dated").first().over("native"),
    )
    overlaps = (pl.col("started_at") <= pl.col("last_at") + SLACK) & (pl.col("ended_at") + SLACK >= pl.col("first_at"))
    is_same = overlaps | ~pl.col("is_dated") | ~pl.col("is_best_dated")
    lost = shared.filter(is_same & (pl.col("session_id") != pl.col("counted_session_id")))
    return lost.select("session_id", "counted_session_id", rule=pl.lit("same_id"))


def _by_words(ranked: pl.DataFrame) -> pl.DataFrame:
    told = ranked.filter(pl.col("said_digest").is_not_null() & pl.col("is_dated"))
    n_sources = pl.col("source").n_unique().over("said_digest")
    spread = pl.col("started_at").max().over("said_digest") - pl.col("started_at").min().over("said_digest")
    n_agents = pl.col("source").is_in(list(AGENTS)).sum().over("said_digest")
    # As many sessions as sources: no source has two, between which nothing could choose.
    is_same = (n_agents < 2) & (n_sources > 1) & (pl.len().over("said_digest") == n_sources) & (spread <= _SAME_START)
    shared = told.filter(is_same).with_columns(counted_session_id=pl.col("session_id").first().over("said_digest"))
    lost = shared.filter(pl.col("session_id") != pl.col("counted_session_id"))
    return lost.select("session_id", "counted_session_id", rule=pl.lit("same_words"))
