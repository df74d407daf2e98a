"""Correction episodes and first-time success: signals derived from other signals.

Belongs here: how many agent responses a correction took, and whether the first claim of completion
held. Does not belong here: estimation over episodes (``inference``).

An episode begins at a correction and goes on while the following turns object to the same target; k
counts the agent's responses up to the first that the user does not reject, so that k = 1 is "put right
at once". A correction of another target opens an episode of its own; an objection without a target
speaks of all that are open. A session that ends on the answer to a correction is right-censored: nobody
saw whether it was right. Turns that the agent never answered are one with the turn after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import DERIVED
from evalpipe.signals.ids import digest
from evalpipe.signals.semantic import NEGATIVE, POSITIVE

VERSION = "2"
_SCHEMA = pl.Schema({
    "session_id": pl.String(), "turn": pl.Int32(), "seq": pl.Int32(), "target": pl.String(), "k": pl.Int32(),
    "n_judged": pl.Int32(), "is_censored": pl.Boolean(), "ending": pl.String(), "inputs": pl.List(pl.String()),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Objection:
    """One negative row of an exchange."""

    seq: int
    turn: int
    signal_id: str
    is_correction: bool
    target: str | None


@dataclass(slots=True)
class _Episode:
    """An episode while it is open; ``begun`` is the number of its first exchange."""

    begun: int
    turn: int
    seq: int
    target: str | None
    inputs: list[str] = field(default_factory=list)

    def takes(self, objections: list[_Objection]) -> list[_Objection]:
        """Those of an exchange's objections that speak of this episode's target."""
        return [o for o in objections if self.target is None or o.target is None or o.target == self.target]


def episodes(turns: pl.DataFrame, steps: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """Correction episodes of a part.

    Args:
        turns: Turns of persons, in order: ``session_id, seq, turn``.
        steps: Masked steps.
        semantic: Emitted semantic rows.

    Returns:
        One row an episode: ``session_id, turn`` and ``seq`` of its first correction, ``target``, ``k``
        (null if recovery was not seen), ``n_judged`` (responses whose reception was seen),
        ``is_censored``, ``ending`` (``EPISODE_ENDS``), ``inputs`` (ids of its negative rows).
    """
    corrected = semantic.filter(pl.col("signal") == "correction").select("session_id").unique()
    exchanges = _exchanges(turns.join(corrected, on="session_id", how="semi", maintain_order="left"), steps, semantic)
    rows: list[tuple[Any, ...]] = []
    for session, mine in groupby(exchanges.iter_rows(), itemgetter(0)):
        rows += [(session, *row) for row in _of_session(mine)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _of_session(exchanges: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows of ``_SCHEMA`` without the session, by the exchange of their first correction."""
    done: list[tuple[int, tuple[Any, ...]]] = []
    going: list[_Episode] = []
    number = -1
    is_answered = False

    def close(episode: _Episode, k: int | None, end: str) -> None:
        row = (episode.turn, episode.seq, episode.target, k, number - episode.begun, end == "censored", end)
        done.append((episode.begun, (*row, sorted(set(episode.inputs)))))

    for number, (_, _, is_positive, is_answered, listed) in enumerate(exchanges):  # noqa: B007
        objections = [_Objection(*item.values()) for item in listed or ()]
        still: list[_Episode] = []
        for episode in going:
            taken = episode.takes(objections)
            if not taken:
                close(episode, number - episode.begun, "strong" if is_positive and not objections else "weak")
                continue
            episode.inputs += [o.signal_id for o in taken]
            episode.target = episode.target or next((o.target for o in taken if o.is_correction and o.target), None)
            still.append(episode)
        going = still
        for o in objections:
            if o.is_correction and not any(o.target in (None, e.target) or e.target is None for e in going):
                opened = _Episode(number, o.turn, o.seq, o.target)
                opened.inputs = [other.signal_id for other in opened.takes(objections)]
                going.append(opened)
    for episode in going:
        close(episode, None, "censored" if is_answered else "rejected")
    return (row for _, row in sorted(done, key=lambda item: (item[0], item[1][1])))


def _exchanges(turns: pl.DataFrame, steps: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """Turns with the answers between them; unanswered turns join the next one.

    Returns:
        ``session_id, exchange, is_positive, is_answered, objections`` (a list of what :class:`_Objection`
        holds, by step and id), in order.
    """
    acts = steps.filter(pl.col("kind").is_in(["agent", "model", "tool", "graph"])).select("session_id", "turn").unique()
    acts = acts.with_columns(is_answered=pl.lit(value=True))
    marked = turns.select("session_id", "seq", "turn").join(
        acts, on=["session_id", "turn"], how="left", maintain_order="left"
    )
    marked = marked.with_columns(pl.col("is_answered").fill_null(value=False))
    answered = pl.col("is_answered").cast(pl.Int32)
    marked = marked.with_columns(exchange=(answered.cum_sum() - answered).over("session_id"))
    both = ["session_id", "exchange"]
    out = marked.group_by(both, maintain_order=True).agg(is_answered=pl.col("is_answered").any())
    said = semantic.select("session_id", "seq", "signal_id", "signal", "target").join(
        marked.select("session_id", "seq", "turn", "exchange"), on=["session_id", "seq"], how="inner"
    )
    warm = said.filter(pl.col("signal").is_in(list(POSITIVE))).select(both).unique()
    cold = said.filter(pl.col("signal").is_in(list(NEGATIVE))).sort("session_id", "seq", "signal_id")
    objection = pl.struct("seq", "turn", "signal_id", pl.col("signal") == "correction", "target")
    objections = cold.group_by(both, maintain_order=True).agg(objections=objection)
    out = out.join(warm.with_columns(is_positive=pl.lit(value=True)), on=both, how="left", maintain_order="left")
    out = out.join(objections, on=both, how="left", maintain_order="left")
    return out.select(*both, pl.col("is_positive").fill_null(value=False), "is_answered", "objections")


def first_time(turns: pl.DataFrame, tasks: pl.DataFrame, found: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Whether each task's first claim of completion held.

    A claim holds when the turn that answers it holds no objection, undoes nothing, and no check that
    had run before the claim reports findings in it. A claim that nobody answered gives no row.

    Args:
        turns: Turns with roles. tasks: Task of every turn, with ``task_id``.
        found: Hard and semantic rows that count: ``session_id, turn, signal, signal_id``.
        calls: Tool calls.

    Returns:
        ``session_id, task_id, turn`` of the answer, ``is_met``, ``inputs`` (ids of what speaks against it).
    """
    by_turn = tasks.select("session_id", "task_id", before="turn")
    # The turn that answers a claim may open the next task; the claim is of the turn before.
    answers = turns.filter("agent_claimed_done").select("session_id", "turn", before=pl.col("turn") - 1)
    answers = answers.join(by_turn, on=["session_id", "before"], how="inner", maintain_order="left")
    first = answers.group_by("session_id", "task_id", maintain_order=True).first()
    against = found.filter(pl.col("signal").is_in([*NEGATIVE, "rollback"])).select("session_id", "turn", "signal_id")
    ran_before = pl.col("turn") > pl.col("turn").min().over("session_id", "key")
    failing = calls.filter((pl.col("status") == "check_failure") & ran_before).select("session_id", "seq", "turn")
    failed = found.filter(pl.col("signal") == "check_failure").join(failing, on=["session_id", "seq"], how="semi")
    against = pl.concat([against, failed.select("session_id", "turn", "signal_id")]).sort("signal_id")
    against = against.group_by("session_id", "turn").agg(inputs="signal_id")
    first = first.join(against, on=["session_id", "turn"], how="left", maintain_order="left")
    return first.select("session_id", "task_id", "turn", "inputs", is_met=pl.col("inputs").is_null())


def derived_rows(
    found: pl.DataFrame, first: pl.DataFrame, repeats: pl.DataFrame, task_of: pl.DataFrame
) -> pl.DataFrame:
    """Rows of signals.derived.

    Args:
        found: Episodes. first: First claims. repeats: Broken promises (``promises.repeats``).
        task_of: ``session_id, turn, task_id``.
    """
    rows: list[dict[str, Any]] = []
    nothing = {"k": None, "n_judged": None, "is_censored": False, "ending": None, "target": None}
    placed = found.join(task_of, on=["session_id", "turn"], how="left", maintain_order="left")
    for row in placed.iter_rows(named=True):
        value, judged = 0.0 if row["k"] is None else 1.0 / row["k"], row["n_judged"]
        high = 1.0 / (judged + 1) if row["is_censored"] else value
        of = (
            (row["session_id"], row["turn"])
            if row["target"] is None
            else (row["session_id"], row["turn"], row["target"])
        )
        rows.append(
            row
            | {"signal_id": digest(*of, "recovery", VERSION), "signal": "recovery", "value": value, "value_high": high}
        )
    for row in first.iter_rows(named=True):
        value = float(row["is_met"])
        name = digest(row["session_id"], row["task_id"], "first_time_success", VERSION)
        rows.append(
            nothing | row | {"signal_id": name, "signal": "first_time_success", "value": value, "value_high": value}
        )
    for row in repeats.join(task_of, on=["session_id", "turn"], how="left", maintain_order="left").iter_rows(
        named=True
    ):
        name = digest(row["session_id"], row["turn"], "apology_repeat", VERSION)
        rows.append(nothing | row | {"signal_id": name, "signal": "apology_repeat", "value": 1.0, "value_high": 1.0})
    names = polars_schema(DERIVED).names()
    complete = [row | {"inputs": row["inputs"] or [], "definition_version": VERSION} for row in rows]
    return pl.DataFrame(
        [[row[name] for name in names] for row in complete], schema=polars_schema(DERIVED), orient="row"
    )
