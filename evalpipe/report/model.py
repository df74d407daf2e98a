"""The report as one typed object: everything that any output prints or draws.

Belongs here: frozen dataclasses and small look-ups on them. Does not belong here: how they are
filled from tables (``build.py``), worded (``words.py``) or rendered. The JSON is this object
(``json.py``), so a renamed field is a new schema. Missing evidence is ``None`` with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evalpipe.report.records import (
    ALL,
    Basis,
    Estimate,
    Gate,
    Group,
    Health,
    Metric,
    Pair,
    Slice,
    Stratum,
    Version,
    Window,
)

SCHEMA = "evalpipe.report/1"


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a sentence; ``role`` is '', strong, version, candidate or baseline."""

    text: str
    role: str = ""


Phrase = tuple[Run, ...]


def plain(phrase: Phrase) -> str:
    """The sentence as text."""
    return "".join(run.text for run in phrase)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All numbers of the report, before words."""

    window: Window
    headline_metric: str
    bases: tuple[Basis, ...]
    versions: tuple[Version, ...]
    metrics: tuple[Metric, ...]
    slices: tuple[Slice, ...]
    estimates: tuple[Estimate, ...]
    pairs: tuple[Pair, ...]
    strata: tuple[Stratum, ...]
    groups: tuple[Group, ...]
    gate: Gate
    health: Health
    compare_by: tuple[str, ...]
    declared_design: str
    min_sessions: int
    min_support: float
    alpha: float
    _index: dict[tuple[str, str, int], Estimate] = field(init=False, repr=False, compare=False)
    _pairs: dict[tuple[int, int], Pair] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index = {(e.metric, e.slice, e.version): e for e in self.estimates}
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "_pairs", {(p.version, p.other): p for p in self.pairs})

    def at(self, metric: str, slice_name: str, version: int) -> Estimate | None:
        """The estimate of one metric, slice and version, if there is a row."""
        return self._index.get((metric, slice_name, version))

    def pair(self, version: int, other: int) -> Pair | None:
        """The ordered pair on the headline metric, if there is a row."""
        return self._pairs.get((version, other))

    @property
    def headline(self) -> tuple[Estimate, ...]:
        """Rows of the headline metric over all traffic that hold a number, in order."""
        rows = (self.at(self.headline_metric, ALL, i) for i in range(len(self.versions)))
        return tuple(row for row in rows if row is not None and row.is_shown)

    @property
    def leading(self) -> tuple[int, ...]:
        """Versions whose rank set contains 1: none is shown to be better than any of them."""
        return tuple(row.version for row in self.headline if row.rank_lo == 1)

    @property
    def basis(self) -> Basis | None:
        """Basis of the headline numbers."""
        rows = [e for e in self.estimates if e.metric == self.headline_metric and e.slice == ALL]
        return self.bases[rows[0].basis] if rows else None

    def metric(self, name: str) -> Metric:
        """A metric of the report by name."""
        return next(metric for metric in self.metrics if metric.name == name)

    def with_role(self, role: str) -> int | None:
        """Index of the candidate or the baseline, if it is among the versions."""
        return next((i for i, version in enumerate(self.versions) if version.role == role), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """The headline, the sentences under it, and which row of the headline table fired."""

    state: str
    headline: Phrase
    sentences: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Caveat:
    """A line of "what may not be concluded"."""

    code: str
    lead: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A numbered note on methods."""

    lead: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report."""

    product: str
    answer: Answer
    not_concluded: tuple[Caveat, ...]
    evidence: Evidence
    raw_note: str
    notes: tuple[Note, ...]
    provenance: tuple[tuple[str, str], ...]
    looks: tuple[Note, ...] = ()
    schema: str = SCHEMA
