"""Writes composed sessions as Claude Code JSONL, with the habits of real files.

Belongs here: the line shapes. One model response is split over several lines that share ``message.id`` and
repeat its usage; a tool result comes in the next ``user`` line; a failed command says ``Exit code N`` at the
head of its text; snapshots, progress and system lines stand between. Does not belong here: what happens in
a session, or where files go.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import numpy as np
import orjson

from evalpipe.simulate.calls import Call
from evalpipe.simulate.claude_results import content_of, outcome_of
from evalpipe.simulate.clock import Clock, Ids
from evalpipe.simulate.script import Job, Response, Turn
from evalpipe.simulate.text import Draw, Phrases, load_words
from evalpipe.simulate.world import Profile, Rates

_INTERRUPTED = "[Request interrupted by user]"
_CONTINUED = "This session is being continued from a previous conversation that ran out of context. Summary:\n"
_COMMAND = "<command-name>/model</command-name>\n<command-message>model</command-message>"
_CAVEAT = "<local-command-caveat>Caveat: the messages below come from local commands.</local-command-caveat>"


@cache
def _signatures() -> str:
    # Thinking carries a long signature that reads like a secret to an entropy scanner.
    return base64.b64encode(np.random.Generator(np.random.PCG64(7)).bytes(12_000)).decode()


class ClaudeCodeWriter:
    """Writes one session; make one a session."""

    def __init__(self, job: Job, phrases: Phrases, profile: Profile, rates: Rates, clock: Clock, draw: Draw) -> None:
        words = load_words()
        self._job, self._profile, self._rates, self._clock, self._draw = job, profile, rates, clock, draw
        self._prose = phrases.prose
        self._ids = Ids(draw)
        self._parent: str | None = None
        self._context = 9_000 + draw.below(9_000)
        self._lines: list[bytes] = []
        slug = "-".join([draw.pick(words.slugs), draw.pick(words.words), draw.pick(words.words)])
        fixed = {
            "isSidechain": False,
            "userType": "external",
            "cwd": job.cwd,
            "sessionId": job.session_id,
            "version": draw.pick(words.releases),
            "gitBranch": draw.pick(words.branches),
            "slug": slug,
        }
        self._fixed = orjson.dumps(fixed)[1:-1]

    def write(self, turns: list[Turn]) -> bytes:
        """The whole file."""
        draw = self._draw
        has_meta = draw.unit() < self._rates.meta
        compact_at = len(turns) // 2 if draw.unit() < self._profile.compaction else -1
        self._snapshot(self._job.start_ms, {})
        if has_meta:
            self._meta(self._job.start_ms)
        for number, turn in enumerate(turns):
            if number == compact_at and number > 0:
                self._compaction(turn.at - 900)
            self._turn(turn)
        self._lines.append(b"")
        return b"\n".join(self._lines)

    def _line(self, at: int, row: dict[str, Any], uuid: str | None = None) -> str:
        """Add a line of the message tree; returns its uuid."""
        uuid = uuid or self._ids.uuid()
        row["uuid"] = uuid
        row["timestamp"] = self._clock.iso(at)
        parent = b"null" if self._parent is None else b'"' + self._parent.encode() + b'"'
        self._lines.append(b'{"parentUuid":' + parent + b"," + self._fixed + b"," + orjson.dumps(row)[1:])
        self._parent = uuid
        return uuid

    def _plain(self, row: dict[str, Any]) -> None:
        """Add a line outside the tree."""
        self._lines.append(orjson.dumps(row))

    def _user(self, at: int, content: str | list[dict[str, Any]], **extra: Any) -> None:
        self._line(at, {"type": "user", "message": {"role": "user", "content": content}, **extra})

    def _turn(self, turn: Turn) -> None:
        thinking = {"maxThinkingTokens": 31_999}
        self._user(turn.at, turn.text, thinkingMetadata=thinking, todos=[], permissionMode="default")
        end = turn.at
        for number, response in enumerate(turn.responses):
            end = self._response(response)
            if number == 0 and turn.queued is not None:
                self._queued(end, turn.queued)
        if turn.interrupted_at is not None:
            self._user(turn.interrupted_at, [{"type": "text", "text": _INTERRUPTED}])
        elif self._draw.unit() < 0.4:
            duration = {"type": "system", "subtype": "turn_duration", "durationMs": end - turn.at, "isMeta": False}
            self._line(end + 40, duration)

    def _response(self, response: Response) -> int:
        """Lines of one model response and of its results; returns the time of the last."""
        draw, ids = self._draw, self._ids
        blocks: list[dict[str, Any]] = []
        if draw.unit() < self._profile.thinking:
            signatures = _signatures()
            start = draw.below(len(signatures) - 700)
            signature = signatures[start : start + draw.between(200, 640)]
            blocks.append({"type": "thinking", "thinking": draw.pick(self._prose), "signature": signature})
        if response.text:
            blocks.append({"type": "text", "text": response.text})
        names: list[str] = []
        for call in response.calls:
            names.append(f"toolu_01{ids.take(22)}")
            blocks.append({"type": "tool_use", "id": names[-1], "name": call.name, "input": call.arguments})
        uuids = self._blocks(response, blocks)
        at = response.at
        sources = uuids[len(blocks) - len(names) :]
        for call, name, source in sorted(zip(response.calls, names, sources, strict=True), key=lambda r: r[0].end):
            self._result(call, name, source)
            at = max(at, call.end)
        return at

    def _blocks(self, response: Response, blocks: list[dict[str, Any]]) -> list[str]:
        draw, ids = self._draw, self._ids
        message_id, request_id = f"msg_01{ids.take(22)}", f"req_011{ids.take(21)}"
        written = 300 + draw.below(1_500)
        output = 40 + draw.below(160) + len(response.text or "") // 4
        uuids: list[str] = []
        for number, block in enumerate(blocks):
            is_last = number == len(blocks) - 1
            usage = {
                "input_tokens": 3,
                "cache_creation_input_tokens": written,
                "cache_read_input_tokens": self._context,
                "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
                "output_tokens": output if is_last else 1 + output // 9,
                "service_tier": "standard",
            }
            message = {
                "model": response.model,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": "tool_use" if is_last and block["type"] == "tool_use" else None,
                "stop_sequence": None,
                "usage": usage,
            }
            row = {"message": message, "requestId": request_id, "type": "assistant"}
            uuids.append(self._line(response.at + 4 * number, row))
        self._context += written
        return uuids

    def _result(self, call: Call, name: str, source: str) -> None:
        draw = self._draw
        if draw.unit() < self._profile.noise:
            self._progress(call, name)
        content, is_error = content_of(call), call.is_failed
        block: dict[str, Any] = {"tool_use_id": name, "type": "tool_result", "content": content}
        if is_error or call.name == "Bash":
            block["is_error"] = is_error
        outcome = f"Error: {content}" if is_error else outcome_of(call)
        self._user(call.end, [block], toolUseResult=outcome, sourceToolAssistantUUID=source)
        if call.name in ("Edit", "Write") and draw.unit() < self._profile.noise * 2:
            backup: dict[str, Any] = {"backupFileName": f"{self._ids.take(16)}@v1", "version": 1}
            backup["backupTime"] = self._clock.iso(call.end)
            self._snapshot(call.end, {call.arguments["file_path"].removeprefix(f"{self._job.cwd}/"): backup})

    def _progress(self, call: Call, name: str) -> None:
        data: dict[str, Any]
        if call.name == "Bash" and call.duration > 1_500:
            head = call.output[:160]
            data = {
                "type": "bash_progress",
                "output": head,
                "fullOutput": head,
                "elapsedTimeSeconds": call.duration // 1000,
            }
            data["totalLines"] = head.count("\n") + 1
        else:
            hook = f"PostToolUse:{call.name}"
            data = {"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": hook, "command": "callback"}
        self._line(call.end - 3, {"type": "progress", "data": data, "parentToolUseID": name, "toolUseID": name})

    def _snapshot(self, at: int, backups: dict[str, Any]) -> None:
        message = self._ids.uuid()
        snapshot = {"messageId": message, "trackedFileBackups": backups, "timestamp": self._clock.iso(at)}
        row = {"type": "file-history-snapshot", "messageId": message, "snapshot": snapshot}
        self._plain({**row, "isSnapshotUpdate": bool(backups)})

    def _queued(self, at: int, text: str) -> None:
        for operation, when, extra in (("enqueue", at, {"content": text}), ("remove", at + 900, {})):
            stamp = {"timestamp": self._clock.iso(when), "sessionId": self._job.session_id}
            self._plain({"type": "queue-operation", "operation": operation, **stamp, **extra})

    def _meta(self, at: int) -> None:
        self._user(at, _CAVEAT, isMeta=True)
        self._user(at, _COMMAND)
        self._user(at, "<local-command-stdout>Set model</local-command-stdout>")
        usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "model": "<synthetic>",
            "id": self._ids.uuid(),
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "No response requested."}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": usage,
        }
        self._line(at, {"message": message, "type": "assistant", "isApiErrorMessage": False})

    def _compaction(self, at: int) -> None:
        logical, self._parent = self._parent, None
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        metadata = {"isMeta": False, "level": "info", "compactMetadata": {"trigger": "auto", "preTokens": 160_000}}
        self._line(at, {"logicalParentUuid": logical, **boundary, **metadata})
        summary = _CONTINUED + " ".join(self._draw.pick(self._prose) for _ in range(12))
        self._user(at + 5, summary, isVisibleInTranscriptOnly=True, isCompactSummary=True)
