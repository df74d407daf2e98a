"""What every step needs: settings, lake, landing, criteria, key, engine and versions.

Belongs here: opening a home once, and what steps ask of it. Does not belong here: any step, and what
versions slices are made under (``steps/versions``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe import criteria as criteria_files
from evalpipe import masking, signals, sources
from evalpipe.contracts.edge import EdgeTerms
from evalpipe.criteria.model import Criteria
from evalpipe.engines import LocalEngine
from evalpipe.locations import data_dir
from evalpipe.masking import MaskPlan
from evalpipe.masking.keys import MaskingKey
from evalpipe.masking.tombstones import Tombstones
from evalpipe.settings import Settings, open_home
from evalpipe.steps import epochs, ledger, rescan, seal
from evalpipe.steps.tiers import TierPlan, require_known
from evalpipe.steps.verdicts import rules_digest
from evalpipe.steps.versions import code_versions, mask_plan
from evalpipe.store.day_input import DayInput
from evalpipe.store.edge import EdgeIdentity
from evalpipe.store.files import locked
from evalpipe.store.lake import Lake
from evalpipe.store.landing import Landing
from evalpipe.store.manifest import Manifest
from evalpipe.store.objects import ObjectMemory
from evalpipe.store.plan import Plan, Versions, plan


@dataclass(frozen=True)
class Context:
    """An open home.

    Attributes:
        settings: Settings that agree with the home.
        criteria: Criteria in force.
        key: Masking key.
        as_of: Day on which the run stands: it decides what is settled.
        engine: Where kernels run.
        tombstones: Whom this home has erased.
        is_looking: Nothing is written, and what is damaged is passed over where it can be named instead.
    """

    settings: Settings
    criteria: Criteria
    key: MaskingKey
    as_of: date
    engine: LocalEngine
    tombstones: Tombstones = field(default_factory=Tombstones)
    is_looking: bool = False

    @cached_property
    def lake(self) -> Lake:
        """The home's lake."""
        return Lake(self.settings.lake)

    @cached_property
    def prices(self) -> signals.Prices:
        """Price table of models."""
        return prices_of(self.settings)

    @cached_property
    def mask_plan(self) -> MaskPlan:
        """How texts and ids are masked in this home."""
        return mask_plan(self.criteria, self.key, self.settings.ner)

    @cached_property
    def assignments(self) -> pl.DataFrame:
        """The assignment ledger, with tokens in place of ids."""
        return ledger.load_assignments(self.settings.assignments, self.mask_plan)

    @cached_property
    def consent(self) -> pl.DataFrame:
        """The consent ledger, ids as logged."""
        return ledger.load_consent(self.settings.consent)

    @cached_property
    def tier_plan(self) -> TierPlan:
        """What of sessions this home stores, and how their signals are extracted where that is no text."""
        return TierPlan(self.settings.tiers, self.criteria.extraction, self.versions.code["signals"])

    def tier_inputs(self, day: date) -> Mapping[str, str]:
        """What tiers add to the inputs of a masked slice: sources without text, and their extraction."""
        raw = self.lookup("raw", day)
        if raw is None or self.lake.damage(raw):
            # A day that lives on without raw text stays as it is: nothing can be extracted anew.
            made = self.lookup("masked", day)
            kept = ("vectors", "extraction") if made is not None else ()
            return {name: made.inputs[name] for name in kept if made is not None and name in made.inputs}
        if not self.settings.tiers.has_vectors:
            return {}
        if raw.content not in self._sources_known:
            sources = self.lake.read("raw.sessions", [raw], columns=["source"])["source"].unique()
            self._sources_known[raw.content] = self.tier_plan.textless(sources)
        textless = self._sources_known[raw.content]
        return {"vectors": ",".join(textless), "extraction": self.tier_plan.version} if textless else {}

    @cached_property
    def _sources_known(self) -> dict[str, list[str]]:
        """Sources without text by content of a raw slice."""
        return {}

    def consent_for(self, raw: Manifest) -> pl.DataFrame:
        """The consent ledger for the sessions of a raw slice: those of edge files come as tokens."""
        if self.consent.is_empty() or not raw.rows("raw.vectors"):
            return self.consent
        return masking.with_tokens(self.consent, self.mask_plan)

    def _ledger_inputs(self, step: str, day: date) -> Mapping[str, str]:
        """What ledgers, tiers and retention say of a day. A home without them has no such inputs."""
        if step == "masked":
            # What is carried on of a sealed day is in no slice before it.
            item = self.landed(day)
            sealed = {"sealed": item.digest} if item is not None and item.raw_gone else {}
            told = {} if self.consent.is_empty() else self._consent_told(day)
            return {**sealed, **told, **self.tier_inputs(day)}
        if step == "outcomes":
            told = {} if self.assignments.is_empty() else {"assignments": self._assignment_receipts(day)}
            gone = self.demoted_on(day)
            return {**told, "demoted": signals.demotion.names(gone)} if gone else told
        return {}

    @cached_property
    def demoted(self) -> frozenset[tuple[str, str]]:
        """Signals that reviews have taken out of outcomes, as (signal, language)."""
        # Here and not above: every worker imports this module with its kernel, and the SciPy of reviews costs each
        # of them half a second and fifty megabytes.
        from evalpipe.steps import reviews

        return reviews.demoted(self.lake, past_damage=self.is_looking)

    def demoted_on(self, day: date) -> frozenset[tuple[str, str]]:
        """Those of them that a day's sessions could have had, by their languages."""
        manifest = self.lookup("signals", day) if self.demoted else None
        if manifest is None or self.lake.damage(manifest):
            return frozenset()
        if manifest.content not in self._languages_known:
            spoken = self.lake.read("signals.session_features", [manifest], ["language"])["language"]
            found = self.lake.read("signals.semantic", [manifest], ["lang"])["lang"]
            self._languages_known[manifest.content] = frozenset([*spoken, *found, signals.ANY])
        languages = self._languages_known[manifest.content]
        return frozenset((signal, lang) for signal, lang in self.demoted if lang in languages)

    @cached_property
    def _languages_known(self) -> dict[str, frozenset[str]]:
        """Languages by content of a signals slice: a plan asks for every day several times."""
        return {}

    def _consent_told(self, day: date) -> Mapping[str, str]:
        """What the consent ledger says of a day."""
        from evalpipe.steps.withdrawal import withdrawn_later

        made = self.lookup("masked", day)
        if made is not None and rescan.is_sealed(self, day):
            # Consent is joined to ids as logged, which are gone; what is withdrawn since is followed.
            told = {"consent": made.inputs["consent"]} if "consent" in made.inputs else {}
            return told if withdrawn_later(self, day).is_empty() else {"consent": "withdrawn since"}
        return self._consent_inputs(self.lookup("raw", day))

    @cached_property
    def _assignment_receipts(self) -> Callable[[date], str]:
        return signals.ledger_receipts(self.assignments)

    def _consent_inputs(self, raw: Manifest | None) -> Mapping[str, str]:
        """What the consent ledger says of the sessions of a raw slice; nothing where it names none of them."""
        # What is damaged is made anew before anything is made from it.
        if raw is None or self.lake.damage(raw):
            return {}
        content = raw.content
        if content not in self._consent_known:
            people = self.lake.read("raw.sessions", [raw], columns=["user_id", "tenant", "source"])
            rows = masking.concerning(self.consent_for(raw), people)
            text = rows.write_csv(null_value="\x00")
            # Keyed, because a manifest is no place for a digest that ids can be guessed from.
            digest = hashlib.blake2b(text.encode(), key=self._ledger_key, digest_size=8).hexdigest()
            self._consent_known[content] = {} if rows.is_empty() else {"consent": digest}
        return self._consent_known[content]

    @cached_property
    def _consent_known(self) -> dict[str, Mapping[str, str]]:
        """Inputs by content of a raw slice: a plan asks for every day several times."""
        return {}

    def landed(self, day: date) -> DayInput | None:
        """What was landed for a day. A plan asks for every day several times, so the index is looked at once."""
        state = self.landing.state()
        if self._inputs_known.get("state") != state:
            self._inputs_known.update(state=state, inputs=self.landing.day_inputs())
        found: DayInput | None = self._inputs_known["inputs"].get(day)
        return found

    @cached_property
    def _inputs_known(self) -> dict[str, Any]:
        return {}

    @cached_property
    def landing(self) -> Landing:
        """The home's landing zone."""
        token, version = self.mask_plan.rekey, self.edge_terms.extraction
        edge = EdgeIdentity(lambda session_id: token("s", session_id), self.keyed, version)
        return Landing(self.settings.landing, self.lake.staging, edge)

    @property
    def edge_terms(self) -> EdgeTerms:
        """What an edge file must have in common with this home."""
        return EdgeTerms(self.key_fingerprint, self.tier_plan.version)

    def keyed(self, digest: str) -> str:
        """A digest that nobody without the key can guess its content from."""
        return hashlib.blake2b(digest.encode(), key=self.digest_key, person=b"edge", digest_size=16).hexdigest()

    @property
    def objects(self) -> ObjectMemory:
        """What this home has read of object stores."""
        return ObjectMemory(self.settings.landing / "_objects.parquet")

    @cached_property
    def versions(self) -> Versions:
        """Versions that slices are made under."""
        measurement = f"m={self.criteria.measurement}"
        variants: Mapping[str, tuple[str, ...]] = {
            "raw": (),
            "masked": (),
            "signals": (f"x={self.criteria.sub_hash('extraction')}",),
            "outcomes": (measurement,),
            "analysis": (measurement,),
            "scorecard": (measurement,),
        }
        versions = code_versions(self.criteria, self.prices.digest, self.settings.ner)
        return Versions(versions, variants, self.key_fingerprint, rules_digest(), self._ledger_inputs)

    @property
    def key_fingerprint(self) -> str:
        """Digest that tells two keys apart and reveals neither."""
        return self.key.fingerprint

    @property
    def _ledger_key(self) -> bytes:
        """Key for digests of ledgers; it changes with a rotation, as the receipts in manifests do."""
        return hashlib.blake2b(b"evalpipe quarantine digests", key=self.key.state, digest_size=32).digest()

    @property
    def digest_key(self) -> bytes:
        """Key for digests of quarantined bytes: that of the first epoch, so that a record that is read
        again after a rotation is the same record. What leaves layer 1 is a token of this digest.
        """
        return hashlib.blake2b(b"evalpipe quarantine digests", key=self.key.secret, digest_size=32).digest()

    @property
    def readers(self) -> dict[str, str]:
        """Version of each reader, by name."""
        return sources.reader_versions()

    def lookup(self, step: str, day: date) -> Manifest | None:
        """Committed manifest of a step and day under these versions."""
        return self.lake.manifest(self.versions.slice_key(step, day))

    def damage(self, manifest: Manifest) -> str | None:
        """Why a slice must be made anew although its inputs are the same, or ``None``; raw text of a day
        that lives on without it may be gone.
        """
        from evalpipe.steps.withdrawal import withdrawn_later

        day, what = manifest.key.day, self.lake.damage(manifest)
        if what is not None:
            return None if manifest.key.step == "raw" and rescan.is_sealed(self, day) else what
        if manifest.key.step != "masked":
            return None
        # The raw sessions that would tell whom a withdrawal concerns are gone on such a day.
        is_sealed = seal.is_sealed("masked", self.landed(day))
        return "consent was withdrawn" if is_sealed and not withdrawn_later(self, day).is_empty() else None

    def plan(self, inputs: Mapping[date, DayInput] | None = None) -> Plan:
        """Days that are stale now."""
        inputs = self.landing.day_inputs() if inputs is None else inputs
        from evalpipe.steps.rejections import rejected as refused
        from evalpipe.steps.rejections import waiting_receipts
        from evalpipe.steps.withdrawal import is_due

        receipts = {day: item.digest for day, item in inputs.items()}
        steps = {day: entry["step"] for day, entry in refused(self.lake).items()}
        rejected = {
            day: receipt
            for day, receipt in waiting_receipts(self.lake, self.landing, inputs).items()
            if not is_due(self, day, steps[day])
        }
        found = plan(
            receipts,
            lambda step, day: seal.standing(self, step, day, inputs.get(day)),
            self.versions,
            as_of=self.as_of,
            rejected=rejected,
            damage=self.damage,
        )
        # What would have to be made from text that has expired is not made, however stale it is.
        lost = set(seal.out_of_reach(self, found.stale, inputs))
        return Plan({day: why for day, why in found.stale.items() if day not in lost})


def today() -> date:
    """The UTC day that has begun: the last that a home has a partition for."""
    return datetime.now(UTC).date()


def prices_of(settings: Settings) -> signals.Prices:
    """The price table that the settings name, or the shipped one."""
    return signals.load_prices(Path(settings.prices) if settings.prices else data_dir() / "prices.toml")


def yesterday() -> date:
    """The last complete UTC day."""
    return (datetime.now(UTC) - timedelta(days=1)).date()


def load_criteria(name: str) -> Criteria:
    """Criteria by name or path, with the extractors as shipped, and their task types tried on their examples."""
    loaded = criteria_files.load(name, extractors=signals.extraction_digest())
    signals.check_task_types(loaded.extraction.task_types, name)
    return loaded


@contextmanager
def open_context(
    settings: Settings,
    *,
    as_of: date | None = None,
    engine: LocalEngine | None = None,
    environ: Mapping[str, str] | None = None,
    alone: bool = False,
    looking: bool = False,
) -> Iterator[Context]:
    """Open a home: make it if new, load criteria and key, start the engine.

    Whoever has it open holds ``home.lock`` together with others; who takes bytes away holds it alone, so
    that no step commits what it read before they went.

    Args:
        settings: Settings as loaded.
        as_of: Day on which the run stands; the last complete UTC day by default.
        engine: Where kernels run; a new one, closed on leaving, by default.
        environ: Environment that may give the keys; the process's own by default.
        alone: Wait until nobody else has the home open, and keep others out. A process that has it open
            already would wait for itself.
        looking: Write nothing: a home that cannot be written, or is damaged in part, can be looked at.

    Yields:
        The open context.

    Raises:
        EvalpipeError: ``KEY_MISSING``, ``KEY_INVALID``, ``KEY_PERMISSIONS``; ``MIXED_KEYS`` for a home
            whose rotation of the key is not finished, ``HOME_IN_USE`` while one is running.
    """
    require_known(settings.tiers)
    settings = open_home(settings)
    environ = os.environ if environ is None else environ
    loaded = load_criteria(settings.criteria)
    with (
        locked(settings.home / "home.lock", shared=not alone, looking=looking),
        epochs.held(settings, looking=looking),
        nullcontext(engine) if engine else LocalEngine(settings.workers) as running,
    ):
        key = epochs.key_of(settings, environ)
        stones = (settings.tombstones, settings.erasure_record)
        erased = masking.tombstones.load(stones, settings.tombstone_key_file, key, environ)
        context = Context(settings, loaded, key, as_of or yesterday(), running, erased, looking)
        if not looking:
            context.lake.prepare()
        yield context
