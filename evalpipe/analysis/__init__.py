"""Layer 4: outcomes and criteria become estimates, pairs, checks, gates and scorecards.

Start at :func:`score`. Everything that this package returns is a frame of a contract in
``contracts/tables/analysis.py``; the maths is in ``inference``.
"""

from evalpipe.analysis.ablation import ablation
from evalpipe.analysis.bridge import bridged
from evalpipe.analysis.coherence import Coherence, coherence
from evalpipe.analysis.concordance import concordance
from evalpipe.analysis.corrected import corrected
from evalpipe.analysis.corrections import corrections
from evalpipe.analysis.gates import DECIDED, decide_gates
from evalpipe.analysis.labels import version_labels
from evalpipe.analysis.measurement import require_one_measurement
from evalpipe.analysis.recovery import recovery_curves
from evalpipe.analysis.score import score
from evalpipe.analysis.scorecard import require_versions, scorecard
from evalpipe.analysis.stamp import Stamp
from evalpipe.analysis.standard import frozen_weights
from evalpipe.analysis.windows import window_bounds

__all__ = [
    "DECIDED",
    "Coherence",
    "Stamp",
    "ablation",
    "bridged",
    "coherence",
    "concordance",
    "corrected",
    "corrections",
    "decide_gates",
    "frozen_weights",
    "recovery_curves",
    "require_one_measurement",
    "require_versions",
    "score",
    "scorecard",
    "version_labels",
    "window_bounds",
]
