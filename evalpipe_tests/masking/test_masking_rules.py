"""The rule set as data: form, examples, digest."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import raw
from evalpipe.masking import ruleset_digest
from evalpipe.masking.engine import Engine, Span, engine_for
from evalpipe.masking.rules import Rule, default_dir, fixed_width, lint, literal_prefix, load_ruleset
from evalpipe.masking.templates import expand, luhn_digit

RULESET = load_ruleset(default_dir())
EPOCH = "abcd"
POLICIES = ("keep", "mask", "drop")


def _example(rule: Rule, kind: str, index: int) -> tuple[bytes, list[tuple[int, int]]]:
    example = expand(getattr(rule, kind)[index], f"{rule.id}{index}".encode())
    cut = [(len(example.text[:a].encode()), len(example.text[:b].encode())) for a, b in example.spans]
    return example.text.encode(), cut


def _found(engine: Engine, raw_text: bytes) -> list[Span]:
    spans = engine.find(raw_text, EPOCH)
    assert spans is not None
    return spans


@pytest.mark.parametrize("kind", ["hyperscan", "fallback"])
@pytest.mark.parametrize("rule", RULESET.rules, ids=lambda r: r.id)
def test_examples_are_masked_and_counterexamples_are_not(rule: Rule, kind: str) -> None:
    engine = engine_for(default_dir(), kind)
    for index in range(len(rule.pos)):
        text, want = _example(rule, "pos", index)
        assert want, f"{rule.id}: example {index} marks nothing"
        got = [(s.start, s.end) for s in _found(engine, text) if engine.describe(s.rule)[0] == rule.entity]
        assert set(want) <= set(got), f"{rule.id}: example {index}"
    for index in range(len(rule.neg)):
        text, _ = _example(rule, "neg", index)
        assert rule.id not in [engine.describe(s.rule)[2] for s in _found(engine, text)], f"{rule.id}: neg {index}"


def test_shipped_rules_keep_the_rules_of_form() -> None:
    assert lint(RULESET) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"anchors": ("ab[0-9]",)}, "begins with no literal"),
        ({"anchors": ()}, "has no anchor"),
        ({"value": r"(?<=a)b{1,2}"}, "leaves the common subset"),
        ({"value": r"\w{1,4}"}, "leaves the common subset"),
        ({"value": "a+"}, "unbounded repeat"),
        ({"value": "[ä]{1,2}"}, "outside ASCII"),
        ({"value": ""}, "has no value expression"),
        ({"anchors": ("abc[0-9]{1,3}",), "at": "start"}, "no fixed width"),
        ({"pos": ()}, "needs positive and negative examples"),
    ],
)
def test_lint_names_what_is_wrong(change: dict[str, object], complaint: str) -> None:
    rule = next(r for r in RULESET.rules if r.id == "github.token")
    broken = replace(RULESET, rules=(replace(rule, **change),))  # type: ignore[arg-type]
    assert any(complaint in line for line in lint(broken))


def _copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(default_dir(), tmp_path / "mine"))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('id = "github.fine_grained"', 'id = "github.token"', "two rules are called"),
        ('id = "gitlab.token"', 'id = "gitlab.token"\ncolour = 1', "unknown key colour"),
        ('at = "start"', 'at = "somewhere"', "at is none of"),
        ("[defaults]", "[defaults", "not valid TOML"),
    ],
)
def test_a_broken_rule_file_is_named_with_its_rule(tmp_path: Path, old: str, new: str, what: str) -> None:
    path = _copy(tmp_path) / "vendor_keys.toml"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(EvalpipeError, match=what) as caught:
        load_ruleset(path.parent)
    assert caught.value.code == "CRITERIA_INVALID"
    assert "vendor_keys" in caught.value.where or what == "two rules are called"


def test_an_unknown_validator_is_an_error_of_the_rule_set(tmp_path: Path) -> None:
    path = _copy(tmp_path) / "vendor_keys.toml"
    path.write_text(path.read_text("utf-8").replace('validator = "token"', 'validator = "nobody"', 1), "utf-8")
    with pytest.raises(EvalpipeError, match="no validator is called nobody"):
        Engine(load_ruleset(path.parent), "fallback")


def test_a_folder_without_rules_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError) as caught:
        load_ruleset(tmp_path)
    assert caught.value.code == "CRITERIA_NOT_FOUND"


def test_the_digest_changes_with_any_word(tmp_path: Path) -> None:
    folder = _copy(tmp_path)
    assert ruleset_digest(folder) == ruleset_digest()
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    words = other / "words.toml"
    words.write_text(words.read_text("utf-8").replace('"root", ', "", 1), "utf-8")
    assert ruleset_digest(other) != ruleset_digest()


def test_every_column_of_layer_1_has_a_policy() -> None:
    for table in raw.TABLES:
        policy = RULESET.fields[table.name]
        assert set(policy) == set(table.names), table.name
        assert all(p in POLICIES or p.startswith("rekey:") for p in policy.values())


def test_anchor_geometry() -> None:
    assert literal_prefix(r"hooks\.slack") == b"hooks.slack"
    assert literal_prefix("密码[0-9]") == "密码".encode()
    assert literal_prefix("[ab]c") == b""
    assert fixed_width("ghp_[A-Za-z0-9]{10}") == 14
    assert fixed_width("密码") == 6
    assert fixed_width("ab{1,2}") == 0


def test_templates_are_deterministic_and_marked() -> None:
    one, two = expand("x [[gh<~>p_{A36}]] y", b"seed"), expand("x [[gh<~>p_{A36}]] y", b"seed")
    assert one == two
    assert expand("{A36}", b"other").text != expand("{A36}", b"seed").text
    ((start, end),) = one.spans
    assert one.text[start:end].startswith("ghp_")
    assert end - start == 40
    assert luhn_digit("7992739871") == "3"
    with pytest.raises(ValueError, match="unknown slot"):
        expand("{nothing}", b"x")
