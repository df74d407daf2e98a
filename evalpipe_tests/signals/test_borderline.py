"""The borderline classifier: features, training, the shipped weights with their card, and its candidates."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.signals.borderline import candidates, features, labels, measure, model, tokens, train
from evalpipe.signals.borderline.classes import CLASSES, class_of, targets
from evalpipe.signals.labelled import LabelledTurn
from evalpipe.signals.part import extract_part
from evalpipe.signals.turns import human_turns
from evalpipe.steps import borderline as steps
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

MODELS = data_dir() / "models"
#: Average precision (negative, positive) of a fit on the sample, on the held-out English turns.
SAMPLE_REACHES = (0.722, 0.652)


def turn(text: str, label: str = "neutral", *, session: str = "s", number: int = 1, **more: Any) -> LabelledTurn:
    return LabelledTurn(f"{session}-{number}", "en", text, "do it", "I changed the file.", False, label,
                        frozenset({label, *more.pop("also", ())}), more.pop("subtype", None), session)  # fmt: skip


# ---- characters and words


def words_of(texts: list[str]) -> tokens.Words:
    return tokens.words(tokens.characters(pl.Series(texts, dtype=pl.String)))


def test_words_are_runs_of_letters_and_marks_and_single_signs_where_there_are_no_spaces() -> None:
    texts = ["no, use pip3 ok?", "", "不对，用第二个", "नहीं हिंदी", "no", "👍👍", "???"]
    assert words_of(texts).counts.tolist() == [5, 0, 6, 2, 1, 2, 3]


def test_a_word_has_one_hash_wherever_it_stands() -> None:
    found = words_of(["again and again", "it fails again", "AGAIN"])
    first, third, other = found.hashes[0], found.hashes[2], found.hashes[5]
    assert first == third == other
    assert len(set(found.hashes[:6].tolist())) == 4


def test_overlap_is_the_share_of_the_smaller_text() -> None:
    own = words_of(["use the second column", "a b", "", "第二列", "one two three"])
    other = words_of(["please read column two of the file", "alpha", "x", "第二列不对", "four five sixes"])
    found = tokens.overlap(own, other)
    assert found == pytest.approx([0.5, 0.0, 0.0, 1.0, 0.0], abs=0.01)


def test_features_of_a_turn_do_not_depend_on_its_neighbours() -> None:
    texts = ["no, the other one", "", "还是不行", "why???\nagain", "x" * 700]
    together = features.features(features.moments(texts, ["a"] * 5, ["Done."] * 5)).matrix()
    for i, text in enumerate(texts):
        alone = features.features(features.moments([text], ["a"], ["Done."])).matrix()
        assert abs(together[i] - alone).max() < 1e-6, text


def test_product_and_matrix_are_the_same_features() -> None:
    found = features.features(
        features.moments(["no, use b", "", "好的"], [None, "x", "用b"], ["Which one?", None, "完成"])
    )
    rng = np.random.default_rng(0)
    hashed = rng.normal(size=(features.BUCKETS, 3)).astype(np.float32)
    numbers = rng.normal(size=(len(features.NUMBERS), 3)).astype(np.float32)
    whole = found.matrix() @ np.vstack([hashed, numbers])
    assert np.allclose(found.times(hashed, numbers), whole, atol=1e-4)


def test_what_the_agent_did_changes_the_features_of_the_same_words() -> None:
    asked, done = "Which of the two files do you want?", "I've fixed it, all tests pass."
    matrix = features.features(features.moments(["no", "no"], ["fix it"] * 2, [asked, done])).matrix()
    numbers = matrix[:, features.BUCKETS :].toarray()
    assert dict(zip(features.NUMBERS, numbers[0], strict=True))["agent_asked"] == 1
    assert dict(zip(features.NUMBERS, numbers[1], strict=True))["agent_claimed_done"] == 1
    assert abs(matrix[0, : features.BUCKETS] - matrix[1, : features.BUCKETS]).max() > 0  # the first words


def test_training_reads_a_turn_as_extraction_does() -> None:
    before, agent, text = "Fix `a.py`, please?", "I've fixed it.\nAll tests pass. Anything else?", "No, `b.py`! ```x```"
    talk = Talk().user(before).agent(agent).user(text)
    live = human_turns(frames(talk)[1]).with_columns(before=pl.col("prose").shift(1).fill_null(""))[1:]
    trained = features.moments([text], [before], [agent])
    assert abs(features.features(live).matrix() - features.features(trained).matrix()).max() == 0


# ---- training


def sample() -> list[LabelledTurn]:
    files = [data_dir() / "corpus" / "turns" / f"{lang}.train.txt" for lang in ("en", "zh")]
    return labels.read(files)[::8]


def test_the_same_rows_give_the_same_model_in_any_order() -> None:
    rows = sample()[:60]
    one, other = train.train(rows, iterations=8), train.train(rows[::-1], iterations=8)
    assert one.labels == other.labels
    assert model.to_bytes(one.model) == model.to_bytes(other.model)


def test_a_row_of_weight_three_counts_as_three_rows() -> None:
    rows = labels.with_context(sample())[:40]
    heavy = train.train([*rows[:39], replace(rows[39], weight=3)], iterations=10)
    copies = [replace(rows[39], id=f"{rows[39].id}{i}") for i in range(3)]
    thrice = train.train([*rows[:39], *copies], iterations=10)
    assert np.allclose(heavy.model.bias, thrice.model.bias, atol=1e-3)


def test_an_opening_is_trained_with_the_moment_of_another_turn_of_its_language() -> None:
    opener = replace(turn("make a list", number=0), prev_user=None, prev_agent_tail=None, is_opener=True)
    foreign = replace(opener, lang="fr")
    placed = train.with_moments([opener, turn("no", "correction"), foreign])
    assert (placed[0].prev_user, placed[0].prev_agent_tail, placed[0].label) == (
        "do it",
        "I changed the file.",
        "neutral",
    )
    assert placed[1:] == [turn("no", "correction"), foreign]


def test_training_on_a_sample_reaches_what_it_did() -> None:
    held = labels.with_context(labels.read([data_dir() / "corpus" / "turns" / "en.held.txt"]))
    trained = train.train(sample(), iterations=15)
    found = measure.measure(held, trained.model.probabilities(train.moments_of(held)))
    reached = found.average_precision["negative"], found.average_precision["positive"]
    assert reached == pytest.approx(SAMPLE_REACHES, abs=0.03)
    assert 0.3 < trained.model.temperature < 3


def test_targets_of_a_mixed_turn_give_its_primary_label_the_most() -> None:
    rows = [turn("works, but", "complaint", also=("confirm",), subtype="failure_report"), turn("bah", "complaint")]
    shares = targets(rows)
    assert shares.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert shares[0, CLASSES.index("complaint.failure_report")] == pytest.approx(0.8)
    assert shares[0, CLASSES.index("confirm")] == pytest.approx(0.2)
    assert class_of(rows[1]) == CLASSES.index("complaint.failure_report")


def test_labels_of_other_layouts_and_bad_rows_are_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "label": "praise"}\n{"text": "a", "label": "happy"}\n', "utf-8")
    with pytest.raises(EvalpipeError, match=r"LABELS_INVALID \[.*rows\.jsonl:2\].*label"):
        labels.read([path])
    path.write_text('{"tool": "Bash", "output": "x", "status": "ok"}\n', "utf-8")
    with pytest.raises(EvalpipeError, match="LABELS_INVALID"):
        labels.read([path])
    path.write_text("\n", "utf-8")
    with pytest.raises(EvalpipeError, match="LABELS_INVALID"):
        labels.read([path])
    with pytest.raises(EvalpipeError, match="SOURCE_NOT_FOUND"):
        labels.read([tmp_path / "none.txt"])


def test_adjudications_overrule_labels(tmp_path: Path) -> None:
    path = tmp_path / "final.jsonl"
    path.write_text('{"id": "s-1", "final": "correction"}\n', "utf-8")
    (row,) = labels.adjudicated([turn("no", "complaint")], path)
    assert (row.label, row.labels) == ("correction", {"correction"})


# ---- measures


def test_average_precision_knows_no_order_among_equals() -> None:
    truth = np.array([True, False, True, False])
    assert measure.average_precision(np.array([0.9, 0.8, 0.7, 0.1], np.float32), truth) == pytest.approx(
        (1 + 2 / 3) / 2
    )
    assert measure.average_precision(np.full(4, 0.5, np.float32), truth) == pytest.approx(0.5)
    assert measure.average_precision(np.zeros(2, np.float32), np.array([True, True])) is None


def test_calibration_error_is_the_distance_of_certainty_and_truth() -> None:
    top = np.array([0.95, 0.95, 0.55, 0.55], np.float32)
    assert measure.calibration_error(top, np.array([True, True, True, False])) == pytest.approx(0.05, abs=1e-6)
    assert measure.calibration_error(top, np.array([False, False, True, False])) == pytest.approx(0.5, abs=1e-6)


# ---- the shipped weights


def test_the_shipped_weights_are_small_and_read_back_as_written() -> None:
    path = model.shipped_path()
    assert path.stat().st_size < 200_000
    assert model.to_bytes(model.load(path)) == path.read_bytes()
    assert model.load(path).digest == model.shipped().digest


def test_the_card_is_of_the_shipped_weights_and_of_the_corpus_that_lies_here() -> None:
    card = json.loads((MODELS / "card.json").read_text("utf-8"))
    trained, held = steps.shipped_corpus()
    rows = labels.read(trained)
    assert card["model_version"] == model.shipped().digest
    assert (card["n_rows"], card["labels_digest"]) == (len(rows), train.labels_digest(rows))
    assert (MODELS / "MODEL_CARD.md").read_text("utf-8") == steps.page(card)
    for name, files in steps.sets_of(held).items():
        assert close(card["measured"][name], steps.measures(model.shipped(), labels.read(files))), name


def close(one: Any, other: Any) -> bool:
    """Equal but for what other processors round otherwise."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, int):
        return abs(one - other) <= 2
    return one == other or abs(one - other) <= 0.01


def test_weights_of_other_features_and_damaged_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (b"", b"PK\x03\x04 nothing", model.shipped_path().read_bytes()[:2000]):
        path = tmp_path / "weights.npz"
        path.write_bytes(content)
        with pytest.raises(EvalpipeError, match="MODEL_INVALID"):
            model.load(path)
    with pytest.raises(EvalpipeError, match="MODEL_INVALID"):
        model.load(tmp_path / "none.npz")
    monkeypatch.setattr(features, "VERSION", "other")
    with pytest.raises(EvalpipeError, match="made for other features"):
        model.load(model.shipped_path())


def damaged() -> Iterator[bytes]:
    whole = model.shipped_path().read_bytes()
    method = bytearray(whole)
    method[whole.rindex(b"PK\x01\x02") + 10] = 99  # a compression that nobody knows
    yield bytes(method)
    stream = bytearray(whole)
    stream[60:90] = bytes(30)
    yield bytes(stream)
    with np.load(io.BytesIO(whole)) as file:
        parts = dict(file)
    for changed in (
        {"bias": parts["bias"] * np.float32(np.nan)}, {"hashed": parts["hashed"].astype(np.float64)},
        {"temperature": np.array([1.0, 2.0])}, {"temperature": np.float64("inf")}, {"temperature": np.array(["x"])},
        {"scale": parts["scale"].astype("U8")},
    ):  # fmt: skip
        out = io.BytesIO()
        np.savez_compressed(out, **(parts | changed))
        yield out.getvalue()


@pytest.mark.parametrize("content", list(damaged()), ids=range(8))
def test_weights_of_another_kind_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights.npz").write_bytes(content)
    with pytest.raises(EvalpipeError, match="MODEL_INVALID"):
        model.load(tmp_path / "weights.npz")


def test_a_card_tells_what_was_trained_on_and_whose_the_labels_are(tmp_path: Path) -> None:
    rows = [turn("it still fails", "complaint", session=f"s{i}") for i in range(3)]
    fitted = train.Trained(model.shipped(), "x", len(rows), 1)
    card = steps.card_of(fitted, rows, {"ok": rows, "other": [turn("great", "praise")]}, None)
    assert card["licence"] is None
    assert card["measured"]["ok"]["n_trained_on"] == 3
    assert "n_trained_on" not in card["measured"]["other"]
    text = steps.page(card)
    assert "**3 of them trained on" in text
    assert text.count("none of them trained on") == 1
    assert "licence not stated" in text


def test_a_session_of_which_a_turn_is_measured_is_not_trained_on() -> None:
    def of(session: str, name: str) -> LabelledTurn:
        return LabelledTurn(name, "en", name, "go", "Done.", False, "praise", frozenset({"praise"}), None, session)

    rows = [of("a", "a1"), of("a", "a2"), of("b", "b1")]
    assert steps.apart(rows, {"held": [of("a", "a3")]}) == [rows[2]]
    assert steps.apart(rows, {}) == rows
    with pytest.raises(EvalpipeError, match="LABELS_INVALID"):
        steps.apart(rows[:2], {"held": [of("a", "a3")]})


@pytest.mark.parametrize("name", ["weights.npz", "weights.card.json", "weights.MODEL_CARD.md"])
def test_files_of_others_are_not_replaced(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "train", lambda turns: pytest.fail("it was fitted"))
    (tmp_path / name).write_text("mine")
    with pytest.raises(EvalpipeError, match=f"BAD_ARGUMENT.*{name}"):
        steps.make_model([], [], tmp_path / "weights.npz")
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        steps.make_model([], [], tmp_path / "weights")


def test_a_set_of_nothing_but_openings_is_refused_before_fitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, _ = steps.shipped_corpus()
    held = tmp_path / "held.jsonl"
    held.write_text(json.dumps({"text": "hello", "label": "neutral", "turn": 0}) + "\n", "utf-8")
    monkeypatch.setattr(train, "train", lambda turns: pytest.fail("it was fitted"))
    with pytest.raises(EvalpipeError, match=r"LABELS_INVALID \[held\]"):
        steps.make_model(trained[:1], [held], tmp_path / "weights.npz")


def test_probabilities_add_up_and_nothing_gives_nothing() -> None:
    moments = features.moments(["it still fails", "", "👍"], [None] * 3, [None] * 3)
    found = model.shipped().probabilities(moments)
    assert found.sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert model.shipped().probabilities(moments[:0]).shape == (0, len(CLASSES))


# ---- candidates

#: Clear in meaning and beyond every pattern, as the test demands first.
UNLISTED = "the totals are off by a mile, garbage output"


def said(text: str) -> Any:
    return extract_part(*frames(Talk().user("sum up the ledger").agent("I've summed it up.").user(text)), EXTRACTION)


def test_a_turn_that_no_pattern_knows_becomes_a_candidate_and_nothing_else() -> None:
    found = said(UNLISTED)
    (row,) = found.candidates.to_dicts()
    assert found.semantic.is_empty()
    assert row["signal"] in ("complaint.failure_report", "complaint.sentiment", "correction")
    assert (row["method"], row["pattern_id"], row["extractor"]) == ("model", "borderline", "borderline")
    assert row["model_version"] == model.shipped().digest
    assert row["probability"] == row["confidence"] >= candidates.min_probability()
    assert row["snippet"] == UNLISTED[row["span_start"] : row["span_end"]]
    assert row["task_id"] == found.tasks["task_id"][0]


def test_candidates_move_nothing_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the classifier every other table is the same."""
    with_it = said(UNLISTED)
    monkeypatch.setattr(candidates, "min_probability", lambda: 2.0)
    without = said(UNLISTED)
    assert without.candidates.is_empty()
    for name in ("hard", "semantic", "derived", "tasks", "session_features", "session_usage"):
        assert getattr(with_it, name).equals(getattr(without, name)), name
    assert not with_it.session_features["n_complaints"].sum()


def test_a_turn_with_a_pattern_and_an_opening_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "min_probability", lambda: 0.0)
    talk = (
        Talk()
        .user(UNLISTED)
        .agent("I've summed it up.")
        .user("It still doesn't work.")
        .agent("Fixed.")
        .user("hm, the cat")
    )
    found = extract_part(*frames(talk), EXTRACTION)
    assert found.semantic["turn"].to_list() == [2]
    assert found.candidates.filter(pl.col("method") == "model")["turn"].to_list() == [3]


def test_rules_have_no_probability() -> None:
    row = said("It still doesn't work.").semantic.to_dicts()[0]
    assert (row["method"], row["probability"], row["model_version"]) == ("rule", None, None)
