"""Hostile texts: how fast each is scanned, or whether it is withheld.

Usage: ``python benchmarks/masking_adversarial.py [BYTES]``. The claim: no text is slower than a thousandth
of a plain copy's speed by more than its length accounts for; what would be is withheld whole.
"""

from __future__ import annotations

import sys
import time

from evalpipe.masking import MaskingKey, MaskPlan
from evalpipe_tests.masking import adversarial

FLOOR_MB_S = 10


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    plan = MaskPlan(MaskingKey.from_bytes(bytes(32)))
    plan.mask_text("compiled before it is timed")
    slow = 0
    for name in adversarial.UNITS:
        rates, withheld = [], ""
        for n_bytes in (size // 4, size):
            text = adversarial.text(name, n_bytes).decode()
            started = time.process_time()
            masked, _ = plan.mask_text(text)
            rates.append(n_bytes / 1e6 / max(time.process_time() - started, 1e-9))
            withheld = masked.strip('"') if masked.strip('"').startswith("<WITHHELD") else ""
        slow += rates[1] < FLOOR_MB_S and not withheld
        # Beside each other they show that a text four times as long is not slower per byte.
        print(f"{name:28s} {rates[0]:8.1f} MB/s, four times as long {rates[1]:8.1f} MB/s   {withheld}")
    print(f"{slow} of {len(adversarial.UNITS)} below {FLOOR_MB_S} MB/s and not withheld")


if __name__ == "__main__":
    main()
