"""Samples for the tests of inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evalpipe.inference import Options, Sample
from evalpipe.inference.prepare import Prepared, find_support, layout, prepare, total
from evalpipe.inference.studentize import Layout


def codes(values: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    levels = sorted(set(values))
    place = {level: i for i, level in enumerate(levels)}
    return np.array([place[value] for value in values], dtype=np.int32), levels


def make(
    y: Sequence[float],
    version: Sequence[int],
    stratum: Sequence[int] | None = None,
    user: Sequence[int] | None = None,
    **more: Any,
) -> Sample:
    n = len(y)
    more.setdefault("d", np.ones(n))
    more.setdefault("epoch", np.zeros(n, dtype=np.int32))
    more["d"], more["epoch"] = np.asarray(more["d"], float), np.asarray(more["epoch"], np.int32)
    version_codes = np.asarray(version, dtype=np.int32)
    stratum_codes = np.asarray(stratum if stratum is not None else [0] * n, dtype=np.int32)
    more.setdefault("n_versions", int(version_codes.max(initial=-1)) + 1)
    more.setdefault("n_strata", int(stratum_codes.max(initial=-1)) + 1)
    return Sample(
        y=np.asarray(y, dtype=float),
        version=version_codes,
        stratum=stratum_codes,
        user=np.asarray(user if user is not None else range(n), dtype=np.int32),
        **more,
    )


def draw(
    seed: int,
    n: int = 300,
    n_versions: int = 3,
    n_strata: int = 2,
    n_users: int = 40,
    effects: Sequence[float] | None = None,
    *,
    sticky: bool = False,
    user_sd: float = 0.0,
) -> Sample:
    rng = np.random.default_rng(seed)
    user = rng.integers(0, n_users, n)
    version = rng.permutation(n_users)[user] % n_versions if sticky else rng.integers(0, n_versions, n)
    stratum = rng.integers(0, n_strata, n)
    chance = 0.5 + 0.1 * stratum + user_sd * rng.standard_normal(n_users)[user]
    chance = chance + np.asarray(effects or [0.0] * n_versions)[version]
    y = rng.random(n) < chance
    return make(y.astype(float), version, stratum, user, n_versions=n_versions, n_strata=n_strata)


def prepared(sample: Sample, options: Options | None = None) -> Prepared:
    options = options or Options()
    totals = total(sample)
    return prepare(sample, totals, find_support(sample, totals, options), options)


def laid(sample: Sample, options: Options | None = None) -> Layout:
    options = options or Options()
    totals = total(sample)
    return layout(sample, totals, prepare(sample, totals, find_support(sample, totals, options), options))
