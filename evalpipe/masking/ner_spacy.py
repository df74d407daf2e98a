"""Names and places by a spaCy pipeline: the adapter that ``pip install evalpipe[ner]`` makes usable.

Belongs here: spaCy, imported when it is asked for. Does not belong here: chunks, budgets (``ner``).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

#: Labels of the OntoNotes and of the WikiNER scheme.
_ENTITIES = {"PERSON": "PERSON", "PER": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION"}


class SpacyFinder:
    """A spaCy pipeline with an entity recogniser.

    Args:
        model: Package or path of the pipeline, such as ``en_core_web_sm``.

    Raises:
        ImportError: spaCy is not installed.
        OSError: There is no such pipeline.
    """

    def __init__(self, model: str) -> None:
        spacy: Any = importlib.import_module("spacy")
        self._pipeline = spacy.load(model, disable=["lemmatizer", "tagger", "parser", "attribute_ruler"])
        meta = self._pipeline.meta
        self.version = f"{meta['lang']}_{meta['name']}-{meta['version']}+spacy-{spacy.__version__}"

    def detect(self, texts: Sequence[str], lang: str) -> list[list[tuple[int, int, str]]]:
        """(start, end, entity) in characters for every text."""
        del lang  # A pipeline has one language.
        return [
            [(e.start_char, e.end_char, _ENTITIES[e.label_]) for e in document.ents if e.label_ in _ENTITIES]
            for document in self._pipeline.pipe(texts)
        ]
