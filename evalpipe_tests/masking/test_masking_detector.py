"""The independent detector: its prefilter passes on whatever its patterns match."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.masking.detector import Detector, detectors

_LOOKS_AROUND = re.compile(r"\(\?<?[=!](?:[^()\[\]]|\[[^\]]*\])*\)")


@pytest.mark.parametrize("detector", detectors(), ids=lambda detector: detector.id)
@given(data=st.data())
def test_no_prefilter_hides_what_the_pattern_matches(detector: Detector, data: st.DataObject) -> None:
    # Without what only looks around, which no generator can aim at, it matches more and never less.
    text = data.draw(st.from_regex(_LOOKS_AROUND.sub("", detector.pattern.pattern)))
    assert pl.Series([text]).str.contains(detector.shape).item()
    assert not detector.literals or any(literal in text for literal in detector.literals)
