"""Layer 2: field policy, rules, pseudonyms, and the check that nothing leaks.

Belongs here: the way from ``raw`` frames to ``masked`` frames. Does not belong here: reading logs,
writing slices, signals. Rules are data (``data/masking``); code holds validators and the engine.
"""

from evalpipe.masking import ner, tombstones
from evalpipe.masking.canaries import Canaries, drop_canaries, drop_canary_rows, plant_canaries
from evalpipe.masking.canary_rows import CANARY_SOURCE, CANARY_TENANT
from evalpipe.masking.consent import apply_consent, concerning, with_tokens, withdrawn, without_spans, without_text
from evalpipe.masking.contain import Contained, contain
from evalpipe.masking.kernel import MaskedPart, mask_copies, mask_files, mask_part, mask_quarantine, mask_vectors
from evalpipe.masking.keys import MaskingKey, load_or_create
from evalpipe.masking.leak_check import LeakReport, leak_check
from evalpipe.masking.leak_rates import Rates, add_rates, judge_contained, judge_rates
from evalpipe.masking.leak_search import Finding, check_words, overheard
from evalpipe.masking.plan import MaskPlan
from evalpipe.masking.rules import ruleset_digest

__all__ = [
    "CANARY_SOURCE",
    "CANARY_TENANT",
    "Canaries",
    "Contained",
    "Finding",
    "LeakReport",
    "MaskPlan",
    "MaskedPart",
    "MaskingKey",
    "Rates",
    "add_rates",
    "apply_consent",
    "check_words",
    "concerning",
    "contain",
    "drop_canaries",
    "drop_canary_rows",
    "judge_contained",
    "judge_rates",
    "leak_check",
    "load_or_create",
    "mask_copies",
    "mask_files",
    "mask_part",
    "mask_quarantine",
    "mask_vectors",
    "ner",
    "overheard",
    "plant_canaries",
    "ruleset_digest",
    "tombstones",
    "with_tokens",
    "withdrawn",
    "without_spans",
    "without_text",
]
