"""Tombstones: whom this home has erased, without saying who that is.

Belongs here: the tags of erased users and sessions, their own key, and the question whether a session
that is being read is one of them. Does not belong here: erasing (``steps/erase.py``).

A tag is an HMAC under a key that masks nothing and does not rotate, so that a user stays erased when
the masking key is changed, and a tag joins with no token of the lake. Neither the key nor the tags
tell an id; whoever holds both can test a guess, which is why both are 0600 and no part of a backup of
the lake.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.ids import OF_USER, is_long_id
from evalpipe.masking import keys
from evalpipe.masking.keys import MaskingKey
from evalpipe.masking.people import canonical
from evalpipe.masking.plan import MaskPlan

ENVIRONMENT_NAME = "EVALPIPE_TOMBSTONE_KEY"
#: What a path looks like in the index once its file holds nobody who is not erased.
HIDDEN = "hidden:"
#: Under which name the record of an erasure that was begun holds the tombstones that it makes.
IN_RECORD = "tombstones"
_ANY = "*"
#: Ids that are given once in the world: a copy of such a session has the same id in every source.
_UNIQUE = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32}|ses_[0-9A-Za-z]{20,}")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom an erasure is about.

    Attributes:
        user: Id as logged, or a token (``u_`` and twenty letters) where ``is_token``.
        tenant: Only this tenant; ``None`` for the id in every tenant.
        source: Only sessions of this reader; ``None`` for all.
        is_token: Whether ``user`` is the pseudonym that the lake holds.
    """

    user: str = field(repr=False)
    tenant: str | None = None
    source: str | None = None
    is_token: bool = False

    def matches(self, user_id: str | None, tenant: str | None, source: str, plan: MaskPlan) -> bool:
        """Whether a session with these values, as logged, is the subject's."""
        if user_id is None or self.tenant not in (None, tenant or "") or self.source not in (None, source):
            return False
        if self.is_token:
            return self.user in plan.users(user_id, tenant or "")
        return canonical(user_id) == canonical(self.user)


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Tags of everyone who was erased; asks as little as nothing of a home that erased nobody.

    Attributes:
        key: The tombstone key; ``None`` where nobody was erased.
        masking: The masking key, for tags of tokens whose id nobody could tell any more.
        tags: The tags.
    """

    key: MaskingKey | None = field(default=None, repr=False)
    masking: MaskingKey | None = field(default=None, repr=False)
    tags: frozenset[str] = frozenset()

    def __call__(
        self, user_id: str | None, tenant: str | None, source: str, session_id: str, parent: str | None = None
    ) -> bool:
        """Whether a session that is being read belongs to somebody erased.

        Args:
            user_id, tenant: As logged; ``None`` where the log names none.
            source: Reader.
            session_id: Id with its source in front.
            parent: Likewise that of the session that started it, whose user it has where it names none.
        """
        if not self.tags or self.key is None:
            return False
        names = [session_id, *([parent] if user_id is None and parent is not None else [])]
        if user_id is not None:
            if _is_user(self, user_id, tenant or "", source):
                return True
            # A short id that somebody else bears names a session of theirs.
            names = [] if _is_short(session_id) else names
        return any(tag in self.tags for name in names for tag in _session_tags(self.key, name))

    def with_subject(self, subject: Subject, session_ids: Iterable[str], users: Iterable[str] = ()) -> Tombstones:
        """Tombstones that hold one more person, with the sessions found.

        Args:
            subject: Whom.
            session_ids: Ids of the sessions, with their sources in front, and their tokens.
            users: Tokens of the person, by which edge files name them.
        """
        if self.key is None:
            raise ValueError("tombstones without a key cannot grow")
        kind, name = ("token", subject.user) if subject.is_token else ("user", canonical(subject.user))
        new = {
            _tag(self.key, kind, subject.tenant if subject.tenant is not None else _ANY, subject.source or _ANY, name)
        }
        if not subject.is_token and self.masking is not None:
            users = {*users, *MaskPlan(self.masking).users(subject.user, subject.tenant or "")}
        of = (subject.tenant if subject.tenant is not None else _ANY, subject.source or _ANY)
        new |= {_tag(self.key, "token", *of, user) for user in users}
        new |= {tag for session_id in session_ids for tag in _session_tags(self.key, session_id)}
        return replace(self, tags=self.tags | new)

    def hide(self, path: str) -> str:
        """What stands in the place of a path that may name an erased person; the same path gives the same."""
        if self.key is None or not path or path.startswith(HIDDEN):
            return path
        return f"{HIDDEN}{_tag(self.key, 'path', path)}"


def load(files: Sequence[Path], key_file: Path, masking: MaskingKey, environ: Mapping[str, str]) -> Tombstones:
    """The tombstones of a home; empty where nobody was erased.

    Args:
        files: Where tags lie: the file of them, and the record of an erasure that was begun. Those that
            are not there hold none.
        key_file: Where their key lies, unless the environment gives it.
        masking: The masking key.
        environ: Usually ``os.environ``.

    Raises:
        EvalpipeError: ``KEY_INVALID`` where tags are there and their key is not, since erased people
            would come back unseen; ``KEY_PERMISSIONS``, ``HOME_DAMAGED``.
    """
    found = {file: held for file in files if file.exists() and (held := _read(file)) is not None}
    if not found:
        return Tombstones(masking=masking)
    if ENVIRONMENT_NAME not in environ and not key_file.exists():
        raise EvalpipeError("KEY_INVALID", "the key of the tombstones is gone.", where=str(key_file), fix=_FIX)
    key = _key(key_file, environ)
    for file, (epoch, _) in found.items():
        if key.epoch != epoch:
            raise EvalpipeError("KEY_INVALID", "the tombstones were made with another key.", where=str(file), fix=_FIX)
    return Tombstones(key, masking, frozenset[str]().union(*(tags for _, tags in found.values())))


def _read(file: Path) -> tuple[str, frozenset[str]] | None:
    """Epoch of the key and tags of a file; ``None`` for the record of an erasure that holds none."""
    try:
        found = json.loads(file.read_text("utf-8"))
        if "sessions" in found:
            found = found.get(IN_RECORD)
        return None if found is None else (str(found["key"]), frozenset(map(str, found["tags"])))
    except (ValueError, KeyError, TypeError, AttributeError):
        fix = "Restore it from a backup: without it, erased people are read again."
        raise EvalpipeError("HOME_DAMAGED", "the tombstones cannot be read.", where=str(file), fix=fix) from None


_FIX = f"Restore the key file, or set {ENVIRONMENT_NAME}: without it, erased people would be read again."


def prepared(tombstones: Tombstones, key_file: Path, environ: Mapping[str, str]) -> Tombstones:
    """The same tombstones with a key, which is made where there is none yet.

    Raises:
        EvalpipeError: ``KEY_INVALID``, ``KEY_PERMISSIONS``.
    """
    return tombstones if tombstones.key else replace(tombstones, key=_key(key_file, environ))


def to_json(tombstones: Tombstones) -> str:
    """What :func:`load` reads back."""
    epoch = tombstones.key.epoch if tombstones.key else ""
    return json.dumps({"layout": 1, "key": epoch, "tags": sorted(tombstones.tags)}, indent=1)


def _key(key_file: Path, environ: Mapping[str, str]) -> MaskingKey:
    given = environ.get(ENVIRONMENT_NAME)
    if given is not None:
        return MaskingKey.from_hex(given, where=ENVIRONMENT_NAME)
    return keys.load_or_create(key_file, {})


def _tag(key: MaskingKey, *parts: str) -> str:
    message = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hmac.digest(key.secret, message, "sha256")[:16].hex()


def _is_short(session_id: str) -> bool:
    """Whether the id of a session, as logged, may be that of another one too; tokens are given once."""
    _, colon, native = session_id.partition(":")
    return bool(colon) and not is_long_id(native.partition(OF_USER)[0])


def _session_tags(key: MaskingKey, session_id: str) -> list[str]:
    native = session_id.partition(":")[2]
    tags = [_tag(key, "session", session_id)]
    # The same session in another exporter's log, which may name no user.
    return [*tags, _tag(key, "native", native.lower())] if _UNIQUE.fullmatch(native) else tags


@lru_cache(maxsize=65_536)
def _is_user(tombstones: Tombstones, user_id: str, tenant: str, source: str) -> bool:
    if tombstones.key is None:
        return False
    names = [("user", canonical(user_id))]
    if tombstones.masking is not None:
        # A token of an earlier epoch stands for the same person.
        epochs = [tombstones.masking, *tombstones.masking.ancestors()]
        names += [("token", token) for key in epochs for token in MaskPlan(key).users(user_id, tenant)]
    return any(
        _tag(tombstones.key, kind, of_tenant, of_source, name) in tombstones.tags
        for kind, name in names
        for of_tenant in (_ANY, tenant)
        for of_source in (_ANY, source)
    )
