"""A note where plain rates put versions the other way round than net improvement does.

Belongs here: comparing the two orders. Does not belong here: the headline (``words.py``).
"""

from __future__ import annotations

from evalpipe.report import format as fmt
from evalpipe.report.model import Evidence
from evalpipe.report.naming import difference
from evalpipe.report.records import BETTER

_WHY = "A plain rate also measures which sessions a version was given"


def raw_order_note(ev: Evidence) -> str:
    """A note where the plain rates put versions the other way round than net improvement does."""
    sign = 1 if ev.metric(ev.headline_metric).is_higher_better else -1
    raw = {e.version: sign * e.raw_rate for e in ev.headline if e.raw_rate is not None}
    turned = [
        pair
        for pair in ev.pairs
        if pair.relation == BETTER and pair.version in raw and pair.other in raw and raw[pair.version] < raw[pair.other]
    ]
    if turned:
        worst = max(turned, key=lambda p: (raw[p.other] - raw[p.version], -p.version, -p.other))
        first, second = ev.versions[worst.version].label, ev.versions[worst.other].label
        rest = len(turned) - 1
        more = (
            f" {fmt.plural(rest, 'further pair')} {'is' if rest == 1 else 'are'} turned round likewise." if rest else ""
        )
        return (
            f"The plain rates are upside down here: they put {second} before {first}, while on equal traffic "
            f"{first} is better than {second} by {difference(ev, worst)}. {_WHY}.{more}"
        )
    shift = {e.version: sign * e.estimate for e in ev.headline if e.estimate is not None}
    if len(raw) >= 3 and _rank_correlation(raw, shift) < 0:
        return (
            f"The plain rates run in the opposite order to net improvement. {_WHY}, "
            "so the order of the table is taken from net improvement."
        )
    return ""


def _rank_correlation(a: dict[int, float], b: dict[int, float]) -> int:
    """Concordant minus discordant pairs."""
    keys = sorted(a)
    total = 0
    for n, i in enumerate(keys):
        for j in keys[n + 1 :]:
            product = (a[i] - a[j]) * (b[i] - b[j])
            total += (product > 0) - (product < 0)
    return total
