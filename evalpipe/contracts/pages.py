"""Pages of the documentation that are generated from contracts; ``make docs`` writes them.

Belongs here: the text of ``docs/tables.md`` and ``docs/errors.md``. A test compares the committed
pages with what this module gives, so that they cannot fall behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

from evalpipe.contracts.errors import ERROR_CODES, EXIT_MEANINGS, QUARANTINE_CODES, Exit
from evalpipe.contracts.render import dictionary
from evalpipe.contracts.tables import ALL


def errors_page() -> str:
    """Every stable code with its meaning and fix."""
    out = ["# Codes", "", "Generated from `evalpipe/contracts/errors.py`; `make docs` writes it anew.", ""]
    out += ["## Exit codes", "", "| exit | meaning |", "|---|---|"]
    out += [f"| {item.value} | {EXIT_MEANINGS[item]} |" for item in Exit]
    out += ["| 130 | interrupted |", "| 141 | what read the output went away |"]
    out += [
        "",
        "## Records and files in quarantine",
        "",
        "A record with one of these codes never stops the others.",
        "",
    ]
    out += ["| code | meaning | fix |", "|---|---|---|"]
    out += [f"| `{code.name}` | {code.meaning} | {code.fix} |" for code in QUARANTINE_CODES.values()]
    out += ["", "## Errors that stop a command", "", "| code | exit | meaning | fix |", "|---|---|---|---|"]
    out += [f"| `{c.name}` | {c.exit.value} | {c.meaning} | {c.fix} |" for c in ERROR_CODES.values()]
    return "\n".join([*out, ""])


PAGES = {"tables.md": lambda: dictionary(ALL), "errors.md": errors_page}


def write(folder: Path) -> None:
    """Write all generated pages into a folder."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
