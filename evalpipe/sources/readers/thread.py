"""Which messages of a model call are new, when every call resends the conversation so far.

Belongs here: the comparison of one call's messages with what was seen before. Does not belong here:
reading messages (``chat.py``), spans, or rows.

Calls repeat the history whole, or its last few messages, or only what is new; assistant messages are
often spelled differently when they come back. So the whole view is compared first, and then the
user's messages alone. What a program asks a model beside the conversation (a title, a search query,
a retrieval template) is told apart: it shares no message with the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalpipe.sources.readers.chat import Message


class Said(NamedTuple):
    """A new message of a call, and whether it belongs to the conversation or only to the prompt."""

    message: Message
    is_conversation: bool


def overlap(known: Sequence[object], later: Sequence[object]) -> int:
    """How many leading items of ``later`` repeat the end of ``known``; the longest repeat counts."""
    if not known or not later:
        return 0
    head = later[0]
    for start in range(max(len(known) - len(later), 0), len(known)):
        if known[start] == head and list(known[start:]) == list(later[: len(known) - start]):
            return len(known) - start
    return 0


def after_answer(messages: Sequence[Message]) -> int:
    """Place behind the last answer among messages: where the present turn begins."""
    return max((place for place, message in enumerate(messages, 1) if message.role == "assistant"), default=0)


class Thread:
    """The conversation of one session, as far as its model calls have shown it.

    Args:
        is_whole: Whether the session holds its history. A trace that stands for itself does not:
            what it resends was said in other traces, and counts there.
    """

    def __init__(self, *, is_whole: bool = True) -> None:
        self._is_whole = is_whole
        #: The last call's messages and what the model answered.
        self._view: list[Message] = []
        #: Texts of the user, in order, and of the model's answers with the ids of its calls.
        self._said: list[str] = []
        self._answered: set[str] = set()
        self._system: str | None = None
        #: What the root of the trace was asked, and what of it no call has shown yet.
        self._asked: list[str] = []
        self._awaited: list[str] = []
        self._trace: str | None = None
        self._aside: set[str] = set()
        #: Whether the last call belongs to the conversation.
        self.is_on = False

    def ask(self, trace_id: str, texts: list[str]) -> list[str]:
        """Note what the user asked at the root of a trace; returns what of it is new.

        One text is the question itself, and new however often it was asked before; several are a
        conversation with its history.
        """
        new = texts if len(texts) == 1 else texts[overlap(self._said, texts) :]
        self._begin(trace_id)
        self._asked, self._awaited = texts, list(new)
        self._said += new
        return new

    def _begin(self, trace_id: str) -> bool:
        is_new = trace_id != self._trace
        if is_new:
            self._trace, self._asked, self._awaited = trace_id, [], []
        return is_new

    def new(self, trace_id: str, messages: list[Message]) -> list[Said]:
        """The messages of a call that were not seen before.

        Args:
            trace_id: Trace of the call.
            messages: All messages given to the model.

        Returns:
            New messages in order: of the user, and at the beginning of a log also of the agent.
        """
        is_new_trace = self._begin(trace_id)
        system = next((m.text for m in messages if m.role == "system"), None)
        given = [m for m in messages if m.role != "system"]
        n_seen = overlap(self._view, given)
        at = self._question(given)
        users = [m.text or "" for m in given if m.role == "user"]
        n_said = self._n_said(users)
        self.is_on = bool(n_seen or n_said or at is not None or self._is_answered(given))
        if not self._asked and not self.is_on:
            self.is_on = not self._view or is_new_trace or (system == self._system and system is not None)
        if not self.is_on:
            return self._prompts([m for m in given if m.role == "user"])
        is_first = not self._view and not self._asked and self._is_whole
        begin = 0 if self._view or self._is_whole else after_answer(given)
        self._view, self._system = given, system
        if n_seen:
            return self._words([m for m in given[n_seen:] if m.role == "user"])
        if at is not None:
            self._awaited = []
        fresh: list[Said] = []
        n_users = 0
        for place, message in enumerate(given):
            if message.role == "assistant" and is_first:
                fresh.append(Said(message, True))
            elif message.role == "user":
                n_users += 1
                if n_users > n_said and place >= begin:
                    # What stands before the question of the root was said before this log begins.
                    is_later = at is None or place > at
                    fresh += self._words([message]) if is_later else self._prompts([message])
        return fresh

    def answer(self, messages: list[Message]) -> None:
        """Note what the model answered to the last call, if that belongs to the conversation."""
        if not self.is_on:
            return
        self._view = self._view + messages
        for message in messages:
            self._answered.update(call.call_id for call in message.calls if call.call_id)
            if message.text:
                self._answered.add(message.text)

    def _n_said(self, users: list[str]) -> int:
        """How many of the user's messages, from the first, were said before."""
        n_said = overlap(self._said, users)
        if n_said or len(users) < 2:
            return n_said
        # Parts of the history were cut out: what follows the last known message is new.
        return max((i for i, text in enumerate(users, 1) if text in self._said), default=0)

    def _is_answered(self, given: list[Message]) -> bool:
        """Whether the messages hold an answer that the model gave before, or the result of its call."""
        return any(
            (m.role == "assistant" and m.text in self._answered)
            or m.call_id in self._answered
            or any(call.call_id in self._answered for call in m.calls)
            for m in given
        )

    def _question(self, given: list[Message]) -> int | None:
        """Place of the root's question among the messages, also inside a template."""
        if not self._asked:
            return None
        question = self._asked[-1]
        places = [i for i, m in enumerate(given) if m.role == "user" and m.text is not None]
        exact = [i for i in places if given[i].text == question]
        inside = [i for i in places if question in (given[i].text or "")]
        return exact[-1] if exact else inside[-1] if inside else None

    def _words(self, messages: list[Message]) -> list[Said]:
        """What the user said, without what the root of the trace has told already."""
        out = []
        for message in messages:
            text = message.text or ""
            if text in self._awaited:
                self._awaited.remove(text)
            else:
                self._said.append(text)
                out.append(Said(message, True))
        return out

    def _prompts(self, messages: list[Message]) -> list[Said]:
        """What a program put into user messages, each text once."""
        out = []
        for message in messages:
            text = message.text or ""
            if text not in self._aside and text not in self._said:
                self._aside.add(text)
                out.append(Said(message, False))
        return out
