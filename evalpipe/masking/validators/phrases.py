"""Secrets and people that a phrase names: passwords in any script, login names beside a
password, names before an address.

Belongs here: the second look where the value is not plain ASCII or where two cues stand side by side. Does
not belong here: pairs of key and value (``keyvalue``), commands and tables (``places``).
"""

from __future__ import annotations

import re

from evalpipe.masking.validators.base import Facts, Found, align_right, text
from evalpipe.masking.validators.keyvalue import prose_secret
from evalpipe.masking.validators.numbers import pin
from evalpipe.masking.validators.people import person, user
from evalpipe.masking.validators.values import is_mixed, is_placeholder, words_of

#: What ends a password in print: a space, a quote or the punctuation of any script.
_STOP = re.compile("[\\s\"'`,;<>)、，。；：！？「」『』）》“”’»،؛।…\ufffd]")
_SCRIPT = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]")
_LAST_ASCII = re.compile(r"[!-~](?=[^!-~]*\Z)")
_SET_APART = re.compile("(?:[\\s\"'`:=（(「『“«„：｢—–-]|是|为|為|は|が|는|은|改成)\\Z")
_CODE = re.compile(rb"([0-9]{4,8})[^0-9]{1,40}\Z")
_NAMES_CODE = re.compile(
    r" (?:is|as) (?:your|the|my) (?:[\w-]+ ){0,4}?(?:code|passcode|otp|pin)\b|[（(][^\n]{0,8}验证码"
    r"| (?:es|é) (?:tu|su|o seu|o teu) código|은 인증번호|が認証コード",
    re.IGNORECASE,
)
_NUMBERED = re.compile(rb"[A-Za-z_]+[0-9]{1,3}\Z")
#: Words that make a sentence about passwords one about their properties.
_PROPERTY = re.compile(
    rb"strength|policy|length|rules?\b|hash|algorithm|hint|field|column|st\xc3\xa4rke|fuerza|for\xc3\xa7a|regex|reset|link",
    re.IGNORECASE,
)
_PAIRED = re.compile(rb" ?[/:|+] ?[\"'`]?([!-~]{6,120})")
_NAME_BEFORE = re.compile(r"(?:\A|[\n\t\r,;:=(\[|>\"'`])[ ]{0,12}([^\n\t\r,;:=(\[|>\"'`<]{3,60})\Z")


def native_secret(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A password with letters outside ASCII behind its cue, set apart from it: a digit, and one more or a sign.

    In scripts without spaces the sentence goes on right behind it: the password ends with its last ASCII sign.
    """
    raw = _STOP.split(text(v[start : align_right(v, end)]), maxsplit=1)[0]
    if _SCRIPT.search(raw):
        last = _LAST_ASCII.search(raw)
        raw = raw[: last.end()] if last else ""
    raw = raw.rstrip(".:?")
    if raw.isascii() or len(raw) < 6 - bool(_SCRIPT.search(raw)):
        return None
    if (
        sum(c.isascii() and not c.isalpha() for c in raw) < 2
        or not any("0" <= c <= "9" for c in raw)
        or not _SET_APART.search(text(v[max(0, start - 6) : start]))
    ):
        return None
    low = raw.lower()
    if any(word in low for word in facts.words["password_talk_native"]) or is_placeholder(raw.encode(), facts):
        return None
    return start, start + len(raw.encode()), ""


def login_name(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A login name beside a password: a plain word will do, since the two together say what it is."""
    name = text(v[start:end]).lower()
    if any(name in facts.words[stop] for stop in ("placeholders", "not_people", "not_names", "dictionary_stop")):
        return None
    words = words_of(text(v[start:end]))
    return None if {"user", "username", "your", "my", "example", "bot"} & set(words) else user(v, start, end, facts)


def login_pair(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """The login name of ``name / password`` behind words that announce both."""
    pair = _PAIRED.match(v, end)
    return login_name(v, start, end, facts) if pair and is_mixed(pair.group(1)) else None


def phrase_secret(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A password in a sentence, some words behind its cue, in ASCII or not."""
    if _PROPERTY.search(v, max(0, start - 64), start):
        return None
    return prose_secret(v, start, end, facts) or native_secret(v, start, end, facts)


def name_before(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The name before a mail address in angle brackets; ``end`` stands behind the ``@``."""
    stop = v.rfind(b"<", max(0, end - 70), end)
    begin = max(0, stop - 160)
    window = v[begin:stop].rstrip(b" ").rstrip(b"\"'\\")
    found = _NAME_BEFORE.search(window.decode("utf-8", "ignore"))
    if found is None:
        return None
    size = len(found.group(1).encode())
    judged = person(v, begin + len(window) - size, begin + len(window), facts)
    return [judged] if judged else None


def list_group(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """The group of a line of ``ls -l``: a person where it bears the owner's name, which stands before it."""
    owner = v[max(0, start - 48) : start].rstrip(b" ").rsplit(b" ", 1)[-1]
    return user(v, start, end, facts) if owner == v[start:end] else None


def machine(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """The name of a person's machine: a kind of machine, joined with a name or a number."""
    name = text(v[start:end]).rstrip(".-").lower()
    if "-" not in name and not any("0" <= c <= "9" for c in name):
        return None
    return None if name in facts.words["plain_hosts"] else (start, start + len(name), name)


def otp_before(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A one-time code before the words that name it: "618220 is your login code"; ``end`` is among them."""
    code = _CODE.search(v, max(0, end - 60), end)
    if code is None or not _NAMES_CODE.match(text(v[code.end(1) : code.end(1) + 60])):
        return None
    found = pin(v, code.start(1), code.end(1), facts)
    return [found] if found else None


def drawn_secret(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A password where a word may stand as well: no name with a number behind it, such as field1."""
    found = prose_secret(v, start, end, facts)
    return None if found is None or _NUMBERED.match(v[start : found[1]]) else found
