"""The loop over one home: drawn, labelled, imported, published, demoted, erased."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.console import doctor
from evalpipe.console import review as review_verbs
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.definitions import build_defs
from evalpipe.masking.tombstones import Subject
from evalpipe.orchestration.partitions import range_tags
from evalpipe.steps import reviews, rotation
from evalpipe.steps.analysis import latest, make_analysis, outdated, stale_as_of_days
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.erase import erase
from evalpipe.steps.land import land
from evalpipe.steps.publish import committed, compare, publish
from evalpipe.steps.retention import retain
from evalpipe.steps.review_sample import again, sample
from evalpipe.steps.signals import DEMOTED
from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.orchestration.small import settings_of
from evalpipe_tests.steps.remains import places_of
from evalpipe_tests.steps.test_erase import KEY, alone
from evalpipe_tests.steps.world import AS_OF, DAY, make, rows, session, write

#: What the user answers in each third session, and what that is.
SAID = ("It works now, thank you so much", "no, that is wrong, use the other file", "and now add a button")
TRUTH = ("confirm.explicit", "correction", "iteration")
PT = "não, está errado, use o outro arquivo"


def talk(n: int) -> list[dict[str, object]]:
    name, text = f"s-{n:02d}", SAID[n % 3] if n < 90 else PT
    step = {"type": "step", "session_id": name, "at": f"{DAY}T10:00:09Z"}
    head, ask, answer = session(name, user_id=f"user-{n}", model=f"m-{n % 2}")
    return [
        head,
        ask if n < 90 else ask | {"text": "por favor, corrija o erro que aparece no arquivo"},
        answer,
        step | {"step_id": "t", "kind": "tool", "name": "Bash", "arguments": '{"command": "ls"}', "output": "x"},
        step | {"step_id": "9", "kind": "user", "text": f"{text} qwx{n:02d}"},
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    with alone(folder / "home") as context:
        land(context, [write(folder / "logs.jsonl", *(row for n in range(93) for row in talk(n)))])
        land(context, [write(folder / "broken.jsonl", tail="{broken")], undated_as=DAY.replace(day=9))
        make(context)
        make_analysis(context, [AS_OF], "all")
        publish(context)
    return folder / "home"


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "home")
    return tmp_path / "home"


def label(folder: Path, items: Sequence[dict[str, Any]], name: str, **wrong: str) -> Path:
    """A reviewer who knows the truth, but for the labels that they take for others."""
    out = []
    for item in items:
        kind = next((TRUTH[n] for n in range(3) if item["shown"].startswith(SAID[n])), "correction")
        kind = "ok" if item["kind"] == "call" else wrong.get(kind.split(".")[0], kind)
        out.append(item | {"labels": [kind], "note": "said qwx-note"})
    return write(folder / f"{name}.jsonl", *out)


def outcomes(context: Context) -> pl.DataFrame:
    days = context.lake.days("outcomes", context.versions.variants["outcomes"])
    found = [m for day in days if (m := context.lookup("outcomes", day)) is not None]
    return context.lake.read("signals.session_outcomes", found)


def published(context: Context, sql: str) -> list[dict[str, Any]]:
    return Warehouse(context.settings.warehouse).query(sql).to_dicts()


def test_a_sample_shows_neither_model_nor_detector_and_repeats(home: Path) -> None:
    with alone(home) as context:
        made = sample(context, 60)
        key = reviews.read(context.lake, reviews.ITEMS)
        assert len(made.items) == key.height == 60
        assert {"turn", "call"} == set(key["kind"])
        assert (key["emitted"].list.len() == 0).any(), "turns without a signal are drawn too"
        assert set(key["lang"]) == {"en", "pt", "any"}
        assert key["inclusion_prob"].is_between(0, 1, closed="right").all()
        told = json.dumps(made.items)
        assert "m-0" not in told
        assert "en.correct" not in told
        assert [item["item_id"] for item in made.items] == sorted(key["item_id"]), "the order tells nothing"
        assert again(context, made.sample_id).items == made.items

        def broken(items: list[dict[str, Any]]) -> None:
            raise OSError(len(items))

        with pytest.raises(OSError, match="60"):
            sample(context, 60, keep=broken)
        assert reviews.read(context.lake, reviews.ITEMS).height == 60, "what nobody was given was not drawn"
        more = sample(context, 60)
        both = reviews.read(context.lake, reviews.ITEMS)
        assert both.select("session_id", "seq").n_unique() == both.height == 120, "nothing is drawn twice"
        assert more.sample_id != made.sample_id
    with alone(home.parent / "again") as context:
        land(context, [write(home.parent / "logs.jsonl", *(row for n in range(93) for row in talk(n)))])
        make(context)
        assert sample(context, 60).items == made.items


def test_an_import_is_whole_or_nothing_and_knows_what_it_has(home: Path) -> None:
    with alone(home) as context:
        items = sample(context, 30).items
        good = label(home.parent, items, "good")
        for change, what in (
            ({"item_id": "nope.0001", "labels": ["unsure"]}, "no sample"),
            ({"item_id": items[0]["item_id"][:-4] + "0031", "labels": ["unsure"]}, "no sample"),
            ({"labels": ["made_up"]}, "unknown"),
            ({"labels": ["neutral", "praise"]}, "alone"),
            ({"labels": ["ok" if items[0]["kind"] == "turn" else "praise"]}, "is not for"),
        ):
            bad = write(home.parent / "bad.jsonl", items[0] | change)
            with pytest.raises(EvalpipeError, match="REVIEW_INVALID") as caught:
                reviews.add(context, [good, bad] if "item_id" in change else [bad], "ann")
            assert what in caught.value.what
            assert not context.lake.appended(reviews.OPINIONS)
        assert reviews.add(context, [good], "ann").n_new == 30
        assert reviews.add(context, [good], "ann").n_new == 0
        changed = reviews.add(context, [label(home.parent, items, "other", correction="neutral")], "ann")
        assert 0 < changed.n_changed == changed.n_new < 30
        told = reviews.read(context.lake, reviews.OPINIONS)
        assert told["revision"].max() == 2


def test_reviews_correct_rates_of_the_versions_and_stop_no_decision(home: Path) -> None:
    with alone(home) as context:
        old = latest(context)
        assert old is not None
        rates = context.lake.read("analysis.corrected_rates", [old]).filter(signal="correction")
        assert rates.select("status", "reasons").rows() == [("unavailable", ["no_reviews"])] * 2
        assert rates["n_units"].sum() == 93, "one answer a session"
        reviews.add(context, [label(home.parent, sample(context, 400).items, "ann")], "ann")
        assert outdated(context, old) is None, "what reviewers say moves no number that a gate reads"
        assert stale_as_of_days(context) == [], "this window is none of the trailing ones"
        made = make_analysis(context, [AS_OF], "all").made[AS_OF]
        assert made.content != old.content
        now = context.lake.read("analysis.corrected_rates", [made]).filter(signal="correction")
        assert now["method"].to_list() == ["ppi", "ppi"]
        assert now["n_reviewed"].sum() == 93
        pairs, layers = (context.lake.read(f"analysis.{name}", [made]) for name in ("concordance", "layer_agreement"))
        assert pairs["audit_order"].null_count() == 0, "reviewers are a second layer"
        assert pairs.select("n_layers", "status").rows() == [(2, "ok")]
        assert layers.filter(second_layer="tasks")["reasons"].to_list() == [["no_controlled_tasks"]]
        before = context.lake.read("analysis.concordance", [old])
        assert before.select("status", "sessions_difference").rows() == [("unavailable", None)]
        assert now["rate"].to_list() == pytest.approx(now["raw_rate"].to_list()), "no label contradicts the detector"
        assert now["reasons"].to_list() == [["few_errors_seen"]] * 2
        assert make_analysis(context, [AS_OF], "all").fresh.keys() == {AS_OF}
        numbers = [context.lake.read("analysis.net_improvement", [one]) for one in (old, made)]
        assert numbers[0].equals(numbers[1])


def test_reviews_demote_for_their_language_and_the_days_follow(home: Path) -> None:
    with alone(home) as context:
        assert not context.plan().stale
        before = outcomes(context)
        items = sample(context, 400).items
        done = reviews.add(context, [label(home.parent, items, "ann", correction="neutral")], "ann")
        assert done.demoted == (("correction", "en"),), "three reviews say nothing of Portuguese"
    with alone(home) as context:
        assert list(context.plan().days) == [DAY]
        assert context.plan().stale[DAY] == ("outcomes", "input changed")
        with pytest.raises(EvalpipeError, match="MIXED_SIGNALS") as caught:
            make_analysis(context, [AS_OF], "all")
        assert f"backfill {DAY}..{DAY}" in caught.value.fix
        old = latest(context)
        assert old is not None
        assert "reviews demoted" in (outdated(context, old) or "")
        make(context)
        made = make_analysis(context, [AS_OF], "all").made[AS_OF]
        checks = context.lake.read("analysis.diagnostics", [made]).filter(check_name="demoted_signal")
        assert checks.select("subject", "status").rows() == [("correction@en", "suspect")]
        assert not context.plan().stale
        after = outcomes(context)
        manifest = context.lookup("outcomes", DAY)
        assert manifest is not None
        assert manifest.stats[DEMOTED] == ["correction@en"]
        both = before.join(after, on="session_id", suffix="_now").filter(pl.col("correction_num") == 1)
        english, other = both.filter(language="en"), both.filter(language="pt")
        assert (english.height, other.height) == (30, 3)
        assert english["correction_num_now"].is_null().all(), "what is not counted is unknown, and not absent"
        assert english["steerability_den_now"].is_null().all()
        assert english["signal_score_now"].eq(0.0).all()
        assert other["correction_num_now"].eq(1.0).all()
        publish(context)
        rows = published(context, "FROM signals.quality WHERE lang = 'en' AND model = 'all' AND signal = 'correction'")
        assert [(row["status"], row["is_counted"], row["n_reviewed"], row["precision"]) for row in rows] == [
            ("demoted", False, 30, 0.0)
        ]
        confirmed = published(context, "FROM signals.quality WHERE signal = 'confirm.explicit' AND lang = 'en'")
        assert {row["model"]: row["status"] for row in confirmed} == {
            "all": "proven",
            "m-0": "unproven",
            "m-1": "unproven",
        }
        assert review_verbs.alarms(context.settings)["demoted"] == ["correction@en: 30 reviewed, bound 0.00 under 0.85"]
        with Warehouse(context.settings.warehouse).open_readonly() as connection:
            assert not compare(context, committed(context), connection).differing
        # A second opinion on all of them, and the first reviewer's own: the signal counts again.
        reviews.add(context, [label(home.parent, items, "bea")], "bea")
        assert reviews.add(context, [label(home.parent, items, "ann2")], "ann").promoted == (("correction", "en"),)
        publish(context)
        same = published(context, "FROM signals.agreement WHERE lang = 'all' AND kind = 'turn'")
        assert [(row["reviewer"], row["other"], row["kappa"]) for row in same] == [("ann", "bea", pytest.approx(1.0))]
    with alone(home) as context:
        make(context)
        assert outcomes(context).equals(before)


def test_reviews_of_an_erased_person_go_and_remarks_expire(home: Path) -> None:
    with alone(home) as context:
        items = sample(context, 400).items
        reviews.add(context, [label(home.parent, items, "ann")], "ann")
        publish(context)
        mine = {context.mask_plan.rekey("s", "evalpipe_jsonl:s-01"), "qwx01"}
        assert set(places_of(home, mine)) == mine
        n = reviews.read(context.lake, reviews.OPINIONS).height
    with alone(home) as context:
        erase(context, Subject("user-1"))
        assert reviews.read(context.lake, reviews.OPINIONS).height == n - 2
        again = reviews.add(context, [label(home.parent, items, "bea")], "bea")
        assert (again.n_gone, again.n_new) == (2, n - 2), "labels of the others are still welcome"
        reviews.take_away(context.lake, lambda _, all_rows: all_rows.filter(pl.col("reviewer") == "ann")
                          if "reviewer" in all_rows.columns else all_rows)  # fmt: skip
    assert places_of(home, mine) == {}
    with alone(home) as context:
        assert reviews.read(context.lake, reviews.OPINIONS)["note"].null_count() == 0
        retain(context, AS_OF.replace(year=2100))
        assert reviews.read(context.lake, reviews.OPINIONS)["note"].null_count() == n - 2
        with pytest.raises(EvalpipeError, match="NO_TEXT_TO_REVIEW"):
            sample(context, 10)


def test_reviews_move_with_the_key(home: Path) -> None:
    with alone(home) as context:
        items = sample(context, 30).items
        reviews.add(context, [label(home.parent, items, "ann")], "ann")
        settings = context.settings
    chain = {"EVALPIPE_KEY": f"{KEY['EVALPIPE_KEY']},{'6f' * 32}"}
    rotation.rotate(settings, chain)
    with open_context(settings, as_of=AS_OF, environ=chain) as context:
        known = rows(context, "masked.sessions").select("session_id")
        for table in reviews.APPENDED:
            moved = reviews.read(context.lake, table)
            assert moved.height == (186 if table == reviews.FRAMES else 30)
            assert moved.join(known, on="session_id", how="anti").is_empty(), table
        assert reviews.add(context, [label(home.parent, items, "ann")], "ann").n_new == 0, "the files still fit"


def test_the_commands_and_the_checks_of_a_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["review", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    out, at = home.parent / "r.csv", ["--home", str(home)]
    told = json.loads(run("sample", "--size", "400", "--out", str(out), "--json", *at))
    assert (told["items"], told["sessions_without_text"]) == (186, 0)
    assert out.stat().st_mode & 0o777 == 0o600
    assert str(home.parent / "r.html") in run("page", str(out))
    wrong = pl.read_csv(out).with_columns(labels=pl.when(kind="call").then(pl.lit("ok")).otherwise(pl.lit("neutral")))
    wrong.write_csv(out)
    with monkeypatch.context() as broken:
        broken.setattr("evalpipe.console.review.publish", lambda context: 1 / 0)
        assert CliRunner().invoke(app, ["review", "import", str(out), "--reviewer", "ann", *at]).exit_code != 0
    # The labels are kept already; what they move is news until a publish shows it.
    told = json.loads(run("import", str(out), "--reviewer", "ann", "--json", *at))
    assert told["new"] == 0
    assert told["demoted"] == ["confirm.explicit@en", "correction@en", "praise@en"]
    assert told["days_stale"] == [f"{DAY}..{DAY}"]
    assert json.loads(run("import", str(out), "--reviewer", "ann", "--json", *at))["demoted"] == []
    listed = {(row["signal"], row["lang"]): row["status"] for row in json.loads(run("quality", "--json", *at))}
    assert (listed["correction", "en"], listed["correction", "pt"]) == ("demoted", "unproven")
    for words in (["import", str(out), "--reviewer", "a b", *at], ["sample", "--out", "x.txt", *at]):
        assert CliRunner().invoke(app, ["review", *words]).exit_code == 2
    settings = settings_of(home.parent)
    defs = build_defs(settings, as_of=str(AS_OF))
    with dg.DagsterInstance.ephemeral() as instance:
        done = defs.resolve_job_def("late").execute_in_process(
            instance=instance, tags=range_tags(DAY, DAY), raise_on_error=False
        )
    assert done.success, "a signal that is not counted marks a run and stops nothing"
    found = {e.check_name: e for e in done.get_asset_check_evaluations()}
    counted = found["demoted_signals_are_not_counted"]
    assert (counted.passed, counted.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert counted.metadata["demoted"].value == ["confirm.explicit@en", "correction@en", "praise@en"]
    precise = found["signals_are_precise"]
    assert (precise.passed, precise.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found["golden_set_holds"].passed
    assert found["detectors_have_not_drifted"].passed
    # Outcomes that count it all the same stop the run.
    monkeypatch.setattr("evalpipe.steps.evidence.overtaken", lambda *_: [DAY])
    with dg.DagsterInstance.ephemeral() as instance:
        stopped = defs.resolve_job_def("late").execute_in_process(
            instance=instance, tags=range_tags(DAY, DAY), raise_on_error=False
        )
    assert not stopped.success
    assert not [e for e in stopped.all_events if e.is_successful_output and e.step_key == "build_warehouse"]


def test_the_doctor_goes_past_a_damaged_file_of_reviews_and_names_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    folder = home / "lake" / "signals" / "reviews"
    folder.mkdir(parents=True, exist_ok=True)
    broken = folder / "zz.parquet"
    broken.write_bytes(b"PAR1 no parquet")
    doctor.doctor(settings_of(home.parent), as_json=True)
    assert json.loads(capsys.readouterr().out)["reviews_damaged"] == [str(broken)]


def test_the_doctor_looks_at_a_home_that_cannot_be_written(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    opened, files = os.open, sorted(str(path) for path in home.rglob("*"))

    def read_only(path: str | Path, flags: int, *more: int, **named: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT) and str(path).startswith(str(home)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)
    (home / "home.lock").unlink(missing_ok=True)
    doctor.doctor(settings_of(home.parent), as_json=True)
    assert json.loads(capsys.readouterr().out)["warehouse"] == "published"
    with pytest.raises(OSError, match="Read-only"), open_context(settings_of(home.parent)):
        pass
    assert sorted(str(path) for path in home.rglob("*")) == [f for f in files if not f.endswith("/home.lock")]


def test_items_of_who_was_erased_are_known_as_gone(home: Path) -> None:
    with alone(home) as context:
        items = [item["item_id"] for item in sample(context, 30).items]
        assert reviews.gone(context.lake, [*items, "nope.0001"]) == frozenset()
        lost = set(reviews.read(context.lake, reviews.ITEMS).filter(item_id=items[0])["session_id"])
        reviews.take_away(context.lake, lambda _, rows: rows.filter(~pl.col("session_id").is_in(sorted(lost))))
        assert items[0] in reviews.gone(context.lake, items)


def test_weights_are_proposed_from_labelled_sessions(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    with alone(home) as context:
        made = list(context.lake.manifests("outcomes"))
        sessions = context.lake.read("signals.session_outcomes", made, ["session_id"])["session_id"].to_list()
    file = home.parent / "labels.csv"
    rows = [f"{name},{n % 2}" for n, name in enumerate([*sessions, "s_elsewhere"])]
    file.write_text("\n".join(["session_id,success", *rows]), "utf-8")
    words = ["review", "weights", "--home", str(home), "--json"]
    done = CliRunner().invoke(app, [*words, str(file)])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["status"], told["reason"], told["n_labels"], told["n_elsewhere"]) == (
        "uncalibrated", "too_few_labels", len(sessions), 1,
    )  # fmt: skip
    by_name = {row["signal"]: row for row in told["weights"]}
    assert by_name["confirm.explicit"]["n_sessions"] == 30
    assert by_name["correction"]["n_sessions"] == 33
    assert '"correction" = 0.8' in told["toml"]
    shown = CliRunner().invoke(app, [*words[:-1], str(file)])
    assert "fewer than 200 sessions are labelled" in shown.stdout
    # No log here states success, and nobody labelled.
    none = CliRunner().invoke(app, words)
    assert none.exit_code == 2
    assert "NO_RESULT" in none.output
