"""What verbs say when they are done, in words that a person can act on."""

from __future__ import annotations

import polars as pl
import pytest

from evalpipe.console import arguments, decided, erasure
from evalpipe.console.entry import version_in
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import Settings

_GATE = {
    "criterion": "not_worse", "metric": "positive_outcome", "kind": "non_inferiority", "margin": 0.05,
    "estimate": None, "lower": None, "upper": None, "df": None, "verdict": "inconclusive",
    "reasons": ["unavailable", "too_few_sessions", "no_estimate"], "measurement": "m", "window_start": None,
    "window_end": None,
}  # fmt: skip
LABELS = ["claude-code · lyra-2", "claude-code · orion-1", "codex · orion-2"]


def test_an_open_gate_gives_reasons_in_words_with_numbers_and_a_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"acme · m-1": 3, "acme · m-2": 40}
    decided.after_gate(pl.DataFrame([_GATE]), "acme · m-1", "acme · m-2", as_json=False, counts=counts, needed=20)
    told = capsys.readouterr().out
    assert "too few sessions: acme · m-1 has 3, 20 needed" in told
    assert "no estimate of the difference" in told
    assert "too_few_sessions" not in told
    assert "Next: collect more sessions" in told
    assert max(map(len, told.splitlines())) <= 160, "a line a reason"


def test_a_gate_says_that_it_was_recorded_and_what_asking_again_costs(capsys: pytest.CaptureFixture[str]) -> None:
    row = _GATE | {"verdict": "pass", "reasons": [], "estimate": 0.01, "lower": -0.01, "upper": 0.03}
    decided.after_gate(pl.DataFrame([row]), "a", "b", as_json=False, counts={}, needed=20)
    told = capsys.readouterr().out
    assert "in the warehouse (analysis.gates) after the next run" in told
    assert "asked again on another day, the bounds are wider" in told
    decided.after_gate(pl.DataFrame([row]), "a", "b", as_json=True, counts={}, needed=20)
    assert "Recorded" not in capsys.readouterr().out


@pytest.mark.parametrize(("text", "label"), [("orion-1", LABELS[1]), ("LYRA-2", LABELS[0]), ("orion-2", LABELS[2])])
def test_a_model_that_one_label_has_is_enough(text: str, label: str) -> None:
    assert arguments.version(text, LABELS) == label


def test_a_model_of_two_agents_is_not_guessed() -> None:
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        arguments.version("m-1", ["a · m-1", "b · m-1"])


def test_an_unknown_version_asks_for_the_near_one_and_lists_all_below(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EvalpipeError) as caught:
        version_in("claude-code · orion-3", LABELS)
    assert caught.value.fix.startswith("Did you mean 'claude-code · orion-1'?")
    assert len(caught.value.what) < 80
    assert [line.strip() for line in capsys.readouterr().err.splitlines()][-3:] == LABELS


def test_a_scorecard_fits_a_terminal_and_names_its_reference_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "slice": "all", "metric": "unrecovered_correction", "estimate": 0.0523, "lo": -0.0221, "hi": 0.1288,
        "n_better_than": 1, "n_worse_than": 0, "n_tied_with": 3, "n_sessions": 2738, "status": "inconclusive",
        "window_start": "2026-01-05", "window_end": "2026-01-18", "reference": "uniform",
    }  # fmt: skip
    decided.scorecard(pl.DataFrame([row]), "a · m", with_slices=False, as_json=False)
    told = capsys.readouterr().out
    assert "uniform" not in told
    assert "against the average of the versions compared" in told
    assert max(map(len, told.splitlines())) <= 100


def test_a_dry_run_of_an_erasure_says_that_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(erasure.show, "note", told.append)
    monkeypatch.setattr(erasure, "open_context", _stop)
    for is_dry, as_json in ((True, False), (False, False), (True, True)):
        with pytest.raises(InterruptedError):
            erasure.erase(Settings(), erasure.subject_of("x", None, None, None), dry_run=is_dry, as_json=as_json)
    assert [text.rpartition(" ")[2] for text in told] == ["counting.", "erasing."]


def _stop(*_: object, **__: object) -> None:
    raise InterruptedError
