"""How criteria declare that logs hold a part of the traffic."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria, diff

Edited = Callable[..., Criteria]
GATES = "# ---- gates: declared before the results"
CHAT = '[[estimand.sampling]]\ncolumn = "scenario"\nvalue = "chat"\nkept = 0.1\n'
REST = "[[estimand.sampling]]\nkept = 1\n"


def declared(*blocks: str) -> tuple[str, str]:
    return (GATES, "\n".join((*blocks, GATES)))


def test_nothing_declared_is_hashed_as_before_it_could_be(edited: Edited) -> None:
    """Numbers of the same file must not become another measurement: series would break for nothing."""
    plain = edited()
    assert plain.estimand.sampling == ()
    optional = ("sampling", "population_weights")
    written = {key: value for key, value in asdict(plain.estimand).items() if key not in optional}
    canonical = json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert plain.sub_hash("estimand") == hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()
    assert edited(declared(CHAT)).measurement != plain.measurement


def test_a_share_is_part_of_the_measurement_however_it_is_written(edited: Edited) -> None:
    one = edited(declared(CHAT, REST))
    assert [(rule.name, rule.kept) for rule in one.estimand.sampling] == [("scenario=chat", 0.1), ("rest", 1.0)]
    assert edited(declared(CHAT, REST.replace("1", "1.0"))).hash == one.hash
    other = edited(declared(CHAT.replace("0.1", "0.2"), REST))
    assert [(change.path, change.effect) for change in diff(one, other)] == [("estimand.sampling", "breaks_series")]


@pytest.mark.parametrize(
    ("blocks", "key", "word"),
    [
        ((CHAT.replace("0.1", "10"),), "estimand.sampling[0].kept", "no share"),
        ((CHAT.replace("kept = 0.1\n", ""),), "estimand.sampling[0].kept", "missing"),
        ((CHAT.replace("0.1", '"a tenth"'),), "estimand.sampling[0].kept", "finite number"),
        ((CHAT.replace('value = "chat"\n', ""),), "estimand.sampling[0].value", "column with a value"),
        ((CHAT.replace('column = "scenario"\n', ""),), "estimand.sampling[0].column", "column with a value"),
        ((CHAT.replace('"scenario"', '"scenari"'),), "estimand.sampling[0].column", "'scenario'"),
        ((CHAT.replace('"scenario"', '"model"'),), "estimand.sampling[0].column", "what is compared"),
        ((CHAT.replace('"scenario"', '"end_status"'),), "estimand.sampling[0].column", "the version changes it"),
        ((CHAT.replace('"scenario"', '"task_type"'),), "estimand.sampling[0].column", "no task type is declared"),
        ((CHAT, CHAT), "estimand.sampling[1]", "twice"),
        ((REST, CHAT), "estimand.sampling[0]", "left for the rules below"),
        ((CHAT + "shar = 1\n",), "estimand.sampling[0].shar", "no such key"),
        (("[estimand.sampling]\nkept = 0.1\n",), "estimand.sampling", "list of tables"),
    ],
)  # fmt: skip
def test_a_broken_rule_names_the_key(edited: Edited, blocks: tuple[str, ...], key: str, word: str) -> None:
    with pytest.raises(EvalpipeError) as error:
        edited(declared(*blocks))
    assert error.value.where.endswith(f"edited.toml: {key}")
    assert word in f"{error.value.what} {error.value.fix}"
