"""The engine: two locators agree, masking is idempotent, budgets fail closed, JSON stays JSON."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.masking import MaskPlan
from evalpipe.masking.decode import decoded_view, json_view
from evalpipe.masking.engine import engine_for
from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe.masking.templates import expand
from evalpipe_tests.masking.support import FALLBACK, KEY, OTHER_KEY, PLAN

_RULES = load_ruleset(default_dir()).rules
_EXAMPLES = [expand(p, r.id.encode()).text for r in _RULES for p in (*r.pos, *r.neg)]
_GLUE = st.sampled_from(
    ["\n", " ", "", "\\n", '"', "，", ": ", "=", "\\", "%40", "\u200b", "１２", "\\u0040", "é", "{", "<"]
)
_PIECE = st.one_of(
    st.sampled_from(_EXAMPLES), st.text(max_size=12), st.from_regex(r"[0-9 .\-+()@/:]{0,24}", fullmatch=True)
)
_TEXTS = st.lists(st.tuples(_PIECE, _GLUE), max_size=6).map(lambda parts: "".join(a + b for a, b in parts))


@settings(max_examples=150, deadline=None)
@given(_TEXTS)
def test_both_locators_find_the_same(text: str) -> None:
    raw = text.encode()
    assert PLAN.engine.find(raw, "abcd") == FALLBACK.engine.find(raw, "abcd")


@settings(max_examples=150, deadline=None)
@given(_TEXTS)
def test_masking_twice_changes_nothing(text: str) -> None:
    once, _ = PLAN.mask_text(text)
    assert PLAN.mask_text(once) == (once, [])


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.one_of(_TEXTS, st.integers(), st.none()),
        lambda x: st.dictionaries(_PIECE, x, max_size=4) | st.lists(x, max_size=4),
        max_leaves=8,
    )
)
def test_json_stays_json(document: object) -> None:
    for text in (json.dumps(document), json.dumps(document, ensure_ascii=False)):
        masked, hits = PLAN.mask_text(text)
        assert hits or masked == text
        if text[:1] in "{[":
            json.loads(masked)


@settings(max_examples=60, deadline=None)
@given(st.lists(_TEXTS, max_size=30))
def test_many_texts_together_find_what_each_finds_alone(texts: list[str]) -> None:
    engine = PLAN.engine
    alone = {i: spans for i, t in enumerate(texts) if (spans := engine.find(t.encode(), "abcd")) or spans is None}
    for each in (engine, FALLBACK.engine):
        assert dict(each.find_many(enumerate(t.encode() for t in texts), "abcd", 10**6)) == alone


def test_the_marked_values_are_gone() -> None:
    for rule in _RULES:
        for i, template in enumerate(rule.pos):
            example = expand(template, f"{rule.id}{i}".encode())
            masked, hits = PLAN.mask_text(example.text)
            assert hits
            for start, end in example.spans:
                assert example.text[start:end] not in masked, rule.id


@pytest.mark.parametrize(
    "hidden",
    [
        "ana.b42\\u0040mail.example.org",
        "ana.b42%40mail.example.org",
        "ana.b42&#64;mail.example.org",
        "ana.b42&#x40;mail.example.org",
        "ana.b42@\u200bmail.example.org",
        "ana.b42＠mail.example.org",
        "ana.b42\\\\u0040mail.example.org",
    ],
)
def test_one_address_is_one_token_however_it_is_written(hidden: str) -> None:
    plain, _ = PLAN.mask_text("write to ana.b42@mail.example.org today")
    assert PLAN.mask_text(f"write to {hidden} today")[0] == plain
    assert "EMAIL_ADDRESS" in plain


def test_pseudonyms_follow_key_tenant_entity_and_value() -> None:
    text = "mail ana.b42@mail.example.org"
    token = PLAN.mask_text(text, "t1")[0]
    assert PLAN.mask_text(text.upper(), "t1")[0].endswith(token.split()[1])
    assert PLAN.mask_text(text, "t2")[0] != token
    assert MaskPlan(OTHER_KEY).mask_text(text, "t1")[0] != token
    assert f"<EMAIL_ADDRESS:{KEY.epoch}:" in token


def test_pseudonyms_of_another_key_are_masked_again() -> None:
    theirs = MaskPlan(OTHER_KEY).mask_text("mail ana.b42@mail.example.org")[0]
    ours, hits = PLAN.mask_text(theirs)
    assert OTHER_KEY.epoch not in ours
    assert f"<EMAIL_ADDRESS:{KEY.epoch}:" in ours
    assert [h.rule_id for h in hits] == ["token.foreign"]
    assert PLAN.mask_text(ours) == (ours, [])


def test_secrets_carry_no_trace_of_their_value() -> None:
    tokens = {PLAN.mask_text(f"DB_PASSWORD=tiger{n}Zebra")[0] for n in (1234, 5678)}
    assert tokens == {"DB_PASSWORD=<SECRET:password>"}


@pytest.mark.parametrize("unit", ["a@b.co ", "/home/ana/", "password=x", "1234567890 "])
def test_too_many_hits_withhold_the_field(unit: str) -> None:
    masked, hits = PLAN.mask_text(unit * 100_000)
    assert masked == "<WITHHELD:budget>"
    assert [(h.entity, h.subtype, h.rule_id) for h in hits] == [("WITHHELD", "budget", "engine")]


def test_a_long_field_is_withheld_and_json_keeps_its_form() -> None:
    plan = MaskPlan(KEY, withhold_over_bytes=50)
    assert plan.mask_text("x" * 51)[0] == "<WITHHELD:size>"
    assert plan.mask_text("x" * 50) == ("x" * 50, [])
    assert json.loads(plan.mask_text(json.dumps({"a": "x" * 60}))[0]) == "<WITHHELD:size>"


def test_numbers_in_json_become_strings() -> None:
    masked, _ = PLAN.mask_text('{"pan": 4539148803436467, "n": 5, "pin_code": 7}')
    assert json.loads(masked) == {"pan": "<CREDIT_CARD>", "n": 5, "pin_code": 7}


def test_keys_of_json_are_masked_and_the_rest_is_untouched() -> None:
    text = '{"n": 1.50e3,  "ana.b42@mail.example.org": [1, 2],"é":"\\u00e9"}'
    masked, hits = PLAN.mask_text(text)
    token = next(iter(k for k in json.loads(masked) if k.startswith("<")))
    assert masked == text.replace("ana.b42@mail.example.org", token)
    assert len(hits) == 1


def test_escapes_in_json_do_not_glue() -> None:
    masked, _ = PLAN.mask_text(
        json.dumps({"command": "export A_TOKEN=abc123def456ghi\nwhoami", "x": "n/a\nana@mail.example.org"})
    )
    document = json.loads(masked)
    assert document["command"] == "export A_TOKEN=<SECRET:generic>\nwhoami"
    assert document["x"].startswith("n/a\n<EMAIL")


def test_views_map_back() -> None:
    text = b'{"a":"x\\ny\\\\n\\tz"}'
    assert len(json_view(text)) == len(text)
    assert json_view(text) == b'{"a":"x\n\ny\\\\n\t\tz"}'
    view = decoded_view(b"a%40b\\u0041&#66;c")
    assert view is not None
    assert view.data == b"a@bABc"
    assert view.back(1, 2) == (1, 4)
    assert view.back(0, 6) == (0, 17)
    assert view.back(3, 5) == (5, 16)
    assert decoded_view(b"plain") is None


def test_engines_are_made_once_per_thread() -> None:
    assert engine_for(default_dir(), "fallback") is engine_for(default_dir(), "fallback")
    text = "mail ana.b42@mail.example.org " * 50
    with ThreadPoolExecutor(max_workers=2) as pool:
        answers = set(pool.map(lambda n: PLAN.mask_text(text)[0], range(40)))
        others = set(pool.map(lambda n: id(engine_for(default_dir(), "fallback")), range(40)))
    assert answers == {PLAN.mask_text(text)[0]}
    assert id(engine_for(default_dir(), "fallback")) not in others


@pytest.mark.parametrize("value", ["tiger95100Z", "tiger95100Z."])
def test_a_password_at_the_end_of_a_document_inside_of_a_document_is_masked_alone(value: str) -> None:
    """The escaped quote behind it is no part of it: taken along, the whole field would be withheld."""
    text = json.dumps({"body": json.dumps({"note": f"a senha do banco é {value}"})})
    masked, hits = PLAN.mask_text(text)
    assert {hit.entity for hit in hits} == {"SECRET"}
    assert "tiger95100Z" not in masked
    assert set(json.loads(json.loads(masked)["body"])) == {"note"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("call=%28415%29%20555-1234&x", "555-1234"),
        ("card%204539%201488%200343%206467", "1488"),
        ("next=%2Fhome%2Fmarcia77%2Fapp", "marcia77"),
        ("who=ana%2Eb42@mail.example.org", "ana"),
    ],
)
def test_what_an_address_writes_with_a_percent_sign_is_read(text: str, value: str) -> None:
    assert value not in PLAN.mask_text(text)[0]


def test_a_password_of_an_environment_in_base64_is_masked_at_every_phase() -> None:
    for phase in range(3):
        secret = base64.b64encode(b"~" * phase + b"DB_PASSWORD=tiger95100Z and more").decode()
        assert PLAN.mask_text(f"value {secret} end")[0] == "value <SECRET:base64> end"
