"""What an engine is: the interface that steps are written against.

Belongs here: the protocol. Does not belong here: any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Applies a kernel to tasks."""

    def map(
        self, kernel: Callable[[Task], Result], tasks: Sequence[Task], *, weight: Callable[[Task], int] | None = None
    ) -> Iterator[Result]:
        """Apply the kernel to every task.

        Args:
            kernel: A top-level function of one picklable argument, with a picklable result. It may be
                stopped at any moment, so what it writes must count only once its result is used.
            tasks: The tasks.
            weight: Bytes of input of a task, 0 where unknown; little work is not worth starting
                workers for.

        Yields:
            The results in the order of the tasks. An exception of a kernel is raised at its task's
            place, after the results before it.
        """
