"""Who starts which session when, who serves it, and how it goes: all draws but the words.

Belongs here: vectorised draws, one stream a day, so that a day's plan does not depend on how many days
follow it. Does not belong here: texts, log formats, sums over the plan (``truth.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from evalpipe.simulate.categories import CODE, MAX_ERRORS, MEMBERS, mean_errors, probabilities
from evalpipe.simulate.spec import Spec

CLAUDE, PLATFORM = 0, 1
EPOCHS = ("all", "e1", "e2")
_WEEK = (1.0, 1.05, 1.05, 1.0, 0.9, 0.45, 0.4)  # Monday to Sunday
_TAKE_UP_S = 3 * 3600  # a session is taken up again at the earliest so long after it began


def stream(spec: Spec, *key: int) -> np.random.Generator:
    """An independent random stream of the spec's seed."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(spec.seed, spawn_key=key)))


@dataclass(frozen=True, slots=True)
class Users:
    """Users, one entry each.

    Attributes:
        activity: (U,) probability that a session is theirs.
        channel: (U,) where their sessions are logged, CLAUDE or PLATFORM.
        language: (U,) index into the spec's languages, sorted by name.
        task: (U,) main kind of task.
        positive_shift, correction_shift: (U,) random effects, bounded, with mean 0 over users.
        tenant: (U,) tenant on the platform.
        name: (U,) position in the list of invented names.
        sticky: (U, 3) draw in [0, 1) that fixes the version per routing epoch.
    """

    activity: NDArray[np.float64]
    channel: NDArray[np.int8]
    language: NDArray[np.int8]
    task: NDArray[np.int8]
    positive_shift: NDArray[np.float64]
    correction_shift: NDArray[np.float64]
    tenant: NDArray[np.int8]
    name: NDArray[np.int64]
    sticky: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plan:
    """Sessions, one entry each, ordered by start.

    Attributes:
        day, number: Index of the UTC day of the start, and position in that day.
        start_s: Seconds after midnight.
        user, channel, scenario, epoch, version: Codes; epoch indexes EPOCHS.
        second_version: Version that answers from the middle on, or -1.
        probability: Probability with which the version was chosen.
        course: Index into COURSES.
        errors, repaired: Failed calls, and how many of them are mended without the user.
        workspace: Number of the folder; two sessions of a user share one only if the later continues the
            earlier.
        could_continue: Whether the user starts another session late enough on the same day.
        continued: Whether this session was left open and taken up by that one.
        has_user: Whether the log names the user.
        late: Whether it is written to the late folder.
        ident: (N, 16) bytes of identity.
    """

    day: NDArray[np.int32]
    number: NDArray[np.int32]
    start_s: NDArray[np.float64]
    user: NDArray[np.int32]
    channel: NDArray[np.int8]
    scenario: NDArray[np.int8]
    epoch: NDArray[np.int8]
    version: NDArray[np.int16]
    second_version: NDArray[np.int16]
    probability: NDArray[np.float64]
    course: NDArray[np.int8]
    errors: NDArray[np.int8]
    repaired: NDArray[np.int8]
    workspace: NDArray[np.int32]
    could_continue: NDArray[np.bool_]
    continued: NDArray[np.bool_]
    has_user: NDArray[np.bool_]
    late: NDArray[np.bool_]
    ident: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.day)


def make_users(spec: Spec) -> Users:
    """Draw the users of a spec."""
    world, n = spec.world, spec.n_users
    rng = stream(spec, 0)
    activity = np.arange(1, n + 1, dtype=np.float64) ** -world.people.activity
    activity = np.minimum(activity / activity.sum(), max(world.people.activity_cap, 1.0 / n))
    bound = np.sqrt(3.0)  # a uniform on (-sqrt 3, sqrt 3) has variance 1 and no tail to clip
    draws = rng.random((n, 9))
    return Users(
        activity=activity / activity.sum(),
        channel=(draws[:, 0] >= world.people.claude_share).astype(np.int8),
        language=_pick(draws[:, 1], np.array([spec.languages[name] for name in sorted(spec.languages)])),
        task=_pick(draws[:, 2], np.array([s.share for s in world.scenarios])),
        positive_shift=spec.user_spread * bound * (2 * draws[:, 3] - 1),
        correction_shift=world.people.correction_spread * bound * (2 * draws[:, 4] - 1),
        tenant=(draws[:, 5] * len(world.rates.declared)).astype(np.int8),
        name=rng.permutation(n),
        sticky=draws[:, 6:9],
    )


def _pick(draw: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.int8]:
    edges = np.cumsum(weights / weights.sum())[:-1]
    return np.searchsorted(edges, draw, side="right").astype(np.int8)


def shares(spec: Spec) -> NDArray[np.float64]:
    """(3, S, K) probability of each version by routing epoch and scenario.

    Claude Code logs name no epoch, so their shares never change ("all" is e1): stratifying by scenario
    alone is then enough for them. Every version keeps a floor in every stratum (positivity).
    """
    world = spec.world
    routing = world.routing
    pull = np.array([v.pull for v in spec.versions])
    difficulty = np.array([s.difficulty for s in world.scenarios])
    strength = 0.0 if spec.routing == "sticky" else spec.confounding * routing.strength
    first = np.exp(strength * difficulty[:, None] * pull[None, :])
    second = first * np.array([v.ramp for v in spec.versions])
    table = np.stack([first, first, second])
    table /= table.sum(axis=2, keepdims=True)
    floor = min(routing.floor, 0.5 / len(spec.versions))
    return floor + (1.0 - floor * len(spec.versions)) * table


def make_plan(spec: Spec, users: Users) -> Plan:
    """Draw all sessions of a spec."""
    days = [_plan_day(spec, users, day, n) for day, n in enumerate(sessions_per_day(spec))]
    return Plan(**{f.name: np.concatenate([getattr(day, f.name) for day in days]) for f in fields(Plan)})


def sessions_per_day(spec: Spec) -> list[int]:
    """Number of sessions on each day: a weekly rhythm, the same for the first days of a longer run."""
    weekdays = [(spec.start + timedelta(days=d)).weekday() for d in range(spec.days)]
    edges = np.concatenate([[0.0], np.cumsum([_WEEK[w] for w in weekdays])])
    return [int(n) for n in np.diff(np.round(edges * spec.sessions / edges[-1]))]


def _plan_day(spec: Spec, users: Users, day: int, n: int) -> Plan:
    world, rates = spec.world, spec.world.rates
    rng = stream(spec, 1, day)
    draws = rng.random((n, 11))
    hour = np.where(draws[:, 0] < 0.80, 14.0 + 3.4 * rng.standard_normal(n), 24.0 * draws[:, 1])
    start = np.sort(np.clip(hour, 0.0, 23.999) * 3600.0)
    user = np.searchsorted(np.cumsum(users.activity)[:-1], draws[:, 2], side="right").astype(np.int32)
    mixed = _pick(draws[:, 4], np.array([s.share for s in world.scenarios]))
    scenario = np.where(draws[:, 3] < world.people.main_task, users.task[user], mixed).astype(np.int8)
    channel = users.channel[user]
    is_second = day >= spec.epoch_day
    epoch = np.where(channel == CLAUDE, 0, 2 if is_second else 1).astype(np.int8)

    share = shares(spec)[epoch, scenario]
    draw = users.sticky[user, epoch] if spec.routing == "sticky" else draws[:, 5]
    version = np.minimum((np.cumsum(share, axis=1) <= draw[:, None]).sum(axis=1), share.shape[1] - 1).astype(np.int16)
    step = 1 + (draws[:, 7] * (len(spec.versions) - 1)).astype(np.int16)
    second = np.where(draws[:, 6] < rates.switches_model, (version + step) % len(spec.versions), -1).astype(np.int16)

    shift = users.positive_shift[user] + (world.routing.drift if is_second else 0.0)
    course, errors, repaired = _course(spec, version, scenario, shift, users.correction_shift[user], rng)
    sequence = _sequence(user)
    could = _could_continue(user, start)
    open_end = np.isin(course, [CODE[name] for name in MEMBERS["unresolved"]])
    continued = could & open_end & (draws[:, 8] < rates.continued)
    return Plan(
        day=np.full(n, day, dtype=np.int32),
        number=np.arange(n, dtype=np.int32),
        start_s=start,
        user=user,
        channel=channel,
        scenario=scenario,
        epoch=epoch,
        version=version,
        second_version=second,
        probability=share[np.arange(n), version],
        course=course,
        errors=errors,
        repaired=repaired,
        workspace=_workspaces(user, sequence, continued, day),
        could_continue=could,
        continued=continued,
        has_user=draws[:, 9] >= rates.no_user,
        late=(draws[:, 10] < rates.late) & spec.late,
        ident=np.frombuffer(rng.bytes(16 * n), dtype=np.uint8).reshape(n, 16),
    )


def _course(
    spec: Spec,
    version: NDArray[np.int16],
    scenario: NDArray[np.int8],
    positive_shift: NDArray[np.float64],
    correction_shift: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]:
    """Course, failed calls and repaired calls of each session."""
    n = len(version)
    draw, fails, mends = rng.random(n), rng.random((n, MAX_ERRORS)), rng.random((n, MAX_ERRORS))
    course, errors, repaired = (np.zeros(n, dtype=np.int8) for _ in range(3))
    for code, planted in enumerate(spec.versions):
        mine = np.flatnonzero(version == code)
        tasks = spec.world.scenarios, scenario[mine]
        table, _ = probabilities(planted, *tasks, positive_shift[mine], correction_shift[mine])
        course[mine] = (np.cumsum(table, axis=1)[:, :-1] <= draw[mine, None]).sum(axis=1)
        failed = fails[mine] < (mean_errors(planted, *tasks) / MAX_ERRORS)[:, None]
        errors[mine] = failed.sum(axis=1)
        repaired[mine] = (failed & (mends[mine] < planted.self_repair)).sum(axis=1)
    return course, errors, repaired


def _sequence(user: NDArray[np.int32]) -> NDArray[np.int32]:
    """Position of each session among the same user's sessions of the day (they are ordered by start)."""
    order = np.argsort(user, kind="stable")
    first = np.searchsorted(user[order], user[order], side="left")
    out = np.empty(len(user), dtype=np.int32)
    out[order] = np.arange(len(user)) - first
    return out


def _next_of_user(user: NDArray[np.int32]) -> NDArray[np.int64]:
    """Index of the same user's next session of the day, or -1."""
    order = np.argsort(user, kind="stable")
    out = np.full(len(user), -1, dtype=np.int64)
    is_same = user[order][:-1] == user[order][1:]
    out[order[:-1][is_same]] = order[1:][is_same]
    return out


def _could_continue(user: NDArray[np.int32], start: NDArray[np.float64]) -> NDArray[np.bool_]:
    following = _next_of_user(user)
    gap = np.where(following >= 0, start[following] - start, 0.0)
    return gap >= _TAKE_UP_S


def _workspaces(
    user: NDArray[np.int32], sequence: NDArray[np.int32], continued: NDArray[np.bool_], day: int
) -> NDArray[np.int32]:
    # Three residues of the day keep a folder from coming back within 24 hours by chance, which would
    # read as a continuation that nobody planted.
    out = (sequence * 3 + day % 3).astype(np.int32)
    following = _next_of_user(user)
    for index in np.flatnonzero(continued).tolist():  # in order of start, so that chains carry through
        out[following[index]] = out[index]
    return out
