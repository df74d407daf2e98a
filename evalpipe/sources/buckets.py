"""Objects of a bucket: listed, told apart, and copied to a file of this machine.

Belongs here: every call to an object store, and what its errors mean. Does not belong here: what was read
before (``steps/intake.py``), or what an object holds: once copied it is read as any file is.

Messages of the client are never repeated: they may quote a key id, and they name requests and not what
a person can mend.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

from pyarrow.fs import AwsStandardS3RetryStrategy, FileSelector, FileType, S3FileSystem, resolve_s3_region

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.named import Prefix, Store
from evalpipe.sources.patterns import fixed_part, is_pattern, matches

#: One request reads so many bytes; memory of one copying is a small multiple of it.
BLOCK = 1 << 23

# An object that is there and does not give its bytes, as one that was moved to an archive.
_CLOSED = "CLOSED"

#: How often an object is begun anew that is replaced while it is read.
ATTEMPTS = 3

_ATTEMPTS_OF_A_REQUEST = 5
_CONNECT_SECONDS, _SILENT_SECONDS = 10.0, 60.0
_AWS_ERROR = re.compile(
    r"AWS Error ([A-Z_]+)(?: \(HTTP status (\d+)\))? during(?:.*Unable to parse ExceptionName: (\w+))?", re.DOTALL
)
_REFUSED = (
    "ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN_ID",
    "UNRECOGNIZED_CLIENT", "MISSING_AUTHENTICATION_TOKEN", "REQUEST_TIME_TOO_SKEWED", "REQUEST_EXPIRED",
    # As stores write them that the client knows no name for.
    "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as it was listed.

    Attributes:
        store: Where its bucket is reached.
        bucket, key: Its name.
        n_bytes: Size.
        mtime_ns: When it was written, as the store says; whole seconds with most stores.
    """

    store: Store
    bucket: str
    key: str
    n_bytes: int
    mtime_ns: int

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def place(self) -> str:
        """A digest of where it is, which tells equal names in two stores apart."""
        text = f"{self.store.endpoint}\n{self.bucket}/{self.key}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Copied:
    """What the copying of an object found.

    Attributes:
        n_bytes: Size.
        digest: Digest of the bytes; empty where they could not be read.
        etag: The store's own name for this state of the object.
        is_copied: Whether the bytes lie in the file now: not where the store still holds the known state.
    """

    n_bytes: int
    digest: str
    etag: str
    is_copied: bool


class _RequestError(Exception):
    """A request failed; ``kind`` is what the store called it."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def list_objects(prefix: Prefix) -> list[StoredObject]:
    """Objects that a prefix or a pattern names, sorted by key, from one listing.

    A key that ends in a slash and is empty is how tools store a folder, and is none.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``SOURCE_DENIED`` or ``SOURCE_UNREACHABLE``.
    """
    try:
        found = _listed(prefix)
    except _RequestError as failed:
        raise _stopped(failed.kind, str(prefix)) from None
    if not found and prefix.key:
        what = "no key matches." if is_pattern(prefix.key) else "no object has that key, or lies below it."
        raise EvalpipeError("SOURCE_NOT_FOUND", what, where=str(prefix))
    return sorted(found, key=lambda item: item.key)


def _listed(prefix: Prefix) -> list[StoredObject]:
    key = prefix.key.rstrip("/")
    if is_pattern(key):
        base = fixed_part(key)
        objects = _below(prefix, "" if base == "." else base)
        # A key may have wildcards in it, and is then named by itself.
        exact = [item for item in objects if item.key == key or item.key.startswith(f"{key}/")]
        pattern = [part for part in key.split("/") if part]
        return exact or [item for item in objects if matches([part for part in item.key.split("/") if part], pattern)]
    if not key or prefix.key.endswith("/"):
        return _below(prefix, key)
    try:
        named = _named(prefix, key)
    except _RequestError as failed:
        # Whoever may list below a prefix need not be allowed to ask for a key outside it. An answer about
        # one key has no reason in it, and that of the listing has.
        below = [] if failed.kind == "NETWORK_CONNECTION" else _below(prefix, key)
        if below and failed.kind in _REFUSED:
            return below
        raise
    try:
        return [*named, *_below(prefix, key)]
    except _RequestError:
        if named:  # an object may be open to those who may not list
            return named
        raise


def _below(prefix: Prefix, folder: str) -> list[StoredObject]:
    _addressable(prefix, folder)
    files = _filesystem(prefix.store, prefix.bucket)
    path = f"{prefix.bucket}/{folder}".rstrip("/")
    with _failing():
        entries = files.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        # To the client a missing bucket holds nothing, as an empty one does.
        if not entries and files.get_file_info(prefix.bucket).type == FileType.NotFound:
            raise _RequestError("NO_SUCH_BUCKET")
    return [_object(prefix, info) for info in entries if info.type == FileType.File]


def _named(prefix: Prefix, key: str) -> list[StoredObject]:
    _addressable(prefix, key)
    files = _filesystem(prefix.store, prefix.bucket)
    with _failing():
        info = files.get_file_info(f"{prefix.bucket}/{key}")
    return [_object(prefix, info)] if info.type == FileType.File else []


def _object(prefix: Prefix, info: Any) -> StoredObject:
    key = info.path.removeprefix(f"{prefix.bucket}/")
    return StoredObject(prefix.store, prefix.bucket, key, info.size, info.mtime_ns)


def is_addressable(key: str) -> bool:
    """Whether a key can be asked for: HTTP clients shorten ``a/../b`` to ``b``, another object."""
    return not any(part in ("", ".", "..") for part in key.split("/"))


def _addressable(prefix: Prefix, key: str) -> None:
    if key and not is_addressable(key):
        what = "a key with an empty part, or one of . or .., cannot be asked for."
        raise EvalpipeError("BAD_ARGUMENT", what, where=str(prefix), fix="Name the folder above it.")


def copy(item: StoredObject, target: Path, known_etag: str = "", stop: Event | None = None) -> Copied:
    """Copy an object to a file, block by block, unless the store still holds the state that is known.

    What is replaced while it is read is begun anew, so that the file never holds parts of two states.

    Args:
        item: The object.
        target: The file, made anew.
        known_etag: Name of the state whose digest is known; empty for none.
        stop: Set when nobody waits for the copy any more; it is given up then, at the next block.

    Returns:
        What was found; without a digest where the object is gone, closed to the reader, or does not
        stay the same.

    Raises:
        EvalpipeError: ``SOURCE_DENIED`` or ``SOURCE_UNREACHABLE`` where the store itself fails.
    """
    unread = Copied(0, "", "", is_copied=False)
    if not is_addressable(item.key):
        return unread
    try:
        for _ in range(ATTEMPTS):
            if (copied := _copy_once(item, target, known_etag, stop or Event())) is not None:
                return copied
    except _RequestError as failed:
        # A store that refuses one object may give the others; one that cannot be spoken to gives none.
        if failed.kind not in ("NOT_FOUND", "ACCESS_DENIED", _CLOSED):
            raise _stopped(failed.kind, str(item)) from None
    return unread


def _copy_once(item: StoredObject, target: Path, known_etag: str, stop: Event) -> Copied | None:
    """Copy an object; nothing where it is another when the copy is done."""
    files = _filesystem(item.store, item.bucket)
    path = f"{item.bucket}/{item.key}"
    with _failing():
        stream = files.open_input_file(path)
    with stream:
        etag = _etag(stream)
        if known_etag and etag == known_etag:
            return Copied(stream.size(), "", etag, is_copied=False)
        digest = hashlib.blake2b(digest_size=16)
        n_bytes = 0
        is_whole = False
        with target.open("wb") as file, suppress(_RequestError):
            while not stop.is_set() and (block := _read(stream)):
                digest.update(block)
                file.write(block)
                n_bytes += len(block)
            is_whole = not stop.is_set()
    # Asked again, because blocks are asked for one by one, and an error of theirs has no reason in it.
    with _failing():
        again = files.open_input_file(path)
    with again:
        if _etag(again) != etag or (is_whole and again.size() != n_bytes):
            return None
    if not is_whole:
        raise _RequestError(_CLOSED)
    return Copied(n_bytes, digest.hexdigest(), etag, is_copied=True)


def _read(stream: Any) -> bytes:
    with _failing():
        block: bytes = stream.read(BLOCK)
    return block


def _etag(stream: Any) -> str:
    facts = stream.metadata()
    return b"\n".join(facts.get(name, b"") for name in ("ETag", "VersionId")).decode("utf-8", "replace").strip()


def read_head(item: StoredObject, target: Path, n_bytes: int) -> bool:
    """Copy the first bytes of an object to a file; whether it could be read."""
    try:
        with _failing(), _filesystem(item.store, item.bucket).open_input_file(f"{item.bucket}/{item.key}") as stream:
            target.write_bytes(stream.read(n_bytes))
    except _RequestError:
        return False
    return True


@contextmanager
def _failing() -> Iterator[None]:
    """Let errors of the client leave as :class:`_RequestError`, without their message."""
    try:
        yield
    except FileNotFoundError:
        raise _RequestError("NOT_FOUND") from None
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        found = _AWS_ERROR.search(str(error))
        status = found[2] if found else None
        kind = {"403": "ACCESS_DENIED", "404": "NOT_FOUND"}.get(status or "")
        raise _RequestError(kind or (found[3] or found[1] if found else type(error).__name__)) from None


def _stopped(kind: str, where: str) -> EvalpipeError:
    if kind == "NO_SUCH_BUCKET":
        return EvalpipeError("SOURCE_NOT_FOUND", "there is no bucket of that name.", where=where)
    if kind in _REFUSED:
        return EvalpipeError("SOURCE_DENIED", f"the store refuses these credentials ({kind}).", where=where)
    return EvalpipeError("SOURCE_UNREACHABLE", f"the store does not answer as it should ({kind}).", where=where)


@cache
def _filesystem(store: Store, bucket: str) -> S3FileSystem:
    """The client of a store. A bucket of AWS may lie in any region, which it is asked for where none is named."""
    scheme, _, address = store.endpoint.partition("://")
    region = store.region or ("us-east-1" if address else _region_of(bucket))
    return S3FileSystem(
        anonymous=store.is_anonymous,
        region=region,
        scheme=scheme or "https",
        endpoint_override=address or None,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_SILENT_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS_OF_A_REQUEST),
    )


def _region_of(bucket: str) -> str:
    try:
        region: str = resolve_s3_region(bucket)
    except (OSError, ValueError) as error:
        kind = "NO_SUCH_BUCKET" if "not found" in str(error) else "NETWORK_CONNECTION"
        raise _stopped(kind, f"s3://{bucket}") from None
    return region
