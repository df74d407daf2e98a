"""The field policy inside of tool arguments: its examples, its limits, and that it settles."""

from __future__ import annotations

import json
import re

import orjson
import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.model import Kind, Sensitivity
from evalpipe.contracts.tables import raw
from evalpipe.masking import MaskingKey, MaskPlan, arguments, documents, mask_part, rekeying
from evalpipe.masking.rules import default_dir, load_ruleset
from evalpipe.signals.calls import tool_calls
from evalpipe_tests.masking.support import KEY, frames, session

PLAN = MaskPlan(KEY)
DOCUMENT = load_ruleset(default_dir()).arguments
EXAMPLES = [
    *(("any tool", given, gives) for given, gives in DOCUMENT["everywhere"]["examples"]),
    *((name, given, gives) for row in DOCUMENT["tool"] for name in row["names"] for given, gives in row["examples"]),
]
POLICIES = r"keep|mask|drop|rekey:[a-z](?:/tenant)?"


def _plain(text: str) -> str:
    return re.sub(r"<PATH:[a-p]{4}:[a-p]{20}>", "<PATH>", text)


@pytest.mark.parametrize(("tool", "given", "gives"), EXAMPLES)
def test_an_example_becomes_what_it_says_and_then_settles(tool: str, given: str, gives: str) -> None:
    new, hits = arguments.one(given, tool, "t", PLAN)
    assert orjson.loads(_plain(new)) == orjson.loads(gives)
    assert bool(hits) == (given != gives)
    assert arguments.one(new, tool, "t", PLAN) == (new, ()), "a second time changes nothing"
    assert PLAN.mask_text(new, "t") == (new, []), "no rule fires in what it left"


def test_every_tool_has_examples_and_names_its_text() -> None:
    for row in DOCUMENT["tool"]:
        assert row["examples"]
        assert row["names"] == [name.lower() for name in row["names"]]
        assert set(row) <= {"names", "path", "path_keys", "url", "mask", "examples"}
        both = set(row.get("path", ())) & set(row.get("mask", ()))
        assert not both


def test_every_column_of_the_contracts_has_a_policy_of_its_own() -> None:
    fields = load_ruleset(default_dir()).fields
    for table in raw.TABLES:
        named = fields[table.name]
        assert set(named) == {column.name for column in table}
        for column in table:
            assert re.fullmatch(POLICIES, named[column.name])
            if column.sensitivity is Sensitivity.TEXT:
                assert named[column.name] == "mask"
            if column.sensitivity is Sensitivity.RESTRICTED:
                assert named[column.name] in ("drop", "rekey:m")
            if column.sensitivity is Sensitivity.PSEUDONYM:
                assert named[column.name].startswith("rekey:")
            if named[column.name] == "keep" and column.kind is Kind.STR:
                assert column.values or column.name in (
                    "source",
                    "reader_version",
                    "code",
                    "rule",
                    "counted_source",
                    "signals",  # packed anew from masked rows, and looked at label by label
                    "extraction",
                )


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("my_own_tool", '{"file_path": "/srv/acme/plan.md"}'),
        ("Read", '{"file_path": "/srv/acme/plan.md"'),
        ("Read", '"plan.md"'),
        ("Bash", '{"command": "cat /srv/acme/plan.md"}'),
        (None, '{"file_path": "/srv/acme/plan.md"}'),
    ],
)
def test_what_is_not_named_is_text_and_stays_for_the_rules(tool: str | None, given: str) -> None:
    assert arguments.one(given, tool, "t", PLAN) == (given, ())


def test_a_server_in_front_of_the_name_changes_nothing() -> None:
    given = '{"path":"/srv/acme/plan.md"}'
    assert arguments.one(given, "mcp__files__read_file", "t", PLAN) == arguments.one(given, "read_file", "t", PLAN)
    assert arguments.one(given, "functions.read_file", "t", PLAN) == arguments.one(given, "read_file", "t", PLAN)


def test_equal_paths_stay_equal_and_tenants_stay_apart() -> None:
    def path(text: str, tenant: str = "t") -> str:
        return str(orjson.loads(arguments.one(json.dumps({"path": text}), "Read", tenant, PLAN)[0])["path"])

    assert path("/srv/acme/a.py") == path("/srv/acme/a.py")
    assert path("/srv/acme/a.py").rsplit("/", 1)[0] == path("/srv/acme/b.py").rsplit("/", 1)[0]
    assert path("/srv/acme/a.py") != path("/srv/acme/b.py")
    assert path("/srv/acme/a.py") != path("/srv/acme/a.py", "u")
    assert path("a.test.ts").endswith(">.test.ts")
    assert path("/home/<USERNAME:abcd:aaaaaaaaaaaaaaaaaaaa>/x.py").startswith("/home/<USERNAME:abcd:")
    assert path("src/**/*.py") == "src/**/*.py"


def _masked(rows: list[dict[str, object]]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    base = {c.name: 0 for c in raw.SESSIONS if not c.nullable and c.kind in (Kind.I32, Kind.I64)}
    at = pl.datetime(2026, 1, 5, time_zone="UTC")
    sessions = pl.DataFrame([{**base, "session_id": "x:1", "source": "x", "reader_version": "1", "file_id": "f",
                              "agent": "a", "is_dated": True, "is_clock_repaired": False,
                              "content_digest": "d"}]).with_columns(started_at=at, ended_at=at)  # fmt: skip
    steps = [{"session_id": "x:1", "seq": n, "step_id": str(n), "turn": 1, "kind": "tool", "origin": "tool", **row}
             for n, row in enumerate(rows)]  # fmt: skip
    full = sessions.to_dicts()
    part = mask_part(render.frame(raw.SESSIONS, full), render.frame(raw.STEPS, steps), PLAN)
    return part.sessions, part.steps, part.redactions


def test_the_kernel_drops_and_generalises_and_signals_keep_what_they_read() -> None:
    rows: list[dict[str, object]] = [
        {"name": "Edit", "arguments": '{"file_path": "/srv/acme/cart.py", "old_string": "a"}', "output": "no match",
         "is_error": True},
        {"name": "Edit", "arguments": '{"file_path": "/srv/acme/cart.py", "old_string": "b"}', "output": "done"},
        {"name": "Bash", "arguments": '{"command": "pytest -q"}', "output": "1 failed", "exit_code": 1},
        {"name": "Ponder", "arguments": '{"q": 1}', "output": '{"signature": "EqRk", "ok": true}'},
    ]  # fmt: skip
    sessions, steps, redactions = _masked(rows)
    assert "acme" not in "".join(steps["arguments"])
    assert steps["arguments"].to_list()[2] == '{"command": "pytest -q"}'
    assert steps["output"].to_list()[3] == '{"signature":null,"ok":true}'
    counted = {(entity, subtype): n for entity, subtype, n in redactions.select("entity", "subtype", "n_hits").rows()}
    assert counted == {("PATH", "path"): 2, ("DROPPED", "blob"): 1}
    calls = tool_calls(sessions, steps)
    assert calls["tool"].to_list() == ["edit", "edit", "shell", "other"]
    assert calls["repair_key"][0] == calls["repair_key"][1]
    assert calls["exit_code"].to_list()[2] == 1


def test_segments_move_with_a_rotation() -> None:
    new = MaskingKey.from_bytes(*KEY.chain, b"n" * 32)
    given = '{"file_path": "/srv/acme/cart.py"}'
    was, now = (arguments.one(given, "Read", "t", MaskPlan(key))[0] for key in (KEY, new))
    assert rekeying.rekey_text(was, KEY, new) == now != was


HALF = "\\ud83d"


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        (f'{{"signature":"EqRk","x":"{HALF}","file_path":"/srv/acme/x.py"}}', ("EqRk", "acme")),
        ('{"encrypted_content":"gAxY","score":NaN}', ("gAxY",)),
        ('{"signature":"EqRk"}\n{"a":{"encrypted_content":"gAxY"}}\nplain', ("EqRk", "gAxY")),
        ('{"thoughtSignature":["EqRk"],"signature":{"v":"gAxY"}}', ("EqRk", "gAxY")),
        (json.dumps({"o": json.dumps({"o": json.dumps({"signature": "EqRk"})})}), ("EqRk",)),
        (json.dumps(json.dumps({"signature": "EqRk"})), ("EqRk",)),
        ('{"text":"fine","signature":"EqRkQ2xh', ("EqRk",)),
        ('{"a":' * 300 + '{"signature":"EqRk"}' + "}" * 300, ("EqRk",)),
        ('{"a":' * 3000 + '{"signature":"EqRk"}' + "}" * 3000, ("EqRk",)),
    ],
)
def test_what_is_dropped_goes_from_every_json_that_a_log_may_hold(given: str, gone: tuple[str, ...]) -> None:
    """Half a character, NaN, lines, lists, strings, a cut end: the strict reader refuses or the walk skips them."""
    sessions, steps = frames([session("s1")], [("s1", {"name": "Read", "arguments": given, "output": given})])
    masked = mask_part(sessions, steps, PLAN).steps
    for column in ("arguments", "output"):
        left = masked[column][0]
        assert not [value for value in gone if value in left and (value != "acme" or column == "arguments")]
        assert arguments.one(left, "Read" if column == "arguments" else None, "", PLAN)[0] == left
    assert "plain" in masked["output"][0] or "plain" not in given


def test_numbers_and_halves_stay_what_they_were() -> None:
    given = f'{{"signature":"EqRk","n":NaN,"x":"{HALF}"}}'
    assert arguments.one(given, None, "", PLAN)[0] == f'{{"signature":null,"n":NaN,"x":"{HALF}"}}'


def test_untouched_numbers_and_keys_that_masking_made_the_same_stay() -> None:
    rest = '"v":1.10,"id":123456789012345678901234567890,"n":[1e5,-0.0,2],"<SECRET:password>":1'
    given = f'{{"signature":"EqRk",{rest},"<SECRET:password>":2}}'
    expected = f'{{"signature":null,{rest},"<SECRET:password> 2":2}}'
    assert arguments.one(given, None, "", PLAN)[0] == expected
    assert arguments.one(expected, None, "", PLAN) == (expected, ())


@pytest.mark.parametrize(
    "rest", ['"s":"\\ud83d"', '"n":NaN', '"exact-0":"exact-0"', '"deep":' + "[" * 200 + "]" * 200 + ',"s":"\\ud83d"']
)
def test_numbers_keep_their_digits_beside_what_the_strict_writer_refuses(rest: str) -> None:
    text = '{"big":123456789012345678901234567890,"v":1.10,"far":1e400,' + rest + "}"
    assert documents.write(documents.read(text)) == text


def test_thousands_of_one_key_are_numbered_in_one_pass() -> None:
    class Counted(dict):  # type: ignore[type-arg]
        asked = 0

        def __contains__(self, key: object) -> bool:
            Counted.asked += 1
            return super().__contains__(key)

    pairs = [("<EMAIL_ADDRESS:x>", n) for n in range(500)]
    made = documents._object(pairs, Counted())
    assert list(made.values()) == list(range(500))
    assert Counted.asked < 4 * len(pairs)
