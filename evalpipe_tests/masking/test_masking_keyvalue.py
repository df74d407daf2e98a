"""Keys and their values: which words before a key make it a property, and which never do."""

from __future__ import annotations

import pytest

from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe_tests.masking.support import FALLBACK, PLAN

PROPERTIES = sorted(load_ruleset(default_dir()).words["metadata_prefixes"])
DRAWN = "Zk7!pQ2wLm9x"


def _kept(text: str, value: str) -> bool:
    masked = PLAN.mask_text(text)[0]
    assert masked == FALLBACK.mask_text(text)[0]
    return value in masked


@pytest.mark.parametrize("word", PROPERTIES)
def test_no_word_before_it_makes_a_password_a_property(word: str) -> None:
    big, low = word.upper(), word.lower()
    for key in ("PASSWORD", "SECRET", "API_KEY", "SECRET_KEY"):
        assert not _kept(f"{big}_{key}={DRAWN}", DRAWN), key
    assert not _kept(f'{{"{low}_password": "{DRAWN}"}}', DRAWN)
    assert not _kept(f'{low}Password = "{DRAWN}"', DRAWN)
    assert not _kept(f"{big}_TOKEN=Abc123def456xyz", "Abc123def456xyz")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"current_password":"walnut"}', "walnut"),
        ("CACHE_PASSWORD=walnut", "walnut"),
        ("  image_api_key: 9f8e7d6c5b4a39281706f5e4d3c2b1a0", "9f8e7d6c"),
        ("GROUP_SECRET=ab12cd34ef56gh78", "ab12cd34"),
        ("current_pin: 4821", "4821"),
    ],
)
def test_a_password_of_something_may_be_a_plain_word(text: str, value: str) -> None:
    assert not _kept(text, value)


@pytest.mark.parametrize(
    "text",
    [
        '{"show_password": "Anzeigen", "invalid_password": "Falsches Passwort eingegeben"}',
        "max_password: 128",
        "has_password: true",
        "use_api_key: optional",
        "expected_token: identifier",
        "MAX_TOKEN=4096",
        "EOS_TOKEN=endoftext",
        '"next_token": "abc123def456ghi789jkl"',
        'nextPageToken: "CAUQAAxY12"',
        "first_token: 12.5 ms",
        "hash_token: 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "cache_key: node-modules-9fceb02d0ae598e95dc970b74767f193",
        "PARTITION_KEY=user_id_1234567890",
    ],
)
def test_properties_of_keys_and_tokens_stay(text: str) -> None:
    assert PLAN.mask_text(text) == (text, [])
