"""What was said in a session, as a digest that does not depend on who wrote the log.

Belongs here: the normal form of spoken words. Does not belong here: what follows from two sessions
in which the same was said (``store/identity.py``).

Two exporters of one session cut its texts into messages differently, and render Markdown, spaces and
quotes differently. Letters and digits they keep, and their order: so these are compared, all that
people typed and the end of what the agent answered. Both, because the runs of one benchmark task ask
the same, and the turns of one person may get the same short answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import islice

from evalpipe.sources.session import KIND, ORIGIN, PARENT, PERSON, TEXT, Row

#: Characters of one text that are looked at: pasted files tell nothing that their beginning does not.
_TEXT_CHARS = 4096
#: Letters and digits of the agent's last words that are compared.
_ANSWER_CHARS = 200
#: Fewer letters and digits than these are said by chance: "continue", "Done."
_LEAST_ASKED, _LEAST_ANSWERED = 40, 20

_NO_WORD = re.compile(r"[\W_]+")


def said_digest(rows: list[Row]) -> str | None:
    """Digest of what people typed and of the agent's last words.

    Args:
        rows: Steps of a session, in order. Those of sub-agents are not looked at.

    Returns:
        32 hexadecimal digits; ``None`` where too little was said to tell one session from another.
    """
    asked = "".join(_letters(row[TEXT][:_TEXT_CHARS]) for row in rows if row[ORIGIN] in PERSON and _is_said(row))
    if len(asked) < _LEAST_ASKED:
        return None
    answered = _last_words(row[TEXT] for row in reversed(rows) if row[KIND] == "agent" and _is_said(row))
    if len(answered) < _LEAST_ANSWERED:
        return None
    return hashlib.blake2b(f"{asked}\n{answered}".encode("utf-8", "replace"), digest_size=16).hexdigest()


def _is_said(row: Row) -> bool:
    return bool(row[TEXT]) and row[PARENT] is None and row[ORIGIN] != "synthetic"


def _last_words(texts: Iterable[str]) -> str:
    """The last letters and digits of texts that come last first."""
    words = ""
    for text in islice(texts, _ANSWER_CHARS):
        words = _letters(text[-_TEXT_CHARS:]) + words
        if len(words) >= _ANSWER_CHARS:
            break
    return words[-_ANSWER_CHARS:]


def _letters(text: str) -> str:
    return _NO_WORD.sub("", text.casefold())
