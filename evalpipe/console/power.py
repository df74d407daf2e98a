"""``evalpipe power``: how many sessions a comparison needs before it starts, or what a number of them can see.

Belongs here: options, the answers side by side, and how they are printed. Does not belong here: the
formulas (``inference/power.py``), or what a window that was scored could see (``mde`` beside its numbers).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from scipy import optimize

from evalpipe.console import show
from evalpipe.console.entry import handled
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.inference import (
    nightly_error,
    planned_design_effect,
    sessions_per_arm,
    sessions_per_arm_proportions,
    sessions_vs_mean,
    smallest_effect_vs_mean,
)
from evalpipe.inference.gates import GATE_ALPHA

#: Effect, as a share, below which more sessions would be needed than anybody has.
_SMALLEST = 1e-6


@dataclass(frozen=True, slots=True)
class Need:
    """Sessions of each version, rounded up, and what a given number of them shows.

    Attributes:
        design_effect: What users who come back cost: so many times the sessions of users who come once.
        difference: Sessions a version to tell two versions apart by the effect.
        margin, margin_nightly: Sessions a version to pass a gate of that margin if both are alike: asked once, and
            asked every night until it passes.
        versus_mean: Sessions a version to tell one whose rate changes so from the average of all of them, which
            changes with it.
        smallest_difference, smallest_versus_mean: Changes of the rate, in the direction of the effect, that the given
            sessions show; None without any, or where no change of a share is large enough.
    """

    design_effect: float
    difference: int
    margin: int
    margin_nightly: int
    versus_mean: int
    smallest_difference: float | None
    smallest_versus_mean: float | None


def need(
    rate: float,
    effect: float,
    versions: int,
    design_effect: float,
    *,
    sessions: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Need:
    """What a comparison of a rate needs.

    Args:
        rate: Rate that is expected, and effect: change of it that is to be seen, as shares.
        versions: Versions that share the traffic. design_effect: as in ``analysis.net_improvement.deff``.
        sessions: Sessions a version that there will be.
        alpha: Two-sided level of a comparison; a gate has its own. power: chance to see the effect.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for a rate, effect or level that no study can have.
    """
    for name, value, low, high in (
        ("--rate", rate, 0.0, 1.0),
        ("--rate with --effect", rate + effect, 0.0, 1.0),
        ("--alpha", alpha, 0.0, 0.5),
        ("--power", power, 0.5, 1.0),
        ("--design-effect", design_effect, 0.0, math.inf),
    ):
        if not low < value < high:
            raise EvalpipeError(
                "BAD_ARGUMENT", "no study has such a value", where=name, fix=f"Give one between {low:g} and {high:g}."
            )
    if abs(effect) < _SMALLEST:
        what = "no number of sessions that there are shows so small an effect"
        raise EvalpipeError("BAD_ARGUMENT", what, where="--effect", fix="Give a share, such as 0.03.")
    variance = rate * (1.0 - rate)
    # One version of K moves the average of all by a Kth of its own change.
    of_net = 1.0 - 1.0 / versions
    at_night = 2.0 * design_effect * variance / nightly_error(abs(effect), alpha=GATE_ALPHA, power=power) ** 2
    wanted = (
        sessions_per_arm_proportions(rate, rate + effect, design_effect, alpha, power),
        # A gate is decided on one side.
        sessions_per_arm(effect, variance, design_effect, 2.0 * GATE_ALPHA, power),
        at_night,
        sessions_vs_mean(effect * of_net, versions, variance, design_effect, alpha, power),
    )
    difference, margin, margin_nightly, versus_mean = (math.ceil(n) for n in wanted)
    return Need(
        design_effect=design_effect,
        difference=difference,
        margin=margin,
        margin_nightly=margin_nightly,
        versus_mean=versus_mean,
        smallest_difference=None
        if sessions is None
        else _smallest_difference(rate, effect, design_effect, sessions, alpha, power),
        smallest_versus_mean=None
        if sessions is None
        else smallest_effect_vs_mean(sessions, versions, variance, design_effect, alpha, power) / of_net,
    )


def _smallest_difference(
    rate: float, effect: float, design_effect: float, sessions: int, alpha: float, power: float
) -> float | None:
    """The change of which :func:`sessions_per_arm_proportions` says that these sessions show it."""
    sign = math.copysign(1.0, effect)
    most = (1.0 - rate if effect > 0 else rate) - _SMALLEST

    def over(size: float) -> float:
        return sessions_per_arm_proportions(rate, rate + sign * size, design_effect, alpha, power) - sessions

    return float(optimize.brentq(over, _SMALLEST, most)) if over(most) < 0 < over(_SMALLEST) else None


def power(
    rate: Annotated[float, typer.Option("--rate", help="Rate that is expected, such as 0.6.")],
    effect: Annotated[float, typer.Option("--effect", help="Change of it that is to be seen, such as 0.03.")],
    versions: Annotated[int, typer.Option("--versions", min=2, help="Versions that are compared.")] = 2,
    sessions: Annotated[
        int | None, typer.Option("--sessions", min=2, help="Sessions a version that there will be.")
    ] = None,
    design_effect: Annotated[
        float | None,
        typer.Option(
            "--design-effect",
            help="That of an earlier window, analysis.net_improvement.deff (docs/methods/gates.md).",
        ),
    ] = None,
    user_sessions: Annotated[
        float, typer.Option("--user-sessions", min=1, help="Without one: mean sessions of a user.")
    ] = 1.0,
    user_cv: Annotated[
        float, typer.Option("--user-cv", min=0, help="... their standard deviation over that mean.")
    ] = 0.0,
    icc: Annotated[
        float, typer.Option("--icc", min=0, max=1, help="... how alike outcomes of one user are, 0 to 1.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided level of the comparisons.")] = 0.05,
    chance: Annotated[float, typer.Option("--power", help="Chance to see the effect.")] = 0.8,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """How many sessions a comparison needs.

    Or what a number of them can see. Reads no home.
    """
    with handled(as_json=as_json, debug=debug):
        cost = planned_design_effect(user_sessions, user_cv, icc) if design_effect is None else design_effect
        found = need(rate, effect, versions, cost, sessions=sessions, alpha=alpha, power=chance)
        if as_json:
            print(json.dumps(asdict(found)))
            return
        show.line(f"To see {100 * effect:+.3g} points at a rate of {100 * rate:.3g} % in {chance:.0%} of studies:")
        show.line(f"  two versions apart            {found.difference:>12,} sessions a version, two-sided {alpha:g}")
        show.line(f"  one against the mean of {versions:<4}  {found.versus_mean:>12,} if only its own rate changes")
        show.line(f"  a gate of that margin passes  {found.margin:>12,} if both are alike and it is asked once")
        show.line(f"  ... asked every night         {found.margin_nightly:>12,} by the night on which it should pass")
        show.line(f"Design effect of users who come back: {found.design_effect:.2f}")
        if sessions is not None:
            between, mean = (
                "no change" if size is None else f"{100 * size:.3g} points"
                for size in (found.smallest_difference, found.smallest_versus_mean)
            )
            show.line(f"{sessions:,} sessions a version show {between} between two, {mean} against the mean.")
