"""Writes a simulation to disk.

Belongs here: resolving the plan's codes, one pass over the sessions, files and folders. Does not belong
here: what a session says, or what a line looks like.

Layout: ``<out>/day=YYYY-MM-DD/`` holds the files of the sessions that *end* on that UTC day, as a nightly
export would, so that a session across midnight lies in the folder of the day after its start;
``<out>/late/day=YYYY-MM-DD/`` holds those of that day that arrive late. In a folder,
``claude/projects/<cwd>/<session>.jsonl`` is one Claude Code session, and ``evalpipe/<tenant>.jsonl`` holds
the tenant's sessions of the day, interleaved. ``<out>/truth.json`` is the truth.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import BinaryIO

import orjson

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.simulate.canaries import Canary, make_canary
from evalpipe.simulate.categories import COURSES
from evalpipe.simulate.claude_code import ClaudeCodeWriter
from evalpipe.simulate.clock import DAY_MS, Clock
from evalpipe.simulate.evalpipe_jsonl import Line, interleave, session_lines
from evalpipe.simulate.plan import CLAUDE, EPOCHS, Plan, Users, make_plan, make_users, stream
from evalpipe.simulate.script import Composer, Job, Turn
from evalpipe.simulate.spec import Spec
from evalpipe.simulate.text import Draw, as_uuid, load_phrases, load_words
from evalpipe.simulate.truth import Truth, make_truth

_TOGETHER = 6  # sessions of a tenant whose lines interleave; bounds memory


def simulate(out: Path, spec: Spec) -> Truth:
    """Write logs and ``truth.json``.

    Args:
        out: Folder to write to; made if absent. Must hold no earlier simulation.
        spec: What to simulate. The same spec writes the same bytes.

    Returns:
        The planted truth, also written to ``out/truth.json``.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` if ``out`` is not an empty folder.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        fix = "Name a new or empty folder."
        raise EvalpipeError("BAD_ARGUMENT", "the output folder is not empty.", where=str(out), fix=fix)
    out.mkdir(parents=True, exist_ok=True)
    users = make_users(spec)
    plan = make_plan(spec, users)
    with _Run(out, spec, users, plan) as run:
        for index in range(len(plan)):
            run.session(index)
    run.totals["steps"] = sum(run.totals[name] for name in ("turns", "responses", "tool_calls", "interrupts"))
    truth = make_truth(spec, users, plan, run.totals, run.canaries)
    (out / "truth.json").write_bytes(orjson.dumps(truth.to_dict(), option=orjson.OPT_INDENT_2))
    return truth


class _Run:
    """One pass over the sessions: open files, sessions that wait to be interleaved, counts."""

    def __init__(self, out: Path, spec: Spec, users: Users, plan: Plan) -> None:
        self._out, self._spec, self._users, self._plan = out, spec, users, plan
        self._languages = sorted(spec.languages)
        self._profile = spec.world.profiles[spec.profile]
        self._clock = Clock(spec.start)
        self._words = load_words()
        self._waiting: dict[Path, list[list[Line]]] = {}
        self._files: dict[Path, BinaryIO] = {}
        self._homes: set[int] = set()
        self._folders: set[Path] = set()
        self.totals: Counter[str] = Counter()
        self.canaries: list[dict[str, str]] = []
        self._composer = Composer(self._profile, spec.world.rates, self.totals)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        for path in sorted(self._waiting):
            self._flush(path)
        for file in self._files.values():
            file.close()

    def session(self, index: int) -> None:
        """Compose, count and write one session of the plan."""
        plan, users = self._plan, self._users
        user, day = int(plan.user[index]), int(plan.day[index])
        rng = stream(self._spec, 2, day, int(plan.number[index]))
        draw = Draw(rng, 512)
        lang = self._languages[users.language[user]]
        phrases = load_phrases(lang)
        canary = make_canary(rng, lang) if draw.unit() < self._spec.canary_rate else None
        job = self._job(index, user, canary)
        turns = self._composer.compose(job, phrases, draw)
        end = _end(turns)
        folder = self._out / ("late" if plan.late[index] else "") / f"day={self._clock.day(end)}"
        if plan.channel[index] == CLAUDE:
            rates = self._spec.world.rates
            body = ClaudeCodeWriter(job, phrases, self._profile, rates, self._clock, draw).write(turns)
            project = job.cwd.replace("/", "-").replace(".", "-")
            self._write_file(folder / "claude" / "projects" / project, job.session_id, body)
        else:
            release = self._words.releases[day % len(self._words.releases)]
            path = folder / "evalpipe" / f"{job.tenant}.jsonl"
            self._waiting.setdefault(path, []).append(session_lines(job, turns, self._clock, draw, release))
            if len(self._waiting[path]) == _TOGETHER:
                self._flush(path)
        self._count(index, job, end)

    def _job(self, index: int, user: int, canary: Canary | None) -> Job:
        plan, users, spec = self._plan, self._users, self._spec
        is_claude = plan.channel[index] == CLAUDE
        digits = plan.ident[index].tobytes().hex()
        models = [spec.versions[plan.version[index]].model]
        if plan.second_version[index] >= 0:
            models.append(spec.versions[plan.second_version[index]].model)
        scenario = spec.world.scenarios[plan.scenario[index]]
        account = self._account(user)
        has_user = bool(plan.has_user[index])
        tenant = int(users.tenant[user])
        return Job(
            session_id=as_uuid(digits) if is_claude else f"s-{digits[:20]}",
            start_ms=int(plan.day[index]) * DAY_MS + int(plan.start_s[index] * 1000),
            scenario=scenario,
            course=COURSES[plan.course[index]],
            models=tuple(models),
            errors=int(plan.errors[index]),
            repaired=int(plan.repaired[index]),
            cwd=f"{'/home/' + account if has_user else '/srv/agents'}/{self._folder(user, int(plan.workspace[index]))}",
            user_id=f"{account}@{self._words.tenants[tenant]}.example" if has_user else None,
            tenant=self._words.tenants[tenant],
            declared=scenario.name if spec.world.rates.declared[tenant] else None,
            epoch=EPOCHS[plan.epoch[index]],
            probability=float(plan.probability[index]),
            unit="user" if spec.routing == "sticky" else "session",
            canary=canary,
        )

    def _account(self, user: int) -> str:
        words, name = self._words, int(self._users.name[user])
        last, generation = divmod(name, len(words.first))
        generation, first = last // len(words.last), generation
        return f"{words.first[first][0]}{words.last[last % len(words.last)]}{10 + generation}".lower()

    def _folder(self, user: int, workspace: int) -> str:
        words = self._words
        n = len(words.projects) * len(words.parts)
        copy, place = divmod(workspace, n)
        part, project = divmod((place + 37 * user) % n, len(words.projects))
        return f"{words.projects[project]}-{words.parts[part]}" + (f"-{copy}" if copy else "")

    def _write_file(self, folder: Path, name: str, body: bytes) -> None:
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)
        descriptor = os.open(folder / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(descriptor, "wb", buffering=0) as file:
            file.write(body)
        self.totals["bytes"] += len(body)

    def _flush(self, path: Path) -> None:
        body = b"\n".join([*interleave(self._waiting.pop(path, [])), b""])
        if path not in self._files:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[path] = path.open("xb")
        self._files[path].write(body)
        self.totals["bytes"] += len(body)

    def _count(self, index: int, job: Job, end: int) -> None:
        plan, totals, user = self._plan, self.totals, int(self._plan.user[index])
        totals["sessions"] += 1
        totals["sessions_claude_code" if plan.channel[index] == CLAUDE else "sessions_evalpipe_jsonl"] += 1
        for name, is_so in (
            ("sessions_without_user", not plan.has_user[index]),
            ("sessions_that_switch_model", plan.second_version[index] >= 0),
            ("sessions_across_midnight", end // DAY_MS > plan.day[index]),
            ("sessions_late", plan.late[index]),
            ("sessions_continued", plan.continued[index]),
        ):
            totals[name] += int(is_so)
        if job.canary is not None:
            c = job.canary
            self.canaries.append({"kind": c.kind, "value": c.value, "session": job.session_id, "field": c.field})
        if plan.has_user[index] and user not in self._homes:
            self._homes.add(user)
            home = {"kind": "home_folder", "value": self._account(user), "session": job.session_id}
            self.canaries.append({**home, "field": "path"})


def _end(turns: list[Turn]) -> int:
    """Time of the last record of a session."""
    last = turns[-1]
    ends = [last.at, *(r.at for r in last.responses), *(c.end for r in last.responses for c in r.calls)]
    return max(ends)
