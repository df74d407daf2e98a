"""The sessions of a window as codes: version, stratum, cluster, epoch, slices.

Belongs here: everything about a session that does not depend on the metric, factorised once for all
metrics and slices. Does not belong here: outcomes, or which version is comparable (``inference``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe.analysis.labels import TASK, version_labels, with_domain
from evalpipe.analysis.sampling import NO_VALUE, inside_population, sampling_weights
from evalpipe.criteria.model import Sampling
from evalpipe.inference import Sample

ALL = "all"
#: The stratum column that is never merged away: sessions of two routing epochs were not drawn from
#: one lottery, and traffic of different periods is no control for each other.
EPOCH = "routing_epoch"
#: A stratum in which the least served version should have had at least so many sessions is not
#: merged when it has none: chance leaves such a cell empty in fewer than 7 of 1,000 strata, so
#: that work is kept from the version, and other work is no stand-in for it.
EXPECTED_BY_CHANCE = 5.0

Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Population:
    """Sessions with a version, one entry each.

    Attributes:
        sessions: Their outcome rows with the label as ``version`` and ``task_domain``, (N rows).
        versions: Labels in order; codes index them. strata: likewise, ancestors included.
        epochs: Routing epochs, likewise.
        parents: (S,) code of the stratum that a sparse one is merged into, or -1.
        version, stratum, cluster, epoch: Codes, (N,) int32.
        slices: Name of each slice and its sessions, (N,) bool; ``all`` is the first.
        n_without_user: Sessions whose log names no user.
        n_by_task: Those among them that are clustered by the task that they tried.
        weight: Sessions that each one stands for, (N,), where they were drawn with known chances.
    """

    sessions: pl.DataFrame
    versions: list[str]
    strata: list[str]
    epochs: list[str]
    parents: Codes
    version: Codes
    stratum: Codes
    cluster: Codes
    epoch: Codes
    slices: dict[str, Bools]
    n_without_user: int
    n_by_task: int
    weight: Floats | None = None

    @property
    def n(self) -> int:
        """Number of sessions, N."""
        return self.sessions.height

    def sample(self, y: Floats, d: Floats, use: Bools | None = None, *, y_low: float = -np.inf) -> Sample:
        """Sessions with an outcome, as inference takes them.

        Args:
            y, d: Numerator and denominator of the outcome, (N,).
            use: Sessions to take, (N,); all by default.
            y_low: Smallest outcome there can be.
        """
        use = np.ones(self.n, dtype=bool) if use is None else use
        return Sample(
            y=y[use],
            d=d[use],
            version=self.version[use],
            stratum=self.stratum[use],
            user=self.cluster[use],
            epoch=self.epoch[use],
            n_versions=len(self.versions),
            n_strata=len(self.strata),
            weight=None if self.weight is None else self.weight[use],
            y_low=y_low,
        )

    def codes_of(self, column: str) -> Codes:
        """Codes of a column's values in sorted order, null included as a value, (N,)."""
        values = self.sessions[column].cast(pl.String).fill_null(NO_VALUE)
        return _codes(values, values.unique().sort().to_list())


def encode(
    outcomes: pl.DataFrame,
    compare_by: Sequence[str],
    strata: Sequence[str],
    slices: Sequence[str],
    sampling: Sequence[Sampling] = (),
) -> Population:
    """Give every session that has a version its codes.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        compare_by: Parts of the version's label.
        strata: Columns whose combinations are the strata, ``routing_epoch`` among them.
        slices: Columns whose values are slices beside ``all``.
        sampling: How sessions were drawn from all traffic; those outside the population are left out.

    Returns:
        The population. A session without a user is its own cluster, unless it tried a task of a
        controlled task set: then the task is, because repeats of one task succeed or fail together.
    """
    labelled = outcomes.with_columns(version_labels(outcomes, compare_by)).filter(pl.col("version").is_not_null())
    sessions = with_domain(inside_population(labelled, sampling)).sort("session_id")
    leaf = stratum_label(sessions, strata)
    chain = _ancestors(strata)
    labels = [leaf, *(stratum_label(sessions, columns) for columns in chain)]
    names = pl.concat(labels).unique().sort().to_list()
    coded = [_codes(series, names) for series in labels]
    parents = np.full(len(names), -1, dtype=np.int32)
    for child, parent in itertools.pairwise(coded):
        parents[child] = parent
    versions = sessions["version"].unique().sort().to_list()
    epochs = sessions[EPOCH].unique().sort().to_list()
    key = _cluster_key(sessions)
    without = sessions["user_id"].is_null()
    return Population(
        sessions=sessions,
        versions=versions,
        strata=names,
        epochs=epochs,
        parents=parents,
        version=_codes(sessions["version"], versions),
        stratum=coded[0],
        cluster=(key.rank("dense").cast(pl.Int32) - 1).to_numpy(),
        epoch=_codes(sessions[EPOCH], epochs),
        slices=_slices(sessions, slices),
        n_without_user=int(without.sum()),
        n_by_task=int((without & sessions["task_id"].is_not_null()).sum()),
        weight=sampling_weights(sessions, sampling),
    )


def mergeable_parents(population: Population, min_sessions: int) -> Codes:
    """The parents of strata that are sparse by chance; the others have none.

    Merging pools the work of several strata. That is harmless where a version lacks a stratum
    because few sessions were drawn, and wrong where it never does that kind of work: one version's
    coding would be compared with another's chat, and the table would call it common support.

    Args:
        population: Sessions of the window.
        min_sessions: Sessions that make a version part of the comparison.

    Returns:
        (S,) code of the parent or -1.
    """
    return sparse_parents(
        population.version,
        population.stratum,
        population.epoch,
        population.parents,
        len(population.versions),
        min_sessions,
    )


def sparse_parents(
    version: Codes, stratum: Codes, epoch: Codes, parents: Codes, n_versions: int, min_sessions: int
) -> Codes:
    """The rule of :func:`mergeable_parents` on codes.

    Args:
        version, stratum, epoch: Codes of sessions, (N,).
        parents: (S,) code of the stratum that a sparse one is merged into, or -1.
        n_versions: Versions, those without sessions included.
        min_sessions: Sessions that make a version part of the comparison.
    """
    k, e, s = n_versions, int(epoch.max(initial=-1)) + 1, len(parents)
    served = np.bincount(epoch * k + version, minlength=e * k).reshape(e, k)
    compared = served[:, served.sum(axis=0) >= min_sessions]
    # A version that an epoch never served cannot be rescued by merging, so it sets no limit there.
    smallest = np.where(compared > 0, compared, len(version)).min(axis=1, initial=len(version))
    smallest = smallest / np.maximum(compared.sum(axis=1), 1)
    n = np.bincount(stratum, minlength=s)
    epoch_of = np.zeros(s, dtype=np.int32)
    epoch_of[stratum] = epoch
    return np.where(n * smallest[epoch_of] < EXPECTED_BY_CHANCE, parents, -1).astype(np.int32)


def _ancestors(strata: Sequence[str]) -> list[list[str]]:
    """Column sets of the parents: the last column goes first, the routing epoch never."""
    chain: list[list[str]] = []
    columns = list(strata)
    while len(columns) > 1:
        columns.remove([name for name in columns if name != EPOCH][-1])
        chain.append(list(columns))
    return chain


def stratum_label(sessions: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """The stratum of each session by some columns, such as ``scenario=chat|language=de``."""
    parts = [pl.concat_str([pl.lit(f"{name}="), pl.col(name).cast(pl.String).fill_null(NO_VALUE)]) for name in columns]
    return sessions.select(pl.concat_str(parts, separator="|").alias("stratum"))["stratum"]


def _cluster_key(sessions: pl.DataFrame) -> pl.Series:
    *domain, name = (pl.col(column) for column in TASK)
    task = pl.concat_str([pl.lit("task"), *(part.fill_null("") for part in domain), name], separator=" ")
    user = pl.concat_str([pl.lit("user "), pl.col("user_id")])
    session = pl.concat_str([pl.lit("session "), pl.col("session_id")])
    return sessions.select(pl.coalesce(user, task, session).alias("cluster"))["cluster"]


def _codes(values: pl.Series, names: list[str]) -> Codes:
    physical = values.cast(pl.Enum(names)).to_physical()
    return physical.cast(pl.Int32).to_numpy().astype(np.int32)


def _slices(sessions: pl.DataFrame, columns: Sequence[str]) -> dict[str, Bools]:
    found: dict[str, Bools] = {ALL: np.ones(sessions.height, dtype=bool)}
    for column in columns:
        values = sessions[column].cast(pl.String).fill_null(NO_VALUE)
        for value in values.unique().sort():
            found[f"{column}={value}"] = (values == value).to_numpy()
    return found
