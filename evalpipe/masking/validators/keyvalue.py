"""Secrets that a key names: ``password = ...``, ``"api_key": "..."``, flags, prose, headers.

Belongs here: what counts as the value of such a key, and which keys and values only look like it.
Does not belong here: tokens with a shape of their own. Passwords in the wild are plain words as often
as random strings, so no entropy threshold decides alone.
"""

from __future__ import annotations

import re

from evalpipe.masking.validators.base import TOKEN_FORM, Facts, Found, text
from evalpipe.masking.validators.values import (
    DIGIT,
    FILE,
    LETTER,
    is_environment,
    is_metadata,
    is_mixed,
    is_native,
    is_pass_phrase,
    is_placeholder,
    is_random,
    words_of,
)

_KEY_CHARS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-" + bytes(range(0x80, 0x100))
_AFTER_KEY = b" \t\\\"'`]"
_LEAD = re.compile(rb"[=:>~]{0,2}[ \t]{0,16}(?:[rbfuRBFU]{1,2}(?=[\"']))?([\\\"'`]{0,6})")
_BARE = re.compile(rb"(?:[^\s\x1b\"'`,;&<>()\[\]{}|\\]|" + TOKEN_FORM + rb"){1,400}")
#: What may stand behind ``&`` or ``;``, and that it is an entity or the next pair rather than more of the value.
_MORE = re.compile(rb"[&;]([^\s\"'`,;&<>()\[\]{}|\\=]{1,400})")
#: A value that a shell makes up: $(echo x), `printf x`.
_ECHOED = re.compile(rb"[\"']?(?:\$\(|`)(?:echo|printf)(?: -[neE]{1,3})? [\"']?([^\s\"'$`)|<>\\]{4,200})")
_ENTITY = re.compile(rb"&(?:amp|quot|lt|gt|apos|nbsp|#[0-9]{1,6});")
_UNSPACED = re.compile(rb"[^\s\"'`]{1,400}")
#: Words before "token" that say what it opens; a bare "token" may also be a page or a unit of text.
_GRANTS = frozenset({"access", "auth", "refresh", "id", "session", "bearer", "api", "oauth"})
_IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*(?:(?:\.|->|::)[A-Za-z_][A-Za-z_0-9]*)*\Z")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_HEX = re.compile(rb"[0-9a-fA-F]{16,128}\Z")
#: Words of keys whose value opens something even where it looks like a digest.
_OPENS = frozenset(
    {"write", "admin", "app", "account", "shared", "client", "server", "subscription", "search", "hmac", "cipher"}
    | {"aes", "fernet", "base", "secret", "license"}
)
#: The name of a secret rather than its value: my-k8s-secret-name-v2.
_CHAIN = re.compile(rb"[a-z][a-z0-9]{0,11}(?:-[a-z0-9]{1,12}){1,8}")
_NAMES = frozenset((b"secret", b"secrets", b"name", b"token", b"credentials", b"creds", b"config", b"key", b"keys"))
#: What follows PASS where it is the verdict of a test: the test's name, or what was measured.
_TESTED = re.compile(rb"(?:Test|Benchmark|Example|Fuzz)[A-Z0-9_]|tests?[_/]|[A-Za-z_][A-Za-z0-9_]*=-?[0-9]")
_FLAG = re.compile(rb"(?:\A|[^A-Za-z0-9\-]|\\[nrt])-{1,2}[A-Za-z][A-Za-z0-9_\-]*[ \\\"']{1,4}\Z")
#: Names of variables that are handed on under a password-like key.
_HANDED_ON = re.compile(rb"(?:password|passwd|pass|pwd)(?:[_0-9]|\Z)|user_|db_|new_|get_", re.IGNORECASE)


def kv_password(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Value of a password-like key whose separator ends at ``end``."""
    place = _place(v, end, facts)
    if place is None:
        return _echoed(v, end, facts)
    key, start, stop, quoted = place
    value = v[start:stop]
    if value.startswith((b"$(", b"echo ", b"printf ")):
        return _echoed(v, end, facts)
    if key == "PASS" and not quoted and (_TESTED.match(value) or v[max(0, end - 9) : end] == b"--- PASS:"):
        return None
    more = stop if quoted else _with_separators(v, stop)
    if len(value) >= 3 and not is_placeholder(value, facts) and _is_password(value, key, v, end, facts, quoted=quoted):
        return [(start, more, "")]
    # In a file of variables all up to the next space is the value: p&ssw0rd1.
    is_variable = more > stop and v[end - 1 : end] == b"=" and is_environment(key)
    if is_variable and not is_placeholder(v[start:more], facts) and is_mixed(v[start:more]):
        return [(start, more, "")]
    return None


def _echoed(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """What a shell echoes into the value of a key whose separator ends at ``end``: ``PASSWORD=$(echo x)``."""
    found = _ECHOED.match(v, end)
    if found is None or is_placeholder(found.group(1), facts):
        return None
    return [(found.start(1), found.end(1), "")]


def _with_separators(v: bytes, stop: int) -> int:
    """End of a bare value that goes on behind ``&`` or ``;``.

    It does not where a pair (``&user=``), a call, a second ``&`` or an entity (``&amp;``) follows.
    """
    while (more := _MORE.match(v, stop)) and not _ENTITY.match(v, stop):
        if v[more.end() : more.end() + 1] in (b"=", b"(", b"[", b"{"):
            break
        stop = more.end()
    while v[stop - 1 : stop] in (b".", b":", b"!", b"?"):
        stop -= 1
    return stop


def _is_password(value: bytes, key: str, v: bytes, end: int, facts: Facts, *, quoted: bool) -> bool:
    has_digit, has_letter = bool(DIGIT.search(value)), bool(LETTER.search(value))
    if not has_letter:
        return len(value) >= 4 and not value.isspace()
    if b" " in value:
        # A sentence is a label or a hint; two words with a digit may be a pass phrase.
        is_short = has_digit and value.count(b" ") <= 3 and not value.endswith((b".", b":", b"?"))
        return quoted and (is_short or is_pass_phrase(value, facts))
    if not value.isascii() and not is_native(value):
        return False
    if quoted:
        return len(value) >= 6 or has_digit
    if _IDENTIFIER.match(value):
        if b"." in value or _HANDED_ON.match(value):
            return False
        is_shell = is_environment(key) and v[end - 1 : end] == b"=" and v[end : end + 1] != b" "
        # A line of a file of properties: spring.datasource.password=walnut.
        at = end - 1 - len(key)
        is_line = (
            key.count(".") >= 2 and v[max(0, at - 1) : at] in (b"", b"\n") and v[end + len(value) :][:1] in (b"", b"\n")
        )
        is_shell = is_shell or (is_line and v[end - 1 : end] == b"=" and value.isalpha() and value.islower())
        return len(value) >= 4 and (has_digit or is_shell)
    return len(value) >= 5


def kv_secret(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Value of a key that names a token, key, secret or PIN and whose separator ends at ``end``."""
    place = _place(v, end, facts)
    if place is None:
        return _echoed(v, end, facts)
    key, start, stop, quoted = place
    value = v[start:stop]
    words = words_of(key)
    if words and words[-1] == "pin":
        return [(start, stop, "")] if value.isdigit() and 4 <= len(value) <= 8 else None
    if len(value) < 6 or is_placeholder(value, facts) or value.startswith((b"echo ", b"printf ")):
        return _echoed(v, end, facts)
    # A token of digits alone is a number of something, unless a document's own key names it: "token": 12345678.
    if key.endswith("token") and value.isdigit() and len(value) >= 8 and v[end - 2 : end] == b'":':
        return [(start, stop, "")]
    if not quoted and words[-1:] == ["token"] and _is_grant(value, words, v[end - 2 - len(key.encode()) : end]):
        return [(start, stop, "")]
    return [(start, stop, "")] if _is_secret(value, key, words, quoted=quoted) else None


def _is_grant(value: bytes, words: list[str], cue: bytes) -> bool:
    """Whether a bare value is a token that opens something: ``?access_token=...``.

    Args:
        value: What stands behind the key.
        words: Words of the key.
        cue: The character before the key, the key and its separator.
    """
    is_query = cue[:1] in (b"?", b"&", b"#") and cue[-1:] == b"="
    is_named = words[-2:-1] != [] and words[-2] in _GRANTS
    if not is_query and not (is_named and cue[-1:] == b"="):
        return False
    if is_query and is_named and (_UUID.match(value) or (value.isdigit() and len(value) >= 8)):
        return True
    if not value.replace(b"-", b"").isalnum() or FILE.match(value):
        # Names of variables are joined by underscores and dots.
        return is_query and len(value) >= 20 and is_mixed(value) and not value.islower() and b"(" not in value
    if is_mixed(value):
        return len(value) >= (8 if is_query and is_named else 16)
    return is_named and b"-" not in value and len(value) >= (16 if is_query else 20) and not value.isupper()


def _is_secret(value: bytes, key: str, words: list[str], *, quoted: bool) -> bool:
    if not quoted and not is_environment(key) and _CHAIN.fullmatch(value) and not _NAMES.isdisjoint(value.split(b"-")):
        return False
    has_digit, has_letter = bool(DIGIT.search(value)), bool(LETTER.search(value))
    names_secret = len(words) > 1 and words[-1] in ("key", "secret")
    strong = is_environment(key) or names_secret or words[-1:] in (["apikey"], ["clientsecret"])
    last_is_token = words[-1:] == ["token"]
    if FILE.match(value) or (_UUID.match(value) and not (strong and (not last_is_token or is_environment(key)))):
        return False
    if not has_letter:
        return strong and not last_is_token and len(value) >= 6
    if b" " in value:
        is_short = value.count(b" ") <= 3 and not value.endswith((b".", b":", b"?"))
        return quoted and strong and is_short and words[-1:] == ["secret"]
    if quoted:
        if strong:
            return len(value) >= 8
        return (has_digit and len(value) >= 8) or (len(value) >= 20 and not value.islower())
    if not has_digit or len(value) < 8:
        return False
    if _IDENTIFIER.match(value) and len(value) < 20:
        return strong and sum(c in b"0123456789" for c in value) >= 2
    return len(value) >= 10 or strong


def kv_key(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Value of some other key than those of :func:`kv_secret`: it must look drawn at random."""
    place = _place(v, end, facts)
    if place is None or is_placeholder(v[place[1] : place[2]], facts):
        return None
    key, start, stop, _ = place
    # A digest under a key of its own is the rule in databases: cache keys, keys of objects.
    if _HEX.match(v, start, stop) and not is_environment(key) and _OPENS.isdisjoint(words_of(key)):
        return None
    return [(start, stop, "")] if is_random(v[start:stop]) else None


def _place(v: bytes, end: int, facts: Facts) -> tuple[str, int, int, bool] | None:
    """(key, start, end, is_quoted) of the value, or nothing if key or syntax rule one out."""
    place = _value_of(v, end)
    return None if place is None or is_metadata(place[0], v[place[1] : place[2]], facts) else place


def _value_of(v: bytes, end: int) -> tuple[str, int, int, bool] | None:
    sep = v[end - 1]
    if v[end - 2 : end - 1] in (b"!", b"<", b">", b"=", b"?") and not (sep == 0x3E and v[end - 2 : end - 1] == b"="):
        return None
    if sep == 0x3D and v[end : end + 1] in (b"=", b"~"):
        return None
    key = _key_before(v, end)
    if key is None:
        return None
    lead = _LEAD.match(v, end)
    assert lead is not None  # every part of the pattern is optional
    start, quotes = lead.end(), lead.group(1).replace(b"\\", b"")
    if sep == 0x3E:
        return _xml(v, end, key)
    if quotes:
        stop = _closing(v, start, quotes[:1])
        # What Markdown sets as code and ends like a call is one.
        if stop is None or (quotes[:1] == b"`" and v[start:stop].endswith(b"()")):
            return None
        return key, start, stop, True
    bare = _BARE.match(v, start)
    if bare is None:
        return None
    stop = bare.end()
    if v[stop : stop + 1] in (b"(", b"[", b"{"):
        # A call, unless in a file of variables something stands before the bracket that no name looks like.
        if sep != 0x3D or start != end or not is_environment(key) or _IDENTIFIER.match(bare.group()):
            return None
        whole = _UNSPACED.match(v, start)
        stop = whole.end() if whole else stop
    # The credentials of a URL end before its host.
    if v[max(0, end - 120) : end - 1 - len(key.encode())].endswith(b"://") and b"@" in v[start:stop]:
        stop = v.index(b"@", start)
    while stop > start and v[stop - 1] in b".:!?":
        stop -= 1
    return key, start, stop, False


def _xml(v: bytes, end: int, key: str) -> tuple[str, int, int, bool] | None:
    if v[end - 2 - len(key.encode()) : end - 1 - len(key.encode())] not in (b"<", b":"):
        return None
    stop = v.find(b"</", end, end + 400)
    return None if stop <= end or b"\n" in v[end:stop] else (key, end, stop, True)


def _key_before(v: bytes, end: int) -> str | None:
    chunk = v[max(0, end - 96) : end - 1].rstrip(_AFTER_KEY)
    for tail in (b'" value', b"' value", b" value"):
        if chunk.endswith(tail):
            chunk = chunk[: -len(tail)].rstrip(_AFTER_KEY)
    key = chunk[len(chunk.rstrip(_KEY_CHARS)) :]
    return text(key).lstrip("-.") or None


def _closing(v: bytes, start: int, quote: bytes) -> int | None:
    limit = start + 600
    stop = v.find(quote, start, limit)
    line = v.find(b"\n", start, limit if stop < 0 else stop)
    if stop < 0 or line >= 0:
        return None
    while stop > start and v[stop - 1] in b"\\ ":
        stop -= 1
    return stop


def flag_value(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Value after a word such as ``password`` in a command or in a file of logins."""
    value = v[start:end].rstrip(b"\"'`\\),;")
    if value[:1] == b"-" or is_placeholder(value, facts) or len(value) < 4:
        return None
    if value.isalpha() and len(value) < 16 and v[start - 1 : start] == b" ":
        # "the --password flag": a plain short word after the flag is prose.
        return None
    return start, start + len(value), ""


def dashed_flag(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Value after a command-line flag such as ``--password``; "two-pass work" holds none."""
    return flag_value(v, start, end, facts) if _FLAG.search(v[max(0, start - 64) : start]) else None


def prose_secret(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Value after "my password is" and its like: must hold a digit and a letter."""
    value = re.split(rb"[\"'`,;<>)]", v[start:end], maxsplit=1)[0]
    # The quote behind it may be escaped, in a document inside of a document many times over.
    value = value.rstrip(b"\\").rstrip(b".!?:")
    if len(value) < 6 or is_placeholder(value, facts) or not (DIGIT.search(value) and LETTER.search(value)):
        return None
    if FILE.match(value) or b"(" in value or b"=" in value[:-2]:
        return None
    return start, start + len(value), ""
