"""evalpipe: net improvement of agent versions, estimated from the logs of real sessions.

The package root holds nothing but its version, so that importing it costs nothing. What each
subpackage is for stands in its own docstring; the map is in ``docs/architecture.md``.
"""

__version__ = "0.1.0"
