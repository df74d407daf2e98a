"""Which analyses a home holds, under whichever criteria, and what to say where the one asked for is not there.

Belongs here: reading what was scored under other criteria than those in force. Does not belong here:
analyses under the criteria in force (``steps/analysis.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from evalpipe import criteria
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.analysis import latest
from evalpipe.steps.context import Context, load_criteria
from evalpipe.store.manifest import Manifest

_STAMPED = "analysis.diagnostics"


@dataclass(frozen=True, slots=True)
class Analysed:
    """Analyses under one measurement.

    Attributes:
        name: Name of the criteria that made the newest of them.
        version: Their version.
        measurement: Hash of what they measure.
        windows: Windows that were scored, such as ``28d``.
        newest: Newest as-of day.
        n_as_of_days: As-of days that were scored.
    """

    name: str
    version: str
    measurement: str
    windows: tuple[str, ...]
    newest: date
    n_as_of_days: int

    @property
    def option(self) -> str:
        """The option that names these criteria; a file must be named by whoever has it."""
        is_shipped = self.name in criteria.available() and load_criteria(self.name).measurement == self.measurement
        return f"--criteria {self.name if is_shipped else 'FILE'}"

    @property
    def title(self) -> str:
        """Criteria and version."""
        return f"{self.name} {self.version}"


def analysed(context: Context) -> list[Analysed]:
    """What a home was analysed under, the newest as-of day first.

    Args:
        context: The open home.

    Returns:
        One entry a measurement; one whose every part is lost or damaged is left out.
    """
    by_measurement: dict[str, list[Manifest]] = {}
    for manifest in context.lake.manifests("analysis"):
        by_measurement.setdefault(manifest.key.variant[0], []).append(manifest)
    out = []
    for variant, manifests in by_measurement.items():
        newest_first = sorted(manifests, key=lambda m: m.key.day, reverse=True)
        whole = next((m for m in newest_first if context.lake.damage(m) is None), None)
        if whole is None:
            continue
        stamp = context.lake.read(_STAMPED, [whole], ["criteria_name", "criteria_version"])
        name, version = str(stamp["criteria_name"][0]), str(stamp["criteria_version"][0])
        windows = sorted({m.key.variant[-1].removeprefix("w=") for m in manifests})
        days = {m.key.day for m in manifests}
        out.append(Analysed(name, version, variant.removeprefix("m="), tuple(windows), max(days), len(days)))
    return sorted(out, key=lambda found: (found.newest, found.title), reverse=True)


def require_latest(context: Context, window: str | None = None) -> Manifest:
    """The newest analysis under the criteria in force; see :func:`evalpipe.steps.analysis.latest`.

    Args:
        context: The open home.
        window: Restrict to one window.

    Raises:
        EvalpipeError: ``NO_RESULT``, naming what this home was analysed under.
    """
    manifest = latest(context, window)
    if manifest is not None:
        return manifest
    where, mine = str(context.settings.home), f"{context.criteria.name} {context.criteria.version}"
    found = analysed(context)
    here = next((item for item in found if item.measurement == context.criteria.measurement), None)
    if here is not None:
        what = f"no analysis of the window {window}; there are: {', '.join(here.windows)}"
        fix = f"Add --window {here.windows[0]}, or run: evalpipe backfill A..B --window {window}"
        raise EvalpipeError("NO_RESULT", what, where=where, fix=fix)
    if found:
        what = f"analysed under criteria {', '.join(item.title for item in found)}, not under {mine}"
        fix = f"Add {' or '.join(dict.fromkeys(item.option for item in found))}."
        raise EvalpipeError("NO_RESULT", what, where=where, fix=fix)
    raise EvalpipeError("NO_RESULT", "nothing has been analysed in this home", where=where)
