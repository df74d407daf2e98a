"""What happens in a session, turn by turn, before any log format: messages, calls, results, times.

Belongs here: turning a planned session into turns. Does not belong here: how tools are called and fail
(``calls.py``), or how a format writes it down (``claude_code.py``, ``evalpipe_jsonl.py``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evalpipe.simulate.calls import Call, Toolbox
from evalpipe.simulate.canaries import Canary
from evalpipe.simulate.text import Draw, Phrases, load_words
from evalpipe.simulate.world import Profile, Rates, Scenario

#: Turns of each course after the first request; "follow" stands for one or more follow-up requests.
TURNS: dict[str, tuple[str, ...]] = {
    "accepted": ("follow", "confirm"),
    "accepted_after_correction": ("follow", "correction", "confirm"),
    "accepted_late": ("correction", "follow", "correction", "confirm"),
    "complaint_end": ("follow", "complaint"),
    "complaint_mid": ("complaint", "follow"),
    "correction_end": ("follow", "correction"),
    "correction_mid": ("correction", "follow"),
    "waiting": ("follow",),
    "relapse": ("confirm", "follow", "correction", "complaint"),
    "silent": ("follow",),
}


@dataclass(slots=True)
class Job:
    """One planned session, with codes resolved.

    Attributes:
        session_id: Id as logged.
        start_ms: Milliseconds after midnight of the first day.
        scenario, course: Names of the task and of what becomes of it.
        models: Model, or two where the session switches.
        errors, repaired: Failed calls, and how many are mended.
        cwd: Working folder.
        user_id: User as a platform logs it; None where it names none.
        tenant: Tenant on a platform.
        declared: Scenario as the platform declares it, or None.
        epoch, probability, unit: Assignment as a platform logs it.
        canary: Planted value, or None.
    """

    session_id: str
    start_ms: int
    scenario: Scenario
    course: str
    models: tuple[str, ...]
    errors: int
    repaired: int
    cwd: str
    user_id: str | None
    tenant: str
    declared: str | None
    epoch: str
    probability: float
    unit: str
    canary: Canary | None


@dataclass(slots=True)
class Response:
    """One model response: text and calls, with its time and the model that wrote it."""

    at: int
    text: str | None
    calls: list[Call]
    model: str


@dataclass(slots=True)
class Turn:
    """One message of a person and what the agent does with it.

    ``queued`` is a message typed meanwhile, delivered after the first response; ``interrupted_at`` is the
    time at which the user stops the agent, else None.
    """

    at: int
    kind: str
    text: str
    responses: list[Response] = field(default_factory=list)
    queued: str | None = None
    interrupted_at: int | None = None


class Composer:
    """Makes turns of planned sessions and counts what it plants."""

    def __init__(self, profile: Profile, rates: Rates, totals: Counter[str]) -> None:
        self._profile = profile
        self._rates = rates
        self._totals = totals
        self._words = load_words()

    def compose(self, job: Job, phrases: Phrases, draw: Draw) -> list[Turn]:
        """The turns of one session, in order, with times."""
        kinds = self._kinds(job, draw)
        tools = Toolbox(draw, self._profile, job.scenario, job.cwd, phrases.topics)
        specials = self._specials(job, kinds, tools, draw)
        talk = _Talk(phrases, job.scenario.name, draw)
        half = (len(kinds) + 1) // 2  # where a session that switches model does so
        turns: list[Turn] = []
        clock = job.start_ms
        for index, kind in enumerate(kinds):
            turn = Turn(clock, kind, self._say(job, kind, index, talk, draw))
            model = job.models[-1 if index >= half else 0]
            after = kinds[index + 1] if index + 1 < len(kinds) else job.course
            clock = self._answer(turn, specials[index], model, after, tools, talk, draw)
            turns.append(turn)
            self._totals["responses"] += len(turn.responses)
            clock += draw.between(15_000, 260_000) if draw.unit() < 0.93 else draw.between(600_000, 2_400_000)
        return turns

    def _kinds(self, job: Job, draw: Draw) -> list[str]:
        kinds = ["request"]
        for kind in TURNS[job.course]:
            n = draw.between(*self._profile.follow) if kind == "follow" else 1
            kinds.extend([kind] * n)
        if job.course.startswith("accepted") and job.course != "accepted_late" and draw.unit() < self._rates.praise:
            kinds[kinds.index("follow")] = "praise"
        if job.canary is not None and job.canary.field == "user":
            kinds.insert(1, "canary")
        if draw.unit() < self._rates.interrupt:
            kinds[:1] = ["interrupted", "go_on"]
        return kinds

    def _say(self, job: Job, kind: str, index: int, talk: _Talk, draw: Draw) -> str:
        totals = self._totals
        totals["turns"] += 1
        if kind == "canary":
            assert job.canary is not None
            return job.canary.carrier
        if kind == "complaint":
            is_sentiment = draw.unit() < self._rates.sentiment
            kind = "sentiment" if is_sentiment else "failure"
            totals["complaints"] += 1
        elif kind in ("confirm", "praise", "correction"):
            totals[{"confirm": "confirmations", "praise": "praise", "correction": "corrections"}[kind]] += 1
        return talk.user(kind)

    def _specials(self, job: Job, kinds: list[str], tools: Toolbox, draw: Draw) -> list[list[list[Call]]]:
        """Groups of calls with a planted result, by turn; each group is one response."""
        rates, totals = self._rates, self._totals
        out: list[list[list[Call]]] = [[] for _ in kinds]
        places = [i for i, kind in enumerate(kinds) if kind not in ("confirm", "interrupted")] or [0]
        cascade = draw.unit() < rates.cascade
        first_word = draw.below(len(self._words.words))
        for number in range(job.errors):
            word = self._words.words[(first_word + 8 * number) % len(self._words.words)]
            groups = tools.failure(word, is_repaired=number < job.repaired, has_sibling=cascade and number == 0)
            out[draw.pick(places)].extend(groups)
        totals["command_errors"] += job.errors
        totals["self_repairs"] += job.repaired
        totals["cascades"] += int(cascade and job.errors > 0)
        if job.scenario.name == "coding" and draw.unit() < rates.check_failure:
            out[draw.pick(places)].extend(tools.check())
            totals["check_failures"] += 1
        if draw.unit() < rates.benign_exit:
            out[draw.pick(places)].append([tools.benign()])
            totals["benign_exits"] += 1
        if draw.unit() < rates.refusal:
            out[draw.pick(places)].append([tools.refused()])
            totals["refusals"] += 1
        if job.canary is not None and job.canary.command:
            out[draw.pick(places)].append([tools.shell(job.canary.command, job.canary.carrier)])
        return out

    def _answer(
        self, turn: Turn, specials: list[list[Call]], model: str, after: str, tools: Toolbox, talk: _Talk, draw: Draw
    ) -> int:
        """Fill in the agent's side of a turn; returns the time at which it ends."""
        clock = turn.at
        groups = [] if turn.kind == "confirm" else tools.ordinary() + specials
        for number, calls in enumerate(groups):
            clock += draw.between(2_500, 14_000)
            text = talk.aside(is_first=number == 0) if draw.unit() < 0.45 else None
            turn.responses.append(Response(clock, text, calls, model))
            for call in calls:
                if call.error == "refused":
                    call.reason = talk.reason()
                call.start = clock + 30
                call.end = call.start + call.duration
            clock = max(call.end for call in calls)
            self._totals["tool_calls"] += len(calls)
        if turn.kind == "interrupted":
            turn.interrupted_at = clock + draw.between(400, 3_000)
            self._totals["interrupts"] += 1
            return turn.interrupted_at
        clock += draw.between(4_000, 20_000)
        length = int(self._profile.prose * tools.scenario.prose * (0.4 + 1.2 * draw.unit()))
        turn.responses.append(Response(clock, talk.closing(turn.kind, after, length), [], model))
        if len(turn.responses) > 1 and turn.kind in ("request", "follow") and draw.unit() < self._rates.queued:
            turn.queued = talk.user("follow")
            self._totals["turns"] += 1
            self._totals["queued"] += 1
        return clock


class _Talk:
    """What user and agent of one session say."""

    __slots__ = ("_agent", "_draw", "_pair", "_pairs", "_phrases", "_scenario", "_used")

    def __init__(self, phrases: Phrases, scenario: str, draw: Draw) -> None:
        self._phrases, self._scenario, self._draw = phrases, scenario, draw
        self._agent = phrases.agent
        self._used: set[str] = set()
        self._pairs = draw.below(len(phrases.pairs))
        self._pair = phrases.pairs[self._pairs]

    def user(self, kind: str) -> str:
        """A message of the user."""
        phrases, draw = self._phrases, self._draw
        if kind in ("request", "interrupted"):
            return self._fill(draw.pick(phrases.request[self._scenario]))
        if kind == "follow":
            return self._follow()
        if kind == "praise":
            join = "" if phrases.lang == "zh" else " "
            return f"{draw.pick(phrases.feedback['praise'])}{join}{self._follow()}"
        if kind == "go_on":
            return str(draw.pick(self._agent["go_on"]))
        if kind == "correction":
            right, wrong = self._pair
            return draw.pick(phrases.feedback["correction"]).format(right=right, wrong=wrong)
        return draw.pick(phrases.feedback[kind])

    def _follow(self) -> str:
        # The same follow-up twice in a session would be a re-ask, which is a signal of its own.
        options = self._phrases.follow[self._scenario]
        start = self._draw.below(len(options))
        for step in range(len(options)):
            template = options[(start + step) % len(options)]
            if template not in self._used:
                break
        self._used.add(template)
        return self._fill(template)

    def _fill(self, template: str) -> str:
        draw, words, topics = self._draw, load_words(), self._phrases.topics
        topic = draw.below(len(topics))
        return template.format(
            file=f"{draw.pick(words.dirs)}/{draw.pick(words.words)}{draw.pick(words.extensions)}",
            func=draw.pick(words.funcs),
            word=draw.pick(words.words),
            n=draw.between(2, 52),
            topic=topics[topic],
            topic2=topics[(topic + 1 + draw.below(len(topics) - 1)) % len(topics)],
        )

    def aside(self, *, is_first: bool) -> str:
        """What the agent says beside its calls."""
        return str(self._draw.pick(self._agent["start" if is_first else "between"]))

    def reason(self) -> str:
        """What the user says on refusing a call."""
        return str(self._draw.pick(self._agent["reason"]))

    def closing(self, kind: str, after: str, length: int) -> str:
        """The agent's last text in a turn: an account of about ``length`` characters, then a claim or a question.

        ``after`` is the user's next turn or, at the end, the course of the session.
        """
        draw, prose, agent = self._draw, self._phrases.prose, self._agent
        parts: list[str] = []
        left = 0 if kind in ("confirm", "go_on") else length // (3 if self._phrases.lang == "zh" else 1)
        while left > 0:
            parts.append(draw.pick(prose))
            left -= len(parts[-1])
        if kind == "correction":
            parts.append(agent["switched"].format(right=self._pair[0]))
            self._pairs += 1
            self._pair = self._phrases.pairs[self._pairs % len(self._phrases.pairs)]
        if after == "correction":
            parts.append(agent["used"].format(wrong=self._pair[1]))
        if after == "waiting":
            parts.append(draw.pick(agent["waiting"]))
        else:
            parts.append(agent["sorry"] if kind == "complaint" else draw.pick(agent["done"]))
        return ("" if self._phrases.lang == "zh" else " ").join(parts)
