"""One person, one token: however a value is written, encoded, or where it stands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from evalpipe.masking import MaskPlan
from evalpipe_tests.masking.support import KEY

PLAN = MaskPlan(KEY)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _token(text: str, entity: str) -> str:
    found = set(re.findall(rf"<{entity}:[a-p]{{4}}:[a-p]{{20}}>", PLAN.mask_text(text)[0]))
    assert len(found) == 1, f"{entity} in {PLAN.mask_text(text)[0]!r}"
    return str(found.pop())


def _wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isalnum() or c == "@" else c for c in text)


_ENCODINGS: dict[str, Callable[[str], str]] = {
    "capitals": lambda s: s.upper(),
    "title": lambda s: s.title(),
    "full width": _wide,
    "percent": lambda s: s.replace("@", quote("@")),
    "entity": lambda s: s.replace("@", "&#64;"),
    "entity hex": lambda s: s.replace("@", "&#x40;"),
    "escape": lambda s: s.replace("@", "\\u0040"),
    "zero width": lambda s: s.replace("@", "@\u200b"),
    "soft hyphen": lambda s: s.replace("@", "\u00ad@"),
    "tag": lambda s: s.replace("@", "+news@"),
    "link": lambda s: f"<a href='mailto:{s}'>",
    "author": lambda s: f"Author: Q <{s}>",
    "quoted": lambda s: f'{{"to": "{s}"}}',
}


@pytest.mark.parametrize("how", sorted(_ENCODINGS))
def test_a_mail_address_has_one_token_in_every_encoding(how: str) -> None:
    draw = random.Random(how)
    for _ in range(25):
        local = "".join(draw.choices(_LETTERS, k=draw.randint(4, 9))) + "." + "".join(draw.choices(_LETTERS, k=5))
        address = f"{local}{draw.randint(10, 99)}@mail.example.org"
        plain = _token(f"write to {address} now", "EMAIL_ADDRESS")
        assert _token(f"write to {_ENCODINGS[how](address)} now", "EMAIL_ADDRESS") == plain
        assert _token(f"write to x{address} now", "EMAIL_ADDRESS") != plain


@pytest.mark.parametrize("rest", [f"{n:04d}" for n in (100, 132, 147, 199)])
def test_a_phone_number_has_one_token_in_every_format(rest: str) -> None:
    british = {f"call {form}" for form in (
        f"+44 20 7946 {rest}", f"+44207946{rest}", f"+44 (0)20 7946 {rest}", f"0044 20 7946 {rest}",
        f"+44-20-7946-{rest}", _wide(f"+44 20 7946 {rest}").replace("+", "\uff0b"))}  # fmt: skip
    american = {f"call {form}" for form in (
        f"415-555-{rest}", f"(415) 555-{rest}", f"+1 415 555 {rest}", f"+1-415-555-{rest}", f"1-415-555-{rest}",
        f"415.555.{rest}")}  # fmt: skip
    chinese = {
        f"手机 {form}" for form in (f"1381234{rest}", f"+86 138 1234 {rest}", f"138-1234-{rest}", f"+861381234{rest}")
    }
    tokens = [{_token(text, "PHONE_NUMBER") for text in forms} for forms in (british, american, chinese)]
    assert [len(one) for one in tokens] == [1, 1, 1]
    assert len(set.union(*tokens)) == 3


def test_a_user_name_has_one_token_wherever_it_stands() -> None:
    draw = random.Random("names")
    for _ in range(10):
        name = "q" + "".join(draw.choices("bcdfghjklmnp", k=3)) + "a" + "".join(draw.choices(_LETTERS, k=3))
        places = (
            f"cd /home/{name}/shop", f"C:\\Users\\{name.title()}\\shop", f"/Users/{name}/x", f"%2Fhome%2F{name}%2Fx",
            f"{name}@buildbox7:~/shop$ ls", f"drwxr-xr-x 2 {name} {name} 4096 Jan 5 10:00 shop",
        )  # fmt: skip
        assert len({_token(text, "USERNAME") for text in places}) == 1


def test_a_user_has_one_token_in_all_spellings_and_that_of_older_slices_is_known() -> None:
    now = PLAN.rekey("u", "ann.m@acme.example", "t")
    assert PLAN.rekey("u", "Ann.M@Acme.example ", "t") == now
    first, *older = PLAN.users("Ann.M@Acme.example", "t")
    assert first == now
    assert len(older) == 1
    assert older[0] not in (now, *PLAN.users("Ann.M@Acme.example", "other"))
    assert PLAN.users("ann.m@acme.example", "t") == [now] == PLAN.users(now, "t")
    assert PLAN.rekey("u", "Ann") != PLAN.rekey("u", "ann"), "logins differ by case"
    assert PLAN.rekey("s", "A@x") != PLAN.rekey("s", "a@x")
