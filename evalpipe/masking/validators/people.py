"""People: mail addresses, user names, names behind a cue, postal addresses.

Belongs here: what tells a person from a program, a role or a heading. Does not belong here: models of
language; a name in free text without a cue is out of reach of rules.
"""

from __future__ import annotations

import re

from evalpipe.masking.validators.base import WORD, Facts, Found, align_right, text

_LOCAL = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
#: Second and lead bytes of Latin letters with marks (U+00C0 to U+024F); CJK bytes begin at E3.
_LATIN = re.compile(rb"(?:[A-Za-z0-9._%+\-]|[\xc3-\xc9][\x80-\xbf]){1,64}\Z")
#: Letters of two bytes: Latin, Greek, Cyrillic, Hebrew, Arabic. Longer ones may be words that touch an address.
_TWO = rb"[\xc3-\xdb][\x80-\xbf]"
_ANY_LOCAL = re.compile(rb"(?:[A-Za-z0-9._%+\-]|" + _TWO + rb"){1,64}\Z")
_LABEL = rb"(?:[A-Za-z0-9]|" + _TWO + rb")(?:(?:[A-Za-z0-9-]|" + _TWO + rb"){0,62}(?:[A-Za-z0-9]|" + _TWO + rb"))?"
_DOMAIN = re.compile(_LABEL + rb"(?:\." + _LABEL + rb"){1,8}")
_ESCAPE = re.compile(rb"u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf]")
_EXTENSION = re.compile(
    r"\.(?:tsx?|jsx?|py|md|html?|css|json|ya?ml|toml|txt|png|jpe?g|svg|go|rs|java|rb|php|sh|zip|gz|log|csv|vue)\Z"
)
#: Top-level domains below which names of one letter exist.
_SHORT_DOMAINS = frozenset({"com", "org", "io", "co", "cn", "de"})
_PATH_BEFORE = re.compile(rb"[^\s\"'`<>|(,;=\[]{0,160}\Z")
#: A disk of a Mac, whose name may hold spaces.
_VOLUME = re.compile(rb"/Volumes/[^\n\"'<>|/]{1,64}\Z")
_CUT = re.compile('[，。、；：！？（）()"“”「」|\n\t]|[,;:!?]|\\.(?:\\s|$)')
_CJK_END = re.compile(r"(?:と申します|と言います|といいます|です|입니다|이라고|라고|님|先生|女士|小姐|同学)")
_ENTITY_JUNK = re.compile(r"[\d_@#/\\{}\[\]<>=+*^~`$%&]")
_NO_ADDRESS = re.compile(
    r"0x|https?:|/|[\w.-]+:\d|\d+\.\d+\.\d+|[0-9a-f]{16}|"
    r"(?:version|line|section|chapter|step|page|part|phase|queue|port|column|release) \d|"
    r"[\w-]+\.[\w-]+\.[a-z]{2}"
)
_ASIAN = re.compile("[\u3040-\u9fff\uac00-\ud7a3]")
#: One of these stands in any Chinese, Japanese or Korean address: city, street, number, floor.
_ASIAN_PLACE = re.compile("[省市区县縣區路街道巷弄号號室栋樓楼村镇鎮乡鄉州府郡町丁番都県시구동로길읍면도리]")
_ADDRESS_DIGIT = re.compile(r"\d")
_UPPER_WORD = re.compile(r"[^\W\d_]+(?:['’.\-][^\W\d_]+)*\.?")


def email(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A mail address; ``end`` stands one byte behind the ``@``."""
    at = end - 2
    chunk = v[max(0, at - 64) : at]
    if v[at - 1] < 0x80:
        start = at - (len(chunk) - len(chunk.rstrip(_LOCAL)))
        if start and 0x80 <= v[start - 1] < 0xC0 and start - 2 >= 0 and 0xC3 <= v[start - 2] <= 0xC9:
            latin = _LATIN.search(chunk)
            start = at - len(latin.group()) if latin else start
    else:
        letters = _ANY_LOCAL.search(chunk)
        if letters is None:
            return None
        start = at - len(letters.group())
    start = _off_escape(v, start, at)
    domain = _DOMAIN.match(v, at + 1)
    if domain is None or start >= at:
        return None
    local, stop = text(v[start:at]).lower(), domain.end()
    is_bracketed = v[start - 1 : start] == b"<" and v[stop : stop + 1] == b">"
    if local in facts.words["role_mailboxes"] or not _domain_fits(domain.group(), facts, is_bracketed=is_bracketed):
        return None
    if v[stop : stop + 1] == b"(" or (v[stop : stop + 1] in (b".", b"_") and v[stop + 1 : stop + 2].isalnum()):
        return None
    if _is_userinfo(v, start):
        return None
    # What follows a plus sign sorts one person's mail (RFC 5233); the mailbox is the same.
    mailbox = local.split("+")[0] or local
    return [(start, stop, f"{mailbox}@{text(domain.group()).lower()}")]


def _off_escape(v: bytes, start: int, at: int) -> int:
    """Skip leading dots and the letter of an escape such as ``\\n`` that is glued to the address."""
    while start < at and v[start] in b".%+-":
        if v[start] == 0x25 and start + 3 < at:
            start += 2
        start += 1
    if start and v[start - 1] == 0x5C:
        glued = _ESCAPE.match(v, start, at)
        start = glued.end() if glued else start
    return start


def _domain_fits(domain: bytes, facts: Facts, *, is_bracketed: bool) -> bool:
    labels = domain.decode().lower().split(".")
    top = labels[-1]
    if not top.isalpha() or not (len(top) == 2 or top in facts.words["generic_tlds"]):
        return False
    is_odd = top not in _SHORT_DOMAINS and not is_bracketed
    is_short = len(labels[-2]) < 2 and (is_odd or not labels[-2].isalpha())
    return not is_short and not (len(top) == 2 and _EXTENSION.match("." + top))


def _is_userinfo(v: bytes, start: int) -> bool:
    scheme = v.rfind(b"://", max(0, start - 100), start)
    if scheme < 0 or re.search(rb"[\s\"'<>]", v[scheme:start]):
        return False
    # A sign in a password looks like the beginning of an address: ://user:pa!ss@host.
    return v[start - 1 : start] in (b":", b"/") or not re.search(rb"[/?#&=]", v[scheme + 3 : start])


def home_user(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """The user's folder behind ``/home/`` and its kind."""
    end = align_right(v, end)
    value = v[start:end].rstrip(b".-")
    end = start + len(value)
    name = text(value).lower()
    if len(name) < 2 or name in facts.words["service_accounts"] or name.isdigit():
        return None
    if v[end : end + 1] not in (b"/", b"\\") and _EXTENSION.search(name):
        return None
    if not _is_home_root(v, start):
        return None
    return start, end, name


def _is_home_root(v: bytes, start: int) -> bool:
    anchor = max(v.rfind(b"/home/", max(0, start - 12), start), v.rfind(b"/Users/", max(0, start - 12), start))
    if anchor <= 0 or v[anchor - 1] not in WORD:
        return True
    if _VOLUME.search(v, max(0, anchor - 100), anchor):
        return True
    found = _PATH_BEFORE.search(v, max(0, anchor - 160), anchor)
    before = found.group() if found else b""
    # "pages/home/index" and "site.example/home/x" are no home folders; "/mnt/c/Users/x" is one.
    if before.startswith((b"/", b"file:///", b"~")):
        return True
    return b"://" not in before and re.search(rb"[:\x80-\xbf]/", before) is not None


def user(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A login name at a place where the shell or a daemon names one."""
    value = v[start:end].rstrip(b".-")
    end = start + len(value)
    name = text(value).lower()
    words = facts.words
    # Spelled out: every line of "ls -l" asks, twice, and nearly all of them about root.
    if name in words["service_accounts"] or name in words["system_accounts"] or name in words["role_mailboxes"]:
        return None
    if len(name) < 2:
        return None
    # A call or a variable; "opened for user x(uid=1003)" names an account.
    if (v[end : end + 1] in (b"(", b"$", b"{") and v[end : end + 5] != b"(uid=") or _EXTENSION.search(name):
        return None
    return start, end, name


def prompt(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The user of a shell prompt ``user@host:~/x$``; ``end`` stands behind the prompt."""
    at = v.rfind(b"@", max(0, end - 130), end)
    if at < 0:
        return None
    chunk = v[max(0, at - 32) : at]
    start = at - (len(chunk) - len(chunk.rstrip(_LOCAL)))
    found = user(v, start, at, facts) if start < at else None
    return [found] if found else None


def prompt_host(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The machine of a person's shell prompt; those of service accounts are images and servers."""
    if prompt(v, end, facts) is None:
        return None
    start = v.rfind(b"@", max(0, end - 130), end) + 1
    stop = min((at for at in (v.find(b":", start, end), v.find(b" ", start, end)) if at >= 0), default=end)
    host = text(v[start:stop]).lower()
    if len(host) < 4 or host in facts.words["service_accounts"] or host in facts.words["plain_hosts"]:
        return None
    return [(start, stop, host)]


def url_user(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The login name of a URL; ``end`` stands behind the ``@``."""
    start = v.rfind(b"://", max(0, end - 140), end) + 3
    stop = start
    while stop < end and v[stop : stop + 1] not in (b":", b"@"):
        stop += 1
    if start < 3 or not 2 <= stop - start <= 16:
        return None
    found = user(v, start, stop, facts)
    return [found] if found else None


def trim_name(raw: str) -> str:
    """A name without what a sentence or a record puts around it."""
    cut = _CUT.search(raw)
    raw = raw[: cut.start()] if cut else raw
    return raw.strip(" \t'\"*_.-")


def place(v: bytes, start: int, end: int, name: str) -> Found:
    """Where a name stands between two offsets, and its canonical form."""
    inside = v.find(name.encode(), start, end + 4)
    return inside, inside + len(name.encode()), " ".join(name.casefold().split())


def _behind(v: bytes, start: int, name: str) -> bytes:
    """The three bytes behind a name that stands somewhere from ``start`` on."""
    end = v.find(name.encode(), start, start + 400) + len(name.encode())
    return v[end : end + 3]


def _is_asian(name: str) -> bool:
    return _ASIAN.search(name) is not None


def _capitals(name: str, facts: Facts) -> str:
    """The leading title-case words of a text as they stand there, name particles included."""
    particles, not_names = facts.words["name_particles"], facts.words["not_names"]
    end = at = 0
    for word in name.split():
        at = name.index(word, at)
        bare = word.rstrip(".,")
        if not _UPPER_WORD.fullmatch(word):
            break
        is_name = bare[:1].isupper() and bare.lower() not in not_names
        if not is_name and not (at and bare.lower() in particles):
            break
        at += len(word)
        if word.lower() not in particles:
            end = at
    return name[:end]


def person(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A whole field that holds a name: two to five title-case words, or two to six Asian characters."""
    name = trim_name(text(v[start : align_right(v, end)]).replace("�", ""))
    if not name or _ENTITY_JUNK.search(name) or name.lower() in facts.words["not_people"]:
        return None
    if _is_asian(name):
        name = _CJK_END.split(name)[0]
        # The next label of a record is no part of the name before it: two words, then a colon.
        if " " in name and re.match(rb":|\xef\xbc\x9a", _behind(v, start, name)):
            name = name.rpartition(" ")[0]
        return place(v, start, end, name) if 2 <= len(name) <= 8 and is_asian_name(name, facts) else None
    words = name.split()
    if not 2 <= len(words) <= 5 or _capitals(name, facts) != name or words[0].lower() in facts.words["not_people"]:
        return None
    return None if words[-1].lower() in facts.words["name_ends_not"] else place(v, start, end, name)


def person_loose(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A configured author name: one word is enough, because the place says that it names somebody."""
    name = trim_name(text(v[start : align_right(v, end)]).replace("�", ""))
    stop = facts.words["not_people"] | facts.words["service_accounts"] | facts.words["not_names"]
    name = re.split(r" (?:commit|&&|-c|;|\|)", name)[0].strip()
    if len(name) < 3 or not name[:1].isalnum() or "(" in name or {name.lower(), name.split()[0].lower()} & stop:
        return None
    return place(v, start, end, name)


def person_cue(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A name that somebody introduces: the leading title-case words behind the cue."""
    raw = trim_name(text(v[start : align_right(v, end)]).replace("�", ""))
    if _is_asian(raw):
        name = _CJK_END.split(raw.split(" ")[0])[0]
        return place(v, start, end, name) if 2 <= len(name) <= 4 and is_asian_name(name, facts) else None
    name = _capitals(raw, facts)
    if not 2 <= len(name.split()) <= 5 or name.split()[-1].lower() in facts.words["name_ends_not"]:
        return None
    return place(v, start, end, name)


def is_asian_name(name: str, facts: Facts) -> bool:
    """Frequent family names decide whether a few characters are a Chinese, Japanese or Korean name."""
    if not re.fullmatch(r"[぀-ヿ一-鿿가-힣々·・ ]+", name):
        return False
    if "가" <= name[0] <= "힣":
        return name[0] in facts.words["family_names_ko"] and len(name) <= 4
    if any("぀" <= c <= "ヿ" for c in name):
        return False
    if name[0] in facts.words["family_names_zh"] or name[:2] in facts.words["family_names_zh_long"]:
        return True
    return 3 <= len(name) <= 5 and name[:2] in facts.words["family_names_ja"]


def address(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A postal address behind its cue: a digit, and words or Asian characters enough."""
    raw = text(v[start : align_right(v, end)]).replace("�", "")
    raw = re.split(r"[。；！]|，(?=请|帮|谢)|\s{2,}|(?<=\w{4})(?<!str)\. ", raw)[0].rstrip(" ,.")
    if not _ADDRESS_DIGIT.search(raw) or _NO_ADDRESS.match(raw) or "@" in raw:
        return None
    if _is_asian(raw) and not _ASIAN_PLACE.search(raw):
        return None
    if not _is_asian(raw) and (len(raw.split()) < 3 or not re.search(r"[^\W\d_]{3}|[^\x00-\u02ff]{3}", raw)):
        return None
    if len(raw) < 8 or re.search(r"[=(){}]", raw):
        return None
    found = v.find(raw.encode(), start, end + 4)
    return (found, found + len(raw.encode()), raw.casefold()) if found >= 0 else None
