"""The code that each reader's rows are made by, beside the version under which it was last looked at.

A file is read again only when the version of its reader is raised, and a reader's rows change with helpers
that many readers share (times, messages, spans): whoever mends one of these does not think of all readers.
So the code of a reader, with all that it imports of ``evalpipe.sources``, is recorded; comments and
docstrings do not count. After a change::

    python -m evalpipe_tests.sources.reader_record              # which readers it concerns
    python -m evalpipe_tests.sources.reader_record --write      # once their versions are raised
    python -m evalpipe_tests.sources.reader_record --write --same-rows codex pi_agent

``--same-rows`` names readers (or ``all``) that give the same rows as before, so that no file is read again in vain.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from functools import cache
from pathlib import Path

from evalpipe.sources.registry import READERS

RECORD = Path(__file__).with_suffix(".json")
_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "evalpipe.sources"


def _text(module: str) -> str:
    return (_ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_text(module))


@cache
def _code(module: str) -> str:
    """Lines of a module without docstrings, comments and blank ones; the same under every release of Python."""
    said: set[int] = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            said.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(_text(module).splitlines(), 1)
    return "\n".join(line for n, line in lines if n not in said and line.strip() and not line.lstrip().startswith("#"))


@cache
def imported(module: str) -> frozenset[str]:
    """A module of the package with all modules of it that it imports, however far."""
    found, waiting = {module}, [module]
    while waiting:
        for node in ast.walk(_tree(waiting.pop())):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{_PACKAGE}."):
                names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
                new = {name for name in names if (_ROOT / f"{name.replace('.', '/')}.py").is_file()} - found
                found |= new
                waiting += sorted(new)
    return frozenset(found)


def now() -> dict[str, dict[str, str]]:
    """Version and digest of the code of each reader."""
    modules: dict[str, set[str]] = {}
    versions: dict[str, str] = {}
    for reader in READERS:
        versions[reader.name] = max(versions.get(reader.name, ""), reader.version)
        modules.setdefault(reader.name, set()).update(imported(reader.parser.__module__))
    return {
        name: {"version": versions[name], "code": _digest(modules[name])} for name in sorted(modules)
    }  # fmt: skip


def _digest(modules: set[str]) -> str:
    code = "\n".join(f"{name}\n{_code(name)}" for name in sorted(modules))
    return hashlib.blake2b(code.encode(), digest_size=8).hexdigest()


def changed() -> dict[str, bool]:
    """Readers whose code or version is another one than recorded, and whether the version was raised."""
    was = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    return {
        name: name not in was or was[name]["version"] != told["version"]
        for name, told in now().items()
        if was.get(name) != told
    }


def main(arguments: list[str]) -> int:
    """Show what changed, or write the record; 1 where a version is to be raised first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--same-rows", nargs="*", default=[], metavar="READER")
    asked = parser.parse_args(arguments)
    found = changed()
    open_ = [n for n, is_raised in found.items() if not is_raised and not {n, "all"} & set(asked.same_rows)]
    for name in found:
        sys.stdout.write(f"{name}: {'raise its version, or name it with --same-rows' if name in open_ else 'ready'}\n")
    if asked.write and not open_:
        RECORD.write_text(json.dumps(now(), indent=1) + "\n", "utf-8")
    return int(bool(open_))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
