"""The review loop: which items people see, how their labels become precision, and when a signal is demoted.

Belongs here: the label guide and limits (read from ``data/review``), drawing, reading labelled files,
estimates, drift, the page. Does not belong here: where samples and labels lie (``steps``), detectors
(``signals``), intervals and tests (``inference``).
"""

from evalpipe.review.agreement import agreement
from evalpipe.review.draw import draw
from evalpipe.review.drift import drift
from evalpipe.review.evidence import demoted, last_opinions
from evalpipe.review.files import STYLES, Labelled, check_reviewer, read_files, read_labels, write_items
from evalpipe.review.page import page
from evalpipe.review.pooling import chances, held, pooled
from evalpipe.review.quality import quality
from evalpipe.review.reviewed_drift import REVIEWED
from evalpipe.review.rules import Guide, Limits, guide, limits
from evalpipe.review.units import labelled, named
from evalpipe.review.weights import Proposal, fragment, propose, read_session_labels

__all__ = [
    "REVIEWED",
    "STYLES",
    "Guide",
    "Labelled",
    "Limits",
    "Proposal",
    "agreement",
    "chances",
    "check_reviewer",
    "demoted",
    "draw",
    "drift",
    "fragment",
    "guide",
    "held",
    "labelled",
    "last_opinions",
    "limits",
    "named",
    "page",
    "pooled",
    "propose",
    "quality",
    "read_files",
    "read_labels",
    "read_session_labels",
    "write_items",
]
