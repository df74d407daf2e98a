"""An object store in this process, that tests put objects into and whose requests they see.

Belongs here: the server and what a test does to it. Credentials are those of no account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

BUCKET = "agent-logs"
ENVIRON = {
    "AWS_ACCESS_KEY_ID": "AKIATESTSONLY",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret-of-anyone",
    "AWS_EC2_METADATA_DISABLED": "true",
}

#: (method, path with query) to an answer, or nothing for the store's own.
Answer = Callable[[str, str], "tuple[str, bytes] | None"]


class ObjectStore:
    """A store with one bucket.

    Attributes:
        url: Its address.
        requests: Method and path of every request since the last :meth:`reset`.
        answer: Asked before each request; a test changes the store in it, or answers in its place.
    """

    def __init__(self, server: ThreadedMotoServer) -> None:
        host, port = server.get_host_and_port()
        self.url = f"http://{host}:{port}"
        self.requests: list[str] = []
        self.answer: Answer | None = None
        self._inner = server._server.app  # type: ignore[union-attr]
        server._server.app = self._serve  # type: ignore[union-attr]

    def reset(self) -> None:
        """An empty bucket, and no request yet."""
        self._backend.reset()
        self._backend.create_bucket(BUCKET, "us-east-1")
        self.requests.clear()
        self.answer = None

    def put(self, key: str, data: bytes, *, age_seconds: float = 3600) -> None:
        """Write an object, as if some time ago."""
        item = self._backend.put_object(BUCKET, key, data)
        item.last_modified = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(seconds=age_seconds)

    def delete(self, key: str) -> None:
        self._backend.delete_object(BUCKET, key)

    def count(self, pattern: str) -> int:
        """How many requests match: ``GET .*list-type`` are listings, ``GET .*KEY$`` readings."""
        return sum(re.fullmatch(pattern, request) is not None for request in self.requests)

    @property
    def _backend(self) -> Any:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]

    def _serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"].encode("latin-1").decode() + (
            f"?{query}" if (query := environ["QUERY_STRING"]) else ""
        )
        self.requests.append(f"{environ['REQUEST_METHOD']} {path}")
        answer = self.answer(environ["REQUEST_METHOD"], path) if self.answer else None
        if answer is None:
            found: Iterable[bytes] = self._inner(environ, start_response)
            return found
        status, body = answer
        start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def error(status: str, code: str) -> tuple[str, bytes]:
    """An answer that refuses, as the interface has it."""
    return status, f"<Error><Code>{code}</Code><Message>of {ENVIRON['AWS_ACCESS_KEY_ID']}</Message></Error>".encode()


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Serve until the block ends."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield ObjectStore(server)
    finally:
        server.stop()
        server._server.server_close()  # type: ignore[union-attr]
