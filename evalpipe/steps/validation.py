"""Validation of the estimates: simulated worlds, and A/A replay of the home's own sessions.

Belongs here: which sessions are replayed, and keeping the table. Does not belong here: worlds, targets or
counting (``validation``). The table holds the newest run, whole: a number of one seed beside one of
another would be a choice among numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from evalpipe import __version__, validation
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables.validation import VALIDATION
from evalpipe.steps import kept
from evalpipe.steps.analysis import latest, open_window, require_one_key
from evalpipe.steps.context import Context
from evalpipe.steps.progress import ProgressSink, sink
from evalpipe.steps.versions import LOGIC
from evalpipe.store.files import write_atomically
from evalpipe.store.lake import Lake, read_part
from evalpipe.store.manifest import Manifest, digest_of

TABLE = VALIDATION.full_name
#: Replications of a scenario unless more are asked for: the simulation error of a coverage of 95 % is
#: then 0.3 points with four versions, and the run takes about five minutes.
REPLICATIONS = 2_000
FEWEST, MOST = 20, 100_000
_STEP = "validation"


def require_replications(n: int) -> int:
    """Refuse a number of replications that would say nothing, or take for ever.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if not FEWEST <= n <= MOST:
        what = f"replications are from {FEWEST} to {MOST:,}"
        raise EvalpipeError("BAD_ARGUMENT", what, where=str(n), fix=f"Write --replications {REPLICATIONS}.")
    return n


def code_version() -> str:
    """What was validated: the version of evalpipe, its outcomes and estimates, and the scenarios."""
    return f"{__version__}+{LOGIC['outcomes']}.{LOGIC['analysis']}.{validation.VERSION}"


def simulate(replications: int, seed: int) -> pl.DataFrame:
    """Rows of the grid and the guards, which need no home.

    Args:
        replications: Replications of a scenario.
        seed: Non-negative.
    """
    found = _simulated(replications, seed, sink())
    return validation.finding_rows(found, seed=seed, code_version=code_version())


def make_validation(context: Context, replications: int, seed: int) -> pl.DataFrame:
    """Run the grid, the guards and the replay of a home, and keep the table for the next publish.

    Args:
        context: The open home.
        replications: Replications of a scenario; replays are a share of them.
        seed: Non-negative.

    Returns:
        Rows of ``analysis.validation``.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``; ``MIXED_KEYS`` for a window whose users cannot be told apart.
    """
    require_replications(replications)
    bar = sink()
    outcomes, data = newest_outcomes(context)
    found = _simulated(replications, seed, bar)
    bar.start("replay", validation.n_replays(replications, outcomes.height), "replays")
    found += validation.replay(outcomes, context.criteria, replications, seed, lambda n: bar.advance("replay", n))
    bar.finish("replay")
    rows = validation.finding_rows(found, seed=seed, code_version=code_version(), data=data)
    _keep(context.lake, rows)
    return rows


def _simulated(replications: int, seed: int, bar: ProgressSink) -> list[validation.Finding]:
    require_replications(replications)
    bar.start(_STEP, validation.n_steps(replications), "comparisons")
    found = validation.validate(replications, seed, lambda n: bar.advance(_STEP, n))
    bar.finish(_STEP)
    return found


def newest_outcomes(context: Context) -> tuple[pl.DataFrame, str]:
    """Outcomes in the window of the newest analysis and their digest; none where nothing is analysed."""
    manifests: Sequence[Manifest] = ()
    newest = latest(context)
    if newest is not None:
        window = open_window(context, newest.key.day, newest.key.variant[-1].removeprefix("w="))
        if window is not None:
            require_one_key(window)
            manifests = window.manifests
    outcomes = context.lake.read("signals.session_outcomes", manifests)
    return outcomes, digest_of([m.content for m in manifests]) if manifests else ""


# ---- the table of the newest run


def current(lake: Lake) -> Path | None:
    """The file of the newest run, or ``None``."""
    try:
        path = kept.path_of(lake, TABLE, json.loads(_index(lake).read_text("utf-8"))["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # nothing was validated here, or it has to be validated anew
    return path if path.exists() else None


def forget_replay(lake: Lake) -> None:
    """Take what was counted of the home's own sessions out of the table: somebody in them is erased."""
    path = current(lake)
    rows = read_part(TABLE, path).filter(pl.col("part") != "replay") if path else None
    kept.forget(lake, TABLE)
    if rows is not None:
        _keep(lake, rows)


def _keep(lake: Lake, rows: pl.DataFrame) -> None:
    path = kept.keep(lake, TABLE, rows)
    write_atomically(_index(lake), json.dumps({"digest": path.stem}))


def _index(lake: Lake) -> Path:
    return lake.root / VALIDATION.layer / VALIDATION.name / "_newest.json"
