"""Text expires so many days after landing; what was made of it is carried on, and never made from nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.model import Criteria
from evalpipe.locations import data_dir
from evalpipe.masking.tombstones import Subject
from evalpipe.settings import Settings
from evalpipe.steps import retention, seal, slices
from evalpipe.steps import versions as versions_module
from evalpipe.steps.context import Context, load_criteria, today
from evalpipe.steps.erase import erase
from evalpipe.steps.land import land
from evalpipe.steps.retention import is_due, periods, retain
from evalpipe_tests.steps.remains import places_of
from evalpipe_tests.steps.test_erase import NEXT, alone, layers, log
from evalpipe_tests.steps.world import DAY, make, rows, write

#: Days from today on which raw and text, and snippets, have expired.
AFTER, LATER = today() + timedelta(days=8), today() + timedelta(days=91)
WORDS = ("quokkaberry", "o-1", "user-1", "logs-of-1", "tenant-q9")
SAID = "perfect, the quokkaberry works now, thanks a lot"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home of two days and four people."""
    folder = tmp_path_factory.mktemp("built")
    with alone(folder / "home") as context:
        for n in range(4):
            day = (DAY, NEXT)[n % 2]
            entries = log(f"o-{n}", f"user-{n}", day, SAID, model=f"m-{n % 2}", tenant="tenant-q9" if n == 1 else None)
            land(context, [write(folder / f"logs-of-{n}" / "a.jsonl", *entries)])
        make(context)
    return folder


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path / "home"


def other_extraction(folder: Path) -> Criteria:
    text = (data_dir() / "criteria" / "default.toml").read_text("utf-8")
    (folder / "other.toml").write_text(text.replace("self_fix_steps = 10", "self_fix_steps = 11"), "utf-8")
    return load_criteria(str(folder / "other.toml"))


def texts(context: Context) -> dict[str, int]:
    """Steps with text of each session token."""
    said = rows(context, "masked.steps").filter(pl.col("text").is_not_null())
    return dict(said.group_by("session_id").len().iter_rows())


def later_layers(context: Context) -> dict[str, pl.DataFrame]:
    return {name: frame.drop("text", "arguments", "output", strict=False) for name, frame in layers(context).items()}


def expire(home: Path, on: date = AFTER) -> None:
    with alone(home) as context:
        retain(context, on)


def test_what_expires_is_gone_from_every_file_and_later_layers_stay(home: Path) -> None:
    with alone(home) as context:
        before = later_layers(context)
        assert not is_due(context.settings, today() + timedelta(days=7))
        assert is_due(context.settings, AFTER)
    found = places_of(home, WORDS)
    assert set(found) == set(WORDS)
    assert any("lake/masked/steps" in place for place in found["quokkaberry"])
    expire(home)
    with alone(home) as context:
        assert not context.plan().stale
        assert not is_due(context.settings, AFTER)
        after = later_layers(context)
        assert all(after[name].equals(before[name]) for name in before)
        assert texts(context) == {}
        assert rows(context, "masked.files").height == 4
        redactions = rows(context, "masked.redactions")
        assert retention.sealed_days(context) == ([DAY, NEXT], [])
        make(context)
        assert rows(context, "masked.redactions").equals(redactions)
    left = places_of(home, WORDS)
    # The index keeps ids and digests, and the snippets are kept for longer.
    assert {place.split(":")[0].split("/day=")[0] for place in left.pop("quokkaberry")} == {
        f"lake/signals/{name}/x={load_criteria('default').sub_hash('extraction')}"
        for name in ("semantic", "candidates")
    } & {place.split(":")[0].split("/day=")[0] for place in found["quokkaberry"]}
    assert {place.split("/")[3] for name in ("o-1", "logs-of-1") for place in left.pop(name)} == {"_batches"}
    assert {place.split("/")[-1] for place in left.pop("tenant-q9")} == {"_tenants.json"}
    assert left == {}


def test_snippets_go_later_under_every_criteria(home: Path, tmp_path: Path) -> None:
    with alone(home) as context:
        make(replace(context, criteria=other_extraction(tmp_path)))
    expire(home)
    assert places_of(home, ["quokkaberry"])
    expire(home, LATER)
    assert places_of(home, ["quokkaberry"]) == {}
    with alone(home) as context:
        assert rows(context, "signals.semantic").height
        assert not context.plan().stale


def test_a_sealed_day_takes_single_sessions_and_replaces_single_ones(home: Path, tmp_path: Path) -> None:
    expire(home)
    with alone(home) as context:
        old = layers(context)
        assert land(context, [tmp_path / f"logs-of-{n}" for n in range(4)]).n_new_files == 0, "known by their bytes"
        late = write(
            tmp_path / "late.jsonl", *log("new", "user-7", DAY, SAID), *log("o-2", "user-2", DAY, SAID, turns=4)
        )
        land(context, [late])
        assert set(context.plan().stale) == {DAY, NEXT}
        make(context)
        assert not context.plan().stale
        rekey = context.mask_plan.rekey
        new, grown = (rekey("s", f"evalpipe_jsonl:{name}") for name in ("new", "o-2"))
        for name, frame in layers(context).items():
            rest = ~pl.col("session_id").is_in([new, grown])
            assert frame.filter(rest).equals(old[name].filter(rest)), name
        assert sorted(texts(context)) == sorted([new, grown])
        sessions = rows(context, "masked.sessions")
        assert sessions.height == 5
        assert sessions.filter(pl.col("session_id") == grown)["n_turns"].item() == 5
        assert rows(context, "masked.copies")["session_id"].to_list() == [grown], "the smaller copy, by the index"
        assert rows(context, "masked.files").height == 5
        counts = [rows(context, "masked.redactions")]
        make(context)
        with_late = layers(context)
    with alone(home) as context:
        retain(context, AFTER + timedelta(days=8))
        assert texts(context) == {}
        assert rows(context, "masked.sessions").height == 5
        for name in ("signals.semantic", "signals.session_features"):
            assert layers(context)[name].equals(with_late[name]), name
        counts.append(rows(context, "masked.redactions"))
    assert counts[0]["n_hits"].sum() == counts[1]["n_hits"].sum(), "nothing is counted twice"


def test_a_session_that_goes_to_another_day_leaves_a_sealed_one(home: Path, tmp_path: Path) -> None:
    expire(home)
    with alone(home) as context:
        land(context, [write(tmp_path / "b.jsonl", *log("o-0", "user-0", NEXT, SAID, turns=6))])
        make(context)
        token = context.mask_plan.rekey("s", "evalpipe_jsonl:o-0")
        for table in ("masked.sessions", "masked.steps", "signals.session_features", "signals.semantic"):
            frame = rows(context, table).filter(pl.col("session_id") == token)
            assert frame.height, table
        assert rows(context, "masked.sessions").filter(pl.col("session_id") == token)[
            "started_at"
        ].dt.date().to_list() == [NEXT]


def test_what_would_need_expired_text_is_refused_and_shown(home: Path, tmp_path: Path) -> None:
    expire(home)
    with alone(home) as opened:
        context = replace(opened, criteria=other_extraction(tmp_path))
        assert context.versions.variants["signals"] != opened.versions.variants["signals"]
        inputs = context.landing.day_inputs()
        assert not context.plan().stale, "what cannot be made is not planned for every night"
        assert retention.sealed_days(context) == ([DAY, NEXT], [DAY, NEXT])
        done = make(context)
        assert done["signals"].held == [DAY, NEXT]
        assert not done["signals"].red
        assert context.lookup("signals", DAY) is None
        with pytest.raises(EvalpipeError, match="INPUT_EXPIRED"):
            seal.carried_signals(context, DAY, inputs[DAY])
    with alone(home) as context:
        (path,) = (p for p in context.lake.paths_of(context.lookup("masked", DAY)) if "sessions" in str(p))  # type: ignore[arg-type]
        path.unlink()
        assert DAY not in context.plan().stale
        assert retention.sealed_days(context)[1] == [DAY]
        with pytest.raises(EvalpipeError, match="INPUT_EXPIRED"):
            seal.carried_masked(context, DAY, inputs[DAY], has_vectors=False)


def test_newer_rules_scan_what_is_left_of_a_sealed_day_and_newer_patterns_leave_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expire(home)
    with alone(home) as context:
        before = later_layers(context)
    monkeypatch.setitem(versions_module.LOGIC, "signals", "999")
    with alone(home) as context:
        assert not context.plan().stale
    monkeypatch.setitem(versions_module.LOGIC, "masked", "999")
    with alone(home) as context:
        assert context.plan().stale[DAY] == ("masked", "logic or criteria changed")
        make(context)
        assert not context.plan().stale
        assert {name for name, frame in later_layers(context).items() if not frame.equals(before[name])} == set()
        land(context, [write(tmp_path / "late.jsonl", *log("new", "user-7", DAY, SAID))])
        make(context)
    monkeypatch.setitem(versions_module.LOGIC, "masked", "1000")
    with alone(home) as context:
        assert context.plan().stale[DAY][0] == "outcomes", "a late session waits as it was logged"
        assert rows(context, "masked.sessions").height == 5


def test_a_person_is_erased_from_a_sealed_day(home: Path) -> None:
    expire(home)
    with alone(home) as context:
        token = context.mask_plan.rekey("u", "user-1", "tenant-q9")
        session = context.mask_plan.rekey("s", "evalpipe_jsonl:o-1")
    assert places_of(home, [token, session])
    with alone(home) as context:
        assert erase(context, Subject("user-1")).n_sessions == 1
        assert not context.plan().stale
        assert rows(context, "masked.sessions").height == 3
    assert places_of(home, [token, session, "o-1", "logs-of-1"]) == {}


def test_a_withdrawal_reaches_a_sealed_day_and_its_snippets(home: Path, tmp_path: Path) -> None:
    expire(home)
    (tmp_path / "consent.csv").write_text("user_id,status\nuser-1,withdrawn\n")
    (tmp_path / "evalpipe.toml").write_text('consent = "consent.csv"\n')
    with alone(home) as context:
        assert context.plan().stale[NEXT] == ("masked", "consent was withdrawn")
        assert DAY not in context.plan().stale or context.plan().stale[DAY][0] == "outcomes"
        make(context)
        assert not context.plan().stale
        token = context.mask_plan.rekey("s", "evalpipe_jsonl:o-1")
        assert not rows(context, "signals.semantic")["session_id"].is_in([token]).any()
        assert rows(context, "signals.semantic").height
        sessions = rows(context, "masked.sessions")
        assert sessions.filter(pl.col("consent") == "withdrawn")["session_id"].to_list() == [token]


def test_a_log_that_says_withdrawn_later_reaches_a_sealed_day(home: Path, tmp_path: Path) -> None:
    expire(home)
    header = log("o-1", "user-1", NEXT + timedelta(days=9), SAID, consent="withdrawn", tenant="tenant-q9")[:1]
    with alone(home) as context:
        land(context, [write(tmp_path / "late" / "a.jsonl", *header)])
        assert NEXT in context.plan().stale
        make(context)
        assert not context.plan().stale
        token = context.mask_plan.rekey("s", "evalpipe_jsonl:o-1")
        assert not rows(context, "signals.semantic")["session_id"].is_in([token]).any()
        sessions = rows(context, "masked.sessions")
        assert sessions.filter(pl.col("consent") == "withdrawn")["session_id"].to_list() == [token]


@pytest.mark.parametrize("at", ["expire", "sweep", "make_masked"])
def test_an_expiry_that_was_killed_is_gone_on_with(home: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    def dying(*_: Any) -> None:
        raise KeyboardInterrupt

    with alone(home) as context:
        before = later_layers(context)
        with monkeypatch.context() as patched:
            patched.setattr(retention.expiry if at == "expire" else retention, at, dying)
            with pytest.raises(KeyboardInterrupt):
                retain(context, AFTER)
        assert is_due(context.settings, AFTER)
    expire(home)
    with alone(home) as context:
        assert not is_due(context.settings, AFTER)
        assert {name: frame for name, frame in later_layers(context).items() if not frame.equals(before[name])} == {}
    assert set(places_of(home, ["user-1"])) == set()


def test_an_expiry_that_was_killed_between_mark_and_deletion_leaves_no_text(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.unlink

    def dying(path: Path, *, missing_ok: bool = False) -> None:
        if path.name.endswith(".steps.parquet") and "_landing" in path.parts:
            raise KeyboardInterrupt
        real(path, missing_ok=missing_ok)

    with alone(home) as context:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", dying)
            with pytest.raises(KeyboardInterrupt):
                retain(context, AFTER)
        assert is_due(context.settings, AFTER)
    assert any("lake/raw/_landing" in place for place in places_of(home, ["quokkaberry"])["quokkaberry"])
    expire(home)
    assert all("lake/signals" in place for place in places_of(home, ["quokkaberry"]).get("quokkaberry", []))
    with alone(home) as context:
        assert not is_due(context.settings, AFTER)


def test_landed_text_that_an_earlier_version_left_behind_its_mark_is_due(home: Path) -> None:
    with alone(home) as context:
        kept = {path: path.read_bytes() for path in context.settings.landing.glob("day=*/*.steps.parquet")}
        retain(context, AFTER)
        assert not is_due(context.settings, AFTER)
        path, data = next(iter(kept.items()))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        assert is_due(context.settings, AFTER)
        retain(context, AFTER)
        assert not path.exists()
        assert not is_due(context.settings, AFTER)


def test_text_of_a_refused_day_expires_too(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with alone(home) as context:
        land(context, [write(tmp_path / "more.jsonl", *log("more", "user-8", DAY, "the numbatberry works, thanks"))])
    real = slices.judged

    def refusing(place: str, staged: Any) -> Any:
        if str(DAY) in place:
            raise EvalpipeError("PROFILE_OUT_OF_BOUNDS", "refused by the test")
        return real(place, staged)

    monkeypatch.setattr(slices, "judged", refusing)
    expire(home)
    found = places_of(home, ["numbatberry", "user-0", "user-8", "quokkaberry"])
    assert set(found) == {"quokkaberry"}
    assert all(place.startswith("lake/signals/") for place in found["quokkaberry"]), found["quokkaberry"]


def test_periods_are_data_and_a_wrong_file_is_refused(tmp_path: Path) -> None:
    assert periods(Settings()) == {"raw": 7, "text": 7, "snippets": 90}
    file = tmp_path / "retention.toml"
    given = Settings(retention=str(file))
    for text, found in (
        ("version = 1\n[raw]\ndays = 1", {"raw": 1}),
        ("version = 1\n[raw]\ndays = 1\n[text]\ndays = 1\n[snippets]\ndays = 2", {"raw": 1, "text": 1, "snippets": 2}),
        ("version = 1", {}),
    ):
        file.write_text(text)
        assert periods(given) == found
    for text in (
        "version = 2", "version = 1\n[raw]\ndays = 0", "version = 1\n[raw]\ndays = true", "version = 1\nraw = 7",
        "version = 1\n[raw]\ndays = 3\n[text]\ndays = 2", "version = 1\n[text]\ndays = 2", "version = 1\n[other]\ndays = 3",
        "version = 1\n[raw]\ndays = 3\nhours = 2", "[raw", "version = 1\n[raw]\ndays = 3\n[snippets]\ndays = 9",
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(EvalpipeError, match="SETTINGS_INVALID"):
            periods(given)
    file.unlink()
    with pytest.raises(EvalpipeError, match="FILE_FAILED"):
        periods(given)
