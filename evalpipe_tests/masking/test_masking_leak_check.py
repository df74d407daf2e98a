"""The leak check: green on masked parts, red on every way that masking can fail."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.tables import raw
from evalpipe.masking import (
    CANARY_SOURCE,
    Canaries,
    LeakReport,
    MaskedPart,
    MaskPlan,
    detector,
    drop_canaries,
    drop_canary_rows,
    kernel,
    leak_check,
    mask_copies,
    mask_files,
    mask_part,
    mask_quarantine,
    plant_canaries,
)
from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe_tests.masking.support import DAY, FALLBACK, KEY, OTHER_KEY, PLAN, frames, session

MASKING = Path(kernel.__file__).parent


def _real() -> tuple[pl.DataFrame, pl.DataFrame]:
    return frames(
        [session("s1", user_id="marcia77", tenant="t", workspace="/home/marcia77/x")],
        [
            ("s1", {"text": "write to ana.b42@mail.example.org"}),
            ("s1", {"arguments": '{"c":"ls /home/marcia77"}', "output": "ok"}),
        ],
    )


def _masked(plan: MaskPlan = PLAN) -> tuple[Canaries, MaskedPart]:
    canaries = plant_canaries(plan, DAY)
    sessions, steps = _real()
    return canaries, mask_part(pl.concat([sessions, canaries.sessions]), pl.concat([steps, canaries.steps]), plan)


def _check(canaries: Canaries, part: MaskedPart, plan: MaskPlan = PLAN, files: tuple[Path, ...] = ()) -> LeakReport:
    return leak_check(
        part.sessions,
        part.steps,
        canaries,
        part.redactions,
        plan,
        files,
        **_others(canaries, plan),
    )


def _others(canaries: Canaries, plan: MaskPlan = PLAN) -> dict[str, pl.DataFrame]:
    return {
        "files": mask_files(canaries.files, plan),
        "quarantine": mask_quarantine(canaries.quarantine, plan),
        "copies": mask_copies(canaries.copies, plan),
    }


@pytest.mark.parametrize("plan", [PLAN, FALLBACK], ids=["hyperscan", "fallback"])
def test_a_masked_part_passes_and_all_canaries_are_counted(plan: MaskPlan) -> None:
    canaries, part = _masked(plan)
    report = _check(canaries, part, plan)
    assert report.findings == ()
    assert report.passed
    assert report.canaries_planted == report.canaries_counted > 150
    assert report.counts["tokens"] > 50
    assert report.counts["masked_twice"] > 100


def test_canaries_are_fresh_per_day_and_key_and_the_same_per_run() -> None:
    one, same = plant_canaries(PLAN, DAY), plant_canaries(PLAN, DAY)
    assert one.steps.equals(same.steps)
    render.conform(raw.SESSIONS, one.sessions)
    render.conform(raw.STEPS, one.steps)
    other = {v.value for v in plant_canaries(PLAN, DAY.replace(day=6)).values}
    theirs = {v.value for v in plant_canaries(MaskPlan(OTHER_KEY), DAY).values}
    # Witnesses are the same on every day, and what is short or has little drawn in it (a MAC address two digits) may
    # come again.
    mine = {v.value for v in one.values if not v.canary.startswith("witness") and not v.is_short and len(v.value) > 17}
    assert len(mine) > 150
    assert not mine & other
    assert not mine & theirs
    assert not any(value.value in repr(value) for value in one.values)


def test_canaries_are_taken_out_before_publishing() -> None:
    _, part = _masked()
    sessions, steps = drop_canaries(part.sessions, part.steps)
    assert (sessions.height, steps.height) == (1, 2)
    assert CANARY_SOURCE not in sessions["source"]
    counts = drop_canary_rows(part.redactions)
    assert 0 < counts.height < part.redactions.height


@pytest.mark.parametrize(
    "leak",
    [
        "write to ana.b42@mail.example.com",
        "gh" + "p_" + "a1B2" * 9,
        "4539 1488 0343 6467",
        "DE89370400440532013000",
        "/home/marcia77/x",
        "postgres://app:tiger95100x@db/shop",
        "身份证 11010519491231002X",
        "-----BEGIN PRIVATE KEY-----\n" + "aB3dEf7Hk9" * 5,
        "MY_API_KEY=abc123def456ghi",
        "4539.1488.0343.6467",
        "CPF 529.982.247-25",
        "CNPJ 11.444.777/0001-61",
        "her SSN: 536-22-8123",
        "4539\u00a01488\u00a00343\u00a06467",
        "4539\u20071488\u20070343\u20076467",
        "pay to de89370400440532013000 now",
        "https://x.example.com/?access_token=Zk3jd9Qpl2mN8vTr&state=1",
        "<SECRET:aws-access-key-id>, " + "wJ4lrXUt/FEMI7K7" + "MDENGbPxRfiCYq2mPLQK8aBc",
        "DB_PASSWORD=<SECRET:password>&tiger95100 x",
        "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JpYXQiOjE2MDAwMDAwMDB9.aB3daB3daB3daB3daB3daB3d",
    ],
)
def test_a_raw_row_turns_it_red(leak: str) -> None:
    canaries, part = _masked()
    steps = part.steps.with_columns(output=pl.when(pl.col("output") == "ok").then(pl.lit(leak)).otherwise("output"))
    report = _check(canaries, MaskedPart(part.sessions, steps, part.redactions))
    assert not report.passed
    tests = {f.test for f in report.findings}
    assert tests & {d.id for d in detector.detectors() if d.is_high}


def _identity(value: str) -> str:
    return value


@pytest.mark.parametrize(
    "transform",
    [
        _identity,
        str.lower,
        str.upper,
        lambda v: v.encode().hex(),
        lambda v: "x" + __import__("base64").b64encode(b"ab" + v.encode()).decode(),
        lambda v: __import__("urllib.parse").parse.quote(v, safe=""),
    ],
    ids=["raw", "lower", "upper", "hex", "base64", "url"],
)
def test_a_canary_is_found_in_any_disguise_and_any_column(transform: Callable[[str], str]) -> None:
    canaries, part = _masked()
    value = next(v.value for v in canaries.values if v.entity == "PERSON")
    for frame in ("sessions", "steps"):
        name = "agent" if frame == "sessions" else "name"
        rows = getattr(part, frame).with_columns(pl.lit(f"about {transform(value)}!").alias(name))
        leaky = MaskedPart(*(rows if f == frame else getattr(part, f) for f in ("sessions", "steps")), part.redactions)
        report = _check(canaries, leaky)
        assert "canary" in {f.test for f in report.findings}


@pytest.mark.parametrize(
    ("table", "column"),
    [("files", "member"), ("files", "file_id"), ("quarantine", "member"), ("quarantine", "session_id"),
     ("quarantine", "digest"), ("copies", "session_id"), ("copies", "counted_session_id"), ("copies", "file_id")],
)  # fmt: skip
def test_an_id_or_path_that_is_left_as_it_was_beside_the_sessions_turns_it_red(table: str, column: str) -> None:
    canaries, part = _masked()
    frames_of = _others(canaries)
    counts = _check(canaries, part).counts
    assert [counts[name] for name in frames_of] == [1, 1, 1]
    raw_rows = getattr(canaries, table)
    frames_of[table] = frames_of[table].with_columns(raw_rows[column])
    report = leak_check(part.sessions, part.steps, canaries, part.redactions, PLAN, **frames_of)
    assert not report.passed
    assert (f"{table}.{column}", "id is no token") in {(f.field, f.test) for f in report.findings}
    assert "canary" in {f.test for f in report.findings}


def test_a_value_in_a_label_of_files_or_quarantine_turns_it_red() -> None:
    canaries, part = _masked()
    for table, column in (("files", "reader_version"), ("quarantine", "code")):
        tables = _others(canaries)
        tables[table] = tables[table].with_columns(pl.lit("ana.b42@mail.example.com").alias(column))
        report = leak_check(part.sessions, part.steps, canaries, part.redactions, PLAN, **tables)
        assert not report.passed, table


def test_a_canary_in_raw_bytes_or_a_name_of_a_file_turns_it_red(tmp_path: Path) -> None:
    canaries, part = _masked()
    value = next(v.value for v in canaries.values if v.canary == "github")
    clean = tmp_path / "part.parquet"
    drop_canaries(part.sessions, part.steps)[1].write_parquet(clean)
    assert _check(canaries, part, files=(clean,)).passed
    dirty = tmp_path / "dirty.bin"
    dirty.write_bytes(b"\xff\x00" * 100 + value.encode() + b"\xfe")
    assert [f.field for f in _check(canaries, part, files=(dirty,)).findings] == ["file bytes .bin"]
    named = tmp_path / f"{value}.bin"
    named.write_bytes(b"x")
    assert [f.field for f in _check(canaries, part, files=(named,)).findings] == ["file name"]


def test_ids_and_tokens_must_be_well_formed_and_of_the_known_key() -> None:
    canaries, part = _masked()
    raw_ids = MaskedPart(part.sessions.with_columns(user_id=pl.lit("u9")), part.steps, part.redactions)
    assert {f.test for f in _check(canaries, raw_ids).findings} == {"id is no token"}
    theirs = "<EMAIL_ADDRESS:" + OTHER_KEY.epoch + ":" + "a" * 20 + ">"
    foreign = MaskedPart(part.sessions, part.steps.with_columns(name=pl.lit(theirs)), part.redactions)
    assert "token is malformed" in {f.test for f in _check(canaries, foreign).findings}
    short = MaskedPart(
        part.sessions, part.steps.with_columns(name=pl.lit(f"<USERNAME:{KEY.epoch}:abc>")), part.redactions
    )
    assert "token is malformed" in {f.test for f in _check(canaries, short).findings}


def test_counts_of_another_rule_set_turn_it_red() -> None:
    canaries, part = _masked()
    other = MaskedPart(part.sessions, part.steps, part.redactions.with_columns(ruleset=pl.lit("0" * 16)))
    assert {f.test for f in _check(canaries, other).findings} == {"another rule set or key"}


def test_a_text_that_would_change_again_turns_it_red() -> None:
    canaries, part = _masked()
    steps = part.steps.with_columns(
        output=pl.when(pl.col("output") == "ok").then(pl.lit("me llamo Joaquín Peralta")).otherwise("output")
    )
    assert "a second masking changes it" in {
        f.test for f in _check(canaries, MaskedPart(part.sessions, steps, part.redactions)).findings
    }


def test_findings_show_no_value() -> None:
    canaries, part = _masked()
    leaky = MaskedPart(part.sessions, part.steps.with_columns(name=pl.lit("ana.b42@mail.example.com")), part.redactions)
    assert "ana.b42" not in repr(_check(canaries, leaky))


def test_the_check_imports_nothing_of_what_it_checks() -> None:
    forbidden = ("rules", "engine", "locate", "validators", "decode", "dictionary", "kernel", "policy")
    names = (
        "leak_check",
        "leak_rates",
        "leak_search",
        "detector",
        "canaries",
        "canary_grid",
        "canary_rows",
        "templates",
    )
    for name in names:
        tree = ast.parse((MASKING / f"{name}.py").read_text("utf-8"))
        typing_only = {id(n) for block in ast.walk(tree) if isinstance(block, ast.If) for n in ast.walk(block)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in typing_only:
                parts = (node.module or "").split(".") + [alias.name for alias in node.names]
                assert not set(parts) & set(forbidden), f"{name} imports {node.module}"


def test_the_detector_knows_every_account_that_the_rules_keep() -> None:
    words = load_ruleset(default_dir()).words
    for word in words["service_accounts"]:
        series = pl.Series([f"cat /home/{word}/x and C:\\Users\\{word}\\y"])
        assert "home_folder" not in detector.scan(series), word
    for word in words["role_mailboxes"]:
        assert "email" not in detector.scan(pl.Series([f"from {word}@mail.example.com"])), word


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("call 415.555.0134", {"phone_grouped"}),
        ("0171 is not, 01 42 68 53 00 is", {"phone_grouped"}),
        ("Tel.: (415) 555-0134", {"phone_named"}),
        ("my phone number is 415.555.0134 at home", {"phone_named", "phone_grouped"}),
        ("mobile: 415 555 0134", {"phone_named", "phone_grouped"}),
    ],
)
def test_a_phone_in_groups_is_counted_and_blocks_nothing(text: str, counted: set[str]) -> None:
    assert set(detector.scan(pl.Series([text]))) == counted
    assert not any(detector.is_high(name) for name in counted)


@pytest.mark.parametrize(
    "text", ["v415.555.01345", "CPF 529.982.247-26", "11.444.777/0001-62", "000.000.000-00", "x=1.415.555.0134"]
)
def test_what_only_looks_like_a_number_of_somebody_is_not_counted(text: str) -> None:
    assert detector.scan(pl.Series([text])) == {}
