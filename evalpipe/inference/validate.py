"""Checks of a sample and its options before anything is computed.

Belongs here: what makes input illegal. Does not belong here: what makes a legal input too thin to
answer (that is a status, in ``support`` and ``compare``). An error names positions, never values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalpipe.inference.model import DESIGNS, POPULATIONS, REFERENCES, Bools, Options, Sample

_SHOWN = 5
_FEWEST_USERS = 2


def check_sample(sample: Sample) -> None:
    """Refuse arrays that do not fit together or hold illegal values.

    Raises:
        ValueError: Lengths differ; a code is out of range; ``y``, ``d`` or ``weight`` is NaN or
            infinite; ``d`` or ``weight`` is negative; ``y`` is outside its declared range, or
            non-zero where ``d`` is 0. Names the field and the first positions.
    """
    n = len(sample.y)
    arrays: dict[str, NDArray[np.number]] = {"d": sample.d, "version": sample.version, "stratum": sample.stratum}
    arrays |= {"user": sample.user, "epoch": sample.epoch}
    if sample.weight is not None:
        arrays["weight"] = sample.weight
    for name, values in arrays.items():
        if values.shape != (n,):
            raise ValueError(f"{name} has shape {values.shape}, expected ({n},)")
    _refuse("y", "NaN or infinite", ~np.isfinite(sample.y))
    _refuse("d", "NaN or infinite", ~np.isfinite(sample.d))
    _refuse("d", "negative", sample.d < 0)
    _refuse("y", "outside its declared range", (sample.y < sample.y_low) | (sample.y > sample.y_high))
    _refuse("y", "non-zero where d is 0", (sample.d == 0) & (sample.y != 0))
    if sample.weight is not None:
        _refuse("weight", "NaN or infinite", ~np.isfinite(sample.weight))
        _refuse("weight", "not positive", sample.weight <= 0)
    _check_codes("version", sample.version, sample.n_versions)
    _check_codes("stratum", sample.stratum, sample.n_strata)
    _check_codes("user", sample.user, None)
    _check_codes("epoch", sample.epoch, None)


def check_options(options: Options, n_versions: int, n_strata: int) -> None:
    """Refuse options outside their vocabulary or range.

    Raises:
        ValueError: Names the option.
    """
    for name, value, legal in (
        ("reference", options.reference, REFERENCES),
        ("population", options.population, POPULATIONS),
        ("design", options.design, DESIGNS),
    ):
        if value not in legal:
            raise ValueError(f"{name} must be one of {', '.join(legal)}; got {value!r}")
    if options.reference == "model" and not 0 <= (options.reference_index or 0) < n_versions:
        raise ValueError(f"reference_index must be a version code below {n_versions}")
    if options.reference == "model" and options.reference_index is None:
        raise ValueError("reference 'model' needs reference_index")
    _check_standard(options, n_strata)
    if not 0 < options.alpha < 1:
        raise ValueError("alpha must lie between 0 and 1")
    for name, number in (("permutations", options.permutations), ("draws", options.draws)):
        if number < 1:
            raise ValueError(f"{name} must be positive")
    if options.min_users_per_cell < _FEWEST_USERS:
        raise ValueError(f"min_users_per_cell must be at least {_FEWEST_USERS}: one user has no variance")
    _check_parents(options, n_strata)


def _check_parents(options: Options, n_strata: int) -> None:
    if options.parents is None:
        return
    parents = np.asarray(options.parents)
    if parents.shape != (n_strata,):
        raise ValueError(f"parents has shape {parents.shape}, expected ({n_strata},)")
    _refuse("parents", "not a stratum code or -1", (parents < -1) | (parents >= n_strata))
    above = parents.copy()
    for _ in range(n_strata):
        above = np.where(above >= 0, parents[above], -1)
    _refuse("parents", "on a cycle", above >= 0)


def _check_standard(options: Options, n_strata: int) -> None:
    standard = options.standard
    if (options.population == "standard") != (standard is not None):
        raise ValueError("population 'standard' and the option standard need each other")
    if standard is None:
        return
    if not np.isfinite(standard.weight).all() or (standard.weight < 0).any() or not standard.weight.sum() > 0:
        raise ValueError("weights of a standard population are not negative, and one of them is positive")
    if standard.group.shape != (n_strata,):
        raise ValueError(f"groups of a standard population have shape {standard.group.shape}, expected ({n_strata},)")
    if ((standard.group < -1) | (standard.group >= len(standard.weight))).any():
        raise ValueError("a group of a standard population is out of range")


def _check_codes(name: str, codes: NDArray[np.int32], bound: int | None) -> None:
    if not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(f"{name} must hold integer codes, got {codes.dtype}")
    bad = codes < 0
    if bound is not None:
        bad = bad | (codes >= bound)
    _refuse(name, "out of range" if bound is not None else "negative", bad)


def _refuse(name: str, what: str, bad: Bools) -> None:
    if not bad.any():
        return
    where = np.flatnonzero(bad)
    shown = ", ".join(str(i) for i in where[:_SHOWN])
    more = f" and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
    raise ValueError(f"{name} is {what} at positions {shown}{more}")
