from __future__ import annotations

import numpy as np
import pytest

from evalpipe.inference import Options
from evalpipe.inference.cells import cell_sums, group
from evalpipe.inference.exact.tables import heterogeneity, qualitative_interaction
from evalpipe.inference.shift import net_shift
from evalpipe.inference.stratum_effects import stratum_effects
from evalpipe.inference.variance import ClusterVariance
from evalpipe_tests.inference.helpers import draw, make


@pytest.mark.parametrize("reference", ["uniform", "stratum_mean", "model"])
def test_effects_of_strata_add_up_to_the_net_improvement(reference: str) -> None:
    sample = draw(3, n=600, n_versions=3, n_strata=4)
    options = Options(reference=reference, reference_index=0 if reference == "model" else None)
    found = stratum_effects(sample, options)
    weight = np.bincount(sample.stratum, minlength=4) / len(sample.y)
    assert np.allclose(found.effect @ weight, net_shift(sample, options).estimate)
    inside = sample.stratum == 2
    alone = net_shift(
        make(sample.y[inside], sample.version[inside], user=sample.user[inside], n_versions=3), options
    )  # fmt: skip
    assert np.allclose(found.effect[:, 2], alone.estimate)
    assert np.allclose(np.sqrt(found.variance[:, 2]), alone.se, equal_nan=True)


def test_a_cell_of_one_user_has_no_variance() -> None:
    y, version, stratum = [1.0, 0.0, 1.0, 0.0] * 4, [0, 0, 1, 1] * 4, [0] * 8 + [1] * 8
    user = [0, 1, 2, 3] * 2 + [0, 0, 2, 3] * 2
    found = stratum_effects(
        make(y, version, stratum, user), Options(min_users_per_cell=1, min_sessions_per_version=1)
    )  # fmt: skip
    assert np.isfinite(found.variance[:, 0]).all()
    assert np.isnan(found.variance[:, 1]).all()


def test_cells_without_sessions_have_no_spread() -> None:
    none = np.zeros(0, dtype=np.int64)
    rows = group(none, none, np.zeros(0), np.zeros(0), 2)
    found = ClusterVariance(rows, cell_sums(none, np.zeros(0), np.zeros(0), rows)).contrasts(np.eye(2))
    assert (found.cov == 0).all()
    assert np.isnan(found.df).all()


def test_users_who_keep_a_version_do_not_make_strata_differ() -> None:
    rng = np.random.default_rng(1)
    rejected = np.zeros(2)
    runs = 150
    for _ in range(runs):
        # 80 users of a version each, without any effect; a user's luck depends on the kind of work.
        user = rng.integers(0, 80, 1_600)
        stratum = rng.integers(0, 4, 1_600)
        luck = rng.beta(0.5, 0.5, (80, 4))
        y = rng.random(1_600) < luck[user, stratum]
        found = stratum_effects(make(y.astype(float), user % 2, stratum, user), Options())
        effect, variance = found.effect[0], found.variance[0]
        p = heterogeneity(effect, variance).p, qualitative_interaction(effect, variance)[1]
        rejected += np.array(p) < 0.05
    assert (rejected / runs < 0.1).all()
    assert rejected[0] > 0
