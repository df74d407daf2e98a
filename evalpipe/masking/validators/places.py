"""Secrets that their place names without a separator: commands, calls, statements, tables, lists.

Belongs here: where the secret stands in such a place. Does not belong here: ``key = value`` pairs and
what counts as a placeholder (``keyvalue``), shapes of tokens (``secrets``). All windows are bounded.
"""

from __future__ import annotations

import base64
import binascii
import re

from evalpipe.masking.validators.base import Facts, Found, text
from evalpipe.masking.validators.values import is_metadata, is_mixed, is_placeholder, is_random, words_of

_LINE_BYTES = 400
_KEY_TAIL = re.compile(rb"[A-Za-z0-9_.\-]{1,64}\Z")
_NAMED = re.compile(
    rb"[\"'`]{0,2}(?:[ ]{1,2}(?:value|content)=|[ \t]{0,40}[|][ \t]{0,40}|,[ \t]{0,4}"
    rb"|[ \t]{0,4}\r?\n[ \t\-]{0,16}value:[ \t]{0,4}"
    rb"|[ ]?\{\r?\n[ \t]{0,16}default[ \t]{0,16}=[ \t]{0,4}|[ \t]{1,60})"
    rb"([\"'`]{0,1})([^\s\"'`|<>,;]{4,700})"
)
_UUID_INSIDE = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_QUOTED = re.compile(rb"[rbu]{0,2}[\"']([^\"'\n]{0,200})[\"']")
_LAST_ARGUMENT = re.compile(rb"[rbu]{0,2}[\"']([^\"'\n]{4,200})[\"'][ \t]{0,4}(?:[),]|\Z| -)")
_ECHOED = re.compile(
    rb"(?:echo|printf)(?: -[ne]{1,2})? [\"']?[A-Za-z_][A-Za-z0-9._\-]{0,31}:([^\s\"'|]{3,120})[\"']? ?\| ?(?:sudo )?\Z"
)
_CODE = re.compile(
    rb"(?<![A-Za-z0-9\-])[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,8}(?![A-Za-z0-9\-])|(?<![A-Za-z0-9.\-])[0-9]{8}(?![A-Za-z0-9.\-])"
)
_WORD_BEFORE = re.compile(rb"(?:^|[\s\"'`])([^\s\"'`][!-~]{5,99}?)[\"'`]?\Z")
_NUMBERED = re.compile(rb"[A-Za-z_]+[0-9]{1,3}\Z")
_QUOTE = re.compile(rb"[\"'`]|\\[nrt\"']")
_PLAIN = re.compile(rb"[A-Za-z]+\Z")

#: Where a command takes its password, by the end of what the anchor of a rule matched.
_COMMANDS: tuple[tuple[bytes, re.Pattern[bytes]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (b"redis-cli ", rb"(?:^| )-a ([^ \n]{4,120})"),
        (b"ldapsearch ", rb"(?:^| )-w ([^ \n]{4,120})"),
        (b"ldapadd ", rb"(?:^| )-w ([^ \n]{4,120})"),
        (b"ldapmodify ", rb"(?:^| )-w ([^ \n]{4,120})"),
        (b"zip -P ", rb"^([^ \n]{4,120})"),
        (b"7z ", rb"(?:^| )-p([^ \n]{4,120})"),
        (b"7za ", rb"(?:^| )-p([^ \n]{4,120})"),
        (b"-passphrase ", rb"^([^ \n]{4,120})"),
        (b"-storepass ", rb"^([^ \n]{4,120})"),
        (b"-keypass ", rb"^([^ \n]{4,120})"),
        (b" login ", rb"(?:^| )(?:-p|--password)[ =]([^ \n]{4,120})"),
        (b"xfreerdp ", rb"(?:^| )/p:([^ \n]{4,120})"),
        (b"rdesktop ", rb"(?:^| )-p ([^ \n]{4,120})"),
        (b"net use ", rb"/user:[^ \n]{1,64} ([^ \n/]{4,120})"),
        (b"mongo ", rb"(?:^| )-p ([^ \n]{4,120})"),
        (b"mongosh ", rb"(?:^| )-p ([^ \n]{4,120})"),
        (b"mongodump ", rb"(?:^| )-p ([^ \n]{4,120})"),
        (b"sqlcmd ", rb"(?:^| )-P ([^ \n]{4,120})"),
        (b"plink ", rb"(?:^| )-pw ([^ \n]{4,120})"),
        (b"pscp ", rb"(?:^| )-pw ([^ \n]{4,120})"),
        (b"crackmapexec ", rb"(?:^| )-p ([^ \n]{4,120})"),
        (b"htpasswd ", rb"(?:^| )-[a-zA-Z]{0,4}b[a-zA-Z]{0,4} [^ \n]{1,80} [^ \n]{1,40} ([^ \n]{4,120})"),
        (b"htpasswd ", rb"(?:^| )-[a-zA-Z]{0,4}n[a-zA-Z]{0,4} [^ \n]{1,40} ([^ \n]{4,120})"),
        (b"-password ", rb"^(?:[^\n]{0,200} )?-w ([^ \n]{4,120})"),
        (
            b"put-parameter ",
            rb"--value ([^ \n]{4,120})[^\n]{0,200}SecureString|SecureString[^\n]{0,200}--value ([^ \n]{4,120})",
        ),
        (b"sqlplus ", rb"^(?:-[A-Za-z]{1,2} ){0,3}[\"']?[A-Za-z_][A-Za-z0-9_$#]{0,40}/([^ @\n]{4,80})@"),
        (b"net user ", rb"^[A-Za-z0-9._\-]{1,40} ([^ \n/*]{4,120})"),
        (b"ssh-keygen ", rb"(?:^| )-[NP] (\"[^\"\n]{4,120}\"|'[^'\n]{4,120}'|[^ \n]{4,120})"),
        (b"openssl ", rb"(?:^| )(?:-k ([^ \n]{4,120})|-pass(?:in|out)? [\"']?pass:([^ \"'\n]{4,120}))"),
        (b"-user ", rb"^[\"']?[A-Za-z_][A-Za-z0-9._\-]{0,40}:([^ \"'\n]{4,120})"),
    )
)


def _is_password(value: bytes, facts: Facts) -> bool:
    """Whether a value in a password's place is one: no plain word, number, variable or placeholder."""
    if len(value) < 4 or is_placeholder(value, facts) or value.isdigit() or b"://" in value:
        return False
    return not _PLAIN.match(value) or (not value.islower() and not value.istitle() and not value.isupper())


def _line_end(v: bytes, start: int, limit: int = _LINE_BYTES) -> int:
    stop = v.find(b"\n", start, start + limit)
    return min(len(v), start + limit) if stop < 0 else stop


def kv_named(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Value that stands beside the name of a secret in a table, a manifest, a call or a command."""
    head = v[max(0, end - 120) : end]
    name = _KEY_TAIL.search(
        head.rstrip(b" \t,|\n{\"'`").removesuffix(b"value=").removesuffix(b"content=").rstrip(b" \"'")
    )
    if name is None:
        return None
    key = name.group().decode()
    stop = max(0, end - 120) + name.end()
    found = _NAMED.match(v, stop)
    if found is None or is_metadata(key, found.group(2), facts):
        return None
    value = found.group(2).rstrip(b").:}]/")
    start = found.start(2)
    if is_placeholder(value, facts):
        return None
    is_word = words_of(key)[-1:] in (["password"], ["passwd"], ["pass"], ["pwd"])
    if is_word:
        return [(start, start + len(value), "")] if found.group(1) and is_mixed(value) else None
    is_drawn = is_random(value) or (_UUID_INSIDE.search(value) is not None and bool(found.group(1)))
    return [(start, start + len(value), "")] if is_drawn else None


def quoted_secret(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A quoted password of a statement or a form."""
    value = v[start:end]
    if b" " in value or not _is_password(value, facts) or (is_mixed(value) is False and len(value) < 12):
        return None
    return start, end, ""


def call_credentials(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The password among the quoted arguments of a call that logs in."""
    stop = _line_end(v, end, 300)
    is_only = v[end - 1 : end] == b" "
    quoted = list(_QUOTED.finditer(v, end, stop))
    wanted = quoted[:1] if is_only else quoted[:3]
    for match in reversed(wanted):
        last = _LAST_ARGUMENT.match(v, match.start(), stop)
        is_argument = is_only or v[max(0, match.start() - 4) : match.start()].rstrip(b" ").endswith(b",")
        if last is None or not is_argument or v.find(b"(", end, match.start()) >= 0:
            continue
        value = last.group(1)
        if is_mixed(value) and b" " not in value and not value.startswith(b"/") and _is_password(value, facts):
            return [(last.start(1), last.end(1), "")]
    return None


def cli_secret(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The password among the arguments of a command; ``end`` stands behind its name."""
    tail = v[max(0, end - 24) : end].lower()
    stop = _line_end(v, end)
    for name, pattern in _COMMANDS:
        if not tail.endswith(name.lower()):
            continue
        found = pattern.search(v[end:stop])
        if found is None:
            continue
        group = found.lastindex or 1
        is_quoted = found.group(group)[:1] in (b'"', b"'")
        value = _QUOTE.split(found.group(group)[is_quoted:])[0]
        start = end + found.start(group) + is_quoted
        return [(start, start + len(value), "")] if _is_password(value, facts) else None
    return None


def chpasswd(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A password that is echoed into the program whose name ends at ``end``."""
    name = max(v.rfind(tool, max(0, end - 16), end) for tool in (b"chpasswd", b"smbpasswd", b"passwd --stdin"))
    found = _ECHOED.search(v, max(0, name - 240), max(0, name))
    if found is None or is_placeholder(found.group(1), facts):
        return None
    return [(found.start(1), found.end(1), "")]


def column_secret(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Cells below the heading of a column of passwords, in CSV and its kin; at most 200 rows."""
    begin = v.rfind(b"\n", max(0, end - _LINE_BYTES), end - 1) + 1
    stop = _line_end(v, end - 1)
    head = v[begin:stop]
    delimiter = next((d for d in (b"\t", b"|", b";", b",") if d in head), b"")
    names = [cell.strip(b" \"'\r").lower() for cell in head.split(delimiter)] if delimiter else []
    columns = [at for at, name in enumerate(names) if name in _COLUMNS]
    before = v[max(0, v.rfind(b"\n", max(0, begin - _LINE_BYTES), max(0, begin - 1)) + 1) : max(0, begin - 1)]
    # Only the first row of a table is a heading, or each of many would be read against all that follow.
    if not columns or (before and before.count(delimiter) == len(names) - 1):
        return None
    return _cells(v, stop + 1, delimiter, len(names), columns, facts) or None


_COLUMNS = frozenset((b"password", b"passwd", b"pwd", b"secret", b"token", b"api_key", b"apikey"))


def _cells(v: bytes, at: int, delimiter: bytes, n: int, columns: list[int], facts: Facts) -> list[Found]:
    out: list[Found] = []
    for _ in range(200):
        stop = _line_end(v, at, 2 * _LINE_BYTES)
        row = v[at:stop]
        is_rule = bool(row) and not row.strip(b"-+|: \t\r")
        cells = row.split(delimiter)
        if not is_rule and (not row or len(cells) != n):
            break
        start = at
        for column, cell in enumerate(cells):
            value = cell.strip(b" \"'\r")
            if column in columns and not is_rule and b" " not in value and _is_password(value, facts):
                first = start + cell.find(value)
                out.append((first, first + len(value), ""))
            start += len(cell) + 1
        at = stop + 1
    return out


def word_before(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A password before "as the password", which ends at ``end``."""
    if v[end : end + 1].isalnum() or v[end : end + 5] == b" hash":
        return None
    cue = max(v.rfind(word, max(0, end - 20), end) for word in (b" as ", b" for "))
    found = _WORD_BEFORE.search(v, max(0, cue - 120), max(0, cue))
    if found is None or not is_mixed(found.group(1)) or not _is_password(found.group(1), facts):
        return None
    # A name with a number behind it, such as field1, is no password.
    return None if _NUMBERED.match(found.group(1)) else [(found.start(1), found.end(1), "")]


def basic_pair(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Base64 of ``user:password``."""
    value = v[start:end]
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    user, colon, password = plain.partition(b":")
    is_text = plain.isascii() and text(plain).isprintable()
    return (start, end, "") if colon and user and len(password) >= 3 and is_text else None


def code_list(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Recovery codes behind the words that announce them, as long as one follows another closely."""
    out: list[Found] = []
    at = end
    for match in _CODE.finditer(v, end, end + 600):
        if match.start() - at > 28 or (out and any(chr(c).isalpha() for c in v[at : match.start()])):
            break
        at = match.end()
        if any(c in b"0123456789" for c in match.group()):
            out.append((match.start(), match.end(), ""))
    return out or None


def header_value(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Credential of an Authorization header."""
    value = v[start:end]
    if is_placeholder(value, facts) or (value.isalpha() and len(value) < 20):
        return None
    # Of a digest the scheme's first field: username="...".
    return None if value.endswith(b"=") and v[end : end + 1] == b'"' else (start, end, "")


def random_value(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A long value behind a word of prose: it must look drawn at random, since a name may stand there as well."""
    found = random_token(v, start, end, facts)
    return found if found and is_random(v[start : found[1]]) else None


def random_token(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A long credential without other cue than "Bearer": needs digits, not a path or a word chain."""
    value = v[start:end].rstrip(b".")
    if is_placeholder(value, facts) or sum(c in b"0123456789" for c in value) < 2 or b"/" in value[:1]:
        return None
    return start, start + len(value), ""
