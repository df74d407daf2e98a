"""The judge of borderline turns, against a server of its own on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalpipe import review
from evalpipe.cli import app
from evalpipe.console import judging
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import load
from evalpipe.steps import judge as judges

ABOUT = judges.question()
ITEM = {"item_id": "x.0001", "kind": "turn", "lang": "en", "previous_request": "add {shown}", "agent_tail": "Done.",
        "shown": "no, the other column", "labels": [], "note": ""}  # fmt: skip


class Server:
    """Answers with the statuses and texts it was told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append({"path": self.path, **json.loads(body)})
                outer.keys.append(self.headers.get("Authorization"))
                status, content = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                sent = content if isinstance(content, bytes) else json.dumps(
                    {"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()  # fmt: skip
                self.send_response(status)
                if status in range(300, 400):
                    self.send_header("Location", "/elsewhere")
                if status == 429:
                    self.send_header("Retry-After", "7")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def do_GET(self) -> None:
                outer.keys.append(self.headers.get("Authorization"))
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def asking(server: Server, slept: list[float] | None = None) -> judges.Ask:
    return judges.endpoint(server.url + "/", "some-model", "k", ABOUT, (slept if slept is not None else []).append)


def test_a_turn_is_asked_about_with_what_came_before_and_its_labels_come_back(server: Server) -> None:
    server.answers = [(200, '```json\n{"labels": ["correction", "complaint.sentiment"]}\n```')]
    (one,) = judges.judge([ITEM], asking(server), ABOUT)
    assert (one.state, one.labels) == ("labelled", ("correction", "complaint.sentiment"))
    (sent,) = server.asked
    assert sent["path"] == "/v1/chat/completions"
    assert (sent["model"], sent["temperature"]) == ("some-model", 0.0)
    assert server.keys == ["Bearer k"]
    system, user = (message["content"] for message in sent["messages"])
    assert all(f"- {label}: " in system for label in ABOUT.labels)
    # The name of a place inside a text is text.
    assert "<<<\nadd {shown}\n>>>" in user
    assert user.count("no, the other column") == 1


@pytest.mark.parametrize(
    "answer",
    ["correction", "", "[]", "null", '{"labels": []}', '{"labels": "correction"}', '{"labels": ["happy"]}',
     '{"labels": ["correction", "correction"]}', '{"labels": ["neutral", "praise"]}', '{"labels": [["praise"]]}',
     '{"labels": ["praise"], "why": "it is warm"}', 'Sure! {"labels": ["praise"]}', "[" * 100_000],
)  # fmt: skip
def test_an_answer_that_breaks_the_schema_is_invalid_and_never_guessed(answer: str) -> None:
    assert judges.read_answer(answer, ABOUT) == ()
    (one,) = judges.judge([ITEM], lambda messages: answer, ABOUT)
    assert (one.state, one.labels) == ("invalid", ())


@pytest.mark.parametrize(
    "body", [b"not json", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": 3}}]}']
)
def test_a_response_without_a_text_is_invalid(server: Server, body: bytes) -> None:
    server.answers = [(200, body)]
    (one,) = judges.judge([ITEM], asking(server), ABOUT)
    assert one.state == "invalid"


def test_a_busy_endpoint_is_asked_again_after_longer_and_longer_waits(server: Server) -> None:
    slept: list[float] = []
    server.answers = [(500, b""), (503, b""), (429, b""), (200, '{"labels": ["neutral"]}')]
    (one,) = judges.judge([ITEM], asking(server, slept), ABOUT)
    assert one.labels == ("neutral",)
    assert slept == [1.0, 2.0, 7.0]


def test_who_refuses_is_not_asked_again_and_who_stays_away_is_given_up(server: Server) -> None:
    slept: list[float] = []
    server.answers = [(401, b"")]
    with pytest.raises(EvalpipeError, match=r"JUDGE_UNUSABLE .*status 401"):
        list(judges.judge([ITEM], asking(server, slept), ABOUT))
    assert (len(server.asked), slept) == (1, [])
    server.answers = [(503, b"")]
    with pytest.raises(EvalpipeError, match=r"JUDGE_UNUSABLE .*status 503.* 5 attempts"):
        list(judges.judge([ITEM], asking(server, slept), ABOUT))
    assert len(slept) == ABOUT.attempts - 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_follows_a_redirect(server: Server, status: int) -> None:
    server.answers = [(status, b"")]
    with pytest.raises(EvalpipeError, match=f"JUDGE_UNUSABLE .*status {status}"):
        list(judges.judge([ITEM], asking(server), ABOUT))
    assert server.keys == ["Bearer k"]


def test_a_judge_may_say_whatever_a_reviewer_of_turns_may() -> None:
    guide = review.guide()
    assert set(ABOUT.labels) == {label.name for label in guide.of("turn")}
    assert ABOUT.alone == guide.alone & set(ABOUT.labels)
    assert all(label.help in ABOUT.system for label in guide.of("turn"))


def test_nobody_is_asked_where_no_endpoint_is_named() -> None:
    for url, name in (("", "m"), ("http://127.0.0.1:1/v1", ""), ("file:///etc/hosts", "m")):
        with pytest.raises(EvalpipeError, match="JUDGE_UNUSABLE"):
            judges.endpoint(url, name, "", ABOUT)


def test_text_in_which_something_is_not_masked_does_not_leave() -> None:
    leaky = ITEM | {"agent_tail": "I set it to AKIA" + "Q7ZX3M5TBN2WLK4D"}

    def ask(messages: list[dict[str, str]]) -> str:
        raise AssertionError("it was sent")

    (one,) = judges.judge([leaky], ask, ABOUT)
    assert (one.state, one.labels) == ("withheld", ())


def test_items_are_judged_into_a_file_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(judging.KEY, "k")
    items, out = tmp_path / "items.jsonl", tmp_path / "judged.jsonl"
    call = ITEM | {"item_id": "x.0002", "kind": "call"}
    other = ITEM | {"item_id": "x.0003", "shown": "danke schön"}
    items.write_text("".join(json.dumps(row) + "\n" for row in (ITEM, call, other)), "utf-8")
    server.answers = [(200, '{"labels": ["correction"]}'), (200, "well")]
    judging.run(items, out, url=server.url, name="some-model", as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "labelled": 1, "invalid": 1, "withheld": 0, "judged_before": 0, "not_turns": 1,
    }  # fmt: skip
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(row["item_id"], row["labels"]) for row in rows] == [("x.0001", ["correction"]), ("x.0003", [])]
    assert rows[1]["shown"] == "danke schön"
    judging.run(items, out, url=server.url, name="some-model", as_json=False)
    assert len(server.asked) == 2
    assert "judged before" in capsys.readouterr().out


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    items.write_text('{"text": "hello"}\n', "utf-8")
    with pytest.raises(EvalpipeError, match=r"LABELS_INVALID \[.*items\.jsonl:1\]"):
        judging.run(items, tmp_path / "out.jsonl", url="http://127.0.0.1:1/v1", name="m", as_json=False)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    "url", ["https://me:s3cret@judge.example.org/v1", "https://s3cret@judge.example.org", "https://h/v1?key=s3cret",
            "https://[::1", "https://h:s3cret/v1", "https://h:99999/", "https://", "https://h/s3cret\n", "https://h/\u00e9"],
)  # fmt: skip
def test_what_is_no_address_is_refused_and_never_shown(url: str) -> None:
    with pytest.raises(EvalpipeError, match="JUDGE_UNUSABLE") as caught:
        judges.endpoint(url, "m", "", ABOUT)
    assert "s3cret" not in str(caught.value)


def test_only_the_place_of_an_address_is_shown(server: Server) -> None:
    server.answers = [(403, b"")]
    ask = judges.endpoint(f"{server.url}/s3cret", "m", "", ABOUT)
    with pytest.raises(EvalpipeError, match=rf"JUDGE_UNUSABLE \[{server.url.removesuffix('/v1')}\]"):
        ask([])


def test_a_key_that_no_header_can_hold_is_refused() -> None:
    with pytest.raises(EvalpipeError, match="JUDGE_UNUSABLE"):
        judges.endpoint("https://h/v1", "m", "k\nx", ABOUT)


def test_any_hit_of_the_detector_withholds(monkeypatch: pytest.MonkeyPatch) -> None:
    low = next(one.id for one in judges.detector.detectors() if not one.is_high)
    monkeypatch.setattr(judges.detector, "scan", lambda series: {low: 1})
    (one,) = judges.judge([ITEM], lambda messages: '{"labels": ["praise"]}', ABOUT)
    assert one.state == "withheld"


@pytest.mark.parametrize("left", ['{"item_id": "x.0001", "shown": "no, the', json.dumps(ITEM | {"labels": ["praise"]})])
def test_an_interrupted_run_is_gone_on_with(
    server: Server, tmp_path: Path, left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    items, out = tmp_path / "items.jsonl", tmp_path / "judged.jsonl"
    items.write_text("".join(json.dumps(ITEM | {"item_id": f"x.{n:04d}"}) + "\n" for n in (0, 1, 2)), "utf-8")
    out.write_text(json.dumps(ITEM | {"item_id": "x.0000", "note": "judge m, question 1: invalid"}) + "\n" + left)
    out.chmod(0o644)
    server.answers = [(200, '{"labels": ["neutral"]}')]
    judging.run(items, out, url=server.url, name="m", as_json=True)
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [row["item_id"] for row in rows] == ["x.0000", "x.0001", "x.0002"]
    assert rows[1]["labels"] == ["neutral" if left.endswith("the") else "praise"]
    assert out.stat().st_mode & 0o777 == 0o600
    n = len(server.asked)
    for _ in range(2):
        judging.run(items, out, url=server.url, name="m", as_json=True, retry_invalid=True)
    assert len(server.asked) == n + 1
    assert json.loads(out.read_text("utf-8").splitlines()[-1])["item_id"] == "x.0000"
    capsys.readouterr()


def test_items_that_are_gone_from_their_home_are_not_sent(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = [(200, '{"labels": ["neutral"]}')]
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(ITEM | {"item_id": f"x.000{n}"}) + "\n" for n in (1, 2)))
    monkeypatch.setattr("evalpipe.steps.reviews.gone", lambda lake, names: frozenset({"x.0002"} & set(names)))
    settings = load(folder=tmp_path, environ={}, home=tmp_path / "home")
    judging.run(items, tmp_path / "o.jsonl", url=server.url, name="m", as_json=True, settings=settings)
    assert json.loads(capsys.readouterr().out)["gone"] == 1
    assert len(server.asked) == 1
    done = CliRunner().invoke(app, ["signals", "judge", str(items), "--out", "o", "--home", str(tmp_path / "none")])
    assert done.exit_code != 0
    assert "NO_HOME" in done.output
