"""Passwords as people write them, and what only looks like one: decisions that an example cannot show alone."""

from __future__ import annotations

import pytest

from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe.masking.validators.base import Facts
from evalpipe.masking.validators.values import has_random_cases, is_metadata, is_pass_phrase
from evalpipe_tests.masking.support import PLAN

RULESET = load_ruleset(default_dir())
FACTS = Facts(RULESET.words, RULESET.plans)


def _masked(text: str) -> str:
    return PLAN.mask_text(text)[0]


@pytest.mark.parametrize("phrase", ["seven purple llamas dance", "Orange Kettle Moon Drift", "my cat eats 4 fish"])
def test_words_without_talk_of_passwords_are_a_pass_phrase(phrase: str) -> None:
    assert is_pass_phrase(phrase.encode(), FACTS)
    assert phrase not in _masked(f'passphrase = "{phrase}"')


@pytest.mark.parametrize(
    "label", ["Enter your password", "must be at least 8 characters", "Orange kettle moon drift", "two words"]
)
def test_labels_hints_and_sentences_are_none(label: str) -> None:
    assert not is_pass_phrase(label.encode(), FACTS)


def test_only_random_strings_mix_cases_both_ways() -> None:
    assert has_random_cases(b"gWQXNAyqBACGQUxoJRSBQFbGcAW")
    assert not has_random_cases(b"getAccessTokenFromHeaderOrCookie")


def test_a_web_token_library_is_no_key() -> None:
    assert is_metadata("io.jsonwebtoken", b"0.12.3", FACTS)
    assert not is_metadata("access_token", b"abc", FACTS)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("PASSWORD=$(echo Hallo771x)", "Hallo771x"),
        ("export TOKEN=`echo tok4471zz`", "tok4471zz"),
        ('{"token": 73920184, "ok": true}', "73920184"),
        ('{"pin": 7719}', "7719"),
        ("DJANGO_SECRET_KEY=kW8#x^p5xVH5FkOa+DtO(sthf(eJ2G", "sthf(eJ2G"),
        ("&quot;password&quot;:&quot;quoted77Pw&quot;", "quoted77Pw"),
        ("Tel. (030) 4821-5678/90", "4821-5678/90"),
        ("جوال: ٠٥٠٤٨٢١٥٦٧", "٤٨٢١٥٦٧"),
        ("open /Volumes/Big Disk/Users/jbeckmann/x", "jbeckmann"),
        ("Author: Orla  Fitzroy <of@example.org>", "Orla  Fitzroy"),
        ("пишите на почта@домен.рф", "почта"),
    ],
)
def test_a_value_is_hidden_where_people_write_it(text: str, secret: str) -> None:
    assert secret not in _masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "PASSWORD=$(cat /run/secrets/pw)",
        '{"token": 50257, "logprob": -0.1}',
        '{"pin": 13}',
        "Reviewed-by: LGTM Bot",
        "SECRET_KEY=get_random(32)",
        'password: "пароль"',
        "मेरा नाम सूची में नहीं है",
    ],
)
def test_what_only_looks_like_one_is_kept(text: str) -> None:
    assert _masked(text) == text


def test_a_password_in_a_url_takes_no_more_than_itself() -> None:
    masked = _masked("amqp://svc:r4bb!tMQ@mq.example.com:5672/vh")
    assert "r4bb" not in masked
    assert masked.endswith("@mq.example.com:5672/vh")
