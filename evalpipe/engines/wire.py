"""What goes between an engine and a worker: pickled tasks and outcomes.

Belongs here: the form of an outcome, and how an exception survives the trip. Does not belong here:
pipes or processes.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a kernel gave: a result, or the exception that it raised."""

    result: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """The result, or raise the exception."""
        if self.error is not None:
            raise self.error
        return self.result


class KernelError(RuntimeError):
    """Stands for an exception, or a result, that cannot be pickled."""


def pack(value: object) -> bytes:
    """Pickle a value."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Any:
    """The value that :func:`pack` was given."""
    return pickle.loads(data)


def pack_outcome(outcome: Outcome) -> bytes:
    """Pickle an outcome, or what can be told of it where it cannot be pickled.

    An exception may pickle and not come back, as one whose ``__init__`` asks for keywords, so it is
    tried both ways here, where the task that raised it is still known.
    """
    try:
        data = pack(outcome)
        if outcome.error is not None:
            unpack(data)
    except (pickle.PicklingError, pickle.UnpicklingError, TypeError, AttributeError, ValueError) as error:
        subject = "result" if outcome.error is None else type(outcome.error).__name__
        told = "" if outcome.error is None else f": {outcome.error}"
        return pack(Outcome(error=KernelError(f"{subject} cannot be pickled ({error}){told}")))
    return data
