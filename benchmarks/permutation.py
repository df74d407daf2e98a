"""Randomization test against literal shuffling code.

The peer is the code that one writes first: a function that takes a list of sessions and one
version, and 10,000 times shuffles the labels, relabels the sessions and takes the version's mean;
it is called for every version. It is measured on a
few shuffles and scaled up; so is the same in numpy with one shuffle for all versions. Both do less
than the test here: no strata, no studentizing. Prints times and ratios; only the ratios carry over
to other machines.

    python benchmarks/permutation.py [--threads 2] [--sessions 17000 1000000]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from evalpipe.inference import Options, Sample
from evalpipe.inference.prepare import find_support, layout, prepare, total
from evalpipe.inference.randomization import randomization_test

REPLICATES = 10_000


def simulate(n: int, n_versions: int = 20, n_strata: int = 12, *, sticky: bool = False, seed: int = 1) -> Sample:
    rng = np.random.default_rng(seed)
    # Heavy-tailed activity: a few users hold many sessions.
    activity = np.minimum(rng.pareto(1.2, max(n // 5, 10)) + 1.0, 500.0)
    users = rng.choice(len(activity), n, p=activity / activity.sum())
    version = users % n_versions if sticky else rng.integers(0, n_versions, n)
    stratum = rng.choice(n_strata, n, p=np.arange(1, n_strata + 1) / np.arange(1, n_strata + 1).sum())
    effect = rng.normal(0, 0.05, users.max() + 1)
    y = (rng.random(n) < 0.5 + effect[users]).astype(float)
    codes = (version.astype(np.int32), stratum.astype(np.int32), users.astype(np.int32))
    return Sample(y, np.ones(n), *codes, np.zeros(n, dtype=np.int32), n_versions, n_strata)


def best_of(work: Callable[[], object], times: int = 3) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


@dataclass
class Session:
    score: float
    model: str


def gap(sessions: list[Session], target: str) -> float:
    return fmean([s.score for s in sessions if s.model == target]) - fmean([s.score for s in sessions])


def literal_shuffle(sample: Sample, target: str, replicates: int) -> float:
    """One version's gap minus its mean over relabelled sessions, as the naive code has it."""
    sessions = [Session(y, str(v)) for y, v in zip(sample.y.tolist(), sample.version.tolist(), strict=True)]
    labels = [s.model for s in sessions]
    null = []
    for _ in range(replicates):
        random.shuffle(labels)
        relabelled = [Session(s.score, label) for s, label in zip(sessions, labels, strict=True)]
        null.append(gap(relabelled, target))
    return gap(sessions, target) - fmean(null)


def numpy_shuffle(sample: Sample, replicates: int) -> None:
    """The same in numpy: one mask and mean a version and replicate."""
    rng = np.random.default_rng(0)
    overall = sample.y.mean()
    for _ in range(replicates):
        shuffled = rng.permutation(sample.version)
        for version in range(sample.n_versions):
            _ = sample.y[shuffled == version].mean() - overall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sessions", type=int, nargs="+", default=[17_000, 1_000_000])
    args = parser.parse_args()
    options = Options(permutations=REPLICATES, threads=args.threads)
    for n in args.sessions:
        sample = simulate(n)
        totals = total(sample)
        laid = layout(sample, totals, prepare(sample, totals, find_support(sample, totals, options), options))
        seed = np.random.SeedSequence(0)
        result = randomization_test(laid, "randomized_session", options, seed)
        here = best_of(lambda laid=laid, seed=seed: randomization_test(laid, "randomized_session", options, seed))
        few = max(1, 100_000 // n)
        one = best_of(lambda sample=sample, few=few: literal_shuffle(sample, "0", few), 1) / few
        literal = one * REPLICATES * sample.n_versions
        vector = best_of(lambda sample=sample, few=few: numpy_shuffle(sample, few), 1) / few * REPLICATES
        print(f"{n:>9,} sessions x {laid.n_versions} versions x {laid.n_strata} strata, engine {result.engine}")
        print(f"    {REPLICATES:,} here, stratified, studentized  {here:10.2f} s")
        print(f"    literal shuffle (from {few:>2})          {literal:10.0f} s   {literal / here:10,.0f} x")
        print(f"    numpy shuffle (from {few:>2})            {vector:10.0f} s   {vector / here:10,.0f} x")


if __name__ == "__main__":
    main()
