"""What an agent does with its tools, and how that fails.

Belongs here: calls with arguments and results, by scenario, with the planted failures of
``data/simulate/errors.toml``. Does not belong here: when they happen (``script.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from evalpipe.simulate.text import Draw, load_filler, load_words
from evalpipe.simulate.world import Profile, Scenario, read_toml


@dataclass(slots=True)
class Call:
    """One tool call with its result.

    Attributes:
        name: Tool.
        arguments: What it was called with.
        output: Result text; of a refused or cancelled call, empty.
        exit_code: For commands.
        error: ``refused``, ``cascade`` or None.
        first_line: Line of a file at which a reading starts.
        duration: Milliseconds.
        reason: What the user said on refusing it.
        start, end: Times, set when the call is placed.
    """

    name: str
    arguments: dict[str, Any]
    output: str
    exit_code: int | None = None
    error: str | None = None
    first_line: int = 1
    duration: int = 200
    reason: str = ""
    start: int = 0
    end: int = 0

    @property
    def is_failed(self) -> bool:
        """Whether the log flags the result as an error."""
        return self.error is not None or bool(self.exit_code)


@cache
def _data() -> tuple[dict[str, list[list[str]]], dict[str, list[str]], dict[str, Any]]:
    filler = read_toml("filler")
    return filler["tools"], filler["commands"], read_toml("errors")


class Toolbox:
    """Calls of one session: they share folder, files and topic."""

    def __init__(self, draw: Draw, profile: Profile, scenario: Scenario, cwd: str, topics: list[str]) -> None:
        menus, self._commands, self._errors = _data()
        self.scenario = scenario
        self._draw, self._profile, self._cwd, self._topics = draw, profile, cwd, topics
        self._menu = menus[scenario.name]
        self._filler, self._words = load_filler(), load_words()
        words = self._words
        self._files = [
            f"{cwd}/{draw.pick(words.dirs)}/{draw.pick(words.words)}{draw.pick(words.extensions)}" for _ in range(4)
        ]

    def ordinary(self) -> list[list[Call]]:
        """The calls of one turn that succeed; two in one response now and then."""
        draw, low_high = self._draw, self._profile.tools
        wanted = draw.between(*low_high) * self.scenario.tools
        n = int(wanted) + (draw.unit() < wanted % 1.0)
        groups: list[list[Call]] = []
        for _ in range(n):
            if groups and len(groups[-1]) == 1 and draw.unit() < 0.25:
                groups[-1].append(self._one())
            else:
                groups.append([self._one()])
        return groups

    def _one(self) -> Call:
        draw = self._draw
        name, kind = draw.pick(self._menu)
        if name == "Bash":
            command = self._fill(draw.pick(self._commands[kind]))
            return self.shell(command, self._filler[kind].text(draw, self._size()))
        path = self._path(kind)
        if name == "Read":
            first, lines = self._filler[kind].cut(draw, self._size())
            return Call(name, {"file_path": path}, "\n".join(lines), first_line=first, duration=draw.between(8, 90))
        if name == "Edit":
            return self._edit(path, "code" if self.scenario.name == "coding" else "notes")
        if name == "Write":
            body = self._filler["code" if self.scenario.name == "coding" else "table"].text(draw, self._size())
            output = f"File created successfully at: {path}"
            return Call(name, {"file_path": path, "content": body}, output, duration=draw.between(12, 120))
        return self._search(name, kind)

    def _edit(self, path: str, kind: str) -> Call:
        draw, filler = self._draw, self._filler[kind]
        old, new = (filler.text(draw, draw.between(60, 260)) for _ in range(2))
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        return Call("Edit", arguments, f"The file {path} has been updated.", duration=draw.between(12, 120))

    def _search(self, name: str, kind: str) -> Call:
        draw, words = self._draw, self._words.words
        arguments: dict[str, Any]
        if name == "Grep":
            arguments = {"pattern": draw.pick(self._words.funcs), "path": self._cwd, "output_mode": "content"}
        elif name == "Glob":
            arguments = {"pattern": f"**/{draw.pick(words)}*"}
        elif name == "WebSearch":
            arguments = {"query": f"{draw.pick(self._topics)} {draw.pick(words)}"}
        else:
            url = f"https://{draw.pick(words)}.example.edu/{draw.pick(words)}"
            arguments = {"url": url, "prompt": draw.pick(self._topics)}
        return Call(name, arguments, self._filler[kind].text(draw, self._size()), duration=draw.between(90, 2_600))

    def _path(self, kind: str) -> str:
        if kind in ("code", "none") and self.scenario.name == "coding":
            return self._draw.pick(self._files)
        ending = {"table": "csv"}.get(kind, "md")
        return f"{self._cwd}/{'data' if ending == 'csv' else 'docs'}/{self._draw.pick(self._words.words)}.{ending}"

    def _size(self) -> int:
        # Skewed as in real logs: most results are short, a few are long.
        u = self._draw.unit()
        return int(self._profile.output * (0.3 + u) + self._profile.reach * u**7)

    def _fill(self, template: str) -> str:
        draw = self._draw
        words = self._words
        return template.format(word=draw.pick(words.words), n=draw.between(2, 60), dir=draw.pick(words.dirs))

    def shell(self, command: str, output: str, exit_code: int = 0) -> Call:
        """A shell command with its result."""
        return Call("Bash", {"command": command}, output, exit_code=exit_code, duration=self._draw.between(60, 4_000))

    def failure(self, word: str, *, is_repaired: bool, has_sibling: bool) -> list[list[Call]]:
        """A command that fails, once; mended and run again if asked. ``word`` makes it the session's own."""
        row, n = self._draw.pick(self._errors["error"]), self._draw.between(20, 90)

        def say(key: str) -> str:
            return str(row[key]).format(word=word, n=n, home=self._cwd)

        failed = self.shell(say("command"), say("output"), row["exit"])
        groups = [[failed]]
        if has_sibling:
            path = {"file_path": self._draw.pick(self._files)}
            groups[0].append(Call("Read", path, "", error="cascade", duration=failed.duration))
        if is_repaired:
            groups += [[self.shell(say("repair"), "")], [self.shell(say("command"), say("success"))]]
        return groups

    def check(self) -> list[list[Call]]:
        """A test run with a failing test, an edit, and the same run with all tests passing."""
        row, word, n = self._errors["check"], self._draw.pick(self._words.words), self._draw.between(4, 90)
        command = row["command"].format(word=word)
        output = row["output"].format(word=word, n=n, dots="." * 7)
        edit = self._edit(self._draw.pick(self._files), "code")
        return [[self.shell(command, output, row["exit"])], [edit], [self.shell(command, row["success"])]]

    def benign(self) -> Call:
        """A search that finds nothing: exit code 1 is its answer."""
        row = self._errors["benign"]
        return self.shell(row["command"].format(word=self._draw.pick(self._words.words)), row["output"], row["exit"])

    def refused(self) -> Call:
        """A call that the user declines."""
        call = self.shell(self._fill("make {word} -j {n}"), "")
        call.exit_code, call.error = None, "refused"
        return call
