"""Sentences where no order over all traffic is shown: why, and what stands in its place.

Belongs here: one function a state of the headline table that withholds the order. Does not belong
here: the order itself (``words.py``) and groups that can be ordered apart (``grouped.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import format as fmt
from evalpipe.report.format import unit_of
from evalpipe.report.model import Evidence, Phrase, Run
from evalpipe.report.naming import named, quoted, sentence
from evalpipe.report.phrases import reasons
from evalpipe.report.records import ALL, Estimate

Withheld = tuple[Phrase, tuple[Phrase, ...]]


def no_comparison(ev: Evidence) -> Withheld | None:
    """Fewer than two versions have a number."""
    if len(ev.headline) >= 2:
        return None
    rows = [e for e in ev.estimates if e.metric == ev.headline_metric and e.slice == ALL]
    if not rows:
        why = "no session in this window has a version and an outcome"
    elif len(rows) == 1:
        why = "only one version has sessions in this window"
    else:
        why = _common_reason(ev, rows)
    return (Run(f"No comparison: {why}"),), ((Run("No order between versions is shown for this window."),),)


def unranked(ev: Evidence) -> Withheld | None:
    """Numbers exist, and no rank set does."""
    if ev.leading:
        return None
    own = ev.basis is not None and ev.basis.population == "own_share"
    codes = ("own_traffic",) if own else tuple(dict.fromkeys(code for e in ev.headline for code in e.reasons))
    why = reasons(codes) or "no rank set exists"
    below = "The numbers are shown, and no order may be read from them."
    return (Run(f"No comparison: {why}"),), ((Run(below),),)


def _common_reason(ev: Evidence, rows: Sequence[Estimate]) -> str:
    missing = [e for e in rows if not e.is_shown]
    small = [e for e in missing if e.n_sessions < ev.min_sessions]
    if small and len(small) >= len(rows) - 1:
        return f"{len(small)} of {len(rows)} versions have fewer than {ev.min_sessions} sessions"
    codes = tuple(dict.fromkeys(code for e in missing for code in e.reasons))
    return reasons(codes) or "no estimate could be made"


def suspect(ev: Evidence) -> Withheld | None:
    """A design check failed, or what the numbers rest on is in doubt."""
    leaders = set(ev.leading) or {row.version for row in ev.headline}
    bad = [row for row in ev.headline if row.version in leaders and row.status == "suspect"]
    if not bad:
        return None
    codes = tuple(dict.fromkeys(code for row in bad for code in row.reasons))
    failed = [check for check in ev.health.checks or () if check.status == "suspect" and check.check in codes]
    if failed:
        titles = list(dict.fromkeys(check.title for check in failed))
        why = f"the check {quoted(titles)} failed" if len(titles) == 1 else f"the checks {quoted(titles)} failed"
        detail = " ".join(sentence(check.detail) for check in failed[:2])
        below = f"{detail} The numbers are shown, and no order may be read from them."
    else:
        why = reasons(codes) or "a design check failed"
        below = "The numbers are shown, and no order may be read from them."
    return (Run(f"Not safe to compare: {why}"),), ((Run(below),),)


def low_support(ev: Evidence) -> Withheld | None:
    """Numbers exist on too small a part of the traffic."""
    shares = [e.support_share for e in ev.headline if e.support_share is not None]
    if not shares or min(shares) >= ev.min_support:
        return None
    below = (
        f"Only {fmt.percent(min(shares))} of the traffic lies in strata where every version was seen; "
        f"{fmt.percent(ev.min_support, 0)} are needed to rank them."
    )
    return (Run(f"Too little common ground to rank the {len(ev.headline)} versions"),), ((Run(below),),)


def alike(ev: Evidence) -> Withheld | None:
    """Every outcome is the same, so nothing shows how far a number could move."""
    if not ev.headline or not all("no_variation" in row.reasons for row in ev.headline):
        return None
    metric, unit = BY_NAME[ev.headline_metric], unit_of(ev.headline_metric)
    rows = [row for row in ev.headline if row.raw_rate is not None]
    total = fmt.plural(sum(row.n_sessions for row in ev.headline), "session")
    values = {fmt.level_value(row.raw_rate, unit) for row in rows if row.raw_rate is not None}
    title = metric.title.lower()
    if len(values) == 1:
        what = f"{title} is {values.pop()} in all {total} of the {len(ev.headline)} versions"
    else:
        what = f"{title} never varies within a version, over {total}"
    why = "Outcomes that are all alike have no standard error, so no difference has an interval, and no order is shown."
    parts: list[Run] = [Run("Rates with their Wilson bounds, sessions taken as independent: ")]
    for n, row in enumerate(rows):
        text = fmt.level(row.raw_rate, row.theta_lo, row.theta_hi, unit)
        users = fmt.plural(row.n_users, "user")
        parts += [
            Run("; ") if n else Run(""), *named(ev, (row.version,)),
            Run(f" {text} ({fmt.plural(row.n_sessions, 'session')}, {users})"),
        ]  # fmt: skip
    bounds = (*parts, Run(".")) if metric.is_rate and rows else ()
    return (Run(f"No comparison: {what}"),), ((Run(why),), bounds)
