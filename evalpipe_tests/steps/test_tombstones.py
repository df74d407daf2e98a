"""Whom a home has erased does not come back: from other files, later nights, other spellings, without a user."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import tombstones
from evalpipe.masking.keys import MaskingKey
from evalpipe.masking.plan import MaskPlan
from evalpipe.masking.tombstones import Subject, Tombstones
from evalpipe.sources import ReadOptions
from evalpipe.store.files import write_atomically
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

KEY = MaskingKey.from_bytes(b"t" * 32)
MASKING = MaskingKey.from_bytes(b"m" * 32)
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def stones(subject: Subject, *sessions: str) -> Tombstones:
    return Tombstones(KEY, MASKING).with_subject(subject, sessions)


@pytest.mark.parametrize(
    ("subject", "asked", "is_erased"),
    [
        (Subject("ann"), ("ann", None, "codex", "codex:1"), True),
        (Subject("ann"), ("ann", "t-9", "otlp", "otlp:1"), True),
        (Subject("ann"), ("Ann", None, "codex", "codex:1"), False),
        (Subject("Ann@X.org"), ("ann@x.ORG ", None, "codex", "codex:1"), True),
        (Subject("ａｎｎ"), ("ann", None, "codex", "codex:1"), True),
        (Subject("ann", tenant="t-1"), ("ann", "t-1", "codex", "codex:1"), True),
        (Subject("ann", tenant="t-1"), ("ann", "t-2", "codex", "codex:1"), False),
        (Subject("ann", source="codex"), ("ann", None, "otlp", "otlp:1"), False),
        (Subject("ann", source="codex"), ("ann", "t", "codex", "codex:1"), True),
        (Subject("ann"), (None, None, "codex", "codex:1"), False),
        (Subject(MaskPlan(MASKING).rekey("u", "ann", "t-1"), is_token=True), ("ann", "t-1", "x", "x:1"), True),
        (Subject(MaskPlan(MASKING).rekey("u", "ann", "t-1"), is_token=True), ("ann", None, "x", "x:1"), False),
    ],
)
def test_who_is_erased(subject: Subject, asked: tuple[str | None, str | None, str, str], is_erased: bool) -> None:
    assert stones(subject)(*asked) is is_erased
    assert subject.matches(*asked[:3], MaskPlan(MASKING)) is is_erased
    assert not Tombstones(KEY, MASKING)(*asked), "nobody is erased before"


def test_a_session_is_known_without_its_user_and_in_another_exporters_log() -> None:
    asked = stones(Subject("ann"), "codex:7", f"codex:{UUID}")
    assert asked(None, None, "codex", "codex:7")
    assert not asked(None, None, "otlp", "otlp:7"), "a short id is given twice"
    assert asked(None, None, "otlp", f"otlp:{UUID.upper()}")


def test_a_short_id_of_an_erased_session_is_somebody_elses_too() -> None:
    erased = stones(Subject("ann"), "phoenix:1", "phoenix:1@trace:0123456789abcdef0123", f"phoenix:{UUID}")
    for session_id in ("phoenix:1", "phoenix:1@trace:0123456789abcdef0123"):
        assert erased("ann", None, "phoenix", session_id)
        assert erased(None, None, "phoenix", session_id)
        assert not erased("bob", None, "phoenix", session_id)
    assert erased("bob", None, "phoenix", f"phoenix:{UUID}")


def test_a_sub_session_that_names_nobody_is_theirs_however_late_it_comes(tmp_path: Path) -> None:
    from evalpipe.steps.land import land

    home = tmp_path / "home"
    with opened(home) as context:
        made = tombstones.prepared(context.tombstones, context.settings.tombstone_key_file, {})
        made = made.with_subject(Subject("ann"), ["evalpipe_jsonl:s1"])
        write_atomically(context.settings.tombstones, tombstones.to_json(made))
    log = [
        *session("late", user_id=None, parent_session_id="s1"), *session("of-bob", user_id="bob", parent_session_id="s1"),
        *session("other", user_id=None, parent_session_id="s2"),
    ]  # fmt: skip
    with opened(home) as context:
        land(context, [write(tmp_path / "late.jsonl", *log)])
        make(context)
        assert rows(context, "raw.sessions")["session_id"].sort().to_list() == [
            "evalpipe_jsonl:of-bob", "evalpipe_jsonl:other"
        ]  # fmt: skip


def test_the_file_holds_no_id_and_is_read_back_under_its_own_key_only(tmp_path: Path) -> None:
    file, key_file = tmp_path / "tombstones.json", tmp_path / "tombstone.key"
    assert tombstones.load([file], key_file, MASKING, {}) == Tombstones(masking=MASKING)
    assert not key_file.exists(), "no key before anybody was erased"
    made = tombstones.prepared(Tombstones(masking=MASKING), key_file, {}).with_subject(Subject("ann"), ["codex:7"])
    write_atomically(file, tombstones.to_json(made))
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert "ann" not in file.read_text().replace("layout", "")
    again = tombstones.load([file], key_file, MASKING, {})
    assert again("ann", None, "x", "x:1")
    assert tombstones.load([file], key_file, MaskingKey.from_bytes(b"n" * 32), {})("ann", None, "x", "x:1")
    with pytest.raises(EvalpipeError, match="another key"):
        tombstones.load([file], key_file, MASKING, {tombstones.ENVIRONMENT_NAME: "0" * 64})
    with pytest.raises(EvalpipeError, match="KEY_INVALID") as caught:
        tombstones.load([file], key_file, MASKING, {tombstones.ENVIRONMENT_NAME: "short"})
    assert caught.value.where == tombstones.ENVIRONMENT_NAME
    key_file.unlink()
    with pytest.raises(EvalpipeError, match="key of the tombstones is gone"):
        tombstones.load([file], key_file, MASKING, {})
    file.write_text("{")
    with pytest.raises(EvalpipeError, match="HOME_DAMAGED"):
        tombstones.load([file], key_file, MASKING, {})


def erased_home(folder: Path, user: str) -> Path:
    """A home that erased somebody of whom it holds nothing."""
    home = folder / "home"
    with opened(home) as context:
        made = tombstones.prepared(context.tombstones, context.settings.tombstone_key_file, {})
        write_atomically(context.settings.tombstones, tombstones.to_json(made.with_subject(Subject(user), [])))
    return home


def test_records_of_somebody_erased_are_noise_and_the_rest_of_the_file_is_kept(tmp_path: Path) -> None:
    from evalpipe.steps.land import land

    home = erased_home(tmp_path, "ann@x.org")
    log = [*session("a", user_id="Ann@X.org", turns=3), *session("b", user_id="bob")]
    with opened(home) as context:
        result = land(context, [write(tmp_path / "logs" / "both.jsonl", *log)])
        assert result.rows["sessions"] == 1
        make(context)
        assert rows(context, "raw.sessions")["user_id"].to_list() == ["bob"]
        file = rows(context, "raw.files").row(0, named=True)
        assert (file["rows_read"], file["rows_kept"], file["rows_noise"]) == (len(log), 3, 7)
        assert (file["n_sessions"], file["rows_quarantined"]) == (1, 0)
        assert file["source_file"].endswith("both.jsonl")


def test_a_file_of_nobody_else_leaves_a_count_and_no_path_and_is_known_when_it_grows(tmp_path: Path) -> None:
    from evalpipe.steps.land import land

    home = erased_home(tmp_path, "ann")
    place = tmp_path / "logs-of-ann" / "a.jsonl"
    first = session("a", user_id="ann")
    with opened(home) as context:
        land(context, [write(place, *first, tail="{not json}\n")])
        land(context, [place])
        assert len(context.landing.entries()) == 1, "known by its bytes"
        make(context)
        assert rows(context, "raw.sessions").is_empty()
        assert rows(context, "raw.quarantine")["code"].to_list() == ["BAD_JSON"], "no NO_SESSION beside it"
    with opened(home) as context:
        place.write_text(place.read_text() + "".join(f"{line}\n" for line in ["{}"]))
        land(context, [place])
        make(context, days=[DAY])
        files = rows(context, "raw.files")
        assert files.height == 1, "the earlier copy is counted in the longer one"
        balance = pl.col("rows_kept") + pl.col("rows_noise") + pl.col("rows_quarantined")
        assert files.select((pl.col("rows_read") == balance).all()).item()
    for file in home.rglob("*"):
        if file.suffix == ".parquet":
            for name, dtype in pl.read_parquet_schema(file).items():
                if dtype == pl.String:
                    values = pl.read_parquet(file, columns=[name])[name]
                    assert not values.str.contains("ann", literal=True).any(), (file.name, name)
        elif file.is_file():
            assert b"logs-of-ann" not in file.read_bytes(), file.name


def test_options_without_anybody_erased_leave_nobody_out() -> None:
    options = ReadOptions(DAY, DAY, DAY, b"k")
    assert not options.is_erased("ann", None, "x", "x:1", None)
