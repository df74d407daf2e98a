"""Marks shared by all drawings: candidate diamond, baseline square, other versions as dots."""

from __future__ import annotations

CLASSES = {"candidate": "c", "baseline": "b"}


def mark_class(role: str) -> str:
    """CSS class of a version's marks."""
    return CLASSES.get(role, "o")


def marker(x: str, y: str, role: str, radius: float) -> str:
    """The point of an estimate at ``x`` (percent) and ``y`` (pixels or percent)."""
    if role == "candidate":
        d = radius * 1.45
        return nested(x, y, f"M0 {-d:g}L{d:g} 0 0 {d:g} {-d:g} 0z")
    if role == "baseline":
        r = radius
        return nested(x, y, f"M{-r:g} {-r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z")
    return f'<circle class="p" cx="{x}" cy="{y}" r="{radius:g}"/>'


def nested(x: str, y: str, path: str) -> str:
    """A path around the point ``x``, ``y``: the nested drawing keeps its form when the outer one stretches."""
    return f'<svg x="{x}" y="{y}" overflow="visible"><path class="p" d="{path}"/></svg>'


def bar(x1: str, x2: str, y: str, kind: str) -> str:
    """An interval line of a kind: ``k`` thick, ``n`` thin."""
    return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y}" y2="{y}"/>'
