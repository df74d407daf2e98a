"""The rows that a report is made of: versions, estimates, pairs, gate rows, counts and checks.

Belongs here: frozen rows without behaviour beyond a look at themselves. Does not belong here: the
report that holds them (``model.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from evalpipe.contracts.metrics import BY_NAME

ALL = "all"


@dataclass(frozen=True, slots=True)
class Basis:
    """What numbers are measured against and how; shared by all rows of a metric as a rule."""

    reference: str
    population: str
    estimator: str
    design: str
    alpha: float


@dataclass(frozen=True, slots=True)
class Window:
    """Days that the numbers are made from, and the measurement that made them."""

    as_of: date | None
    window: str
    first: date | None
    last: date | None
    measurement: str
    criteria_name: str
    criteria_version: str
    criteria_hash: str


@dataclass(frozen=True, slots=True)
class Version:
    """One agent version, in the order of the comparison.

    ``name`` and ``detail`` are the label in two lines (agent and release; model).
    """

    label: str
    name: str
    detail: str
    role: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as the report shows it."""

    name: str
    title: str
    numerator: str
    denominator: str
    unit: str
    is_higher_better: bool
    conditional_on: str
    partner: str


@dataclass(frozen=True, slots=True)
class Slice:
    """A column of the small multiples: ``all`` or a scenario."""

    name: str
    title: str
    n_sessions: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """One published number with everything that it must carry. ``version`` and ``basis`` are indices."""

    metric: str
    slice: str
    version: int
    basis: int
    estimate: float | None
    lo: float | None
    hi: float | None
    lo_sim: float | None
    hi_sim: float | None
    se: float | None
    df: float | None
    gstar: float | None
    p_perm: float | None
    n_permutations: int | None
    p_adj: float | None
    rank_lo: int | None
    rank_hi: int | None
    letters: str | None
    theta: float | None
    theta_lo: float | None
    theta_hi: float | None
    raw_rate: float | None
    raw_rank: int | None
    n_sessions: int
    n_users: int
    deff: float | None
    support_share: float | None
    missing_share: float | None
    mde: float | None
    seed: str
    status: str
    reasons: tuple[str, ...]

    @property
    def is_shown(self) -> bool:
        """Whether a number exists to print."""
        return self.estimate is not None and self.status != "unavailable"

    @property
    def is_underpowered(self) -> bool:
        """Whether the slice is too small to rank: smallest visible gap above 10 points of a rate."""
        wide = self.mde is not None and self.mde > 0.10 and BY_NAME[self.metric].is_rate
        return self.slice != ALL and (wide or "underpowered" in self.reasons)


#: Relations of an ordered pair. ``through``: not separated itself, yet by two separations in a row.
BETTER, WORSE, BETTER_THROUGH, WORSE_THROUGH, UNTOLD = (
    "better", "worse", "better_through", "worse_through", "untold",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """An ordered pair of versions (indices) on the headline metric, all traffic."""

    version: int
    other: int
    difference: float | None
    lo: float | None
    hi: float | None
    se: float | None
    df: float | None
    gstar: float | None
    relation: str
    through: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """Versions that did the same work, where no work is common to all.

    Attributes:
        slice: Its slice. title: the slice in words. n_sessions: sessions of its versions.
        versions: Indices, best estimate first. leading: those that none is shown to be better than.
        pairs: Its ordered pairs on the headline metric.
    """

    slice: str
    title: str
    n_sessions: int
    versions: tuple[int, ...]
    leading: tuple[int, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class GateRow:
    """One declared criterion. ``estimate``, ``lower``, ``upper`` are signed so that positive is better."""

    criterion: str
    metric: str
    kind: str
    margin: float
    estimate: float | None
    lower: float | None
    upper: float | None
    df: float | None
    verdict: str
    reasons: tuple[str, ...]
    n_candidate: int | None
    reading: str


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of one candidate and baseline; ``verdict`` is None where nothing was decided."""

    candidate: str | None
    baseline: str | None
    verdict: str | None
    sentence: str
    note: str
    decision_id: str | None
    decided_on: date | None
    rows: tuple[GateRow, ...]


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The reading balance of one source."""

    source: str
    files: int
    read: int
    kept: int
    noise: int
    quarantined: int

    @property
    def is_balanced(self) -> bool:
        """Whether every row read is accounted for."""
        return self.read == self.kept + self.noise + self.quarantined


@dataclass(frozen=True, slots=True)
class QuarantineCount:
    """Records of one code, with the code's meaning."""

    code: str
    meaning: str
    records: int


@dataclass(frozen=True, slots=True)
class EntityCount:
    """Replacements of one masked entity."""

    entity: str
    title: str
    values: int
    hits: int


@dataclass(frozen=True, slots=True)
class Check:
    """One design or data check."""

    check: str
    title: str
    subject: str
    value: float | None
    limit: float | None
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class Leak:
    """The leak check after masking; ``passed`` is None where no check is on record."""

    passed: bool | None
    findings: int | None
    planted: int | None
    counted: int | None


@dataclass(frozen=True, slots=True)
class Stratum:
    """One stratum of the headline metric."""

    stratum: str
    weight: float | None
    sessions: int
    least_users: int
    is_kept: bool
    merged_into: str | None


@dataclass(frozen=True, slots=True)
class Health:
    """What was read, masked and checked. ``None`` where the table was not given."""

    sources: tuple[SourceRows, ...] | None
    quarantine: tuple[QuarantineCount, ...] | None
    entities: tuple[EntityCount, ...] | None
    leak: Leak
    checks: tuple[Check, ...] | None
