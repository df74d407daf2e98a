"""The plan: a pure function of landing receipts and manifests."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.store.manifest import Manifest, Part, SliceKey
from evalpipe.store.plan import DAY_STEPS, Versions, expected_inputs, is_settled, plan, rejection_receipt

D0 = date(2026, 1, 5)
DAYS = [D0 + timedelta(days=i) for i in range(8)]
AS_OF = DAYS[-1] + timedelta(days=30)
VERSIONS = Versions(dict.fromkeys(DAY_STEPS, "1"), dict.fromkeys(DAY_STEPS, ()), "key")


class Store:
    """Manifests in memory, made the way that steps make them."""

    def __init__(self) -> None:
        self.landing = {day: f"landing {day}" for day in DAYS}
        self.manifests: dict[tuple[str, date], Manifest] = {}
        self.versions = VERSIONS

    def lookup(self, step: str, day: date) -> Manifest | None:
        return self.manifests.get((step, day))

    def make(self, days: list[date], as_of: date = AS_OF) -> None:
        for step in DAY_STEPS:
            for day in days:
                inputs = expected_inputs(
                    step, day, landing=self.landing, lookup=self.lookup, versions=self.versions, as_of=as_of
                )
                assert inputs is not None
                table = {"raw": "raw.steps", "masked": "masked.sessions", "signals": "signals.hard"}.get(step)
                parts = (Part(table or "signals.session_outcomes", f"{step}{sorted(inputs.items())}", 1, 1),)
                key = SliceKey(step, day)
                self.manifests[step, day] = Manifest(key, inputs, self.versions.code[step], parts)

    def plan(self, as_of: date = AS_OF, rejected: dict[date, str] | None = None) -> dict[date, tuple[str, str]]:
        return dict(plan(self.landing, self.lookup, self.versions, as_of=as_of, rejected=rejected).stale)


def test_everything_is_stale_at_first_and_nothing_after_a_run() -> None:
    store = Store()
    assert list(store.plan()) == DAYS
    store.make(DAYS)
    assert store.plan() == {}


def test_a_late_file_makes_its_day_stale_and_the_outcomes_that_read_it() -> None:
    store = Store()
    store.make(DAYS)
    store.landing[DAYS[4]] = "more"
    stale = store.plan()
    assert stale[DAYS[4]] == ("raw", "input changed")
    # Outcomes look one day back and three ahead, so days 1 to 5 read day 4.
    assert list(stale) == DAYS[1:6]
    store.make(list(stale))
    assert store.plan() == {}


def test_a_new_rule_set_makes_masking_stale_and_leaves_raw_alone() -> None:
    store = Store()
    store.make(DAYS)
    store.versions = Versions(dict(VERSIONS.code) | {"masked": "2"}, VERSIONS.variants, "key")
    assert {step for step, _ in store.plan().values()} == {"masked"}


def test_days_settle_when_the_days_they_look_ahead_to_are_closed() -> None:
    store = Store()
    store.make(DAYS, as_of=DAYS[-1])
    assert store.plan(as_of=DAYS[-1]) == {}
    assert list(store.plan(as_of=DAYS[-1] + timedelta(days=1))) == [DAYS[5]]
    assert is_settled(DAYS[4], DAYS[7])
    assert not is_settled(DAYS[5], DAYS[7])


def test_a_refused_day_waits_until_its_input_or_the_rules_change() -> None:
    store = Store()
    receipt = rejection_receipt(DAYS[2], store.landing, store.versions)
    assert DAYS[2] not in store.plan(rejected={DAYS[2]: receipt})
    store.landing[DAYS[2]] = "other"
    assert DAYS[2] in store.plan(rejected={DAYS[2]: receipt})


@settings(max_examples=50, deadline=None)
@given(changed=st.sets(st.sampled_from(DAYS), min_size=1))
def test_making_the_stale_days_leaves_nothing_stale(changed: set[date]) -> None:
    store = Store()
    store.make(DAYS)
    for day in changed:
        store.landing[day] += " more"
    stale = store.plan()
    assert changed <= set(stale)
    store.make(list(stale))
    assert store.plan() == {}
