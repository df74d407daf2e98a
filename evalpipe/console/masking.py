"""What ``evalpipe mask`` does: rows of a file, one text explained.

Belongs here: the flow from files and standard input to masked output. Does not belong here: options
(``mask_verbs``), the evaluation (``mask_eval``), how a row is masked (``masking/rows.py``).
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from evalpipe import settings as settings_module
from evalpipe.console import show
from evalpipe.console.progress import Bars
from evalpipe.contracts.errors import QUARANTINE_CODES, EvalpipeError
from evalpipe.masking import MaskingKey, MaskPlan, dictionary, texts
from evalpipe.masking.engine import Reason
from evalpipe.masking.rows import RowForm, RowMasker, RowRefusedError, lines
from evalpipe.settings import Settings

STDIN = "-"
#: Standard input that is held in memory; more goes to a nameless file that only this process can read.
_SPOOL_BYTES = 32_000_000
_NAMED_ERRORS = 20


def plan_of(settings: Settings, *, ephemeral: bool, make: bool) -> MaskPlan:
    """The plan of a home's criteria, with a key.

    The key is that of the environment, else the home's. Where there is no home, one is made with a new
    key, as ``run`` does; what needs no lasting pseudonyms takes a key that ends with the command.

    Args:
        settings: Settings as loaded.
        ephemeral: Take a new key in any case.
        make: Make a home where there is none.
    """
    from evalpipe.steps import epochs
    from evalpipe.steps.context import load_criteria
    from evalpipe.steps.versions import mask_plan

    is_keyed = settings_module.is_home(settings.home) or "EVALPIPE_KEY" in os.environ
    if ephemeral or not (make or is_keyed):
        key = MaskingKey.from_bytes(secrets.token_bytes(32))
    else:
        if "EVALPIPE_KEY" not in os.environ:
            settings_module.open_home(settings)
            if not settings.key_file.exists() and not epochs.has_masked_slices(settings):
                show.note(f"A new masking key lies in {settings.key_file}; pseudonyms of this home are made with it.")
        key = epochs.key_of(settings, os.environ)
    return mask_plan(load_criteria(settings.criteria), key, settings.ner)


def mask_rows(plan: MaskPlan, source: str, out: Path | None, form: RowForm) -> None:
    """Mask a JSON lines file.

    Args:
        plan: Key, rule set and limits.
        source: File, or ``-`` for standard input.
        out: File to write whole or not at all; standard output by default.
        form: What rows look like.

    Raises:
        EvalpipeError: ``ROWS_REFUSED`` after all other rows are written, ``BAD_ARGUMENT`` if the output is the input.
    """
    if out is not None and source != STDIN and out.exists() and Path(source).exists() and out.samefile(source):
        # A row that is refused would be lost with the input.
        raise EvalpipeError("BAD_ARGUMENT", "the output is the input.", where=str(out), fix="Name another file.")
    masker = RowMasker(plan, form)
    refused: Counter[str] = Counter()
    n_rows = 0
    with ExitStack() as stack:
        file, size = stack.enter_context(_opened(source, seekable=bool(form.session)))
        bars = stack.enter_context(Bars())
        if form.session:
            with _step(bars, "learn", size):
                for _, line, n_bytes in lines(file, form.max_bytes):
                    masker.learn(line)
                    bars.advance("learn", n_bytes)
            file.seek(0)
        write = stack.enter_context(_writer(out))
        with _step(bars, "mask", size):
            for number, line, n_bytes in lines(file, form.max_bytes):
                bars.advance("mask", n_bytes)
                try:
                    masked = masker.mask(line)
                except RowRefusedError as error:
                    refused[error.code] += 1
                    if refused.total() <= _NAMED_ERRORS:
                        show.note(f"{error.code} [{source}:{number}]: {QUARANTINE_CODES[error.code].meaning}")
                    continue
                write.write(masked + b"\n")
                n_rows += 1
    if refused:
        counts = ", ".join(f"{n:,} {code}" for code, n in sorted(refused.items()))
        what = f"{refused.total():,} rows were left out ({counts}); {n_rows:,} are written."
        raise EvalpipeError("ROWS_REFUSED", what, where=source)


@contextmanager
def _step(bars: Bars, name: str, size: int) -> Iterator[None]:
    bars.start(name, size, "bytes")
    yield
    bars.finish(name)


@contextmanager
def _opened(source: str, *, seekable: bool) -> Iterator[tuple[IO[bytes], int]]:
    if source != STDIN:
        path = Path(source)
        if not path.exists():
            raise EvalpipeError("SOURCE_NOT_FOUND", "the file does not exist.", where=source)
        if not path.is_file() and seekable:
            what = "it is no file that can be read twice; sessions need two passes."
            fix = "Pipe it to -, or mask rows one by one with --session-field ''."
            raise EvalpipeError("BAD_ARGUMENT", what, where=source, fix=fix)
        with path.open("rb") as file:
            yield file, path.stat().st_size
    elif not seekable:
        yield sys.stdin.buffer, 0
    else:
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
            while chunk := sys.stdin.buffer.read(1 << 20):
                spool.write(chunk)
            size = spool.tell()
            spool.seek(0)
            yield spool, size


@contextmanager
def _writer(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if out.is_dir() or not out.parent.is_dir():
        where = str(out if out.is_dir() else out.parent)
        raise EvalpipeError("BAD_ARGUMENT", "no file can be written there.", where=where, fix="Name a file.")
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        # Masked text is still about persons.
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            yield file
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)


# ---- one text, explained


def read_text(text: str | None) -> str:
    """The text to explain: the argument, or standard input, so that a secret need not stand in a shell history."""
    if text not in (None, STDIN):
        return text or ""
    if sys.stdin.isatty():
        show.note("Type or paste the text, then end with Ctrl-D.")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def explain(plan: MaskPlan, text: str) -> list[dict[str, Any]]:
    """Why each place of a text is masked, and what it becomes; never what it is.

    Args:
        plan: Key, rule set and limits.
        text: A text, read as a session of its own, so that what it names once is hidden everywhere in it.

    Returns:
        One row a place: where (characters), entity, rule, anchor, validator, view, token.
    """
    terms = dictionary.Terms()
    texts.learn(plan, text, terms)
    raw = text.encode("utf-8", "replace")
    is_small = len(raw) <= plan.withhold_over_bytes
    reasons = plan.engine.reasons(raw) if is_small else []
    rows = []
    for span in texts.mask(plan, text, terms).spans:
        start, end = (len(text[:at].encode("utf-8", "replace")) for at in (span.start, span.end))
        here = [r for r in reasons if r.start < end and start < r.end]
        rows.append(_row(plan, span, here))
    return rows


def _row(plan: MaskPlan, span: texts.TextSpan, reasons: list[Reason]) -> dict[str, Any]:
    rules = plan.rules.rules
    best = next((r for r in reasons if rules[r.rule].id == span.rule), None)
    others = sorted({rules[r.rule].id for r in reasons} - {span.rule})
    view, anchor, validator = ("-", "-", "-")
    if best is not None:
        view, anchor, validator = best.view, best.anchor, rules[best.rule].validator
    elif span.rule.startswith("session."):
        view = "dictionary"
    return {
        "where": f"{span.start}-{span.end}",
        "entity": span.entity,
        "subtype": span.subtype,
        "rule": span.rule,
        "confidence": rules[best.rule].confidence if best else "-",
        "anchor": anchor.encode("ascii", "backslashreplace").decode() if not anchor.isprintable() else anchor,
        "validator": validator,
        "view": view,
        "also": ", ".join(others),
        "becomes": span.token,
    }
