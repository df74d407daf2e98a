"""The page of the documentation that lists the columns of SQL models and of schema ``meta``.

Belongs here: the text of ``docs/sql-models.md``; ``make docs`` writes it, and a test compares the committed
page with what this module gives. Does not belong here: the tables of contracts (``contracts/pages.py``),
nor what a model is (``store/sql_models.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from evalpipe.locations import sql_dir
from evalpipe.store import meta
from evalpipe.store.sql_models import SqlModel, load_models

NAME = "sql-models.md"


def page(models: Iterable[SqlModel]) -> str:
    """Every SQL model and table of ``meta`` with its columns, as Markdown.

    Args:
        models: The models; the page has them by name.

    Returns:
        The page's text.
    """
    out = ["# SQL models", ""]
    out += ["Generated from `dbt_like_sql` and `evalpipe/store/meta.py`; `make docs` writes it anew.", ""]
    out += ["What they answer, and how to write one: [warehouse.md](warehouse.md).", ""]
    for model in sorted(models, key=lambda m: m.name):
        kind = "Table" if model.is_table else "View"
        reads = ", ".join(f"`{name}`" for name in model.depends_on)
        out += [f"## {model.name}", "", f"{model.description} {kind}; reads {reads}.", ""]
        out += _columns((c.name, c.type, c.comment) for c in model.columns)
    for name, columns in meta.TABLES.items():
        out += [f"## meta.{name}", "", meta.MEANINGS[name], "", *_columns(columns)]
    return "\n".join(out)


def _columns(columns: Iterable[tuple[str, str, str]]) -> list[str]:
    rows = [f"| `{name}` | {dtype} | {meaning} |" for name, dtype, meaning in columns]
    return ["| column | type | meaning |", "|---|---|---|", *rows, ""]


if __name__ == "__main__":
    (Path(sys.argv[1]) / NAME).write_text(page(load_models(sql_dir())), "utf-8")
