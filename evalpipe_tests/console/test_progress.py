"""Where no terminal is, only steps that took their time leave a line."""

from __future__ import annotations

import time

import pytest

from evalpipe.console.progress import Bars


@pytest.mark.parametrize(("seconds", "said"), [(0.5, ""), (3.0, "masked: 1 day in 3.0 s\n")])
def test_short_steps_are_silent(
    seconds: float, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 100.0 + seconds])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with Bars() as bars:
        bars.start("masked", 1, "days")
        bars.advance("masked", 1)
        bars.finish("masked")
    assert capsys.readouterr().err == said
