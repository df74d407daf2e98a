"""The typed form of a criteria file: what decides every rule, weight, stratum and gate.

Belongs here: frozen dataclasses and their hashes. Does not belong here: reading TOML
(``criteria/load.py``), rules of validity (``criteria/validate.py``), differences
(``criteria/diff.py``).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class MaskingCriteria:
    """Which rule set masks text. A change breaks no series by itself."""

    ruleset: str
    withhold_over_bytes: int


@dataclass(frozen=True, slots=True)
class TaskType:
    """A kind of work finer than a scenario, told from what was there before the agent acted.

    Attributes:
        name: Its value in ``task_type``.
        text, unless: Patterns over the first message of a person: any of the first, none of the second.
        tools: Patterns over the names of tools offered, of which any holds.
        scenario: Scenarios in which it occurs; any if empty.
        needs_workspace: Whether there must be a working folder.
        examples, counterexamples: First messages that ``text`` and ``unless`` must take and leave. They
            are tests of the rule and no part of any hash of what is measured.
    """

    name: str
    text: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    scenario: tuple[str, ...] = ()
    needs_workspace: bool = False
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()


#: Keys of a task type that test its rule and decide nothing.
TASK_TYPE_TESTS = ("examples", "counterexamples")


@dataclass(frozen=True, slots=True)
class ExtractionCriteria:
    """What is observed in a session."""

    languages: tuple[str, ...]
    min_confidence: float
    snippet_chars: int
    self_fix_steps: int
    retry_loop_length: int
    task_types: tuple[TaskType, ...] = ()


@dataclass(frozen=True, slots=True)
class OutcomesCriteria:
    """How observations become one number a session and metric."""

    compare_by: tuple[str, ...]
    headline: str
    score_threshold: float
    count_cap: int
    objective_decides: bool
    abandonment_hours: float
    convergence_turns: int
    weights: dict[str, float] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which share of the sessions of a kind were kept when logs were drawn from all traffic.

    Attributes:
        kept: Share of them, from 0 to 1. 0 says that the numbers do not speak of this kind.
        column, value: Sessions with this value. Both empty: all that no rule above took.
    """

    kept: float
    column: str = ""
    value: str = ""

    @property
    def name(self) -> str:
        """What rows call the kind: ``scenario=chat``, or ``rest``."""
        return f"{self.column}={self.value}" if self.column else SAMPLING_REST


#: Name of the rule that takes what no other rule took.
SAMPLING_REST = "rest"


@dataclass(frozen=True, slots=True)
class EstimandCriteria:
    """Who is compared with whom, over which traffic, and when a number is withheld.

    Attributes:
        sampling: How sessions were drawn from all traffic; the first rule that takes a session holds,
            and one that none takes was kept for certain. Empty where all sessions were kept.
        population_weights: Share of each kind of work, where the population declares them; no key of
            files that do not.
    """

    reference: str
    population: str
    strata: tuple[str, ...]
    design: str
    alpha: float
    window_days: int
    settle_days: int
    min_users_per_cell: int
    min_sessions_per_version: int
    min_support_share: float
    permutations: int
    simultaneous_draws: int
    metrics: tuple[str, ...]
    slices: tuple[str, ...]
    sampling: tuple[Sampling, ...] = ()
    population_weights: dict[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class GateCriterion:
    """One gate, declared before the results."""

    name: str
    metric: str
    kind: str
    margin: float


@dataclass(frozen=True, slots=True)
class Criteria:
    """One criteria file.

    Attributes:
        name, version, description: As declared in the file.
        extractors: Digest of pattern files, error table and extractor versions, as shipped; part
            of the extraction hash, so that a changed pattern is a new measurement.
    """

    name: str
    version: str
    description: str
    masking: MaskingCriteria
    extraction: ExtractionCriteria
    outcomes: OutcomesCriteria
    estimand: EstimandCriteria
    gates: tuple[GateCriterion, ...]
    extractors: str

    def sub_hash(self, section: str) -> str:
        """Hash of one section: masking, extraction, outcomes, estimand or gates (12 hex digits)."""
        if section == "gates":
            return _digest([asdict(gate) for gate in self.gates])
        value = asdict(getattr(self, section))
        if section == "estimand":
            return _digest(_estimand(value))
        if section == "extraction":
            for task_type in value["task_types"]:
                for key in TASK_TYPE_TESTS:
                    del task_type[key]
            return _digest([value, self.extractors])
        return _digest(_estimand(value) if section == "estimand" else value)

    @property
    def measurement(self) -> str:
        """Hash of extraction, outcomes and estimand: rows may be compared only if it is equal."""
        return _digest([self.sub_hash(part) for part in ("extraction", "outcomes", "estimand")])

    @property
    def hash(self) -> str:
        """Hash of the whole file, its name and version included."""
        value = asdict(self)
        return _digest([value | {"estimand": _estimand(value["estimand"])}])


#: What an estimand need not declare: left out of the hash then, so that older files keep theirs.
_OPTIONAL = ("sampling", "population_weights")


def _estimand(value: dict[str, Any]) -> dict[str, Any]:
    """The estimand as it is hashed: without what was not declared, as it was before it could be."""
    return {k: v for k, v in value.items() if k not in _OPTIONAL or v}


def _digest(value: object) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()
