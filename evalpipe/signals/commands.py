"""Shell commands: which programs one runs, and what its exit code speaks of.

Belongs here: cutting a command line into programs. Does not belong here: what a program's exit code
means (``errors.toml``). This is a reader of ordinary command lines, not a shell: what it cannot cut
it keeps whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:\n\s*\2\b|\Z)", re.DOTALL)
_TOKEN = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|\d?>&\d?|&>|&&|\|\||\|&|[;|\n&]|[^'\"\\&|;\n>]+|.", re.DOTALL)
_OPERATORS = frozenset({"&&", "||", "|", "|&", ";", "\n", "&"})
_ASSIGNMENT = re.compile(r"^\w+=\S*$")
_WRAPPERS = frozenset(
    {"sudo", "time", "nohup", "env", "exec", "nice", "npx", "bunx", "pnpx", "stdbuf", "xvfb-run", "if", "then", "do",
     "else", "elif", "while", "until", "!", "{", "(", "uvx"}
)  # fmt: skip
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("rye", "run"), ("hatch", "run"),
            ("bundle", "exec"), ("pnpm", "exec"), ("yarn", "exec"), ("npm", "exec"), ("dotnet", "exec")}  # fmt: skip
#: Programs whose first argument says which program it is.
_TWO_WORDS = frozenset({"git", "go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "dotnet", "docker", "gh", "make"})
_GLOBAL_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "-f", "--directory", "--prefix", "--cwd"})
_TIMEOUT_VALUES = frozenset({"-k", "-s", "--kill-after", "--signal"})
_MASKING = frozenset({"true", ":", "echo", "printf"})


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The programs of a command line.

    Attributes:
        programs: Names in order, such as ``("cd", "git diff", "head")``.
        scope: What an exit code speaks of: ``program`` (one program, or a chain of ``&&``, which
            stops at the first failure), ``last_of_chain`` or ``masked``.
    """

    programs: tuple[str, ...]
    scope: str

    @property
    def last(self) -> str:
        """The last program, whose code is the exit code; empty if there is none."""
        return self.programs[-1] if self.programs else ""


def parse(command: str) -> CommandLine:
    """Cut a command line into programs and say what its exit code speaks of."""
    text = _HEREDOC.sub(lambda m: m[3] + "\n", command[:4000])
    segments: list[str] = [""]
    operators: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _OPERATORS:
            operators.append(token)
            segments.append("")
        else:
            segments[-1] += token
    named = [(op, _program(seg)) for op, seg in zip(["", *operators], segments, strict=True)]
    kept = [(op, name) for op, name in named if name]
    programs = tuple(name for _, name in kept)
    return CommandLine(
        programs, _scope([op for op, _ in kept], programs, is_strict="pipefail" in text or "set -e" in text)
    )


def _scope(operators: list[str], programs: tuple[str, ...], *, is_strict: bool) -> str:
    joins = operators[1:]
    if joins and joins[-1] in {"||", ";", "\n"} and programs[-1].split(" ")[0] in _MASKING:
        return "masked"
    if is_strict or all(op == "&&" for op in joins):
        return "program"
    return "last_of_chain"


def _program(segment: str) -> str:
    words = segment.strip().lstrip("({!").split()
    while words:
        head = words[0]
        if head in _WRAPPERS or _ASSIGNMENT.match(head):
            words = words[1:]
        elif head == "timeout":
            words = _without_options(words[1:], _TIMEOUT_VALUES)[1:]
        elif tuple(words[:2]) in _RUNNERS or (head.startswith("python") and words[1:2] == ["-m"]):
            words = words[2:]
        else:
            break
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1].strip("\"'")
    if name in _TWO_WORDS:
        rest = _without_options(words[1:], _GLOBAL_VALUES)
        verb = next(iter(rest), "")
        if verb == "run" and name in {"npm", "pnpm", "yarn", "bun"}:
            verb = next(iter(_without_options(rest[1:], frozenset())), "")
        return f"{name} {verb}".strip()
    return name


def _without_options(words: list[str], with_value: frozenset[str]) -> list[str]:
    """Words from the first that is no option; options named in ``with_value`` take the next word along."""
    i = 0
    while i < len(words) and words[i].startswith("-"):
        i += 2 if words[i] in with_value else 1
    return words[i:]
