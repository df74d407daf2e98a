"""Layer 2: field policy, rules, pseudonyms, and the check that nothing leaks.

Belongs here: the way from ``raw`` frames to ``masked`` frames. Does not belong here: reading logs,
writing slices, signals. Rules are data (``data/masking``); code holds validators and the engine.
"""

from evalpipe.masking import ner
from evalpipe.masking.canaries import (
    CANARY_SOURCE,
    CANARY_TENANT,
    Canaries,
    drop_canaries,
    drop_canary_rows,
    plant_canaries,
)
from evalpipe.masking.consent import apply_consent, concerning, with_tokens, without_text
from evalpipe.masking.kernel import MaskedPart, mask_copies, mask_files, mask_part, mask_quarantine, mask_vectors
from evalpipe.masking.keys import MaskingKey, load_or_create
from evalpipe.masking.leak_check import Finding, LeakReport, leak_check
from evalpipe.masking.plan import MaskPlan
from evalpipe.masking.rules import ruleset_digest

__all__ = [
    "CANARY_SOURCE",
    "CANARY_TENANT",
    "Canaries",
    "Finding",
    "LeakReport",
    "MaskPlan",
    "MaskedPart",
    "MaskingKey",
    "apply_consent",
    "concerning",
    "drop_canaries",
    "drop_canary_rows",
    "leak_check",
    "load_or_create",
    "mask_copies",
    "mask_files",
    "mask_part",
    "mask_quarantine",
    "mask_vectors",
    "ner",
    "plant_canaries",
    "ruleset_digest",
    "with_tokens",
    "without_text",
]
