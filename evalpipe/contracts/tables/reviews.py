"""Contracts of the review loop in layer 3: what was drawn, what people said of it, and how precise signals are.

``review_items``, ``review_frames`` and ``reviews`` only grow. ``quality``, ``agreement`` and ``drift`` are made of them and
of the signals with every publish, and hold no session.
"""

from evalpipe.contracts.model import Column, Kind, Sensitivity, Table
from evalpipe.contracts.signals import FAMILIES

S, B, I32, I64, F64, DATE, LIST = (
    Kind.STR, Kind.BOOL, Kind.I32, Kind.I64, Kind.F64, Kind.DATE, Kind.STR_LIST,
)  # fmt: skip

#: What an item shows: a message of a person, or one call of a tool.
ITEM_KINDS = ("turn", "call")
#: What reviews say of a signal's precision.
QUALITY_STATES = ("proven", "unproven", "demoted")
DRIFT_STATES = ("ok", "warn", "fail", "unavailable")


def _item() -> tuple[Column, ...]:
    return (
        Column("item_id", S, "Item: its sample, and its number in it.", nullable=False, key=True),
        Column("sample_id", S, "Digest of what was drawn.", nullable=False),
        Column("session_id", S, "Session of the item.", nullable=False, sensitivity=Sensitivity.PSEUDONYM),
        Column("seq", I32, "Step of the item.", nullable=False, low=0),
        Column("day", DATE, "Day of the session's start.", nullable=False),
        Column("kind", S, "What the item shows.", nullable=False, values=ITEM_KINDS),
        Column("lang", S, "Language of the turn; any for a call.", nullable=False),
        Column("source", S, "Reader of the log.", nullable=False),
        Column("model", S, "Model of the session, which reviewers do not see.", nullable=False),
        Column("stratum", S, "Signal, language and model by which it was drawn.", nullable=False),
        Column("parts", LIST, "Parts of the budget that drew it.", nullable=False),
        Column("inclusion_prob", F64, "Probability with which the sample holds the item, over all ways in which it and earlier samples could have come out.", nullable=False, low=0.0, high=1.0),
        Column("emitted", LIST, "Signals that the detector gave, which reviewers do not see.", nullable=False),
        Column("candidates", LIST, "Signals that it gave as candidates only.", nullable=False),
        Column("rules", LIST, "Rules behind the emitted signals, in their order.", nullable=False),
        Column("versions", LIST, "Version of the detector of every signal that the item could have had, as signal=version.", nullable=False),
    )  # fmt: skip


REVIEW_ITEMS = Table(
    layer="signals",
    name="review_items",
    grain="one row an item that was drawn for review",
    meaning="Samples drawn for review, with inclusion probabilities and what the detector said: the key to the labels.",
    sort=("item_id",),
    columns=_item(),
    is_published=False,
)

REVIEW_FRAMES = Table(
    layer="signals",
    name="review_frames",
    grain="one row a sample and an item that it could have held",
    meaning="What each sample was drawn from, and with what probabilities: the weights of several samples together.",
    sort=("sample_id", "session_id", "seq"),
    columns=(
        Column("sample_id", S, "Digest of what was drawn.", nullable=False, key=True),
        Column("session_id", S, "Session of the item.", nullable=False, key=True, sensitivity=Sensitivity.PSEUDONYM),
        Column("seq", I32, "Step of the item.", nullable=False, key=True, low=0),
        Column("day", DATE, "Day of the session's start.", nullable=False),
        Column("inclusion_prob", F64, "As in review_items; of an item that an earlier sample holds, as if none held it.", nullable=False, low=0.0, high=1.0),
        Column("n_drawn", I32, "Items that the sample held when it was drawn.", nullable=False, low=1),
    ),
    is_published=False,
)  # fmt: skip

REVIEWS = Table(
    layer="signals",
    name="reviews",
    grain="one row an item, reviewer and revision",
    meaning="What reviewers said of drawn items, appended and never changed; the last revision of a reviewer counts.",
    sort=("item_id", "reviewer", "revision"),
    columns=(
        *_item(),
        Column("reviewer", S, "Label that the reviewer goes by.", nullable=False, key=True),
        Column("revision", I32, "Number of the reviewer's opinions on the item, from 1.", nullable=False, key=True, low=1),
        Column("labels", LIST, "Labels, the primary one first.", nullable=False),
        Column("note", S, "Masked remark of the reviewer.", sensitivity=Sensitivity.TEXT, is_published=False),
        Column("guide_version", S, "Version of the label guide.", nullable=False),
    ),
)  # fmt: skip

QUALITY = Table(
    layer="signals",
    name="quality",
    grain="one row a signal, language, detector version and model, and one over all models",
    meaning="Precision and recall of signals from reviews, and whether a signal is scored.",
    sort=("signal", "lang", "extractor_version", "model"),
    columns=(
        Column("signal", S, "Signal, or negative or positive for all signals of that polarity together that are not demoted by themselves.", nullable=False, key=True),
        Column("lang", S, "Language of the turn; any for signals from the environment.", nullable=False, key=True),
        Column("extractor_version", S, "Version of the detector: its code and its rules of this signal and language.", nullable=False, key=True),
        Column("model", S, "Model, or all.", nullable=False, key=True),
        Column("family", S, "Where the signal comes from.", nullable=False, values=FAMILIES),
        Column("is_current", B, "Whether this version of the detector is in force.", nullable=False),
        Column("n_rules", I32, "Rules of the signal in this language.", nullable=False, low=0),
        Column("n_emitted", I64, "Rows of the signal in the lake; null for versions that are no longer in force.", low=0),
        Column("n_reviewed", I32, "Emitted items that were reviewed.", nullable=False, low=0),
        Column("n_unsure", I32, "Emitted items of which no reviewer was sure; they count nowhere.", nullable=False, low=0),
        Column("n_correct", F64, "Of the reviewed, those that are right; two reviewers who disagree count half.", nullable=False, low=0.0),
        Column("n_effective", F64, "Reviewed items, as many as would tell as much if all had been drawn with the same probability.", nullable=False, low=0.0),
        Column("precision", F64, "Share of emitted items that are right, weighted by inclusion (Hajek).", low=0.0, high=1.0),
        Column("precision_lo", F64, "One-sided 95 % Wilson bound below.", low=0.0, high=1.0),
        Column("precision_hi", F64, "One-sided 95 % Wilson bound above.", low=0.0, high=1.0),
        Column("n_labelled", F64, "Reviewed items that have the signal by their labels.", nullable=False, low=0.0),
        Column("recall", F64, "Share of them that the detector gave, weighted by inclusion.", low=0.0, high=1.0),
        Column("recall_lo", F64, "One-sided 95 % Wilson bound below.", low=0.0, high=1.0),
        Column("recall_hi", F64, "One-sided 95 % Wilson bound above.", low=0.0, high=1.0),
        Column("threshold", F64, "Bound below that a scored signal must reach; null where none is asked.", low=0.0, high=1.0),
        Column("status", S, "proven: the bound reaches the threshold; demoted: it does not; unproven: too few reviews to say.", nullable=False, values=QUALITY_STATES),
        Column("is_counted", B, "Whether outcomes count the signal; false also for what has no weight.", nullable=False),
        Column("p_models", F64, "p-value, adjusted over signals, of equal precision in all reviewed models; on rows over all models.", low=0.0, high=1.0),
        Column("is_unequal", B, "Alarm: models differ in the precision of this signal.", nullable=False),
        Column("golden_precision", F64, "Precision on the golden set, weighted alike.", low=0.0, high=1.0),
        Column("golden_recall", F64, "Recall on the golden set.", low=0.0, high=1.0),
        Column("n_golden", I32, "Rows of the golden set of this signal and language.", nullable=False, low=0),
    ),
)  # fmt: skip

AGREEMENT = Table(
    layer="signals",
    name="agreement",
    grain="one row a pair of reviewers, kind of item and language, and one over all languages",
    meaning="How well two reviewers of the same items agree: the ceiling of any detector.",
    sort=("kind", "lang", "reviewer", "other"),
    columns=(
        Column("reviewer", S, "First reviewer.", nullable=False, key=True),
        Column("other", S, "Second reviewer.", nullable=False, key=True),
        Column("kind", S, "What the items show.", nullable=False, key=True, values=ITEM_KINDS),
        Column("lang", S, "Language, or all.", nullable=False, key=True),
        Column("n_items", I32, "Items that both labelled.", nullable=False, low=0),
        Column("agreement", F64, "Share with the same primary label.", low=0.0, high=1.0),
        Column("agreement_lo", F64, "Lower end of its 95 % Wilson interval.", low=0.0, high=1.0),
        Column("agreement_hi", F64, "Upper end.", low=0.0, high=1.0),
        Column("kappa", F64, "Cohen's kappa of the primary labels; null where chance alone would agree always.", low=-1.0, high=1.0),
        Column("kappa_lo", F64, "Lower end of its 95 % interval.", low=-1.0, high=1.0),
        Column("kappa_hi", F64, "Upper end.", low=-1.0, high=1.0),
        Column("ac1", F64, "Gwet's AC1 over all labels of the guide for the kind, which stays near the agreement where nearly all items have one label and kappa does not.", low=-1.0, high=1.0),
        Column("pabak", F64, "Kappa adjusted for prevalence and bias (Byrt and others, 1993), over the same labels.", low=-1.0, high=1.0),
        Column("n_reviewers", I32, "Reviewers of this kind of item in this language.", low=2),
        Column("alpha", F64, "Krippendorff's alpha of all these reviewers over items that two or more labelled; null for two reviewers, whose kappa says it.", low=-1.0, high=1.0),
    ),
)  # fmt: skip

DRIFT = Table(
    layer="signals",
    name="drift",
    grain="one row a measure, subject, language and week or source",
    meaning="Whether detectors fire as they did: by pattern and week, by confidence, by source, and turns that no detector reads.",
    sort=("measure", "lang", "subject", "period"),
    columns=(
        Column("measure", S, "rate_psi: emission of a pattern; confidence_psi: confidence of rows; source_js: mix of patterns of a source against all others; without_prose and unknown_language: rise of the share of turns that no pattern can read; precision and recall: of a signal by reviews, less that of its calibration.", nullable=False, key=True, values=("rate_psi", "confidence_psi", "source_js", "without_prose", "unknown_language", "precision", "recall")),
        Column("subject", S, "Pattern, source or signal; all where it is of everything.", nullable=False, key=True),
        Column("lang", S, "Language, or all.", nullable=False, key=True),
        Column("period", DATE, "Monday of the week that is judged.", nullable=False, key=True),
        Column("n_turns", I64, "Turns of the week, or of the source; of precision and recall reviewed rows of the last weeks.", nullable=False, low=0),
        Column("n_turns_before", I64, "What it is held against: turns of the weeks before, or of the other sources; reviewed rows of the calibration.", nullable=False, low=0),
        Column("rate", F64, "Rows a turn now, or the share by reviews; null where it is no rate."),
        Column("rate_before", F64, "The same before."),
        Column("value", F64, "The measure; null with too few turns or reviews on a side."),
        Column("lo", F64, "Lower end of Newcombe's 95 % interval of a change of precision or recall.", low=-1.0, high=1.0),
        Column("hi", F64, "Upper end.", low=-1.0, high=1.0),
        Column("status", S, "Against the limits of data/review/limits.toml.", nullable=False, values=DRIFT_STATES),
    ),
)  # fmt: skip

TABLES = (REVIEW_ITEMS, REVIEW_FRAMES, REVIEWS, QUALITY, AGREEMENT, DRIFT)
