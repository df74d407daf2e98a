"""The list of verbs: what a person needs first stands first, and no line of it breaks off."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from evalpipe.cli import app

FIRST = ["run", "backfill", "report", "gate", "release", "sql", "export", "doctor"]


def _help(*verb: str) -> str:
    return CliRunner().invoke(app, [*verb, "--help"], terminal_width=80).output


def test_verbs_of_the_first_hour_stand_first() -> None:
    listed = re.findall(r"^  (\w+) {2,}", _help().partition("Commands:")[2], flags=re.MULTILINE)
    assert listed[: len(FIRST)] == FIRST


def test_no_line_of_help_breaks_off() -> None:
    for group in ([], ["criteria"], ["keys"]):
        assert "..." not in _help(*group).partition("Commands:")[2], group


def test_help_names_every_exit_code_of_the_documentation() -> None:
    told = " ".join(_help().partition("Exit codes:")[2].split())
    for code in (*range(7), 130, 141):
        assert re.search(rf"\b{code} [a-z]", told), code


def test_status_is_another_name_of_doctor() -> None:
    assert _help("status").partition("\n\n")[2] == _help("doctor").partition("\n\n")[2]
    assert "\n  status" not in _help()
