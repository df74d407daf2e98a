"""A home that lost a file: what is lost is seen and made again, or told with a code, a place and a fix."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import HOME_LAYOUT, load, open_home
from evalpipe.steps import rejections
from evalpipe.steps.analysis import make_analysis
from evalpipe.steps.context import Context
from evalpipe.steps.decisions import make_scorecard
from evalpipe.steps.land import land
from evalpipe.store.manifest import LAYOUT
from evalpipe_tests.steps.world import DAY, make, opened, session, write

STEPS = ("raw", "masked", "signals", "outcomes")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log and a home that was run whole: a copy takes no time, a run does."""
    folder = tmp_path_factory.mktemp("built")
    log = write(folder / "logs" / "a.jsonl", *session("a"), *session("b", turns=2), tail='{"type"\n')
    with opened(folder / "home") as context:
        land(context, [log])
        done = make(context)
        assert [len(done[step].made) for step in STEPS] == [1, 1, 1, 1]
        assert context.plan().days == []
    return folder


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path / "home"


def _parts(context: Context, step: str) -> list[Path]:
    manifest = context.lookup(step, DAY)
    assert manifest is not None
    return context.lake.paths_of(manifest)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("harm", ["lost", "cut"])
def test_a_lost_or_cut_part_makes_its_day_stale_and_is_made_again(home: Path, step: str, harm: str) -> None:
    with opened(home) as context:
        paths = _parts(context, step)
        whole = {path: path.read_bytes() for path in paths}
        for path in paths:
            if harm == "lost":
                path.unlink()
            else:
                path.write_bytes(whole[path][:10])
        why = {"lost": "a part is missing", "cut": "a part is damaged"}[harm]
        assert context.plan().stale[DAY] == (step, why)
        done = make(context)
        assert [name for name in STEPS if done[name].made] == [step], "what follows had not changed"
        assert {path: path.read_bytes() for path in paths} == whole
        assert context.plan().days == []


def test_landed_text_that_is_gone_refuses_the_day_and_keeps_the_old_slice(home: Path, tmp_path: Path) -> None:
    with opened(home) as context:
        landed = context.settings.landing / f"day={DAY}"
        shutil.move(landed, tmp_path / "purged")
        assert context.plan().days == [], "nothing needs the text"
        lost = _parts(context, "raw")[0]
        lost.unlink()
        before = context.lookup("raw", DAY)
        red = make(context, "raw")["raw"].red[DAY]
        assert red.code == "INPUT_EXPIRED"
        assert red.where == str(landed)
        entry = next((context.settings.landing / "_batches").glob("*.json"))
        assert str(entry) in red.fix
        assert context.lookup("raw", DAY) == before
        assert context.plan().days == [], "a refused day waits"
        shutil.move(tmp_path / "purged", landed)
        assert context.plan().days == [DAY], "the text is there again"
        assert make(context, "raw")["raw"].red == {}
        assert lost.is_file()
        assert rejections.rejected(context.lake) == {}


def test_the_fix_of_expired_input_mends_it(home: Path) -> None:
    with opened(home) as context:
        shutil.rmtree(context.settings.landing / f"day={DAY}")
        for path in _parts(context, "raw"):
            path.unlink()
        assert make(context, "raw")["raw"].red[DAY].code == "INPUT_EXPIRED"
        next((context.settings.landing / "_batches").glob("*.json")).unlink()
        assert land(context, [home.parent / "logs"]).n_new_files == 1
        assert context.plan().days == [DAY]
        assert make(context)["raw"].red == {}
        assert context.plan().days == []


def test_an_analysis_or_a_scorecard_that_lost_a_part_is_made_again(tmp_path: Path) -> None:
    rows = [row for i in range(24) for row in session(f"s{i}", model=f"m-{i % 2}", user_id=f"u-{i}")]
    as_of = DAY + timedelta(days=5)
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *rows)])
        make(context)
        made = make_analysis(context, [as_of], "all").made[as_of]
        version = context.lake.read("analysis.net_improvement", [made])["version"][0]
        card = make_scorecard(context, version)
        assert make_analysis(context, [as_of], "all").made == {}
        for manifest in (made, card):
            paths = context.lake.paths_of(manifest)
            for path in paths:
                path.unlink()
            again = make_analysis(context, [as_of], "all").made.get(as_of) if manifest is made else None
            assert (again or make_scorecard(context, version)) == manifest
            assert all(path.is_file() for path in paths)
        assert context.lake.appended("analysis.corrections") == [], "no number moved"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", f'{{"layout": {HOME_LAYOUT}}}', f'{{"layout": {HOME_LAYOUT}, "first_day": "soon"}}']
)
def test_a_broken_home_file_has_a_code_a_place_and_a_fix(tmp_path: Path, text: str) -> None:
    settings = load(folder=tmp_path, environ={}, home=tmp_path / "home", first_day=date(2025, 1, 1))
    marker = open_home(settings).home / "home.json"
    marker.write_text(text, "utf-8")
    with pytest.raises(EvalpipeError, match="HOME_DAMAGED") as caught:
        open_home(settings)
    assert caught.value.where == str(marker)
    form = caught.value.fix[caught.value.fix.index("{") : caught.value.fix.index("}") + 1]
    marker.write_text(form, "utf-8")
    assert open_home(settings).first_day == date(2025, 1, 1)


def test_a_home_of_another_layout_is_refused(tmp_path: Path) -> None:
    assert HOME_LAYOUT == LAYOUT
    settings = load(folder=tmp_path, environ={}, home=tmp_path / "home")
    marker = open_home(settings).home / "home.json"
    marker.write_text(marker.read_text("utf-8").replace(f'"layout": {LAYOUT}', '"layout": 1'), "utf-8")
    with pytest.raises(EvalpipeError, match="HOME_INCOMPATIBLE"):
        open_home(settings)


@pytest.mark.parametrize("text", ["", "[]", '{"day": "2026-01-05"}'])
def test_a_broken_record_of_a_refusal_has_a_code_a_place_and_a_fix(home: Path, text: str) -> None:
    with opened(home) as context:
        path = context.lake.rejected / f"day={DAY}.json"
        path.write_text(text, "utf-8")
        with pytest.raises(EvalpipeError, match="HOME_DAMAGED") as caught:
            context.plan()
        assert caught.value.where == str(path)
        path.unlink()
        assert context.plan().days == []
