"""The taxonomy of failures is whole: every category has a layer, and every name of others a place."""

from __future__ import annotations

from evalpipe.contracts.taxonomy import CATEGORIES, CATEGORY_LAYERS, LAYERS, OTHER_NAMES


def test_every_category_has_one_layer_and_a_meaning() -> None:
    assert len(CATEGORY_LAYERS) == len(CATEGORIES)
    assert {c.layer for c in CATEGORIES} == LAYERS.keys()
    assert all(c.meaning.endswith(".") for c in CATEGORIES)


def test_names_of_other_taxonomies_map_onto_categories() -> None:
    for names in OTHER_NAMES.values():
        for categories in names.values():
            assert categories is None or set(categories) <= CATEGORY_LAYERS.keys()


def test_the_four_layers_and_the_error_categories_leave_no_category_out() -> None:
    four = [c for categories in OTHER_NAMES["four layers of a failure"].values() for c in categories or ()]
    assert sorted(four) == sorted(CATEGORY_LAYERS)
    told = [c for categories in OTHER_NAMES["error categories of a trajectory"].values() for c in categories or ()]
    assert sorted(told) == sorted(c for c, layer in CATEGORY_LAYERS.items() if layer != "interaction")
