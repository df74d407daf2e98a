"""Weights of the classifier: a file of whole numbers, and probabilities of turns.

Belongs here: the form of the file and applying it. Does not belong here: features (``features``), fitting
(``train``). A file whose features are not those of this code is refused: its numbers would mean nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.signals.borderline import features
from evalpipe.signals.borderline.classes import CLASSES

#: Turns that are judged at once: what stays in a processor's cache.
_BATCH = 1024
_LARGEST = 127

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted classifier.

    Attributes:
        hashed: (buckets, classes) int8 weights of hashed features. scale: (classes,) what one step is worth.
        numbers: (numbers, classes) weights of the numbers. bias: (classes,).
        temperature: Logits are divided by it, so that probabilities are calibrated.
    """

    hashed: npt.NDArray[np.int8]
    scale: Floats
    numbers: Floats
    bias: Floats
    temperature: float

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits of everything that decides a probability."""
        state = hashlib.blake2b(digest_size=6)
        state.update(json.dumps(_about(), sort_keys=True).encode())
        for array in (self.hashed, self.scale, self.numbers, self.bias, np.float64(self.temperature)):
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()

    def probabilities(self, turns: pl.DataFrame) -> Floats:
        """Probability of every class.

        Args:
            turns: (n,) frame of :func:`evalpipe.signals.borderline.features.features`.

        Returns:
            (n, classes) in the order of ``CLASSES``; rows add up to 1.
        """
        hashed = self.hashed.astype(np.float32) * self.scale
        out = []
        for at in range(0, turns.height, _BATCH):
            logits = features.features(turns[at : at + _BATCH]).times(hashed, self.numbers) + self.bias
            out.append(_softmax(logits / np.float32(self.temperature)))
        return np.concatenate(out) if out else np.zeros((0, len(CLASSES)), np.float32)


def quantised(weights: npt.NDArray[Any], bias: npt.NDArray[Any], temperature: float) -> Model:
    """A model of fitted weights, those of hashed features rounded to 255 steps a class.

    Args:
        weights: (buckets + numbers, classes). bias: (classes,). temperature: Above 0.
    """
    hashed, numbers = weights[: features.BUCKETS], weights[features.BUCKETS :]
    scale = np.maximum(np.abs(hashed).max(axis=0), 1e-12) / _LARGEST
    steps = np.rint(hashed / scale).astype(np.int8)
    return Model(steps, scale.astype(np.float32), numbers.astype(np.float32), bias.astype(np.float32), temperature)


def _softmax(logits: npt.NDArray[Any]) -> Floats:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def _about() -> dict[str, Any]:
    return {"classes": list(CLASSES), "features": features.VERSION, "buckets": features.BUCKETS,
            "numbers": list(features.NUMBERS)}  # fmt: skip


def to_bytes(model: Model) -> bytes:
    """The file of a model; the same model gives the same bytes."""
    stream = io.BytesIO()
    about = np.frombuffer(json.dumps(_about()).encode(), np.uint8)
    np.savez_compressed(
        stream, hashed=model.hashed, scale=model.scale, numbers=model.numbers, bias=model.bias,
        temperature=np.float64(model.temperature), about=about,
    )  # fmt: skip
    return stream.getvalue()


#: What the library raises of a file that is no archive, or a damaged one.
_DAMAGED = (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def load(path: Path) -> Model:
    """Read a model.

    Raises:
        EvalpipeError: ``MODEL_INVALID`` where the file is absent, damaged or made for other features.
    """
    try:
        # From memory: of a damaged file the library leaves the handle open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            model = Model(file["hashed"], file["scale"], file["numbers"], file["bias"], float(file["temperature"]))
    except (*_DAMAGED, KeyError, TypeError, AttributeError, RecursionError):
        raise EvalpipeError("MODEL_INVALID", "the file is absent or damaged.", where=str(path)) from None
    shapes = [model.hashed.shape, model.numbers.shape, model.scale.shape, model.bias.shape]
    k = len(CLASSES)
    wanted = [(features.BUCKETS, k), (len(features.NUMBERS), k), (k,), (k,)]
    if about != _about() or shapes != wanted or not model.temperature > 0:
        raise EvalpipeError("MODEL_INVALID", "it was made for other features.", where=str(path))
    floats = (model.scale, model.numbers, model.bias)
    is_typed = model.hashed.dtype == np.int8 and all(part.dtype == np.float32 for part in floats)
    if not is_typed or not all(np.isfinite(part).all() for part in (*floats, model.temperature)):
        raise EvalpipeError(
            "MODEL_INVALID", "a weight is not a number, or not of the kind that is written.", where=str(path)
        )
    return model


def shipped_path() -> Path:
    """Where the weights that extraction uses lie."""
    return data_dir() / "models" / "borderline.npz"


@lru_cache(maxsize=1)
def shipped() -> Model:
    """The weights that extraction uses."""
    return load(shipped_path())
