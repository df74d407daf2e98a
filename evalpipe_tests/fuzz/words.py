"""The words that readers know, so that damage also says things that a format means.

Belongs here: finding them in the readers' own code. A log that holds odd values only reaches few
branches: most ask for one word in one place. Does not belong here: what is done with the words
(``edits.py``).
"""

from __future__ import annotations

import ast
import random
import re
from functools import cache
from pathlib import Path

from evalpipe.sources import readers
from evalpipe.sources.registry import READERS

_LONGEST = 120
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\][*+?]*|\\[dwsSW][*+?]*|\(\?[^)]*\)|[()^$*+?|\\]|\{\d+(?:,\d*)?\}")


def _strings(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = {
        node.value if isinstance(node.value, str) else node.value.decode("utf-8", "replace")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in texts
    }
    # Of a pattern, the plain words between its signs.
    plain = {word for text in found for word in _CLASS.split(text) if len(word) > 1}
    return {text for text in found | plain if 0 < len(text) <= _LONGEST}


@cache
def _all_words() -> tuple[str, ...]:
    folder = Path(readers.__file__).parent
    return tuple(sorted(set().union(*(_strings(path) for path in folder.glob("*.py")))))


@cache
def _words_of(family: str) -> tuple[str, ...]:
    """Words of the modules that readers of a name are made in, and of those that these import."""
    queue = [getattr(reader.parser, "__module__", "") for reader in READERS if reader.name == family]
    seen: dict[str, set[str]] = {}
    while queue:
        name = queue.pop().rpartition(".")[2]
        path = Path(readers.__file__).parent / f"{name}.py"
        if name not in seen and path.is_file():
            seen[name] = _strings(path)
            tree = ast.parse(path.read_text("utf-8"))
            queue += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return tuple(sorted(set().union(*seen.values()))) or _all_words()


def word(choose: random.Random, family: str) -> str:
    """A word that a reader of the family, or any reader, knows."""
    return choose.choice(_words_of(family) if choose.random() < 0.7 else _all_words())
