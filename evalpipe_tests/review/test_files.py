"""Files of reviewers: what is refused, what is kept, and whose items they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.console import review as verbs
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.reviews import was_drawn


@pytest.mark.parametrize(
    ("item_id", "expected"),
    [("s12345678-0001", True), ("s12345678-0200", True), ("12345678.0007", True), ("s12345678-0201", False),
     ("s12345678-0000", False), ("s12345678-7", False), ("s12345678-00007", False), ("12345678.0", False),
     ("s12345678-", False), ("s12345678", False), ("12345678", False), ("other-0001", False),
     ("s12345678-\u0661\u0661\u0661\u0661", False)],
)  # fmt: skip
def test_only_numbers_that_a_sample_held_can_have_gone(item_id: str, expected: bool) -> None:
    assert was_drawn(item_id, {"s12345678": 200, "12345678": None}) is expected


def test_a_file_that_may_hold_labels_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "review.jsonl"
    verbs.check_out(out, force=False)
    out.write_text("labels")
    with pytest.raises(EvalpipeError, match=r"BAD_ARGUMENT.*--force"):
        verbs.check_out(out, force=False)
    verbs.check_out(out, force=True)
