"""Privacy tiers: what of a session is stored, by source.

Belongs here: the tiers, which columns each keeps (read from the contracts), and how a person
writes them down. Does not belong here: taking text away (``steps/tiers.py``), how long text is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.contracts.model import Column, Sensitivity, Table


class Tier(StrEnum):
    """What is stored, from the strictest.

    ``VECTORS``: signals, counts and pseudonymised metadata, no text of any kind. ``SNIPPETS``: masked
    snippets of signals too; masked text of steps is a working column that expires.
    """

    VECTORS = "vectors"
    SNIPPETS = "snippets"


def kept_in(table: Table, column: Column) -> tuple[Tier, ...]:
    """Tiers whose slices hold a column; in the others it is null.

    Args:
        table: A contract. What is raw is the input of every tier, and is never in the warehouse.
        column: One of its columns.
    """
    is_text = column.sensitivity is Sensitivity.TEXT and table.layer != "raw"
    return (Tier.SNIPPETS,) if is_text else tuple(Tier)


def withheld(table: Table, tier: Tier) -> tuple[str, ...]:
    """Names of the columns that a tier does not keep."""
    return tuple(column.name for column in table if tier not in kept_in(table, column))


@dataclass(frozen=True, slots=True)
class Tiers:
    """Tier of every source.

    Attributes:
        default: Tier of sources that are not named.
        by_source: Tier of those that are, by the name of their reader, in order of names.
    """

    default: Tier = Tier.SNIPPETS
    by_source: tuple[tuple[str, Tier], ...] = ()

    def of(self, source: str) -> Tier:
        """Tier of a source, such as ``claude_code``."""
        return dict(self.by_source).get(source, self.default)

    @property
    def has_vectors(self) -> bool:
        """Whether any source may be in tier ``vectors``."""
        return Tier.VECTORS in (self.default, *dict(self.by_source).values())

    @classmethod
    def parse(cls, value: object) -> Tiers:
        """Read the table ``[tiers]``, or ``vectors`` or ``default=snippets,codex=vectors`` of the environment.

        Raises:
            ValueError: It is neither, or names no tier.
        """
        if isinstance(value, Tiers):
            return value
        if isinstance(value, str):
            pairs = [part.partition("=") for part in value.split(",") if part.strip()]
            named: Mapping[object, object] = {
                (name.strip() if is_pair else "default"): (tier if is_pair else name).strip()
                for name, is_pair, tier in pairs
            }
            if len(named) < len(pairs):
                raise ValueError("names a source twice")
        elif isinstance(value, Mapping):
            named = value
        else:
            raise ValueError('must be a table such as: default = "snippets"')
        tiers = {str(source): _tier(source, tier) for source, tier in named.items()}
        default = tiers.pop("default", Tier.SNIPPETS)
        return cls(default, tuple(sorted(tiers.items())))


def _tier(source: object, value: object) -> Tier:
    try:
        return Tier(str(value))
    except ValueError:
        raise ValueError(f"the tier of {source} must be one of {', '.join(Tier)}") from None
