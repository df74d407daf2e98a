"""A text on which rules and detector disagree costs its field and not the day; a broken rule costs the day."""

from __future__ import annotations

import itertools

import polars as pl
import pytest

from evalpipe.masking import (
    Contained,
    MaskedPart,
    contain,
    judge_contained,
    leak_check,
    mask_copies,
    mask_files,
    mask_part,
    mask_quarantine,
)
from evalpipe.masking import plant_canaries as plant
from evalpipe.masking.engine import Engine
from evalpipe.masking.leak_check import malformed_tokens
from evalpipe_tests.masking.support import DAY, KEY, PLAN, frames, session

CANARIES = plant(PLAN, DAY)
DISPUTED = "export A=gh" + "p_" + "A" * 34 + "12"
FILLERS = ("dummy", "fake0", "abc123", "changeme1", "my-token-", "A", "some-token-value-")
PREFIXES = ("gh" + "p_", "glpat-", "sk-ant-", "AI" + "za", "hf_", "npm_", "AK" + "IA", "Bearer ", "MAX_TOKEN=")


def _part(*texts: str) -> MaskedPart:
    sessions, steps = frames([session("s1")], [("s1", {"text": text}) for text in texts])
    return mask_part(pl.concat([sessions, CANARIES.sessions]), pl.concat([steps, CANARIES.steps]), PLAN)


def _passed(part: MaskedPart) -> tuple[bool, Contained | None]:
    report = leak_check(
        part.sessions, part.steps, CANARIES, part.redactions, PLAN,
        files=mask_files(CANARIES.files, PLAN), quarantine=mask_quarantine(CANARIES.quarantine, PLAN),
        copies=mask_copies(CANARIES.copies, PLAN),
    )  # fmt: skip
    return report.passed, None if report.passed else contain(part, report.findings, PLAN)


def test_a_disputed_text_is_withheld_and_counted() -> None:
    part = _part(DISPUTED, "all is well")
    passed, contained = _passed(part)
    assert not passed
    assert contained is not None
    assert _passed(contained.part)[0]
    texts = set(contained.part.steps["text"])
    assert "<WITHHELD:leak>" in texts
    assert "all is well" in texts
    counted = contained.part.redactions.filter(pl.col("subtype") == "leak")
    assert counted.select("field", "entity", "n_rows").rows() == [("steps.text", "WITHHELD", 1)]
    assert contained.n_fields == 1
    assert [(one.field, one.test, one.n, one.is_high) for one in contained.findings] == [
        ("steps.text", "withheld: vendor_token", 1, False)
    ]
    assert PLAN.mask_text("<WITHHELD:leak>") == ("<WITHHELD:leak>", [])


def test_more_than_a_few_refuse_the_day() -> None:
    assert judge_contained(20, 30) == judge_contained(50, 5_000) == []
    for n_fields, n_values in ((21, 2_000), (51, 5_000)):
        assert [one.is_high for one in judge_contained(n_fields, n_values)] == [True]


def test_a_rule_that_is_off_refuses_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Engine._judge

    def blind(self: Engine, view: bytes, hits: list[int]) -> object:
        spans, *rest = judge(self, view, hits)
        return [s for s in spans if self.describe(s.rule)[0] != "EMAIL_ADDRESS"], *rest

    monkeypatch.setattr(Engine, "_judge", blind)
    assert _passed(_part("write to ann.b42@mail.example.com")) == (False, None)


def test_placeholders_and_forged_tokens_never_refuse_a_day() -> None:
    texts = [
        f"{prefix}{(filler * 40)[: n - 2]}12"
        for prefix, filler, n in itertools.product(PREFIXES, FILLERS, (16, 36, 64))
    ]
    texts += [
        f"see <{kind}:{body}>"
        for kind in ("USERNAME", "PERSON", "US_SSN")
        for body in ("abcd:hello", "536-22-8726", "abcd:" + "q" * 20)
    ]
    for some in (texts[at : at + 16] for at in range(0, len(texts), 16)):
        passed, contained = _passed(_part(*some))
        assert passed or (contained is not None and _passed(contained.part)[0]), some


@pytest.mark.parametrize("body", ["hello", "a" * 19, "z" * 20])
def test_a_malformed_pseudonym_is_text(body: str) -> None:
    masked = PLAN.mask_text(f"see <USERNAME:{KEY.epoch}:{body}> and <PERSON:abcd:{body}>")[0]
    assert malformed_tokens(masked, KEY.epoch) == (2, 0)
    assert PLAN.mask_text(masked) == (masked, [])
