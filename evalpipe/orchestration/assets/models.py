"""The asset of the borderline classifier: trained from labelled files, apart from any day.

Belongs here: running the step and telling what it reached. Does not belong here: the fit, or using it:
extraction uses the weights that evalpipe ships.
"""

import dagster as dg

from evalpipe.orchestration.carry import coded
from evalpipe.orchestration.partitions import SINGLE_RUN
from evalpipe.orchestration.resources import HomeResource
from evalpipe.settings import open_home
from evalpipe.steps.borderline import make_home_model

BORDERLINE = dg.AssetKey(["models", "borderline"])


@dg.asset(
    key=BORDERLINE,
    group_name="signals",
    kinds={"scipy"},
    backfill_policy=SINGLE_RUN,
    description="Weights and card of a classifier of borderline turns, trained on the labelled files that the "
    "setting labels names. Candidates for review only.",
)
def borderline_model(home: HomeResource) -> dg.MaterializeResult[None]:
    """Train, measure and write the classifier of a home."""
    with coded():
        made = make_home_model(open_home(home.settings()))
    card = made.card
    held = {name: found["average_precision"]["negative"] for name, found in card["measured"].items()}
    return dg.MaterializeResult(
        metadata={
            "rows": card["n_rows"],
            "labels_digest": card["labels_digest"],
            "model_version": card["model_version"],
            "average_precision_of_negative": held,
        }
    )
