"""Shell commands: which programs one runs, and what its exit code speaks of.

Belongs here: cutting a command line into programs, behind wrappers (``sudo``, ``uv run``, ``docker
exec``) and inside of shells (``bash -lc '...'``). Does not belong here: what a program's exit code
means (``errors.toml``, ``causes.toml``). This is a reader of ordinary command lines, not a shell:
what it cannot cut it keeps whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_MAX_CHARS = 4000
_MAX_DEPTH = 3
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:\n\s*\2\b|\Z)", re.DOTALL)
_COMMENT = re.compile(r"(?m)^\s*#[^\n]*$")
#: What a shell runs to write a word: its exit code does not count.
_SUBSTITUTION = re.compile(r"[$<>]\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_TOKEN = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|\d?>&\d?|&>|&&|\|\||\|&|[;|\n&]|[^'\"\\&|;\n>]+|.", re.DOTALL)
_WORD = re.compile(r"(?:[^\s'\"\\]|\\.|'[^']*'|\"(?:\\.|[^\"\\])*\")+|['\"]", re.DOTALL)
_OPERATORS = frozenset({"&&", "||", "|", "|&", ";", "\n", "&"})
_ASSIGNMENT = re.compile(r"^(?:\$env:)?\w+=")
_SHELL_OPTION = re.compile(r"^-\w*c$|^/c$|^-command$", re.IGNORECASE)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "cmd", "powershell", "pwsh"})
#: Words of the shell that hold commands apart and run nothing.
_SYNTAX = frozenset({"for", "done", "fi", "esac", "case", "select", "function", "}", "end", ")", "begin"})
_WRAPPERS = frozenset(
    {"sudo", "doas", "time", "nohup", "env", "exec", "nice", "ionice", "npx", "bunx", "pnpx", "uvx", "stdbuf",
     "xvfb-run", "setsid", "unbuffer", "chronic", "cross-env", "xargs", "watch", "strace", "if", "then", "do", "else",
     "elif", "while", "until", "!", "{", "(", "&"}
)  # fmt: skip
#: Two words before a program, and options of theirs that take a value.
_RUNNERS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("rye", "run"), ("hatch", "run"),
     ("pipx", "run"), ("conda", "run"), ("mamba", "run"), ("bundle", "exec"), ("pnpm", "exec"), ("pnpm", "dlx"),
     ("yarn", "exec"), ("yarn", "dlx"), ("npm", "exec"), ("dotnet", "exec"), ("mise", "exec"), ("coverage", "run"),
     ("doppler", "run"), ("op", "run"), ("busybox", "sh")}
)  # fmt: skip
#: Runners of another place: the word behind them (after options) names it, what follows runs there.
_PLACES = frozenset({("docker", "exec"), ("podman", "exec"), ("docker", "run"), ("podman", "run"), ("direnv", "exec")})
_PLACES_3 = frozenset({("docker", "compose", "exec"), ("docker", "compose", "run")})
#: Programs whose first argument says which program it is.
_TWO_WORDS = frozenset(
    {"git", "go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "dotnet", "docker", "gh", "make", "kubectl",
     "terraform", "tofu", "helm", "systemctl", "swift", "mix", "rake", "rails", "flutter", "dart", "bazel", "zig",
     "pip", "pip3", "brew", "apt-get", "apt", "turbo", "nx", "tmux", "crontab", "gcloud", "aws", "az", "conda",
     "composer", "podman"}
)  # fmt: skip
_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "-f", "--directory", "--prefix", "--cwd", "-n", "--namespace", "-u",
     "--user", "-k", "-s", "--kill-after", "--signal", "-e", "--env", "-w", "--workdir", "-p", "--package", "--with",
     "--context", "--filter", "-F", "-I", "-P", "-L", "--project", "-v", "--volume", "--name", "-t", "-chdir"}
)  # fmt: skip
_MASKING = frozenset({"true", ":", "echo", "printf", "write-host", "write-output"})
_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)$")


@dataclass(frozen=True, slots=True)
class Segment:
    """One program of a command line.

    Attributes:
        operator: What stands before it, such as ``&&`` or ``|``; empty for the first.
        name: Program, with its verb where it has verbs: ``git diff``.
        text: Name and arguments, lower-case, behind wrappers and without the program's folder.
    """

    operator: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The programs of a command line.

    Attributes:
        segments: Programs in order.
        scope: What an exit code speaks of: ``program`` (one program, or a chain of ``&&``, which
            stops at the first failure), ``last_of_chain`` or ``masked``.
        last: The program whose code is the exit code; empty if there is none.
    """

    segments: tuple[Segment, ...]
    scope: str
    last: str

    @property
    def programs(self) -> tuple[str, ...]:
        """Names in order, such as ``("cd", "git diff", "head")``."""
        return tuple(segment.name for segment in self.segments)


#: What a tool runs that takes no command.
NOTHING = CommandLine((), "program", "")


@lru_cache(maxsize=1024)
def parse(command: str) -> CommandLine:
    """Cut a command line into programs and say what its exit code speaks of."""
    return _parse(command[:_MAX_CHARS], 0)


def _parse(command: str, depth: int) -> CommandLine:
    text = _HEREDOC.sub(lambda m: m[3] + "\n", command.replace("\\\n", " "))
    text = _SUBSTITUTION.sub("$_", _COMMENT.sub("", text))
    parts: list[tuple[str, str]] = [("", "")]
    for token in _TOKEN.findall(text):
        if token in _OPERATORS:
            parts.append((token, ""))
        else:
            parts[-1] = (parts[-1][0], parts[-1][1] + token)
    segments: list[Segment] = []
    inner_scope = ""
    for operator, part in parts:
        found = _segments(operator, part, depth)
        inner_scope = found.scope
        segments += found.segments
    kept = [segment for segment in segments if segment.name not in _SYNTAX] or segments
    is_strict = "pipefail" in text or "set -e" in text
    scope = inner_scope if len(parts) == 1 and inner_scope else _scope(segments, is_strict=is_strict)
    return CommandLine(tuple(kept), scope, _last(kept, text))


def _segments(operator: str, part: str, depth: int) -> CommandLine:
    """The program of a part, or the programs of the command that a shell is given."""
    words = _unwrapped(_WORD.findall(part.strip().lstrip("({!")))
    if not words:
        return CommandLine((), "", "")
    name = _base(words[0])
    if name in _SHELLS and depth < _MAX_DEPTH:
        at = next((i for i, word in enumerate(words[1:], 1) if _SHELL_OPTION.match(word)), 0)
        if at and len(words) > at + 1:
            quoted = words[at + 1]
            command = quoted[1:-1] if quoted[0] in "'\"" else " ".join(words[at + 1 :])
            inner = _parse(command.replace('\\"', '"'), depth + 1)
            first = tuple(
                Segment(operator if i == 0 else s.operator, s.name, s.text) for i, s in enumerate(inner.segments)
            )
            return CommandLine(first, inner.scope, inner.last)
    if name in _TWO_WORDS:
        rest = _without_options(words[1:])
        verb = next(iter(rest), "").lower()
        if verb == "run" and name in {"npm", "pnpm", "yarn", "bun"}:
            rest = _without_options(rest[1:])
            verb = next(iter(rest), "").lower()
        name = f"{name} {verb}".strip()
        words = [name, *(words[1:] if verb == "" else [word for word in words[1:] if word.lower() != verb])]
    segment = Segment(operator, name, " ".join([name, *words[1:]]).lower())
    return CommandLine((segment,), "", name)


def _base(word: str) -> str:
    return _ENDING.sub("", re.split(r"[/\\]", word.strip("\"'"))[-1].lower())


def _unwrapped(words: list[str]) -> list[str]:
    """Words from the program on: assignments, wrappers and runners before it are taken away."""
    while words:
        head = _base(words[0])
        pair = (head, words[1] if len(words) > 1 else "")
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
        elif head == "env" and not _without_options(words[1:]):
            # Alone it shows the environment.
            break
        elif head in _WRAPPERS:
            words = _without_options(words[1:])
        elif head in {"timeout", "gtimeout", "flock"}:
            words = _without_options(words[1:])[1:]
        elif pair in _RUNNERS:
            words = _without_options(words[2:])
        elif (head.startswith("python") or head in {"py", "pypy"}) and pair[1] == "-m":
            words = words[2:]
        elif pair in _PLACES or (*pair, words[2] if len(words) > 2 else "") in _PLACES_3:
            inner = _without_options(words[2 if pair in _PLACES else 3 :])[1:]
            if not inner:
                return words
            words = inner
        elif (head in {"kubectl", "oc"} and pair[1] == "exec" and "--" in words) or (head == "nix" and "-c" in words):
            words = words[words.index("--" if "--" in words else "-c") + 1 :]
        elif head == "ssh" and len(rest := _without_options(words[1:])) > 1:
            words = _WORD.findall(rest[1][1:-1]) if rest[1][0] in "'\"" else rest[1:]
        else:
            break
    return words


def _without_options(words: list[str]) -> list[str]:
    """Words from the first that is no option; options that take a value take it along."""
    i = 0
    while i < len(words) and words[i].startswith("-"):
        if words[i] == "--":
            return words[i + 1 :]
        i += 2 if words[i] in _WITH_VALUE else 1
    return words[i:]


def _scope(segments: list[Segment], *, is_strict: bool) -> str:
    # A loop goes on after a failure: what closes it counts as a program here.
    joins = [segment.operator for segment in segments[1:]]
    if joins and joins[-1] in {"||", ";", "\n"} and segments[-1].name in _MASKING:
        return "masked"
    if is_strict or all(operator == "&&" for operator in joins):
        return "program"
    return "last_of_chain"


def _last(segments: list[Segment], text: str) -> str:
    """The program that an exit code speaks of; ``exit`` hands on the code of what came before."""
    kept = segments
    if len(kept) > 1 and kept[-1].name == "exit":
        kept = kept[:-1]
        if "PIPESTATUS[0]" in text or "pipestatus[1]" in text:
            while len(kept) > 1 and kept[-1].operator in {"|", "|&"}:
                kept = kept[:-1]
    return kept[-1].name if kept else ""
