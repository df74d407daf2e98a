"""Value templates: how examples and canaries are written without a live-looking token in the repo.

Belongs here: the grammar of templates and their deterministic expansion. Does not belong here: any
rule or any knowledge of what is sensitive; the leak check uses this module too.

A template is text with slots: ``{A36}`` is 36 mixed-case letters and digits, ``{a8}`` small letters,
``{U16}`` capitals and digits, ``{d9}`` digits, ``{x32}`` hexadecimal, ``{w20}`` URL-safe base64,
``{b40}`` base64. ``{luhn:4539:16}`` is a number with a valid check digit, ``{iban:DE:18}`` an account
number with valid check digits, ``{cn}`` a Chinese resident id, ``{cpf}`` and ``{cnpj}`` Brazilian tax
numbers, ``{nhs}`` a British health number, ``{enc:24}`` a base64 text that names a password of 24
characters. ``<~>`` is a split marker and vanishes. ``[[`` and ``]]``
mark the part that must be masked.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

SPLIT_MARK = "<~>"
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_ALPHABETS = {
    "A": _LOWER + _LOWER.upper() + "0123456789",
    "a": _LOWER,
    "U": _LOWER.upper() + "0123456789",
    "d": "0123456789",
    "x": "0123456789abcdef",
    "w": _LOWER + _LOWER.upper() + "0123456789-_",
    "b": _LOWER + _LOWER.upper() + "0123456789+/",
}
_SLOT = re.compile(r"\{(?:(?P<set>[AaUdxwb])(?P<n>\d+)|(?P<name>[a-z]+)(?P<args>(?::[A-Za-z0-9]+)*))\}")


@dataclass(frozen=True, slots=True)
class Example:
    """An expanded template: its text and the (start, end) character spans between the marks."""

    text: str
    spans: tuple[tuple[int, int], ...]


def expand(template: str, seed: bytes) -> Example:
    """Fill the slots of a template.

    Args:
        template: Text in the grammar of this module.
        seed: Bytes that decide every drawn character; the same seed gives the same text.

    Returns:
        The text without marks, and the marked spans in characters.

    Raises:
        ValueError: If a slot names an unknown generator.
    """
    draw = _draw(seed)
    filled = _SLOT.sub(lambda slot: _fill(slot, draw), template.replace(SPLIT_MARK, ""))
    text, spans, opened = "", [], 0
    for piece in re.split(r"(\[\[|\]\])", filled):
        if piece == "[[":
            opened = len(text)
        elif piece == "]]":
            spans.append((opened, len(text)))
        else:
            text += piece
    return Example(text, tuple(spans))


def _draw(seed: bytes) -> Iterator[int]:
    counter = 0
    while True:
        yield from hashlib.blake2b(counter.to_bytes(8, "big"), key=seed[:64]).digest()
        counter += 1


def _pick(alphabet: str, n: int, draw: Iterator[int]) -> str:
    # Slots that name letters and digits hold at least one of each, as issued tokens practically do.
    out = [alphabet[next(draw) % len(alphabet)] for _ in range(n)]
    if n >= 4 and alphabet[0].isalpha() and any(c.isdigit() for c in alphabet):
        out[1], out[2] = alphabet[next(draw) % 26], "3456789"[next(draw) % 7]
    return "".join(out)


def _fill(slot: re.Match[str], draw: Iterator[int]) -> str:
    if slot["set"]:
        return _pick(_ALPHABETS[slot["set"]], int(slot["n"]), draw)
    args = slot["args"].split(":")[1:]
    match slot["name"]:
        case "luhn":
            body = args[0] + _pick("0123456789", int(args[1]) - len(args[0]) - 1, draw)
            return body + luhn_digit(body)
        case "iban":
            account = _pick("0123456789", int(args[1]), draw)
            return args[0] + iban_check(args[0], account) + account
        case "cn":
            body = (
                "110101190" + f"{next(draw) % 10}0{1 + next(draw) % 9}1{next(draw) % 10}" + _pick("0123456789", 3, draw)
            )
            return body + cn_check(body)
        case "cpf" | "cnpj":
            return _brazil(slot["name"], draw)
        case "nhs":
            return _nhs(draw)
        case "enc":
            plain = "password=" + _pick(_ALPHABETS["A"], int(args[0]), draw)
            return base64.b64encode(plain.encode()).decode()
        case other:
            raise ValueError(f"unknown slot {other}")


def luhn_digit(body: str) -> str:
    """The check digit that makes ``body`` pass Luhn's test (ISO/IEC 7812-1)."""
    total = 0
    for i, c in enumerate(reversed(body)):
        d = int(c) * (2 if i % 2 == 0 else 1)
        total += d - 9 if d > 9 else d
    return str(-total % 10)


def iban_check(country: str, account: str) -> str:
    """The two check digits of an IBAN (ISO 13616, mod 97)."""
    digits = "".join(str(int(c, 36)) for c in account + country + "00")
    return f"{98 - int(digits) % 97:02d}"


def cn_check(body: str) -> str:
    """The check character of a Chinese resident id (GB 11643-1999)."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return "10X98765432"[sum(int(c) * w for c, w in zip(body, weights, strict=True)) % 11]


def _mod11(body: str, weights: tuple[int, ...]) -> str:
    rest = sum(int(c) * w for c, w in zip(body, weights, strict=True)) % 11
    return "0" if rest < 2 else str(11 - rest)


def _brazil(name: str, draw: Iterator[int]) -> str:
    if name == "cpf":
        body = _pick("0123456789", 9, draw)
        body += _mod11(body, tuple(range(10, 1, -1)))
        body += _mod11(body, tuple(range(11, 1, -1)))
        return f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"
    body = _pick("0123456789", 8, draw) + "0001"
    body += _mod11(body, (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
    body += _mod11(body, (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
    return f"{body[:2]}.{body[2:5]}.{body[5:8]}/{body[8:12]}-{body[12:]}"


def _nhs(draw: Iterator[int]) -> str:
    while True:
        body = _pick("0123456789", 9, draw)
        check = 11 - sum(int(c) * w for c, w in zip(body, range(10, 1, -1), strict=True)) % 11
        if check != 10:
            return body + str(check % 11)
