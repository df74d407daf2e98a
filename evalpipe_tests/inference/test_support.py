from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalpipe.inference import Options, compare
from evalpipe_tests.inference.helpers import draw, make

FEW = Options(permutations=9, draws=200)


def block(counts: dict[tuple[int, int], int], **more: object):
    """Sessions by (version, stratum), each of a user of its own, outcomes alternating."""
    version, stratum = [], []
    for (k, s), n in counts.items():
        version += [k] * n
        stratum += [s] * n
    y = [float(i % 2) for i in range(len(version))]
    return make(y, version, stratum, **more)


def test_one_user_does_not_make_a_cell() -> None:
    sample = draw(1, n_versions=2, n_strata=2)
    is_lonely = (sample.stratum == 1) & (sample.version == 0)
    lonely = replace(sample, user=np.where(is_lonely, 7, sample.user).astype(np.int32))
    found = compare(lonely, FEW)
    assert found.kept.tolist() == [True, False]
    assert found.support_share == pytest.approx((sample.stratum == 0).mean())
    # Half of the traffic is out of support: numbers are shown, decisions and ranks are not.
    assert found.status == ["inconclusive"] * 2
    assert all("low_support" in why for why in found.reasons)
    assert (found.rank_lo == 0).all()
    assert found.letters == ["", ""]
    assert np.isfinite(found.estimate).all()


def test_rare_strata_merge_into_their_parent() -> None:
    # Strata: 0 all, 1 chat, 2 chat/de (version 1 is missing), 3 chat/en.
    counts = {(0, 1): 4, (1, 1): 4, (0, 2): 5, (0, 3): 6, (1, 3): 6}
    parents = np.array([-1, 0, 1, 1], dtype=np.int32)
    found = compare(block(counts, n_strata=4), replace(FEW, parents=parents))
    assert found.merged_into.tolist() == [-1, -1, 1, -1]
    assert found.kept.tolist() == [False, True, True, True]
    assert found.support_share == 1.0
    np.testing.assert_allclose(found.weights, [np.nan, 13 / 25, np.nan, 12 / 25])
    assert found.cell_n[:, 1].tolist() == [9, 4]
    assert found.cell_n[:, 2].tolist() == [5, 0]


def test_merging_goes_up_as_far_as_needed() -> None:
    counts = {(0, 1): 4, (1, 2): 5, (0, 3): 6, (1, 3): 6}
    parents = np.array([-1, 0, 1, 1], dtype=np.int32)
    found = compare(block(counts, n_strata=4), replace(FEW, parents=parents))
    # 2 goes into 1, which then has both versions: nothing needs to reach 0.
    assert found.merged_into.tolist() == [-1, -1, 1, -1]
    alone = compare(block({(0, 1): 4, (0, 3): 6, (1, 3): 6}, n_strata=4), replace(FEW, parents=parents))
    assert alone.merged_into.tolist() == [-1, 0, -1, -1]
    assert alone.kept.tolist() == [False, False, False, True]


def test_a_user_in_two_children_is_one_user_of_the_parent() -> None:
    sample = block({(0, 1): 6, (1, 1): 1, (0, 2): 6, (1, 2): 1}, n_strata=3)
    user = sample.user.copy()
    user[sample.version == 1] = 0
    parents = np.array([-1, 0, 0], dtype=np.int32)
    found = compare(replace(sample, user=user), replace(FEW, parents=parents))
    assert not found.kept.any()
    assert found.status == ["unavailable", "unavailable"]


def test_a_version_that_causes_the_loss_leaves() -> None:
    counts = {(k, s): 20 for k in range(3) for s in range(2)} | {(3, 0): 8}
    found = compare(block(counts), FEW)
    assert found.status == ["ok", "ok", "ok", "unavailable"]
    assert found.reasons[3] == ("insufficient_overlap",)
    assert found.support_share == 1.0
    assert np.isnan(found.estimate[3])
    assert found.rank_hi.tolist() == [3, 3, 3, 0]
    assert found.n_sessions[3] == 8


def test_two_thin_versions_leave_together() -> None:
    counts = {(k, s): 20 for k in range(3) for s in range(3)} | {(3, 0): 8, (4, 0): 9}
    found = compare(block(counts), FEW)
    assert found.status == ["ok"] * 3 + ["unavailable"] * 2


def test_versions_that_carry_most_traffic_do_not_leave() -> None:
    counts = {(0, 0): 200, (1, 0): 20, (2, 0): 20, (1, 1): 60, (2, 1): 60}
    found = compare(block(counts), FEW)
    assert found.reasons[0] == ("low_support",)
    assert found.kept.tolist() == [True, False]


def test_the_named_reference_does_not_leave() -> None:
    counts = {(k, s): 20 for k in range(3) for s in range(2)} | {(3, 0): 8}
    found = compare(block(counts), replace(FEW, reference="model", reference_index=3))
    assert "is_reference" in found.reasons[3]
    assert found.status[0] == "inconclusive"


def test_absent_and_thin_versions() -> None:
    sample = make([1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1, 3], n_versions=4)
    found = compare(sample, replace(FEW, min_sessions_per_version=3))
    assert found.reasons[2:] == [("absent",), ("too_few_sessions",)]
    assert found.n_sessions.tolist() == [3, 3, 0, 1]
    assert np.isnan(found.raw_rate[2])
    assert found.raw_rate[3] == 1.0


@pytest.mark.parametrize(
    ("sample", "options", "reason"),
    [
        (make([1, 0, 1], [0, 0, 0], n_versions=2), FEW, "no_comparator"),
        (make([1, 0, 1, 0], [0, 0, 1, 1], user=[0, 0, 1, 1]), FEW, "too_few_users"),
        (make([1, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1]), FEW, "no_common_support"),
        (
            make([1, 0, 1, 0], [0, 0, 1, 1], n_versions=3),
            replace(FEW, reference="model", reference_index=2),
            "reference_unavailable",
        ),
        (make([], [], n_versions=2, n_strata=1), FEW, "absent"),
    ],
)
def test_nothing_to_compare(sample, options: Options, reason: str) -> None:
    found = compare(sample, options)
    assert set(found.status) == {"unavailable"}
    assert reason in {why[0] for why in found.reasons}
    assert np.isnan(found.estimate).all()
    assert np.isnan(found.cov).all()
    assert found.engine == "none"
