"""What looks like something of somebody and is none stays, and its neighbour that is one goes."""

from __future__ import annotations

import polars as pl
import pytest

from evalpipe.masking import detector
from evalpipe_tests.masking.support import FALLBACK, PLAN

KEPT = [
    "Version=4.0.0.0, PublicKeyToken=b77a5c561934e089",
    "PublicKeyToken: 31bf3856ad364e35",
    'name: "Submit Button"',
    "order #4539578763621486",
    "seed=4539578763621486",
    '"ticket_id": 4539578763621486',
    "rows 4539578763621486 processed",
    "version 1.2.3.4 and 12.34.56.78",
    "versions 21.44.5.6, 88.77.66.55 and 88.77.66.56",
    "ffmpeg 58.76.100.101",
    "tel: 404 500 503",
    "id 529.982.247-25.tar",
    "secret: my-k8s-secret-name-v2",
    "AK" + "IAIOSFODNN7EXAMPLE",
]
GONE = [
    ("card number 4539578763621486", "4539578763621486"),
    ("my order was paid with 4539578763621486", "4539578763621486"),
    ("from 88.77.66.55 and 88.77.66.56", "88.77.66.56"),
    ("tel: 404 555 0134", "555 0134"),
    ("CPF 529.982.247-25. Obrigado", "529.982"),
    ("secret: my9Zk-4kTq8-x2Lp0v7", "my9Zk"),
    ("name: Lena Hofmann", "Lena"),
]


@pytest.mark.parametrize("text", KEPT)
def test_it_stays_and_the_detector_agrees(text: str) -> None:
    assert PLAN.mask_text(text) == FALLBACK.mask_text(text) == (text, [])
    assert not [name for name in detector.scan(pl.Series([text])) if detector.is_high(name)]


@pytest.mark.parametrize(("text", "value"), GONE)
def test_its_neighbour_goes(text: str, value: str) -> None:
    assert value not in PLAN.mask_text(text)[0]


def test_the_detector_still_sees_a_card_beside_an_order() -> None:
    assert "card" in detector.scan(pl.Series(["order 12 paid with 4539578763621486"]))
