"""A changed rule set reaches days whose raw text is gone: their masked text is scanned again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.console import doctor
from evalpipe.masking import plan as plan_module
from evalpipe.masking.rules import default_dir
from evalpipe.masking.tombstones import Subject
from evalpipe.settings import load
from evalpipe.steps import rescan
from evalpipe.steps import versions as versions_module
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.erase_scope import scope_of
from evalpipe.steps.land import land
from evalpipe.store.manifest import Manifest
from evalpipe_tests.steps.world import AS_OF, DAY, make, rows, session, write

RULE = """
[[rule]]
id = "test.badge"
entity = "BADGE"
since = "9.9.9"
confidence = "high"
action = "pseudonymise"
anchors = ["QZBADGE-"]
at = "start"
value = "QZBADGE-[0-9]{6}"
validator = "none"
pos = ["wears [[QZBADGE-123456]]"]
neg = ["QZBADGE-12"]
"""


@pytest.fixture(autouse=True)
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rule set of the test's own, so that it can be changed."""
    folder = tmp_path / "rules-1"
    shutil.copytree(default_dir(), folder)
    monkeypatch.setattr(versions_module, "ruleset_folder", lambda criteria: folder)
    return folder


def _with_new_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rules-2"
    shutil.copytree(default_dir(), folder)
    (folder / "badges.toml").write_text(RULE, "utf-8")
    monkeypatch.setattr(versions_module, "ruleset_folder", lambda criteria: folder)


@contextmanager
def _opened(home: Path, consent: Path | None = None) -> Iterator[Context]:
    settings = load(folder=home.parent, environ={}, home=home, workers=1)
    if consent:
        settings = replace(settings, consent=str(consent))
    with open_context(settings, as_of=AS_OF, environ={}) as context:
        yield context


def _log(tmp_path: Path) -> Path:
    records = session("a", user_id="ana.b42@mail.example.org")
    told = "No, that is wrong: QZBADGE-123456 and ana.b42@mail.example.org, see QZBADGE-654321."
    other = session("b", user_id="bo@mail.example.org")
    return write(tmp_path / "a.jsonl", *records, {**records[1], "step_id": "x", "text": told}, *other)


def _purge(context: Context) -> None:
    """Raw text expires: what landed, and the raw slice."""
    shutil.rmtree(context.settings.landing / f"day={DAY}")
    made = context.lookup("raw", DAY)
    assert made is not None
    for path in context.lake.paths_of(made):
        path.unlink()


def _masked(context: Context) -> Manifest:
    made = context.lookup("masked", DAY)
    assert made is not None
    return made


def _texts(context: Context) -> str:
    return "\n".join(rows(context, "masked.steps")["text"].drop_nulls())


def _first_night(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    with _opened(home) as context:
        land(context, [_log(tmp_path)])
        assert [done.red for done in make(context).values() if done.red] == []
        assert "QZBADGE-123456" in _texts(context)
        _purge(context)
    return home


def test_a_day_without_raw_text_is_scanned_again_and_only_gains_masking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _first_night(tmp_path)
    with _opened(home) as context:
        before, was, counts = _texts(context), _masked(context), rows(context, "masked.redactions")
        people = rows(context, "masked.sessions")
    _with_new_rule(tmp_path, monkeypatch)
    with _opened(home) as context:
        assert context.plan().stale[DAY] == ("masked", "logic or criteria changed")
        done = make(context)
        assert [step.red or step.held for step in done.values() if step.red or step.held] == []
        made, after = _masked(context), _texts(context)
        assert "QZBADGE" not in after
        kept = [token for token in before.split() if token.startswith("<EMAIL")]
        assert kept
        assert all(token in after for token in kept), "nothing is masked twice"
        assert rows(context, "masked.sessions").equals(people)
        assert made.code_version == context.versions.code["masked"] != was.code_version
        assert made.stats["ruleset"] == context.mask_plan.ruleset_digest() != was.stats["ruleset"]
        found = rows(context, "masked.rescans").filter(pl.col("entity") == "BADGE")
        assert found.select("scan", "n_hits_before", "n_hits_after").row(0) == (1, 0, 2)
        same = rows(context, "masked.rescans").filter(pl.col("entity") == "EMAIL_ADDRESS")
        assert same["n_hits_before"].to_list() == same["n_hits_after"].to_list() != []
        audit = rows(context, "masked.redactions")
        assert audit.filter(pl.col("ruleset") == was.stats["ruleset"]).equals(counts)
        assert context.plan().days == []
        assert make(context)["masked"].fresh[DAY] == made, "once is enough"
        assert doctor.rule_sets(context) == {made.stats["ruleset"]: 1, "scanned again without raw text": 1}


def test_a_day_with_raw_text_is_masked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    with _opened(home) as context:
        land(context, [_log(tmp_path)])
        make(context)
    _with_new_rule(tmp_path, monkeypatch)
    with _opened(home) as context:
        assert [done.red for done in make(context).values() if done.red] == []
        assert "QZBADGE" not in _texts(context)
        assert rescan.RESCANNED not in _masked(context).stats
        assert rows(context, "masked.rescans").is_empty()
        assert rows(context, "masked.redactions")["ruleset"].unique().to_list() == [_masked(context).stats["ruleset"]]


def test_what_a_rule_does_to_signals_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _first_night(tmp_path)
    _with_new_rule(tmp_path, monkeypatch)
    folder = tmp_path / "rules-2"
    wrong = RULE.replace("test.badge", "test.wrong").replace("QZBADGE-[0-9]{6}", "No, that is wrong: ")
    (folder / "wrong.toml").write_text(wrong.replace("QZBADGE-", "No, that").replace("BADGE", "WORDS"), "utf-8")
    with _opened(home) as context:
        assert [done.red for done in make(context).values() if done.red] == []
        made = context.lookup("signals", DAY)
        assert made is not None
        moved = made.stats["moved_by_masking"]
        assert moved
        assert all(was > now for was, now in moved.values())
        assert set(doctor.moved_by_masking(context)) == set(moved)


def test_consent_that_is_withdrawn_later_empties_a_day_that_was_scanned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, ledger = _first_night(tmp_path), tmp_path / "consent.csv"
    _with_new_rule(tmp_path, monkeypatch)
    ledger.write_text("user_id,status\nana.b42@mail.example.org,withdrawn\n", "utf-8")
    with _opened(home, ledger) as context:
        make(context)
        told = dict(rows(context, "masked.sessions").select("user_id", "consent").iter_rows())
        assert sorted(told.values(), key=str) == [None, "withdrawn"]
        assert "that is wrong" not in _texts(context)
        assert context.plan().days == []


def test_a_dry_run_tells_the_counts_and_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALPIPE_KEY", raising=False)
    home = _first_night(tmp_path)
    _with_new_rule(tmp_path, monkeypatch)
    with _opened(home) as context:
        was = _masked(context)
    out = CliRunner().invoke(app, ["backfill", f"{DAY}..{DAY}", "--home", str(home), "--dry-run", "--json"])
    assert out.exit_code == 0, out.output
    told = json.loads(out.stdout)
    assert [day["how"] for day in told["days"]] == ["masked text is scanned again: raw text is gone"]
    assert told["masking"] == [
        {"day": str(DAY), "field": "steps.text", "entity": "BADGE", "n_hits_before": 0, "n_hits_after": 2}
    ]
    with _opened(home) as context:
        assert _masked(context) == was


def test_a_withdrawal_that_a_log_tells_empties_a_day_that_is_scanned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _first_night(tmp_path)
    with _opened(home) as context:
        word = session("a", DAY + timedelta(days=7), consent="withdrawn", user_id="ana.b42@mail.example.org")[:1]
        land(context, [write(tmp_path / "word.jsonl", *word)])
    _with_new_rule(tmp_path, monkeypatch)
    with _opened(home) as context:
        assert context.consent.is_empty()
        done = make(context, "masked", days=[DAY])
        assert DAY in done["masked"].made
        assert rescan.RESCANNED in _masked(context).stats
        told = sorted(rows(context, "masked.sessions")["consent"].to_list(), key=str)
        assert told == [None, "withdrawn"]
        assert "that is wrong" not in _texts(context)


SPELLED = "Ana.B42@Mail.example.org"


def _spelled(folder: Path, name: str, day: date) -> Path:
    return write(folder / f"{name}.jsonl", *session(name, day, user_id=SPELLED))


def _old_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the time when every spelling had a token of its own, one day of it without raw text."""
    home = tmp_path / "home"
    with monkeypatch.context() as then, _opened(home) as context:
        then.setattr(plan_module, "canonical", lambda user_id: user_id)
        land(context, [_spelled(tmp_path, "a", DAY)])
        assert make(context)["masked"].red == {}
        _purge(context)
        assert rows(context, "masked.sessions")["user_id"].to_list() == context.mask_plan.users(SPELLED)
    return home


def test_any_spelling_finds_a_person_whose_raw_text_is_gone(tmp_path: Path) -> None:
    with _opened(tmp_path / "home") as context:
        land(context, [_spelled(tmp_path, "a", DAY)])
        make(context)
        _purge(context)
        for made in context.lake.manifests("raw"):
            context.lake.manifest_path(made.key).unlink()
        assert len(scope_of(context, Subject(SPELLED.lower())).sessions) == 1
        assert len(scope_of(context, Subject("ana.b42@mail.example.com")).sessions) == 0


def test_an_older_slice_joins_a_person_who_is_there_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _old_home(tmp_path, monkeypatch)
    with _opened(home) as context:
        land(context, [_spelled(tmp_path, "b", DAY + timedelta(days=1))])
    _with_new_rule(tmp_path, monkeypatch)
    with _opened(home) as context:
        assert [done.red for done in make(context).values() if done.red] == []
        assert rescan.RESCANNED in _masked(context).stats
        people = rows(context, "masked.sessions")["user_id"]
        assert people.to_list() == [context.mask_plan.rekey("u", SPELLED)] * 2


def test_an_older_slice_is_found_by_the_spelling_of_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _opened(_old_home(tmp_path, monkeypatch)) as context:
        for made in context.lake.manifests("raw"):
            context.lake.manifest_path(made.key).unlink()
        assert len(scope_of(context, Subject(SPELLED)).sessions) == 1
