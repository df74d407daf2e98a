"""Every rule by which a copy does not count is told in words of its own."""

from __future__ import annotations

import duckdb

from evalpipe.console.summary import _COPIES
from evalpipe.contracts.tables.raw import COPY_RULES


def test_each_rule_has_words_of_its_own() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA analysis")
        connection.execute(
            "CREATE TABLE analysis.session_copies "
            "(rule VARCHAR, source VARCHAR, counted_source VARCHAR, n_copies INT, n_sessions INT)"
        )
        for rule in COPY_RULES:
            connection.execute("INSERT INTO analysis.session_copies VALUES (?, 'a', 'b', 1, 1)", [rule])
        told = [row[0] for row in connection.execute(_COPIES).fetchall()]
    assert None not in told
    assert len(set(told)) == len(COPY_RULES)
