"""Names and login names where a key, a title or a line of a system file names them.

Belongs here: single names, scripts without capitals, keys of records. Does not belong here: names that
somebody introduces and paths (``people``).
"""

from __future__ import annotations

import re

from evalpipe.masking.validators.base import Facts, Found, align_right, text
from evalpipe.masking.validators.people import is_asian_name, place, trim_name, user

#: A word of two letters or more, or of one before an apostrophe: O'Neill.
_TITLE = re.compile(r"(?:[^\W\d_]{2,}|[^\W\d_](?=['’]))(?:['’.\-][^\W\d_]+)*")
_STEM = re.compile(r"user|name|your|login|example|test|admin|foo|bar")
_KANJI = re.compile(rb"(?:[\xe4-\xe9][\x80-\xbf][\x80-\xbf]){2,5}\Z")
_BEFORE_CUE = ("と申します".encode(), "と言います".encode(), "といいます".encode())
_PASSWD = re.compile(rb"(?:^|\n)([A-Za-z_][A-Za-z0-9._\-]{1,31})\Z")


def _value(v: bytes, start: int, end: int) -> str:
    return trim_name(text(v[start : align_right(v, end)]).replace("\ufffd", ""))


def person_part(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A first or last name in a field of its own, or behind a title: one to three title-case words."""
    raw = _value(v, start, end)
    if not raw:
        return None
    first = raw.split(" ")[0]
    if is_asian_name(first, facts) and len(first) <= 6:
        return place(v, start, end, first)
    stops = [facts.words[name] for name in ("not_names", "not_people", "placeholders")]
    kept: list[str] = []
    for word in raw.split(" ")[:3]:
        is_particle = bool(kept) and word in facts.words["name_particles"]
        if not _TITLE.fullmatch(word) or (not word[0].isupper() and not is_particle):
            break
        if any(word.lower() in stop for stop in stops):
            return None if not kept else place(v, start, end, " ".join(kept))
        kept.append(word)
    while kept and kept[-1] in facts.words["name_particles"]:
        kept.pop()
    if not kept or (len(kept) == 1 and len(kept[0]) < 3):
        return None
    return place(v, start, end, " ".join(kept))


def person_uncased(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A name in a script without capitals: the words behind the cue, up to one that no name is."""
    stop = facts.words["not_names_uncased"]
    words: list[str] = []
    for word in _value(v, start, end).split(" ")[:4]:
        if word in stop:
            # "My name in the list": the word before a postposition is no name.
            words = [] if word in facts.words["postpositions"] else words
            break
        words.append(word)
    words = words[:3]
    return place(v, start, end, " ".join(words)) if words and len(words[0]) >= 2 else None


def person_before(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A Japanese name before "と申します" and its like, which end at ``end``."""
    at = max(v.rfind(cue, max(0, end - 16), end) for cue in _BEFORE_CUE)
    found = _KANJI.search(v, max(0, at - 15), max(0, at))
    if found is None:
        return None
    name = text(found.group())
    if name[:2] not in facts.words["family_names_ja"] and not is_asian_name(name, facts):
        return None
    return [(found.start(), found.end(), name)]


def passwd_user(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The login name at the beginning of a line of ``/etc/passwd`` whose ids end at ``end``."""
    mark = max(v.rfind(b":x:", max(0, end - 24), end), v.rfind(b":*:", max(0, end - 24), end))
    found = _PASSWD.search(v, max(0, mark - 33), max(0, mark))
    judged = user(v, found.start(1), found.end(1), facts) if found else None
    return [judged] if judged else None


def log_user(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """The login name before the time of a line of an access log."""
    return user(v, start, v.index(b" ", start, end), facts)


def user_key(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """The value of a key that names a login name: no role, no type, no state."""
    name = text(v[start:end]).lower()
    if any(name in facts.words[stop] for stop in ("placeholders", "not_people", "not_names", "dictionary_stop")):
        return None
    return None if "user" in name or name.endswith(("bot", "actions")) else user(v, start, end, facts)


def user_odd(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A login name where any word may stand: it holds a digit or a joint, and no word of a manual."""
    name = text(v[start:end]).rstrip(".-_").lower()
    if _STEM.search(name) or not re.search(r"[0-9]|[a-z][._][a-z]", name) or v[end : end + 1] in (b"(", b"@", b"/"):
        return None
    return user_key(v, start, end, facts)
