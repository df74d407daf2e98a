"""What must be refused or counted: length as a stratum, and sessions that people gave up on.

Belongs here: the two mistakes that turn the sign of a result in a perfect experiment, and how the
product stands to them. Does not belong here: the grid. Each is shown beside what the mistake would
have said, for contrast.
"""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe import criteria as criteria_files
from evalpipe import signals
from evalpipe.analysis.outcomes import read_pair
from evalpipe.analysis.population import encode
from evalpipe.contracts import render
from evalpipe.contracts.model import Column, Kind, Table, Timing
from evalpipe.contracts.tables import masked
from evalpipe.contracts.tables import signals as tables
from evalpipe.criteria.model import Criteria
from evalpipe.criteria.validate import problems
from evalpipe.inference import Options, compare
from evalpipe.locations import data_dir
from evalpipe.signals.ledger import empty_ledger
from evalpipe.validation.finding import Finding, average, share
from evalpipe.validation.stream import Advance, stream
from evalpipe.validation.worlds import World, draw, sample_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

LENGTH = "length follows the version"
ABANDONMENT = "failed users of one version give up"
#: Half a percentage point.
UNBIASED = (-0.005, 0.005)
COVERAGE = (0.935, 0.965)
#: Replications of these, as a share of those asked for.
LENGTH_EFFORT, ABANDONMENT_EFFORT = 0.5, 0.05

_OPTIONS = Options(design="observational", min_sessions_per_version=20, draws=200, permutations=1)
_WORLD = World(2_000, 400, (0.06, 0.02, -0.02, -0.06), user_part=0.1)
#: How far hard work lowers the chance of success; how much longer a lesser version takes, in units of that work;
#: and how much length varies otherwise.
_HARDNESS, _SLOWER, _NOISE = 0.2, 8.0, 0.3
_SESSIONS = 4_000
_DAY = date(2026, 1, 5)
#: Chance of success of both versions, and how often their failed users leave without a word.
_SUCCESS, _GIVES_UP = 0.6, (0.1, 0.6)
_WORDS = {True: "confirm.explicit", False: "complaint.failure_report"}


def n_guard_steps(asked: int) -> int:
    """Comparisons that :func:`guards` makes."""
    return sum(max(2, round(asked * effort)) for effort in (LENGTH_EFFORT, ABANDONMENT_EFFORT))


def guards(asked: int, seed: int, advance: Advance = lambda _: None) -> list[Finding]:
    """Run the guards.

    Args:
        asked: Replications before each guard's share.
        seed: Seed of the run.
        advance: Told how many replications are done.
    """
    found = [refused_columns()]
    found += length(max(2, round(asked * LENGTH_EFFORT)), stream(seed, LENGTH), advance)
    return [*found, *abandonment(max(2, round(asked * ABANDONMENT_EFFORT)), stream(seed, ABANDONMENT), advance)]


def refused_columns() -> Finding:
    """Whether criteria may stratify on any column that the version itself changes."""
    data: dict[str, Any] = tomllib.loads((data_dir() / "criteria" / "default.toml").read_text("utf-8"))
    after = [column.name for column in tables.SESSION_OUTCOMES if column.timing is Timing.POST]
    refused = 0
    for name in after:
        tried = {**data, "estimand": {**data["estimand"], "strata": [name, *data["estimand"]["strata"]]}}
        refused += any(problem.key == "estimand.strata" for problem in problems(tried))
    question = "Which share of the columns that a version changes is refused as a stratum?"
    rate = refused / len(after)
    return Finding(
        "guard", LENGTH, "columns_refused", question, rate, rate, rate, (1.0, 1.0), 1, len(after), "of all such columns"
    )


def length(n: int, rng: np.random.Generator, advance: Advance = lambda _: None) -> list[Finding]:
    """An experiment at random in which a better version also finishes sooner.

    Args:
        n: Replications. rng: source of randomness. advance: told of each that is done.
    """
    right, wrong = np.zeros((n, 4)), np.zeros((n, 4))
    hits, trials = np.zeros(n), np.zeros(n)
    truth, effects = _WORLD.truth, np.array(_WORLD.effects)
    for r in range(n):
        draws = draw(_WORLD, 1, rng)
        hard = rng.uniform(-1.0, 1.0, _WORLD.n_sessions)
        draws.y[0] = rng.random(_WORLD.n_sessions) < draws.chance[0] - _HARDNESS * hard
        took = hard - _SLOWER * effects[draws.version[0]] + rng.normal(0.0, _NOISE, _WORLD.n_sessions)
        quarter = np.searchsorted(np.quantile(took, (0.25, 0.5, 0.75)), took).astype(np.int32)
        found = compare(sample_of(_WORLD, draws, 0), _OPTIONS)
        stratum = draws.stratum[0] * 4 + quarter
        literal = compare(sample_of(_WORLD, draws, 0, stratum=stratum, n_strata=16), _OPTIONS)
        right[r], wrong[r] = found.estimate - truth, literal.estimate - truth
        has = np.isfinite(found.lo)
        hits[r], trials[r] = ((found.lo <= truth) & (truth <= found.hi))[has].sum(), has.sum()
        advance(1)
    question = "How far is the estimate off, for the version that it is most off for?"
    shown = "not an answer of evalpipe: what length as a stratum would say"
    p, lo, hi = share(hits, trials)
    asked = "How often does a 95 % interval hold the truth?"
    return [
        _bias(LENGTH, "bias", question, right, UNBIASED, ""),
        Finding("guard", LENGTH, "coverage", asked, p, lo, hi, COVERAGE, n, int(trials.sum())),
        _bias(LENGTH, "bias_with_length_as_stratum", question, wrong, None, shown),
    ]


def abandonment(n: int, rng: np.random.Generator, advance: Advance = lambda _: None) -> list[Finding]:
    """Two versions that succeed alike, of which one's failed users leave without a word.

    Sessions go through the product's outcomes, so that what an abandoned one counts as is decided
    there and not here.

    Args:
        n: Replications. rng: source of randomness. advance: told of each that is done.
    """
    rules = criteria_files.load("default", extractors="validation")
    kept, dropped = np.full((n, 1), np.nan), np.full((n, 1), np.nan)
    for r in range(n):
        outcomes = _outcomes(rng, rules)
        kept[r] = _difference(outcomes, rules)
        dropped[r] = _difference(outcomes.filter(pl.col("end_status") != "abandoned"), rules)
        advance(1)
    question = "How far is the difference of two versions that succeed alike from 0?"
    shown = "not an answer of evalpipe: what leaving out abandoned sessions would say"
    return [
        _bias(ABANDONMENT, "bias", question, kept, UNBIASED, ""),
        _bias(ABANDONMENT, "bias_without_abandoned", question, dropped, None, shown),
    ]


def _bias(
    scenario: str, quantity: str, question: str, errors: Floats, target: tuple[float, float] | None, note: str
) -> Finding:
    """The mean error, (R, K), of the version for which it is largest."""
    worst = int(np.abs(errors.mean(axis=0)).argmax())
    estimate, lo, hi = average(errors[:, worst])
    return Finding("guard", scenario, quantity, question, estimate, lo, hi, target, len(errors), errors.size, note)


def _outcomes(rng: np.random.Generator, rules: Criteria) -> pl.DataFrame:
    """Outcomes of sessions in which success is confirmed, and failure is complained of or given up on."""
    n = _SESSIONS
    version = rng.integers(0, 2, n)
    is_success = rng.random(n) < _SUCCESS
    gives_up = ~is_success & (rng.random(n) < np.array(_GIVES_UP)[version])
    ids = pl.Series([f"s{i}" for i in range(n)])
    start = datetime(_DAY.year, _DAY.month, _DAY.day, 12, tzinfo=UTC)
    sessions = _filled(
        masked.SESSIONS, n, session_id=ids, agent="a", model=pl.Series([f"m{k}" for k in version]),
        user_id=pl.Series([f"u{i}" for i in rng.integers(0, n // 4, n)]),
        workspace=ids, started_at=start, ended_at=start,
    )  # fmt: skip
    features = _filled(
        tables.SESSION_FEATURES, n, session_id=ids, scenario="coding",
        scenario_method="rule", language="en", n_human_turns=2,
        has_final_confirmation=pl.Series(is_success), has_closing_signal=pl.Series(is_success),
        is_last_task_unresolved=pl.Series(gives_up), n_complaints=pl.Series(~is_success & ~gives_up).cast(pl.Int32),
    )  # fmt: skip
    said = ids.filter(pl.Series(~gives_up))
    heard = pl.Series(is_success).filter(pl.Series(~gives_up))
    semantic = _filled(
        tables.SEMANTIC, len(said), session_id=said, confidence=1.0,
        signal=heard.replace_strict(_WORDS, return_dtype=pl.String),
    )  # fmt: skip
    later = sessions.select("user_id", "workspace", "session_id", "started_at").clear()
    return signals.session_outcomes(
        _DAY, sessions, features, render.empty(tables.HARD), semantic, later, rules, is_settled=True,
        usage=render.empty(tables.SESSION_USAGE), prices=signals.Prices((), ""), ledger=empty_ledger(),
    )  # fmt: skip


def _difference(outcomes: pl.DataFrame, rules: Criteria) -> float:
    population = encode(outcomes, rules.outcomes.compare_by, rules.estimand.strata, ())
    pair = read_pair(population.sessions, rules.outcomes.headline)
    found = compare(population.sample(pair.y, pair.d, pair.is_known), _OPTIONS)
    return float(found.pair_diff[1, 0])


def _filled(table: Table, n: int, **columns: Any) -> pl.DataFrame:
    """A frame of a contract: what is not given is null, or nothing where null is not allowed."""
    blank = pl.DataFrame({"_": pl.zeros(n, dtype=pl.Int8, eager=True)})
    schema = render.polars_schema(table)

    def of(column: Column) -> pl.Expr:
        value = columns.get(column.name, None if column.nullable else _NOTHING[column.kind])
        if not isinstance(value, pl.Series):
            return pl.lit(value, dtype=schema[column.name]).alias(column.name)
        return pl.lit(value.cast(schema[column.name])).alias(column.name)

    return blank.select(of(column) for column in table)


_NOTHING: dict[Kind, object] = {
    Kind.STR: "", Kind.BOOL: False, Kind.I32: 0, Kind.I64: 0, Kind.F64: 0.0, Kind.DATE: _DAY,
    Kind.TIMESTAMP: datetime(_DAY.year, _DAY.month, _DAY.day, tzinfo=UTC), Kind.STR_LIST: [],
}  # fmt: skip
