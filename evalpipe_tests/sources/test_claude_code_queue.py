"""Claude Code: messages typed while the agent works are counted, and counted once."""

from __future__ import annotations

from pathlib import Path

from evalpipe_tests.sources.helpers import Claude, Read, text, write


def people(read: Read) -> list[tuple[str, str]]:
    return [(o, t) for o, t in read.rows("origin", "text", kind="user") if o in ("human", "queued")]


def test_a_message_delivered_in_mid_turn_exists_only_in_the_queue(tmp_path: Path) -> None:
    c = Claude()
    read = Read(
        write(tmp_path, c.user("go"), c.queue("enqueue", "not that file"), c.agent(text("ok")), c.queue("remove"))
    )
    assert people(read) == [("human", "go"), ("queued", "not that file")]
    assert read.session["n_turns"] == 2
    assert read.rows("turn", kind="agent") == [2]


def test_a_message_pulled_back_for_editing_counts_as_it_was_sent(tmp_path: Path) -> None:
    c = Claude()
    read = Read(
        write(
            tmp_path,
            c.user("go"),
            c.queue("enqueue", "add tets"),
            c.queue("enqueue", "and docs"),
            c.queue("popAll", "add tets\nand docs"),
            c.user("add tests and docs"),
        )
    )
    assert people(read) == [("human", "go"), ("human", "add tests and docs")]


def test_a_message_that_becomes_an_ordinary_one_counts_once(tmp_path: Path) -> None:
    c = Claude()
    read = Read(
        write(tmp_path, c.user("go"), c.queue("enqueue", "next bug"), c.queue("dequeue"), c.user([text("next bug")]))
    )
    assert people(read) == [("human", "go"), ("human", "next bug")]


def test_several_messages_sent_as_one_count_once(tmp_path: Path) -> None:
    c = Claude()
    queued = [c.queue("enqueue", t) for t in ("zero", "one", "two")]
    read = Read(write(tmp_path, c.user("go"), *queued, c.queue("dequeue"), c.user("one\ntwo")))
    assert people(read) == [("human", "go"), ("queued", "zero"), ("human", "one\ntwo")]


def test_a_message_still_waiting_at_the_end_was_typed(tmp_path: Path) -> None:
    c = Claude()
    assert people(Read(write(tmp_path, c.user("go"), c.queue("enqueue", "wait")))) == [
        ("human", "go"),
        ("queued", "wait"),
    ]


def test_only_what_still_waits_is_pulled_back(tmp_path: Path) -> None:
    c = Claude()
    steps = [c.queue("enqueue", "first"), c.queue("remove"), c.queue("enqueue", "second"), c.queue("popAll", "second")]
    assert people(Read(write(tmp_path, c.user("go"), *steps))) == [("human", "go"), ("queued", "first")]


def test_commands_and_notifications_in_the_queue_are_no_turns(tmp_path: Path) -> None:
    c = Claude()
    note = "<task-notification>\n<task-id>7</task-id></task-notification>"
    read = Read(
        write(
            tmp_path,
            c.user("go"),
            c.queue("enqueue", "/ide"),
            c.queue("remove"),
            c.queue("enqueue", note),
            c.queue("dequeue"),
            c.user(note),
        )
    )
    assert read.rows("origin") == ["human", "command", "notification"]


def test_a_queued_message_attached_later_counts_once_and_alone_counts_too(tmp_path: Path) -> None:
    c = Claude()
    read = Read(
        write(
            tmp_path,
            c.user("go"),
            c.queue("enqueue", "one"),
            c.line("attachment", attachment={"type": "queued_command", "prompt": "one"}),
            c.line("attachment", attachment={"type": "queued_command", "prompt": [text("two")]}),
            c.line("attachment", attachment={"type": "todo", "content": []}),
        )
    )
    assert people(read) == [("human", "go"), ("queued", "one"), ("queued", "two")]
    assert read.file()["rows_noise"] == 2


def test_operations_on_an_empty_queue_are_noise(tmp_path: Path) -> None:
    c = Claude()
    read = Read(write(tmp_path, c.queue("dequeue"), c.user("go"), c.queue("remove"), c.queue("popAll")))
    assert read.file()["rows_noise"] == 3


def test_the_oldest_message_leaves_first(tmp_path: Path) -> None:
    c = Claude()
    steps = [c.queue("enqueue", "first"), c.queue("enqueue", "second"), c.queue("remove"), c.queue("popAll", "second")]
    assert people(Read(write(tmp_path, c.user("go"), *steps))) == [("human", "go"), ("queued", "first")]


def test_the_same_words_typed_again_after_they_were_delivered_are_another_message(tmp_path: Path) -> None:
    c = Claude()
    lines = [
        c.user("start"),
        c.queue("enqueue", "continue"),
        c.queue("remove"),
        c.agent(text("on it")),
        c.user("continue"),
    ]
    assert people(Read(write(tmp_path, *lines))) == [("human", "start"), ("queued", "continue"), ("human", "continue")]


def test_a_delivered_message_that_is_attached_later_counts_once(tmp_path: Path) -> None:
    c = Claude()
    lines = [
        c.user("go"),
        c.queue("enqueue", "one"),
        c.queue("remove"),
        c.line("attachment", attachment={"type": "queued_command", "prompt": "one"}),
    ]
    assert people(Read(write(tmp_path, *lines))) == [("human", "go"), ("queued", "one")]
