"""One person is erased: no byte of theirs is left in any file, everybody else's rows are what they were."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.tombstones import Subject
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import erase as erase_step
from evalpipe.steps.context import Context, load_criteria, open_context
from evalpipe.steps.decisions import make_scorecard
from evalpipe.steps.erase import ErasureResult, erase, go_on
from evalpipe.steps.erase_scope import record_path
from evalpipe.steps.land import land
from evalpipe.steps.publish import publish
from evalpipe.steps.report import make_report
from evalpipe.store.files import own_staging
from evalpipe.store.manifest import STEP_TABLES, SliceKey
from evalpipe_tests.steps.remains import places_of
from evalpipe_tests.steps.world import AS_OF, DAY, make, rows, session, write

NEXT = date(2026, 1, 6)
NUMBERS = "analysis.net_improvement"
ANN = "Ann.Nakamoto@acme.example"
KEY = {"EVALPIPE_KEY": "5e" * 32}
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
#: Words of hers that masking leaves in place, in her id, her path and what she says.
WORDS = ("nakamoto", "quokkaberry", "hers-1", UUID)
SAID = "perfect, the quokkaberry works now, thanks a lot"


def alone(home: Path) -> Any:
    from evalpipe.settings import load

    settings = load(folder=home.parent, environ={}, home=home, workers=1)
    return open_context(settings, as_of=AS_OF, environ=KEY, alone=True)


def log(name: str, user: str | None, day: date, text: str = "that works, thanks", **more: Any) -> list[dict[str, Any]]:
    praise = {"type": "step", "session_id": name, "step_id": "9", "kind": "user", "text": text}
    return [*session(name, day, user_id=user, **more), praise | {"at": f"{day}T10:00:05Z"}]


def others(folder: Path) -> list[Path]:
    out = []
    for n in range(6):
        day, model = (DAY, NEXT)[n % 2], f"m-{n % 3}"
        out.append(write(folder / "logs" / f"{n}.jsonl", *log(f"o-{n}", f"user-{n}", day, model=model)))
    return out


def hers(folder: Path) -> list[Path]:
    """Her logs: alone in a file that names her, beside others, under another spelling, without her name."""
    return [
        write(folder / "logs" / "nakamoto" / "a.jsonl", *log("hers-1", ANN, DAY, SAID), tail="{broken\n"),
        write(
            folder / "logs" / "both.jsonl",
            *log("hers-1b", ANN.upper(), NEXT, SAID, model="m-1"),
            *log("o-9", "user-9", NEXT, model="m-2"),
        ),
        write(folder / "logs" / "c.jsonl", *log(UUID, ANN, NEXT, SAID)),
        write(folder / "logs" / "d.jsonl", *log("child", None, NEXT, SAID, parent_session_id=UUID)),
    ]


def run(context: Context, *windows: str) -> None:
    make(context)
    for window in windows:
        analysis_step.make_analysis(context, [AS_OF], window)
    publish(context)
    make_report(context)


def another(context: Context) -> Context:
    """The same home under criteria of another measurement."""
    criteria = load_criteria("demo")
    assert criteria.measurement != context.criteria.measurement
    return replace(context, criteria=criteria)


def build(folder: Path, *, is_small: bool = False) -> None:
    with alone(folder / "home") as context:
        land(context, [*others(folder), *hers(folder)])
        if is_small:
            run(context, "all")
            return
        run(another(context), "all")
        run(context, "all", "28d")
        newest = analysis_step.latest(context)
        assert newest is not None
        make_scorecard(context, analysis_step.versions_of(context, newest)[0])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs and a home that was run whole, under two criteria."""
    folder = tmp_path_factory.mktemp("built")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home of one analysis."""
    folder = tmp_path_factory.mktemp("small")
    build(folder, is_small=True)
    return folder


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to, dirs_exist_ok=True)
    return to / "home"


@dataclass(frozen=True)
class Erased:
    """A home from which she was erased, and what it held before."""

    home: Path
    wanted: list[str]
    found: dict[str, list[str]]
    layers: dict[str, dict[str, pl.DataFrame]]
    numbers: dict[SliceKey, pl.DataFrame]
    result: ErasureResult


@pytest.fixture(scope="module")
def erased(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Erased:
    home = copied(built, tmp_path_factory.mktemp("erased"))
    (home / "dagster" / "history").mkdir(parents=True)
    with alone(home) as context:
        wanted = [*WORDS, *tokens(context)]
        (home / "dagster" / "history" / "runs.db").write_bytes(b"x" + min(tokens(context)).encode())
        (home / "dagster" / "history" / "runs.db-wal").write_bytes(b"x")
        (home / "dagster" / "dagster.yaml").write_text("telemetry: {}")
        stray = own_staging(context.lake.staging).parent / "7-dead"
        stray.mkdir()
        (stray / "object-1").write_text(SAID)
        orphan = context.settings.landing / f"day={DAY}" / "killed-0000.steps.parquet"
        pl.DataFrame({"text": [SAID]}).write_parquet(orphan)
        before = {which.criteria.name: layers(which) for which in (context, another(context))}
        numbers = {m.key: context.lake.read(NUMBERS, [m]) for m in context.lake.manifests("analysis")}
    found = places_of(home, wanted)
    with alone(home) as context:
        result = erase(context, Subject(ANN))
    return Erased(home, wanted, found, before, numbers, result)


def tokens(context: Context) -> set[str]:
    rekey = context.mask_plan.rekey
    ids = {rekey("s", f"evalpipe_jsonl:{name}") for name in ("hers-1", "hers-1b", UUID, "child")}
    return ids | {rekey("u", ANN), rekey("u", ANN.upper())}


def layers(context: Context) -> dict[str, pl.DataFrame]:
    """Rows of masked and signal tables that belong to sessions, under the criteria in force."""
    tables = [t for step in ("masked", "signals", "outcomes") for t in STEP_TABLES[step]]
    left_out = {"files", "quarantine", "redactions", "rescans", "copies", "routing_arms"}
    out = {}
    for name in tables:
        if name.split(".")[1] not in left_out:
            step = next(step for step, names in STEP_TABLES.items() if name in names)
            found = [m for m in context.lake.manifests(step) if m.key.variant == context.versions.variants[step]]
            frame = context.lake.read(name, found).drop("file_id", strict=False)
            out[name] = frame.sort(pl.all().exclude(pl.List(pl.String)))
    return out


def test_no_byte_is_left_in_any_file(erased: Erased) -> None:
    assert set(erased.found) == set(erased.wanted), "the search must be able to find each"
    assert any("warehouse.duckdb" in place for places in erased.found.values() for place in places)
    assert any("signals/semantic/x=" in place for place in erased.found["quokkaberry"])
    assert (erased.result.n_sessions, erased.result.n_files) == (4, 3)
    assert places_of(erased.home, erased.wanted) == {}
    assert (erased.home / "dagster" / "dagster.yaml").exists()
    assert not list((erased.home / "dagster" / "history").iterdir())
    with alone(erased.home) as context:
        assert not record_path(context.settings).exists()


def test_other_rows_stay_and_all_is_as_if_the_person_had_never_been_there(erased: Erased, tmp_path: Path) -> None:
    with alone(erased.home) as context:
        assert not context.plan().stale
        gone = sorted(tokens(context))
        for which in (context, another(context)):
            for name, frame in layers(which).items():
                old = erased.layers[which.criteria.name][name]
                assert frame.equals(old.filter(~pl.col("session_id").is_in(gone))), name
        after = layers(context)
    with alone(tmp_path / "home") as context:
        land(context, [*others(tmp_path), write(tmp_path / "b.jsonl", *log("o-9", "user-9", NEXT, model="m-2"))])
        make(context)
        for name, frame in layers(context).items():
            assert after[name].equals(frame), name


def test_moved_numbers_are_corrected_with_the_reason(erased: Erased) -> None:
    assert len(erased.numbers) == 3, "two windows, one of them under two criteria"
    with alone(erased.home) as context:
        told = pl.concat([pl.read_parquet(path) for path in context.lake.appended("analysis.corrections")])
        mine = told.filter(pl.col("reason") == "erasure")
        assert 0 < mine.height == erased.result.n_corrections
        n_moved = 0
        for manifest in context.lake.manifests("analysis"):
            new = context.lake.read(NUMBERS, [manifest])
            key = ["as_of", "window_name", "measurement", "metric", "slice", "version"]
            moved = erased.numbers[manifest.key].join(new, on=key, how="full", coalesce=True, suffix="_now")
            is_moved = pl.any_horizontal(pl.col(n).ne_missing(pl.col(f"{n}_now")) for n in ("estimate", "n_sessions"))
            changed = moved.filter(is_moved)
            assert changed.join(mine, on=key, how="anti").is_empty()
            n_moved += changed.height
        assert n_moved == mine.height
        assert set(mine["measurement"]) == {context.criteria.measurement, another(context).criteria.measurement}
        card = context.lake.manifests("scorecard")[0]
        assert card.inputs["analysis"] in {m.content for m in context.lake.manifests("analysis")}


def test_an_analysis_without_its_criteria_is_withdrawn(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copied(built, tmp_path)
    monkeypatch.setattr("evalpipe.criteria.available", lambda: [])
    with alone(home) as context:
        other = another(context).criteria.measurement
        n_old = sum(m.rows(NUMBERS) for m in context.lake.manifests("analysis")
                    if m.key.variant[0] == f"m={other}")  # fmt: skip
        erase(context, Subject(ANN))
        assert all(m.key.variant[0] != f"m={other}" for m in context.lake.manifests("analysis"))
        told = pl.concat([pl.read_parquet(path) for path in context.lake.appended("analysis.corrections")])
        gone = told.filter((pl.col("measurement") == other) & (pl.col("reason") == "erasure"))
        assert 0 < gone.height <= n_old
        assert gone["new_n_sessions"].null_count() == gone.height
        assert not list((home / "reports" / f"m={other}").rglob("*.html"))


def test_nothing_comes_back_from_the_same_logs_other_files_or_later_nights(erased: Erased, tmp_path: Path) -> None:
    home, folder = copied(erased.home.parent, tmp_path), tmp_path
    with alone(home) as context:
        assert land(context, [folder / "logs"]).n_new_files == 0, "digests of what was read stay known"
        again = write(
            folder / "later" / "e.jsonl",
            *log("new", ANN.swapcase(), NEXT, SAID), *log(UUID, None, NEXT, SAID), *log("o-10", "user-10", NEXT),
        )  # fmt: skip
        assert land(context, [again]).rows["sessions"] == 1
        make(context)
        assert rows(context, "raw.sessions")["user_id"].is_in([ANN, ANN.upper(), ANN.swapcase()]).sum() == 0
        balance = pl.col("rows_kept") + pl.col("rows_noise") + pl.col("rows_quarantined")
        assert rows(context, "raw.files").select((pl.col("rows_read") == balance).all()).item()
        wanted = [*WORDS, *tokens(context)]
    assert places_of(home, wanted) == {}


@pytest.mark.parametrize("at", ["rewrite_slice", "correct"])
def test_a_killed_erasure_is_gone_on_with(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The process ends in the middle of a step: after its first few changes, before the next."""
    home = copied(small, tmp_path)
    n_calls = 0
    real = getattr(erase_step, at)

    def dying(*args: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if at != "rewrite_slice" or n_calls == 5:
            if at in ("rewrite_landing", "correct"):
                real(*args)
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patched, alone(home) as context:
        wanted = [*WORDS, *tokens(context)]
        patched.setattr(erase_step, at, dying)
        with pytest.raises(KeyboardInterrupt):
            erase(context, Subject(ANN))
        assert record_path(context.settings).exists()
        assert record_path(context.settings).stat().st_mode & 0o777 == 0o600
        assert "nakamoto" not in record_path(context.settings).read_text().lower()
    with alone(home) as context:
        done = go_on(context)
        assert done is not None
        told = pl.concat([pl.read_parquet(path) for path in context.lake.appended("analysis.corrections")])
        assert "erasure" in set(told["reason"])
    assert places_of(home, wanted) == {}
    with alone(home) as context:
        assert go_on(context) is None
        assert not context.plan().stale


@pytest.mark.parametrize("n_th", [1, 2])
def test_an_erasure_that_is_killed_at_its_first_files_is_gone_on_with_or_never_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_th: int
) -> None:
    """Whatever was written says all that is to be done: nobody has a tombstone whose rows stay."""
    home, n_calls = tmp_path / "home", 0
    with alone(home) as context:
        land(context, [write(tmp_path / "a.jsonl", *log("a", ANN, DAY, SAID), *log("b", "bob", DAY))])
    real = erase_step.private_write

    def dying(path: Path, text: str) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == n_th:
            raise KeyboardInterrupt
        real(path, text)

    with monkeypatch.context() as patched, alone(home) as context:
        patched.setattr(erase_step, "private_write", dying)
        with pytest.raises(KeyboardInterrupt):
            erase(context, Subject(ANN))
        assert erase_step.is_pending(context.settings) is (n_th == 2)
    with alone(home) as context:
        asked = context.tombstones(ANN, None, "codex", "codex:new")
        assert asked is erase_step.is_pending(context.settings), "nothing of hers lands before it is gone on with"
        assert (go_on(context) is not None) is (n_th == 2)
        make(context)
        assert rows(context, "raw.sessions")["user_id"].sort().to_list() == [[ANN, "bob"], ["bob"]][n_th - 1]
    with alone(home) as context:
        assert context.tombstones(ANN, None, "codex", "codex:new") is (n_th == 2)
        assert not erase_step.is_pending(context.settings)


def test_by_token_and_a_token_of_nobody(small: Path, tmp_path: Path) -> None:
    home = copied(small, tmp_path)
    with alone(home) as context:
        token = context.mask_plan.rekey("u", ANN)
        with pytest.raises(EvalpipeError, match="UNKNOWN_USER"):
            erase(context, Subject("u_" + "a" * 20, is_token=True))
        result = erase(context, Subject(token, is_token=True))
        assert result.n_sessions == 4, "every spelling has this token"
    assert places_of(home, [token, "hers-1.", UUID]) == {}


def test_only_of_a_tenant_and_a_source(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with alone(home) as context:
        for name, tenant in (("a", "t-1"), ("b", "t-2"), ("c", None)):
            land(context, [write(tmp_path / f"{name}.jsonl", *log(name, "ann", DAY, tenant=tenant))])
        make(context)
    for subject, left in (
        (Subject("ann", tenant="t-1", source="codex"), 3), (Subject("ann", tenant="t-1"), 2),
        (Subject("ann", source="evalpipe_jsonl"), 0),
    ):  # fmt: skip
        with alone(home) as context:
            assert erase(context, subject, dry_run=True).n_sessions == rows(context, "masked.sessions").height - left
            assert erase(context, subject).is_dry is False
            assert rows(context, "masked.sessions").height == left
            assert rows(context, "raw.steps").is_empty() is (left == 0)


def test_copies_of_a_session_go_with_it_whatever_id_they_were_read_under(tmp_path: Path) -> None:
    home, uuid = tmp_path / "home", "0b5c1c9e-7a1d-4a7e-9d55-5f6e2f0c1a77"
    longer, other = log(uuid, "ann", DAY), log(uuid, None, DAY)
    with alone(home) as context:
        land(context, [write(tmp_path / "a.jsonl", *longer), write(tmp_path / "b.jsonl", *other[:-1])])
        make(context)
        assert rows(context, "masked.copies").height == 1
        assert erase(context, Subject("ann")).n_sessions == 1
        assert rows(context, "masked.sessions").is_empty()
        assert rows(context, "masked.copies").is_empty()


def test_a_dry_run_tells_and_does_nothing(built: Path, tmp_path: Path) -> None:
    home = copied(built, tmp_path)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with alone(home) as context:
        told = erase(context, Subject(ANN), dry_run=True)
        assert told.n_days <= len(context.landing.day_inputs()), "neighbours that hold nothing are no days"
    assert (told.n_sessions, told.n_files, told.is_dry) == (4, 3, True)
    assert told.n_analyses == 3
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and "_staging" not in str(path)}
    assert after == {path: data for path, data in before.items() if "_staging" not in str(path)}


def test_the_command_names_nobody_and_refuses_two_people(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copied(small, tmp_path)
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    asked = ["erase", "--home", str(home), "--json"]
    told = CliRunner().invoke(app, [*asked, "--user", ANN, "--dry-run"])
    assert told.exit_code == 0, told.output
    assert '"n_sessions": 4' in told.stdout
    assert "nakamoto" not in told.output.lower()
    for wrong in ([], ["--user", "a", "--token", "b"], ["--token", "b", "--tenant", "t"]):
        assert CliRunner().invoke(app, [*asked, *wrong]).exit_code == 2
    assert CliRunner().invoke(app, [*asked, "--token", "u_" + "a" * 20]).exit_code == 2
    left = CliRunner().invoke(app, ["doctor", "--home", str(home), "--json"])
    assert '"erasure_pending": false' in left.stdout
    assert CliRunner().invoke(app, ["retention", "--home", str(home), "--json"]).stdout.strip().endswith('"days": []}')
