"""The spans of one trace as a tree, in the order in which they ran.

Belongs here: who stands below whom, which model calls are one call logged twice, which agents are
sub-agents. Does not belong here: steps.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span

#: Sorts behind every time.
_LAST = "\uffff"

#: Real traces are some tens of spans deep.
_MAX_ANCESTORS = 200


class Tree:
    """The spans of a trace that belong to one session.

    Attributes:
        spans: In the order in which they began; those that began together from the root down.
        start: When the first began; ``None`` where no span has a time.
        ancestors: Spans above each, by id, the nearest first; of very deep nesting the nearest only.
        root: The span that tells what the user asked, else the first root; ``None`` if all are lost.
    """

    def __init__(self, spans: list[Span]) -> None:
        self._by_id = {span.span_id: span for span in spans}
        self.ancestors: dict[str, list[Span]] = {}
        for span in spans:
            self._climb(span)
        order = {span.span_id: place for place, span in enumerate(spans)}
        starts = [span.start for span in spans if span.start is not None]
        self.start: str | None = min(starts) if starts else None
        self.spans = sorted(spans, key=lambda span: self._rank(span, order[span.span_id]))
        self._is_busy = {id_ for span in spans if span.kind in ("llm", "tool") for id_ in self._agent_of(span)}
        self.root = self._find_root()
        #: What is logged a second time below each call and each run of a tool.
        self._inner: dict[str, list[Span]] = {}
        for span in self.spans:
            find = {"llm": self._outer_call, "tool": self._outer_run}.get(span.kind)
            outer = None if find is None else find(span)
            if outer is not None:
                self._inner.setdefault(outer.span_id, []).append(span)

    def _rank(self, span: Span, place: int) -> tuple[str, int, str, int]:
        if self.start is None:
            return "", 0, "", place
        above = self.ancestors[span.span_id]
        start = span.start or next((member.start for member in above if member.start is not None), None)
        return start or _LAST, len(above), span.end or _LAST, place

    def _climb(self, span: Span) -> None:
        path: list[Span] = []
        seen = {span.span_id}
        above = self._by_id.get(span.parent_id or "")
        while above is not None and above.span_id not in seen and len(path) < _MAX_ANCESTORS:
            seen.add(above.span_id)
            path.append(above)
            known = self.ancestors.get(above.span_id)
            if known is not None:
                path += [member for member in known if member.span_id not in seen]
                break
            above = self._by_id.get(above.parent_id or "")
        self.ancestors[span.span_id] = path[:_MAX_ANCESTORS]

    def _agent_of(self, span: Span) -> list[str]:
        return [above.span_id for above in self.ancestors[span.span_id] if above.kind == "agent"][:1]

    def _find_root(self) -> Span | None:
        roots = [span for span in self.spans if span.parent_id is None]
        asked = next((s for s in roots if s.kind != "llm" and any(m.role == "user" for m in s.inputs)), None)
        if asked is not None or not roots:
            return asked
        root = roots[0]
        # A wrapper that tells nothing: what it wraps does, as long as that is one span.
        inner = root
        for _ in range(3):
            below = [s for s in self.spans if s.parent_id == inner.span_id and s.kind in ("agent", "chain")]
            if len(below) != 1:
                break
            inner = below[0]
            if any(m.role == "user" for m in inner.inputs):
                return replace(
                    inner,
                    span_id=root.span_id,
                    is_error=root.is_error if root.is_error is not None else inner.is_error,
                    error_text=root.error_text or inner.error_text,
                    cost_usd=root.cost_usd,
                )
        return root

    def _outer_call(self, span: Span) -> Span | None:
        above = self.ancestors[span.span_id][: self._to_work(span)]
        return next((member for member in reversed(above) if member.kind == "llm"), None)

    def is_inner_call(self, span: Span) -> bool:
        """Whether a model call is logged a second time, below the call of the framework around it."""
        return self._outer_call(span) is not None

    def _to_work(self, span: Span) -> int:
        """How many ancestors there are before the next tool or agent, which make a call one of its own."""
        above = self.ancestors[span.span_id]
        return next((n for n, member in enumerate(above) if member.kind in ("tool", "agent")), len(above))

    def outer_call(self, span: Span) -> Span:
        """A model call with what only its inner logging tells filled in."""
        inner = self._inner.get(span.span_id)
        if not inner:
            return span
        return replace(
            span,
            model=span.model or next((s.model for s in inner if s.model), None),
            tokens=span.tokens or next((s.tokens for s in inner if s.tokens), None),
            cost_usd=span.cost_usd if span.cost_usd is not None else next((s.cost_usd for s in inner), None),
            inputs=span.inputs or inner[0].inputs,
            outputs=span.outputs or inner[-1].outputs,
        )

    def _outer_run(self, span: Span) -> Span | None:
        outer = None
        for above in self.ancestors[span.span_id]:
            if above.kind in ("agent", "llm") or (above.kind == "tool" and above.name != span.name):
                break
            outer = above if above.kind == "tool" else outer
        return outer

    def is_inner_run(self, span: Span) -> bool:
        """Whether a tool span is logged a second time, such as by the client below the framework."""
        return self._outer_run(span) is not None

    def outer_run(self, span: Span) -> Span:
        """A tool span with what only its inner logging tells filled in."""
        inner = self._inner.get(span.span_id)
        if not inner:
            return span
        return replace(
            span,
            call_id=span.call_id or inner[0].call_id,
            arguments=span.arguments if span.arguments is not None else inner[0].arguments,
            output=span.output if span.output is not None else inner[0].output,
        )

    def is_plain_step(self, span: Span) -> bool:
        """Whether a span is a step although no model asked for it: a retrieval, or a sub-agent at work."""
        if span.kind == "retriever":
            # The stages of a retrieval are no retrievals of their own.
            return all(above.kind != "retriever" for above in self.ancestors[span.span_id])
        return span.kind == "agent" and self.is_sub_agent(span) and self.tool_above(span) is None

    def is_sub_agent(self, span: Span) -> bool:
        """Whether an agent was started by another that does work of its own, not by a mere wrapper."""
        above = next((member for member in self.ancestors[span.span_id] if member.kind in ("agent", "tool")), None)
        return above is not None and (above.kind == "tool" or above.span_id in self._is_busy)

    def tool_above(self, span: Span) -> Span | None:
        """The tool that started an agent directly."""
        above = next((member for member in self.ancestors[span.span_id] if member.kind in ("agent", "tool")), None)
        return above if above is not None and above.kind == "tool" else None

    def owner(self, span: Span, parents: Container[str]) -> str | None:
        """Id of the nearest ancestor that is a step of its own."""
        return next((above.span_id for above in self.ancestors[span.span_id] if above.span_id in parents), None)
