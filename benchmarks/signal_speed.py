"""How fast signals are extracted, in turns and tool outputs per second of CPU time on one core.

    python benchmarks/signal_speed.py [--turns 40000] [--outputs 40000] [--repeats 5]

Text is made from the examples of the rule files: of the turns about one in six fires a pattern, as in real
sessions; of the outputs about one in ten is not ordinary. The peer is a plain Python loop with ``re`` over the
same rules; the ratio is what counts. Targets: 50,000 turns and 50,000 outputs a second.
"""

from __future__ import annotations

import os

# One core, also for Polars; read when it is imported.
os.environ["POLARS_MAX_THREADS"] = "1"

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from evalpipe.contracts.render import frame
from evalpipe.contracts.tables import masked
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.signals import calls, errors, extract_part, patterns, semantic, text, turns
from evalpipe.signals.borderline.candidates import borderline_rows

EXTRACTION = ExtractionCriteria(("en", "pt", "zh"), 0.75, 160, 10, 3)
AT = datetime(2026, 1, 5, tzinfo=UTC)
PER_SESSION = 20
PLAIN_ROWS = 2_000
ORDINARY = {
    "en": ["please add a column for the date of the order", "which of the two files holds the settings", "go on",
           "rename the helper in the second module and move its tests along", "what would the schema look like then",
           "use the same layout as on the other page, three cards in a row", "run the script again on the new data"],
    "zh": ["请在订单表里加一个日期字段", "这两个文件的区别在哪里", "继续", "把第二个模块里的函数改个名字并移动测试"],
    "pt": ["adicione uma coluna com a data do pedido", "qual dos dois arquivos guarda as opções", "pode seguir"],
}  # fmt: skip


def sayings(n: int, draw: random.Random) -> list[tuple[str, str]]:
    """(language, text) of n turns: three in five English, the rest Chinese and Portuguese."""
    known = patterns.load_patterns()
    out = []
    for _ in range(n):
        lang = draw.choices(("en", "zh", "pt"), (3, 1, 1))[0]
        words = draw.choices(ORDINARY[lang], k=draw.choice((1, 1, 2)))
        if draw.random() < 1 / 6:
            words.insert(0, draw.choice([e for p in known if p.lang == lang for e in p.match]))
        if draw.random() < 1 / 8:
            words.append("\n```\nvalue = 1\n```\n")
        out.append((lang, ". ".join(words)))
    return out


def turn_frames(said: list[tuple[str, str]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions of turns, each with an agent's answer before it."""
    steps = []
    for i, (_, words) in enumerate(said):
        session, at = f"s{i // PER_SESSION:06}", (i % PER_SESSION) * 2
        about = {"session_id": session, "turn": i % PER_SESSION + 1}
        steps.append(
            about
            | {
                "seq": at,
                "step_id": str(at),
                "kind": "agent",
                "origin": "agent",
                "text": "I changed the page as you said.",
            }
        )
        steps.append(about | {"seq": at + 1, "step_id": str(at + 1), "kind": "user", "origin": "human", "text": words})
    return session_frame(len(said)), frame(masked.STEPS, steps)


def session_frame(n_rows: int) -> pl.DataFrame:
    common = {"source": "bench", "reader_version": "1", "file_id": "f", "agent": "a", "n_models": 1, "started_at": AT, "ended_at": AT,
              "is_dated": True, "is_clock_repaired": False, "n_turns": 0, "n_steps": 0, "n_tool_calls": 0, "n_messages": 0}  # fmt: skip
    return frame(masked.SESSIONS, [{"session_id": f"s{i:06}"} | common for i in range(-(-n_rows // PER_SESSION))])


def call_frames(n: int, draw: random.Random) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls whose ordinary results are pieces of this repository's sources, about 1.2 KB long."""
    source = "".join(
        p.read_text(encoding="utf-8") for p in sorted(Path(__file__).parent.parent.rglob("evalpipe/**/*.py"))[:60]
    )
    odd = [e for rule in errors.table().rules if rule.status != "ok" for e in rule.examples]
    steps = []
    for i in range(n):
        step = {
            "session_id": f"s{i // PER_SESSION:06}",
            "seq": i % PER_SESSION,
            "step_id": str(i),
            "turn": 1,
            "kind": "tool",
            "origin": "tool",
        }
        if draw.random() < 0.1:
            e = draw.choice(odd)
            step |= {"name": e["tool"], "output": e["output"], "exit_code": e.get("exit"), "is_error": e.get("flagged")}
            step["arguments"] = json.dumps({"command": e.get("command", "")})
        else:
            at = draw.randrange(len(source) - 4_000)
            name = draw.choice(("Bash", "Bash", "Read", "Edit", "Grep"))
            given = (
                {"command": f"sed -n '{at},$p' a.py | head -{at % 90}"}
                if name == "Bash"
                else {"file_path": f"src/{at}.py"}
            )
            step |= {
                "name": name,
                "output": source[at : at + draw.randrange(50, 2_400)],
                "arguments": json.dumps(given),
            }
        steps.append(step)
    return session_frame(n), frame(masked.STEPS, steps)


def plain_turns(said: list[tuple[str, str]]) -> int:
    """The same patterns, one after the other, in a loop over turns."""
    hits = 0
    for lang, words in said:
        prose, _ = text.prose_positions(words)
        hits += sum(p.lang == lang and patterns.locate(p, prose) is not None for p in patterns.load_patterns())
    return hits


def plain_calls(steps: pl.DataFrame) -> int:
    """The same table, asked of every call."""
    asked = [
        errors.Call(calls.tool_class(name), json.loads(arguments).get("command", ""), output, code, bool(flag))
        for name, arguments, output, code, flag in steps.select(
            "name", "arguments", "output", "exit_code", "is_error"
        ).iter_rows()
    ]
    return sum(verdict.status != "ok" for verdict in errors.classify_all(asked))


def rate(n: int, work: Callable[[], object], repeats: int) -> float:
    """Median rows per second of CPU time, after one warm-up."""
    work()
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return n / statistics.median(spent)


def main() -> None:
    """Print the rates and the ratios."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=40_000)
    options.add_argument("--outputs", type=int, default=40_000)
    options.add_argument("--repeats", type=int, default=5)
    args = options.parse_args()
    draw = random.Random(1)
    said = sayings(args.turns, draw)
    sessions, steps = turn_frames(said)
    call_sessions, call_steps = call_frames(args.outputs, draw)

    def say() -> pl.DataFrame:
        return semantic.semantic_rows(turns.human_turns(steps), EXTRACTION)

    def judged() -> pl.DataFrame:
        found = turns.human_turns(steps)
        return borderline_rows(found, semantic.semantic_rows(found, EXTRACTION), EXTRACTION.snippet_chars)

    def call() -> pl.DataFrame:
        return calls.tool_calls(call_sessions, call_steps)

    fast, slow = rate(len(said), say, args.repeats), rate(PLAIN_ROWS, lambda: plain_turns(said[:PLAIN_ROWS]), 1)
    print(
        f"semantic rules: {fast:,.0f} turns/s (target 50,000), plain Python {slow:,.0f}, ratio {fast / slow:.1f}; {say().height / len(said):.1%} rows a turn"
    )
    whole = rate(len(said), judged, args.repeats)
    print(f"rules and classifier: {whole:,.0f} turns/s (target 50,000), {whole / fast:.2f} of the rules alone")
    some = call_steps.head(PLAIN_ROWS)
    fast, slow = rate(call_steps.height, call, args.repeats), rate(some.height, lambda: plain_calls(some), 1)
    odd = (call()["status"] != "ok").sum() / call_steps.height
    print(
        f"tool outputs: {fast:,.0f} outputs/s (target 50,000), plain Python {slow:,.0f}, ratio {fast / slow:.1f}; {odd:.1%} not ordinary"
    )
    whole = rate(steps.height, lambda: extract_part(sessions, steps, EXTRACTION), 1)
    print(f"all tables of the turns' sessions: {whole:,.0f} steps/s; of the calls' sessions: "
          f"{rate(call_steps.height, lambda: extract_part(call_sessions, call_steps, EXTRACTION), 1):,.0f} steps/s")  # fmt: skip


if __name__ == "__main__":
    main()
