"""Net improvement, CR3 and degrees of freedom from arrays of sessions, against the jackknife.

The peer is what CR3 is by definition: leave every user out once and estimate again. It is measured
on a few users and scaled up. Prints times and ratios; only the ratios carry over.

    python benchmarks/net_improvement.py [--sessions 17000 1000000]
"""

from __future__ import annotations

import argparse

import numpy as np
from permutation import best_of, simulate

from evalpipe.inference import Options, Sample
from evalpipe.inference.prepare import Prepared, find_support, prepare, total
from evalpipe.inference.variance import ClusterVariance


def estimate(sample: Sample, options: Options) -> Prepared:
    totals = total(sample)
    prepared = prepare(sample, totals, find_support(sample, totals, options), options)
    engine = ClusterVariance(prepared.rows, prepared.sums)
    engine.contrasts(prepared.target.ell)
    engine.contrasts(prepared.target.theta, pairs=True)
    return prepared


def leave_out(sample: Sample, ell: np.ndarray, users: int) -> None:
    n_cells = sample.n_versions * sample.n_strata
    cell = sample.version.astype(np.int64) * sample.n_strata + sample.stratum
    for user in range(users):
        stay = sample.user != user
        y = np.bincount(cell[stay], sample.y[stay], n_cells)
        d = np.bincount(cell[stay], sample.d[stay], n_cells)
        _ = np.divide(y, d, out=np.zeros(n_cells), where=d > 0) @ ell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sessions", type=int, nargs="+", default=[17_000, 1_000_000])
    args = parser.parse_args()
    options = Options()
    for n in args.sessions:
        sample = simulate(n)
        prepared = estimate(sample, options)
        here = best_of(lambda sample=sample: estimate(sample, options))
        few = max(3, 300_000 // n)
        one = best_of(lambda sample=sample, ell=prepared.target.ell, few=few: leave_out(sample, ell, few), 1) / few
        literal = one * prepared.rows.n_users
        print(f"{n:>9,} sessions, {prepared.rows.n_users:,} users, {len(prepared.rows.m):,} (user, cell) rows")
        print(f"    here, with dof and all pairs       {here:10.3f} s")
        print(f"    jackknife by definition (from {few})  {literal:10.1f} s   {literal / here:10,.0f} x")


if __name__ == "__main__":
    main()
