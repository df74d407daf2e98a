"""Edge files: what comes of them equals what comes of the logs, and what does not fit is refused."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tiers import Tier, withheld
from evalpipe.masking import MaskingKey
from evalpipe.settings import load
from evalpipe.simulate import Spec, simulate
from evalpipe.steps import edge as edge_step
from evalpipe.steps.analysis import make_analysis
from evalpipe.steps.context import Context
from evalpipe.steps.edge import EdgeResult, existing_key, make_edge
from evalpipe.steps.land import land
from evalpipe.steps.rotation import rotate
from evalpipe.store.manifest import STEP_TABLES
from evalpipe_tests.steps.test_tiers import signals_of, talk
from evalpipe_tests.steps.world import AS_OF, DAY, make, opened, rows, session, write

KEY = "5e" * 32


def edge(folder: Path, *sources: Path, out: str = "edge.jsonl.zst", key: str = KEY, **more: Any) -> Path:
    written(folder, *sources, out=out, key=key, **more)
    return folder / out


def written(folder: Path, *sources: Path, out: str = "edge.jsonl.zst", key: str = KEY, **more: Any) -> EdgeResult:
    settings = replace(load(folder=folder, environ={}, workers=1), **more)
    return make_edge(settings, sources, folder / out, MaskingKey.from_bytes(bytes.fromhex(key)))


def lines_of(path: Path) -> list[dict[str, Any]]:
    with pa.input_stream(path, compression="zstd") as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


def edited(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    records = lines_of(path)
    change(records)
    out = path.with_name(f"edited-{path.name}")
    with pa.output_stream(out, compression="zstd") as stream:
        stream.write("".join(json.dumps(record) + "\n" for record in records).encode())
    return out


def landed(home: Path, *sources: Path) -> dict[str, pl.DataFrame]:
    with opened(home) as context:
        land(context, sources)
        assert not any(result.red for result in make(context).values())
        assert not context.plan().stale
        return signals_of(context) | {"masked.sessions": rows(context, "masked.sessions")}


def assert_same(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> None:
    for table, expected in other.items():
        gone = {*withheld(TABLES[table], Tier.VECTORS)} | ({"file_id"} if table == "masked.sessions" else set())
        assert one[table].drop(gone).equals(expected.drop(gone)), table


def codes(context: Context) -> list[str]:
    return sorted(rows(context, "masked.quarantine")["code"])


def test_no_log_is_left_where_the_command_is_ended_or_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = talk(tmp_path, "a")
    temporary = tmp_path / "temporary"
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    dead, young = temporary / "evalpipe-edge-dead", temporary / "evalpipe-edge-young"
    for folder in (dead, young):
        folder.mkdir(parents=True)
        (folder / "log.jsonl").write_text("what somebody said")
    (dead / ".held").touch()
    seen = []

    def ended(*_: Any, **__: Any) -> None:
        seen.extend(folder.name for folder in temporary.iterdir())
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(edge_step, "land", ended)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit):
            edge(tmp_path, log)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    assert dead.name not in seen
    assert [folder.name for folder in temporary.iterdir()] == [young.name], "it may be somebody's who just began"
    assert not (tmp_path / "edge.jsonl.zst").exists()


def test_an_edge_file_gives_what_the_logs_give(tmp_path: Path) -> None:
    logs = [talk(tmp_path, "a"), talk(tmp_path, "b", user_id="u-2", tenant="acme", workspace="/home/ann/app")]
    central = landed(tmp_path / "central", *logs)
    assert central["signals.semantic"].height
    assert central["signals.hard"].height
    assert_same(landed(tmp_path / "far", edge(tmp_path, *logs)), central)


def test_the_file_says_who_made_it_and_holds_no_text_and_no_path(tmp_path: Path) -> None:
    log = talk(tmp_path, "a", user_id="ann.lee@example.com", workspace="/home/annlee/secret-project")
    log.write_text(log.read_text() + "{broken\n")
    path = edge(tmp_path, log)
    header, *records = lines_of(path)
    assert header["evalpipe_edge"] == "1"
    assert header["readers"] == {"evalpipe_jsonl": header["readers"]["evalpipe_jsonl"]}
    assert {"key", "key_epoch", "extraction", "ruleset", "tier"} <= set(header)
    assert sorted(record["type"] for record in records) == ["file", "quarantine", "session"]
    text = json.dumps([header, *records])
    for word in ("perfect", "pytest", "annlee", "ann.lee", "secret-project", str(tmp_path), "a.jsonl", "jsonl:a"):
        assert word not in text, word
    assert path.stat().st_mode & 0o077 == 0
    assert edge(tmp_path, log, out="again.zst").read_bytes() == path.read_bytes()


def test_edge_files_unite_and_come_twice_without_effect(tmp_path: Path) -> None:
    a, b = talk(tmp_path, "a"), talk(tmp_path, "b")
    central = landed(tmp_path / "central", a, b)
    one, two = edge(tmp_path, a, out="one.zst"), edge(tmp_path, b, out="two.zst")
    assert_same(landed(tmp_path / "far", one), landed(tmp_path / "alone", a))
    assert_same(landed(tmp_path / "far", two), central)
    with opened(tmp_path / "far") as context:
        assert land(context, [one, two]).n_new_files == 0
        assert not context.plan().stale


def test_of_a_log_and_an_edge_file_of_one_session_one_counts(tmp_path: Path) -> None:
    short = write(tmp_path / "short" / "a.jsonl", *session("a"))
    grown = write(tmp_path / "grown" / "a.jsonl", *session("a", turns=3))
    both = {
        "the log, if they are equal": ([edge(tmp_path, grown, out="1.zst"), grown], 0),
        "the longer log": ([edge(tmp_path, short, out="2.zst"), grown], 0),
        "the longer edge file": ([short, edge(tmp_path, grown, out="3.zst")], 1),
    }
    expected = landed(tmp_path / "central", grown)
    for index, (what, (files, n_vectors)) in enumerate(both.items()):
        for order in (files, files[::-1]):
            home = tmp_path / f"{index}{order is files}"
            for file in order:
                found = landed(home, file)
            assert_same(found, expected)
            with opened(home) as context:
                assert rows(context, "masked.vectors").height == n_vectors, what
                copies = rows(context, "masked.copies")
                assert copies["rule"].to_list() == ["same_session"], what
                assert copies["counted_session_id"][0] == found["masked.sessions"]["session_id"][0]


def test_the_same_words_in_an_edge_file_and_in_another_exporters_log_are_one_session(tmp_path: Path) -> None:
    said = (
        "Please rename the function parse_all to read_all in every module",
        "All forty calls are renamed and tests pass.",
    )
    log = [json.loads(line) for line in talk(tmp_path, "a").read_text().splitlines()]
    log[1]["text"], log[2]["text"] = said
    own = write(tmp_path / "own.jsonl", *log[:3])
    chat = {"messages": [{"role": "user", "content": said[0]}, {"role": "assistant", "content": said[1]}],
            "id": "other", "created_at": f"{DAY}T10:00:00Z"}  # fmt: skip
    other = write(tmp_path / "chat.jsonl", chat)
    with opened(tmp_path / "logs") as context:
        land(context, [own, other])
        make(context)
        n_central = rows(context, "masked.sessions").height
    found = landed(tmp_path / "far", edge(tmp_path, own), other)
    assert found["masked.sessions"].height == n_central


def test_what_does_not_fit_is_refused_by_code_and_read_once_it_fits(tmp_path: Path) -> None:
    log, fine = talk(tmp_path, "a"), talk(tmp_path, "b")
    path = edge(tmp_path, log)

    def other(name: str, value: str) -> Path:
        return edited(path, lambda records: records[0].update({name: value}))

    for name, value, code in (
        ("evalpipe_edge", "99", "EDGE_OTHER_FORMAT"),
        ("key", "feed", "EDGE_OTHER_KEY"),
        ("extraction", "0+other", "EDGE_OTHER_CRITERIA"),
    ):
        with opened(tmp_path / code) as context:
            land(context, [other(name, value), fine])
            make(context)
            assert codes(context) == [code]
            assert rows(context, "masked.sessions").height == 1, "others are read"
            assert land(context, [other(name, value), fine]).n_new_files == 0
    place = other("extraction", "0+other")
    with opened(tmp_path / "home") as context:
        land(context, [place])
        place.write_bytes(path.read_bytes())
        land(context, [place])
        make(context)
        assert codes(context) == []
        assert rows(context, "masked.sessions").height == 1


def test_lines_that_are_not_of_the_form_are_quarantined_and_the_others_kept(tmp_path: Path) -> None:
    path = edge(tmp_path, *(talk(tmp_path, name) for name in "abcdef"))

    def spoil(records: list[dict[str, Any]]) -> None:
        found = [record for record in records if record.get("type") == "session"]
        found[0]["session"]["user_id"] = "ann.lee@example.com"
        found[1]["signals"]["hard"][0]["polarity"] = 7
        found[2]["signals"]["session_features"] = []
        found[3]["session"]["n_steps"] = "many"
        found[4]["signals"]["hard"][0]["snippet"] = "my password is 12345"
        records.append({"type": "secret", "text": "hello"})

    with opened(tmp_path / "home") as context:
        land(context, [edited(path, spoil)])
        assert not any(result.red for result in make(context).values())
        assert codes(context) == ["BAD_FIELD"] * 5
        assert rows(context, "masked.sessions").height == 2
        assert "password" not in str(rows(context, "masked.vectors")["signals"].to_list())
        balance = rows(context, "masked.files").filter(pl.col("source") == "evalpipe_edge").row(0, named=True)
        assert balance["rows_read"] == balance["rows_kept"] + balance["rows_noise"] + balance["rows_quarantined"]
        assert (balance["n_sessions"], balance["rows_quarantined"]) == (2, 5)


def test_a_secret_in_a_label_of_an_edge_file_stops_the_day(tmp_path: Path) -> None:
    path = edge(tmp_path, talk(tmp_path, "a"))

    def hide(records: list[dict[str, Any]]) -> None:
        found = next(record for record in records if record.get("type") == "session")
        found["signals"]["hard"][0]["tool"] = "AKIA" + "Z7Q2M4X8K1P5R3W6"

    with opened(tmp_path / "home") as context:
        land(context, [edited(path, hide)])
        assert make(context)["masked"].red[DAY].code == "LEAK_FOUND"


def test_a_red_leak_check_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalpipe import masking

    real = masking.leak_check

    def red(*args: Any, **kwargs: Any) -> Any:
        return replace(real(*args, **kwargs), passed=False)

    monkeypatch.setattr(masking, "leak_check", red)
    old = tmp_path / "edge.jsonl.zst"
    old.write_bytes(b"old")
    with pytest.raises(EvalpipeError, match="LEAK_FOUND"):
        edge(tmp_path, talk(tmp_path, "a"))
    assert old.read_bytes() == b"old"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.jsonl", "edge.jsonl.zst"]


def test_nothing_is_written_without_a_session_or_a_key(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError, match="NOTHING_READ"):
        edge(tmp_path, write(tmp_path / "empty.jsonl"))
    assert not (tmp_path / "edge.jsonl.zst").exists()
    settings = load(folder=tmp_path, environ={})
    with pytest.raises(EvalpipeError, match="KEY_NEEDED"):
        existing_key(settings, {})
    assert not settings.key_file.exists()
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    assert existing_key(settings, {}, file) == existing_key(settings, {"EVALPIPE_KEY": KEY})


def test_signals_under_older_criteria_stop_their_day_until_a_new_file_comes(tmp_path: Path) -> None:
    log = talk(tmp_path, "a")
    with opened(tmp_path / "home") as context:
        land(context, [edge(tmp_path, log, out="old.zst")])
        make(context)
    with other_criteria(tmp_path) as context:
        assert make(context)["signals"].red[DAY].code == "SIGNALS_OUTDATED"
        new = edge(tmp_path, log, out="new.zst", criteria=context.settings.criteria)
        land(context, [new])
        assert not any(result.red for result in make(context).values())


def other_criteria(folder: Path) -> Any:
    from evalpipe.locations import data_dir

    text = (data_dir() / "criteria" / "default.toml").read_text()
    assert "snippet_chars = 160" in text
    path = folder / "other.toml"
    path.write_text(text.replace("snippet_chars = 160", "snippet_chars = 80"))
    (folder / "evalpipe.toml").write_text(f'criteria = "{path}"\n')
    return opened(folder / "home")


def test_signals_find_their_sessions_where_a_day_has_many_parts(tmp_path: Path) -> None:
    (tmp_path / "evalpipe.toml").write_text("part_bytes = 1\n")
    logs = [talk(tmp_path, name) for name in "abcd"]
    found = []
    for name, files in (("central", logs), ("far", [*logs[:3], edge(tmp_path, logs[3])])):
        with opened(tmp_path / name) as context:
            for file in files:
                land(context, [file])
            assert not any(result.red for result in make(context).values())
            found.append(signals_of(context))
    assert found[0]["signals.hard"].height == 4
    for table, expected in found[0].items():
        kept = [name for name in expected.columns if name not in ("snippet", "inputs")]
        assert found[1][table].select(kept).sort(kept).equals(expected.select(kept).sort(kept)), table


def test_the_key_of_a_home_with_edge_files_is_not_rotated(tmp_path: Path) -> None:
    landed(tmp_path / "home", edge(tmp_path, talk(tmp_path, "a")))
    settings = load(folder=tmp_path, environ={}, home=tmp_path / "home", workers=1)
    with pytest.raises(EvalpipeError, match="EDGE_KEEPS_KEY"):
        rotate(settings, {"EVALPIPE_KEY": f"{KEY},{'7a' * 32}"})
    with opened(tmp_path / "home") as context:
        assert not context.plan().stale


def test_consent_withdrawn_after_the_file_came_takes_its_signals(tmp_path: Path) -> None:
    path = edge(tmp_path, talk(tmp_path, "a", user_id="ann"), talk(tmp_path, "b", user_id="bob"))
    assert landed(tmp_path / "home", path)["signals.session_outcomes"].height == 2
    (tmp_path / "consent.csv").write_text("user_id,status\nann,withdrawn\n")
    (tmp_path / "evalpipe.toml").write_text('consent = "consent.csv"\n')
    with opened(tmp_path / "home") as context:
        assert context.plan().stale[DAY] == ("masked", "input changed")
        make(context)
        token = context.mask_plan.rekey("u", "ann", "")
        gone = rows(context, "masked.sessions").filter(pl.col("user_id") == token)["session_id"]
        assert rows(context, "masked.sessions").height == 2
        found = signals_of(context)
        for table in ("signals.hard", "signals.semantic", "signals.session_outcomes"):
            assert found[table].height
            assert not found[table]["session_id"].is_in(gone.implode()).any(), table


def scored(home: Path, *files: Path) -> dict[str, pl.DataFrame]:
    with opened(home) as context:
        land(context, files)
        assert not any(result.red for result in make(context).values())
        done = make_analysis(context, [AS_OF], "all")
        assert not done.red
        tables = {name: context.lake.read(name, [done.made[AS_OF]]) for name in STEP_TABLES["analysis"]}
        return signals_of(context) | tables


def test_a_simulated_world_scores_the_same_from_logs_from_edges_and_without_text(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    simulate(logs, Spec(sessions=40, days=3, start=DAY, seed=7))
    days = sorted(logs.glob("day=*"))
    central = scored(tmp_path / "central", *days)
    assert central["analysis.net_improvement"].height
    assert central["signals.session_outcomes"].height > 30
    # Two agents' machines; what one of them has already sent comes again with more.
    files = [edge(tmp_path, *days[:2], out="1.zst"), edge(tmp_path, *days[1:], out="2.zst")]
    assert_same(scored(tmp_path / "far", *files), central)
    (tmp_path / "evalpipe.toml").write_text('[tiers]\ndefault = "vectors"\n')
    assert_same(scored(tmp_path / "vectors", *days), central)
