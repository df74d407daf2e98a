"""Pages of the documentation that are generated from contracts; ``make docs`` writes them.

Belongs here: the text of ``docs/tables.md``, ``docs/errors.md``, ``docs/failures.md`` and
``docs/signal-catalogue.md``. A test compares the committed pages with what this module gives, so that
they cannot fall behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

from evalpipe.contracts.errors import ERROR_CODES, EXIT_MEANINGS, QUARANTINE_CODES, SIGNAL_MEANINGS, Exit
from evalpipe.contracts.render import dictionary
from evalpipe.contracts.signals import ORIGIN_MEANINGS, SIGNALS, Family
from evalpipe.contracts.tables import ALL
from evalpipe.contracts.taxonomy import CATEGORIES, LAYERS, OTHER_NAMES, TAXONOMY_VERSION


def errors_page() -> str:
    """Every stable code with its meaning and fix."""
    out = ["# Codes", "", "Generated from `evalpipe/contracts/errors.py`; `make docs` writes it anew.", ""]
    out += ["## Exit codes", "", "| exit | meaning |", "|---|---|"]
    out += [f"| {item.value} | {EXIT_MEANINGS[item]} |" for item in Exit]
    out += [f"| {code} | {meaning} |" for code, meaning in SIGNAL_MEANINGS.items()]
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


_FAMILIES = {
    Family.HARD: "What the environment and the user's hands did: rows of `signals.hard`.",
    Family.SEMANTIC: "What people said: rows of `signals.semantic`, below the least confidence of `signals.candidates`.",
    Family.DERIVED: "Computed from other rows: `signals.derived`. Criteria give them no weight, since what they rest on has one.",
}
_POLARITY = {1: "+", 0: "0", -1: "-"}


def catalogue_page() -> str:
    """Every signal with polarity, default weight, source and evidence."""
    out = ["# Signals", "", "Generated from `evalpipe/contracts/signals.py`; `make docs` writes it anew.", ""]
    out += [
        "The weight is the default of one event, and 0 is never scored; criteria set their own ([criteria](criteria.md)). "
        "Evidence names columns of the signal's table, beside session, task, turn and step ([tables](tables.md)).",
        "",
    ]
    for family, about in _FAMILIES.items():
        out += [f"## {family.value.capitalize()} signals", "", about, ""]
        out += ["| signal | polarity | weight | source | evidence | meaning |", "|---|---|---|---|---|---|"]
        for signal in SIGNALS:
            if signal.family is not family:
                continue
            evidence = ", ".join(f"`{column}`" for column in signal.evidence)
            waits = " A candidate until people have reviewed it." if signal.is_candidate else ""
            out.append(
                f"| `{signal.name}` | {_POLARITY[signal.polarity]} | {signal.strength} | {signal.origin} | {evidence} "
                f"| {signal.meaning}{waits} |"
            )
        out.append("")
    out += ["## Sources", "", "| source | what is read |", "|---|---|"]
    out += [f"| {origin} | {meaning} |" for origin, meaning in ORIGIN_MEANINGS.items()]
    out += [
        "",
        "Categories and layers of failures: [failures.md](failures.md). Which signals go with success: [signal-validity.md](signal-validity.md).",
    ]
    return "\n".join([*out, ""])


def failures_page() -> str:
    """Categories and layers of failures, and how the names of other taxonomies map onto them."""
    out = ["# Failures", "", "Generated from `evalpipe/contracts/taxonomy.py`; `make docs` writes it anew.", ""]
    out += [
        f"Version {TAXONOMY_VERSION} of the taxonomy. How a result is judged: [tool-results.md](tool-results.md).",
        "",
    ]
    out += ["A layer is the category's usual one: a prior, not a verdict.", "", "| layer | meaning |", "|---|---|"]
    out += [f"| {name} | {meaning} |" for name, meaning in LAYERS.items()]
    out += ["", "| category | layer | meaning |", "|---|---|---|"]
    out += [f"| `{c.name}` | {c.layer} | {c.meaning} |" for c in CATEGORIES]
    for taxonomy, names in OTHER_NAMES.items():
        out += ["", f"## As {taxonomy}", "", "| name | categories here |", "|---|---|"]
        for name, categories in names.items():
            told = ", ".join(f"`{c}`" for c in categories) if categories else "none: no single call shows it"
            out.append(f"| {name} | {told} |")
    return "\n".join([*out, ""])


PAGES = {
    "tables.md": lambda: dictionary(ALL), "errors.md": errors_page, "failures.md": failures_page,
    "signal-catalogue.md": catalogue_page,
}  # fmt: skip


def write(folder: Path) -> None:
    """Write all generated pages into a folder."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
