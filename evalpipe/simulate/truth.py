"""What was planted, on the scale on which evalpipe measures it.

Belongs here: sums over the plan and their JSON form. Does not belong here: draws, or any estimate.

The estimand is that of the default criteria. For metric ``m``, version ``k`` and stratum ``s`` (scenario
x routing epoch), ``mu_mks`` is the mean over *all* sessions of the stratum, whoever served them, of the
planted probability that the session shows the metric were it served by ``k``: a superpopulation truth for
the users and strata that were realised, averaged over the users' random effects. ``theta_mk`` weights the
strata by their realised traffic, and the net improvement of ``k`` is ``theta_mk`` minus the plain mean over
the versions (reference uniform, population traffic). It sums to 0. User effects are additive on the
probability scale and cancel in it, except for the share of sessions at a bound (``clipped_share``).

Sessions that switch model belong to no version and are left out, as the analysis leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalpipe.simulate.categories import indicator, mean_errors, probabilities
from evalpipe.simulate.plan import EPOCHS, Plan, Users
from evalpipe.simulate.spec import Spec

#: Metrics with a planted mean, and whether more is better.
METRICS = {
    "positive_outcome": True,
    "confirmation": True,
    "correction": False,
    "complaint": False,
    "abandonment": False,
    "execution_errors": False,
}


@dataclass(frozen=True, slots=True)
class Truth:
    """The planted truth of one simulation.

    Attributes:
        spec: The spec it was made from.
        labels: Version labels as the default criteria write them, in the spec's order.
        strata: Names, ``scenario x epoch``.
        sessions: (D, S) sessions that belong to a version, by day of start and stratum.
        served: (D, S, K) how many of them each version served.
        planted: (M, D, S, K) sum of planted means, were each version to serve all of them.
        served_planted, served_realised: (M, D, S, K) sums over the sessions that each version did serve:
            of planted means, and of what was drawn.
        clipped_share: Share of session-version pairs whose probability met a bound.
        totals: Events in the files, by name.
        canaries: Planted values: kind, value, session, field.
    """

    spec: Spec
    labels: tuple[str, ...]
    strata: tuple[str, ...]
    sessions: NDArray[np.int64]
    served: NDArray[np.int64]
    planted: NDArray[np.float64]
    served_planted: NDArray[np.float64]
    served_realised: NDArray[np.float64]
    clipped_share: float
    totals: Mapping[str, int]
    canaries: Sequence[Mapping[str, str]]

    def _window(self, first: date | None, last: date | None) -> slice:
        start = 0 if first is None else max((first - self.spec.start).days, 0)
        stop = self.spec.days if last is None else (last - self.spec.start).days + 1
        return slice(start, max(stop, start))

    def theta(self, metric: str, *, first: date | None = None, last: date | None = None) -> dict[str, float]:
        """Planted mean of each version over the window's traffic, were it all theirs (see the module).

        Args:
            metric: One of METRICS.
            first, last: Days of start that count, inclusive; None for the whole run.
        """
        days = self._window(first, last)
        total = self.planted[list(METRICS).index(metric)][days].sum(axis=(0, 1))
        return dict(zip(self.labels, (total / self.sessions[days].sum()).tolist(), strict=True))

    def net_improvement(self, metric: str, *, first: date | None = None, last: date | None = None) -> dict[str, float]:
        """True net improvement of each version: reference uniform, population traffic; sums to 0."""
        theta = self.theta(metric, first=first, last=last)
        mean = sum(theta.values()) / len(theta)
        return {label: value - mean for label, value in theta.items()}

    def raw(self, metric: str, *, is_realised: bool = False) -> dict[str, float]:
        """Mean of each version over the sessions it did serve: what a dashboard of raw means shows."""
        sums = self.served_realised if is_realised else self.served_planted
        total = sums[list(METRICS).index(metric)].sum(axis=(0, 1)) / self.served.sum(axis=(0, 1))
        return dict(zip(self.labels, total.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The content of ``truth.json``."""
        spec, scenarios = self.spec, [s.name for s in self.spec.world.scenarios]
        served = self.served.sum(axis=0).reshape(len(scenarios), len(EPOCHS), -1)
        return {
            "about": "Planted truth; evalpipe/simulate/truth.py defines every number.",
            "spec": {**asdict(spec), "start": spec.start.isoformat(), "users": spec.n_users},
            "versions": list(self.labels),
            "strata": list(self.strata),
            "reference": "uniform",
            "population": "traffic",
            "metrics": {name: self._metric(index, name) for index, name in enumerate(METRICS)},
            "counts": {
                name: dict(zip(self.labels, served[i].sum(axis=0).tolist(), strict=True))
                for i, name in enumerate(scenarios)
            },
            "stratum_counts": {
                name: dict(zip(self.labels, row, strict=True))
                for name, row in zip(self.strata, self.served.sum(axis=0).tolist(), strict=True)
            },
            "clipped_share": self.clipped_share,
            "totals": dict(self.totals),
            "days": self._days(),
            "canaries": [dict(canary) for canary in self.canaries],
        }

    def _metric(self, index: int, name: str) -> dict[str, Any]:
        scenarios = [s.name for s in self.spec.world.scenarios]
        shape = (len(scenarios), len(EPOCHS))
        sums = self.planted[index].sum(axis=0).reshape(*shape, -1).sum(axis=1)
        counts = self.sessions.sum(axis=0).reshape(shape).sum(axis=1)
        return {
            "is_higher_better": METRICS[name],
            "theta": self.theta(name),
            "net_improvement": self.net_improvement(name),
            "raw_planted": self.raw(name),
            "raw_realised": self.raw(name, is_realised=True),
            "by_scenario": {
                scenario: dict(zip(self.labels, (sums[i] / max(counts[i], 1)).tolist(), strict=True))
                for i, scenario in enumerate(scenarios)
            },
        }

    def _days(self) -> list[dict[str, Any]]:
        """Per day of start: what a reader needs to recompute the truth of any window."""
        out = []
        for day in range(self.spec.days):
            sums = {name: self.planted[i, day].sum(axis=0).tolist() for i, name in enumerate(METRICS)}
            date_text = (self.spec.start + timedelta(days=day)).isoformat()
            out.append({"day": date_text, "sessions": int(self.sessions[day].sum()), "planted_sum": sums})
        return out


def make_truth(
    spec: Spec, users: Users, plan: Plan, totals: Mapping[str, int], canaries: Sequence[Mapping[str, str]]
) -> Truth:
    """Sum the plan up.

    Args:
        spec, users, plan: What was drawn.
        totals: Events counted while writing.
        canaries: Planted values.
    """
    mine = plan.second_version < 0
    day, version = plan.day[mine], plan.version[mine].astype(np.int64)
    n_versions, n_strata = len(spec.versions), len(spec.world.scenarios) * len(EPOCHS)
    stratum = plan.scenario[mine].astype(np.int64) * len(EPOCHS) + plan.epoch[mine]
    cell = day * n_strata + stratum
    n_cells = spec.days * n_strata

    def by_cell(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(cell, values, n_cells).astype(np.float64).reshape((spec.days, n_strata))

    planted = np.zeros((len(METRICS), spec.days, n_strata, n_versions))
    served_planted, served_realised = np.zeros_like(planted), np.zeros_like(planted)
    clipped = 0
    drawn = _drawn(plan, mine)
    for k in range(n_versions):
        means, at_bound = _means(spec, users, plan, mine, k)
        clipped += int(at_bound.sum())
        is_served = (version == k).astype(np.float64)
        for m, values in enumerate(means):
            planted[m, ..., k] = by_cell(values)
            served_planted[m, ..., k] = by_cell(values * is_served)
            served_realised[m, ..., k] = by_cell(drawn[m] * is_served)
    return Truth(
        spec=spec,
        labels=tuple(f"claude-code · {v.model}" for v in spec.versions),
        strata=tuple(f"{s.name} x {e}" for s in spec.world.scenarios for e in EPOCHS),
        sessions=np.bincount(cell, minlength=n_cells).reshape(spec.days, n_strata),
        served=np.bincount(cell * n_versions + version, minlength=n_cells * n_versions).reshape(
            spec.days, n_strata, n_versions
        ),
        planted=planted,
        served_planted=served_planted,
        served_realised=served_realised,
        clipped_share=clipped / max(len(day) * n_versions, 1),
        totals=totals,
        canaries=canaries,
    )


def _means(
    spec: Spec, users: Users, plan: Plan, mine: NDArray[np.bool_], version: int
) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_]]:
    """Planted mean of every metric for every session, were it served by one version."""
    user, scenario = plan.user[mine], plan.scenario[mine]
    drift = np.where(plan.day[mine] >= spec.epoch_day, spec.world.routing.drift, 0.0)
    tasks = spec.world.scenarios, scenario
    planted = spec.versions[version]
    table, clipped = probabilities(planted, *tasks, users.positive_shift[user] + drift, users.correction_shift[user])
    comes_back = np.where(plan.could_continue[mine], spec.world.rates.continued, 0.0)
    means = {name: table @ indicator(name) for name in ("positive_outcome", "confirmation", "correction", "complaint")}
    means["abandonment"] = (table @ indicator("unresolved")) * (1.0 - comes_back)
    means["execution_errors"] = mean_errors(planted, *tasks)
    return [means[name] for name in METRICS], clipped


def _drawn(plan: Plan, mine: NDArray[np.bool_]) -> list[NDArray[np.float64]]:
    course = plan.course[mine]
    drawn = {name: indicator(name)[course] for name in ("positive_outcome", "confirmation", "correction", "complaint")}
    drawn["abandonment"] = indicator("unresolved")[course] * ~plan.continued[mine]
    drawn["execution_errors"] = plan.errors[mine].astype(np.float64)
    return [drawn[name] for name in METRICS]
