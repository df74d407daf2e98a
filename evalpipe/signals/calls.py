"""Tool calls of a part: class, command, keys, and what each result means.

Belongs here: the vectorised frame of calls; only suspicious ones meet the error table. Does not
belong here: the table (``errors``), retries and repairs (``repairs``), signals (``hard``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.signals import errors, rulefiles
from evalpipe.signals.ids import digest

#: Statuses of a call that ran. The others gave no result of their own.
RAN = ("ok", "error", "check_failure", "benign")
_FAILED_BY_LOG = {"refused": "refused", "interrupted": "interrupted", "cascade": "cascade", "no_result": "no_result",
                  "api_error": "no_result"}  # fmt: skip
_KEY_BYTES = 2_000
_EXIT_LINE_CHARS = 300
_VERDICT = {
    "row": pl.UInt32, "status": pl.String, "category": pl.String, "layer": pl.String, "confidence": pl.Float64,
    "rule_id": pl.String, "is_hidden": pl.Boolean, "exit_scope": pl.String, "start": pl.Int32, "end": pl.Int32,
    "signature": pl.String, "target_key": pl.String,
}  # fmt: skip


@lru_cache(maxsize=1)
def _classes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row["name"], rulefiles.to_python(row["any"])) for row in rulefiles.load("tools.toml")["class"])


@lru_cache(maxsize=4096)
def tool_class(name: str) -> str:
    """Class of a tool by its name: shell, edit, read or other."""
    lowered = name.lower()
    return next((klass for klass, pattern in _classes() if pattern.search(lowered)), "other")


def tool_calls(sessions: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """All tool calls of a part with what their results mean.

    Args:
        sessions: masked.sessions of the part.
        steps: masked.steps of the part, ordered by session and seq.

    Returns:
        One row a tool step, in order: ``session_id, seq, turn, name, tool, command, key, repair_key,
        exit_code, is_command, has_status`` and the columns of a verdict (null category and span for
        ordinary calls; ``signature`` and ``target_key`` only where the result is a failure).
    """
    calls = steps.filter(pl.col("kind") == "tool").select(
        "session_id", "seq", "turn", "text", "arguments", "output", "exit_code", "is_error", "error",
        name=pl.col("name").fill_null(""),
    ).with_row_index("row")  # fmt: skip
    calls = _with_exit_code(_with_class(calls))
    calls = _with_registry(_with_command(calls), sessions)
    # Rows are numbered from 0, so a row's number is its place.
    verdicts = _judge(calls[_suspicious(calls)])
    joined = calls.join(verdicts, on="row", how="left", maintain_order="left")
    ordinary = pl.col("status").is_null()
    joined = joined.with_columns(
        status=pl.when(ordinary).then(_by_log()).otherwise("status"),
        is_hidden=pl.col("is_hidden").fill_null(value=False),
        confidence=pl.col("confidence").fill_null(1.0),
    )
    gave = (pl.col("tool") == "shell") | pl.col("exit_code").is_not_null() | pl.col("is_error").is_not_null()
    ran = pl.col("status").is_in(RAN)
    return joined.with_columns(is_command=ran & (gave | (pl.col("status") == "error")))


def _with_class(calls: pl.DataFrame) -> pl.DataFrame:
    names = calls["name"].unique(maintain_order=True)
    classes = pl.DataFrame(
        {"name": names, "tool": [tool_class(name) for name in names]}, schema_overrides={"tool": pl.String}
    )
    calls = calls.join(classes, on="name", how="left", maintain_order="left")
    # Whatever its name, a tool that gives exit codes runs commands.
    runs = (pl.col("tool") == "other") & pl.col("exit_code").is_not_null()
    return calls.with_columns(tool=pl.when(runs).then(pl.lit("shell")).otherwise("tool"))


def _with_exit_code(calls: pl.DataFrame) -> pl.DataFrame:
    """The exit codes that harnesses write into the text, where the log has no field for them."""
    open_calls = calls.filter((pl.col("tool") == "shell") & pl.col("exit_code").is_null()).select("row", "output")
    parts = open_calls.select(
        "row",
        head=pl.col("output").str.head(_EXIT_LINE_CHARS),
        tail=pl.concat_str(pl.lit("\n"), pl.col("output").str.tail(_EXIT_LINE_CHARS), pl.lit("\n")),
    )
    rows = rulefiles.load("tools.toml")["exit_line"]
    told = [pl.col(row["part"]).str.extract(rulefiles.to_rust(row["any"])) for row in rows]
    read = parts.select("row", told=pl.coalesce(told).cast(pl.Int64).cast(pl.Int32, strict=False))
    joined = calls.join(read, on="row", how="left", maintain_order="left")
    return joined.with_columns(exit_code=pl.coalesce("exit_code", "told")).drop("told")


def _argument(calls: pl.DataFrame, keys: list[str], name: str) -> pl.DataFrame:
    """(row, name) of the first of some keys that the arguments hold; later keys read only what is left."""
    found = []
    left = calls.select("row", "arguments")
    for key in keys:
        read = left.with_columns(pl.col("arguments").str.json_path_match(f"$.{key}").alias(name))
        found.append(read.filter(pl.col(name).is_not_null()).select("row", name))
        left = read.filter(pl.col(name).is_null()).drop(name)
    return pl.concat(found)


def _with_command(calls: pl.DataFrame) -> pl.DataFrame:
    """The command of shell calls, the target of file calls, and the keys that repeats share."""
    rules = rulefiles.load("tools.toml")
    shell = calls.filter(pl.col("tool") == "shell").select("row", "arguments")
    shell = shell.join(_argument(shell, rules["arguments"]["command"], "command"), on="row", how="left")
    shell = shell.select("row", command=pl.coalesce("command", "arguments").fill_null(""))
    # Some harnesses log the words of the command: ["bash","-lc","make test"].
    words = (
        pl.col("command")
        .str.replace(r'^\[(?:"(?:/\w+)*/?(?:ba|z|da)?sh",\s*"-\w+",\s*)?"', "")
        .str.replace(r'"\]$', "")
    )
    words = (
        words.str.replace_all(r'",\s*"', " ")
        .str.replace_all(r"\n", "\n", literal=True)
        .str.replace_all(r"\"", '"', literal=True)
    )
    shell = shell.with_columns(
        command=pl.when(pl.col("command").str.starts_with('["')).then(words).otherwise("command")
    )
    normal = pl.col("command")
    for step in rules["normalise"]:
        normal = normal.str.replace_all(rulefiles.to_rust(step["any"]), step["to"])
    shell = shell.with_columns(normal=normal.str.strip_chars())
    files = _argument(calls.filter(pl.col("tool").is_in(["edit", "read"])), rules["arguments"]["target"], "target")
    joined = calls.join(shell, on="row", how="left", maintain_order="left")
    joined = joined.join(files, on="row", how="left", maintain_order="left")
    what = pl.coalesce("normal", "arguments").fill_null("")
    long = what.str.len_bytes() > _KEY_BYTES
    cut = pl.concat_str(what.str.head(800), what.str.len_bytes().cast(pl.String), what.str.tail(400), separator="\x1f")
    key = pl.concat_str("name", pl.when(long).then(cut).otherwise(what), separator="\x1f")
    by_target = pl.concat_str("tool", "target", separator="\x1f")
    return joined.with_columns(key=key).with_columns(repair_key=pl.coalesce(by_target, "key")).drop("normal", "target")


def _with_registry(calls: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Whether the session's registry names the tool; null where the log lists no tools."""
    listed = sessions.filter(pl.col("tools").list.len() > 0).select("session_id", "tools")
    pairs = listed.explode("tools").select("session_id", name="tools", is_known=pl.lit(value=True)).unique()
    calls = calls.join(pairs, on=["session_id", "name"], how="left", maintain_order="left")
    has_list = pl.col("session_id").is_in(listed["session_id"].to_list())
    return calls.with_columns(is_known=pl.when(has_list).then(pl.col("is_known").fill_null(value=False)))


def _suspicious(calls: pl.DataFrame) -> pl.Series:
    """Calls that may be more than ordinary: the log says so, or the text holds a tell-tale word."""
    table = errors.table()
    told = (
        (pl.col("exit_code").fill_null(0) != 0)
        | pl.col("is_error").fill_null(value=False)
        | pl.col("error").is_not_null()
    )
    rows = [calls.filter(told)["row"]]
    output = pl.col("output").fill_null("")
    cut = pl.concat_str(output.str.head(table.edge_chars), pl.lit("\n"), output.str.tail(table.edge_chars))
    long = output.str.len_bytes() > 2 * table.edge_chars
    parts = calls.filter(~told).select(
        "row", "tool", "command",
        edges=pl.concat_str(pl.lit("\n"), pl.when(long).then(cut).otherwise(output)),
        opening=output.str.head(table.opening_chars),
        start=output.str.head(table.start_chars),
        end=output.str.tail(table.start_chars),
    )  # fmt: skip
    for rule in table.prefilter:
        mine = parts.filter(pl.col("tool").is_in(list(rule.tools)))
        if rule.command:
            mine = mine.filter(pl.col("command").str.to_lowercase().str.contains(rulefiles.to_rust(rule.command)))
        rows.append(
            mine.filter(pl.col(rule.part).str.contains_any(list(rule.words), ascii_case_insensitive=True))["row"]
        )
    return pl.concat(rows).unique().sort()


def _by_log() -> pl.Expr:
    return (
        pl.when(pl.col("error").is_null())
        .then(pl.lit("ok"))
        .otherwise(pl.col("error").replace_strict(_FAILED_BY_LOG, default="ok"))
    )


def _judge(calls: pl.DataFrame) -> pl.DataFrame:
    rows: list[tuple[Any, ...]] = []
    columns = ("row", "tool", "command", "output", "exit_code", "is_error", "error", "is_known", "key")
    for row, tool, command, output, code, flag, error, known, key in calls.select(columns).iter_rows():
        text = output or ""
        if error in _FAILED_BY_LOG:
            status = _FAILED_BY_LOG[error]
            rows.append((row, status, None, None, 1.0, f"log.{error}", False, "unknown", 0, 0, None, None))
            continue
        flagged = bool(flag) or error in {"tool_error", "timeout"}
        verdict = errors.classify(errors.Call(tool, command or "", text, code, flagged, known))
        failed = verdict.status in errors.FAILURES
        rows.append(
            (row, verdict.status, "timeout" if error == "timeout" and failed else verdict.category, verdict.layer,
             verdict.confidence, verdict.rule_id, verdict.is_hidden, verdict.exit_scope, verdict.start, verdict.end,
             errors.signature(verdict, text) if failed else None, digest(key) if failed else None)
        )  # fmt: skip
    return pl.DataFrame(rows, schema=_VERDICT, orient="row")
