"""Spans of one session to its steps.

Belongs here: the order of steps, which spans are steps, what joins a call to its result, sub-agents.
Does not belong here: any format, or telling new messages from repeated ones (``thread.py``).

Model calls become ``agent`` steps, tool spans ``tool`` steps, retrievals ``graph`` steps; chains give
structure only. A call that the model asked for and the span that ran it are one step. What runs
below a tool, or below an agent that another agent's own calls started, is a child step.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from evalpipe.contracts.ids import OF_USER
from evalpipe.sources.readers.ratings import rating_row
from evalpipe.sources.readers.span_calls import Calls
from evalpipe.sources.readers.span_tree import Tree
from evalpipe.sources.readers.thread import Thread, after_answer
from evalpipe.sources.session import (
    END,
    ERROR,
    FIRST_TOKEN,
    INPUT,
    IS_ERROR,
    KIND,
    MODEL,
    ORIGIN,
    OUTPUT,
    REASONING,
    STEP_ID,
    TEXT,
    Row,
    Session,
    agent_row,
    small_count,
    tool_row,
    user_row,
)

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span

_TIMEOUT = re.compile(r"time[d_ ]?-?\s?out|deadline.?exceeded", re.I)
_SCENARIO, _TASK, _TRIAL = ("scenario", "domain"), ("task_id", "task"), ("trial", "repetition")
#: Metadata that is read; all else that a trace holds is not.
FACTS = (*_SCENARIO, *_TASK, *_TRIAL)


def build(session: Session, spans: list[Span]) -> None:
    """Fill a session from its spans.

    Args:
        session: Gets rows and all fields that spans tell.
        spans: All spans of the session, in the order of the log.
    """
    session_id = session.session_id.partition(":")[2]
    named = session_id.partition(OF_USER)[0]
    builder = _Builder(session, is_whole=any(span.session_id in (session_id, named) for span in spans))
    by_trace: dict[str, list[Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    trees = [Tree(members) for members in by_trace.values()]
    # An undated trace keeps its place in the log: the sort is stable.
    trees.sort(key=lambda tree: tree.start or "")
    for tree in trees:
        builder.trace(tree)
    builder.calls.close()
    session.n_messages = len(session.rows)
    _describe(session, trees)
    ends = [span.end for span in spans if span.end is not None]
    starts = [span.start for span in spans if span.start is not None]
    if starts:
        session.first_at = min(starts)
        session.greatest_at = max(ends + starts)


class _Builder:
    """Appends the steps of one trace after the other."""

    def __init__(self, session: Session, *, is_whole: bool) -> None:
        self.rows = session.rows
        self.session = session
        self._is_whole = is_whole
        self.thread = Thread(is_whole=is_whole)
        self.calls = Calls(session.rows)
        self._parents: dict[str, Row] = {}

    def trace(self, tree: Tree) -> None:
        """Append the steps of one trace."""
        root = tree.root
        if root is not None:
            self._question(root, tree)
        has_words = False
        for span in tree.spans:
            parent = self._parent(tree, span)
            if span.kind == "llm" and not tree.is_inner_call(span):
                has_words |= parent is None and any(m.text for m in span.outputs)
                self._model_call(tree.outer_call(span), parent)
            elif span.kind == "tool" and not tree.is_inner_run(span):
                self._parents[span.span_id] = self.calls.ran(tree.outer_run(span), parent)
            elif tree.is_plain_step(span):
                self._parents[span.span_id] = self._plain(span, parent)
            elif span.kind == "chain":
                # Frameworks log some tools as plain spans that bear the tool's name.
                row = self.calls.ran_as_chain(span, parent)
                if row is not None:
                    self._parents[span.span_id] = row
        if root is not None and not has_words:
            self._answer(root, tree)
        # A mark is given to what is whole, whenever it was given.
        for span in tree.spans:
            self.rows += [rating_row(f"{span.span_id}:f{n}", rating) for n, rating in enumerate(span.ratings)]

    def _parent(self, tree: Tree, span: Span) -> str | None:
        above = tree.owner(span, self._parents)
        return None if above is None else str(self._parents[above][STEP_ID])

    def _question(self, root: Span, tree: Tree) -> None:
        """What the user asked, as the root of the trace tells it."""
        answers = {m.text for m in root.outputs if m.role == "assistant"}
        # A log that begins with the agent's greeting shows it as input and output of the root.
        begin = 0 if self._is_whole or self.rows else after_answer(root.inputs)
        texts = [m.text for m in root.inputs[begin:] if m.role == "user" and m.text and m.text not in answers]
        if not texts:
            return
        for n, text in enumerate(self.thread.ask(root.trace_id, texts)):
            self.rows.append(user_row(f"{root.span_id}:u{n}", "human", text, tree.start))

    def _answer(self, root: Span, tree: Tree) -> None:
        """What the root of the trace gave back, where no model call shows it."""
        text = next((m.text for m in reversed(root.outputs) if m.role == "assistant" and m.text), None)
        calls = [span for span in tree.spans if span.kind == "llm"]
        source = root if root.kind == "agent" else next((s for s in tree.spans if s.kind == "agent"), root)
        tokens = None if calls else source.tokens
        if text is None and tokens is None and (calls or not root.is_error):
            return
        row = agent_row(f"{root.span_id}:a", text, root.end or tree.start, None if calls else source.model)
        if tokens is not None:
            row[INPUT : REASONING + 1] = tokens
        if root.is_error and text is None:
            _fail(row, root)
        self.rows.append(row)

    def _model_call(self, span: Span, parent: str | None) -> None:
        for message in span.inputs:
            if message.role == "tool":
                self.calls.answered(message)
        if parent is None:
            self._words(span)
        text = "\n".join([m.text for m in span.outputs if m.role == "assistant" and m.text]) or None
        row = agent_row(span.span_id, text, span.start, span.model, parent)
        row[END] = span.end
        row[FIRST_TOKEN] = span.first_token_ms
        if span.tokens is not None:
            row[INPUT : REASONING + 1] = span.tokens
        asked = [call for m in span.outputs for call in m.calls]
        if span.is_error and text is None and not asked:
            _fail(row, span)
        self.rows.append(row)
        for place, call in enumerate(asked):
            self.calls.asked(call, f"{span.span_id}:c{place}", span, parent)
        for message in span.outputs:
            if message.role == "tool":
                self.calls.answered(message)

    def _words(self, span: Span) -> None:
        for message in span.inputs:
            if message.role == "system" and message.text and self.session.prompt_version is None:
                self.session.prompt_version = hashlib.blake2b(message.text.encode(), digest_size=6).hexdigest()
        for n, (message, is_conversation) in enumerate(self.thread.new(span.trace_id, span.inputs)):
            step_id = f"{span.span_id}:m{n}"
            if message.role == "assistant":
                if message.text:
                    self.rows.append(agent_row(step_id, message.text, span.start, None))
                for place, call in enumerate(message.calls):
                    self.calls.asked(call, f"{step_id}:c{place}", span, None)
            elif message.text:
                origin = "human" if is_conversation else "injected"
                self.rows.append(user_row(step_id, origin, message.text, span.start))
        # Results in the history belong to calls that only the history shows.
        for message in span.inputs:
            if message.role == "tool":
                self.calls.answered(message)
        self.thread.answer([m for m in span.outputs if m.role == "assistant"])

    def _plain(self, span: Span, parent: str | None) -> Row:
        """A step that neither spoke nor was called by the model: a retrieval, or a sub-agent at work."""
        row = tool_row(span.span_id, span.name, span.arguments, span.start, parent)
        row[KIND], row[ORIGIN] = "graph", "agent"
        row[OUTPUT], row[END], row[IS_ERROR] = span.output, span.end, span.is_error
        if span.is_error:
            row[ERROR] = "timeout" if _TIMEOUT.search(span.error_text or "") else "tool_error"
            row[OUTPUT] = span.output or span.error_text
        self.rows.append(row)
        return row


def _fail(row: Row, span: Span) -> None:
    """A model call that gave nothing: no model wrote the step."""
    row[ORIGIN], row[MODEL], row[TEXT] = "synthetic", None, span.error_text
    row[ERROR] = "timeout" if _TIMEOUT.search(span.error_text or "") else "api_error"


def _describe(session: Session, trees: list[Tree]) -> None:
    """Fields of the session that its spans tell."""
    spans = [span for tree in trees for span in tree.spans]
    top = [span for tree in trees for span in tree.spans if span.kind == "agent" and not tree.is_sub_agent(span)]
    agents = [span.agent for span in (*top, *spans) if span.agent]
    services = [span.service for span in spans if span.service]
    session.agent = next(iter(agents), None) or next(iter(services), None) or session.agent
    session.harness = next((name for name in services if name != session.agent), None)
    session.agent_release = next((span.release for span in spans if span.release), None)
    session.user_id = next((span.user_id for span in spans if span.user_id), None)
    offered = {name for span in spans for name in span.tools}
    session.tools = sorted(offered) or None
    calls = [tree.outer_call(s) for tree in trees for s in tree.spans if s.kind == "llm" and not tree.is_inner_call(s)]
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    if any(not call.cost_usd and call.tokens and any(call.tokens) for call in calls):
        # A sum without the calls that lack one is too low: then what the root of each trace says, if all do.
        costs = [cost for tree in trees if tree.root is not None and (cost := tree.root.cost_usd)]
        costs = costs if len(costs) == len(trees) and _are_apart(trees) else []
    elif not costs:
        costs = [tree.root.cost_usd for tree in trees if tree.root is not None and tree.root.cost_usd is not None]
    session.cost_usd = sum(costs) if costs else None
    last = trees[-1].root if trees else None
    if last is not None and last.is_error:
        session.end_status = "timeout" if _TIMEOUT.search(last.error_text or "") else "error"
    for span in spans:
        if span.reward is not None or span.is_success is not None:
            session.reward, session.is_success = span.reward, span.is_success
        _declared(session, span)


def _are_apart(trees: list[Tree]) -> bool:
    """Whether the roots of the traces are no model calls themselves, so that their costs are sums."""
    return all(tree.root is not None and tree.root.kind != "llm" for tree in trees)


def _declared(session: Session, span: Span) -> None:
    facts = span.facts
    for key in _SCENARIO:
        if session.scenario is None and type(facts.get(key)) is str:
            session.scenario = facts[key]
    for key in _TASK:
        if session.task_id is None and type(facts.get(key)) in (str, int):
            session.task_id = str(facts[key])
    for key in _TRIAL:
        if session.trial is None:
            session.trial = small_count(facts.get(key))
