"""A window whose days were masked under different keys is not scored."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import load
from evalpipe.steps.analysis import make_analysis
from evalpipe.steps.context import Context
from evalpipe.steps.epochs import adopt
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import DAY, make, opened, session, write

DAYS = [DAY, DAY + timedelta(days=1)]
AS_OF = DAYS[-1] + timedelta(days=5)
OTHER = "6f" * 32


def _make_day(context: Context, index: int) -> None:
    done = make(context, days=[DAYS[index]])
    assert not any(result.red for result in done.values())


def test_a_window_that_mixes_keys_is_refused_until_its_older_days_are_made_anew(tmp_path: Path) -> None:
    rows = [row for i in range(24) for row in session(f"s{i}", DAYS[i % 2], model=f"m-{i % 3 // 2}", user_id=f"u{i}")]
    log = write(tmp_path / "a.jsonl", *rows)
    with opened(tmp_path / "home") as context:
        land(context, [log])
        make(context)
        assert make_analysis(context, [AS_OF], "all").made
    settings = load(folder=tmp_path, environ={}, home=tmp_path / "home")
    adopt(settings, {"EVALPIPE_KEY": OTHER})
    with opened(tmp_path / "home", key=OTHER) as context:
        assert context.plan().days == DAYS
        # All days are still under the old key, which is one key.
        assert make_analysis(context, [AS_OF], "all").red == {}
        _make_day(context, 1)
        with pytest.raises(EvalpipeError, match="MIXED_KEYS") as caught:
            make_analysis(context, [AS_OF], "all")
        assert f"evalpipe backfill {DAYS[0]}..{DAYS[1]}" in caught.value.fix
        make(context)
        assert make_analysis(context, [AS_OF], "all").made
