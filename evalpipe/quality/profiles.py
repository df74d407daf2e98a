"""The profile of a slice: one row of numbers that the rules speak of.

Belongs here: one Polars expression a measure. Does not belong here: bounds and verdicts. A profile
holds no value of a session, so whatever judges it cannot leak one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from evalpipe.quality.rules import Rule, load_rules


def profile(table: str, frame: pl.DataFrame | pl.LazyFrame, rules: Sequence[Rule] | None = None) -> pl.DataFrame:
    """Reduce a slice to the numbers that its rules judge.

    Args:
        table: Full contract name.
        frame: Rows of that table, in its contract's columns.
        rules: Rules, of which those of the table are used; the shipped ones by default.

    Returns:
        One row: the table's name in column ``table``, and a Float64 column a rule, null where the
        number does not exist, as a share of no rows.
    """
    chosen = [rule for rule in (load_rules() if rules is None else rules) if rule.table == table]
    expressions = [_MEASURES[rule.measure](rule).cast(pl.Float64).fill_nan(None).alias(rule.column) for rule in chosen]
    return frame.lazy().select(pl.lit(table).alias("table").first(), *expressions).collect()


def worst(table: str, profiles: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """One profile that breaks a rule exactly where one of many does.

    Args:
        table: Full contract name.
        profiles: One row a slice, with a column a rule of the table.
        rules: Rules, of which those of the table are used.

    Returns:
        One row in the form of :func:`profile`: of each number the one that lies farthest outside its
        bounds, or nearest to them where none is outside; null where no slice has the number.
    """
    chosen = [rule for rule in rules if rule.table == table]
    farthest = [
        pl.col(rule.column).drop_nulls().sort_by(_excess(rule).drop_nulls()).last().alias(rule.column)
        for rule in chosen
    ]
    return profiles.select(pl.lit(table).alias("table").first(), *farthest)


def _excess(rule: Rule) -> pl.Expr:
    value = pl.col(rule.column)
    sides = [rule.low - value] if rule.low is not None else []
    sides += [value - rule.high] if rule.high is not None else []
    return pl.max_horizontal(sides)


def _kept(rule: Rule) -> pl.Expr:
    keep = pl.lit(value=True)
    for name, values in rule.where:
        keep = keep & pl.col(name).is_in(list(values)).fill_null(value=False)
    return keep


def _column(rule: Rule, name: str) -> pl.Expr:
    return pl.col(name).filter(_kept(rule)) if rule.where else pl.col(name)


def _of(rule: Rule) -> pl.Expr:
    return _column(rule, rule.of[0])


def _rows(rule: Rule) -> pl.Expr:
    return _kept(rule).sum() if rule.where else pl.len()


def _duplicate_share(rule: Rule) -> pl.Expr:
    keys = pl.struct(rule.of)
    keys = keys.filter(_kept(rule)) if rule.where else keys
    return 1 - keys.n_unique() / keys.len()


def _share(rule: Rule) -> pl.Expr:
    """Share of the rows that say something: a null is neither among those that count nor against."""
    hit = _of(rule).is_in(list(rule.equal))
    if not rule.weight:
        return hit.mean()
    weight = _column(rule, rule.weight)
    return (hit * weight).sum() / weight.filter(hit.is_not_null()).sum()


def _ratio(rule: Rule) -> pl.Expr:
    top, bottom = _of(rule), _column(rule, rule.over)
    both = top.is_not_null() & bottom.is_not_null()
    return pl.when(bottom.filter(both).sum() > 0).then(top.filter(both).sum() / bottom.filter(both).sum())


def _unaccounted(rule: Rule) -> pl.Expr:
    """Added up without sign, so that a row too many does not hide a row too few."""
    return (_of(rule) - pl.sum_horizontal([_column(rule, name) for name in rule.minus])).abs().sum()


_MEASURES: dict[str, Callable[[Rule], pl.Expr]] = {
    "rows": _rows,
    "distinct": lambda rule: _of(rule).drop_nulls().n_unique(),
    "null_share": lambda rule: _of(rule).is_null().mean(),
    "duplicate_share": _duplicate_share,
    "share": _share,
    "ratio": _ratio,
    "unaccounted": _unaccounted,
    "min": lambda rule: _of(rule).min(),
    "median": lambda rule: _of(rule).median(),
    "max": lambda rule: _of(rule).max(),
}
