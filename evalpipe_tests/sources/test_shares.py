"""Workers that share an archive read together what one reads alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evalpipe.sources import fingerprint, parse_batch, plan_batches
from evalpipe_tests.sources.helpers import OPTIONS, Claude, Read, lines, tar, text


def members(n: int) -> list[tuple[str, bytes]]:
    return [(f"{at}.jsonl", lines(Claude(f"s{at}").user([text("go")]), "{broken")) for at in range(n)]


CASES = {
    "archive": tar(members(7)),
    "cut archive": tar(members(5))[:-6000],
    "one member": tar(members(1)),
    "plain file": members(1)[0][1],
    "empty file": b"",
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_shares", [2, 3])
def test_shares_together_are_the_whole(name: str, n_shares: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(CASES[name])
    whole = Read(path)
    [batch] = plan_batches([fingerprint(path)], 1 << 28)
    shares = [list(parse_batch(batch, OPTIONS, share=share, n_shares=n_shares)) for share in range(n_shares)]
    for table in ("sessions", "steps", "quarantine", "files"):
        expected = getattr(whole, table)
        # Chunks have columns for the landing zone beside those of the contract.
        together = pl.concat([getattr(chunk, table) for chunks in shares for chunk in chunks]).select(expected.columns)
        assert together.sort(together.columns[:8]).equals(expected.sort(expected.columns[:8]))
    if name == "archive":
        assert [sum(chunk.sessions.height for chunk in chunks) for chunks in shares] == [
            len(range(share, 7, n_shares)) for share in range(n_shares)
        ]
