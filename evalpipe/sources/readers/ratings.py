"""What a user gave an answer by hand: thumbs, stars, approvals.

Belongs here: which scores of a trace are a user's, what their values mean, and the step that holds one.
Does not belong here: where a format keeps them, or scores that state whether a task was solved
(``outcomes.py``).

Platforms store judges, tests and users side by side under names that developers chose. A rating counts if
its name speaks of a user or of an act that only users do, and no language model gave it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from evalpipe.contracts.tables.raw import APPROVAL, FEEDBACK, RATING
from evalpipe.sources.readers.span_values import number_of
from evalpipe.sources.session import ARGUMENTS, NAME, Row, number_or_none, user_row

_SEPARATED = r"(?:^|[_\s.:/-])(?:{})(?:$|[_\s.:/-])"
_OF_USER = re.compile(
    _SEPARATED.format(
        r"(?:end[_\s-]?)?(?:user|human|customer)s?[_\s-]?(?:feedback|rating|score|satisfaction|vote|reaction|thumbs?)|"
        r"thumbs?(?:[_\s-]?(?:up|down))?|thumbs?[_\s-]?up[_\s-]?(?:thumbs?[_\s-]?)?down|feedback|like|dislike|"
        r"upvote|downvote|stars?(?:[_\s-]?rating)?|rating|csat|nps|is[_\s-]?helpful|helpful"
    ),
    re.I,
)
_STARS = re.compile(_SEPARATED.format(r"stars?(?:[_\s-]?rating)?|csat"), re.I)
_NPS = re.compile(_SEPARATED.format(r"nps"), re.I)
#: Acts against the answer: a 1 under such a name is a bad mark.
_AGAINST = re.compile(_SEPARATED.format(r"(?:thumbs?[_\s-]?)?down|dislike|downvote"), re.I)
#: Acts for it alone: a 0 under such a name may be nobody's act.
_FOR = re.compile(_SEPARATED.format(r"(?:thumbs?[_\s-]?)?up|like|upvote"), re.I)
_GOOD = frozenset({
    "thumbs_up", "thumbs-up", "thumbs up", "thumbsup", "up", "like", "liked", "upvote", "positive", "good", "great",
    "yes", "true", "helpful", "satisfied", "👍",
})  # fmt: skip
_BAD = frozenset({
    "thumbs_down", "thumbs-down", "thumbs down", "thumbsdown", "down", "dislike", "disliked", "downvote", "negative",
    "bad", "poor", "no", "false", "unhelpful", "not helpful", "dissatisfied", "👎",
})  # fmt: skip
#: Marks on a scale from 0 to 1 that say something; between them a mark is neither.
_LOW, _HIGH = 0.25, 0.75
_PROMOTER, _DETRACTOR = 9, 6
_NEUTRAL_STARS, _MOST_STARS = 3, 5


class Rating(NamedTuple):
    """A mark that a user gave: 1 good, -1 bad, 0 neither; what they wrote with it, and when."""

    value: int
    comment: str | None
    at: str | None


def is_users(name: str) -> bool:
    """Whether a score of this name is an act of a user."""
    return _OF_USER.search(name) is not None


def value_of(name: str, value: object) -> int | None:
    """What a mark means.

    Args:
        name: Of the score; it tells stars from thumbs, and thumbs down from up.
        value: As logged: true or false, a word, a number, or a number as text.

    Returns:
        1, -1 or 0; ``None`` where it cannot be told.
    """
    if type(value) is bool:
        return _turned(name, 1 if value else -1)
    if type(value) is str and (word := value.strip().lower()) in _GOOD | _BAD:
        # The word says by itself which of the two it is.
        return 1 if word in _GOOD else -1
    number = number_or_none(number_of(value))
    if number is None:
        return None
    if _NPS.search(name):
        return (number >= _PROMOTER) - (number <= _DETRACTOR)
    if _STARS.search(name) or 1 < number <= _MOST_STARS:
        return (number > _NEUTRAL_STARS) - (number < _NEUTRAL_STARS)
    if not -1 <= number <= 1:
        return None
    return _turned(name, (number >= _HIGH) - (number <= _LOW), is_zero=number == 0)


def _turned(name: str, value: int, *, is_zero: bool = False) -> int | None:
    """The mark under a name that may stand for one side only."""
    is_up, is_down = _FOR.search(name) is not None, _AGAINST.search(name) is not None
    if is_up == is_down:
        return value
    if is_up:
        return None if is_zero else value
    return -1 if value > 0 else None


def rating(name: object, value: object, comment: object, at: str | None) -> Rating | None:
    """The rating that a score holds; ``None`` if it is not a user's or says nothing."""
    if type(name) is not str or not is_users(name):
        return None
    found = value_of(name, value)
    return None if found is None else Rating(found, comment if type(comment) is str and comment else None, at)


def rating_row(step_id: str, given: Rating, parent: str | None = None, *, name: str = RATING) -> Row:
    """The step of a rating or an approval."""
    row = user_row(step_id, FEEDBACK, given.comment, given.at, parent)
    row[NAME], row[ARGUMENTS] = name, f'{{"rating":{given.value}}}'
    return row


def approval_row(step_id: str, at: str | None, parent: str | None = None) -> Row:
    """The step of a tool call that a user allowed."""
    return rating_row(step_id, Rating(1, None, at), parent, name=APPROVAL)


def given(found: Iterable[Rating | None]) -> tuple[Rating, ...]:
    """Those that are ratings."""
    return tuple(item for item in found if item is not None)
