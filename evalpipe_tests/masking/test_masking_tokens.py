"""Text that looks like a token of masking: forged, malformed, or in the middle of a secret."""

from __future__ import annotations

import pytest

from evalpipe_tests.masking.support import FALLBACK, PLAN

_LINE = "MIIEpAIBAAKCAQEA7xsKq9vJ2Lw8Zr4Tn6Yb1Mc3Df5Gh7Jk9Lp0Qs2Vu4WxA1b"
_REST = "AbC9dEf8GhI7jKl6MnO5pQr4StU3vWx2YzA1bCd0EfG9hIj8KlM7nOp6QrS5tUv"
_BLOCK = "-----BEGIN RSA PRI" + "VATE KEY-----\n{}\n{}\n{}\n"


def _masked(text: str) -> str:
    masked = PLAN.mask_text(text)[0]
    assert masked == FALLBACK.mask_text(text)[0]
    assert PLAN.mask_text(masked) == (masked, [])
    return masked


@pytest.mark.parametrize("token", ["<SECRET>", "<LOCATION>", "<CREDIT_CARD>", "<WITHHELD:size>", "<SECRET:password>"])
@pytest.mark.parametrize("tail", ["-----END RSA PRI" + "VATE KEY-----", ""], ids=["whole", "cut"])
def test_a_token_in_a_key_block_unmasks_no_line(token: str, tail: str) -> None:
    assert _REST not in _masked(_BLOCK.format(_LINE, token, _REST) + tail)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("DB_PASSWORD=abc<SECRET>def98765xyz", ("abc", "def98765xyz")),
        ("DB_PASSWORD=<SECRET>def98765xyz", ("def98765xyz",)),
        ("DB_PASSWORD=abc12def<LOCATION>", ("abc12def",)),
        ("postgres://app:pre<SECRET>Fix1@db/x", ("pre", "Fix1")),
        ("Authorization: Bearer <SECRET>eyJx1234567890abcdefgh", ("eyJx1234567890abcdefgh",)),
        ("Cookie: sid=<SECRET>abc123def456ghi789jkl; theme=dark", ("abc123def456ghi789jkl",)),
        ('password="a<SECRET>b9Zk!x77"', ("b9Zk!x77",)),
        ('{"password":"a<SECRET:password>b9Zk!x77"}', ("b9Zk!x77",)),
    ],
)
def test_a_token_in_a_secret_unmasks_none_of_it(text: str, values: tuple[str, ...]) -> None:
    masked = _masked(text)
    assert not [value for value in values if value in masked]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<CREDIT_CARD:4539578763621486>", "4539578763621486"),
        ("<SECRET:AKIA4KZ7QJ2MWN5TVXRB>", "4KZ7QJ2MWN5TVXRB"),
        ("password: <SECRET:hunter2xq>", "hunter2xq"),
        ("<CN_RESIDENT_ID:110101199003074514>", "110101199003074514"),
        ("<IP_ADDRESS:88-77-66-55> write to <PERSON:ann.meyer@mail.example.com>", "ann.meyer"),
    ],
)
def test_what_no_rule_calls_itself_is_text(text: str, value: str) -> None:
    assert value not in _masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=<SECRET:password>",
        '{"password": "<SECRET:password>", "card": "<CREDIT_CARD>"}',
        "postgres://app:<SECRET:url-password>@db/x",
        "password=<YOUR_PASSWORD>",
        "DB_PASSWORD=<DB_NAME>_dev1",
        '<a href="https://x2.example.com">bob and <b>2</b>',
        "backup_2024_<SECRET:vendor-token>.tar",
    ],
)
def test_tokens_and_placeholders_stay(text: str) -> None:
    assert PLAN.mask_text(text) == (text, [])
