"""The masking key and the tokens made with it.

Belongs here: where the key comes from, how its epoch is named, HMAC tokens. Does not belong here:
which values get a token (``plan``, ``kernel``). The key is never logged, printed or put in metadata.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError

ENVIRONMENT_NAME = "EVALPIPE_KEY"
_HEX = re.compile(r"[0-9a-fA-F]{64}\Z")
#: 80 bits as twenty letters a to p: letters only, so that no digit rule ever fires inside a token.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
TOKEN_LETTERS = 20


@dataclass(frozen=True, slots=True)
class MaskingKey:
    """A masking key.

    Attributes:
        epoch: Four letters derived from the secret; names the key without revealing it.
        secret: 32 bytes.
    """

    epoch: str
    secret: bytes = field(repr=False)

    @classmethod
    def from_hex(cls, text: str, *, where: str) -> MaskingKey:
        """Read a key from 64 hexadecimal digits.

        Raises:
            EvalpipeError: ``KEY_INVALID`` naming ``where``, never the text.
        """
        if not _HEX.match(text.strip()):
            raise EvalpipeError("KEY_INVALID", "expected 64 hexadecimal digits.", where=where)
        return cls.from_bytes(bytes.fromhex(text.strip()))

    @classmethod
    def from_bytes(cls, secret: bytes) -> MaskingKey:
        """A key from its 32 bytes; the epoch follows from them.

        Raises:
            EvalpipeError: ``KEY_INVALID`` if there are not 32 bytes.
        """
        if len(secret) != 32:
            raise EvalpipeError("KEY_INVALID", "expected 32 bytes.")
        epoch = hmac.digest(secret, b"evalpipe\0epoch", "sha256")[:2].hex().translate(_LETTERS)
        return cls(epoch, secret)

    def letters(self, tenant: str, entity: str, canonical: str) -> str:
        """Twenty letters (80 bits) of HMAC-SHA256 over tenant, entity and canonical value (RFC 2104)."""
        message = f"{tenant}\0{entity}\0{canonical}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.secret, message, "sha256")[:10].hex().translate(_LETTERS)

    def subkey(self, purpose: str) -> bytes:
        """32 bytes for another purpose, such as canaries, that do not reveal the key."""
        return hmac.digest(self.secret, b"evalpipe\0" + purpose.encode(), hashlib.sha256)


def load_or_create(path: Path, environ: Mapping[str, str]) -> MaskingKey:
    """The key from the environment, else from a file, which is made on first use.

    Args:
        path: Key file; made with mode 0600 if it does not exist.
        environ: Usually ``os.environ``; ``EVALPIPE_KEY`` wins over the file.

    Returns:
        The key.

    Raises:
        EvalpipeError: ``KEY_INVALID`` for a malformed key, ``KEY_PERMISSIONS`` if group or others can
            read the file.
    """
    given = environ.get(ENVIRONMENT_NAME)
    if given is not None:
        return MaskingKey.from_hex(given, where=ENVIRONMENT_NAME)
    if not path.exists():
        _create(path)
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise EvalpipeError("KEY_PERMISSIONS", "group or others can read the key.", where=str(path))
    return MaskingKey.from_hex(path.read_text("ascii", "replace"), where=str(path))


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails if another process was first, so two first runs agree on one key.
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
