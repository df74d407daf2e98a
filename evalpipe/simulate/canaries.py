"""Planted personal data and secrets: values that must not survive desensitization.

Belongs here: making values, each with the shape and check digits of its kind. Does not belong here: where
they stand (``data/simulate/canaries.toml``), and any rule that finds them. Every value is made at run
time from parts, so that no live-looking token stands in the source; mail domains and phone numbers are
from ranges that are set aside for fiction.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from evalpipe.simulate.text import load_words
from evalpipe.simulate.world import read_toml

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASE32 = _UPPER + "234567"
_ALNUM = _UPPER + _UPPER.lower() + "0123456789"


@dataclass(frozen=True, slots=True)
class Canary:
    """One planted value.

    Attributes:
        kind: What it is.
        field: Where it stands: user, output or arguments.
        value: The string that must not survive; one line, without quotes or backslashes.
        command: Command whose arguments or output hold it; empty for user text.
        carrier: Text that holds it.
    """

    kind: str
    field: str
    value: str
    command: str
    carrier: str


@cache
def _places() -> tuple[dict[str, str], ...]:
    return tuple(read_toml("canaries")["canary"])


def make_canary(rng: np.random.Generator, lang: str) -> Canary:
    """Draw a kind, a place and a value."""
    place = _places()[int(rng.integers(len(_places())))]
    words = load_words()
    name = f"{words.first[int(rng.integers(len(words.first)))]} {words.last[int(rng.integers(len(words.last)))]}"
    value, block = _MAKERS[place["kind"]](rng, name)
    template = place["text"] if "text" in place else place[lang]
    carrier = template.format(value=value, name=name, block=block)
    command = place.get("command", "").format(value=value)
    return Canary(place["kind"], place["field"], value, command, carrier)


def _chars(rng: np.random.Generator, alphabet: str, n: int) -> str:
    return "".join(alphabet[i] for i in rng.integers(len(alphabet), size=n))


def _digits(rng: np.random.Generator, n: int) -> str:
    return _chars(rng, "0123456789", n)


def _email(rng: np.random.Generator, name: str) -> str:
    first, last = name.lower().split(" ")
    return f"{first}.{last}{_digits(rng, 3)}@example.{('org', 'com', 'net')[int(rng.integers(3))]}"


def _phone(rng: np.random.Generator, name: str) -> str:
    area = ("212", "312", "415", "617", "713")[int(rng.integers(5))]
    return f"+1 {area} 555 01{_digits(rng, 2)}"


def luhn_digit(digits: str) -> str:
    """Check digit of a card number (Luhn, 1960; ISO/IEC 7812-1)."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if position % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def _card(rng: np.random.Generator, name: str) -> str:
    body = "4" + _digits(rng, 14)
    return body + luhn_digit(body)


def _iban(rng: np.random.Generator, name: str) -> str:
    account = _digits(rng, 18)
    rest = int(account + "131400")  # D = 13, E = 14, check digits 00 (ISO 13616)
    return f"DE{98 - rest % 97:02d}{account}"


def _aws_key_id(rng: np.random.Generator, name: str) -> str:
    return "AK" + "IA" + _chars(rng, _BASE32, 16)


def _aws_secret_key(rng: np.random.Generator, name: str) -> str:
    return _chars(rng, _ALNUM + "+/", 39) + _chars(rng, _ALNUM, 1)


def _github_token(rng: np.random.Generator, name: str) -> str:
    return "gh" + "p_" + _chars(rng, _ALNUM, 36)


def _password(rng: np.random.Generator, name: str) -> str:
    return _chars(rng, _ALNUM, 20)


def _jwt(rng: np.random.Generator, name: str) -> str:
    head = _url64(b'{"alg":"HS256","typ":"JWT"}')
    body = _url64(f'{{"sub":"{_digits(rng, 10)}","name":"{name}","iat":17{_digits(rng, 8)}}}'.encode())
    return f"{head}.{body}.{_url64(rng.bytes(32))}"


def _url64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _simple(make: Callable[[np.random.Generator, str], str]) -> Callable[[np.random.Generator, str], tuple[str, str]]:
    return lambda rng, name: (make(rng, name), "")


def _private_key(rng: np.random.Generator, name: str) -> tuple[str, str]:
    lines = list(_key_lines(rng))
    label = "RSA " + "PRIVATE KEY"
    return lines[3], "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def _key_lines(rng: np.random.Generator) -> Iterator[str]:
    text = "MII" + base64.b64encode(rng.bytes(600)).decode()[3:]
    for start in range(0, len(text), 64):
        yield text[start : start + 64]


_MAKERS: dict[str, Callable[[np.random.Generator, str], tuple[str, str]]] = {
    "email": _simple(_email),
    "phone": _simple(_phone),
    "credit_card": _simple(_card),
    "iban": _simple(_iban),
    "aws_key_id": _simple(_aws_key_id),
    "aws_secret_key": _simple(_aws_secret_key),
    "github_token": _simple(_github_token),
    "private_key": _private_key,
    "connection_password": _simple(_password),
    "jwt": _simple(_jwt),
}
