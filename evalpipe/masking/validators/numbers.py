"""Numbers: cards, accounts, national ids, phones. Checksums and plans decide, then the neighbourhood.

Belongs here: arithmetic on digits and what may stand beside them. Does not belong here: plans and
issuer tables, which are data (``numbers_plans.toml``).
"""

from __future__ import annotations

import hashlib
import re

from evalpipe.masking.validators.base import ALNUM, WORD, Facts, Found, text, touches_right

_NON_DIGIT = re.compile(rb"[^0-9]+")
_DATE = re.compile(
    rb"(?:0?[1-9]|[12][0-9]|3[01])[-/.](?:0?[1-9]|[12][0-9]|3[01])[-/.](?:[0-9]{2}|[12][0-9]{3})(?:\Z|[ T,])"
)
_BEFORE_WORD = re.compile(rb"([A-Za-z_]{1,24})[\"']?[ ]?[=:]?[ \"']{0,3}\Z")
#: What a number is of, before it: order #..., seed=..., "ticket_id": ...
_CUE_BEFORE = re.compile(
    rb"(?:\A|[^A-Za-z])([A-Za-z]{2,24})(?:[_ -](?:id|no|nr|number))?[\"']?[ ]?[#=:]{0,2}[ ]?[#\"']{0,2}\Z"
)
#: Answers of servers, which stand in rows of three digits.
_STATUSES = frozenset(
    b"100 101 200 201 202 204 206 301 302 303 304 307 308 400 401 403 404 405 406 408 409 410 413 415 422 429".split()
    + b"500 501 502 503 504 505".split()
)
_FILE_END = re.compile(rb"\.(?:tar|t?gz|zip|txt|csv|json|xml|pdf|png|jpe?g|log|bak|md|html?)(?![A-Za-z])")
_EXTENSION = re.compile(rb" ?(?:x|ext\.? ?)[0-9]{1,6}")
#: Spaces of printed numbers beside the plain one: no-break, figure, thin, narrow no-break.
_WIDE = rb"\xc2\xa0|\xe2\x80[\x87\x89\xaf]"
_NEXT_GROUP = re.compile(rb"(?:[ \-./]|" + _WIDE + rb")[0-9]")
_PREVIOUS_GROUP = re.compile(rb"[0-9](?:[ \-./]|" + _WIDE + rb")\Z")
_GAP = re.compile(rb"(?:[ \-./(]|" + _WIDE + rb")+")
_OTHER_RUN = re.compile(rb"[0-9]{6}")


def _digits(value: bytes) -> str:
    return _NON_DIGIT.sub(b"", value).decode()


def luhn_valid(digits: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1)."""
    total = 0
    for i, c in enumerate(reversed(digits)):
        d = ord(c) - 48
        total += d if i % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2)
    return total % 10 == 0


def _is_inside_number(v: bytes, start: int, end: int) -> bool:
    """Whether letters, digits or a decimal point join the span to something longer."""
    before, after = v[start - 1] if start else 0x20, v[end] if end < len(v) else 0x20
    if before in ALNUM or after in WORD:
        return True
    if before in b".-" and start > 1 and v[start - 2] in WORD:
        return True
    # "-Office" behind a number is a remark, "-7" is more of the number.
    return after in b".-" and v[end + 1 : end + 2].isdigit()


def _extension_end(v: bytes, end: int) -> int:
    """Behind an extension such as ``x4587``, if one follows a phone number."""
    found = _EXTENSION.match(v, end)
    return found.end() if found else end


def _issuer_fits(digits: str, facts: Facts) -> bool:
    issuers = facts.plans["card_issuers"]
    return any(len(digits) in issuers.get(digits[:n], ()) for n in (4, 3, 2, 1))


def card(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A payment card: issuer prefix with its length, and Luhn; one number in thirty looks so by chance."""
    digits = _digits(v[start:end])
    cue = _CUE_BEFORE.search(v, max(0, start - 40), start)
    if cue is not None and text(cue.group(1)).lower() in facts.words["number_cues"]:
        return None
    if not luhn_valid(digits) or not _issuer_fits(digits, facts) or len(set(digits)) < 3:
        return None
    return None if _is_inside_number(v, start, end) else (start, end, digits)


def card_cue(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A number that the text calls a card: Luhn or a known issuer is enough."""
    digits = _digits(v[start:end])
    if not 12 <= len(digits) <= 19 or _is_inside_number(v, start, end):
        return None
    return (start, end, digits) if luhn_valid(digits) or _issuer_fits(digits, facts) else None


def iban(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """An account number: the country's length and mod 97 (ISO 13616); the match is cut to length."""
    want = facts.plans["iban_lengths"].get(v[start : start + 2].decode().upper())
    if want is None or (start and v[start - 1] in WORD):
        return None
    stop, kept = start, b""
    while stop < end and len(kept) < want:
        if v[stop] != 0x20:
            kept += v[stop : stop + 1]
        stop += 1
    if len(kept) != want or (stop < len(v) and v[stop] in WORD):
        return None
    rearranged = kept[4:] + kept[:4]
    if int("".join(str(int(chr(c), 36)) for c in rearranged)) % 97 != 1:
        return None
    return start, stop, kept.decode().upper()


def cn_id(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A Chinese resident id: date and GB 11643 check character; 17 digits may be followed by X."""
    stop = end + (end - start == 17 and v[end : end + 1] in (b"X", b"x"))
    value = v[start:stop].decode().upper()
    if len(value) != 18 or not ("1" <= value[0] <= "8" and "1800" <= value[6:10] <= "2099"):
        return None
    if not ("01" <= value[10:12] <= "12" and "01" <= value[12:14] <= "31"):
        return None
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    if "10X98765432"[sum(int(c) * w for c, w in zip(value[:17], weights, strict=True)) % 11] != value[17]:
        return None
    return None if _is_inside_number(v, start, stop) else (start, stop, value)


def cpf(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A Brazilian CPF with both check digits."""
    digits = _digits(v[start:end])
    for n in (9, 10):
        rest = sum(int(c) * w for c, w in zip(digits[:n], range(n + 1, 1, -1), strict=True)) * 10 % 11 % 10
        if rest != int(digits[n]):
            return None
    is_other = len(set(digits)) == 1 or _is_inside_number(v, start, end) or _FILE_END.match(v, end)
    return None if is_other else (start, end, digits)


def ssn(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A dashed US social security number outside the ranges that are never issued."""
    area, group, serial = v[start : start + 3], v[start + 4 : start + 6], v[start + 7 : start + 11]
    if area in (b"000", b"666") or area[:1] == b"9" or group == b"00" or serial == b"0000":
        return None
    return None if _is_inside_number(v, start, end) else (start, end, _digits(v[start:end]))


def id_value(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """An id that its cue names: only its edges are checked."""
    before, after = v[start - 1] if start else 0x20, v[end] if end < len(v) else 0x20
    if before in ALNUM or after in WORD or (after == 0x2E and v[end + 1 : end + 2].isdigit()):
        return None
    return start, end, _digits(v[start:end])


def id_code(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """An id of letters and digits that its cue names: five digits or more (three among capitals), and free edges."""
    value = v[start:end]
    few = 3 if len(value) >= 8 and value.isupper() else 5
    if sum(c in b"0123456789" for c in value) < few or (v[end - 1 : end] != b")" and touches_right(v, end)):
        return None
    return None if v[start - 1 : start].isalnum() and start else (start, end, text(value).upper())


def pin(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A one-time code or PIN: no part of a number, a time or a date, and no year."""
    before, after = v[start - 1] if start else 0x20, v[end] if end < len(v) else 0x20
    if before in ALNUM or before in b".-/" or after in WORD:
        return None
    if after in b".-:/" and v[end + 1 : end + 2].isdigit():
        return None
    return None if end - start == 4 and v[start : start + 2] in (b"19", b"20") else (start, end, "")


#: How numbers of the North American plan and Chinese mobiles are grouped in print.
_NANP_GROUPS, _CN_GROUPS = ((3, 3, 4), (1, 3, 3, 4)), ((11,), (3, 4, 4))
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def btc(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A base58check address: 25 bytes whose last four are a double SHA-256 (Bitcoin Core, base58.cpp)."""
    value = v[start:end].decode()
    number = 0
    for char in value:
        number = number * 58 + _BASE58.index(char)
    if number >= 1 << 200 or touches_right(v, end):
        return None
    whole = number.to_bytes(25, "big")
    check = hashlib.sha256(hashlib.sha256(whole[:21]).digest()).digest()[:4]
    return (start, end, value) if check == whole[21:] else None


def plate(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A number plate behind its cue: letters and digits mixed."""
    value = v[start:end]
    if not any(c in b"0123456789" for c in value) or (end < len(v) and v[end] in WORD):
        return None
    return start, end, text(value)


def phone_international(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A number in international form: calling code and national length (ITU-T E.164)."""
    # The match may run into what follows; the longest cut whose length fits the plan is taken.
    stop = end
    while stop - start >= 8:
        digits = _digits(v[start:stop].replace(b"(0)", b"")).removeprefix("00")
        if _plan_fits(digits, facts):
            break
        gaps = [gap.start() for gap in _GAP.finditer(v, start, stop)]
        if not gaps:
            return None
        stop = gaps[-1]
    else:
        return None
    stop = _extension_end(v, stop)
    after = v[stop] if stop < len(v) else 0x20
    if after in WORD or (after == 0x2E and v[stop + 1 : stop + 2].isdigit()):
        return None
    return start, stop, "+" + digits


def _plan_fits(digits: str, facts: Facts) -> bool:
    for n in (1, 2):
        plan = facts.plans["calling_codes"].get(digits[:n])
        if plan is not None:
            national = digits[n:]
            # The North American plan has no area code that begins with 0 or 1.
            return bool(plan[0] <= len(national) <= plan[1]) and (digits[0] != "1" or national[0] in "23456789")
    prefixes = facts.plans["calling_prefixes"]["two_digit_prefixes"]
    return digits[:2] in prefixes and 8 <= len(digits) <= 15


def phone_national(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A grouped number whose grouping is one country's habit."""
    value = v[start:end]
    if value.count(b"(") != value.count(b")"):
        start += value.count(b"(") > value.count(b")") and value[:1] == b"("
    digits = _digits(v[start:end])
    end = _extension_end(v, end)
    if _is_inside_number(v, start, end) or (end < len(v) and v[end : end + 1] in (b"/", b"%")):
        return None
    return start, end, _canonical(value, digits)


def phone_trunk(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """A national number with trunk prefix 0 in groups; dates and columns of numbers are kept."""
    value = v[start:end].rstrip(b" -./(")
    if value.endswith(b")") and value.count(b")") > value.count(b"("):
        value = value[:-1]
    end = start + len(value)
    digits = _digits(value)
    # A bracket is proof enough for the extension of a house: (030) 1234-5678/90.
    if not 9 <= len(digits) <= 12 + (b"(" in value) or _DATE.match(value) or _is_inside_number(v, start, end):
        return None
    groups = re.findall(rb"[0-9]+", value)
    if not 2 <= len(groups) <= 5 or _NEXT_GROUP.match(v, end):
        return None
    # Pairs are the French habit; a longer row of pairs is a table.
    if max(map(len, groups)) < 3 and (len(groups) != 5 or _PREVIOUS_GROUP.search(v, max(0, start - 4), start)):
        return None
    if b":" in v[end : end + 1] or (len(groups) == 2 and len(groups[0]) < 3 and b"(" not in value):
        return None
    return start, end, digits


def cn_mobile(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Eleven digits of a Chinese mobile number that neither a quantity word nor a table explains."""
    if v[start] != 0x31 or v[start + 1] not in b"3456789" or _is_inside_number(v, start, end):
        return None
    word = _BEFORE_WORD.search(v, max(0, start - 32), start)
    if word and _names_quantity(text(word.group(1)).lower(), facts):
        return None
    near = v[max(0, start - 24) : start].rsplit(b"\n", 1)[-1], v[end : end + 24].split(b"\n", 1)[0]
    if any(_OTHER_RUN.search(side) for side in near) or len(set(v[start:end])) < 3:
        return None
    rest = near[1].lstrip()
    if rest[:3] in (b"ns", b"us ", b"ms ", b"byt", b"row"):
        return None
    return start, end, "+86" + v[start:end].decode()


def _names_quantity(word: str, facts: Facts) -> bool:
    stem, _, last = word.rpartition("_")
    # "no" alone is a word of several languages; "order_no" is a field.
    return last in facts.words["quantity_words"] or bool(stem and last in facts.words["quantity_suffixes"])


def phone_cue(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Seven to fourteen digits that the text calls a phone number."""
    value = v[start:end].rstrip(b" -./(")
    end = start + len(value)
    digits = _digits(value)
    if not 7 <= len(digits) <= 14 or _DATE.match(value) or re.match(rb"[12][0-9]{3}-[01][0-9]-[0-3][0-9]", value):
        return None
    if _STATUSES.issuperset(re.findall(rb"[0-9]+", value)):
        return None
    before, after = v[start - 1] if start else 0x20, v[end] if end < len(v) else 0x20
    if before in ALNUM or after in WORD or before == 0x2E:
        return None
    if before == 0x2B:
        return start - 1, end, "+" + digits
    return start, end, _canonical(value, digits)


def _canonical(value: bytes, digits: str) -> str:
    """A number that was written without its plus sign, in international form where its grouping tells it."""
    lengths = tuple(len(group) for group in re.findall(rb"[0-9]+", value))
    if digits.startswith("00") and len(digits) >= 10:
        return "+" + digits[2:]
    if lengths in _NANP_GROUPS and digits[-10] in "23456789" and digits[-7] in "23456789":
        return "+1" + digits[-10:]
    if lengths in _CN_GROUPS and digits[0] == "1" and digits[1] in "3456789":
        return "+86" + digits
    return digits
