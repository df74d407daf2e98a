"""The rule set: typed form of the TOML files under ``data/masking/<name>``.

Belongs here: loading, the digest, the lint of a rule set. Does not belong here: how a rule is run
(``engine``), what a validator does (``validators``). Rules are data; this module knows no entity.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir

#: Raised whenever engine or validators change what is masked; part of the digest.
ENGINE_VERSION = "5"
DEFAULT_RULESET = "default"

AT = ("start", "end", "around", "run", "hit")
EDGES = ("left", "both", "none")
ACTIONS = ("mask", "pseudonymise")
CONFIDENCE = ("high", "cue", "shape")
MIN_LITERAL = 3

#: In an expression ``␠`` stands for any space that sets numbers apart in print: the plain one, and the
#: no-break, figure, thin and narrow no-break ones, which text copied from a page holds. Only ASCII may
#: stand in brackets, so it is an alternation.
SPACE, SPACES = "␠", "(?: |\u00a0|\u2007|\u2009|\u202f)"


@dataclass(frozen=True, slots=True)
class Rule:
    """One masking rule.

    Attributes:
        id: Stable name; goes into the audit counts.
        entity, subtype: What is found; the subtype names the kind of secret.
        confidence: ``high`` (own shape or checksum), ``cue`` (its place names it) or ``shape``.
        action: ``mask`` (no token) or ``pseudonymise`` (keyed token).
        anchors: Cheap expressions over bytes whose hits the engine looks at.
        base64_of: Words whose base64 fragments at the three phases are anchors as well.
        caseless: Whether anchors ignore ASCII case.
        shape: Whether an anchor may lack a literal of three bytes.
        at: Where the value is matched: where the anchor begins (``start``) or ends (``end``), at a
            match that covers the anchor's end (``around``), on a maximal run of digits (``run``), or
            wherever the validator says (``hit``).
        value: Expression of the whole value; group 1, if there is one, is what is masked.
        back, ahead: Bytes that ``around`` looks back and that any match may look ahead.
        run: Shortest and longest run of digits for ``run``.
        edge: Sides on which the value must not touch a letter or digit.
        validator: Name in ``validators.VALIDATORS``.
        pos, neg: Example templates; see ``templates``.
    """

    id: str
    entity: str
    subtype: str
    since: str
    confidence: str
    action: str
    anchors: tuple[str, ...]
    base64_of: tuple[str, ...]
    caseless: bool
    shape: bool
    at: str
    value: str
    back: int
    ahead: int
    run: tuple[int, int]
    edge: str
    validator: str
    pos: tuple[str, ...]
    neg: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ruleset:
    """A loaded rule set with its word lists, number plans, field policy and digest."""

    name: str
    rules: tuple[Rule, ...]
    words: dict[str, frozenset[str]] = field(repr=False)
    plans: dict[str, Any] = field(repr=False)
    fields: dict[str, dict[str, str]] = field(repr=False)
    arguments: dict[str, Any] = field(repr=False)
    digest: str


def default_dir() -> Path:
    """Folder of the rule set that evalpipe ships."""
    return data_dir() / "masking" / DEFAULT_RULESET


@lru_cache(maxsize=8)
def load_ruleset(folder: Path) -> Ruleset:
    """Load and check a rule set.

    Args:
        folder: Folder of TOML files: rules, ``words.toml``, ``numbers_plans.toml``, ``fields.toml``.

    Returns:
        The rule set; cached per process.

    Raises:
        EvalpipeError: ``CRITERIA_NOT_FOUND`` if the folder holds no rules, ``CRITERIA_INVALID`` naming
            file and rule if one breaks a rule of form.
    """
    documents = {path.name: _read(path) for path in sorted(folder.glob("*.toml"))}
    rules = [
        _rule({**document.get("defaults", {}), **row}, f"{name}:{row.get('id', i)}")
        for name, document in documents.items()
        for i, row in enumerate(document.get("rule", []))
    ]
    if not rules:
        raise EvalpipeError("CRITERIA_NOT_FOUND", "the folder holds no masking rules.", where=str(folder))
    _unique(rules, str(folder))
    words = {key: frozenset(w.lower() for w in value) for key, value in documents.get("words.toml", {}).items()}
    canonical = json.dumps([ENGINE_VERSION, documents], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return Ruleset(
        name=folder.name,
        rules=tuple(rules),
        words=words,
        plans=documents.get("numbers_plans.toml", {}),
        fields=documents.get("fields.toml", {}),
        arguments=documents.get("arguments.toml", {}),
        digest=hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest(),
    )


def ruleset_digest(folder: Path | None = None) -> str:
    """Digest of a rule set: rules, lists, field policy and engine version (16 hex digits)."""
    return load_ruleset(folder or default_dir()).digest


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as bad:
        raise EvalpipeError("CRITERIA_INVALID", f"not valid TOML: {bad}.", where=str(path)) from bad


def _rule(row: dict[str, Any], where: str) -> Rule:
    def fail(what: str) -> EvalpipeError:
        return EvalpipeError("CRITERIA_INVALID", what, where=where)

    known = set(Rule.__dataclass_fields__)
    unknown = sorted(set(row) - known)
    if unknown:
        raise fail(f"unknown key {unknown[0]}.")
    for need in ("id", "entity", "since", "confidence", "action", "at", "pos", "neg"):
        if need not in row:
            raise fail(f"key {need} is missing.")
    for key, legal in (("at", AT), ("action", ACTIONS), ("confidence", CONFIDENCE)):
        if row[key] not in legal:
            raise fail(f"{key} is none of {', '.join(legal)}.")
    if row.get("edge", "left") not in EDGES:
        raise fail(f"edge is none of {', '.join(EDGES)}.")
    return Rule(
        id=row["id"],
        entity=row["entity"],
        subtype=row.get("subtype", ""),
        since=row["since"],
        confidence=row["confidence"],
        action=row["action"],
        anchors=tuple(anchor.replace(SPACE, SPACES) for anchor in row.get("anchors", ())),
        base64_of=tuple(row.get("base64_of", ())),
        caseless=row.get("caseless", False),
        shape=row.get("shape", False),
        at=row["at"],
        value=row.get("value", "").replace(SPACE, SPACES),
        back=row.get("back", 0),
        ahead=row.get("ahead", 512),
        run=tuple(row.get("run", (0, 0))),
        edge=row.get("edge", "left"),
        validator=row.get("validator", "none"),
        pos=tuple(row["pos"]),
        neg=tuple(row["neg"]),
    )


def _unique(rules: list[Rule], where: str) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise EvalpipeError("CRITERIA_INVALID", f"two rules are called {rule.id}.", where=where)
        seen.add(rule.id)


def literal_prefix(anchor: str) -> bytes:
    """The literal bytes that every match of an anchor begins with; empty for a shape."""
    parsed = re._parser.parse(anchor)  # type: ignore[attr-defined]
    out = b""
    for op, value in parsed:
        if str(op) != "LITERAL":
            break
        out += chr(value).encode()
    return out


def fixed_width(anchor: str) -> int:
    """Length in bytes of every match of an anchor, or 0 if lengths differ."""
    low, high = re._parser.parse(anchor.encode()).getwidth()  # type: ignore[attr-defined]
    return int(low) if low == high else 0


_BEYOND_RE2 = re.compile(r"\(\?(?![:)])|\\[1-9ABbdDGkKNpPRsSUuwWXZ]|\*\+|\+\+|\?\+|\}\+")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


def lint(ruleset: Ruleset) -> list[str]:
    """What breaks the rules of form that loading does not enforce, one sentence each; empty if none.

    Expressions stay inside what Hyperscan, RE2, Rust and ``re`` read alike: no look-around, no
    back-references, no shorthand classes, ASCII inside brackets, bounded repeats.
    """
    out: list[str] = []
    for rule in ruleset.rules:
        for text in (*rule.anchors, rule.value):
            bare = _CLASS.sub("C", text)
            if _BEYOND_RE2.search(re.sub(r"\\[^\w]", "E", bare)):
                out.append(f"{rule.id}: {text!r} leaves the common subset of regular expressions")
            if any(not c.group().isascii() for c in _CLASS.finditer(text)):
                out.append(f"{rule.id}: {text!r} has a character outside ASCII in a class")
            if re.search(r"(?<!\\)[*+](?!\\)", re.sub(r"\\.", "", bare)) or re.search(r"\{\d+,\}", bare):
                out.append(f"{rule.id}: {text!r} has an unbounded repeat")
        for anchor in rule.anchors:
            if not rule.shape and len(literal_prefix(anchor)) < MIN_LITERAL:
                out.append(f"{rule.id}: anchor {anchor!r} begins with no literal of {MIN_LITERAL} bytes")
            if rule.at == "start" and not fixed_width(anchor):
                out.append(f"{rule.id}: anchor {anchor!r} has no fixed width")
        if not (rule.pos and rule.neg):
            out.append(f"{rule.id}: needs positive and negative examples")
        if not (rule.anchors or rule.base64_of):
            out.append(f"{rule.id}: has no anchor")
        if rule.at in ("start", "end", "around") and not rule.value:
            out.append(f"{rule.id}: has no value expression")
    return out
