"""What releases take of a sum: who filled a rule, in one cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting import INFINITE, Total
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.core.exact import DELTA_UNIT, LOSS_UNIT
from modicum.ledger import RuleLoss
from modicum.workspace.explaining.explain import amount_text, json_number


@dataclass(frozen=True, slots=True)
class Contributor:
    """What one release takes of a rule.

    Attributes:
        release: Its id.
        units: Its loss on the coordinate that decides, or its own delta, in ledger
            units; `INFINITE` if no bound is proven.
        share: Which part of the sum that is; None if the sum is infinite.
    """

    release: str
    units: int
    share: Fraction | None


def decisive(loss: RuleLoss) -> int:
    """Return the coordinate that a rule stands or falls by: own deltas, or a sum.

    Args:
        loss: What the rule says.
    """
    total, own_filter = loss.together, loss.own_filter
    nearest = own_filter.nearest(total)
    if nearest is None or total.units(DELTA) > own_filter.delta_cap:
        return DELTA
    return nearest[0]


def shares(
    spent: Iterable[tuple[str, Total]], coordinate: int
) -> tuple[Contributor, ...]:
    """Return what releases take of a sum, the largest first.

    Args:
        spent: Ids of releases, and what each was charged.
        coordinate: The coordinate of the sum.
    """
    amounts = [(release, total.units(coordinate)) for release, total in spent]
    whole = sum(units for _, units in amounts)
    finite = whole < INFINITE
    found = [
        Contributor(
            release, units, Fraction(units, whole) if finite and whole else None
        )
        for release, units in amounts
    ]
    return tuple(sorted(found, key=lambda one: -one.units))


def contributors_text(
    spent: Sequence[Contributor], coordinate: int, most: int = 5
) -> str:
    """Return the largest contributors in words.

    Args:
        spent: The contributors, largest first.
        coordinate: What they are measured by.
        most: How many of them to name.
    """
    scale = DELTA_UNIT if coordinate == DELTA else LOSS_UNIT
    named = [
        f"{one.release} ({coordinate_name(coordinate)}"
        f" {amount_text(one.units, scale)}{_percent(one.share)})"
        for one in spent[:most]
    ]
    left = len(spent) - len(named)
    return ", ".join(named) + (f" and {left} more" if left else "")


def contributors_to_list(
    found: Iterable[Contributor], coordinate: int
) -> list[dict[str, object]]:
    """Return what releases take of a sum, as plain JSON.

    Args:
        found: The releases.
        coordinate: What they are measured by.
    """
    scale = DELTA_UNIT if coordinate == DELTA else LOSS_UNIT
    return [
        {
            "release": one.release,
            "coordinate": coordinate_name(coordinate),
            "amount": json_number(one.units, scale),
            "share": None if one.share is None else float(one.share),
        }
        for one in found
    ]


def _percent(share: Fraction | None) -> str:
    return "" if share is None else f", {share.numerator * 100 // share.denominator} %"
