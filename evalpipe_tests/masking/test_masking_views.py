"""The same value behind colours, escapes, layers of JSON and lists of arguments is found as well."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe.masking.templates import expand
from evalpipe_tests.masking.support import FALLBACK, PLAN

RULES = load_ruleset(default_dir()).rules


def _masked(text: str) -> str:
    masked = PLAN.mask_text(text)[0]
    assert masked == FALLBACK.mask_text(text)[0]
    if text[:1] in "{[":
        json.loads(masked)
    return masked


@pytest.mark.parametrize(
    "words",
    [
        ["mysql", "-u", "root", "--password", "Walnut77"],
        ["curl", "-u", "app:Walnut77"],
        ["sshpass", "-p", "Walnut77", "ssh"],
        ["docker", "login", "-p", "Walnut77"],
        ["redis-cli", "-a", "Walnut77"],
        ["mysql", "-pWalnut77"],
        ["x", "--token", "Walnut77cd34ef56"],
    ],
)
def test_a_list_of_arguments_is_a_command(words: list[str]) -> None:
    for text in (json.dumps({"command": words}), json.dumps({"a": json.dumps(words)}), f"CMD {words!r}"):
        assert "Walnut77" not in _masked(text), text
    assert _masked(json.dumps({"command": ["pytest", "-q", "tests/test_cart.py"], "n": ["a", "b"]})).count("<") == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\x1b[31mDB_PASSWORD=Walnut77x\x1b[0m", "Walnut77x"),
        ('\x1b[34m"password"\x1b[0m: \x1b[32m"Walnut77x"\x1b[0m', "Walnut77x"),
        ("lena.hofmann\x1b[01;31m@mail\x1b[m.com", "lena"),
        ("DB_\x1b[01;31m\x1b[KPASSWORD\x1b[m\x1b[K=Walnut77x", "Walnut77x"),
        ('{"o": "\\u001b[34m\\"password\\"\\u001b[0m: \\u001b[32m\\"Walnut77x\\"\\u001b[0m"}', "Walnut77x"),
        ('{"o": "IDENTIFIED BY \\"blue-80-x\\""}', "blue-80"),
        ('{"o": "db.login(\\"app\\", \\"Walnut77\\")"}', "Walnut77"),
        ('{"o": "user,password\\nsvc,S3cu390"}', "S3cu390"),
        ('{"o": "$ whoami\\nxebfpmp"}', "xebfpmp"),
        *(
            (f"alice.meyer{at}mail{dot}com", "alice")
            for at, dot in (
                *((at, ".") for at in ("%2540", "%252540", "\\u{40}", "\\U00000040", "\\100", "=40", "\ufe6b")),
                *((at, ".") for at in ("&amp;#64;", "&#0000064;", "&#x000040;", "\\\\u0040")),
                ("&commat;", "&period;"),
                ("@", "\u3002"),
            )
        ),
        ("alice.meyer@mail.com".encode("utf-16-le").decode(), "a\0l\0i\0c\0e"),
        ("phone +๔๙๑๕๑๑๒๓๔๕๖๗๘", "๔๙"),
        ("phone +𝟒𝟗𝟏𝟓𝟏𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖", "𝟒𝟗"),
    ],
)
def test_a_disguise_hides_nothing(text: str, value: str) -> None:
    assert value in text
    assert value not in _masked(text)


def _at_level(levels: int) -> Callable[[str], str]:
    def wrap(text: str) -> str:
        for _ in range(levels):
            text = json.dumps({"o": text}, ensure_ascii=False)
        return text

    return wrap


WRAPS: dict[str, Callable[[str], str]] = {
    "json": _at_level(1),
    "json in json": _at_level(2),
    "json in json in json": _at_level(3),
    "colour": lambda text: f"\x1b[31m{text}\x1b[0m",
}


@pytest.mark.parametrize("name", WRAPS)
def test_examples_of_rules_are_found_in_another_dress(name: str) -> None:
    """Nearly all: what a rule wants to the left may be a line that begins, which a wrapping takes from it."""
    wrap, lost, n = WRAPS[name], [], 0
    for rule in RULES:
        for index, template in enumerate(rule.pos):
            example = expand(template, f"{rule.id}{index}".encode())
            values = [example.text[a:b] for a, b in example.spans]
            # A value with quotes or line ends of its own is spelled otherwise inside of a document.
            if any(json.dumps(value, ensure_ascii=False) != f'"{value}"' for value in values):
                continue
            n += 1
            masked = PLAN.mask_text(wrap(example.text))[0]
            if any(value in masked for value in values):
                lost.append((rule.id, index))
    assert n > 700
    assert len(lost) <= 0.01 * n, lost
