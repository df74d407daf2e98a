"""The slice kernel: policy, session dictionary, ids, counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.tables import masked, raw
from evalpipe.masking import MaskPlan, mask_files, mask_part, mask_quarantine
from evalpipe.masking.rules import default_dir
from evalpipe_tests.masking.support import FALLBACK, KEY, PLAN, frames, one, session

_TOKEN = r"^[a-z]_[a-p]{20}$"


def test_frames_follow_their_contracts_and_keep_what_is_kept() -> None:
    sessions, steps = frames(
        [session("s2", tools=["Bash", "Read"]), session("s1", tools=[]), session("s3")],
        [("s1", {"text": "hello"}), ("s2", {"text": None, "input_tokens": 5}), ("s3", {"output": ""})],
    )
    part = mask_part(sessions, steps, PLAN)
    render.conform(masked.SESSIONS, part.sessions)
    render.conform(masked.STEPS, part.steps)
    render.conform(masked.REDACTIONS, part.redactions)
    assert part.redactions.is_empty()
    assert sorted(map(str, part.sessions["tools"].to_list())) == ["None", "['Bash', 'Read']", "[]"]
    assert sorted(map(str, part.steps["text"].to_list())) == ["None", "None", "hello"]
    assert part.sessions["started_at"].to_list() == sessions["started_at"].to_list()
    assert part.steps["input_tokens"].drop_nulls().to_list() == [5]
    assert part.sessions["session_id"].is_sorted()


def test_empty_frames_pass() -> None:
    part = mask_part(render.empty(raw.SESSIONS), render.empty(raw.STEPS), PLAN)
    assert part.sessions.is_empty()
    assert part.steps.is_empty()
    assert mask_files(render.empty(raw.FILES), PLAN).is_empty()


def test_ids_become_tokens_and_join_across_tables() -> None:
    sessions, steps = frames(
        [session("s1", user_id="u9", tenant="t", workspace="/home/ana/p", parent_session_id="s0"), session("s0")],
        [("s1", {"text": "x", "step_id": "m1"}), ("s1", {"output": "y", "step_id": "m2", "parent_id": "m1"})],
    )
    part = mask_part(sessions, steps, PLAN)
    for frame, names in ((part.sessions, ("session_id", "file_id")), (part.steps, ("session_id", "step_id"))):
        for name in names:
            assert frame[name].str.contains(_TOKEN).all(), name
    child = part.sessions.filter(pl.col("parent_session_id").is_not_null())
    assert child["parent_session_id"].item() in part.sessions["session_id"]
    assert child["parent_session_id"].item() != child["session_id"].item()
    assert set(part.steps["session_id"]) == set(child["session_id"])
    assert part.steps["parent_id"].drop_nulls().item() == part.steps["step_id"][0]
    assert part.sessions["user_id"].null_count() == 1
    quarantine = render.frame(raw.QUARANTINE, [_quarantined("s1"), _quarantined("")])
    out = mask_quarantine(quarantine, PLAN)
    render.conform(masked.QUARANTINE, out)
    assert set(out["session_id"]) == {"", child["session_id"].item()}
    assert set(out["file_id"]) == set(child["file_id"])
    files = render.frame(raw.FILES, [_file()])
    out = mask_files(files, PLAN)
    render.conform(masked.FILES, out)
    assert out["file_id"].item() == child["file_id"].item()
    assert out["member"].item() == ""


def _quarantined(session_id: str) -> dict[str, object]:
    return {
        "file_id": "f1",
        "source_file": "/home/ana/x",
        "member": "ana.jsonl",
        "source": "x",
        "byte_offset": 1,
        "line": 1,
        "code": "BAD_JSON",
        "session_id": session_id,
        "n_bytes": 3,
        "digest": "dd",
    }


def _file() -> dict[str, object]:
    return {
        "file_id": "f1",
        "source_file": "/home/ana/x",
        "member": "",
        "source": "x",
        "reader_version": "1",
        "n_bytes": 1,
        "rows_read": 1,
        "rows_kept": 1,
        "rows_noise": 0,
        "rows_quarantined": 0,
        "n_sessions": 1,
    }


def test_a_user_of_two_tenants_has_two_tokens() -> None:
    sessions, steps = frames(
        [
            session("a", user_id="u9", tenant="t1"),
            session("b", user_id="u9", tenant="t2"),
            session("c", user_id="u9", tenant="t1"),
        ],
        [],
    )
    tokens = mask_part(sessions, steps, PLAN).sessions.group_by("user_id").len()
    assert sorted(tokens["len"].to_list()) == [1, 2]


def test_what_a_session_teaches_is_hidden_in_all_its_turns_and_in_no_other() -> None:
    said = "the export of marcia77 is broken, says Friederike Großmann"
    sessions, steps = frames(
        [session("s1"), session("s2")],
        [
            ("s1", {"text": said}),
            (
                "s1",
                {"output": "drwxr-xr-x 5 marcia77 staff 160 src", "arguments": '{"command":"ls /home/marcia77/etl"}'},
            ),
            ("s1", {"output": "Author: Friederike Großmann <fg@mail.example.org>"}),
            ("s2", {"text": said}),
        ],
    )
    part = mask_part(sessions, steps, PLAN)
    rows = part.steps.sort("seq")
    for text in (rows["text"][0], rows["output"][1], rows["arguments"][1], rows["output"][2]):
        assert "marcia77" not in text
        assert "Großmann" not in text
    assert rows["text"][3] == said
    user = rows["output"][1].split()[2]
    assert user in rows["arguments"][1]
    assert user in rows["text"][0]
    rules = dict(part.redactions.group_by("rule_id").agg(pl.col("n_hits").sum()).iter_rows())
    assert rules["session.dictionary"] == 2
    assert rules["ls.owner"] == 1


def test_the_owner_of_the_session_is_hidden_too() -> None:
    sessions, steps = frames(
        [session("s1", user_id="marcia77@mail.example.org", workspace="/Users/zhangwh/app")],
        [("s1", {"text": "MARCIA77 and zhangwh agreed"})],
    )
    text = mask_part(sessions, steps, PLAN).steps["text"].item()
    assert text.count("<USERNAME:") == 2
    assert "and" in text


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("ana", "banana analysis manana"),
        ("root", "root cause"),
        ("test", "the test failed"),
        ("ann", "annotations"),
        ("max", "max_tokens"),
    ],
)
def test_words_that_only_contain_a_name_are_left(term: str, text: str) -> None:
    sessions, steps = frames([session("s1")], [("s1", {"output": f"/home/{term}/x"}), ("s1", {"text": text})])
    assert mask_part(sessions, steps, PLAN).steps.sort("seq")["text"][1] == text


def test_short_labels_are_masked_and_counted_for_every_row() -> None:
    sessions, steps = frames(
        [session("s1", agent="bot of ana.b42@mail.example.org", tools=["Bash", "mail_ana.b42@mail.example.org"])],
        [("s1", {"output": "x", "name": "call ana.b42@mail.example.org"})] * 3,
    )
    part = mask_part(sessions, steps, PLAN)
    assert "@" not in part.sessions["agent"].item()
    assert "@" not in "".join(part.sessions["tools"].item())
    assert not part.steps["name"].str.contains("@").any()
    counts = {(f, n) for f, n in part.redactions.select("field", "n_hits").iter_rows()}
    assert counts == {("sessions.agent", 1), ("sessions.tools", 1), ("steps.name", 3)}


def test_counts_name_source_field_entity_and_rule() -> None:
    sessions, steps = one(output="a ana.b42@mail.example.org b ana.c42@mail.example.org", text=None)
    row = mask_part(sessions, steps, PLAN).redactions.row(0, named=True)
    assert row == {
        "source": "evalpipe_jsonl",
        "field": "steps.output",
        "entity": "EMAIL_ADDRESS",
        "subtype": "",
        "rule_id": "email",
        "ruleset": PLAN.ruleset_digest(),
        "key_epoch": KEY.epoch,
        "n_rows": 1,
        "n_hits": 2,
        "n_bytes": 48,
    }


def test_withheld_fields_are_counted() -> None:
    sessions, steps = frames([session()], [("s1", {"output": "a@b.co " * 20_000}), ("s1", {"text": "short"})])
    part = mask_part(sessions, steps, PLAN)
    assert part.steps.sort("seq")["output"][0] == "<WITHHELD:budget>"
    assert part.steps.sort("seq")["text"][1] == "short"
    assert part.redactions.select("entity", "subtype", "n_rows").rows() == [("WITHHELD", "budget", 1)]
    part = mask_part(sessions, steps, MaskPlan(KEY, withhold_over_bytes=4))
    assert part.steps.sort("seq")["text"][1] == "<WITHHELD:size>"


def test_masking_a_masked_part_changes_nothing() -> None:
    sessions, steps = frames(
        [session("s1", user_id="marcia77", tenant="t", workspace="/home/marcia77/x")],
        [
            ("s1", {"text": "I am marcia77, call +44 7700 900251"}),
            ("s1", {"arguments": '{"c":"cat /home/marcia77/.env"}', "output": "A_TOKEN=abc123def456ghi"}),
        ],
    )
    once = mask_part(sessions, steps, PLAN)
    again = mask_part(once.sessions.with_columns(content_digest=pl.lit("c")), once.steps, PLAN)
    assert again.sessions.equals(once.sessions)
    assert again.steps.equals(once.steps)
    assert again.redactions.is_empty()


def test_the_fallback_gives_the_same_part() -> None:
    sessions, steps = frames(
        [session("s1", user_id="marcia77")],
        [
            ("s1", {"text": "密码：gaivota38668Z, write ana%40mail.example.org"}),
            ("s1", {"output": "4539 1488 0343 6467\nmarcia77"}),
            ("s1", {"output": None}),
        ],
    )
    left, right = mask_part(sessions, steps, PLAN), mask_part(sessions, steps, FALLBACK)
    assert left.steps.equals(right.steps)
    assert left.redactions.equals(right.redactions)


def test_the_same_input_gives_the_same_frames_whatever_the_order() -> None:
    sessions, steps = frames(
        [session("s1"), session("s2", tenant="t")],
        [("s1", {"text": "mail ana@mail.example.org"}), ("s2", {"text": "mail ana@mail.example.org"})],
    )
    left, right = (
        mask_part(sessions, steps, PLAN),
        mask_part(sessions.sort("session_id", descending=True), steps.sort("seq", descending=True), PLAN),
    )
    assert left.sessions.equals(right.sessions)
    assert left.steps.equals(right.steps)
    assert left.redactions.equals(right.redactions)


def test_a_column_without_policy_is_masked(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(default_dir(), tmp_path / "mine"))
    path = folder / "fields.toml"
    path.write_text(path.read_text("utf-8").replace('scenario_declared = "mask"\n', ""), "utf-8")
    sessions, steps = frames([session(scenario_declared="mail of ana@mail.example.org")], [])
    out = mask_part(sessions, steps, MaskPlan(KEY, ruleset=folder, locator="fallback"))
    assert "@" not in out.sessions["scenario_declared"].item()


def test_a_name_that_was_first_written_with_hidden_characters_is_known_in_plain_letters() -> None:
    for written in ("Fri\u00adedrike Wendtmann", "Ｆｒｉｅｄｒｉｋｅ Ｗｅｎｄｔｍａｎｎ"):
        sessions, steps = frames(
            [session()], [("s1", {"text": f"my name is {written} and"}), ("s1", {"output": "ask Friedrike Wendtmann"})]
        )
        assert mask_part(sessions, steps, PLAN).steps["output"].to_list()[1].startswith("ask <PERSON:")
