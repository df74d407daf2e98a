"""Exports: whole or not at all, and never of slices that something has overtaken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.interchange import FORMS
from evalpipe.steps.context import Context
from evalpipe.steps.export import export
from evalpipe.steps.land import land
from evalpipe_tests.steps.test_withdrawal import consent
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

EVERY: dict[str, Any] = {"days": None, "sessions": frozenset()}


def made(context: Context, folder: Path) -> None:
    for name, user in (("a", "ann"), ("b", "bob")):
        land(context, [write(folder / f"{name}.jsonl", *session(name, user_id=user))])
    make(context)


def entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_both_places_hold_whole_documents_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        made(context, tmp_path)
        out = tmp_path / "out"
        assert export(context, "atif", out / "files", **EVERY) == (2, 4)
        assert export(context, "atif", out / "all.jsonl", **EVERY) == (2, 4)
        ids = sorted(rows(context, "masked.sessions")["session_id"])
        assert entries(out) == sorted(["all.jsonl", "files", *(f"files/{name}.json" for name in ids)])
        lines = [json.loads(line) for line in (out / "all.jsonl").read_text().splitlines()]
        assert lines == [json.loads((out / "files" / f"{name}.json").read_text()) for name in ids]
        (out / "files" / "mine.txt").write_text("stays")
        export(context, "levels", out / "files", **EVERY)
        assert "mine.txt" in {path.name for path in (out / "files").iterdir()}


@pytest.mark.parametrize("name", ["files", "all.jsonl"])
def test_an_export_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with opened(tmp_path / "home") as context:
        made(context, tmp_path)
        real, calls = FORMS["atif"], list[int]()

        def second_fails(*args: Any) -> dict[str, Any]:
            calls.append(1)
            if len(calls) > 1:
                raise OSError("no space left")
            return real(*args)

        monkeypatch.setitem(FORMS, "atif", second_fails)
        with pytest.raises(OSError, match="no space"):
            export(context, "atif", tmp_path / "out" / name, **EVERY)
        assert entries(tmp_path / "out") == []
        missing = {"days": None, "sessions": frozenset([rows(context, "masked.sessions")["session_id"][0], "s_none"])}
        with pytest.raises(EvalpipeError, match="1 of 2 sessions are not there, the first s_none"):
            export(context, "levels", tmp_path / "out" / name, **missing)
        assert entries(tmp_path / "out") == []


def test_a_stale_slice_is_not_exported(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        made(context, tmp_path)
        land(context, [write(tmp_path / "c.jsonl", *session("c", user_id="cy"))])
        with pytest.raises(EvalpipeError, match=f"backfill {DAY}..{DAY}") as error:
            export(context, "atif", tmp_path / "out", **EVERY)
        assert error.value.code == "STALE_RESULT"
        make(context)
        assert export(context, "atif", tmp_path / "out", **EVERY)[0] == 3
    consent(tmp_path, "user_id,status\nann,withdrawn\n")
    with opened(tmp_path / "home") as context, pytest.raises(EvalpipeError, match="STALE_RESULT"):
        export(context, "atif", tmp_path / "more", **EVERY)
    assert not (tmp_path / "more").exists()
