"""From a rule to a function: what is done where an anchor of the rule ends.

Belongs here: matching a value at, behind or around a hit, edges, windows. Does not belong here: which
hits there are (``locate``), what becomes of spans (``engine``). Every window is bounded in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.rules import Rule, fixed_width
from evalpipe.masking.validators import HIT, SPAN
from evalpipe.masking.validators.base import Facts, Found, touches_left, touches_right

#: From a view and the end of a hit to what is found there.
Check = Callable[[bytes, int], list[Found] | None]


def check_of(rule: Rule, anchor: bytes, facts: Facts) -> Check:
    """The check of one rule at hits of one anchor.

    Args:
        rule: The rule.
        anchor: The anchor's expression; its width tells where a ``start`` value begins.
        facts: Word lists and number plans.

    Raises:
        EvalpipeError: ``CRITERIA_INVALID`` if no validator has the rule's name for it.
    """
    if rule.at == "hit":
        return _hit_check(rule, facts)
    judge = SPAN.get(rule.validator)
    if judge is None:
        raise EvalpipeError("CRITERIA_INVALID", f"no validator is called {rule.validator}.", where=rule.id)
    left, right = rule.edge != "none", rule.edge == "both"
    if rule.at == "run":
        low, high = rule.run
        run = re.compile(rb"[0-9]{0,%d}" % (high + 1))

        def on_run(v: bytes, end: int) -> list[Found] | None:
            start = end - 9
            match = run.match(v, start)
            stop = match.end() if match else start
            if not low <= stop - start <= high:
                return None
            found = judge(v, start, stop, facts)
            return [found] if found else None

        return on_run
    value = re.compile(rule.value.encode())
    group, ahead = min(value.groups, 1), rule.ahead
    if rule.at == "around":
        return _around_check(rule, value, facts)
    width = fixed_width(anchor.decode()) if rule.at == "start" else 0
    edge_matters = left and rule.at == "start"

    def on_value(v: bytes, end: int) -> list[Found] | None:
        begin = end - width
        if edge_matters and touches_left(v, begin):
            return None
        match = value.match(v, begin, begin + width + ahead)
        if match is None:
            return None
        start, stop = match.span(group)
        if right and touches_right(v, stop):
            return None
        found = judge(v, start, stop, facts)
        return [found] if found else None

    return on_value


def _around_check(rule: Rule, value: re.Pattern[bytes], facts: Facts) -> Check:
    judge, back, ahead, right = SPAN[rule.validator], rule.back, rule.ahead, rule.edge == "both"

    def on_around(v: bytes, end: int) -> list[Found] | None:
        # A window that begins inside a number would cut it, so matches that start before the
        # window's first byte are seen because the window begins early enough for the whole value.
        for match in value.finditer(v, max(0, end - back), min(len(v), end + ahead)):
            if match.start() < end <= match.end():
                if right and (touches_right(v, match.end()) or touches_left(v, match.start())):
                    return None
                found = judge(v, match.start(), match.end(), facts)
                return [found] if found else None
        return None

    return on_around


def _hit_check(rule: Rule, facts: Facts) -> Check:
    look = HIT.get(rule.validator)
    if look is None:
        raise EvalpipeError("CRITERIA_INVALID", f"no validator is called {rule.validator}.", where=rule.id)
    return lambda v, end: look(v, end, facts)
