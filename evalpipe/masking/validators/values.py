"""Keys and values by themselves: words of a key, placeholders, mixtures, random strings, pass phrases.

Belongs here: what a value or a key looks like wherever it stands. Does not belong here: where the value of
a key begins and ends (``keyvalue``), places without a separator (``places``).
"""

from __future__ import annotations

import itertools
import re

from evalpipe.masking.validators.base import Facts, is_repetitive, text, without_tokens

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_NOT_A_VALUE = re.compile(
    rb"[$<{%*(@|!#]|\[|\.\.|/|\./|~/|https?:|file:|arn:|your[-_ ]|my[-_]?(?:secret|token|key|pass)|xxx|enter "
    rb"|process\.env|os\.|env\.|env\(|secrets\.|config\.|self\.|this\.|vault:|ref\+|data:|ssm:|sm://|op://",
    re.IGNORECASE,
)
_INSIDE_PLACEHOLDER = re.compile(
    rb"\.\.\.|\*\*\*|<|>|\$\{|\{\{|xxxx|_HERE|-here|PLACEHOLDER|REDACTED|\[redacted|%s|\$\(", re.IGNORECASE
)
_JOINTS = re.compile(rb"[^A-Za-z0-9]+")
_VARIABLE = re.compile(rb"[$%!@#*][\w({]")
DIGIT = re.compile(rb"[0-9]")
#: Letters of any script: those outside ASCII are two bytes or more from 0x80 on.
LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_ODD = re.compile(rb"[0-9!#$%&*+=@^~_]")
_PHRASE_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[0-9]{1,8}")
#: Words before "key" that say that it opens something.
_OPENING_KEYS = frozenset({"api", "secret", "access", "private", "auth", "encryption", "signing", "master", "service"})
_DIGEST = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z|[0-9a-fA-F]{16,128}\Z")
FILE = re.compile(
    rb"[\w./-]+\.(?:py|js|ts|tsx|go|rs|java|json|ya?ml|toml|txt|md|pem|key|crt|env|cfg|ini|sh|html|css|xml|csv|sql|rb|php"
    rb"|c|h|cpp)\Z"
)


def is_mixed(value: bytes) -> bool:
    """Whether a value of six bytes or more holds digits and letters."""
    return len(value) >= 6 and bool(DIGIT.search(value)) and bool(LETTER.search(value))


def is_random(value: bytes) -> bool:
    """Whether a value looks drawn at random: long, and no chain of words, numbers and dates."""
    n_digits = sum(c in b"0123456789" for c in value)
    if b" " in value or FILE.match(value) or n_digits < 1 + (not has_random_cases(value)):
        return False
    if any(len(part) >= 16 and is_mixed(part) for part in _JOINTS.split(value)):
        return True
    has_cases = any(0x41 <= c <= 0x5A for c in value) and any(0x61 <= c <= 0x7A for c in value)
    return len(value) >= 24 and has_cases and value.count(b".") + value.count(b" ") == 0


def has_random_cases(value: bytes) -> bool:
    """Whether capitals and small letters alternate as no spelling of words does: runs of both, many times."""
    kinds = ["A" if 0x41 <= c <= 0x5A else "a" if 0x61 <= c <= 0x7A else "-" for c in value]
    pairs = [a + b for a, b in itertools.pairwise(kinds)]
    return min(pairs.count("AA"), pairs.count("aA"), pairs.count("Aa")) >= 2


def is_native(value: bytes) -> bool:
    """Whether a value with letters outside ASCII is drawn up rather than a word: it holds a digit or a sign."""
    return _ODD.search(value) is not None


def is_pass_phrase(value: bytes, facts: Facts) -> bool:
    """Whether three words or more are a pass phrase rather than a label, a hint or a message.

    A form says "Enter your password" and a message "must be at least 8 characters": their words are listed.
    """
    words = text(value).split(" ")
    if not 3 <= len(words) <= 12 or not all(_PHRASE_WORD.fullmatch(word) for word in words):
        return False
    # A sentence begins with a capital and goes on in small letters.
    if words[0][:1].isupper() and not all(word[:1].isupper() or word.isdigit() for word in words):
        return False
    return facts.words["password_talk"].isdisjoint(word.lower() for word in words)


def words_of(key: str) -> list[str]:
    """Words of a key in any spelling: ``apiKey``, ``API_KEY``, ``api-key``."""
    return [w.lower() for w in _WORDS.findall(key)]


def is_environment(key: str) -> bool:
    """Whether a key is spelled like a variable of the environment: ``DB_PASSWORD``."""
    return key.isupper() or any(part.isupper() and "_" in part for part in key.split("."))


def is_metadata(key: str, value: bytes, facts: Facts) -> bool:
    """Whether a key names a property rather than a secret: ``max_tokens``, ``public_key``.

    A word before it makes a ``token`` or ``key`` harmless and never a password: ``current_password`` is one. Before
    what always opens something, only a message or a limit is expected, whose value is no drawn one.

    Args:
        key: The key in any spelling.
        value: What stands behind it.
        facts: Word lists.
    """
    words = words_of(key)
    if not words or words[-1].endswith("webtoken") or "".join(words[-3:]).endswith("publickeytoken"):
        return bool(words)
    prefixes = facts.words["metadata_prefixes"]
    cue = 2 if words[-1] in ("key", "id", "code") and len(words) > 1 else 1
    if cue == 2 and words[-2] in prefixes:
        return True
    before = words[-cue - 1 : -cue]
    if not before or before[0] not in prefixes:
        return False
    if words[-1] in ("id", "code") or (words[-1] == "key" and (cue == 1 or words[-2] not in _OPENING_KEYS)):
        return True
    is_digest = bool(_DIGEST.match(value))
    if words[-1] in ("token", "tokens"):
        is_cursor = before[0] in facts.words["cursor_prefixes"] and not is_environment(key)
        return is_cursor or not is_mixed(value) or (is_digest and not is_environment(key))
    return before[0] in facts.words["message_prefixes"] and not is_mixed(value)


def is_placeholder(value: bytes, facts: Facts) -> bool:
    """Whether a value stands for another one that is filled in elsewhere, or for one that is masked."""
    if b"<" in value:
        # A token in the middle of a password makes no placeholder of it.
        rest = without_tokens(value, facts)
        if rest != value:
            return not rest or is_placeholder(rest, facts)
    # A bang, a dollar or a hash may also begin a real password: then no name follows it.
    is_odd = value[:1] in b"$!#@%*" and len(value) >= 8 and DIGIT.search(value) and not _VARIABLE.match(value)
    if not is_odd and (_NOT_A_VALUE.match(value) or _INSIDE_PLACEHOLDER.search(value)):
        return True
    low = text(value.strip(b"\"'`")).lower()
    return low in facts.words["placeholders"] or (is_repetitive(value) and not value.isdigit())
