"""The files: shapes, folders, counts and planted values, read without the product's readers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.simulate import Spec, Truth, simulate
from evalpipe_tests.simulate.conftest import SMALL
from evalpipe_tests.simulate.reading import count, read


def _digest(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_counts_in_the_truth_are_those_in_the_files(small: tuple[Path, Truth]) -> None:
    out, truth = small
    counted = count(read(out))
    assert {name: truth.totals[name] for name in counted} == dict(counted)
    rare = ("interrupts", "refusals", "queued", "check_failures", "benign_exits", "sessions_late", "complaints")
    assert all(counted[name] > 0 for name in rare), counted
    assert counted["sessions_across_midnight"] > 0
    assert counted["sessions_that_switch_model"] > 0


def test_sessions_lie_in_the_folder_of_the_day_they_end(small: tuple[Path, Truth]) -> None:
    out, _ = small
    for session in read(out).values():
        (path,) = session.paths
        assert f"day={max(session.times)[:10]}" in path.parts


def test_same_spec_same_bytes_and_another_seed_other_bytes(tmp_path: Path) -> None:
    spec = replace(SMALL, sessions=60)
    for name, used in (("a", spec), ("b", spec), ("c", replace(spec, seed=9))):
        simulate(tmp_path / name, used)
    first, again, other = (_digest(tmp_path / name) for name in "abc")
    assert first == again
    assert first.keys() != other.keys()


def test_the_first_days_do_not_depend_on_how_many_follow(tmp_path: Path) -> None:
    long = Spec(sessions=140, days=14, users=20, seed=4, late=False)
    simulate(tmp_path / "long", long)
    simulate(tmp_path / "short", replace(long, sessions=70, days=7))
    same = [f"day=2026-01-0{5 + d}" for d in range(4)]  # the second epoch of the shorter run begins on day 4
    whole, part = _digest(tmp_path / "long"), _digest(tmp_path / "short")
    for day in same:
        files = {name for name in part if name.startswith(day)}
        assert files
        assert files == {name for name in whole if name.startswith(day)}
        assert all(part[name] == whole[name] for name in files)


def test_claude_code_lines_form_a_tree_and_split_responses_repeat_their_usage(small: tuple[Path, Truth]) -> None:
    out, _ = small
    split, kinds = 0, Counter[str]()
    for path in sorted(out.rglob("claude/projects/*/*.jsonl")):
        seen: set[str] = set()
        usages: dict[str, list[dict[str, int]]] = {}
        open_calls: set[str] = set()
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            kinds[row["type"]] += 1
            if "uuid" not in row:
                continue
            assert (row["parentUuid"] is None) == (not seen)
            assert row["parentUuid"] is None or row["parentUuid"] in seen
            seen.add(row["uuid"])
            assert row["sessionId"] == path.stem
            assert row["cwd"].replace("/", "-").replace(".", "-") == path.parent.name
            if row["type"] == "assistant":
                usages.setdefault(row["message"]["id"], []).append(row["message"]["usage"])
            for block in row.get("message", {}).get("content", []):
                if isinstance(block, dict) and block["type"] == "tool_use":
                    open_calls.add(block["id"])
                if isinstance(block, dict) and block["type"] == "tool_result":
                    open_calls.remove(block["tool_use_id"])
        assert not open_calls
        for same in usages.values():
            assert len({u["cache_read_input_tokens"] for u in same}) == 1
            assert max(u["output_tokens"] for u in same) == same[-1]["output_tokens"]
        split += sum(len(same) > 1 for same in usages.values())
    assert split > 100
    assert kinds["file-history-snapshot"] > 0
    assert kinds["progress"] > 0
    assert kinds["system"] > 0
    assert kinds["queue-operation"] > 0


def test_failed_commands_say_their_exit_code(small: tuple[Path, Truth]) -> None:
    out, _ = small
    seen = set()
    for session in read(out).values():
        if session.source == "claude_code":
            for command, text, is_error, kind in session.results:
                if command and not kind:
                    assert text.startswith("Exit code ") == is_error
                    seen.add(text.split("\n")[0] if is_error else "ok")
    assert {"ok", "Exit code 1", "Exit code 127"} <= seen


def test_platform_sessions_interleave_and_state_their_assignment(small: tuple[Path, Truth]) -> None:
    out, truth = small
    switches, heads = 0, []
    for path in sorted(out.rglob("evalpipe/*.jsonl")):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        switches += sum(a["session_id"] != b["session_id"] for a, b in pairwise(rows))
        assert {row["tenant"] for row in rows if row["type"] == "session"} == {path.stem}
        steps: dict[str, int] = {}
        for row in rows:
            if row["type"] == "step":
                steps[row["session_id"]] = steps.get(row["session_id"], 0) + 1
                assert row["step_id"] == str(steps[row["session_id"]])
        heads += [row for row in rows if row["type"] == "session"]
    assert switches > 2 * truth.totals["sessions_evalpipe_jsonl"]
    assert {head["assignment"]["epoch"] for head in heads} == {"e1", "e2"}
    assert all(0.03 <= head["assignment"]["probability"] < 1 for head in heads)
    declared = {head["tenant"]: "scenario" in head for head in heads}
    assert set(declared.values()) == {True, False}


def test_planted_values_are_in_their_sessions(small: tuple[Path, Truth]) -> None:
    out, truth = small
    text = {key: b"".join(p.read_bytes() for p in session.paths) for key, session in read(out).items()}
    kinds = Counter(canary["kind"] for canary in truth.canaries)
    for canary in truth.canaries:
        assert canary["value"].encode() in text[canary["session"]], canary["kind"]
    assert {"email", "phone", "credit_card", "iban", "aws_key_id", "github_token", "private_key", "jwt"} <= set(kinds)
    assert kinds["home_folder"] == len(_homes(out))


def _homes(out: Path) -> set[str]:
    folders = [s.head.get("cwd") or s.head["workspace"] for s in read(out).values()]
    return {folder.split("/")[2] for folder in folders if folder.startswith("/home/")}


def test_the_truth_is_written_beside_the_logs(small: tuple[Path, Truth]) -> None:
    out, truth = small
    written = json.loads((out / "truth.json").read_text("utf-8"))
    assert written["totals"] == dict(truth.totals)
    assert written["metrics"]["positive_outcome"]["net_improvement"] == truth.net_improvement("positive_outcome")
    assert sum(day["sessions"] for day in written["days"]) == truth.sessions.sum()
    assert sum(sum(row.values()) for row in written["counts"].values()) == truth.sessions.sum()


def test_the_real_profile_has_sessions_of_real_size(tmp_path: Path) -> None:
    truth = simulate(tmp_path / "out", Spec(sessions=60, days=1, profile="real", seed=2))
    assert 360_000 < truth.totals["bytes"] / 60 < 580_000
    assert 120 < truth.totals["steps"] / 60 < 170
    counted = count(read(tmp_path / "out"))
    assert {name: truth.totals[name] for name in counted} == dict(counted)


def test_the_demo_profile_has_sessions_of_demo_size(small: tuple[Path, Truth]) -> None:
    _, truth = small
    assert 20_000 < truth.totals["bytes"] / truth.totals["sessions"] < 30_000
    assert 21 < truth.totals["steps"] / truth.totals["sessions"] < 28


def test_an_output_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    with pytest.raises(EvalpipeError) as caught:
        simulate(tmp_path, SMALL)
    assert caught.value.code == "BAD_ARGUMENT"


@pytest.mark.parametrize(
    "change",
    [{"sessions": 0}, {"days": 0}, {"seed": -1}, {"confounding": 9.0}, {"languages": {"xx": 1.0}}, {"versions": ()}],
)
def test_a_spec_out_of_range_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(EvalpipeError) as caught:
        replace(SMALL, **change)
    assert caught.value.code == "BAD_ARGUMENT"
    assert caught.value.where == next(iter(change))
