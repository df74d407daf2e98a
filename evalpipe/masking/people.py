"""When two ids of users are one person's.

Belongs here: the form of an id that is the same in all its spellings. Does not belong here: tokens (``plan``).
"""

from __future__ import annotations

import unicodedata


def canonical(user_id: str) -> str:
    """The form under which one person's ids are one: Unicode NFKC, and e-mail addresses in small letters.

    Other ids keep their case, because two accounts may differ in nothing else.
    """
    plain = unicodedata.normalize("NFKC", user_id).strip()
    return plain.casefold() if "@" in plain else plain
