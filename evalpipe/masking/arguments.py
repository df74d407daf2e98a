"""Field policy inside of tool arguments: what is dropped, generalised, or stripped, by tool and path.

Belongs here: applying ``arguments.toml`` to JSON that is masked already. Does not belong here: text
(``engine``), columns (``policy``). It runs behind the rules, so that a session still learns names from
paths, and again over its own result without changing it: a re-scan is safe.

What cannot be read as JSON stays masked text, without the keys to drop that its letters show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from evalpipe.masking import documents
from evalpipe.masking.engine import PATH, TOKEN_IN_TEXT
from evalpipe.masking.rules import load_ruleset

if TYPE_CHECKING:
    from evalpipe.masking.plan import Hit, MaskPlan

#: Longer texts repeat seldom, and would fill memory that is bounded.
_SHORT = 1_000
_ACTIONS = ("path", "path_keys", "url")
_PICTURE = re.compile(r"data:[a-z]+/[a-z0-9.+-]+;base64,|[A-Za-z0-9+/\r\n]{256,}={0,2}\Z")
#: Where the name of a home's owner stands among segments and separators: ``/home/NAME``, ``C:\\Users\\NAME``.
_OWNER = 4
_MAX_PATH = 4_096
_EXTENSION = re.compile(r"(?:\.(?:d|test|spec|config|min|tar))?\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
_USERINFO = re.compile(r"\A([a-z][a-z0-9+.-]*://)[^/?#@]*@", re.IGNORECASE)
_VALUES = re.compile(r"=[^&]*")
#: Of what looks like a pattern, no segment is a name.
_PATTERN = re.compile(r"[*?{}\[\]$]")


@dataclass(frozen=True, slots=True)
class ArgumentPolicy:
    """The loaded policy.

    Attributes:
        tools: Action of each path of arguments, by tool.
        drop, pictures: Keys whose value goes, in any case or where it is a picture.
        homes, known, files: What may stay of a path.
        trigger: Finds texts that hold a key to drop.
        cut: Such a key with its value, in what is no document.
    """

    tools: Mapping[str, Mapping[str, str]]
    drop: frozenset[str]
    pictures: frozenset[str]
    homes: frozenset[str]
    known: frozenset[str]
    files: frozenset[str]
    trigger: str
    cut: str


@lru_cache(maxsize=8)
def argument_policy(folder: Path) -> ArgumentPolicy:
    """The policy of a rule-set folder; one without the file has none."""
    document = load_ruleset(folder).arguments
    everywhere, paths = document.get("everywhere", {}), document.get("paths", {})
    tools: dict[str, dict[str, str]] = {}
    for row in document.get("tool", ()):
        for name in row["names"]:
            mine = tools.setdefault(name, {})
            for action in _ACTIONS:
                mine |= dict.fromkeys(row.get(action, ()), action)
    drop, pictures = frozenset(everywhere.get("drop", ())), frozenset(everywhere.get("drop_pictures", ()))
    keys = "|".join(re.escape(key) for key in sorted(drop)) or "$^"
    trigger = rf'\\{{0,15}}"(?:{keys})\\{{0,15}}"\s*:|;base64,|[A-Za-z0-9+/]{{256}}'
    cut = rf'("(?:{keys})"\s*:\s*)("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|\[[^\[\]{{}}]*(?:\]|\Z))'
    homes, known, files = (frozenset(paths.get(name, ())) for name in ("homes", "known", "files"))
    return ArgumentPolicy(tools, drop, pictures, homes, known, files, trigger, cut)


def tool_of(name: str | None, policy: ArgumentPolicy) -> Mapping[str, str]:
    """Actions by path of a tool, whatever server its name is prefixed by."""
    low = (name or "").lower()
    return policy.tools.get(low) or policy.tools.get(re.split(r"__|[./:]", low)[-1]) or {}


def apply(
    steps: pl.DataFrame, context: pl.DataFrame, plan: MaskPlan, count: Callable[[str, str, list[Hit]], None]
) -> pl.DataFrame:
    """Apply the policy to masked steps.

    Args:
        steps: ``name, arguments, output, text`` of steps, masked as text.
        context: ``tenant`` and ``source`` of every row.
        plan: Key and rule set.
        count: Takes source, field and what was replaced.

    Returns:
        The same steps; JSON that was changed is written without blanks.
    """
    policy = argument_policy(plan.ruleset)
    for column in ("arguments", "output", "text"):
        is_document = steps[column].str.contains(r"(?m)^\s*[\[{\"]").fill_null(value=False)
        wanted = is_document & steps[column].str.contains(policy.trigger).fill_null(value=False)
        if column == "arguments":
            names = steps["name"].drop_nulls().unique()
            known = [name for name in names.to_list() if tool_of(name, policy)]
            wanted = wanted | (is_document & steps["name"].is_in(known).fill_null(value=False))
        rows = wanted.arg_true()
        if rows.is_empty():
            continue
        picked = pl.DataFrame(
            [steps[column].alias("text"), steps["name"].alias("tool"), context["tenant"], context["source"]]
        )[rows]
        changed = []
        for text, tool, tenant, source in picked.iter_rows():
            ask = _short if len(text) <= _SHORT else one
            new, hits = ask(text, tool if column == "arguments" else None, tenant, plan)
            changed.append(new)
            if hits:
                count(source, f"steps.{column}", list(hits))
        steps = steps.with_columns(steps[column].scatter(rows, pl.Series(changed, dtype=pl.String)))
    return steps


@lru_cache(maxsize=8_192)
def _short(text: str, tool: str | None, tenant: str, plan: MaskPlan) -> tuple[str, tuple[Hit, ...]]:
    return one(text, tool, tenant, plan)


def one(text: str, tool: str | None, tenant: str, plan: MaskPlan) -> tuple[str, tuple[Hit, ...]]:
    """One masked text under the policy of a tool.

    Args:
        text: Masked arguments or output.
        tool: Name of the tool; ``None`` for what is no arguments.
        tenant: Tenant of the session.
        plan: Key and rule set.

    Returns:
        The text, unchanged byte for byte where nothing applies, and what was replaced.
    """
    policy = argument_policy(plan.ruleset)
    document = documents.read(text)
    if document is documents.NOTHING:
        return _lines(text, tool, tenant, plan)
    walk = _Walk(policy, tool_of(tool, policy), plan, tenant)
    try:
        out = walk.node(document, "")
        new = documents.write(out) if walk.hits else text
    except RecursionError:
        token, hits = plan.withheld("json", len(text.encode()), document=True)
        return token.decode(), tuple(hits)
    return new, tuple(walk.hits)


def _lines(text: str, tool: str | None, tenant: str, plan: MaskPlan) -> tuple[str, tuple[Hit, ...]]:
    """A text that is no document: each line that is one, and of all others the keys to drop by their letters."""
    policy = argument_policy(plan.ruleset)
    lines = text.split("\n")
    hits: list[Hit] = []
    for at, line in enumerate(lines):
        is_document = line.lstrip()[:1] in ("{", "[", '"') and documents.read(line) is not documents.NOTHING
        if len(lines) > 1 and is_document:
            lines[at], more = one(line, tool, tenant, plan)
            hits += more
    # A document that was cut short, or stands in the middle of prose.
    new, n = re.subn(policy.cut, r"\1null", "\n".join(lines))
    if n:
        hits += [_hit("blob", None, match.group(2)) for match in re.finditer(policy.cut, "\n".join(lines))]
    return new, tuple(hits)


def _hit(what: str, new: str | None, old: str) -> Hit:
    from evalpipe.masking.plan import Hit

    entity = "DROPPED" if new is None else "URL" if what == "url" else PATH
    return Hit(entity, what, "arguments", len(old.encode("utf-8", "surrogatepass")))


class _Walk:
    def __init__(self, policy: ArgumentPolicy, actions: Mapping[str, str], plan: MaskPlan, tenant: str) -> None:
        self._policy, self._actions, self._plan, self._tenant = policy, actions, plan, tenant
        self.hits: list[Hit] = []

    def node(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            is_named = self._actions.get(path) == "path_keys"
            return {
                self._changed(key, self._path(key), "path") if is_named else key: self._member(key, item, path)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.node(item, f"{path}[]") for item in value]
        if not isinstance(value, str):
            return value
        if value.lstrip()[:1] in ("{", "[") and re.search(self._policy.trigger, value):
            new, hits = one(value, None, self._tenant, self._plan)
            self.hits += hits
            return new
        action = self._actions.get(path)
        if action == "path":
            return self._changed(value, self._path(value), action)
        return self._changed(value, _url(value), action) if action == "url" else value

    def _member(self, key: str, value: Any, path: str) -> Any:
        is_picture = key in self._policy.pictures and isinstance(value, str) and _PICTURE.match(value)
        is_blob = key in self._policy.drop and value is not None and not isinstance(value, bool)
        if is_picture or is_blob:
            old = value if isinstance(value, str) else documents.write(value)
            return self._changed(old, None, "picture" if is_picture else "blob")
        return self.node(value, f"{path}.{key}" if path else key)

    def _changed(self, old: str, new: str | None, what: str) -> str | None:
        if new != old:
            self.hits.append(_hit(what, new, old))
        return new

    def _path(self, value: str) -> str:
        """A path with its home, depth, extension and well-known segments; the rest as tokens."""
        if "\n" in value or len(value) > _MAX_PATH:
            return value
        pieces = re.split(r"([\\/]+)", value)
        last = len(pieces) - 1
        in_home = len(pieces) > _OWNER and pieces[2].lower() in self._policy.homes
        out = []
        for at, piece in enumerate(pieces):
            # Whose home it is, masking has said already.
            is_kept = at % 2 or (in_home and at in (2, _OWNER)) or piece.lower() in self._policy.known
            out.append(piece if is_kept else self._segment(piece, is_file=at == last))
        return "".join(out)

    def _segment(self, piece: str, *, is_file: bool) -> str:
        extension = _EXTENSION.search(piece) if is_file else None
        stem = piece[: extension.start()] if extension else piece
        if not stem or _is_settled(stem) or (is_file and stem.lower() in self._policy.files):
            return piece
        return self._plan.pseudonym(PATH, stem, self._tenant) + piece[len(stem) :]


def _is_settled(piece: str) -> bool:
    """Whether a segment holds a token or is a pattern, so that it is left as it is."""
    return bool(_PATTERN.search(piece)) or TOKEN_IN_TEXT.search(piece) is not None


def _url(value: str) -> str:
    value = _USERINFO.sub(r"\1", value).partition("#")[0]
    place, mark, query = value.partition("?")
    return place + mark + _VALUES.sub("=", query)
