"""What all tests share: the same examples in every run, and an object store for those who ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from evalpipe_tests.bucket import ObjectStore

# So that a red run can be repeated. The examples are the same in every run, so more of them cost every
# run and find nothing new in the next; `make fuzz` is what goes on looking.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("repeatable")


@pytest.fixture(scope="module")
def _served() -> Iterator[ObjectStore]:
    # Inside, because the server takes a second to load and few tests need it.
    from evalpipe_tests.bucket import object_store

    with object_store() as store:
        yield store


@pytest.fixture
def store(_served: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """An object store with an empty bucket, which the environment names."""
    from evalpipe_tests.bucket import ENVIRON

    for name in ("AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (ENVIRON | {"AWS_ENDPOINT_URL": _served.url}).items():
        monkeypatch.setenv(name, value)
    _served.reset()
    return _served
