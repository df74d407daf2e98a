"""A small simulation that several tests read."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from evalpipe.simulate import Spec, Truth, simulate

SMALL = Spec(sessions=420, days=4, start=date(2026, 1, 7), seed=8, users=40, canary_rate=0.25)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    out = tmp_path_factory.mktemp("simulated") / "out"
    return out, simulate(out, SMALL)
