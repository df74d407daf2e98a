"""Scores of traces as outcomes of sessions.

Belongs here: which of the scores that a trace carries say whether its task was solved. Does not
belong here: where a format keeps them.

Most scores are judgements of other things (toxicity, tone), or of a language model: neither is an
objective outcome. One counts if its name speaks of success and code or a person gave it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from evalpipe.sources.readers.span_values import number_of
from evalpipe.sources.session import number_or_none

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span

_SUCCESS = re.compile(
    r"(?:^|[_\s.-])(?:success|succeeded|solved|resolved|reward|pass(?:ed)?|correct(?:ness)?|is_correct|"
    r"task[_\s-]?(?:completion|completed)|goal[_\s-]?(?:achieved|reached))(?:$|[_\s.-])",
    re.I,
)
_YES, _NO = frozenset({"yes", "true", "pass", "passed", "success", "correct", "resolved"}), frozenset({
    "no", "false", "fail", "failed", "failure", "incorrect", "unresolved",
})  # fmt: skip
_NEARLY = 1e-6


class Score(NamedTuple):
    """A score of a trace: its name, its value, and whether something else than a language model gave it."""

    name: str
    value: object
    is_objective: bool


def state(span: Span, scores: list[Score]) -> None:
    """Put the outcome that the scores state into a span; the last one that speaks of success counts."""
    for name, value, is_objective in scores:
        if not is_objective or not _SUCCESS.search(name):
            continue
        if type(value) is bool:
            span.reward, span.is_success = float(value), value
        elif type(value) is str:
            word = value.strip().lower()
            if word in _YES or word in _NO:
                span.reward, span.is_success = float(word in _YES), word in _YES
                continue
        if (number := number_or_none(number_of(value))) is not None:
            # A share of the task is a reward, but neither solved nor failed.
            is_whole = abs(number) < _NEARLY or abs(number - 1) < _NEARLY
            span.reward, span.is_success = number, number > 0.5 if is_whole else None
