"""Sources as a person names them: a path, a pattern, or ``s3://bucket/prefix``.

Belongs here: the words of a source, checked before anything is opened, and never with a credential in a
message. Does not belong here: reading a folder (``discover.py``) or a bucket (``buckets.py``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from evalpipe.contracts.errors import EvalpipeError

#: What a person may name: text as it was typed, or a path.
Source = str | Path

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
# A question mark may stand in a key, or be a wildcard: only a known option begins a query.
_QUERY = re.compile(r"\?(?=(?:endpoint|region|anonymous)=)")
_OPTIONS = "endpoint, region and anonymous"


@dataclass(frozen=True, slots=True)
class Store:
    """Where the buckets of an object store are reached. Credentials are never a part of it.

    Attributes:
        endpoint: ``http://`` or ``https://`` with host and port; empty for AWS itself.
        region: Region of the bucket; empty where the store is to be asked.
        is_anonymous: Whether requests are sent unsigned, as for a public bucket.
    """

    endpoint: str = ""
    region: str = ""
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Prefix:
    """What ``s3://bucket/key`` names: an object, or everything below it.

    Attributes:
        store: Where the bucket is reached.
        bucket: Name of the bucket.
        key: Key, beginning of keys up to a slash, or pattern of keys; empty for the whole bucket.
    """

    store: Store
    bucket: str
    key: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def is_remote(source: Source) -> bool:
    """Whether a source names another place than this machine's files."""
    return isinstance(source, str) and _SCHEME.match(source) is not None and not os.path.lexists(source)


def parse_prefix(text: str, environ: Mapping[str, str] | None = None) -> Prefix:
    """Read ``s3://bucket/key``, with what the environment and the query say of the store.

    The key is taken as it is written, without percent codes. A query of ``endpoint``, ``region`` or
    ``anonymous=true`` may follow; the first two come from ``AWS_ENDPOINT_URL_S3``, ``AWS_ENDPOINT_URL``,
    ``AWS_REGION`` and ``AWS_DEFAULT_REGION`` where it says nothing.

    Args:
        text: The source as it was named.
        environ: Environment; the process's own by default.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for what is no such name, or has a credential in it.
    """
    environ = os.environ if environ is None else environ
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1].lower() != "s3":
        known = f"{scheme[1]}://" if scheme else ""
        raise _bad("what is read is a file, a folder, a pattern, or s3://bucket/prefix", known)
    name, *queries = _QUERY.split(text[scheme.end() :], maxsplit=1)
    bucket, _, key = name.partition("/")
    if "@" in bucket:
        raise _bad("a source holds no credentials", "s3://…@…", fix=_CREDENTIALS)
    if not _BUCKET.fullmatch(bucket):
        raise _bad("that is no name of a bucket", f"s3://{bucket}", fix="Write s3://bucket/prefix.")
    place = f"s3://{bucket}/{key}"
    options = dict(parse_qsl(queries[0], keep_blank_values=True)) if queries else {}
    if not options.keys() <= {"endpoint", "region", "anonymous"}:
        raise _bad(f"an option is none of {_OPTIONS}", place, fix=_CREDENTIALS)
    if options.get("anonymous", "true") not in ("true", "false"):
        raise _bad("anonymous is true or false", place, fix="Write ?anonymous=true.")
    endpoint = _endpoint(options, environ, place)
    region = options.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""
    return Prefix(Store(endpoint, region, options.get("anonymous") == "true"), bucket, key)


_CREDENTIALS = "Give credentials in the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE and so on), never in a source."


def _endpoint(options: Mapping[str, str], environ: Mapping[str, str], place: str) -> str:
    named = {"the option endpoint": options.get("endpoint", "")}
    named |= {name: environ.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")}
    origin, text = next(((origin, text) for origin, text in named.items() if text), ("", ""))
    if not text:
        return ""
    url = urlsplit(text if "://" in text else f"https://{text}")
    if "@" in url.netloc:
        raise _bad(f"{origin} holds credentials", place, fix=_CREDENTIALS)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise _bad(f"{origin} is no address of a server", place, fix="Write it as https://host:port.")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


def _bad(what: str, where: str, fix: str = "") -> EvalpipeError:
    return EvalpipeError("BAD_ARGUMENT", what, where=where, fix=fix or "Name one of these.")
