"""One session read twice: which copy counts, on which day, and where the other one is listed."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from evalpipe.steps.context import Context
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

UUID = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35"
NEXT = DAY + timedelta(days=1)


def _export(path: Path, session_id: str, words: str = "Please fix the bug") -> Path:
    """The same session as an ATIF trajectory."""
    at = f"{DAY}T10:00:00Z"
    steps = [
        {"step_id": 1, "source": "user", "message": words, "timestamp": at},
        {"step_id": 2, "source": "agent", "message": "Done.", "timestamp": at},
    ]
    agent = {"name": "acme", "version": "1", "model_name": "m-1"}
    document = {"schema_version": "ATIF-v1.5", "session_id": session_id, "agent": agent, "steps": steps}
    path.write_text(json.dumps(document), "utf-8")
    return path


def _made(context: Context) -> None:
    done = make(context)
    assert {name: result.red for name, result in done.items() if result.red} == {}


def _n_outcomes(context: Context) -> int:
    made = (context.lookup("outcomes", day) for day in (DAY, NEXT))
    return sum(manifest.rows("signals.session_outcomes") for manifest in made if manifest is not None)


def _counted(context: Context) -> list[str]:
    """Sessions that count; every session of every file is one of them or listed as a copy."""
    sessions, copies, files = (rows(context, f"raw.{name}") for name in ("sessions", "copies", "files"))
    assert files["n_sessions"].sum() == sessions.height + copies.height
    assert set(rows(context, "raw.steps")["session_id"]) == set(sessions["session_id"])
    assert set(copies["counted_session_id"]) <= set(sessions["session_id"])
    return sorted(sessions["session_id"])


@pytest.mark.parametrize("order", list(itertools.permutations(["own", "export"])))
def test_the_second_exporter_of_a_session_may_come_days_later(tmp_path: Path, order: tuple[str, str]) -> None:
    places = {
        "own": write(tmp_path / "own.jsonl", *session(UUID), *session("other")),
        "export": _export(tmp_path / "export.json", UUID),
    }
    for name in order:
        with opened(tmp_path / "home") as context:
            land(context, [places[name]])
            assert context.plan().days == [DAY]
            _made(context)
    with opened(tmp_path / "home") as context:
        assert context.plan().days == []
        assert _counted(context) == [f"evalpipe_jsonl:{UUID}", "evalpipe_jsonl:other"]
        listed = rows(context, "masked.copies").drop("file_id").row(0, named=True)
        masked = rows(context, "masked.sessions")
        assert listed.pop("counted_session_id") in set(masked["session_id"])
        assert listed.pop("session_id") not in set(masked["session_id"])
        assert listed == {
            "copy": 0, "source": "atif", "rule": "same_id", "n_messages": 2,
            "counted_source": "evalpipe_jsonl", "counted_n_messages": 2,
        }  # fmt: skip
        assert _n_outcomes(context) == 2


def test_an_exporter_with_ids_of_its_own_is_known_by_the_words(tmp_path: Path) -> None:
    said = "Please fix the failing test of the parser in src/parser.py"
    own = session("a")
    own[1]["text"], own[2]["text"] = said, "I fixed the parser, and all of its tests pass now."
    shown = _export(tmp_path / "export.json", "zzz")
    document = json.loads(shown.read_text("utf-8"))
    document["steps"][0]["message"] = "please **fix** the failing test\nof the parser in `src/parser.py`"
    document["steps"][1]["message"] = "I fixed the parser, and *all of its tests pass now*."
    shown.write_text(json.dumps(document), "utf-8")
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "own.jsonl", *own), shown])
        _made(context)
        assert _counted(context) == ["evalpipe_jsonl:a"]
        assert rows(context, "raw.copies")["rule"].to_list() == ["same_words"]


def test_short_words_join_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "own.jsonl", *session("a")), _export(tmp_path / "export.json", "zzz")])
        _made(context)
        assert _counted(context) == ["atif:zzz", "evalpipe_jsonl:a"]


def test_copies_in_one_chunk_are_listed_and_the_longest_counts_in_any_order(tmp_path: Path) -> None:
    found = []
    for n, order in enumerate(itertools.permutations([1, 3, 2])):
        logs = tmp_path / f"logs{n}"
        for name, turns in zip("abc", order, strict=True):
            write(logs / f"{name}.jsonl", *session("s", turns=turns))
        with opened(tmp_path / f"home{n}") as context:
            land(context, [logs])
            _made(context)
            assert _counted(context) == ["evalpipe_jsonl:s"]
            copies = rows(context, "raw.copies").select("copy", "rule", "n_messages").rows()
            found.append((rows(context, "raw.steps").drop("session_id"), copies))
    assert all(copies == [(1, "same_session", 4), (2, "same_session", 2)] for _, copies in found)
    assert all(steps.equals(found[0][0]) for steps, _ in found)


def test_a_day_that_loses_its_only_session_to_another_day_is_made_anew_without_it(tmp_path: Path) -> None:
    # The row of the file lies on its first session's day, so nothing else is left of the second day.
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *session("x"), *session("y", NEXT))])
        _made(context)
        assert _counted(context) == ["evalpipe_jsonl:x", "evalpipe_jsonl:y"]
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "b.jsonl", *session("y", DAY, turns=2))])
        assert NEXT in context.plan().days
        _made(context)
        assert _counted(context) == ["evalpipe_jsonl:x", "evalpipe_jsonl:y"]
        assert rows(context, "raw.sessions").filter(pl.col("started_at").dt.date() == NEXT).is_empty()
        assert _n_outcomes(context) == 2
        assert context.plan().days == []


def test_what_was_landed_before_its_first_steps_were_noted_still_counts(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for name, turns in (("a", 1), ("b", 3)):
        write(logs / f"{name}.jsonl", *session("s", turns=turns))
    with opened(tmp_path / "home") as context:
        land(context, [logs])
        before = context.landing.day_inputs()
        landing = context.landing.root
        for path in [*landing.glob("_batches/*.copies.parquet"), *landing.glob("*/*.sessions.parquet")]:
            pl.read_parquet(path).drop("first_step_at").write_parquet(path)
        for path in landing.glob("_batches/*.json"):
            path.write_bytes(path.read_bytes())  # whoever has read the index before looks again
        assert context.landing.day_inputs() == before
        assert make(context, "raw")["raw"].red == {}
        assert rows(context, "raw.sessions")["n_messages"].to_list() == [6]
