"""Consent by day: which days a row of the ledger remakes, and that no refusal keeps withdrawn text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe import masking
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps import slices
from evalpipe.steps.context import Context
from evalpipe.steps.land import land
from evalpipe.steps.slices import StepResult
from evalpipe.steps.withdrawal import withdrawn_later
from evalpipe.store.manifest import STEP_TABLES, StagedPart
from evalpipe_tests.steps.remains import places_of
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

NEXT = date(2026, 1, 12)
PRAISE = {"type": "step", "step_id": "9", "kind": "user", "text": "perfect, that works now, thanks a lot"}


def consent(folder: Path, text: str) -> None:
    (folder / "consent.csv").write_text(text)
    (folder / "evalpipe.toml").write_text('consent = "consent.csv"\n')


def two_days(folder: Path) -> None:
    with opened(folder / "home") as context:
        for name, user, day in (("a", "ann", DAY), ("b", "bob", DAY), ("c", "bob", NEXT)):
            log = [*session(name, day, user_id=user), PRAISE | {"session_id": name, "at": f"{day}T10:00:05Z"}]
            land(context, [write(folder / f"{name}.jsonl", *log)])
        make(context)


def made_days(done: dict[str, StepResult], step: str) -> list[date]:
    return sorted(done[step].made)


def texts(context: Context, user: str, tenant: str = "") -> set[str | None]:
    """Texts of a user's steps in the masked slices."""
    token = context.mask_plan.rekey("u", user, tenant)
    mine = rows(context, "masked.sessions").filter(pl.col("user_id") == token)["session_id"]
    steps = rows(context, "masked.steps").filter(pl.col("session_id").is_in(mine.implode()))
    assert steps.height
    return set(steps["text"])


def test_a_row_remakes_the_days_of_whom_it_names_and_no_other(tmp_path: Path) -> None:
    two_days(tmp_path)
    consent(tmp_path, "user_id,source,status\nann,,withdrawn\nzoe,,withdrawn\n,codex,withdrawn\n")
    with opened(tmp_path / "home") as context:
        assert context.plan().stale[DAY] == ("masked", "input changed")
        assert NEXT not in context.plan().stale
        done = make(context)
        assert (made_days(done, "raw"), made_days(done, "masked")) == ([], [DAY])
        assert texts(context, "ann") == {None}
        assert None not in texts(context, "bob")
    consent(tmp_path, "user_id,status\nann,withdrawn\nbob,granted\n")
    with opened(tmp_path / "home") as context:
        assert sorted(context.plan().stale) == [DAY, NEXT]
        make(context)
    consent(tmp_path, "user_id,status\nbob,granted\nann,withdrawn\nann,withdrawn\neve,granted\n")
    with opened(tmp_path / "home") as context:
        assert not context.plan().stale, "order, repeats and strangers change nothing"


def test_a_plan_reads_the_people_of_a_day_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_days(tmp_path)
    consent(tmp_path, "user_id,status\nann,withdrawn\n")
    asked: list[int] = []
    real = masking.concerning
    monkeypatch.setattr(masking, "concerning", lambda *args: asked.append(1) or real(*args))
    with opened(tmp_path / "home") as context:
        context.plan()
        context.plan()
        make(context)
    assert len(asked) == 3, "two days, and one of them again because its raw text went"


@pytest.mark.parametrize("step", ["raw", "masked", "signals"])
def test_a_withdrawal_takes_effect_on_a_day_that_a_check_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    two_days(tmp_path)
    real = slices.judged

    def refusing(place: str, staged: Sequence[StagedPart]) -> list[dict[str, Any]]:
        if str(DAY) in place and {item.part.table for item in staged} & set(STEP_TABLES[step]):
            raise EvalpipeError("PROFILE_OUT_OF_BOUNDS", "refused by the test")
        return real(place, staged)

    with opened(tmp_path / "home") as context:
        assert rows(context, "signals.semantic").height
        kept = context.lookup("raw", DAY)
        land(context, [write(tmp_path / "more.jsonl", *session("d", DAY, user_id="dan"))])
    consent(tmp_path, "user_id,status\nann,withdrawn\n")
    monkeypatch.setattr(slices, "judged", refusing)
    with opened(tmp_path / "home") as context:
        assert DAY in context.plan().stale
        done = make(context)
        assert list(done[step].red) == [DAY]
        assert texts(context, "ann") == {None}
        assert None not in texts(context, "bob")
        ann = context.mask_plan.rekey("u", "ann")
        head = rows(context, "masked.sessions")
        gone = head.filter(pl.col("user_id") == ann)
        assert gone["consent"].to_list() == ["withdrawn"]
        for table in ("signals.hard", "signals.semantic", "signals.candidates"):
            assert not rows(context, table)["session_id"].is_in(gone["session_id"].implode()).any(), table
        now = context.lookup("raw", DAY)
        assert now is not None
        assert kept is not None
        assert (now.inputs == kept.inputs) is (step == "raw"), "what is refused is not committed"
        outcomes = context.lookup("outcomes", DAY)
        assert outcomes is not None
        found = context.lake.read("signals.session_outcomes", [outcomes])
        assert not found["session_id"].is_in(gone["session_id"].implode()).any()
        assert not context.plan().stale, "a refused day waits again once nothing is left to take away"
    monkeypatch.undo()
    with opened(tmp_path / "home") as context:
        make(context)
        assert texts(context, "ann") == {None}
        assert rows(context, "masked.sessions").height == 4


def test_a_row_without_a_tenant_holds_in_every_tenant_of_a_refused_day(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        for name, tenant in (("a", "t-1"), ("b", "t-2")):
            land(context, [write(tmp_path / f"{name}.jsonl", *session(name, user_id="ann", tenant=tenant))])
        make(context)
    for row, n in ((",ann,,withdrawn", 2), ("t-1,ann,,withdrawn", 1), ("t-2,,evalpipe_jsonl,withdrawn", 1),
                   (",,evalpipe_jsonl,withdrawn", 2), (",ann,,granted", 0), ("t-3,ann,,withdrawn", 0)):  # fmt: skip
        consent(tmp_path, f"tenant,user_id,source,status\n{row}\n")
        with opened(tmp_path / "home") as context:
            assert withdrawn_later(context, DAY).len() == n, row


def test_raw_text_goes_at_once_and_does_not_come_with_later_logs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    hers = {**PRAISE, "text": "the quokkaberry works, thanks"}
    with opened(home) as context:
        for name, user, more in (("a", "ann", hers), ("b", "bob", PRAISE)):
            log = [*session(name, DAY, user_id=user), more | {"session_id": name, "at": f"{DAY}T10:00:05Z"}]
            land(context, [write(tmp_path / f"{name}.jsonl", *log)])
        make(context)
        n_steps = rows(context, "raw.steps").height
    found = places_of(home, ["quokkaberry"])["quokkaberry"]
    assert {place.split("/")[2] for place in found if place.startswith("lake/raw/")} == {"_landing", "steps"}
    consent(tmp_path, "user_id,status\nann,withdrawn\n")
    with opened(home) as context:
        log = [*session("c", DAY, user_id="ann"), hers | {"session_id": "c", "at": f"{DAY}T10:00:05Z"}]
        land(context, [write(tmp_path / "c.jsonl", *log)])
        make(context)
        assert not context.plan().stale
        steps = rows(context, "raw.steps")
        assert steps.height == n_steps + 3, "rows stay, as on every withdrawal"
        bobs = steps.filter(pl.col("session_id") == "evalpipe_jsonl:b")
        assert bobs["text"].null_count() == 0
    left = places_of(home, ["quokkaberry"]).get("quokkaberry", [])
    assert not [place for place in left if place.startswith("lake/raw/")], left


def test_a_log_that_says_withdrawn_itself_lands_without_text(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *session("a", DAY, consent="withdrawn"), *session("b", DAY))])
        make(context)
        steps = rows(context, "raw.steps")
        assert set(steps.filter(pl.col("session_id") == "evalpipe_jsonl:a")["text"]) == {None}
        assert None not in set(steps.filter(pl.col("session_id") == "evalpipe_jsonl:b")["text"])


UUID = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35"


def _header(session_id: str, day: date = DAY) -> dict[str, Any]:
    return session(session_id, day, consent="withdrawn")[0]


def _claude(session_id: str) -> list[dict[str, Any]]:
    """A session as Claude Code logs it."""
    base = {"sessionId": session_id, "version": "2.0.1", "cwd": "/srv/app", "isSidechain": False, "parentUuid": None}
    said = {"role": "user", "content": "Please fix the quokkaberry"}
    answer = {"role": "assistant", "id": "msg_1", "model": "m-1", "content": [{"type": "text", "text": "Done."}]}
    return [
        base | {"type": "user", "uuid": "u1", "timestamp": f"{DAY}T10:00:00Z", "message": said},
        base | {"type": "assistant", "uuid": "u2", "timestamp": f"{DAY}T10:00:05Z", "message": answer},
    ]


@pytest.mark.parametrize("is_apart", [True, False])
@pytest.mark.parametrize("kind", ["later header", "other source", "other source, later"])
def test_a_withdrawal_in_a_copy_that_does_not_count_withdraws_the_session(
    tmp_path: Path, kind: str, *, is_apart: bool
) -> None:
    log = write(tmp_path / "a.jsonl", *(session(UUID) if kind == "later header" else _claude(UUID)))
    word = write(tmp_path / "b.jsonl", _header(UUID, DAY if kind == "other source" else NEXT))
    with opened(tmp_path / "home") as context:
        for files in [[log], [word]] if is_apart else [[log, word]]:
            land(context, files)
            make(context)
        assert not context.plan().stale
        counted = rows(context, "raw.sessions").filter(pl.col("n_turns") > 0)
        assert counted["consent"].to_list() == ["withdrawn"]
        for layer in ("raw", "masked"):
            steps = rows(context, f"{layer}.steps")
            assert steps.height == 2
            assert set(steps["text"]) == {None}, layer
        outcomes = context.lookup("outcomes", DAY)
        assert outcomes is not None
        assert context.lake.read("signals.session_outcomes", [outcomes]).is_empty()
    left = places_of(tmp_path / "home", ["quokkaberry", "Please fix"])
    assert not [place for found in left.values() for place in found if place.startswith("lake/raw/")], left
