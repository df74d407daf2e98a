"""A judge of borderline turns: a model behind an OpenAI-compatible interface, asked turn by turn.

Belongs here: the question, the answer's schema, retries, what is held back. Does not belong here: which turns
are asked about (``evalpipe review sample``), and counting: labels of a judge are one reviewer's opinion.

Text leaves the machine here and nowhere else. What is asked about is what the file holds; an item in which the
independent detector of the leak check finds anything is withheld.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from itertools import cycle
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from evalpipe import review
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.masking import detector

#: A judge: the messages of one question in, the text of the answer out.
Ask = Callable[[list[dict[str, str]]], str]
LABELLED, INVALID, WITHHELD = "labelled", "invalid", "withheld"
SHOWN = ("previous_request", "agent_tail", "shown")
_PLACES = re.compile(r"\{(previous_request|agent_tail|shown)\}")
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, from ``data/judge/turns.toml`` and the guide of reviewers."""

    version: str
    system: str
    question: str
    labels: tuple[str, ...]
    alone: frozenset[str]
    max_labels: int
    temperature: float
    max_answer_tokens: int
    timeout_seconds: float
    attempts: int
    first_wait_seconds: float
    longest_wait_seconds: float


def question() -> Question:
    """The shipped question; its labels are those that reviewers of turns have."""
    data = tomllib.loads((data_dir() / "judge" / "turns.toml").read_text("utf-8"))
    guide = review.guide()
    labels = guide.of("turn")
    listed = "\n".join(f"- {label.name}: {label.help}" for label in labels)
    system = f"{data.pop('system').strip()}\nLabels:\n{listed}"
    names = tuple(label.name for label in labels)
    return Question(**data, system=system, labels=names, alone=guide.alone & set(names))


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said of an item: its labels, empty unless ``state`` is :data:`LABELLED`."""

    item: Mapping[str, Any]
    state: str
    labels: tuple[str, ...]


def judge(items: Iterable[Mapping[str, Any]], ask: Ask, about: Question) -> Iterator[Judged]:
    """Ask about items, one by one.

    Args:
        items: Items of a sample with masked texts in :data:`SHOWN`.
        ask: The judge.
        about: The question.

    Raises:
        EvalpipeError: ``JUDGE_UNUSABLE`` from ``ask``; what came before has been yielded.
    """
    for item in items:
        texts = {name: str(item.get(name) or "") for name in SHOWN}
        # Any hit, also one that is a leak only now and then: what has left does not come back.
        if detector.scan(pl.Series(list(texts.values()), dtype=pl.String)):
            yield Judged(item, WITHHELD, ())
            continue
        # In one pass, since a text may hold the name of another.
        asked = "".join(
            f"<<<\n{texts[piece]}\n>>>" if is_place else piece
            for is_place, piece in zip(cycle((False, True)), _PLACES.split(about.question.strip()), strict=False)
        )
        labels = read_answer(ask([_said("system", about.system), _said("user", asked)]), about)
        yield Judged(item, LABELLED if labels else INVALID, labels)


def read_answer(text: str, about: Question) -> tuple[str, ...]:
    """Labels of an answer; none where it breaks the schema: nothing is guessed from prose.

    Args:
        text: The answer, one JSON object, in a code fence or not.
        about: The question.
    """
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.strip("`").removeprefix("json").strip()
    try:
        found = json.loads(bare)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict) or set(found) != {"labels"} or not isinstance(found["labels"], list):
        return ()
    labels = found["labels"]
    if not all(isinstance(label, str) and label in about.labels for label in labels) or len(set(labels)) != len(labels):
        return ()
    if len(labels) > about.max_labels or (len(labels) > 1 and about.alone & set(labels)):
        return ()
    return tuple(labels)


def endpoint(url: str, name: str, key: str, about: Question, sleep: Callable[[float], None] = time.sleep) -> Ask:
    """A judge behind an OpenAI-compatible interface.

    Args:
        url: Base address, to which ``/chat/completions`` is added. name: Model.
        key: Sent as a bearer token; none where empty.
        about: The question, for its limits.
        sleep: Waits between attempts.

    Raises:
        EvalpipeError: ``JUDGE_UNUSABLE`` where no address or model is named, or what is named cannot be one.
    """
    place = _place(url)
    if not name:
        raise EvalpipeError("JUDGE_UNUSABLE", "no model is named.", where="--model")
    if not (key.isascii() and key.isprintable()):
        raise EvalpipeError("JUDGE_UNUSABLE", "the key holds what no header can.", where="EVALPIPE_JUDGE_KEY")
    address = url.rstrip("/") + "/chat/completions"
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    opener = urllib.request.build_opener(_NoRedirect)

    def ask(messages: list[dict[str, str]]) -> str:
        body = {"model": name, "messages": messages, "temperature": about.temperature,
                "max_tokens": about.max_answer_tokens}  # fmt: skip
        wait, why = about.first_wait_seconds, ""
        for attempt in range(about.attempts):
            if attempt:
                sleep(min(wait, about.longest_wait_seconds))
                wait *= 2
            request = urllib.request.Request(address, json.dumps(body).encode(), headers)
            try:
                with opener.open(request, timeout=about.timeout_seconds) as response:
                    return _content(response.read())
            except urllib.error.HTTPError as error:
                with error:
                    why = f"it answers with status {error.code}."
                    if error.code not in _BUSY:
                        raise EvalpipeError("JUDGE_UNUSABLE", why, where=place) from None
                    wait = max(wait, _asked_to_wait(error))
            except (OSError, HTTPException) as error:
                why = f"it cannot be reached: {type(error).__name__}."
        raise EvalpipeError("JUDGE_UNUSABLE", f"{why} {about.attempts} attempts failed.", where=place)

    return ask


def _place(url: str) -> str:
    """Scheme, host and port of an address: what may be shown of it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.scheme not in ("http", "https") or not (url.isascii() and url.isprintable()) or " " in url:
        raise EvalpipeError("JUDGE_UNUSABLE", "no endpoint (http or https) is named.", where="--url")
    if "@" in parts.netloc or parts.query or parts.fragment:
        what = "it holds credentials or a query; a key comes from EVALPIPE_JUDGE_KEY alone."
        raise EvalpipeError("JUDGE_UNUSABLE", what, where="--url")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect a failure: text and key go to the address that was named, and to no other."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        """Follow nothing."""


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _content(body: bytes) -> str:
    """Text of a response; empty, which no schema takes, where it has none."""
    try:
        text = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""


def _asked_to_wait(error: urllib.error.HTTPError) -> float:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0
