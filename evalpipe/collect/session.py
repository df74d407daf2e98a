"""A session and a call while they are recorded.

Belongs here: what an agent says of its session, in the words of evalpipe JSONL. Does not belong
here: writing it (``recorder.py``).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Protocol

from evalpipe.collect.arguments import count_of, flag_of, number_of, said, text_of

#: How a session may end, as far as the runtime itself knows.
STATUSES = ("completed", "interrupted", "error", "timeout")

#: Why a call gave no ordinary result.
CALL_ERRORS = ("refused", "interrupted", "cascade", "no_result", "tool_error", "timeout", "api_error")

_TOKENS = frozenset({"input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning"})


class Writer(Protocol):
    """Where records go."""

    def write(self, kind: str, session_id: str, fields: Mapping[str, Any]) -> None:
        """Write one record."""
        ...


class RecordedSession:
    """One session being recorded. Used in a ``with`` statement, it ends itself.

    Leaving the block ends the session as ``completed``, or, by the exception that leaves it, as
    ``interrupted`` (KeyboardInterrupt), ``timeout`` (TimeoutError) or ``error``. Nothing is written
    when the process is killed: the log then says nothing of the end, and nothing is made up.
    """

    def __init__(self, writer: Writer, session_id: str, model: str | None) -> None:
        self.session_id = session_id
        self._writer = writer
        self._model = model
        self._is_ended = False

    def user(self, text: str, *, origin: str = "human") -> None:
        """A message of the user; ``origin`` tells text that nobody typed (docs/evalpipe-jsonl.md)."""
        self._step("user", text=said("text", text), origin=origin)

    def interrupt(self) -> None:
        """The user stopped the agent."""
        self._step("user", origin="interrupt")

    def feedback(self, rating: Literal[-1, 0, 1], comment: str | None = None, *, is_approval: bool = False) -> None:
        """A mark that the user gave by hand.

        Args:
            rating: 1 good, -1 bad, 0 neither.
            comment: What the user wrote with it.
            is_approval: Whether it allows a call that waited for it; a refusal is the result of its call.

        Raises:
            ValueError: Another rating.
        """
        if rating not in (-1, 0, 1):
            raise ValueError("rating is none of -1, 0, 1")
        name = "approval" if is_approval else "rating"
        self._step("user", origin="feedback", rating=int(rating), name=name, text=said("comment", comment))

    def agent(
        self,
        text: str,
        *,
        model: str | None = None,
        tokens: Mapping[str, int] | None = None,
        first_token_ms: int | None = None,
        parent_id: str | None = None,
    ) -> None:
        """A response of the agent.

        Args:
            text: What it said.
            model: Model that wrote it, if it is not the session's.
            tokens: Counts by kind: ``input`` (uncached), ``output``, ``cache_read``, ``cache_write``,
                ``cache_write_1h`` (the part of it kept for an hour), ``reasoning``.
            first_token_ms: Milliseconds to the first token.
            parent_id: Call that started the sub-agent which wrote it.

        Raises:
            ValueError: Unknown kinds of tokens. TypeError: A count that is no whole number, a text that is none.
        """
        if tokens is not None and (unknown := set(tokens) - _TOKENS):
            raise ValueError(f"tokens has unknown kinds: {sorted(unknown)}")
        counts = None if tokens is None else {kind: count_of(kind, n) for kind, n in tokens.items()}
        self._step(
            "agent", text=said("text", text), model=text_of("model", model) or self._model, tokens=counts,
            first_token_ms=None if first_token_ms is None else round(number_of("first_token_ms", first_token_ms) or 0),
            parent_id=text_of("parent_id", parent_id),
        )  # fmt: skip

    def tool(self, name: str, arguments: Any = None, *, parent_id: str | None = None) -> RecordedCall:
        """Begin a tool call.

        Args:
            name: Tool.
            arguments: Its arguments, as anything that JSON can say.
            parent_id: Call that started the sub-agent which makes this call.
        """
        step_id = uuid.uuid4().hex
        at = now()
        self._step(
            "tool", step_id=step_id, name=text_of("name", name), arguments=arguments,
            parent_id=text_of("parent_id", parent_id), is_open=True, at=at,
        )  # fmt: skip
        return RecordedCall(self._writer, self.session_id, step_id)

    def end(
        self,
        status: Literal["completed", "interrupted", "error", "timeout"] | None = None,
        *,
        is_success: bool | None = None,
        reward: float | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """End the session; a second end is ignored.

        Args:
            status: How it ended, if the runtime knows.
            is_success, reward: What the environment says of the result, where it can tell.
            cost_usd: Cost as you account it.

        Raises:
            ValueError: An unknown status, a number that is not finite. TypeError: A value of another type.
        """
        if status is not None and status not in STATUSES:
            raise ValueError(f"status is none of {', '.join(STATUSES)}")
        told = {"success": flag_of("is_success", is_success), "reward": number_of("reward", reward)}
        outcome = {k: v for k, v in told.items() if v is not None}
        fields = {
            "status": status,
            "at": now(),
            "outcome": outcome or None,
            "cost_usd": number_of("cost_usd", cost_usd),
        }
        if self._is_ended:
            return
        self._is_ended = True
        self._writer.write("end", self.session_id, fields)

    def _step(self, kind: str, **fields: Any) -> None:
        # A name of its own tells the step from every other, also in the file that another process goes on in.
        self._writer.write("step", self.session_id, {"kind": kind, "step_id": uuid.uuid4().hex, "at": now(), **fields})

    def __enter__(self) -> RecordedSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.end(_status_of(kind))


class RecordedCall:
    """One tool call being recorded.

    Used in a ``with`` statement, an exception that leaves the block is its result (``tool_error``,
    ``timeout`` or ``interrupted``); the message of the exception is its output.
    """

    def __init__(self, writer: Writer, session_id: str, step_id: str) -> None:
        #: Id of the call: ``parent_id`` of what a sub-agent does inside it.
        self.step_id = step_id
        self._writer = writer
        self._session_id = session_id
        self._is_over = False

    def finish(
        self,
        output: Any = None,
        *,
        exit_code: int | None = None,
        is_error: bool | None = None,
        error: str | None = None,
        reason: str | None = None,
    ) -> None:
        """The result of the call; a second one is ignored.

        Args:
            output: What it returned, as text or anything that JSON can say.
            exit_code: Exit code of the command.
            is_error: Whether the tool says that it failed.
            error: Why there is no ordinary result (``CALL_ERRORS``), such as ``refused`` by the user.
            reason: What the user typed on refusing.

        Raises:
            ValueError: An unknown ``error``. TypeError: A value of another type.
        """
        if error is not None and error not in CALL_ERRORS:
            raise ValueError(f"error is none of {', '.join(CALL_ERRORS)}")
        fields = {
            "step_id": self.step_id, "output": output, "exit_code": count_of("exit_code", exit_code),
            "is_error": flag_of("is_error", is_error), "error": error, "text": said("reason", reason),
            "ended_at": now(),
        }  # fmt: skip
        if self._is_over:
            return
        self._is_over = True
        self._writer.write("result", self._session_id, fields)

    def __enter__(self) -> RecordedCall:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self.finish()
            return
        status = _status_of(kind)
        self.finish(str(error), is_error=True, error="tool_error" if status == "error" else status)


def _status_of(kind: type[BaseException] | None) -> Any:
    if kind is None:
        return "completed"
    if issubclass(kind, KeyboardInterrupt):
        return "interrupted"
    return "timeout" if issubclass(kind, TimeoutError) else "error"


def now() -> str:
    """The time as evalpipe JSONL writes it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
