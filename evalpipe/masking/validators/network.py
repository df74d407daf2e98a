"""Network addresses: only public ones are personal; versions and scopes that look alike are kept.

Belongs here: IPv4, IPv6, MAC. Does not belong here: host names in mail addresses and prompts.
"""

from __future__ import annotations

import ipaddress
import re

from evalpipe.masking.validators.base import WORD, Facts, Found, text

_RESOLVERS = frozenset({"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9"})
#: Documentation ranges stand for public addresses in examples and tickets, so they are masked.
_DOCUMENTATION = tuple(ipaddress.ip_network(n) for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"))
#: The word before a quad, or before the list of versions that it ends.
_BEFORE = re.compile(
    rb"([A-Za-z\x80-\xff]{1,24})[ \t]?[\"'(=:]{0,3}[ \t]?"
    rb"(?:v?[0-9]{1,5}(?:\.[0-9]{1,5}){1,4}(?:, ?(?:and |or )?| and | or | to | & |/| -> ?)){0,6}v?\Z"
)
_IPV6_CHARS = re.compile(rb"[0-9A-Fa-f:.]{6,45}")


def ipv4(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A public IPv4 address that is no version number."""
    octets = [int(part) for part in v[start:end].split(b".")]
    if max(octets) > 255 or octets[0] == 0 or any(p[:1] == b"0" and len(p) > 1 for p in v[start:end].split(b".")):
        return None
    before = v[start - 1] if start else 0x20
    after = v[end] if end < len(v) else 0x20
    # Joined to a name, to a longer dotted chain, or to an operator of a requirement: a version.
    if before in WORD or before in b".-+~^" or after in WORD or (after in b".-+" and v[end + 1 : end + 2].isalnum()):
        return None
    if before == 0x2F and start > 1 and v[start - 2] in WORD:
        return None
    if before == 0x3D and v[start - 2 : start - 1] in (b"=", b">", b"<", b"~", b"!"):
        return None
    if max(octets) < 16 or _follows_version_word(v, start, facts):
        return None
    value = v[start:end].decode()
    return (start, end, value) if _is_public_v4(value) else None


def _follows_version_word(v: bytes, start: int, facts: Facts) -> bool:
    found = _BEFORE.search(v, max(0, start - 120), start)
    if found is None:
        return False
    word = text(found.group(1)).lower().strip("�")
    words = facts.words["version_words"]
    return word in words or any(word.endswith(w) for w in ("版本", "バージョン", "버전", "version"))


def _is_public_v4(value: str) -> bool:
    if value in _RESOLVERS or value.startswith("255."):
        return False
    address = ipaddress.IPv4Address(value)
    if any(address in net for net in _DOCUMENTATION):
        return True
    return address.is_global and not address.is_multicast


def ipv6(v: bytes, end: int, facts: Facts) -> list[Found] | None:
    """A global unicast IPv6 address (2000::/3) that covers ``end``."""
    start = end
    while start > 0 and start > end - 12 and v[start - 1] in b"0123456789abcdefABCDEF:":
        start -= 1
    run = _IPV6_CHARS.match(v, start)
    if run is None:
        return None
    value = run.group().rstrip(b".")
    if value.endswith(b":") and not value.endswith(b"::"):
        value = value[:-1]
    stop = start + len(value)
    if stop < len(v) and v[stop] in WORD:
        return None
    try:
        address = ipaddress.IPv6Address(value.decode())
    except ValueError:
        return None
    return [(start, stop, address.compressed)]


def mac(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A MAC address: one separator throughout, neither part of a longer chain nor a broadcast."""
    value = v[start:end].lower()
    before, after = v[start - 1] if start else 0x20, v[end] if end < len(v) else 0x20
    if before in WORD or after in WORD or before in b":-" or (after in b":-" and v[end + 1 : end + 2].isalnum()):
        return None
    if b":" in value and b"-" in value:
        return None
    plain = value.replace(b":", b"").replace(b"-", b"")
    if plain in (b"0" * 12, b"f" * 12) or (b"-" in value and plain.isdigit()):
        return None
    return start, end, plain.decode()
