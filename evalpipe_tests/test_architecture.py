"""The house's import directions, kept by walking the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "evalpipe"

#: What each part may import of evalpipe. A part that is not named here fails the test.
ALLOWED: dict[str, set[str]] = {
    "contracts": {"contracts"},
    "locations": set(),
    "settings": {"contracts"},
    "criteria": {"contracts", "criteria", "locations"},
    # Runs in other people's processes: the standard library only.
    "collect": {"collect"},
    "sources": {"contracts", "sources"},
    "masking": {"contracts", "criteria", "masking", "locations"},
    "signals": {"contracts", "criteria", "signals", "locations"},
    "inference": {"inference"},
    "review": {"contracts", "inference", "review", "locations"},
    "analysis": {"contracts", "criteria", "inference", "analysis"},
    "report": {"contracts", "criteria", "report"},
    # Holds what is shipped against known truth, so it calls the parts that it validates.
    "validation": {"contracts", "criteria", "inference", "analysis", "signals", "locations", "validation"},
    "interchange": {"contracts", "interchange"},
    "store": {"contracts", "store", "locations"},
    "engines": {"contracts", "engines"},
    "quality": {"contracts", "quality", "locations"},
    "simulate": {"contracts", "simulate", "locations"},
    "steps": {
        "contracts", "criteria", "settings", "locations", "sources", "masking", "signals", "inference", "analysis", "report",
        "interchange", "store", "engines", "quality", "review", "validation", "steps",
    },
    "orchestration": {
        "contracts", "settings", "store", "engines", "quality", "report", "steps", "orchestration", "definitions",
    },
    "definitions": {"settings", "steps", "orchestration"},
    "console": {
        "contracts", "criteria", "settings", "store", "report", "review", "simulate", "masking", "signals", "inference", "steps",
        "orchestration", "console",
    },
    "cli": {"contracts", "criteria", "settings", "store", "steps", "orchestration", "console"},
}  # fmt: skip


def _modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if "_bundled" not in p.parts and p != PACKAGE / "__init__.py"]


def _part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> list[tuple[str, bool]]:
    """(module, is at module level) for every import of a file."""
    tree = ast.parse(path.read_text("utf-8"))
    top = set(map(id, tree.body))
    out: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            out += [(f"{base}.{alias.name}" if base == "evalpipe" else base, id(node) in top) for alias in node.names]
    return out


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    part = _part(path)
    assert part in ALLOWED, f"{part} is not in the house"
    for name, _ in _imports(path):
        if name.startswith("evalpipe."):
            target = name.split(".")[1]
            if target == "__version__":
                continue
            assert target in ALLOWED[part], f"{part} may not import {target}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_shell_imports_dagster_and_only_functions_import_great_expectations(path: Path) -> None:
    for name, is_top in _imports(path):
        root = name.split(".")[0]
        if root in ("dagster", "dagster_duckdb"):
            assert _part(path) in ("orchestration", "definitions")
        if root == "great_expectations":
            assert _part(path) == "quality"
            assert not is_top, "great_expectations takes seconds to import"
        assert root != "pandas" or _part(path) == "quality"


@pytest.mark.parametrize("name", ["leak_check.py", "detector.py"])
def test_the_leak_check_does_not_import_the_rules_that_it_checks(name: str) -> None:
    path = PACKAGE / "masking" / name
    forbidden = {"rules", "engine", "validators", "locate", "dictionary", "templates"}
    for imported, _ in _imports(path):
        if imported.startswith("evalpipe.masking."):
            assert imported.split(".")[2] not in forbidden, imported


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_opens_with_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), "a module says what belongs there"


@pytest.mark.parametrize(
    "module",
    ["evalpipe.sources", "evalpipe.masking", "evalpipe.signals", "evalpipe.inference", "evalpipe.analysis",
     "evalpipe.report", "evalpipe.validation", "evalpipe.store.warehouse", "evalpipe.simulate", "evalpipe.cli"],
)  # fmt: skip
def test_importing_pure_parts_loads_no_orchestrator(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        "loaded = [m for m in ('dagster', 'great_expectations', 'pandas') if m in sys.modules]\n"
        "sys.exit(', '.join(loaded) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
