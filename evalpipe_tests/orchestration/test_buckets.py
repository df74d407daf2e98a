"""A landing that an object store refuses: told to the command, and not to the history."""

from __future__ import annotations

from pathlib import Path

from evalpipe.contracts.errors import Exit
from evalpipe_tests.bucket import BUCKET, ENVIRON, ObjectStore, error
from evalpipe_tests.orchestration.small import running


def test_the_place_of_a_refused_source_is_told_and_not_kept(tmp_path: Path, store: ObjectStore) -> None:
    store.answer = lambda method, path: error("403 Forbidden", "InvalidAccessKeyId")
    with running(tmp_path) as (settings, runner):
        (cause,) = runner.land([f"s3://{BUCKET}/agents"], None).causes
    assert (cause.code, cause.where, cause.exit) == ("SOURCE_DENIED", f"s3://{BUCKET}/agents", Exit.USAGE)
    assert "AWS_ACCESS_KEY_ID" in cause.fix
    history = b"".join(path.read_bytes() for path in settings.dagster_home.rglob("*.db*"))
    assert b"SOURCE_DENIED" in history
    assert not [text for text in (BUCKET, *list(ENVIRON.values())[:2]) if text.encode() in history]
