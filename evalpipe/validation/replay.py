"""A/A replay: users of one version are split at random, and the gates judge one half against the other.

Belongs here: the split and the counting. Does not belong here: reading a home (``steps``) or any rule of
a gate (``analysis``). Nothing differs between the halves, so a gate that fails one is wrong; how often
it is on these users, with their number of sessions and their likeness, no simulation can say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evalpipe.analysis import decide_gates
from evalpipe.analysis.design import Examined
from evalpipe.analysis.outcomes import check_outcomes, read_pair
from evalpipe.analysis.population import ALL, Population, encode, sparse_parents
from evalpipe.analysis.rows import Basis, net_improvement_rows, pair_rows
from evalpipe.analysis.score import score_one
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.tables.analysis import NET_IMPROVEMENT, PAIRS
from evalpipe.criteria.model import Criteria, EstimandCriteria
from evalpipe.validation.finding import Finding, share
from evalpipe.validation.stream import Advance, stream

SCENARIO = "users of one version, split in two at random"
CANDIDATE, BASELINE = "half A", "half B"
#: Replays, as a share of the replications of the grid, and session draws beyond which there are fewer.
EFFORT = 0.25
BUDGET = 2e7
FEWEST_USERS = 20
#: What is wrong of a gate where nothing differs, and how often that may be.
_WRONG = {"non_inferiority": ("fail", (0.0, 0.02)), "superiority": ("pass", (0.0, 0.06))}
_NOTHING = Examined("observational", (), (), ())
_QUESTION = {
    "fail": "How often does a gate fail one half of a version's users against the other?",
    "pass": "How often does a gate call one half of a version's users better than the other?",
    "inconclusive": "How often can a gate not decide between two halves of a version's users?",
}


@dataclass(frozen=True, slots=True)
class Replayed:
    """One version that users can be split of: its sessions as codes, and how many there are."""

    population: Population
    label: str
    n_users: int


def n_replays(asked: int, n_sessions: int) -> int:
    """Replays of a home: a share of the replications asked for, fewer for very many sessions."""
    return max(2, min(round(asked * EFFORT), int(BUDGET // max(n_sessions, 1))))


def replay(
    outcomes: pl.DataFrame, criteria: Criteria, asked: int, seed: int, advance: Advance = lambda _: None
) -> list[Finding]:
    """Run the gates of criteria on random halves of one version's users.

    Args:
        outcomes: Rows of ``signals.session_outcomes`` of a window; those that are not settled are left out.
        criteria: The gates, and how versions are compared.
        asked: Replications of the grid, of which replays are a share.
        seed: Seed of the run.
        advance: Told how many steps are done; a replay without data is one step.

    Returns:
        For each gate how often it errs and how often it cannot decide, and how often any non-inferiority
        gate fails. A finding without a number says why in its note.

    Raises:
        EvalpipeError: ``INVALID_OUTCOMES``.
    """
    chosen = largest_version(outcomes.filter(pl.col("is_settled")), criteria)
    least = criteria.estimand.min_sessions_per_version
    why = ""
    if not criteria.gates:
        why = "the criteria declare no gate"
    elif chosen is None:
        why = "no settled session has a version"
    elif chosen.n_users < FEWEST_USERS or chosen.population.n < 2 * least:
        n = chosen.population.n
        need = f"{FEWEST_USERS} and {2 * least} are needed"
        why = f"{chosen.label} has most users, {chosen.n_users} with {n} sessions: {need}"
    if chosen is None or why:
        advance(1)
        return [_finding("false_fail, any gate", "fail", math.nan, math.nan, math.nan, (0.0, 0.02), 0, why)]
    n = n_replays(asked, chosen.population.n)
    return _counted(_verdicts(chosen, criteria, n, seed, advance), criteria, chosen)


def largest_version(settled: pl.DataFrame, criteria: Criteria) -> Replayed | None:
    """The version with most users, ties by label; ``None`` without any."""
    check_outcomes(settled, {gate.metric for gate in criteria.gates})
    estimand, compare_by = criteria.estimand, criteria.outcomes.compare_by
    everyone = encode(settled, compare_by, estimand.strata, (), estimand.sampling)
    if not everyone.n:
        return None
    pairs = np.unique(everyone.version.astype(np.int64) * everyone.n + everyone.cluster)
    n_users = np.bincount(pairs // everyone.n, minlength=len(everyone.versions))
    at = int(n_users.argmax())
    mine = everyone.sessions.filter(pl.Series(everyone.version == at)).drop("version")
    return Replayed(
        encode(mine, compare_by, estimand.strata, (), estimand.sampling), everyone.versions[at], int(n_users[at])
    )


def _verdicts(chosen: Replayed, criteria: Criteria, n: int, seed: int, advance: Advance) -> list[list[str]]:
    """Verdicts of every replay, in the order of the gates."""
    population, rng = chosen.population, stream(seed, SCENARIO)
    # What halves are measured against is each other: a reference that criteria name is not there.
    metrics = tuple(dict.fromkeys(gate.metric for gate in criteria.gates))
    criteria = replace(criteria, estimand=_halves(criteria, metrics))
    days = population.sessions["day"]
    first, last = days.min(), days.max()
    stamp = Stamp.of(criteria, as_of=last, window="all", start=first, end=last)  # type: ignore[arg-type]
    basis = Basis(stamp, criteria.estimand, (CANDIDATE, BASELINE), _NOTHING.design, (), ())
    read = {metric: read_pair(population.sessions, metric) for metric in metrics}
    least = criteria.estimand.min_sessions_per_version
    out = []
    for _ in range(n):
        half = np.zeros(chosen.n_users, dtype=np.int32)
        half[rng.permutation(chosen.n_users)[: chosen.n_users // 2]] = 1
        version = half[population.cluster]
        halves = replace(population, version=version, versions=[CANDIDATE, BASELINE])
        parents = sparse_parents(version, population.stratum, population.epoch, population.parents, 2, least)
        scored = [score_one(halves, read[m], m, ALL, criteria, _NOTHING, parents, stamp) for m in metrics]
        tables = {
            NET_IMPROVEMENT.full_name: pl.concat([net_improvement_rows(one, basis) for one in scored]),
            PAIRS.full_name: pl.concat([pair_rows(one, basis) for one in scored]),
        }
        decided = decide_gates(tables, criteria, CANDIDATE, BASELINE)
        verdict = dict(decided.select("criterion", "verdict").iter_rows())
        out.append([verdict[gate.name] for gate in criteria.gates])
        advance(1)
    return out


def _halves(criteria: Criteria, metrics: tuple[str, ...]) -> EstimandCriteria:
    """The estimand of halves: ranks are not read, so that few draws do."""
    return replace(criteria.estimand, reference="uniform", metrics=metrics, slices=(), simultaneous_draws=1_000)


def _counted(verdicts: Sequence[Sequence[str]], criteria: Criteria, chosen: Replayed) -> list[Finding]:
    seen = np.array(verdicts, dtype=object)
    note = f"{chosen.label}: {chosen.n_users} users, {chosen.population.n} sessions"
    found = []
    for at, gate in enumerate(criteria.gates):
        wrong, target = _WRONG[gate.kind]
        found.append(_share(f"false_{wrong}, {gate.name}", wrong, seen[:, at] == wrong, target, note))
        undecided = seen[:, at] == "inconclusive"
        found.append(_share(f"inconclusive, {gate.name}", "inconclusive", undecided, None, note))
    guards = [at for at, gate in enumerate(criteria.gates) if gate.kind == "non_inferiority"]
    if guards:
        any_fails = (seen[:, guards] == "fail").any(axis=1)
        found.append(_share("false_fail, any gate", "fail", any_fails, (0.0, 0.02), note))
    return found


def _share(quantity: str, verdict: str, hits: np.ndarray, target: tuple[float, float] | None, note: str) -> Finding:
    estimate, lo, hi = share(hits.astype(np.float64), np.ones(len(hits)))
    return _finding(quantity, verdict, estimate, lo, hi, target, len(hits), note)


def _finding(
    quantity: str,
    verdict: str,
    estimate: float,
    lo: float,
    hi: float,
    target: tuple[float, float] | None,
    n: int,
    note: str,
) -> Finding:
    return Finding("replay", SCENARIO, quantity, _QUESTION[verdict], estimate, lo, hi, target, n, n, note)
