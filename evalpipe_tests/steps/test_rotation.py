"""A rotation of the key moves the whole home, loses nothing, and can be killed anywhere."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import MaskingKey, MaskPlan, rekeying
from evalpipe.settings import Settings, load
from evalpipe.steps import epochs, rotation
from evalpipe.steps.analysis import make_analysis, open_window
from evalpipe.steps.context import open_context
from evalpipe.steps.land import land
from evalpipe.steps.publish import publish
from evalpipe.store.lake import Lake
from evalpipe.store.manifest import STEP_TABLES, Manifest
from evalpipe_tests.steps.world import AS_OF, DAY, make, session, write

DAYS = [DAY, DAY + timedelta(days=1)]
SCORED = DAYS[-1] + timedelta(days=5)
FIRST, SECOND, THIRD = "5e" * 32, "6f" * 32, "7a" * 32


def _logs(folder: Path) -> Path:
    rows = []
    for i in range(24):
        mine = session(f"s{i}", DAYS[i % 2], turns=2, model=f"m-{i % 3 // 2}", user_id=f"u{i % 7}@mail.example.org")
        told = f"No, that is wrong. Write to u{i % 7}@mail.example.org or call +44 20 7946 {i:04d}."
        step = {"type": "step", "session_id": f"s{i}", "step_id": "tool", "kind": "tool", "name": "Bash",
                "arguments": {"command": f"git log --author=u{i % 7}@mail.example.org"}, "output": "error: none",
                "exit_code": 1, "at": f"{DAYS[i % 2]}T10:00:00Z"}  # fmt: skip
        rows += [*mine[:1], step, *mine[1:]]
        rows.append({**mine[1], "step_id": "last", "text": told})
    return write(folder / "a.jsonl", *rows)


def _settings(home: Path) -> Settings:
    return load(folder=home.parent, environ={}, home=home, workers=1)


def _made(home: Path, log: Path, environ: dict[str, str]) -> Settings:
    settings = _settings(home)
    with open_context(settings, as_of=AS_OF, environ=environ) as context:
        land(context, [log])
        assert not any(done.red for done in make(context).values())
        assert make_analysis(context, [SCORED], "all").made
        publish(context)
    return settings


def _manifests(settings: Settings) -> dict[str, Manifest]:
    lake = Lake(settings.lake)
    return {str(m.key): m for step in STEP_TABLES if step != "raw" for m in lake.manifests(step)}


def _rows(settings: Settings, table: str) -> pl.DataFrame:
    step = next(name for name, tables in STEP_TABLES.items() if table in tables)
    lake = Lake(settings.lake)
    return lake.read(table, lake.manifests(step))


def _bytes(settings: Settings) -> bytes:
    """All that the home holds outside of raw text and keys, Parquet decoded."""
    out = []
    for path in sorted(settings.home.rglob("*")):
        if not path.is_file() or settings.lake / "raw" in path.parents or "masking.key" in path.name:
            continue
        out.append(str(path).encode())
        out.append(repr(pl.read_parquet(path).to_dicts()).encode() if path.suffix == ".parquet" else path.read_bytes())
    return b"\n".join(out)


def _tokens(settings: Settings) -> set[str]:
    sessions, steps = _rows(settings, "masked.sessions"), _rows(settings, "masked.steps")
    ids = {*sessions["session_id"], *sessions["user_id"].drop_nulls(), *steps["step_id"]}
    texts = steps.select(pl.col("text", "arguments").str.extract_all("<[A-Z_]+:[a-p]{4}:[a-p]{20}>"))
    found = {token for name in texts.columns for token in texts[name].explode().drop_nulls()}
    signals = {*_rows(settings, "signals.hard")["signal_id"], *_rows(settings, "signals.tasks")["task_id"]}
    assert ids
    assert found
    assert signals
    return ids | found | signals


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return _logs(tmp_path)


def test_a_rotated_home_has_the_same_results_and_no_byte_of_an_old_token(tmp_path: Path, log: Path) -> None:
    settings = _made(tmp_path / "home", log, {})
    old, was = _tokens(settings), _manifests(settings)
    numbers, people = _rows(settings, "analysis.net_improvement"), _rows(settings, "signals.session_outcomes")
    # Raw text expires first, and a rotation does not need it.
    shutil.rmtree(settings.landing)

    done = rotation.rotate(settings, {})

    assert done.slices == len(was)
    assert (done.left, done.resumed) == (0, False)
    held = _bytes(settings)
    assert not [token for token in old if token.encode() in held]
    # Four letters alone stand in some token by chance: an epoch is a value, or the first part of a token.
    told = settings.warehouse.read_bytes() + "".join(m.to_json() for m in _manifests(settings).values()).encode()
    forms = ('"{}"', "{}:", "\x04\0\0\0{}")
    assert not [form for form in forms if form.format(done.old_epoch).encode() in told]
    assert [form for form in forms if form.format(done.new_epoch).encode() in told]
    assert _rows(settings, "analysis.net_improvement").equals(numbers)
    after = _rows(settings, "signals.session_outcomes")
    assert after["user_id"].n_unique() == people["user_id"].n_unique() == 7
    others = [name for name in people.columns if name not in ("session_id", "user_id")]
    assert after.select(others).sort(others).equals(people.select(others).sort(others))
    with open_context(settings, as_of=AS_OF, environ={}) as context:
        window = open_window(context, SCORED, "all")
        assert window is not None
        assert make_analysis(context, [SCORED], "all").fresh, "receipts moved along: nothing is stale"
        again = context.lake.read("signals.session_outcomes", window.manifests)
        assert again.height == people.height
    assert not epochs.journal_file(settings).exists()
    assert not epochs.next_key_file(settings).exists()


def test_a_rotated_slice_is_what_new_logs_give_under_the_new_key(tmp_path: Path, log: Path) -> None:
    settings = _made(tmp_path / "home", log, {"EVALPIPE_KEY": FIRST})
    chain = {"EVALPIPE_KEY": f"{FIRST},{SECOND}"}
    rotation.rotate(settings, chain)
    other = _made(tmp_path / "other", log, chain)
    mine, fresh = _manifests(settings), _manifests(other)
    for name in mine:
        if name.startswith(("masked", "outcomes")):
            assert mine[name].parts == fresh[name].parts
    with open_context(settings, as_of=AS_OF, environ=chain) as context:
        assert context.plan().days == []


@pytest.mark.parametrize("after", [1, 5])
def test_a_killed_rotation_goes_on_and_nothing_is_published_meanwhile(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    whole = _made(tmp_path / "whole", log, {"EVALPIPE_KEY": FIRST})
    chain = {"EVALPIPE_KEY": f"{FIRST},{SECOND}"}
    rotation.rotate(whole, chain)
    settings = _made(tmp_path / "home", log, {"EVALPIPE_KEY": FIRST})
    calls = 0
    commit = Lake.commit

    def dies(self: Lake, *args: object, **more: object) -> Manifest:
        nonlocal calls
        calls += 1
        if calls == after:
            raise KeyboardInterrupt
        return commit(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Lake, "commit", dies)
    with pytest.raises(KeyboardInterrupt):
        rotation.rotate(settings, chain)
    monkeypatch.setattr(Lake, "commit", commit)
    for environ in (chain, {"EVALPIPE_KEY": FIRST}):
        with pytest.raises(EvalpipeError, match="MIXED_KEYS") as caught, open_context(settings, environ=environ):
            pass
        assert "evalpipe keys rotate" in caught.value.fix
    assert epochs.state(settings, chain).is_rotating
    assert rotation.rotate(settings, chain).resumed
    assert {k: (m.parts, m.inputs) for k, m in _manifests(settings).items()} == {
        k: (m.parts, m.inputs) for k, m in _manifests(whole).items()
    }


def test_a_key_in_a_file_that_was_killed_before_and_after_its_swap(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _made(tmp_path / "home", log, {})
    first = settings.key_file.read_text()
    monkeypatch.setattr(rotation, "move_durably", _dies)
    with pytest.raises(KeyboardInterrupt):
        rotation.rotate(settings, {})
    assert settings.key_file.read_text() == first
    following = epochs.next_key_file(settings).read_text()
    assert following.startswith(first)
    monkeypatch.undo()
    epochs.next_key_file(settings).replace(settings.key_file)  # killed between the swap and the end
    assert rotation.rotate(settings, {}).resumed
    assert settings.key_file.read_text() == following
    state = epochs.state(settings, {})
    assert (state.epochs, state.is_rotating, state.slices_of_earlier_epochs) == (2, False, 0)


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_epoch_that_the_environment_adds_is_refused_until_the_home_is_rotated(tmp_path: Path, log: Path) -> None:
    settings = _made(tmp_path / "home", log, {"EVALPIPE_KEY": FIRST})
    with pytest.raises(EvalpipeError, match="KEY_INVALID") as caught:
        rotation.rotate(settings, {"EVALPIPE_KEY": FIRST})
    assert (caught.value.where, "no new secret" in caught.value.what) == ("EVALPIPE_KEY", True)
    assert "openssl rand -hex 32" in caught.value.fix
    assert FIRST not in str(caught.value)
    twice = {"EVALPIPE_KEY": f"{FIRST},{SECOND},{THIRD}"}
    with pytest.raises(EvalpipeError, match="MIXED_KEYS"), open_context(settings, environ=twice):
        pass
    before = _rows(settings, "masked.sessions")["user_id"].n_unique()
    rotation.rotate(settings, twice)
    assert _rows(settings, "masked.sessions")["user_id"].n_unique() == before
    assert epochs.state(settings, twice).slices_of_this_epoch == epochs.slices_by_key(settings).total()


def test_a_home_with_slices_never_gets_another_key_in_silence(tmp_path: Path, log: Path) -> None:
    settings = _made(tmp_path / "home", log, {})
    settings.key_file.unlink()
    with pytest.raises(EvalpipeError, match="KEY_MISSING"), open_context(settings, environ={}):
        pass
    with pytest.raises(EvalpipeError, match="KEY_MISSING"):
        rotation.rotate(settings, {})
    with pytest.raises(EvalpipeError, match="KEY_MISSING"):
        epochs.state(settings, {})
    assert not settings.key_file.exists()


def test_nothing_works_on_a_home_that_is_rotated(tmp_path: Path, log: Path) -> None:
    settings = _made(tmp_path / "home", log, {})
    with open_context(settings, environ={}), pytest.raises(EvalpipeError, match="HOME_IN_USE"):
        rotation.rotate(settings, {})
    with (
        epochs.held(settings, alone=True),
        pytest.raises(EvalpipeError, match="HOME_IN_USE"),
        open_context(settings, environ={}),
    ):
        pass
    assert rotation.rotate(settings, {}).slices


def test_a_receipt_of_a_ledger_moves_along(tmp_path: Path, log: Path) -> None:
    ledger = tmp_path / "consent.csv"
    ledger.write_text("user_id,status\nu1@mail.example.org,withdrawn\n", "utf-8")
    plain = load(folder=tmp_path, environ={}, home=tmp_path / "home", workers=1)
    settings = replace(plain, consent=str(ledger))
    with open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": FIRST}) as context:
        land(context, [log])
        make(context)
        was = {m.inputs["consent"] for m in context.lake.manifests("masked")}
    chain = {"EVALPIPE_KEY": f"{FIRST},{SECOND}"}
    rotation.rotate(settings, chain)
    with open_context(settings, as_of=AS_OF, environ=chain) as context:
        assert was.isdisjoint(m.inputs["consent"] for m in context.lake.manifests("masked"))
        assert context.plan().days == []


def test_an_old_key_computes_no_token_of_the_new_epoch() -> None:
    old = MaskingKey.from_hex(FIRST, where="test")
    new = MaskingKey.from_hex(f"{FIRST},{SECOND}", where="test")
    guess = old.letters("t", "EMAIL_ADDRESS", "a@example.org")
    assert new.letters("t", "EMAIL_ADDRESS", "a@example.org") == new.forward(old.epoch, guess) != guess
    assert new.fingerprint != old.fingerprint
    assert new.subkey("canary") != old.subkey("canary")
    # Two homes whose newest secrets are equal share no token, and do not look alike.
    other = MaskingKey.from_hex(f"{THIRD},{SECOND}", where="test")
    assert (other.epoch, other.fingerprint) != (new.epoch, new.fingerprint)


def test_a_pseudonym_of_an_earlier_epoch_in_a_new_log_is_the_same_person() -> None:
    old = MaskingKey.from_hex(FIRST, where="test")
    new = MaskingKey.from_hex(f"{FIRST},{SECOND}", where="test")
    address = "mail ana.b42@mail.example.org"
    before, now = MaskPlan(old).mask_text(address)[0], MaskPlan(new).mask_text(address)[0]
    assert MaskPlan(new).mask_text(before)[0] == now != before
    assert rekeying.rekey_text(before, old, new) == rekeying.rekey_text(now, old, new) == now


def test_the_verbs_name_the_key_and_never_show_it(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALPIPE_KEY", raising=False)
    settings = _made(tmp_path / "home", log, {})
    where = ["--home", str(settings.home), "--json"]
    shown = CliRunner().invoke(app, ["keys", "show", *where])
    rotated = CliRunner().invoke(app, ["keys", "rotate", *where])
    after = json.loads(CliRunner().invoke(app, ["keys", "show", *where]).stdout)
    assert (shown.exit_code, rotated.exit_code) == (0, 0)
    assert json.loads(rotated.stdout)["new_epoch"] == after["epoch"]
    assert json.loads(rotated.stdout)["old_epoch"] == json.loads(shown.stdout)["epoch"]
    assert (after["epochs"], after["slices_of_earlier_epochs"], after["slices_of_other_keys"]) == (2, 0, 0)
    for secret in settings.key_file.read_text().split():
        assert secret not in shown.output + rotated.output + json.dumps(after)
