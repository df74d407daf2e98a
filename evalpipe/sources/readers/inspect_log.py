"""Inspect's logs: ``.json`` documents, ``.eval`` archives (as lines), and bare lists of events.

Belongs here: header, sample, scores, limits and errors. Events are in ``inspect_events.py``.

Mapping: a sample is a session, ``uuid`` its id (a retried run copies it), else run, task, sample id
and epoch; ``eval.model`` the model, the task the scenario, the sample's id the task, the epoch the
trial. The first score's value is the reward: C, P, I, N are 1, 0.5, 0, 0. A limit ends a session
with ``timeout`` (by the operator: ``interrupted``), an error with ``error``; a sample that broke has no
success, whatever a scorer said. Tokens are those of the model events outside of scorers; without
events, the sample's ``model_usage`` of the evaluated model.
"""

from __future__ import annotations

import re
from dataclasses import replace

from evalpipe.sources.containers import EVAL_HEADER, EVAL_SAMPLE
from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Reader,
    Record,
    RowParser,
    block_text,
    digest_of,
    json_readers,
    word_of,
)
from evalpipe.sources.readers.inspect_events import (
    Events,
    add_children,
    add_tool_times,
    answer_of,
    match,
    sort_events,
    usage_of,
)
from evalpipe.sources.readers.openai_messages import add_messages, is_message_list
from evalpipe.sources.readers.tau_bench import success
from evalpipe.sources.readers.usage import put_usage
from evalpipe.sources.session import (
    END,
    INPUT,
    KIND,
    OUTPUT_TOKENS,
    REASONING,
    START,
    STEP_ID,
    Session,
    agent_row,
    number_or_none,
    small_count,
    text_or_none,
)
from evalpipe.sources.times import normal_time

SOURCE = "inspect"

_ATTACHMENT = "attachment://"
#: The head of a document whose samples lie far behind, or of one without samples.
_HEAD = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_EVENTS = frozenset({"model", "tool", "span_begin", "step", "sample_init", "state", "info"})
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_INTERRUPTED = frozenset({"operator", "cancelled"})


class InspectParser(RowParser):
    """Parser of one log."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._eval: Record = {}

    def header(self, value: Record) -> None:
        """Take ``eval`` of a document."""
        self._eval = value

    def feed(self, record: Record) -> str:
        """Take one sample, or the header line of an archive."""
        if EVAL_HEADER in record:
            header = record[EVAL_HEADER]
            inner = header.get("eval") if type(header) is dict else None
            if type(inner) is not dict:
                return BAD_FIELD
            self._eval = inner
            return KEPT
        return super().feed(record)

    def read(self, record: Record) -> Session | str:
        """Take one sample."""
        sample = record.get(EVAL_SAMPLE, record)
        if type(sample) is not dict:
            return BAD_FIELD
        messages, events = sample.get("messages"), sample.get("events")
        if messages is None and events is None:
            return NOT_A_RECORD
        if not is_message_list(messages if messages is not None else []) or type(events) not in (list, type(None)):
            return BAD_FIELD
        session = self._session(sample)
        _outcome(session, sample)
        found = sort_events(events)
        _add(session, _resolved(messages or _of_events(found), sample.get("attachments")), found)
        if not found.times:
            self._dated(session, sample)
        _tokens(session, sample)
        return session

    def _session(self, sample: Record) -> Session:
        run = self._eval
        session_id = text_or_none(sample.get("uuid"))
        if session_id is None:
            known = [run.get("run_id"), run.get("task_id"), sample.get("id"), sample.get("epoch")]
            names = [str(name) for name in (run.get("task"), sample.get("id"), sample.get("epoch")) if name is not None]
            session_id = "/".join([*names, digest_of([known, sample])])
        solver = text_or_none(run.get("solver"))
        session = Session(SOURCE, session_id, solver or SOURCE)
        session.model, session.harness = text_or_none(run.get("model")), SOURCE
        revision = run.get("task_version")
        session.agent_release = str(revision) if type(revision) in (int, str) and revision else None
        session.scenario = text_or_none(run.get("task"))
        task = sample.get("id")
        session.task_id = str(task) if type(task) in (int, str) else None
        session.trial = small_count(sample.get("epoch"))
        return session

    def _dated(self, session: Session, sample: Record) -> None:
        """Without events the sample's own times, else the run's, date the session."""
        for source, names in ((sample, ("started_at", "completed_at")), (self._eval, ("created",))):
            times = [at for name in names if (at := normal_time(source.get(name))) is not None]
            for at in times:
                session.see(at)
            if times:
                return


def _add(session: Session, messages: list[Record], found: Events) -> None:
    """Messages with what the events say of them, then what was done beside them."""
    if found.times:
        session.see(found.times[0])
    matched = match(messages, found)
    given = []
    for position, message in enumerate(messages):
        event = matched.get(position)
        if event is not None:
            model, at = event.get("model"), event.get("timestamp")
            message = {**message, "timestamp": at, "usage": usage_of(event), "model": model}
        elif message.get("role") == "assistant":
            # The provider's name for the model differs from the run's; the label is the run's.
            message = {**message, "model": None}
        given.append(message)
    add_messages(session, given)
    rows = {row[STEP_ID]: row for row in session.rows if row[KIND] == "agent"}
    for position, event in matched.items():
        if (row := rows.get(str(position))) is not None:
            row[END] = normal_time(event.get("completed")) or row[START]
    add_tool_times(session, found)
    add_children(session, found)
    session.greatest_at = max([session.greatest_at, *found.times])


def _of_events(found: Events) -> list[Record]:
    """The conversation of a sample that stores none: the main agent's requests and answers."""
    if not found.models:
        return []
    outermost = min(len(path) for _, path in found.models)
    prompt: str | None = None
    messages: list[Record] = []
    for event, path in found.models:
        asked = event.get("input")
        given: list[Record] = asked if type(asked) is list and is_message_list(asked) else []
        own = next((_prompt(m) for m in given if m["role"] == "system"), "")
        prompt = own if prompt is None else prompt
        # Another prompt in the same span: the agent had a helper do something.
        if len(path) != outermost or own != prompt:
            continue
        if not messages:
            messages += [m for m in given if m["role"] in ("system", "user")]
        if answer := answer_of(event):
            messages.append({**answer, "role": "assistant"})
            messages += _results_of(answer, found)
    return messages


def _prompt(message: Record) -> str:
    """A system prompt without the line in which some agents put a number that always changes."""
    text = block_text(message.get("content")) or ""
    return text.partition("\n")[2] if text.startswith("x-anthropic-billing-header:") else text


def _results_of(answer: Record, found: Events) -> list[Record]:
    calls = answer.get("tool_calls")
    ids = {c.get("id") for c in calls if type(c) is dict and type(c.get("id")) is str} if type(calls) is list else set()
    return [
        {"role": "tool", "tool_call_id": event["id"], "content": event.get("result"), "error": event.get("error")}
        for event, _ in found.tools
        if type(event.get("id")) is str and event["id"] in ids
    ]


def _resolved(messages: list[Record], attachments: object) -> list[Record]:
    """Messages with the long texts that lie apart from them, under their digest."""
    if type(attachments) is not dict or not attachments:
        return messages
    return [{**m, "content": _attached(m.get("content"), attachments)} for m in messages]


def _attached(content: object, attachments: Record) -> object:
    if type(content) is str and content.startswith(_ATTACHMENT):
        found = attachments.get(content[len(_ATTACHMENT) :])
        return found if type(found) is str else content
    if type(content) is list:
        return [_attached_block(b, attachments) if type(b) is dict else b for b in content]
    return content


def _attached_block(block: Record, attachments: Record) -> Record:
    return {**block, "text": _attached(block["text"], attachments)} if "text" in block else block


def _outcome(session: Session, sample: Record) -> None:
    scores = sample.get("scores")
    score = next(iter(scores.values()), None) if type(scores) is dict else sample.get("score")
    session.reward = _value(score.get("value") if type(score) is dict else score)
    session.is_success = _success(score.get("value") if type(score) is dict else score, session.reward)
    limit = sample.get("limit")
    if type(limit) is dict:
        session.end_status = "interrupted" if word_of(limit.get("type")) in _INTERRUPTED else "timeout"
    elif score is not None:
        session.end_status = "completed"
    if sample.get("error") or sample.get("invalidation"):
        session.reward = session.is_success = None
        session.end_status = "error"


def _success(value: object, reward: float | None) -> bool | None:
    """Whether a score says that the task was solved: of numbers only 0 and 1 do, since scorers measure anything."""
    if type(value) is str and value in _LETTERS:
        return success(reward)
    return None if reward is None or reward not in (0.0, 1.0) else reward == 1.0


def _value(value: object) -> float | None:
    """A score as a number; one of several values is none."""
    if type(value) is bool:
        return float(value)
    if type(value) is not str:
        return number_or_none(value)
    if value in _LETTERS:
        return _LETTERS[value]
    try:
        return number_or_none(float(value))
    except ValueError:
        return None


def _tokens(session: Session, sample: Record) -> None:
    """Totals of the evaluated model, where no step has any; other models in them may be graders."""
    usage = sample.get("model_usage")
    if type(usage) is not dict or any(row[INPUT] is not None or row[OUTPUT_TOKENS] is not None for row in session.rows):
        return
    found = usage.get(session.model) if session.model else next(iter(usage.values()), None)
    row = agent_row("", None, None, None)
    put_usage(row, found)
    session.stated_tokens = tuple(row[INPUT : REASONING + 1])


def _is_sample(record: Record) -> bool:
    return "epoch" in record and "target" in record and ("messages" in record or "events" in record)


def _is_line(record: Record) -> bool:
    return EVAL_HEADER in record or EVAL_SAMPLE in record or _is_sample(record)


def _is_events(record: Record) -> bool:
    events = record.get("events")
    first = events[0] if type(events) is list and events else None
    return type(first) is dict and word_of(first.get("event")) in _EVENTS and "timestamp" in first


_DOCUMENT = Reader(
    name=SOURCE,
    version="2",
    shape="items",
    recognise=_is_sample,
    hint=lambda head: _HEAD.match(head) is not None,
    parser=InspectParser,
    lists=frozenset({"samples"}),
    header_key="eval",
    is_one_record_a_session=True,
)
_LINES = replace(_DOCUMENT, shape="lines", recognise=_is_line, hint=lambda _: False, lists=frozenset(), header_key="")
READERS = (_LINES, _DOCUMENT, *json_readers(replace(_LINES, recognise=_is_events)))
