"""Secrets with a shape or place of their own: tokens, key blocks, URLs, cookies, commands, base64.

Belongs here: the second look at a hit whose anchor is telling. Does not belong here: plain key=value
pairs (``keyvalue``).
"""

from __future__ import annotations

import base64
import re

from evalpipe.masking.validators.base import (
    TOKEN_FORM,
    Facts,
    Found,
    is_repetitive,
    text,
    touches_right,
    without_tokens,
)
from evalpipe.masking.validators.values import has_random_cases, is_mixed, is_random

_AWS_SECRET = re.compile(rb"(?<![A-Za-z0-9/+=_\-.])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_\-])")
_PEM_BODY = re.compile(rb"(?:[A-Za-z0-9+/=\s\\:,.\-]|" + TOKEN_FORM + rb"){0,16384}")
_MASK = re.compile(rb"(?::[!-;=?-~]{1,80})?>")
_GLUED_BEFORE = re.compile(rb"[A-Za-z0-9+/=_\-]{16,64}\Z")
_GLUED_BEHIND = re.compile(rb"[A-Za-z0-9][A-Za-z0-9+/=_.~\-]{5,400}")
_FILLER = re.compile(rb"\.\.\.|xxxx|XXXX|your[-_]|YOUR[-_]|<|EXAMPLE_KEY|placeholder", re.ASCII)
_NO_PASSWORD = re.compile(rb"[$<{%*\[]|your|xxx|\.\.\.", re.IGNORECASE)
_COOKIE_PAIR = re.compile(rb"([A-Za-z0-9_.\-]{1,64})=([^\s;,\"'\\<>]{16,4096})")
_USERPASS = re.compile(
    rb"(?:^|[\s\"'])(?:-u|--user|-U|--proxy-user|--http-user)[ =]?[\"']?([^\s:%\"'$<]{1,64})[:%]([^\s\"'<]{3,200})"
)
_MYSQL = re.compile(rb"[ ]-p([^\s\"'$<-][^\s\"'<]{3,80})")
_SSHPASS = re.compile(
    rb"[\"']([^\"'\n$<][^\"'\n<]{2,80})[\"'](?: |\Z)|[\"']?([^\s\"'$<][^\"'\n<]{2,80}?)[\"']?(?: |\Z)"
)
_ECHO = re.compile(rb"(?:echo|printf)(?: -n)? [\"']?([^\s\"'$<|]{6,200})[\"']?[ ]?\|[ ]?\Z")
_DATA_PAIR = re.compile(
    rb"[ \t]{1,12}[A-Za-z0-9_.\-]{1,80}: [\"']?([A-Za-z0-9+/]{8,4096}={0,2})[\"']?[ \t]{0,4}(?:\n|\Z)"
)
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/]{0,4096}={0,2}")
_DECODED_SECRET = re.compile(
    rb"(?:passw(?:or)?d|secret|token|api_?key)[\"' ]{0,3}[:=][\"' ]{0,3}[^\s\"'<$]{6,}"
    rb"|gh[pousr]_\w{20}|xox[abps]-|sk-(?:ant|proj)-|glpat-|-----BEGIN [A-Z ]{0,20}PRIVATE|AKIA[A-Z0-9]{12}"
    rb"|[\w.+-]{1,64}@[\w-]{1,64}\.[a-z]{2}",
    re.IGNORECASE,
)


def token(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A vendor token: fillers (``xxxx``, ``your-key``) are kept, all else goes."""
    value = v[start:end]
    body = value[len(value) // 4 :]
    # Published as an example: AKIAIOSFODNN7EXAMPLE.
    if _FILLER.search(value) or is_repetitive(body) or value.endswith(b"EXAMPLE"):
        return None
    trimmed = value.rstrip(b".-")
    if len(body) >= 16 and not any(c in b"0123456789" for c in trimmed) and trimmed.lower() == trimmed:
        # Small letters only: a word chain such as pypi-agent-tools-collection.
        return None
    return start, start + len(trimmed), ""


def vendor(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A token of a family whose prefix could be the beginning of a name: its body holds digits."""
    found = token(v, start, end, facts)
    if found is None:
        return None
    body = v[start + 5 : found[1]]
    return found if sum(c in b"0123456789" for c in body) >= 2 or has_random_cases(body) else None


def aws_pair(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """The secret keys that stand bare within a line or two of an access key id, which ends behind ``end``."""
    found = [
        (match.start(), match.end(), "")
        for match in _AWS_SECRET.finditer(v, max(0, end - 160), end + 160)
        if not _is_one_kind(match.group())
    ]
    return found or None


def _is_one_kind(value: bytes) -> bool:
    """Whether small letters, capitals or digits lack: a hash of a commit, or words."""
    return value.upper() == value or value.lower() == value or not any(c in b"0123456789" for c in value)


def pem(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A private-key block, whole or cut short, from its BEGIN line to its END line."""
    begin = v.rfind(b"----", max(0, end - 60), end)
    if begin < 0:
        return None
    while begin > 0 and v[begin - 1] == 0x2D:
        begin -= 1
    line = v.find(b"-----", end, end + 40)
    if line < 0:
        return None
    another = v.find(b"-----BEGIN", line + 5, line + 16384)
    stop = v.find(b"-----END", line + 5, another if another >= 0 else line + 16384)
    if stop >= 0:
        close = v.find(b"-----", stop + 8, stop + 60)
        return [(begin, close + 5 if close >= 0 else min(len(v), stop + 60), "")]
    # Cut short: the body ends where another block begins.
    body = _PEM_BODY.match(v, line + 5, another if another >= 0 else len(v))
    assert body is not None  # the pattern may be empty
    return [(begin, body.end(), "")] if body.end() - line > 45 else None


def url_userinfo(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Credentials before the ``@`` of a URL; ``end`` stands behind the ``@``."""
    start = v.rfind(b"://", max(0, end - 130), end)
    if start < 0:
        return None
    info = v[start + 3 : end - 1]
    plain = without_tokens(info, facts)
    if b"<" in plain or b">" in plain:
        return None
    user, colon, password = info.partition(b":")
    out: list[Found] = []
    at = start + 3
    if colon:
        bare = without_tokens(password, facts)
        if len(bare) >= 3 and text(bare).lower() not in facts.words["placeholders"] and not _NO_PASSWORD.match(bare):
            out.append((at + len(user) + 1, end - 1, ""))
        return out or None
    if len(user) >= 12 and any(c in b"0123456789" for c in user) and not _FILLER.search(user):
        return [(at, end - 1, "")]
    return None


def beside_mask(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """What is glued to the mask of a secret whose name ends at ``end``: the rest of it, by its looks."""
    mask = _MASK.match(v, end)
    if mask is None:
        return None
    # The subtype that somebody made up; of a token of the rule set the engine lets nothing go.
    forged = v[end + 1 : mask.end() - 1]
    out: list[Found] = [(end + 1, mask.end() - 1, "")] if is_mixed(forged) else []
    before = _GLUED_BEFORE.search(v, max(0, end - 7 - 64), end - 7)
    if before is not None and is_random(before.group()):
        out.append((before.start(), before.end(), ""))
    behind = _GLUED_BEHIND.match(v, mask.end())
    if behind is not None and is_mixed(behind.group()):
        out.append((behind.start(), behind.end(), ""))
    return out or None


def cookie(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Long cookie values on the line behind ``end``."""
    line = v.find(b"\n", end, end + 1024)
    stop = min(len(v), end + 4096) if line < 0 else line
    again = v.find(b"ookie:", end, stop)
    stop = again if again >= 0 else stop
    out = []
    for pair in _COOKIE_PAIR.finditer(v, end, stop):
        value = pair.group(2)
        if any(c in b"0123456789" for c in value) and not is_repetitive(value):
            out.append((pair.start(2), pair.end(2), ""))
    return out or None


def cli_userpass(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Passwords in the arguments of curl, mysql, sshpass and smbclient; ``end`` is behind the name."""
    line = v.find(b"\n", end, end + 400)
    stop = min(len(v), end + 400) if line < 0 else line
    if v[end - 2 : end] == b"-p":
        found = _SSHPASS.match(v, end + (v[end : end + 1] == b" "), stop)
    elif b"mysql" in v[max(0, end - 12) : end]:
        found = _MYSQL.search(v, end - 1, stop)
    else:
        found = _USERPASS.search(v, end - 1, stop)
    if found is None:
        return None
    group = found.lastindex or 1
    value = text(found.group(group)).lower()
    if value in facts.words["placeholders"] or value.startswith(("$", "<", "{")):
        return None
    return [(found.start(group), found.end(group), "")]


def echo_pipe(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A password echoed into a command that reads it from a pipe and whose name ends at ``end``."""
    start = max(v.rfind(tool, max(0, end - 16), end) for tool in (b"docker login", b"podman login"))
    if start < 0:
        start = v.rfind(b"|", max(0, end - 80), end) + 1
    found = _ECHO.search(v, max(0, start - 240), start)
    if found is None or text(found.group(1)).lower() in facts.words["placeholders"]:
        return None
    return [(found.start(1), found.end(1), "")]


def k8s_data(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """Values under the nearest ``data:`` of a Kubernetes Secret, up to 2 KB before or behind its kind."""
    if touches_right(v, end):
        return None
    data = v.rfind(b"data:\n", max(0, end - 2048), end)
    if data < 0:
        data = v.find(b"data:\n", end, end + 2048)
    out: list[Found] = []
    at = data + 6
    while data >= 0 and len(out) < 64:
        pair = _DATA_PAIR.match(v, at)
        if pair is None:
            break
        out.append((pair.start(1), pair.end(1), ""))
        at = pair.end()
    return out or None


def base64_run(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A base64 run around ``end`` that decodes to something that names or holds a secret."""
    chunk = v[max(0, end - 2048) : end]
    start = end - (len(chunk) - len(chunk.rstrip(_BASE64)))
    match = _BASE64_RUN.match(v, start)
    assert match is not None  # the pattern may be empty
    run = match.group().rstrip(b"=")
    if len(run) < 16 or touches_right(v, match.end()):
        return None
    decoded = base64.b64decode(run + b"=" * (-len(run) % 4), validate=False) if len(run) % 4 != 1 else b""
    return [(start, match.end(), "")] if _DECODED_SECRET.search(decoded) else None
