"""From sessions to the cells of the compared versions in the common support.

Belongs here: weights, the group-by, support, and renumbering to compact codes. Does not belong
here: estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evalpipe.inference.cells import CellSums, Ints, UserCells, cell_sums, divide, group, tally
from evalpipe.inference.estimand import Estimand, estimand
from evalpipe.inference.model import Bools, Floats, Options, Sample
from evalpipe.inference.studentize import Layout
from evalpipe.inference.support import Evidence, Support, common_support


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known of every version and cell before anybody leaves.

    Attributes:
        rows: (user, cell) rows over all K x S cells. has: (N,) whether a session has a denominator.
        cell, m, t, v: Per session with a denominator.
        traffic: (K, S) sampling-weighted sessions, those without a denominator included.
        n_sessions, n_users, raw_rate: (K,).
    """

    rows: UserCells
    has: Bools
    cell: Ints
    m: Floats
    t: Floats
    v: Floats
    traffic: Floats
    n_sessions: Ints
    n_users: Ints
    raw_rate: Floats


@dataclass(frozen=True, slots=True)
class Prepared:
    """The compared versions, K' of K, in the S' kept strata.

    Attributes:
        versions, strata: Original codes of the compact ones.
        rows, sums: Sufficient statistics over the K' x S' cells.
        target: What is estimated.
        v, vv: (C,) sums of sampling weights and of their squares.
        cell: (N',) compact cells of the sessions that count. chosen: their places among the
            sessions with a denominator.
    """

    versions: Ints
    strata: Ints
    rows: UserCells
    sums: CellSums
    target: Estimand
    v: Floats
    vv: Floats
    cell: Ints
    chosen: Ints


def total(sample: Sample) -> Totals:
    """Group a sample's sessions by (user, version, stratum)."""
    n_cells = sample.n_versions * sample.n_strata
    all_cells = sample.version.astype(np.int64) * sample.n_strata + sample.stratum
    weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
    traffic = tally(all_cells, weight, n_cells).reshape(sample.n_versions, sample.n_strata)
    has = sample.d > 0
    at: slice | Ints = slice(None) if has.all() else np.flatnonzero(has)
    cell, v, version = all_cells[at], weight[at], sample.version[at]
    m, t = v * sample.d[at], v * sample.y[at]
    rows = group(sample.user[at].astype(np.int64), cell, m, t, n_cells)
    row_version = rows.cell // sample.n_strata
    # Rows are sorted by user, then version: a new (user, version) starts where either changes.
    is_new = np.ones(len(row_version), dtype=bool)
    is_new[1:] = (np.diff(rows.user) != 0) | (np.diff(row_version) != 0)
    n_versions = sample.n_versions
    return Totals(
        rows=rows,
        has=has,
        cell=cell,
        m=m,
        t=t,
        v=v,
        traffic=traffic,
        n_sessions=np.bincount(version, minlength=n_versions),
        n_users=np.bincount(row_version[is_new], minlength=n_versions),
        raw_rate=divide(tally(version, t, n_versions), tally(version, m, n_versions)),
    )


def find_support(sample: Sample, totals: Totals, options: Options) -> Support:
    """Common support of a sample."""
    version, stratum = np.divmod(totals.rows.cell, sample.n_strata)
    evidence = Evidence(totals.rows.user, version, stratum, totals.traffic, totals.n_sessions, options.standard)
    return common_support(
        evidence,
        options.parents,
        options.min_users_per_cell,
        options.min_sessions_per_version,
        options.min_support_share,
        protected=options.reference_index if options.reference == "model" else None,
    )


def nothing_to_compare(sample: Sample, totals: Totals, support: Support, options: Options) -> str:
    """Why no version can be compared, or an empty string."""
    if options.reference == "model" and support.version_reasons[options.reference_index or 0]:
        return "reference_unavailable"
    if len(support.versions) < 2:
        return "no_comparator"
    if not support.is_kept.any():
        # Work in common that too few people did is not the same as no work in common.
        anyone = find_support(sample, totals, replace(options, min_users_per_cell=1))
        return "too_few_users" if anyone.is_kept.any() else "no_common_support"
    return ""


def prepare(sample: Sample, totals: Totals, support: Support, options: Options) -> Prepared:
    """Restrict a sample to its support; the support must keep a stratum and two versions."""
    versions, strata = support.versions, np.flatnonzero(support.is_kept)
    n_versions, n_strata = len(versions), len(strata)
    version_code = np.full(sample.n_versions, -1)
    version_code[versions] = np.arange(n_versions)
    stratum_code = np.full(sample.n_strata, -1)
    stratum_code[strata] = np.arange(n_strata)
    merged = stratum_code[support.target]
    # compact[c]: code of original cell c among the cells that are estimated, or -1.
    compact = np.where(
        (version_code[:, None] >= 0) & (merged[None, :] >= 0), version_code[:, None] * n_strata + merged[None, :], -1
    ).ravel()
    n_cells = n_versions * n_strata
    row_cell = compact[totals.rows.cell]
    inside = row_cell >= 0
    source = totals.rows
    rows = group(source.user[inside], row_cell[inside], source.m[inside], source.t[inside], n_cells)
    cell = compact[totals.cell]
    chosen = np.flatnonzero(cell >= 0)
    cell, m, t, v = cell[chosen], totals.m[chosen], totals.t[chosen], totals.v[chosen]
    traffic = np.zeros(n_cells)
    counted = compact >= 0
    np.add.at(traffic, compact[counted], totals.traffic.ravel()[counted])
    sums = cell_sums(cell, m, t, rows)
    index = None
    if options.reference == "model" and options.reference_index is not None:
        index = int(version_code[options.reference_index])
    target = estimand(
        traffic.reshape(n_versions, n_strata),
        sums.D.reshape(n_versions, n_strata),
        options.reference,
        index,
        options.population,
        None if support.weight is None else support.weight[strata],
    )
    return Prepared(
        versions=versions,
        strata=strata,
        rows=rows,
        sums=sums,
        target=target,
        v=tally(cell, v, n_cells),
        vv=tally(cell, v * v, n_cells),
        cell=cell,
        chosen=chosen,
    )


def layout(sample: Sample, totals: Totals, prepared: Prepared) -> Layout:
    """Sessions laid out for the randomization test."""
    has = np.flatnonzero(totals.has)[prepared.chosen]
    version, stratum = np.divmod(prepared.cell, len(prepared.strata))
    target, m, t = prepared.target, totals.m[prepared.chosen], totals.t[prepared.chosen]
    if sample.weight is not None:
        m, t = _unscaled(m, t, totals.v[prepared.chosen], stratum, len(prepared.strata))
    return Layout(
        version=version,
        stratum=stratum,
        user=np.unique(sample.user[has], return_inverse=True)[1].astype(np.int64),
        epoch=np.unique(sample.epoch[has], return_inverse=True)[1].astype(np.int64),
        m=m,
        t=t,
        ell=target.ell,
        contrast=target.contrast,
        weights=target.weights[0] if target.contrast is not None else None,
        is_plain=bool((m == 1.0).all()),
    )


def _unscaled(m: Floats, t: Floats, v: Floats, stratum: Ints, n_strata: int) -> tuple[Floats, Floats]:
    """m and t over a weight that all sessions of a stratum share, where they do.

    The statistic of the test does not change, since a common factor cancels in a cell mean and in its
    variance; sessions that count 1 are drawn as tables, at a cost free of their number.
    """
    common = np.ones(n_strata)
    common[stratum] = v
    scale = common[stratum]
    return (m / scale, t / scale) if (v == scale).all() else (m, t)
