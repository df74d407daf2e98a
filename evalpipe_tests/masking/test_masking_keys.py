"""The masking key: where it comes from, who may read it, what it never shows."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import MaskingKey, MaskPlan, load_or_create
from evalpipe_tests.masking.support import KEY


def test_the_first_run_makes_a_private_file_and_later_runs_read_it(tmp_path: Path) -> None:
    path = tmp_path / "home" / "masking.key"
    key = load_or_create(path, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create(path, {}) == key
    assert [p.name for p in path.parent.iterdir()] == ["masking.key"]
    assert load_or_create(tmp_path / "other.key", {}) != key


def test_the_environment_wins_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "masking.key"
    key = load_or_create(path, {"EVALPIPE_KEY": "ab" * 32})
    assert key.secret == bytes.fromhex("ab" * 32)
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "ab", "zz" * 32, "ab" * 33])
def test_a_malformed_key_is_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(EvalpipeError) as caught:
        load_or_create(tmp_path / "k", {"EVALPIPE_KEY": text})
    assert caught.value.code == "KEY_INVALID"
    assert not text or text not in str(caught.value)


def test_a_readable_key_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k"
    load_or_create(path, {})
    path.chmod(0o640)
    with pytest.raises(EvalpipeError) as caught:
        load_or_create(path, {})
    assert caught.value.code == "KEY_PERMISSIONS"


def test_two_first_runs_agree_on_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k"
    first = load_or_create(path, {})
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert load_or_create(path, {}) == first


def test_a_plan_travels_but_shows_no_secret() -> None:
    plan = MaskPlan(KEY)
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    text = "mail ana.b42@mail.example.org"
    assert copy.mask_text(text) == plan.mask_text(text)
    assert KEY.secret.hex() not in repr(plan)
    assert repr(KEY.secret) not in repr(plan)


def test_letters_are_known_and_separate() -> None:
    assert KEY.letters("t", "E", "v") == KEY.letters("t", "E", "v")
    assert (
        len({KEY.letters(*parts) for parts in (("t", "E", "v"), ("tE", "", "v"), ("", "tE", "v"), ("t", "E", "w"))})
        == 4
    )
    assert set(KEY.letters("t", "E", "v")) <= set("abcdefghijklmnop")
    assert len(KEY.letters("t", "E", "v")) == 20
    with pytest.raises(EvalpipeError):
        MaskingKey.from_bytes(b"short")
