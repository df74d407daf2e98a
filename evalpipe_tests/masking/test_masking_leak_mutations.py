"""The leak check is red for every way in which masking can fail: one thing is broken at a time."""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl
import pytest

from evalpipe.masking import (
    Canaries,
    LeakReport,
    MaskedPart,
    canary_grid,
    canary_rows,
    check_words,
    dictionary,
    drop_canaries,
    leak_check,
    mask_copies,
    mask_files,
    mask_part,
    mask_quarantine,
    overheard,
    plan,
    plant_canaries,
)
from evalpipe.masking.decode import DecodedView
from evalpipe.masking.engine import Engine, Span, engine_for
from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe_tests.masking.support import DAY, OTHER_KEY, PLAN, frames, session

RULES = load_ruleset(default_dir()).rules
FAMILIES = sorted({(entry.entity, entry.subtype) for entry in canary_grid.entries()})
LABELS = [
    *(("sessions", name) for name in canary_rows.SESSION_LABELS if name != "tools"),
    *(("steps", name) for name in canary_rows.STEP_LABELS),
]


def _real() -> tuple[pl.DataFrame, pl.DataFrame]:
    texts = [("s1", {"text": "write to ana.b42@mail.example.org"}), ("s1", {"output": "ok"})]
    return frames([session("s1", user_id="marcia77", tenant="t", workspace="/home/marcia77/x")], texts)


def _masked(using: plan.MaskPlan = PLAN) -> tuple[Canaries, MaskedPart]:
    canaries = plant_canaries(PLAN, DAY)
    sessions, steps = _real()
    return canaries, mask_part(pl.concat([sessions, canaries.sessions]), pl.concat([steps, canaries.steps]), using)


def _check(canaries: Canaries, part: MaskedPart, *staged: Path) -> LeakReport:
    return leak_check(
        part.sessions,
        part.steps,
        canaries,
        part.redactions,
        PLAN,
        staged,
        files=mask_files(canaries.files, PLAN),
        quarantine=mask_quarantine(canaries.quarantine, PLAN),
        copies=mask_copies(canaries.copies, PLAN),
    )


def _tests(report: LeakReport) -> set[str]:
    return {finding.test.split(":")[0] for finding in report.findings if finding.is_high}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canaries without witnesses and labels, so that a part of one family is small."""
    monkeypatch.setattr(canary_grid, "witnesses", tuple)
    monkeypatch.setattr(canary_rows, "SESSION_LABELS", ())
    monkeypatch.setattr(canary_rows, "STEP_LABELS", ())


def test_nothing_broken_is_green() -> None:
    report = _check(*_masked())
    assert (report.findings, report.passed) == ((), True)
    assert report.canaries_planted == report.canaries_counted > 300


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("family", FAMILIES, ids=[":".join(family).rstrip(":") for family in FAMILIES])
def test_rules_of_one_kind_that_are_off_turn_it_red(family: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    own = tuple(entry for entry in canary_grid.entries() if (entry.entity, entry.subtype) == family)
    monkeypatch.setattr(canary_grid, "entries", lambda: own)
    engine = engine_for(default_dir(), "")
    off = {n for n, rule in enumerate(RULES) if (rule.entity, rule.subtype) == family}
    checks = [[(rule, check) for rule, check in owners if rule not in off] for owners in engine._checks]
    assert _check(*_masked()).passed
    monkeypatch.setattr(engine, "_checks", checks)
    assert "canary not counted" in _tests(_check(*_masked()))


def test_skipped_decoding_turns_it_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(raw_text: bytes) -> DecodedView | None:
        return None

    monkeypatch.setattr("evalpipe.masking.views.decoded_view", blind)
    assert {"canary", "canary not counted"} & _tests(_check(*_masked()))


def _raw_order(steps: pl.DataFrame) -> pl.DataFrame:
    """Raw steps in the order in which masking returns them."""
    key = pl.col("session_id").map_elements(lambda s: PLAN.rekey("s", s), return_dtype=pl.String)
    return steps.with_columns(order=key).sort("order", "seq").drop("order")


@pytest.mark.parametrize("column", ["text", "arguments", "output"])
def test_a_skipped_field_turns_it_red(column: str) -> None:
    canaries, part = _masked()
    original = _raw_order(pl.concat([_real()[1], canaries.steps]))
    report = _check(canaries, MaskedPart(part.sessions, part.steps.with_columns(original[column]), part.redactions))
    assert f"steps.{column}" in {finding.field for finding in report.findings if finding.is_high}
    assert "canary" in _tests(report)


@pytest.mark.parametrize(("table", "column"), LABELS)
def test_a_skipped_label_turns_it_red(table: str, column: str) -> None:
    """Its rule is not run, and its count is missing."""
    canaries, part = _masked()
    value = next(v.value for v in canaries.values if v.field == f"{table}.{column}")
    rows = {name: getattr(part, name) for name in ("sessions", "steps")}
    rows[table] = rows[table].with_columns(pl.lit(value).alias(column))
    counts = part.redactions.filter(pl.col("field") != f"{table}.{column}")
    assert _tests(_check(canaries, MaskedPart(**rows, redactions=counts))) >= {"canary", "canary not counted"}
    silent = MaskedPart(part.sessions, part.steps, counts)
    assert _tests(_check(canaries, silent)) == {"canary not counted"}


def test_a_dictionary_that_learns_nothing_turns_it_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(text: bytes, spans: list[Span], *_: object) -> list[Span]:
        return spans

    monkeypatch.setattr(dictionary, "extend", forget)
    assert _tests(_check(*_masked())) >= {"canary", "canary not counted"}


def test_tokens_of_the_spelling_instead_of_the_person_turn_it_red(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Engine._judge

    def as_written(self: Engine, view: bytes, hits: list[int]) -> tuple[list[Span], bool, bool]:
        spans, tricky, tokens = judge(self, view, hits)
        return [s._replace(canonical=view[s.start : s.end].decode()) for s in spans], tricky, tokens

    monkeypatch.setattr(Engine, "_judge", as_written)
    assert "one person has several tokens" in _tests(_check(*_masked()))


def test_tokens_that_two_tenants_share_turn_it_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_letters", lambda key, tenant, entity, value: key.letters("", entity, value))
    assert "tenants share a token" in _tests(_check(*_masked()))


def test_a_person_whose_row_is_lost_turns_it_red() -> None:
    canaries, part = _masked()
    texts = pl.when(pl.col("text").str.contains("please write to")).then(None).otherwise("text")
    assert _tests(_check(canaries, MaskedPart(part.sessions, part.steps.with_columns(text=texts), part.redactions)))


def test_tokens_of_another_key_turn_it_red() -> None:
    assert {"token is malformed", "another rule set or key"} <= _tests(_check(*_masked(plan.MaskPlan(OTHER_KEY))))


def test_a_canary_row_that_is_left_in_turns_it_red(tmp_path: Path) -> None:
    canaries, part = _masked()
    sessions, steps = drop_canaries(part.sessions, part.steps)
    for name, clean, dirty in (("sessions", sessions, part.sessions), ("steps", steps, part.steps)):
        clean.write_parquet(tmp_path / f"{name}.parquet")
        assert _check(canaries, part, tmp_path / f"{name}.parquet").passed
        dirty.write_parquet(tmp_path / f"{name}.parquet")
        assert _tests(_check(canaries, part, tmp_path / f"{name}.parquet")) == {"canary rows are left in"}


def test_a_column_or_value_outside_the_contract_turns_it_red() -> None:
    canaries, part = _masked()
    for steps, test in (
        (part.steps.with_columns(note=pl.lit("x")), "columns differ from the contract"),
        (part.steps.drop("exit_code"), "columns differ from the contract"),
        (part.steps.with_columns(error=pl.lit("whatever was said")), "value outside the contract"),
    ):
        assert _tests(_check(canaries, MaskedPart(part.sessions, steps, part.redactions))) == {test}


def test_a_logged_row_turns_it_red() -> None:
    canaries = plant_canaries(PLAN, DAY)
    row = canaries.steps.row(0, named=True)
    log = logging.getLogger("evalpipe.somewhere")
    with overheard() as heard:
        log.warning("step %s", row)
        log.warning("write to %s", "ana.b42@mail.example.com")
    log.warning("nobody listens any more")
    assert len(heard) == 2
    tests = {finding.test for finding in check_words(canaries, {"log messages": "\n".join(heard)})}
    assert tests == {"canary", "email"}
    assert check_words(canaries, {"log messages": "2 parts, 3 rows", "statistics": ""}) == []
