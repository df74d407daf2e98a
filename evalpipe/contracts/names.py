"""Names of files as text that every table, terminal and log can hold.

Belongs here: escaping. Does not belong here: paths, or whether a file may be read.

A file system takes any bytes for a name: ones that are not UTF-8, newlines, terminal controls. Such
a name is no valid text in Arrow, and would break a message of one line in two.
"""

from __future__ import annotations

import re
from pathlib import PurePath

# Controls, separators of lines, marks that turn the direction of text, and halves of surrogate
# pairs: Python's stand-in for bytes of a name that are not UTF-8.
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ODD_OR_PERCENT = re.compile(f"%|{_ODD.pattern}")


def printable_name(name: str | PurePath) -> str:
    """The name with everything that is not plain text as percent codes of its bytes.

    A name without such characters stays as it is, percent signs included; in others percent signs
    are escaped too, so that the bytes can be told from the text.
    """
    text = str(name)
    return _ODD_OR_PERCENT.sub(_codes, text) if _ODD.search(text) else text


def _codes(match: re.Match[str]) -> str:
    char = match.group()
    is_byte = "\udc80" <= char <= "\udcff"
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass"))
