"""What corrections override: the values, whose doing they were, and what follows from it."""

from __future__ import annotations

import pytest

from evalpipe.contracts.tables.signals import SEMANTIC
from evalpipe.contracts.tiers import Tier, withheld
from evalpipe.signals import SignalsPart, extract_part, overrides
from evalpipe.signals.text import fold
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

EXAMPLES = [
    (frame, example) for own in overrides.rules().frames.values() for frame in own for example in frame.examples
]


def extract(*talks: Talk) -> SignalsPart:
    return extract_part(*frames(*talks), EXTRACTION)


@pytest.mark.parametrize(("frame", "example"), EXAMPLES, ids=lambda v: getattr(v, "id", ""))
def test_frames_read_both_values(frame: overrides.Frame, example: dict[str, str]) -> None:
    prose = fold(example["text"])
    assert frame.any.search(prose)
    read = overrides.values(prose, frame.lang)
    assert read is not None
    for name, span in (("old", read.old), ("new", read.new)):
        assert (prose[slice(*span)] if span else None) == example.get(name)


def test_a_correction_keeps_both_values_and_the_step_that_it_overrides() -> None:
    talk = Talk().user("start the server").agent("On it.").bash("serve --port 3000").agent("It is running.")
    talk.user("No, it should be 8080, not 3000")
    row = extract(talk).semantic.row(0, named=True)
    assert row["signal"] == "correction"
    assert (row["old_value"], row["new_value"], row["agent_seq"]) == ("3000", "8080", 2)


def test_what_only_the_agents_action_tells_is_a_correction() -> None:
    def talk(name: str, done: str) -> Talk:
        return (
            Talk(name)
            .user("name the helper module")
            .agent(done)
            .user("let's go with stats.go rather than session_helpers.go")
        )

    part = extract(talk("s1", "Created session_helpers.go."), talk("s2", "Created it."))
    rows = part.semantic.filter(part.semantic["signal"] == "correction")
    assert rows["session_id"].to_list() == ["s1"]
    assert rows["pattern_id"].item() == overrides.RULE
    assert (rows["old_value"].item(), rows["new_value"].item()) == ("session_helpers.go", "stats.go")


@pytest.mark.parametrize(
    "user",
    ["now use tabs rather than spaces", "use tabs rather than spaces?", "my mistake, use tabs rather than spaces"],
)
def test_new_wishes_questions_and_own_mistakes_are_not_promoted(user: str) -> None:
    part = extract(Talk().user("format the file").agent("Formatted with spaces.").user(user))
    assert "correction" not in part.semantic["signal"].to_list()
    told = extract(Talk().user("format the file").agent("Formatted with spaces.").user("use tabs rather than spaces"))
    assert told.semantic["signal"].to_list() == ["correction"]


def test_who_rejects_what_they_asked_for_changed_their_mind() -> None:
    part = extract(Talk().user("paint the button red").agent("The button is red now.").user("blue, not red"))
    assert "correction" not in part.semantic["signal"].to_list()
    row = part.candidates.filter(part.candidates["signal"] == "correction").row(0, named=True)
    assert (row["old_value"], row["new_value"], row["confidence"]) == ("red", "blue", 0.5)


@pytest.mark.parametrize("asked", ["paint the button, but never red", "paint the button blue, we had red before"])
def test_a_request_that_forbade_the_value_or_asked_for_the_other_was_not_met(asked: str) -> None:
    part = extract(Talk().user(asked).agent("The button is red now.").user("blue, not red"))
    assert "correction" in part.semantic["signal"].to_list()


def test_a_value_never_holds_half_a_pseudonym() -> None:
    token = "<PERSON:e1:abcdefghijklmnop>"
    talk = Talk().user("写邮件").agent("已完成。").user(f"不对，不是小王{token}发，是小李发")
    for value in extract(talk).semantic["old_value"].drop_nulls():
        assert "<" not in value or token in value


def test_values_are_text_that_the_strictest_tier_does_not_keep() -> None:
    assert {"old_value", "new_value"} <= set(withheld(SEMANTIC, Tier.VECTORS))
    assert "agent_seq" not in withheld(SEMANTIC, Tier.VECTORS)
