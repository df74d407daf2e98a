"""Where a slice kernel runs.

Belongs here: engines, which apply a top-level function to a list of tasks and give the results back
in order. Does not belong here: kernels, or what becomes of a result. A kernel must give the same
result wherever it runs, so an engine decides nothing but time and memory.
"""

from evalpipe.engines.base import Engine
from evalpipe.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine"]
