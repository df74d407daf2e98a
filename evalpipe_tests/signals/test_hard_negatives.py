"""What looks like a signal and is none: every such case that the design of the signals names.

One row a case. A case that a row of another test shows already stands here once more: this file is the
list against which the extraction is held.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evalpipe.signals import SignalsPart, extract_part
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

FEEDBACK = ("confirm.explicit", "praise", "complaint.failure_report", "complaint.sentiment", "correction")
DONE_EN, DONE_ZH, DONE_PT = "I have added it, it is done.", "已完成，已修改。", "Pronto, foi adicionado."


def extract(talk: Talk) -> SignalsPart:
    return extract_part(*frames(talk), EXTRACTION)


def heard(agent: str, *said: str) -> set[str]:
    talk = Talk().user("please look at the list of orders").agent(agent)
    for text in said:
        talk.user(text)
    return set(extract(talk).semantic["signal"]) & set(FEEDBACK)


#: (what the case is, what the agent said, what the person said)
NO_FEEDBACK = [
    ("an opener of an iteration: now", DONE_EN, "Now let the footer have two columns"),
    ("an opener of an iteration: also", DONE_EN, "Also sort the orders by customer"),
    ("an opener of an iteration: agora", DONE_PT, "Agora coloca o total no rodapé"),
    ("an opener of an iteration: 再", DONE_ZH, "再加一列客户名称"),
    ("the person's own mistake, en", DONE_EN, "Sorry, I meant the invoices, that was my slip"),
    ("the person's own mistake, en, at the end", DONE_EN, "the wrong address, my mistake"),
    ("the person's own mistake, zh", DONE_ZH, "不对，是我写错了，应该是三月"),
    ("the person's own mistake, zh, given", DONE_ZH, "啊，地址是我给错了，门牌是12号"),
    ("the person's own mistake, pt", DONE_PT, "desculpa, erro meu, era o outro arquivo"),
    ("the person's own mistake, pt, passed on", DONE_PT, "ops, passei o número errado, é o 12"),
    ("a changed mind, en", DONE_EN, "I changed my mind, leave it at the top after all"),
    ("a changed mind, zh", DONE_ZH, "我改主意了，放到上面吧"),
    ("a changed mind, pt", DONE_PT, "mudei de ideia, prefiro em cima"),
    ("no to a question, en", "Shall I delete the old export as well?", "No, the old export stays"),
    ("no to a question, zh", "要我把旧的导出也删掉吗？", "不行，旧的还要用"),
    ("no to a question, pt", "Quer que eu apague a exportação antiga?", "Não, ela ainda é usada"),
    ("a choice of two, en", "Is the code wrong or the test?", "the code is wrong, the test is right"),
    ("a choice of two, pt", "Mudo o código ou o teste?", "o código está errado, muda o código"),
    ("an approval, however warm, en", "Here is the plan. Shall I start?", "yes, this looks great, go ahead"),
    ("an approval of a proposal, en", "I propose a cache of five minutes.", "sounds perfect, go ahead with that"),
    ("an approval, however warm, zh", "计划如下，可以开始吗？", "非常好，开始吧"),
    ("an approval of a proposal, pt", "Proponho um cache de cinco minutos.", "perfeito, pode fazer assim"),
    ("thanks that open a request, en", DONE_EN, "Thanks. Next: write the notes"),
    ("thanks that open a request, pt", DONE_PT, "obrigado. agora as notas"),
    ("a filler word, pt", "Vence em 12 dias.", "ótimo, então me lembra como se renova"),
    ("a place with an adverb of time, pt", DONE_PT, "ainda na tela de perfil, tira o link de baixo"),
    ("not over yet, pt", DONE_PT, "ainda não acabou de baixar, falta pouco"),
    ("not decided yet, pt", DONE_PT, "ainda não quero publicar"),
    ("why do we", DONE_EN, "why do we sort the orders twice?"),
    ("why are these", DONE_EN, "why are these two columns in cents?"),
    ("a word of another language", DONE_EN, "super, and who reads the export?"),
    ("a condition", DONE_EN, "if it still fails after that, tell me"),
    ("success with a contrast, en", DONE_EN, "it works, but what about the second page?"),
    ("success with a contrast, zh", DONE_ZH, "可以了，但是第二页呢"),
    ("success with a contrast, pt", DONE_PT, "funcionou, mas e a segunda página?"),
    ("success that is asked for", DONE_EN, "does it work now?"),
    ("a doubt without a failure", DONE_EN, "are you sure that covers the leap years?"),
    ("a pasted log", DONE_EN, "```\nERROR still not working: connection refused\n```"),
    ("a pasted log without a fence", DONE_EN, "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! Exit status 1"),
    ("quoted words of others", DONE_EN, "> it does not work, this is a disgrace\n\nanswer this one kindly"),
    ("words to translate", DONE_EN, 'please translate: "It does not work and I am very angry."'),
    ("a bug report is quoted by a third person", DONE_EN, "my boss said yes"),
    ("silence", DONE_EN, ""),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "said"), [pytest.param(a, s, id=name) for name, a, s in NO_FEEDBACK])
def test_no_feedback(agent: str, said: str) -> None:
    assert heard(agent, said) - ({"confirm.explicit"} if "works, but" in said else set()) == set()


@pytest.mark.parametrize(
    "said",
    [
        "do not use a library for this, and never write to the disk",
        "不要用任何库，别写磁盘",
        "não use biblioteca nenhuma",
    ],
)
def test_a_negative_constraint_of_the_first_turn_corrects_nobody(said: str) -> None:
    assert extract(Talk().user(said).agent(DONE_EN)).semantic.is_empty()


@pytest.mark.parametrize("origin", ["command", "meta", "injected", "notification", "compaction", "interrupt"])
def test_what_no_person_wrote_is_no_feedback(origin: str) -> None:
    talk = Talk().user("go").agent(DONE_EN).user("It still does not work, this is wrong", origin=origin)
    assert extract(talk).semantic.is_empty()


def test_the_end_of_a_session_is_no_acceptance() -> None:
    part = extract(Talk().user("write the export").agent(DONE_EN))
    assert part.semantic.is_empty()
    assert part.candidates.is_empty()


#: (what the case is, tool, command, output, exit code, mark of the log, signals that it must not give)
NO_ERROR: list[tuple[str, str, str, str, int | None, bool | None]] = [
    ("a search without a match", "Bash", "grep -rn needle src", "", 1, None),
    ("a search without a match, rg", "Bash", "rg needle", "", 1, None),
    ("a process that is not there", "Bash", "pgrep -f worker", "", 1, None),
    ("files that differ", "Bash", "diff a.txt b.txt", "1c1\n< a\n---\n> b", 1, None),
    ("files that differ, bytewise", "Bash", "cmp a.bin b.bin", "a.bin b.bin differ: byte 7, line 1", 1, None),
    ("a condition that does not hold", "Bash", "test -f build/done", "", 1, None),
    ("a merge conflict", "Bash", "git merge topic", "CONFLICT (content): Merge conflict in a.py\nAutomatic merge failed; fix conflicts and then commit the result.", 1, None),
    ("a failed test run", "Bash", "pytest -q", "FAILED t.py::test_a - assert 1 == 2\n1 failed, 3 passed in 0.1s", 1, None),
    ("a failed test run behind a pipe", "Bash", "pytest -q | tail -3", "FAILED t.py::test_a\n1 failed, 3 passed in 0.1s", 0, None),
    ("findings of a linter", "Bash", "ruff check .", "a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.", 1, None),
    ("a compiler that rejects", "Bash", "tsc --noEmit", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.", 2, None),
    ("a file that speaks of errors", "Read", "notes.md", "Traceback (most recent call last):\nValueError: bad\ncommand not found", None, None),
    ("search hits that speak of errors", "Grep", "error", "log.txt:3: FATAL error: permission denied", None, None),
    ("a call that the person refused", "Bash", "rm -r build", "The user doesn't want to proceed with this tool use. The tool use was rejected.", None, True),
    ("a call whose sibling failed", "Read", "a.py", "<tool_use_error>Sibling tool call errored</tool_use_error>", None, True),
    ("a call that was interrupted", "Bash", "make", "[Request interrupted by user for tool use]", None, True),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(row[1:], id=row[0]) for row in NO_ERROR])
def test_no_error_of_a_command(case: tuple[str, str, str, int | None, bool | None]) -> None:
    tool, command, output, code, flag = case
    key = "file_path" if tool == "Read" else "command"
    talk = Talk().user("please look at the build of the project")
    talk.tool(tool, output, arguments=json.dumps({key: command}), exit_code=code, is_error=flag)
    assert "command_error" not in set(extract(talk).hard["signal"])


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("ls build/cache", "ls: cannot access 'build/cache': No such file or directory", 2),
        ("which podman", "", 1),
        ("test -d .venv && echo yes", "", 1),
    ],
)
def test_looking_for_a_path_at_the_start_weighs_nothing(command: str, output: str, code: int) -> None:
    rows = extract(Talk().user("set the project up").bash(command, output, code)).hard
    assert [row for row in rows.iter_rows(named=True) if row["signal"] == "command_error" and row["strength"]] == []


def test_a_check_that_fails_weighs_nothing_by_itself() -> None:
    part = extract(Talk().user("write a failing test").bash("pytest -q", "FAILED t.py::a\n1 failed in 0.1s", 1))
    row = part.hard.row(0, named=True)
    assert (row["signal"], row["polarity"], row["strength"]) == ("check_failure", 0, 0.0)


def _changing(talk: Talk) -> Talk:
    for name in ("yaml", "numpy", "tornado", "jinja2"):
        talk.bash("notebook --init", f"ModuleNotFoundError: No module named '{name}'", 1)
    return talk


def _edited(talk: Talk) -> Talk:
    for n in range(4):
        talk.bash("python a.py", "ValueError: bad", 1)
        talk.tool("Edit", "done", arguments=json.dumps({"file_path": "a.py", "new": str(n)}), is_error=False)
    return talk


@pytest.mark.parametrize("course", [_changing, _edited])
def test_progress_is_no_loop(course: Callable[[Talk], Talk]) -> None:
    part = extract(course(Talk().user("get it to run")))
    assert "loop.retry" not in set(part.hard["signal"])


def test_whatever_succeeds_next_repairs_nothing() -> None:
    part = extract(Talk().user("get it to run").bash("python a.py", "ValueError: bad", 1).bash("ls", "a.py"))
    assert "self_fix" not in set(part.hard["signal"])


def _features(talk: Talk) -> dict[str, Any]:
    return extract(talk).session_features.row(0, named=True)


def test_an_interrupt_is_no_objection() -> None:
    talk = Talk().user("fix the list").bash("ls").user("[Request interrupted by user]", origin="interrupt")
    talk.user("use the other folder").agent(DONE_EN)
    part = extract(talk)
    assert set(part.hard["signal"]) == {"interrupt"}
    assert part.semantic.filter(part.semantic["polarity"] < 0).is_empty()
