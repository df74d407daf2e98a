from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evalpipe.inference import DesignReport, Options, Sample, design_checks
from evalpipe.inference.balance import balance_test, largest_smd
from evalpipe_tests.inference.helpers import draw, make

FEW = Options(permutations=199, draws=100)


def status(report: DesignReport) -> dict[tuple[str, str], str]:
    return {(check.check, check.subject): check.status for check in report.checks}


def test_a_fair_split_passes() -> None:
    sample = draw(4, n=2_000, n_users=1_500)
    rng = np.random.default_rng(1)
    covariates = {"length": rng.random(2_000), "plan": rng.integers(0, 3, 2_000)}
    report = design_checks(sample, FEW, shares=np.full(3, 1 / 3), covariates=covariates)
    assert (report.design, report.is_suspect) == ("randomized_session", False)
    assert set(status(report).values()) == {"ok"}
    assert [check.check for check in report.checks] == [
        "stickiness", "srm", "balance", "smd", "balance", "smd", "positivity",
    ]  # fmt: skip


def test_skewed_counts_fail_per_epoch() -> None:
    sample = draw(4, n=2_000, n_users=1_500, n_versions=2)
    epoch = (sample.version ^ (np.random.default_rng(2).random(2_000) < 0.1)).astype(np.int32)
    # Over both epochs the counts are even; within each they are 9 to 1.
    report = design_checks(replace(sample, epoch=epoch), FEW, shares=np.full(2, 0.5))
    assert status(report)["srm", "sessions"] == "suspect"
    assert (report.design, report.is_suspect) == ("observational", True)
    told = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert status(design_checks(replace(sample, epoch=epoch), FEW, shares=told))["srm", "sessions"] == "ok"


def test_a_version_without_a_share_must_not_serve() -> None:
    report = design_checks(draw(4, n_users=300), FEW, shares=np.array([0.5, 0.5, 0.0]))
    assert status(report)["srm", "sessions"] == "suspect"


def test_shares_must_fit() -> None:
    for shares in (np.full(2, 0.5), np.full(3, 0.5)):
        with pytest.raises(ValueError, match="shares"):
            design_checks(draw(4), FEW, shares=shares)


@pytest.mark.parametrize("numeric", [True, False])
def test_imbalance_within_strata_is_found(numeric: bool) -> None:
    sample = draw(4, n=1_000, n_users=900)
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, 1_000) + 0.4 * (sample.version == 0)
    values = x if numeric else (x > 0).astype(np.int64)
    report = design_checks(sample, FEW, covariates={"length": values, "noise": rng.random(1_000)})
    found = status(report)
    assert found["balance", "length"] == "suspect"
    assert found["balance", "noise"] == "ok"
    assert report.design == "observational"
    assert largest_smd(sample, values) > 0.1


def test_routing_by_stratum_is_no_imbalance() -> None:
    rng = np.random.default_rng(5)
    stratum = rng.integers(0, 2, 2_000)
    version = (rng.random(2_000) < np.where(stratum == 1, 0.8, 0.2)).astype(np.int32)
    sample = make(rng.integers(0, 2, 2_000), version, stratum)
    harder = stratum + rng.normal(0, 1, 2_000)
    report = design_checks(sample, FEW, covariates={"difficulty": harder})
    assert not report.is_suspect
    assert largest_smd(sample, harder) < 0.15


def sticky_sample(seed: int, n: int = 1_200, n_users: int = 120) -> tuple[Sample, np.ndarray]:
    sample = draw(seed, n=n, n_users=n_users, n_versions=2, n_strata=2, sticky=True)
    trait = np.random.default_rng(seed).normal(0, 1, n_users)[sample.user]
    return sample, trait


def test_sticky_users_are_noticed_and_permuted() -> None:
    sample, trait = sticky_sample(1)
    report = design_checks(sample, FEW, shares=np.full(2, 0.5), covariates={"trait": trait})
    assert report.design == "randomized_user"
    srm = next(check for check in report.checks if check.check == "srm")
    per_version = [len(set(sample.user[sample.version == k])) for k in range(2)]
    assert srm.subject == "users"
    assert srm.value == pytest.approx(float(stats.chisquare(per_version).pvalue))
    assert "users are permuted" in report.checks[0].detail
    detail = next(check.detail for check in report.checks if check.check == "balance")
    assert "user permutation" in detail
    loose = draw(4, n=1_200, n_users=120, n_versions=2)
    calm = design_checks(loose, FEW)
    assert calm.design == "randomized_session"
    assert "Users are permuted" not in calm.checks[0].detail


def test_balance_of_user_traits_needs_user_permutation() -> None:
    by_user, by_session, categories = [], [], []
    for seed in range(40):
        sample, trait = sticky_sample(seed, n=400, n_users=40)
        stream = np.random.SeedSequence(seed)
        by_user.append(balance_test(sample, trait, by_user=True, seed=stream).p)
        by_session.append(balance_test(sample, trait, by_user=False, seed=stream).p)
        kind = (trait > 0).astype(np.int64)
        categories.append(balance_test(sample, kind, by_user=True, seed=stream).p)
    assert np.mean(np.array(by_user) <= 0.05) <= 0.15
    assert np.mean(np.array(categories) <= 0.05) <= 0.15
    assert np.mean(np.array(by_session) <= 0.05) >= 0.5


def test_users_trade_versions_within_their_epoch_only() -> None:
    # Shares and the trait both moved between epochs: no imbalance at the time of any assignment.
    rng = np.random.default_rng(8)
    user = np.arange(600)
    epoch = user // 300
    version = rng.random(600) < np.where(epoch == 0, 0.8, 0.2)
    sample = make(rng.integers(0, 2, 600), version.astype(int), user=user, epoch=epoch)
    trait = 2.0 * epoch + rng.normal(0, 1, 600)
    assert balance_test(sample, trait, by_user=True, seed=np.random.SeedSequence(0)).p > 0.05


def test_sessions_trade_versions_within_their_stratum_only() -> None:
    # Stratum 0 is the most extreme of its six arrangements, as is its mirror; stratum 1 has one.
    version, stratum = np.r_[0, 0, 1, 1, np.zeros(60)].astype(int), np.r_[np.zeros(4), np.ones(60)].astype(int)
    trait = np.r_[0.0, 0.1, 1.0, 1.1, np.random.default_rng(8).random(60)]
    found = balance_test(make(np.zeros(64), version, stratum), trait, by_user=False, seed=np.random.SeedSequence(0))
    assert found.p == pytest.approx(2 / 6, abs=0.05)


def test_a_gross_imbalance_shows_with_few_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.inference.balance._BUDGET", 1.0)
    sample, _ = sticky_sample(3)
    found = balance_test(sample, sample.version + 0.1 * sample.y, by_user=True, seed=np.random.SeedSequence(0))
    assert found.p < 1e-6


def test_permutation_agrees_with_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = draw(6, n=900, n_users=800)
    rng = np.random.default_rng(6)
    stream = np.random.SeedSequence(0)
    x = rng.normal(0, 1, 900) + 0.12 * (sample.version == 1)
    kind = (x > 0.3).astype(np.int64)
    exact = balance_test(sample, x, by_user=False, seed=stream)
    assert exact.method == "permutation"
    monkeypatch.setattr("evalpipe.inference.balance._BUDGET", 1e3)
    limit = balance_test(sample, x, by_user=False, seed=stream)
    assert limit.method == "chi-square limit"
    assert limit.p == pytest.approx(exact.p, abs=0.04)
    monkeypatch.undo()
    monkeypatch.setattr("evalpipe.inference.balance._BUDGET", 900 * 199)
    gamma = balance_test(replace(sample, user=np.arange(900, dtype=np.int32)), x, by_user=True, seed=stream)
    assert gamma.p == pytest.approx(exact.p, abs=0.05)
    monkeypatch.undo()
    pearson = balance_test(sample, kind, by_user=False, seed=stream)
    assert pearson.method == "chi-square"
    monkeypatch.setattr("evalpipe.inference.balance._FEW_EXPECTED", 1e9)
    permuted = balance_test(sample, kind, by_user=False, seed=stream)
    assert permuted.method == "permutation"
    assert permuted.p == pytest.approx(pearson.p, abs=0.04)


def test_thin_versions_are_told_but_do_not_fail() -> None:
    version = np.r_[np.zeros(1_000), np.ones(3)].astype(np.int32)
    report = design_checks(make(np.arange(1_003) % 2, version), FEW)
    positivity = report.checks[-1]
    assert (positivity.check, positivity.status) == ("positivity", "inconclusive")
    assert positivity.value == pytest.approx(3 / 1_003)
    assert not report.is_suspect


def test_missing_evidence_is_unavailable() -> None:
    report = design_checks(make([1, 0, 1, 0], [0, 0, 1, 1]), FEW, covariates={"same": np.zeros(4)})
    found = status(report)
    assert found["stickiness", "users"] == "unavailable"
    assert found["srm", "sessions"] == "unavailable"
    assert found["balance", "same"] == "unavailable"
    assert found["smd", "same"] == "unavailable"
    empty = design_checks(make([], [], n_versions=2, n_strata=1), FEW)
    assert [check.status for check in empty.checks] == ["unavailable"]


def test_covariates_must_be_whole() -> None:
    with pytest.raises(ValueError, match="covariate age"):
        design_checks(draw(1), FEW, covariates={"age": np.full(300, np.nan)})
    with pytest.raises(ValueError, match="covariate age"):
        design_checks(draw(1), FEW, covariates={"age": np.zeros(3)})


def test_imbalance_contradicts_only_a_claim_of_randomness() -> None:
    sample = draw(4, n=2_000, n_users=1_500)
    follows = {"language": (sample.version == 1).astype(np.int64)}
    claimed = design_checks(sample, FEW, covariates=follows)
    assert (status(claimed)["balance", "language"], claimed.design, claimed.is_suspect) == (
        "suspect", "observational", True,
    )  # fmt: skip
    observed = design_checks(sample, replace(FEW, design="observational"), covariates=follows)
    assert (status(observed)["balance", "language"], observed.design, observed.is_suspect) == (
        "inconclusive", "observational", False,
    )  # fmt: skip
