"""One stand-alone drawing of a comparison, for places that show a picture and no page.

Belongs here: an SVG with literal colours, readable on light and dark ground. Does not belong here:
the report's own drawings (``svg/``), which take their colours from the page.
"""

from __future__ import annotations

from html import escape

import polars as pl

from evalpipe.report import format as fmt
from evalpipe.report.svg.scale import around

_ROW, _LEFT, _PLOT, _RIGHT, _TOP = 26, 250, 380, 220, 30
_INK, _BAR, _GRID = "#6b7280", "#3b82c4", "#c5c9d0"


def forest_picture(rows: pl.DataFrame) -> str:
    """Draw estimates with both intervals, one row a version.

    Args:
        rows: ``analysis.net_improvement`` rows of one metric and slice, in the order to draw them.

    Returns:
        SVG text of fixed size.
    """
    unit = fmt.unit_of(rows["metric"][0])
    ends = [*rows["lo_sim"].to_list(), *rows["hi_sim"].to_list(), *rows["estimate"].to_list(), 0.0]
    scale = around([None if value is None else value * unit.scale for value in ends], most_ticks=6)
    height = _TOP + _ROW * rows.height + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _PLOT + _RIGHT}" height="{height}" '
        f'font-family="sans-serif" font-size="13" fill="{_INK}">'
    ]
    for tick in scale.ticks:
        x = _x(scale.x(tick))
        out.append(f'<line x1="{x}" x2="{x}" y1="{_TOP - 6}" y2="{height}" stroke="{_GRID}"/>')
        out.append(f'<text x="{x}" y="{_TOP - 12}" text-anchor="middle" font-size="11">{tick:g}</text>')
    for index, row in enumerate(rows.iter_rows(named=True)):
        y = _TOP + _ROW * index + _ROW // 2
        label = escape(fmt.clean_label(row["version"]))
        out.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{label}</text>')
        text = escape(fmt.estimate(row["estimate"], row["lo"], row["hi"], unit))
        out.append(f'<text x="{_LEFT + _PLOT + 12}" y="{y + 4}">{text}</text>')
        for low, high, width in (("lo_sim", "hi_sim", 1.5), ("lo", "hi", 6)):
            if row[low] is not None:
                a, b = (_x(scale.x(row[end] * unit.scale)) for end in (low, high))
                out.append(f'<line x1="{a}" x2="{b}" y1="{y}" y2="{y}" stroke="{_BAR}" stroke-width="{width}"/>')
        if row["estimate"] is not None:
            x = _x(scale.x(row["estimate"] * unit.scale))
            out.append(f'<circle cx="{x}" cy="{y}" r="4.5" fill="{_INK}"/>')
    return "".join([*out, "</svg>"])


def _x(position: float) -> str:
    return f"{_LEFT + _PLOT * position / 100:.1f}"
