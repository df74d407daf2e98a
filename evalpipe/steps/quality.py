"""Quality of signals as tables: what reviews, the golden set and the rates of detectors say today.

Belongs here: gathering what estimates need from the lake, and keeping the tables for a publish. Does not
belong here: estimates (``review``).

The tables are a function of the lake, made with every publish, one file each that is named by its
content. They hold counts and rates, no session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from evalpipe import review, signals
from evalpipe.contracts.signals import BY_NAME
from evalpipe.contracts.tables.reviews import AGREEMENT, DRIFT, QUALITY
from evalpipe.steps import kept, reviews
from evalpipe.steps.context import Context
from evalpipe.store.files import write_atomically
from evalpipe.store.lake import Lake, read_part
from evalpipe.store.manifest import Manifest, digest_of

#: Tables that are made here.
TABLES = tuple(table.full_name for table in (QUALITY, AGREEMENT, DRIFT))
#: Raise it when the same lake would give other tables.
VERSION = "4"
#: Model of sessions whose log names none.
NO_MODEL = "(none)"
_SESSIONS = pl.Schema({
    "language": pl.String, "source": pl.String, "day": pl.Date, "n_turns": pl.Int64, "n_covered": pl.Int64,
    "n_without_prose": pl.Int64, "n_unknown_language": pl.Int64,
})  # fmt: skip
_ROWS = pl.Schema({
    "signal": pl.String, "lang": pl.String, "rule": pl.String, "confidence": pl.Float64, "model": pl.String,
    "source": pl.String, "day": pl.Date, "n": pl.Int64,
})  # fmt: skip


def make(context: Context) -> dict[str, Path]:
    """Make the tables, and keep each as a file of the lake; what is as it would be stays.

    Args:
        context: The open home.

    Returns:
        The file of each table.
    """
    lake = context.lake
    manifests = [m for m in lake.manifests("signals") if m.key.variant == context.versions.variants["signals"]]
    made_from = _made_from(context, manifests)
    index = lake.root / "signals" / "quality" / "_made.json"
    known = _known(index)
    if known.get("made_from") == made_from:
        files = {name: kept.path_of(lake, name, known.get(name, "")) for name in TABLES}
        if all(path.exists() for path in files.values()):
            return files
    opinions = reviews.pooled(lake)
    sessions, rows = counted(context, manifests)
    found = {
        QUALITY.full_name: _quality(context, opinions, rows),
        AGREEMENT.full_name: review.agreement(opinions),
        DRIFT.full_name: review.drift(
            sessions, rows.filter(pl.col("lang") != signals.ANY), opinions, review.limits(), signals.detector_version
        ),
    }
    files = {name: kept.keep(lake, name, data) for name, data in found.items()}
    told = {"made_from": made_from, **{name: path.stem for name, path in files.items()}}
    write_atomically(index, json.dumps(told, sort_keys=True))
    return files


def demoted_when_published(lake: Lake) -> frozenset[tuple[str, str]] | None:
    """Signals that the last publish showed as demoted, as (signal, language); null before the first one."""
    path = kept.path_of(
        lake, QUALITY.full_name, _known(lake.root / "signals" / "quality" / "_made.json").get(QUALITY.full_name, "")
    )
    if not path.exists():
        return None
    now = read_part(QUALITY.full_name, path).filter(pl.col("is_current") & (pl.col("model") == "all"))
    out_of = ["demoted"] if review.limits().unproven_counts else ["demoted", "unproven"]
    now = now.filter(pl.col("status").is_in(out_of) & pl.col("signal").is_in(list(BY_NAME)))
    return frozenset(now.select("signal", "lang").iter_rows())


def _made_from(context: Context, manifests: Sequence[Manifest]) -> str:
    """Digest of all that the tables are made from."""
    masked = [m.content_of("masked.sessions") for one in manifests if (m := context.lookup("masked", one.key.day))]
    opinions = [path.name for table in reviews.APPENDED for path in context.lake.appended(table)]
    rules = [
        str(review.limits()),
        review.guide().version,
        context.criteria.sub_hash("extraction"),
        context.criteria.sub_hash("outcomes"),
    ]
    return digest_of([VERSION, [m.content for m in manifests], masked, opinions, rules])


def _known(index: Path) -> dict[str, str]:
    try:
        found = json.loads(index.read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # the tables are made anew
    return found if isinstance(found, dict) else {}


def counted(context: Context, manifests: Sequence[Manifest]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions and signals that count, added up day by day.

    Args:
        context: The open home.
        manifests: Slices of signals.

    Returns:
        Rows by ``language, source, day`` for :func:`evalpipe.review.drift`, and ``signal, lang, rule, confidence,
        model, source, day, n``; signals of the environment have the language ``any``.
    """
    sessions: list[pl.DataFrame] = [pl.DataFrame(schema=_SESSIONS)]
    rows: list[pl.DataFrame] = [pl.DataFrame(schema=_ROWS)]
    for manifest in manifests:
        masked = context.lookup("masked", manifest.key.day)
        if masked is None:
            continue
        day = pl.lit(manifest.key.day).alias("day")
        about = context.lake.read("masked.sessions", [masked], ["session_id", "model", "source"])
        about = about.with_columns(pl.col("model").fill_null(NO_MODEL))
        spoken = context.lake.read("signals.session_features", [manifest], ["session_id", "language", "n_human_turns"])
        spoken = spoken.join(about, on="session_id", how="inner")
        by = ("language", "source")
        read = context.lake.read("signals.turn_coverage", [manifest]).rename({"n_turns": "n_covered"})
        spoken = spoken.join(read, on="session_id", how="left").rename({"n_human_turns": "n_turns"})
        counts = [name for name in _SESSIONS if name.startswith("n_")]
        summed = spoken.group_by(by).agg(pl.col(counts).sum().cast(pl.Int64))
        sessions.append(summed.select(*by, day, *counts))
        found = _signals(context, manifest).join(about, on="session_id", how="inner")
        kinds = [name for name in _ROWS if name not in ("day", "n")]
        rows.append(found.group_by(kinds).agg(n=pl.len().cast(pl.Int64)).select(*kinds, day, "n"))
    return pl.concat(sessions).sort(pl.all()), pl.concat(rows).sort(pl.all())


def _signals(context: Context, manifest: Manifest) -> pl.DataFrame:
    hard = context.lake.read("signals.hard", [manifest], ["session_id", "signal", "rule_id", "confidence"])
    said = context.lake.read(
        "signals.semantic", [manifest], ["session_id", "signal", "lang", "pattern_id", "confidence"]
    )
    hard = hard.filter(pl.col("confidence") >= context.criteria.extraction.min_confidence)
    hard = hard.rename({"rule_id": "rule"}).with_columns(lang=pl.lit(signals.ANY))
    return pl.concat([said.rename({"pattern_id": "rule"}), hard], how="diagonal")


def _quality(context: Context, opinions: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    by = ("signal", "lang", "model")
    return review.quality(
        opinions,
        rows.group_by(by).agg(pl.col("n").sum()).sort(by),
        review.limits(),
        signals.detector_version,
        rules=signals.rule_counts(),
        golden=signals.golden(context.criteria.extraction.min_confidence),
        scored=signals.scored(context.criteria),
    )


def forget(lake: Lake) -> None:
    """Delete the files of all publishes: their counts hold somebody who is erased."""
    for table in TABLES:
        kept.forget(lake, table)
    (lake.root / "signals" / "quality" / "_made.json").unlink(missing_ok=True)


def alarms(tables: Mapping[str, pl.DataFrame]) -> dict[str, list[str]]:
    """What is wrong with signals, as lines for a person.

    Args:
        tables: The tables of :data:`TABLES`.

    Returns:
        ``demoted``, ``unequal`` (precision differs between models), ``golden`` (the golden set is under
        the threshold), ``drifting`` and ``drifted`` (beyond the limit that warns, that fails), the last
        two of each subject's newest week.
    """
    now = tables[QUALITY.full_name].filter(pl.col("is_current") & (pl.col("model") == "all"))
    single = now.filter(pl.col("signal").is_in(list(BY_NAME)))
    fallen = single.filter(pl.col("status") == "demoted")
    unequal = single.filter("is_unequal")
    golden = single.filter(pl.col("golden_precision") < pl.col("threshold"))
    drift = tables[DRIFT.full_name]
    # Reviews speak of the weeks that they were drawn from, which need not be the newest.
    is_reviewed = pl.col("measure").is_in(review.REVIEWED)
    drift = drift.filter((pl.col("period") == pl.col("period").filter(~is_reviewed).max()) | is_reviewed)
    return {
        "demoted": [
            f"{row['signal']}@{row['lang']}: {row['n_reviewed']} reviewed, bound {row['precision_lo']:.2f} under "
            f"{row['threshold']:.2f}"
            for row in fallen.iter_rows(named=True)
        ],
        "unequal": [
            f"{row['signal']}@{row['lang']}: precision differs between models (p = {row['p_models']:.3f})"
            for row in unequal.iter_rows(named=True)
        ],
        "golden": [
            f"{row['signal']}@{row['lang']}: {row['golden_precision']:.2f} on {row['n_golden']} examples"
            for row in golden.iter_rows(named=True)
        ],
        **{
            name: [
                f"{row['measure']} {row['subject']}@{row['lang']}: {row['value']:.2f} in the week of {row['period']}"
                for row in drift.filter(status=status).iter_rows(named=True)
            ]
            for name, status in (("drifting", "warn"), ("drifted", "fail"))
        },
    }
