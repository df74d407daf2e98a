"""Canaries: every entity every day, the whole grid in turn, a place in every column."""

from __future__ import annotations

from datetime import timedelta

import pytest

from evalpipe.contracts.model import Kind
from evalpipe.contracts.tables import raw
from evalpipe.masking import canary_rows, plant_canaries, texts
from evalpipe.masking.canary_grid import ENCODINGS, PERIOD_DAYS, cells, entries, hide, in_base64, turn
from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe.masking.templates import expand
from evalpipe_tests.masking.support import DAY, PLAN

#: What is masked under the name of another kind, or by a rule that needs a token of another key.
_WITHOUT = {
    ("SECRET", kind)
    for kind in (
        "aws-secret-access-key", "azure-sas", "azure-storage-key", "dropbox", "heroku", "okta", "teamcity",
        "wecom-webhook",
    )
}  # fmt: skip


def test_every_kind_that_a_rule_finds_has_a_canary() -> None:
    found = {(rule.entity, rule.subtype) for rule in load_ruleset(default_dir()).rules}
    assert found - {(entry.entity, entry.subtype) for entry in entries()} == _WITHOUT


def test_every_day_has_every_entity_in_every_place_and_encoding() -> None:
    for offset in range(7):
        values = plant_canaries(PLAN, DAY + timedelta(days=offset)).values
        planted = {(v.entity, v.subtype) for v in values}
        assert {(e.entity, e.subtype) for e in entries()} <= planted
        assert {v.encoding for v in values} >= set(ENCODINGS) - {"base64"}
        assert {v.field for v in values} >= {f"steps.{column}" for column in canary_rows.COLUMN.values()}


def test_the_whole_grid_has_its_turn_within_the_period() -> None:
    days = [DAY + timedelta(days=n) for n in range(PERIOD_DAYS)]
    for number, entry in enumerate(entries()):
        assert {cell for day in days for cell in turn(number, entry, day)} == set(cells(entry))


def test_every_cell_of_the_grid_is_masked_under_its_name() -> None:
    """The whole grid at once, which a slice sees over eight weeks."""
    wrong, n = [], 0
    for number, entry in enumerate(entries()):
        for at, cell in enumerate(cells(entry)):
            value = expand(entry.value, f"grid {number} {at}".encode()).text
            carrier, want = cell.carrier.replace("<~>", ""), (entry.entity, entry.subtype)
            if cell.encoding == "base64":
                text, want = in_base64(carrier.replace("{}", value), at % 3), ("SECRET", "base64")
            else:
                text = carrier.replace("{}", hide(value, cell.encoding, entry.hidden))
            content = str(next(iter(canary_rows.content(cell.place, text).values())))
            masked, hits = PLAN.mask_text(content)
            n += 1
            if want not in {(hit.entity, hit.subtype) for hit in hits} or (len(value) > 8 and value in masked):
                wrong.append((entry.id, cell))
    assert n > 10_000
    assert wrong == []


def test_every_label_column_of_the_contracts_carries_a_canary() -> None:
    policies = load_ruleset(default_dir()).fields
    for table, labels in ((raw.SESSIONS, canary_rows.SESSION_LABELS), (raw.STEPS, canary_rows.STEP_LABELS)):
        masked = {
            column.name
            for column in table
            if column.kind in (Kind.STR, Kind.STR_LIST) and policies[table.name].get(column.name, "mask") == "mask"
        }
        assert set(labels) == masked - set(canary_rows.COLUMN.values())


@pytest.mark.parametrize(
    ("encoding", "hidden", "written"),
    [
        ("plain", "", "a@1"),
        ("json", "", "a\\u00401"),
        ("json_all", "", "\\u0061\\u0040\\u0031"),
        ("hex", "", "a\\x401"),
        ("percent", "@", "a%401"),
        ("entity", "", "a&#64;1"),
        ("entity_hex", "1", "a@&#x31;"),
        ("zerowidth", "", "a@\u200b1"),
        ("softhyphen", "", "a@\u00ad1"),
        ("fullwidth", "", "a@１"),
        ("fullwidth_all", "", "ａ＠１"),
        ("upper", "", "A@1"),
        ("compact", "", "a@1"),
    ],
)
def test_what_an_encoding_writes(encoding: str, hidden: str, written: str) -> None:
    assert hide("a@1", encoding, hidden) == written


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="rot13"):
        hide("a@1", "rot13", "")


def test_no_value_spells_a_filler() -> None:
    """A drawn token with xxxx inside would be kept as a filler, and its day refused."""
    for offset in range(30):
        for value in plant_canaries(PLAN, DAY + timedelta(days=offset)).values:
            assert "xxx" not in value.value.lower()


@pytest.mark.parametrize("first", ["40bdbc4e", "2e6f0c81", "2eabcdef"])
@pytest.mark.parametrize("dash", ["\\u002d", "&#x2d;", "-\u00ad"])
def test_a_key_that_begins_like_a_quoted_sign_is_hidden_behind_another_escape(first: str, dash: str) -> None:
    said = f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={first}{dash}b844-030c-f8e9-df3ce47276dd"
    assert texts.mask(PLAN, said).text.endswith("send?key=<SECRET:signature>")


def test_an_address_in_quoted_printable_is_hidden() -> None:
    for said in ("To: lena.hofmann=40gmail.com now", "To: lena.hofmann=40gmail=2Ecom now"):
        assert "hofmann" not in texts.mask(PLAN, said).text
