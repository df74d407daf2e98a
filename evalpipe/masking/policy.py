"""Field policy: what happens to every column, and the audit counts of it.

Belongs here: applying ``fields.toml`` to a frame, re-keying ids, masking short labels once per distinct
value, counting. Does not belong here: long texts and what a session teaches (``kernel``).
"""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.model import Table
from evalpipe.contracts.tables import masked
from evalpipe.masking.plan import Hit, MaskPlan

DEFAULT_POLICY = "mask"


class Counts:
    """Audit counts by source, field, entity, subtype and rule: rows, hits, bytes."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, source: str, column: str, hits: list[Hit], times: int = 1) -> None:
        """Count what was replaced in one value that occurs ``times`` times."""
        seen = set()
        for hit in hits:
            key = (source, column, hit.entity, hit.subtype, hit.rule_id)
            row = self._rows[key]
            row[0] += 0 if key in seen else times
            row[1] += times
            row[2] += hit.n_bytes * times
            seen.add(key)

    def frame(self, plan: MaskPlan) -> pl.DataFrame:
        """The counts as ``masked.redactions``."""
        names = ("source", "field", "entity", "subtype", "rule_id")
        rows = [
            {
                **dict(zip(names, key, strict=True)),
                "ruleset": plan.ruleset_digest(),
                "key_epoch": plan.key.epoch,
                "n_rows": n[0],
                "n_hits": n[1],
                "n_bytes": n[2],
            }
            for key, n in sorted(self._rows.items())
        ]
        return render.frame(masked.REDACTIONS, rows)


def policy_of(plan: MaskPlan, table: str, column: str) -> str:
    """What happens to a column; a column that no policy names is masked as text."""
    return plan.rules.fields.get(table, {}).get(column, DEFAULT_POLICY)


def apply_policy(
    frame: pl.DataFrame,
    source: Table,
    target: Table,
    context: pl.DataFrame | None,
    plan: MaskPlan,
    counts: Counts,
    done: dict[str, pl.Series],
) -> pl.DataFrame:
    """Apply the field policy to a frame.

    Args:
        frame: Raw frame.
        source, target: Contracts of layer 1 and layer 2.
        context: ``tenant`` and ``source`` of every row, where rows belong to sessions.
        plan: Key and rule set.
        counts: Audit counts to add to.
        done: Columns that are masked already.

    Returns:
        A frame of the target contract, rows in the order of ``frame``.
    """
    columns: list[pl.Series] = []
    for name in frame.columns:
        if name not in target:
            continue
        policy = policy_of(plan, source.name, name)
        series = frame[name]
        if name in done:
            series = done[name]
        elif policy.startswith("rekey:"):
            series = _rekey(series, policy.removeprefix("rekey:"), context, plan)
        elif policy == "mask":
            series = _mask_labels(series, f"{source.name}.{name}", context, plan, counts)
        elif policy == "drop":
            continue
        columns.append(series.alias(name))
    return render.conform(target, pl.DataFrame(columns))


def _rekey(series: pl.Series, kind: str, context: pl.DataFrame | None, plan: MaskPlan) -> pl.Series:
    kind, _, scope = kind.partition("/")
    tenants = context["tenant"] if scope and context is not None else pl.repeat("", len(series), eager=True)
    pairs = pl.DataFrame({"value": series, "tenant": tenants})
    distinct = pairs.unique().drop_nulls()
    tokens = [plan.rekey(kind, value, tenant) if value else value for value, tenant in distinct.iter_rows()]
    keyed = distinct.with_columns(pl.Series("token", tokens, dtype=pl.String))
    return pairs.join(keyed, on=["value", "tenant"], how="left", maintain_order="left")["token"]


def _mask_labels(
    series: pl.Series, column: str, context: pl.DataFrame | None, plan: MaskPlan, counts: Counts
) -> pl.Series:
    """Mask short labels once per distinct value, tenant and source."""
    is_list = isinstance(series.dtype, pl.List)
    if series.dtype != pl.String and not is_list:
        return series
    where = (
        context.select("tenant", "source")
        if context is not None
        else pl.DataFrame({"tenant": [""] * len(series), "source": [""] * len(series)})
    )
    rows = where.with_columns(value=series, row=pl.int_range(len(series)))
    flat = rows.explode("value") if is_list else rows
    distinct = flat.group_by("value", "tenant", "source").len().drop_nulls("value").sort("value", "tenant", "source")
    out = []
    for value, tenant, source, n in distinct.iter_rows():
        masked_value, hits = plan.mask_text(value, tenant)
        counts.add(source, column, hits, n)
        out.append(masked_value)
    tokens = distinct.with_columns(pl.Series("masked", out, dtype=pl.String))
    joined = flat.join(tokens, on=["value", "tenant", "source"], how="left", maintain_order="left")
    if not is_list:
        return joined["masked"]
    if all(a == b for a, b in zip(distinct["value"], out, strict=True)):
        return series
    lists = joined.filter(pl.col("value").is_not_null()).group_by("row", maintain_order=True).agg("masked")
    empty = pl.when(series.is_null()).then(None).otherwise(pl.lit([], dtype=pl.List(pl.String)))
    return (
        rows.select("row")
        .join(lists, on="row", how="left", maintain_order="left")
        .select(pl.coalesce("masked", empty))["masked"]
    )
