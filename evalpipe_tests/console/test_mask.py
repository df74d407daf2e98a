"""``evalpipe mask``: files, exit codes, keys, and that nothing raw is printed."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from evalpipe.cli import app
from evalpipe.contracts.errors import Exit

MAIL = "ana.m@example.org"
HEX = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("EVALPIPE_KEY", "EVALPIPE_HOME"):
        monkeypatch.delenv(name, raising=False)


def _run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["mask", *arguments], input=stdin)


def _file(*rows: object) -> str:
    Path("in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return "in.jsonl"


def test_rows_go_to_standard_output_under_the_key_of_the_home() -> None:
    source = _file({"id": 1, "text": MAIL})
    first = _run(source, "--field", "text")
    assert first.exit_code == 0
    assert "A new masking key" in first.stderr
    assert stat.S_IMODE(Path(".evalpipe/masking.key").stat().st_mode) == 0o600
    second = _run(source, "--field", "text")
    assert second.stdout == first.stdout
    assert json.loads(first.stdout)["masked"].startswith("<EMAIL_ADDRESS:")


def test_a_key_of_the_environment_or_for_once_makes_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    source = _file({"text": MAIL})
    runs = [_run(source, "--field", "text", "--ephemeral-key").stdout for _ in range(2)]
    assert runs[0] != runs[1]
    monkeypatch.setenv("EVALPIPE_KEY", HEX)
    runs = [_run(source, "--field", "text").stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert not Path(".evalpipe").exists()


def test_refused_rows_are_named_counted_and_have_an_exit_code() -> None:
    Path("in.jsonl").write_text(f'{{"text": "{MAIL}"}}\nno\n{{"a": 1}}\n', "utf-8")
    done = _run("in.jsonl", "--field", "text", "--ephemeral-key", "--out", "out.jsonl")
    assert done.exit_code == Exit.SOME_SLICES_RED
    assert "BAD_JSON [in.jsonl:2]" in done.stderr
    assert "2 rows were left out (1 BAD_FIELD, 1 BAD_JSON); 1 are written." in done.stderr
    assert len(Path("out.jsonl").read_text("utf-8").splitlines()) == 1
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600
    assert [p.name for p in Path.cwd().iterdir()] == ["in.jsonl", "out.jsonl"] or not list(Path.cwd().glob(".out*"))


def test_standard_input_is_read_with_and_without_sessions() -> None:
    rows = f'{{"session": 1, "text": "{MAIL}"}}\n{{"session": 1, "text": "ana.m was here"}}\n'
    shared = _run("-", "--field", "text", "--ephemeral-key", stdin=rows)
    alone = _run("-", "--field", "text", "--ephemeral-key", "--session-field", "", stdin=rows)
    assert "<USERNAME:" in json.loads(shared.stdout.splitlines()[1])["masked"]
    assert json.loads(alone.stdout.splitlines()[1])["masked"] == "ana.m was here"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["in.jsonl"], "BAD_ARGUMENT"),
        (["absent.jsonl", "--field", "text"], "SOURCE_NOT_FOUND"),
        (["in.jsonl", "--field", "text", "--keep", "text"], "BAD_ARGUMENT"),
        (["in.jsonl", "--field", "text", "--out", "no/such/x"], "BAD_ARGUMENT"),
        (["in.jsonl", "--field", "text", "--ner", "nobody"], "NER_UNUSABLE"),
        (["eval", "absent"], "SOURCE_NOT_FOUND"),
        (["eval", "."], "CORPUS_INVALID"),
    ],
)
def test_a_wrong_command_is_one_error(arguments: list[str], code: str) -> None:
    _file({"text": "x"})
    done = _run(*arguments)
    assert done.exit_code == Exit.USAGE
    assert done.stderr.splitlines()[-2].startswith(code)


def test_explain_says_why_and_never_what() -> None:
    secret = "hunter" + "2024x"
    text = f"password: {secret}, mail bob.k\\u0040example.org; bob.k did it"
    done = _run("--explain", "-", stdin=text)
    assert done.exit_code == 0
    assert secret not in done.stdout
    assert "bob.k" not in done.stdout
    rows = json.loads(_run("--explain", text, "--json").stdout)
    assert [(row["entity"], row["view"], row["validator"]) for row in rows] == [
        ("SECRET", "plain", "kv_password"),
        ("EMAIL_ADDRESS", "decoded", "email"),
        ("USERNAME", "dictionary", "-"),
    ]
    assert rows[0]["becomes"] == "<SECRET:password>"
    assert text[slice(*map(int, rows[0]["where"].split("-")))] == secret


def _corpus() -> str:
    Path("c").mkdir()
    value = {"start": 5, "end": 5 + len(MAIL), "type": "EMAIL_ADDRESS", "canon": MAIL}
    missed = {"start": 0, "end": 5, "type": "PERSON"}
    rows = {
        "positives": [
            {"id": "p1", "text": f"mail {MAIL}", "spans": [value]},
            {"id": "p2", "text": "Boris", "spans": [missed]},
        ],
        "negatives": [{"id": "n1", "text": "nothing"}, {"id": "n2", "text": MAIL}],
        "sessions": [{"session_id": "s", "turns": [{"role": "user", "text": f"mail {MAIL}", "spans": [value]}]}],
    }
    for name, part in rows.items():
        Path("c", f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in part), "utf-8")
    return "c"


def test_eval_gives_shares_counts_and_places() -> None:
    done = _run("eval", _corpus(), "--json")
    out = json.loads(done.stdout)
    assert (out["rule_tier_recall"], out["session_recall"], out["secret_recall"]) == (0.5, 1.0, None)
    assert (out["negative_rows_touched"], out["n_negative_rows_touched"], out["n_negative_rows"]) == (0.5, 1, 2)
    assert out["by_entity"]["EMAIL_ADDRESS"]["recall"] == 1.0
    assert [(m["id"], m["start"], m["end"], m["entity"]) for m in out["missed"]] == [("p2", 0, 5, "PERSON")]
    assert [(h["id"], h["rule"]) for h in out["harmed"]] == [("n2", "email")]
    assert out["rule_tier_recall_interval"][0] < 0.5 < out["rule_tier_recall_interval"][1]
    assert MAIL not in done.stdout
    assert not Path(".evalpipe").exists()


def test_eval_prints_tables_and_values_only_on_request() -> None:
    folder = _corpus()
    plain, shown = _run("eval", folder), _run("eval", folder, "--show-values")
    assert plain.exit_code == shown.exit_code == 0
    assert "recall, rule tier" in plain.stdout
    assert "Boris" not in plain.stdout
    assert "Boris" in shown.stdout
