"""Where shipped data files are: beside the package in a checkout, inside it in a wheel.

Belongs here: paths of data that evalpipe ships. Does not belong here: paths of a user's home
(``settings.py``).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir() -> Path:
    """Folder of criteria, patterns, masking rules and quality rules."""
    return _first(_PACKAGE.parent / "data", _PACKAGE / "_bundled" / "data")


def sql_dir() -> Path:
    """Folder of SQL models."""
    return _first(_PACKAGE.parent / "dbt_like_sql", _PACKAGE / "_bundled" / "dbt_like_sql")


def _first(checkout: Path, bundled: Path) -> Path:
    # A checkout wins, so that an edited rule takes effect without a new install.
    return checkout if (_PACKAGE.parent / "pyproject.toml").is_file() else bundled
