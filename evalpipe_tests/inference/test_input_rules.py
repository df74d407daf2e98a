from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalpipe.inference import Options, Sample, compare
from evalpipe_tests.inference.helpers import draw, make

FEW = Options(permutations=9, draws=100)


def spoiled(field: str, at: int, value: float) -> Sample:
    sample = replace(draw(1), weight=np.ones(300), y_low=0.0, y_high=1.0)
    values = np.array(getattr(sample, field))
    values[at] = value
    return replace(sample, **{field: values})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("y", np.nan, "y is NaN or infinite at positions 17"),
        ("y", np.inf, "y is NaN or infinite at positions 17"),
        ("y", 1.5, "y is outside its declared range at positions 17"),
        ("y", -0.5, "y is outside its declared range at positions 17"),
        ("d", np.nan, "d is NaN or infinite at positions 17"),
        ("d", -1.0, "d is negative at positions 17"),
        ("weight", 0.0, "weight is not positive at positions 17"),
        ("weight", np.nan, "weight is NaN or infinite at positions 17"),
        ("version", 3, "version is out of range at positions 17"),
        ("stratum", -1, "stratum is out of range at positions 17"),
        ("user", -1, "user is negative at positions 17"),
    ],
)
def test_illegal_values_are_named_by_position(field: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(spoiled(field, 17, value), FEW)


def test_many_positions_are_counted() -> None:
    sample = draw(1)
    with pytest.raises(ValueError, match="positions 0, 1, 2, 3, 4 and 295 more"):
        compare(replace(sample, y=np.full(300, np.nan)), FEW)


def test_numerators_without_a_denominator_are_refused() -> None:
    with pytest.raises(ValueError, match="y is non-zero where d is 0 at positions 1"):
        compare(make([0, 1, 0], [0, 0, 1], d=[0, 0, 1]), FEW)


def test_shapes_and_types_are_checked() -> None:
    with pytest.raises(ValueError, match="user has shape"):
        compare(replace(draw(1), user=np.zeros(3, dtype=np.int32)), FEW)
    with pytest.raises(ValueError, match="version must hold integer codes"):
        compare(replace(draw(1), version=np.zeros(300)), FEW)


@pytest.mark.parametrize(
    "change",
    [
        {"reference": "median"},
        {"population": "all"},
        {"design": "guess"},
        {"alpha": 0.0},
        {"permutations": 0},
        {"draws": 0},
        {"min_users_per_cell": 1},
        {"reference": "model"},
        {"reference": "model", "reference_index": 9},
        {"parents": np.array([-1], dtype=np.int32)},
        {"parents": np.array([1, 0], dtype=np.int32)},
        {"parents": np.array([-1, 7], dtype=np.int32)},
    ],
)
def test_illegal_options_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change)) + "|reference_index"):
        compare(draw(1), replace(FEW, **change))


def test_few_users_make_decisions_inconclusive() -> None:
    user = np.arange(60) // 15
    y = np.random.default_rng(0).integers(0, 2, 60)
    found = compare(make(y, np.arange(60) // 30, user=user), FEW)
    assert found.status == ["inconclusive"] * 2
    assert "few_degrees_of_freedom" in found.reasons[0]
    assert "few_effective_users" in found.reasons[0]
    assert np.isfinite(found.lo).all()


def test_effective_users_do_not_exist_where_users_balance() -> None:
    # Every user has the same share of all versions: what is left of G* would be rounding.
    y = np.random.default_rng(0).integers(0, 2, 99)
    found = compare(make(y, np.arange(99) // 33, user=np.arange(99) % 11), FEW)
    assert np.isnan(found.gstar).all()
    assert np.isfinite(found.df).all()
    assert found.status == ["ok"] * 3


def test_a_dominant_user_is_flagged_on_the_versions_it_moves() -> None:
    sample = draw(2, n=600, n_users=300, n_versions=4)
    heavy = np.where((sample.version == 1) & (sample.stratum == 0), 5, sample.user)
    heavy[np.flatnonzero((sample.version == 1) & (sample.stratum == 0))[:3]] = [6, 7, 8]
    found = compare(replace(sample, user=heavy.astype(np.int32)), FEW)
    assert [("dominant_user" in why) for why in found.reasons] == [False, True, False, False]


def test_equal_outcomes_give_an_estimate_without_an_interval() -> None:
    for value, design in ((0.1, "randomized_session"), (1.0, "randomized_session"), (0.1, "randomized_user")):
        found = compare(replace(draw(1), y=np.full(300, value)), replace(FEW, design=design))
        assert found.status == ["inconclusive"] * 3
        assert found.reasons[0] == ("no_variation",)
        np.testing.assert_allclose(found.estimate, 0.0, atol=1e-12)
        for name in ("se", "lo", "hi_sim", "p_perm", "p_adj", "deff", "mde"):
            assert np.isnan(getattr(found, name)).all(), name
        assert not found.pair_better.any()
        assert found.engine == "none"
