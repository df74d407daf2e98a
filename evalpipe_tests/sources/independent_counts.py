"""What the readers count beside what a second count counts: one table over all formats with samples.

Belongs here: which files are compared, and why a difference is right. ``python -m
evalpipe_tests.sources.independent_counts`` prints the table. Does not belong here: the second counts
(``second_counts.py``), which know nothing of evalpipe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evalpipe_tests.sources import second_counts as second
from evalpipe_tests.sources.helpers import SAMPLES, Read

MEASURES = ("sessions", "human", "calls", "errors", "refused", "exits", "tokens")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True)
class Format:
    """One format: its samples, the second count, and differences that are right, with their reason.

    Attributes:
        source: Name of the reader. path: pattern of files or folders below the samples that it reads.
        count: Second count over the folder. measures: those that both can count.
        explained: Measure to (ours less theirs, reason).
        apart: Whether each file is read for itself, because files of different runs share an id.
    """

    source: str
    path: str
    count: Callable[[Path], Counter[str]]
    measures: tuple[str, ...]
    explained: dict[str, tuple[int, str]]
    apart: bool = False


def _format(
    source: str,
    path: str,
    count: Callable[[Path], Counter[str]],
    measures: str,
    *,
    apart: bool = False,
    **explained: tuple[int, str],
) -> Format:
    return Format(source, path, count, tuple(measures.split()), explained, apart)


FORMATS = (
    _format("claude_code", "claude_code_jsonl/entire_cli_sessions_A.tar.zst", second.claude_code, "sessions human calls errors refused exits tokens"),
    _format("codex", "codex_rollout_jsonl", second.codex, "sessions human calls tokens"),
    _format("gemini_cli", "gemini_cli", second.gemini_cli, "sessions human calls errors tokens"),
    _format("gemini_history", "gemini_cli", second.gemini_history, "sessions human calls errors"),
    _format("opencode", "opencode_events", second.opencode, "sessions human calls errors tokens"),
    _format("pi_agent", "pi_agent_jsonl", second.pi_agent, "sessions human calls errors tokens"),
    _format("specstory", "specstory_md", second.specstory, "sessions calls"),
    _format("openhands", "openhands_events", second.openhands, "human calls tokens"),
    _format("swe_agent", "swe_agent_traj", second.swe_agent, "sessions human calls tokens"),
    _format("tau_bench", "tau_bench/gpt-4o-airline.trial0.json.gz", second.tau_bench, "sessions human calls errors",
            errors=(-17, "the log flags no failed call; the signal layer tells them by their text")),
    _format("tau2_bench", "tau2_bench/tau2_sessions_A.jsonl.zst", second.tau2_bench, "sessions human calls errors"),
    _format("mini_swe_agent", "mini_swe_agent/deepseek*", second.mini_swe_agent, "sessions calls tokens"),
    _format("atif", "atif_trajectory/golden*", second.atif, "human tokens", apart=True),
    _format("harbor_traces", "harbor_sft_traces", second.harbor_traces, "sessions human"),
    _format("toolbench", "toolbench/tooleval*", second.toolbench, "sessions human calls"),
    _format("phoenix", "phoenix_spans/example_traces_A.jsonl", second.phoenix, "sessions"),
    _format("inspect", "inspect_ai", second.inspect, "sessions human errors"),
    _format("langfuse", "langfuse_trace", second.langfuse, "sessions human tokens"),
    _format("mlflow", "mlflow_trace", second.mlflow, "sessions calls"),
    _format("otlp", "otlp_genai_json", second.otlp, "sessions calls tokens"),
    _format("mcpmark", "multi_model_outcomes/mcpmark_runs.jsonl.zst", second.mcpmark, "sessions tokens"),
    _format("agentbench", "agentbench", second.agentbench, "sessions calls"),
    _format("whowhen", "mas_whowhen/whowhen_A.jsonl.zst", second.whowhen, "sessions human calls errors"),
    _format("anthropic_events", "anthropic_messages_jsonl", second.anthropic_events, "sessions calls tokens"),
    _format("openai_messages", "openai_messages_jsonl", second.openai_messages, "sessions human calls"),
    _format("wildchat", "wildchat_lmsys_rows/wildchat_style.jsonl", second.chats("wildchat_style.jsonl"), "sessions human"),
    _format("lmsys_chat", "wildchat_lmsys_rows/lmsys_style.jsonl", second.chats("lmsys_style.jsonl"), "sessions human"),
    _format("sharegpt", "sharegpt", second.sharegpt, "sessions human"),
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """One measure of one format."""

    source: str
    measure: str
    ours: int
    theirs: int
    explained: tuple[int, str]

    @property
    def agrees(self) -> bool:
        return self.ours - self.theirs == self.explained[0]


def ours(fmt: Format) -> Counter[str]:
    """The reader's counts of a format, sub-agents of Claude Code apart."""
    paths = sorted(SAMPLES.glob(fmt.path))
    groups = [[path] for path in paths] if fmt.apart else [paths]
    return sum((_read(fmt.source, Read(*group)) for group in groups), Counter())


def _read(source: str, read: Read) -> Counter[str]:
    # Of several copies of a session the longest counts, as when files are landed.
    sessions = read.sessions.filter(source=source).sort("n_messages", descending=True)
    sessions = sessions.unique("session_id", keep="first")
    steps = read.steps.join(sessions.select("session_id"), on="session_id", how="semi")
    steps = steps.unique(["session_id", "seq"])
    if source == "claude_code":
        steps = steps.filter(pl.col("parent_id").is_null())
    is_call = (pl.col("kind") == "tool") & pl.col("name").is_not_null()
    found = steps.select(
        human=(pl.col("origin") == "human").sum(),
        calls=is_call.sum(),
        errors=pl.col("is_error").sum(),
        refused=(pl.col("error") == "refused").sum(),
        exits=pl.col("exit_code").is_not_null().sum(),
        tokens=pl.sum_horizontal(pl.col(TOKENS).sum()),
    ).row(0, named=True)
    # Tokens that only the session's total states stand on no step; with sub-agents apart, only steps count.
    if source != "claude_code":
        found["tokens"] = sum(sessions.select(pl.col(TOKENS).sum()).row(0))
    return Counter({"sessions": sessions["session_id"].n_unique(), **{k: int(v or 0) for k, v in found.items()}})


def compare(fmt: Format) -> list[Compared]:
    """Both counts of a format, measure by measure."""
    path = next(SAMPLES.glob(fmt.path))
    theirs, mine = fmt.count(path if path.is_dir() else path.parent), ours(fmt)
    return [
        Compared(fmt.source, name, mine[name], theirs[name], fmt.explained.get(name, (0, ""))) for name in fmt.measures
    ]


def table() -> str:
    """All formats, as a Markdown table."""
    out = ["| format | measure | evalpipe | second count | |", "|---|---|---|---|---|"]
    for fmt in FORMATS:
        for c in compare(fmt):
            note = (c.explained[1] or "agree") if c.agrees else "**DIFFER**"
            out.append(f"| `{c.source}` | {c.measure} | {c.ours:,} | {c.theirs:,} | {note} |")
    return "\n".join(out)


if __name__ == "__main__":
    print(table())
