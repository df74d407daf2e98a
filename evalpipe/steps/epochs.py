"""Which epoch of the key a home is under, and that nothing works on it while that changes.

Belongs here: finding the key of a home, refusing a home between two epochs, the lock that a rotation
takes alone. Does not belong here: the rotation itself (``rotation.py``), tokens (``masking/keys.py``).
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import keys
from evalpipe.masking.keys import MaskingKey
from evalpipe.settings import Settings
from evalpipe.store.files import lock_handle, write_atomically
from evalpipe.store.lake import Lake
from evalpipe.store.manifest import Manifest

#: Steps whose manifests name the key.
KEYED_STEPS = ("masked", "signals", "outcomes")
_GO_ON = "Run: evalpipe keys rotate"


def journal_file(settings: Settings) -> Path:
    """Where a rotation keeps its record; the file is there from its beginning to its end."""
    return settings.home / "rotation.jsonl"


def next_key_file(settings: Settings) -> Path:
    """Where the key with its new epoch lies until every slice is under it."""
    return settings.key_file.with_name(f"{settings.key_file.name}.next")


def key_of(settings: Settings, environ: Mapping[str, str]) -> MaskingKey:
    """The key of a home, made if the home is new.

    Args:
        settings: Settings of a home that exists.
        environ: Environment that may give the key.

    Raises:
        EvalpipeError: ``KEY_MISSING``, ``KEY_INVALID``, ``KEY_PERMISSIONS``; ``MIXED_KEYS`` where a
            rotation is not finished, or where the environment's key has an epoch that the home has not;
            ``KEY_CHANGED`` where masked days are under a key that has nothing to do with this one.
    """
    if journal_file(settings).exists():
        what = "a rotation of the key was begun and is not finished."
        raise EvalpipeError("MIXED_KEYS", what, where=str(settings.home), fix=_GO_ON)
    key = keys.load_or_create(settings.key_file, environ, is_new=not has_masked_slices(settings))
    if key.earlier:
        older = {old.fingerprint for old in key.ancestors()}
        n_older = sum(n for name, n in slices_by_key(settings).items() if name in older)
        if n_older:
            what = f"{n_older} slices are of an earlier epoch of the key."
            raise EvalpipeError("MIXED_KEYS", what, where=str(settings.home), fix=_GO_ON)
    _require_known(settings, key, environ)
    return key


def adopt(settings: Settings, environ: Mapping[str, str]) -> int:
    """Take the key that is given as the home's own from now on.

    Args:
        settings: Settings of a home that exists.
        environ: Environment that may give the key.

    Returns:
        Number of slices under unrelated keys, which are stale from now on.

    Raises:
        EvalpipeError: ``KEY_MISSING``, ``KEY_INVALID``, ``KEY_PERMISSIONS``; ``MIXED_KEYS`` in the middle of
            a rotation.
    """
    if journal_file(settings).exists():
        what = "a rotation of the key was begun and is not finished."
        raise EvalpipeError("MIXED_KEYS", what, where=str(settings.home), fix=_GO_ON)
    found = state(settings, environ)
    write_atomically(_adopted_file(settings), found.fingerprint + "\n")
    return found.slices_of_other_keys


def _adopted_file(settings: Settings) -> Path:
    return settings.key_file.with_name(f"{settings.key_file.name}.adopted")


def _require_known(settings: Settings, key: MaskingKey, environ: Mapping[str, str]) -> None:
    """Refuse a key that slices know nothing of: a variable that was lost, or set, must not remake a home."""
    mine = {key.fingerprint, *(old.fingerprint for old in key.ancestors())}
    paths = (settings.lake / "masked" / "_slices").rglob("day=*.json")
    made_with = (_made_with(path, path.stat().st_mtime_ns) for path in paths)
    others = Counter(name for name in made_with if name and name not in mine)
    adopted = _adopted_file(settings)
    if not others or (adopted.exists() and adopted.read_text("utf-8").strip() in mine):
        return
    given = f"{keys.ENVIRONMENT_NAME} gives" if keys.ENVIRONMENT_NAME in environ else "masking.key holds"
    made = ", ".join(f"{n} under {name}" for name, n in others.most_common(3))
    what = f"{given} the key {key.fingerprint}; of the masked days, {made}."
    raise EvalpipeError("KEY_CHANGED", what, where=str(settings.home))


@lru_cache(maxsize=65_536)
def _made_with(path: Path, modified_ns: int) -> str:
    """Fingerprint of the key of a masked day; a home is opened by every step, and has thousands of days."""
    del modified_ns
    try:
        return Manifest.from_json(path.read_text("utf-8")).inputs.get("key", "")
    except (ValueError, KeyError, TypeError, EvalpipeError):
        return ""  # whoever reads the slice says what is wrong with it


def has_masked_slices(settings: Settings) -> bool:
    """Whether anything in the home was made with a key."""
    return next((settings.lake / "masked" / "_slices").rglob("day=*.json"), None) is not None


def slices_by_key(settings: Settings) -> Counter[str]:
    """Number of slices under each key, by its fingerprint."""
    lake = Lake(settings.lake)
    return Counter(m.inputs.get("key", "") for step in KEYED_STEPS for m in lake.manifests(step))


@dataclass(frozen=True, slots=True)
class KeyState:
    """What may be shown of a home's key.

    Attributes:
        epoch, fingerprint: Names of the key; neither reveals it.
        given_by: ``environment`` or ``file``.
        epochs: Epochs that the key went through, this one included.
        is_rotating: Whether a rotation was begun and is not finished.
        slices_of_this_epoch, slices_of_earlier_epochs, slices_of_other_keys: Masked slices, signals and
            outcomes by the key that they were made with.
    """

    epoch: str
    fingerprint: str
    given_by: str
    epochs: int
    is_rotating: bool
    slices_of_this_epoch: int
    slices_of_earlier_epochs: int
    slices_of_other_keys: int


def state(settings: Settings, environ: Mapping[str, str]) -> KeyState:
    """What may be shown of a home's key, also in the middle of a rotation; makes nothing.

    Raises:
        EvalpipeError: ``KEY_MISSING``, ``KEY_INVALID``, ``KEY_PERMISSIONS``.
    """
    following, is_rotating = next_key_file(settings), journal_file(settings).exists()
    if keys.ENVIRONMENT_NAME not in environ and is_rotating and following.exists():
        key = keys.read(following)
    elif keys.ENVIRONMENT_NAME not in environ and not settings.key_file.exists():
        raise EvalpipeError("KEY_MISSING", "there is no key.", where=str(settings.key_file))
    else:
        key = keys.load_or_create(settings.key_file, environ)
    made = slices_by_key(settings)
    mine, earlier = made[key.fingerprint], sum(made[old.fingerprint] for old in key.ancestors())
    given_by = "environment" if keys.ENVIRONMENT_NAME in environ else "file"
    return KeyState(
        key.epoch, key.fingerprint, given_by, len(key.chain), is_rotating, mine, earlier, made.total() - mine - earlier
    )


@contextmanager
def held(settings: Settings, *, alone: bool = False, looking: bool = False) -> Iterator[None]:
    """Work on a home beside others, or alone.

    Args:
        settings: Settings of a home that exists.
        alone: Let nobody else in, as a rotation does.
        looking: Only read, so that a home on a disk that takes no writing can be looked at.

    Raises:
        EvalpipeError: ``HOME_IN_USE`` instead of waiting: a job may hold the home for hours.
    """
    handle = lock_handle(settings.home / "key.lock", looking=looking)
    if handle is None:
        yield
        return
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "another process works on the home." if alone else "its key is being rotated."
            raise EvalpipeError("HOME_IN_USE", what, where=str(settings.home)) from None
        yield
    finally:
        # Not by closing alone: workers that were forked meanwhile have the file open too.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
