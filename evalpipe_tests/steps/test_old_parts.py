"""A home whose parts were written before their tables had the columns of today: every duty goes on over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.analysis import CORRECTIONS, GATES
from evalpipe.masking.tombstones import Subject
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import rescan, rotation
from evalpipe.steps.context import Context
from evalpipe.steps.erase import erase
from evalpipe.steps.land import land
from evalpipe.steps.publish import publish
from evalpipe.steps.tighten import tighten
from evalpipe.steps.withdrawal import drop_withdrawn, withdraw
from evalpipe.store.lake import Lake
from evalpipe.store.manifest import STEP_TABLES, Part, digest_of_file
from evalpipe.store.plan import SIGNALS_READ
from evalpipe_tests.steps import test_erase as homes
from evalpipe_tests.steps.test_later_columns import ROW
from evalpipe_tests.steps.test_tiers import set_tiers
from evalpipe_tests.steps.test_withdrawal import consent
from evalpipe_tests.steps.world import AS_OF, DAY, make, rows, session, write

#: Without these no table ever was, whether or not a row must have them.
_ALWAYS = frozenset({
    "session_id", "file_id", "user_id", "tenant", "source", "consent", "parent_session_id", "agent", "model",
    "started_at", "ended_at", "kind", "origin", "parent_id", "turn", "name", "text", "arguments", "output", "exit_code",
    "turns_to_confirmation", "at", "estimate", "lower", "upper", "numerator", "denominator", "value", "snippet", "tool", "rule_id",
})  # fmt: skip
_CORRECTION = {
    "as_of": AS_OF, "window_name": "all", "measurement": "m", "metric": "correction", "slice": "all", "version": "b",
    "old_receipt": "1", "new_receipt": "2", "reason": "recomputed",
}  # fmt: skip


def _older(lake: Lake) -> int:
    """Write all parts anew without the columns that may be null, and their manifests; the columns left out."""
    moved: dict[str, str] = {}
    n_dropped = 0
    for step, tables in STEP_TABLES.items():
        for manifest in lake.manifests(step):
            parts = []
            for part, path in zip(manifest.parts, lake.paths_of(manifest), strict=True):
                late = [
                    c.name
                    for c in TABLES[part.table]
                    if c.nullable and c.name not in _ALWAYS and not c.name.endswith("_num")
                ]
                data, draft = pl.read_parquet(path), path.with_suffix(".draft")
                n_dropped += len(late)
                data.drop(late, strict=False).write_parquet(draft, compression="zstd")
                new = Part(part.table, digest_of_file(draft), part.rows, draft.stat().st_size)
                path.unlink(missing_ok=True)
                draft.rename(path.with_name(new.file_name))
                parts.append(new)
            old = replace(manifest, parts=tuple(parts))
            for names in (SIGNALS_READ, ("masked.sessions",), tables):
                moved[manifest.content_of(*names)] = old.content_of(*names)
            old = replace(old, inputs={name: moved.get(value, value) for name, value in old.inputs.items()})
            lake.manifest_path(old.key).write_text(old.to_json())
    return n_dropped


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs and an old home, its decisions and corrections as old as its parts."""
    folder = tmp_path_factory.mktemp("old")
    homes.build(folder, is_small=True)
    with homes.alone(folder / "home") as context:
        n_dropped = _older(context.lake)
        assert n_dropped > 200
        for table, row, late in (
            (GATES, ROW, ("score_lower", "p_score", "df")),
            (CORRECTIONS, _CORRECTION, ("reason", "old_n_sessions")),
        ):
            place = context.lake.root / "analysis" / table.name
            place.mkdir(parents=True, exist_ok=True)
            conform(table, frame(table, [row])).drop(late).write_parquet(place / "old.parquet")
    return folder


def _opened(built: Path, folder: Path, work: Callable[[Context], None]) -> None:
    homes.copied(built, folder)
    with homes.alone(folder / "home") as context:
        work(context)


def _night(context: Context, folder: Path) -> None:
    late = write(folder / "late.jsonl", *session("late", DAY, user_id="zoe"))
    land(context, [late])
    done = make(context)
    assert [one.red or one.held for one in done.values() if one.red or one.held] == []
    assert analysis_step.make_analysis(context, [AS_OF], "all").made
    publish(context)
    assert rows(context, "masked.sessions").height > 1


def test_the_next_night_goes_on(built: Path, tmp_path: Path) -> None:
    _opened(built, tmp_path, lambda context: _night(context, tmp_path))


def test_a_rotation_moves_every_part(built: Path, tmp_path: Path) -> None:
    home = homes.copied(built, tmp_path)
    with homes.alone(home) as context:
        settings = context.settings
    done = rotation.rotate(settings, {"EVALPIPE_KEY": ",".join((homes.KEY["EVALPIPE_KEY"], "6f" * 32))})
    lake = Lake(settings.lake)
    assert done.slices == sum(len(lake.manifests(step)) for step in STEP_TABLES if step not in ("raw", "scorecard"))
    for step, tables in STEP_TABLES.items():
        for table in tables if step != "raw" else ():
            lake.read(table, lake.manifests(step))
    (gates,) = lake.appended("analysis.gates")
    assert pl.read_parquet(gates)["estimate"].to_list() == [ROW["estimate"]]


def test_a_withdrawal_empties_what_a_refused_day_keeps(built: Path, tmp_path: Path) -> None:
    homes.copied(built, tmp_path)
    consent(tmp_path, "user_id,status\nuser-0,withdrawn\n")

    def work(context: Context) -> None:
        before = rows(context, "masked.steps")["text"].null_count()
        assert sorted(withdraw(context, [DAY])) == [DAY]
        assert rows(context, "masked.steps")["text"].null_count() > before
        assert sorted(drop_withdrawn(context, "signals", [DAY])) == [DAY]
        assert sorted(drop_withdrawn(context, "outcomes", [DAY])) == [DAY]

    with homes.alone(tmp_path / "home") as context:
        work(context)


def test_a_stricter_tier_takes_the_text(built: Path, tmp_path: Path) -> None:
    homes.copied(built, tmp_path)
    set_tiers(tmp_path, 'default = "vectors"')
    with homes.alone(tmp_path / "home") as context:
        assert DAY in tighten(context)
        assert rows(context, "masked.steps")["text"].drop_nulls().is_empty()
        assert tighten(context) == []


def test_an_erasure_goes_through(built: Path, tmp_path: Path) -> None:
    def work(context: Context) -> None:
        hers = {context.mask_plan.rekey("u", name) for name in (homes.ANN, homes.ANN.upper())}
        assert erase(context, Subject(homes.ANN)).n_sessions == 4
        assert hers.isdisjoint(rows(context, "masked.sessions")["user_id"].to_list())

    _opened(built, tmp_path, work)


def test_what_is_kept_can_be_scanned_again_and_shown(built: Path, tmp_path: Path) -> None:
    def work(context: Context) -> None:
        made = context.lookup("masked", DAY)
        assert made is not None
        for parts, _ in rescan.pairs(context, made):
            for name, path in parts.items():
                assert rescan.as_raw(name, path).columns == list(TABLES[f"raw.{name}"].names)
        assert rescan.preview(context, [DAY]).is_empty()

    _opened(built, tmp_path, work)
