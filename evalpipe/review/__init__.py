"""The review loop: which items people see, how their labels become precision, and when a signal is demoted.

Belongs here: the label guide and limits (read from ``data/review``), drawing, reading labelled files,
estimates, drift, the page. Does not belong here: where samples and labels lie (``steps``), detectors
(``signals``), intervals and tests (``inference``).
"""

from evalpipe.review.agreement import agreement
from evalpipe.review.draw import draw
from evalpipe.review.drift import drift
from evalpipe.review.evidence import demoted
from evalpipe.review.files import STYLES, Labelled, check_reviewer, read_labels, write_items
from evalpipe.review.page import page
from evalpipe.review.quality import quality
from evalpipe.review.rules import Guide, Limits, guide, limits
from evalpipe.review.units import labelled, named

__all__ = [
    "STYLES",
    "Guide",
    "Labelled",
    "Limits",
    "agreement",
    "check_reviewer",
    "demoted",
    "draw",
    "drift",
    "guide",
    "labelled",
    "limits",
    "named",
    "page",
    "quality",
    "read_labels",
    "write_items",
]
