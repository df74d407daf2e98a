"""The page that labels a sample: one HTML file that opens offline.

Belongs here: putting a sample into the template. Does not belong here: what is drawn or imported. Texts
come from logs and are hostile: they are data in a JSON block, shown as text only, and a
Content-Security-Policy with the hashes of the page's own script and style forbids everything else, the
network included. The browser keeps labels between visits, never a text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.review.files import read_items
from evalpipe.review.rules import Guide

_TEMPLATES = Path(__file__).with_name("templates")


def page(path: Path, guide: Guide) -> str:
    """The page of a sample.

    Args:
        path: File of ``review sample``; labels that it holds already are kept.
        guide: Labels and their keys.

    Raises:
        EvalpipeError: ``REVIEW_INVALID`` for a file that holds no item.
    """
    items = read_items(path, guide)
    if not items:
        raise EvalpipeError("REVIEW_INVALID", "it holds no item.", where=path.name)
    style, script = (_read(name) for name in ("page.css", "page.js"))
    parts = {
        "STYLE": style,
        "SCRIPT": script,
        "STYLE_HASH": _hash(style),
        "SCRIPT_HASH": _hash(script),
        "DATA": _data(items, guide, path.name),
    }
    out = []
    for index, piece in enumerate(_read("page.html").split("@")):
        # Every second piece is a name; what is put in may hold the sign itself.
        out.append(parts[piece] if index % 2 else piece)
    return "".join(out)


def _data(items: Sequence[Mapping[str, Any]], guide: Guide, name: str) -> str:
    labels = [
        {"name": one.name, "kinds": one.kinds, "key": one.key, "title": one.title, "help": one.help}
        for one in guide.labels
    ]
    ids = hashlib.blake2b("\n".join(item["item_id"] for item in items).encode(), digest_size=8).hexdigest()
    data = {"name": name, "key": ids, "labels": labels, "alone": sorted(guide.alone), "items": list(items)}
    # What could end the block, or begin a comment in it, is spelt out.
    return json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
