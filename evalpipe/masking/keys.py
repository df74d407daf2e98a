"""The masking key and the tokens made with it.

Belongs here: where the key comes from, how its epoch is named, HMAC tokens, and the chain that a rotated
key is. Does not belong here: which values get a token (``plan``, ``kernel``), re-keying of stored rows
(``rekeying``). The key is never logged, printed or put in metadata.

A key is a chain of secrets, one an epoch. A token of the first epoch is an HMAC of the value; a token of
any later one is an HMAC, under that epoch's secret, of the token before. So stored tokens can be moved to
a new epoch without the values, and new logs get the same tokens as re-keyed ones. ``docs/operations.md``
says what that is worth against whom.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError

ENVIRONMENT_NAME = "EVALPIPE_KEY"
_HEX = re.compile(r"[0-9a-fA-F]{64}\Z")
#: Longest chain: a rotation a quarter for sixteen years.
_MAX_SECRETS = 64
#: 80 bits as twenty letters a to p: letters only, so that no digit rule ever fires inside a token.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
TOKEN_LETTERS = 20


@dataclass(frozen=True, slots=True)
class MaskingKey:
    """A masking key.

    Attributes:
        epoch: Four letters derived from all secrets; names the key without revealing it.
        secret: 32 bytes of the first epoch.
        links: 32 bytes of each epoch since, in order; empty for a key that was never rotated.
        earlier: Epochs that the chain went through, the first one first.
    """

    epoch: str
    secret: bytes = field(repr=False)
    links: tuple[bytes, ...] = field(default=(), repr=False)
    earlier: tuple[str, ...] = ()

    @classmethod
    def from_hex(cls, text: str, *, where: str) -> MaskingKey:
        """Read a key: 64 hexadecimal digits an epoch, the first epoch first, set apart by commas or white space.

        Raises:
            EvalpipeError: ``KEY_INVALID`` naming ``where``, never the text.
        """
        words = [word for word in re.split(r"[,\s]+", text) if word]
        if not words or len(words) > _MAX_SECRETS or not all(_HEX.match(word) for word in words):
            raise EvalpipeError("KEY_INVALID", "expected 64 hexadecimal digits an epoch.", where=where)
        return cls.from_bytes(*(bytes.fromhex(word) for word in words))

    @classmethod
    def from_bytes(cls, secret: bytes, *links: bytes) -> MaskingKey:
        """A key from the 32 bytes of each epoch; the names of the epochs follow from them.

        Raises:
            EvalpipeError: ``KEY_INVALID`` if there are not 32 bytes, or two epochs have one name, so that
                their tokens could not be told apart.
        """
        chain = (secret, *links)
        if any(len(one) != 32 for one in chain):
            raise EvalpipeError("KEY_INVALID", "expected 32 bytes.")
        names = tuple(_epoch(chain[: n + 1]) for n in range(len(chain)))
        if len(set(names)) != len(names):
            raise EvalpipeError("KEY_INVALID", "two epochs of the key have one name.", fix="Take another new key.")
        return cls(names[-1], secret, links, names[:-1])

    @property
    def chain(self) -> tuple[bytes, ...]:
        """Secrets of all epochs, the first one first."""
        return (self.secret, *self.links)

    @property
    def state(self) -> bytes:
        """32 bytes that stand for all secrets; of a key that was never rotated, its one secret."""
        return _state(self.chain)

    @property
    def fingerprint(self) -> str:
        """Digest that tells two keys apart and reveals neither (16 hexadecimal digits)."""
        return hashlib.blake2b(b"evalpipe key fingerprint", key=self.state, digest_size=8).hexdigest()

    def ancestors(self) -> list[MaskingKey]:
        """The key as it was in each earlier epoch, the newest first."""
        return [MaskingKey.from_bytes(*self.chain[:n]) for n in range(len(self.links), 0, -1)]

    def rotated(self) -> MaskingKey:
        """This key with a new epoch at its end."""
        while True:
            try:
                return MaskingKey.from_bytes(*self.chain, secrets.token_bytes(32))
            except EvalpipeError:  # one in 65,536: the new epoch has the name of an earlier one
                continue

    def letters(self, tenant: str, entity: str, canonical: str) -> str:
        """Twenty letters (80 bits) of HMAC-SHA256 over tenant, entity and canonical value (RFC 2104)."""
        message = f"{tenant}\0{entity}\0{canonical}".encode("utf-8", "surrogatepass")
        return self._along(hmac.digest(self.secret, message, "sha256")[:10].hex().translate(_LETTERS), self.links)

    def forward(self, epoch: str, token: str) -> str:
        """What the letters of a token of an earlier epoch are in this one.

        Args:
            epoch: One of ``earlier``.
            token: The token's letters, or another lower-case digest that was made from tokens.

        Returns:
            As many letters or digits as were given.
        """
        return self._along(token, self.links[self.earlier.index(epoch) :])

    def _along(self, token: str, links: Sequence[bytes]) -> str:
        for secret in links:
            made = hmac.digest(secret, b"evalpipe\0link\0" + token.encode(), "sha256").hex()[: len(token)]
            token = made if _is_hex(token) else made.translate(_LETTERS)
        return token

    def subkey(self, purpose: str) -> bytes:
        """32 bytes for another purpose, such as canaries, that do not reveal the key and change with it."""
        return hmac.digest(self.state, b"evalpipe\0" + purpose.encode(), hashlib.sha256)


def _is_hex(token: str) -> bool:
    """Whether these are hexadecimal digits and not the letters of a token."""
    return len(token) != TOKEN_LETTERS


def _state(chain: Sequence[bytes]) -> bytes:
    """32 bytes that stand for all secrets of a chain; those of a chain of one are its secret."""
    state = chain[0]
    for secret in chain[1:]:
        state = hmac.digest(secret, b"evalpipe\0chain\0" + state, "sha256")
    return state


def _epoch(chain: Sequence[bytes]) -> str:
    return hmac.digest(_state(chain), b"evalpipe\0epoch", "sha256")[:2].hex().translate(_LETTERS)


def load_or_create(path: Path, environ: Mapping[str, str], *, is_new: bool = True) -> MaskingKey:
    """The key from the environment, else from a file, which is made on first use.

    Args:
        path: Key file; made with mode 0600 if it does not exist.
        environ: Usually ``os.environ``; ``EVALPIPE_KEY`` wins over the file.
        is_new: Whether nothing was made with a key yet. A home with slices that lost its key must not get
            another one without a word: every user would become a new person overnight.

    Returns:
        The key.

    Raises:
        EvalpipeError: ``KEY_INVALID`` for a malformed key, ``KEY_PERMISSIONS`` if group or others can
            read the file, ``KEY_MISSING`` if there is none and the home is not new.
    """
    given = environ.get(ENVIRONMENT_NAME)
    if given is not None:
        return MaskingKey.from_hex(given, where=ENVIRONMENT_NAME)
    if not path.exists():
        if not is_new:
            raise EvalpipeError("KEY_MISSING", "the home has slices and no key.", where=str(path))
        _create(path)
    return read(path)


def read(path: Path) -> MaskingKey:
    """The key of a file.

    Raises:
        EvalpipeError: ``KEY_INVALID`` for a malformed key, ``KEY_PERMISSIONS`` if group or others can
            read the file.
    """
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise EvalpipeError("KEY_PERMISSIONS", "group or others can read the key.", where=str(path))
    return MaskingKey.from_hex(path.read_text("ascii", "replace"), where=str(path))


def write(path: Path, key: MaskingKey) -> None:
    """Write a key to a new file of mode 0600, one epoch a line; a file that is there already stays."""
    _place(path, "".join(secret.hex() + "\n" for secret in key.chain))


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _place(path, secrets.token_hex(32) + "\n")


def _place(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A link fails if another process was first, so two first runs agree on one key.
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
