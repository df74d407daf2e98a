"""The versions that slices are made under: of each step's logic, of the rules of masking, of criteria.

Belongs here: what makes a committed slice stale although its input is the same. Does not belong here: the
receipts of that input (``steps/context``, ``store/plan``).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from evalpipe import masking
from evalpipe.criteria.model import Criteria
from evalpipe.locations import data_dir
from evalpipe.masking import MaskPlan
from evalpipe.masking.keys import MaskingKey
from evalpipe.store.manifest import digest_of

#: Version of each step's logic. Raise it when the same input would give other rows; criteria, rule
#: sets, patterns and readers have digests of their own and need no raise here.
LOGIC: dict[str, str] = {
    "raw": "1",
    "masked": "3",
    "signals": "7",
    "outcomes": "9",
    "analysis": "18",
    "scorecard": "1",
}


def code_versions(criteria: Criteria, prices: str, ner: str = "") -> dict[str, str]:
    """Code version of each step: its logic and the part of the criteria that it reads.

    Args:
        criteria: Criteria in force.
        prices: Digest of the price table.
        ner: Name of the model that looks for names, if one does.
    """
    model = f"+{masking.ner.code_version(ner)}" if ner else ""
    return {
        "raw": LOGIC["raw"],
        "masked": f"{LOGIC['masked']}+{_masking_digest(criteria)[:8]}.{criteria.sub_hash('masking')[:8]}{model}",
        "signals": f"{LOGIC['signals']}+{criteria.sub_hash('extraction')}",
        "outcomes": f"{LOGIC['outcomes']}+{criteria.sub_hash('extraction')}.{criteria.sub_hash('outcomes')}.{prices}",
        "analysis": f"{LOGIC['analysis']}+{criteria.measurement}",
        "scorecard": f"{LOGIC['scorecard']}+{criteria.measurement}",
    }


def ruleset_folder(criteria: Criteria) -> Path:
    """Folder of the masking rule set that criteria put in force."""
    return data_dir() / "masking" / criteria.masking.ruleset


def mask_plan(criteria: Criteria, key: MaskingKey, ner: str = "") -> MaskPlan:
    """What text is masked with under criteria.

    Args:
        criteria: Criteria in force.
        key: The masking key.
        ner: Name of a model that looks for names behind the rules; empty for none.
    """
    folder, limit = ruleset_folder(criteria), criteria.masking.withhold_over_bytes
    return MaskPlan(key=key, ruleset=folder, withhold_over_bytes=limit, ner=ner)


def _masking_digest(criteria: Criteria) -> str:
    return digest_of([masking.ruleset_digest(ruleset_folder(criteria)), _validators_digest()])


@cache
def _validators_digest() -> str:
    """Digest of the code that accepts or rejects what a rule found.

    Read from the source, since nothing is worse here than a validator that was mended while the days
    that it had let through count as fresh. A changed comment masks days anew, in vain and seldom.
    """
    folder = Path(masking.validators.__file__).parent
    return digest_of({path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.py"))})
