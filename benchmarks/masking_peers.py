"""The same texts through Presidio's patterns, detect-secrets and evalpipe: recall, harm, MB/s of CPU.

Recall and harm are of labelled corpora; the speed is that of source code as tool output shows it, since
texts of one line measure the call and not the scan.

Usage: ``python benchmarks/masking_peers.py --peers VENV [CORPUS_FOLDER...]``. VENV is an environment that
holds ``presidio-analyzer`` and ``detect-secrets``; without it nothing is compared. A tool is judged on all
entities, though none claims all; harm is the share of negative texts in which it finds anything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Places = list[tuple[int, int]]
OWN = Path(__file__).resolve().parents[1] / "evalpipe_tests" / "masking" / "corpus"
#: Kinds of Presidio that the corpora do not label: a URL or a date is no person.
UNLABELLED = {"URL", "DATE_TIME", "UUID"}
MIN_SCORE = 0.3
_BULK_ROWS, _BULK_LINES = 160, 45


def presidio() -> Callable[[str], Places]:
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

    # Its mail check would fetch the list of public suffixes; the copy that comes with the package is enough.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())
    tldextract.extract = tldextract.tldextract.TLD_EXTRACTOR

    class NoModel(NlpEngine):
        engine_name = "none"
        is_available = True

        def load(self) -> None: ...
        def is_loaded(self) -> bool:
            return True

        def process_text(self, text: str, language: str) -> NlpArtifacts:
            return NlpArtifacts([], [], [], [], self, language)

        def process_batch(self, texts: Any, language: str, **_: Any) -> Any:
            return ((text, self.process_text(text, language)) for text in texts)

        def is_stopword(self, word: str, language: str) -> bool:
            return False

        def is_punct(self, word: str, language: str) -> bool:
            return False

        def get_supported_entities(self) -> list[str]:
            return []

        def get_supported_languages(self) -> list[str]:
            return ["en"]

    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=NoModel())
    registry.recognizers = [r for r in registry.recognizers if "Spacy" not in type(r).__name__]
    engine = AnalyzerEngine(registry=registry, nlp_engine=NoModel(), supported_languages=["en"])

    def find(text: str) -> Places:
        found = engine.analyze(text, "en", score_threshold=MIN_SCORE)
        return [(r.start, r.end) for r in found if r.entity_type not in UNLABELLED]

    return find


def detect_secrets() -> Callable[[str], Places]:
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    def find(text: str) -> Places:
        out, at = [], 0
        with default_settings():
            for line in text.split("\n"):
                for secret in scan_line(line):
                    start = line.find(secret.secret_value or "\0")
                    if start >= 0:
                        out.append((at + start, at + start + len(secret.secret_value)))
                at += len(line) + 1
        return out

    return find


def evalpipe() -> Callable[[str], Places]:
    from evalpipe.masking import MaskingKey, MaskPlan, texts

    plan = MaskPlan(MaskingKey.from_bytes(bytes(32)))
    return lambda text: [(span.start, span.end) for span in texts.mask(plan, text).spans]


TOOLS = {"evalpipe": evalpipe, "presidio": presidio, "detect_secrets": detect_secrets}


def worker(name: str) -> None:
    """Places for each text that standard input lists, and the CPU seconds that they took."""
    given = json.load(sys.stdin)
    find = TOOLS[name]()
    places = [find(text) for text in given["texts"]]
    started = time.process_time()
    for text in given["bulk"]:
        find(text)
    json.dump({"places": places, "seconds": time.process_time() - started}, sys.stdout)


def _bulk() -> list[str]:
    """Numbered source lines in rows of about 2.3 KB."""
    files = sorted((Path(__file__).resolve().parents[1] / "evalpipe").rglob("*.py"))
    lines = [f"{n:6d}\t{line}\n" for f in files for n, line in enumerate(f.read_text("utf-8").splitlines(), 1)]
    return ["".join(lines[at : at + _BULK_LINES]) for at in range(0, _BULK_ROWS * _BULK_LINES, _BULK_LINES)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--peers", help="environment with presidio-analyzer and detect-secrets")
    options.add_argument("--worker", choices=sorted(TOOLS), help=argparse.SUPPRESS)
    options.add_argument("corpora", nargs="*", type=Path, default=[OWN])
    given = options.parse_args()
    if given.worker:
        worker(given.worker)
        return
    from evalpipe.masking import corpus

    pythons = {"evalpipe": sys.executable}
    if given.peers:
        pythons |= dict.fromkeys(("presidio", "detect_secrets"), str(Path(given.peers) / "bin" / "python"))
    else:
        print("No peers: name an environment that holds them with --peers VENV.")
    loaded = [corpus.load(folder) for folder in given.corpora]
    positives = [s for c in loaded for s in c.positives if s.tier == "rule"]
    negatives = [s for c in loaded for s in c.negatives if s.tier != "soft"]
    texts = [s.text for s in (*positives, *negatives)]
    bulk = _bulk()
    size = sum(len(text.encode()) for text in bulk) / 1e6
    rates: dict[str, float] = {}
    for name, python in pythons.items():
        command = [python, __file__, "--worker", name]
        done = subprocess.run(
            command, input=json.dumps({"texts": texts, "bulk": bulk}), capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{name:16s} failed: {done.stderr.strip().splitlines()[-1:]}")
            continue
        out = json.loads(done.stdout)
        rates[name] = size / out["seconds"]
        secret, other = [0, 0], [0, 0]
        for sample, places in zip(positives, out["places"], strict=False):
            hidden = {at for start, end in places for at in range(start, end)}
            for label in sample.labels:
                where = [at for at in range(label.start, label.end) if sample.text[at].isalnum()]
                count = secret if label.entity == "SECRET" else other
                count[0] += sum(at in hidden for at in where) >= 0.9 * len(where)
                count[1] += 1
        touched = sum(bool(places) for places in out["places"][len(positives) :])
        print(
            f"{name:16s} {rates[name]:8.3f} MB/s ({rates['evalpipe'] / rates[name]:8.1f} x slower than evalpipe)   "
            f"secrets {secret[0] / max(1, secret[1]):.3f} of {secret[1]}   "
            f"other {other[0] / max(1, other[1]):.3f} of {other[1]}   "
            f"negatives touched {touched / max(1, len(negatives)):.3f} of {len(negatives)}"
        )


if __name__ == "__main__":
    main()
