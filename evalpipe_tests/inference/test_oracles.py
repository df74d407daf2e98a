"""Every check of every folder of reference results, within its stated tolerance.

The folder is the one that ``EVALPIPE_ORACLES`` names, else ``../shared/oracles``.
"""

from __future__ import annotations

import pytest

from evalpipe_tests.inference.oracles import causal, effects, exact, labels, rates, times
from evalpipe_tests.inference.oracles.case import ROOT, Check, answer, cases, differences

FAMILIES = (causal, effects, exact, labels, rates, times)
CASES = cases()
CHECKS = [check for case in CASES for check in case.checks()]
absent = pytest.mark.skipif(not ROOT.is_dir(), reason=f"no reference results at {ROOT.name}")


@absent
def test_every_folder_holds_checks() -> None:
    assert CASES
    assert [case.path.name for case in CASES if not case.checks()] == []


@absent
@pytest.mark.parametrize(
    "check", CHECKS or [None], ids=lambda c: f"{c.case.path.name}-{c.file}-{c.name}" if c else "none"
)
def test_reference_results(check: Check) -> None:
    assert differences(answer(check), check) == []
