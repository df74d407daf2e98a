"""Tiers at work: what each stores, and that the numbers are the same in all of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tiers import Tier, kept_in, withheld
from evalpipe.contracts.vectors import PACKED, pack, unpack
from evalpipe.locations import data_dir
from evalpipe.settings import load
from evalpipe.steps.context import Context
from evalpipe.steps.land import land
from evalpipe.steps.masked import make_masked
from evalpipe.steps.raw import make_raw
from evalpipe.steps.tighten import tighten
from evalpipe.store.lake import stage_part
from evalpipe.store.manifest import STEP_TABLES, Manifest
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

SIGNALS = (*STEP_TABLES["signals"], *STEP_TABLES["outcomes"])
NEXT = DAY + timedelta(days=1)
SAID = ("Now the tests fail again, that is wrong", "perfect, that works now, thanks a lot")


def talk(folder: Path, name: str, **more: object) -> Path:
    """A session with a complaint, a failed command and praise."""
    step = {"type": "step", "session_id": name, "at": f"{DAY}T10:00:05Z"}
    call = {**step, "step_id": "7", "kind": "tool", "name": "Bash", "arguments": '{"command": "pytest -q"}',
            "output": "bash: pytest: command not found", "exit_code": 127}  # fmt: skip
    said = [{**step, "step_id": f"{n}", "kind": "user", "text": text} for n, text in enumerate(SAID, 8)]
    answer = {**step, "step_id": "88", "kind": "agent", "text": "I have mended it.", "model": "m-1"}
    return write(folder / f"{name}.jsonl", *session(name, **more), call, said[0], answer, said[1])


def set_tiers(folder: Path, text: str, **settings: str) -> None:
    head = "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    (folder / "evalpipe.toml").write_text(f"{head}[tiers]\n{text}\n")


def step_of(table: str) -> str:
    return "outcomes" if table in STEP_TABLES["outcomes"] else "signals"


def slice_of(context: Context, step: str) -> Manifest:
    manifest = context.lookup(step, DAY)
    assert manifest is not None
    return manifest


def all_text(context: Context) -> int:
    """Values of text in all committed tables behind raw."""
    n = 0
    for step in ("masked", "signals", "outcomes"):
        for manifest in context.lake.manifests(step):
            for table in {part.table for part in manifest.parts}:
                data = context.lake.read(table, [manifest])
                n += sum(data[name].drop_nulls().len() for name in withheld(TABLES[table], Tier.VECTORS))
    return n


def signals_of(context: Context) -> dict[str, pl.DataFrame]:
    found = {}
    for table in SIGNALS:
        found[table] = context.lake.read(table, context.lake.manifests(step_of(table)))
    return found


def test_numbers_are_the_same_in_every_tier_and_vectors_store_no_text(tmp_path: Path) -> None:
    made, tier = {}, "snippets"
    for name in ("vectors", tier):
        folder = tmp_path / name
        folder.mkdir()
        set_tiers(folder, f'default = "{name}"')
        with opened(folder / "home") as context:
            land(context, [talk(folder, "a"), talk(folder, "b", user_id="u-2")])
            assert not any(result.red for result in make(context).values())
            made[name] = signals_of(context)
            assert (all_text(context) == 0) == (name == "vectors")
            assert rows(context, "masked.steps").height, "steps stay, without text"
            assert not context.plan().stale
    assert made[tier]["signals.hard"]["snippet"].drop_nulls().len() > 0
    for table, expected in made[tier].items():
        gone = withheld(TABLES[table], Tier.VECTORS)
        assert made["vectors"][table].drop(gone).equals(expected.drop(gone)), table
    assert (made["vectors"]["signals.semantic"]["span_end"] > 0).all(), "offsets stay"


def test_a_tier_holds_for_its_source_only(tmp_path: Path) -> None:
    set_tiers(tmp_path, 'evalpipe_jsonl = "vectors"')
    with opened(tmp_path / "home") as context:
        land(context, [talk(tmp_path, "a")])
        make(context)
        assert all_text(context) == 0
    set_tiers(tmp_path, 'claude_code = "vectors"')
    with opened(tmp_path / "home") as context:
        assert context.plan().stale[DAY] == ("masked", "input changed")
        make(context)
        assert all_text(context) > 0, "a looser tier is made anew from what was landed"
        assert rows(context, "masked.vectors").is_empty()


def test_packed_signals_come_back_as_they_were(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [talk(tmp_path, "a"), talk(tmp_path, "b")])
        make(context)
        tables = {table.full_name: rows(context, table.full_name) for table in PACKED}
        packed = pack(tables, "v")
        assert packed["session_id"].is_unique().all()
        assert packed.height == 2
        back = unpack(packed)
    for table in PACKED:
        gone = withheld(table, Tier.VECTORS)
        assert back[table.full_name].drop(gone).equals(tables[table.full_name].drop(gone)), table.name
        assert all(back[table.full_name][name].is_null().all() for name in gone)
    smuggled = packed.with_columns(pl.col("signals").str.replace('"signal_id"', '"snippet":"x","signal_id"'))
    assert pack(unpack(smuggled), "v").equals(packed)


def test_every_column_of_text_can_be_withheld_and_only_those() -> None:
    for table in TABLES.values():
        for column in table:
            is_kept = Tier.VECTORS in kept_in(table, column)
            assert is_kept or column.nullable, f"{table.full_name}.{column.name}"
    assert withheld(TABLES["masked.steps"], Tier.VECTORS) == ("text", "arguments", "output")
    assert withheld(TABLES["signals.hard"], Tier.VECTORS) == ("snippet",)
    assert not withheld(TABLES["signals.hard"], Tier.SNIPPETS)
    assert not withheld(TABLES["raw.steps"], Tier.VECTORS)


def test_tiers_are_written_as_a_table_or_in_the_environment(tmp_path: Path) -> None:
    set_tiers(tmp_path, 'default = "snippets"\ncodex = "vectors"')
    tiers = load(folder=tmp_path, environ={}).tiers
    assert (tiers.of("codex"), tiers.of("claude_code")) == (Tier.VECTORS, Tier.SNIPPETS)
    tiers = load(folder=tmp_path, environ={"EVALPIPE_TIERS": "vectors, codex = snippets"}).tiers
    assert (tiers.of("codex"), tiers.of("claude_code")) == (Tier.SNIPPETS, Tier.VECTORS)
    for bad in ("full", "codex=", "codex=snippets,codex=vectors"):
        with pytest.raises(EvalpipeError, match="SETTINGS_INVALID"):
            load(folder=tmp_path, environ={"EVALPIPE_TIERS": bad})
    set_tiers(tmp_path, 'claude = "vectors"')
    with pytest.raises(EvalpipeError, match="SETTINGS_INVALID"), opened(tmp_path / "home"):
        pass


def test_a_stricter_tier_takes_text_from_all_stored_slices_at_once(tmp_path: Path) -> None:
    log = talk(tmp_path, "a")
    extra = write(tmp_path / "late.jsonl", *session("late", NEXT))
    with opened(tmp_path / "home") as context:
        land(context, [log])
        make(context)
        before = signals_of(context)
    other = data_dir() / "criteria" / "default.toml"
    (tmp_path / "other.toml").write_text(other.read_text().replace("snippet_chars = 160", "snippet_chars = 80"))
    set_tiers(tmp_path, 'default = "snippets"', criteria=str(tmp_path / "other.toml"))
    with opened(tmp_path / "home") as context:
        make(context)
        assert len(context.lake.manifests("signals")) == 2
    set_tiers(tmp_path, 'default = "vectors"')
    with opened(tmp_path / "home") as context:
        land(context, [extra])
        assert sorted(context.plan().stale) == [DAY, NEXT]
        inputs = context.landing.day_inputs()
        make_raw(context, [NEXT], inputs)
        done = make_masked(context, [NEXT], inputs)
        assert sorted(done.made) == [NEXT]
        assert all_text(context) == 0, "another day, and signals of other criteria too"
        named = {path for m in context.lake.manifests("masked") for path in context.lake.paths_of(m)}
        assert named == set((tmp_path / "home" / "lake" / "masked").rglob("*.parquet")), (
            "nothing waits for a grace time"
        )
        rest = make(context)
        assert sorted(rest["masked"].made) == [], "nothing is masked again"
        assert not context.plan().stale
        for table, expected in before.items():
            gone = withheld(TABLES[table], Tier.VECTORS)
            found = context.lake.read(table, [slice_of(context, step_of(table))])
            assert found.drop(gone).equals(expected.drop(gone)), table
    with opened(tmp_path / "home") as context:
        assert tighten(context) == []


def test_text_that_has_expired_is_not_extracted_from_again(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [talk(tmp_path, "a")])
        make(context)
        masked, before = slice_of(context, "masked"), slice_of(context, "signals")
        staged = [
            stage_part(
                part.table,
                pl.read_parquet(path).with_columns(
                    pl.lit(None, pl.String).alias(name) for name in withheld(TABLES[part.table], Tier.VECTORS)
                ),
                context.lake.staging_folder(masked.key),
                f"{index}",
            )
            for index, (part, path) in enumerate(zip(masked.parts, context.lake.paths_of(masked), strict=True))
        ]
        context.lake.commit(masked.key, staged, inputs=masked.inputs, code_version=masked.code_version)
    set_tiers(tmp_path, 'default = "vectors"')
    with opened(tmp_path / "home") as context:
        assert tighten(context) == [DAY], "snippets go"
        assert rows(context, "masked.vectors").is_empty()
        assert rows(context, "signals.hard").height == before.rows("signals.hard")
        assert all_text(context) == 0
