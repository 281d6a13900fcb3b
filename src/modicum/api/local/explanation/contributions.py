"""Contributions of releases to a sum: who filled a rule, in one cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct

from modicum.accounting import INFINITE, Total
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.api.local.explanation.denial_text import amount, amount_text
from modicum.api.schema.ledger import Spender
from modicum.core.diagnostics import shortened
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT
from modicum.ledger import RuleLoss


class Contributor(Struct, frozen=True):
    """The contribution of one release to a rule.

    Attributes:
        release: Its id.
        units: Its loss on the coordinate that decides, or its own delta, in ledger
            units; `INFINITE` if no bound is proven.
        share: Which part of the sum that is; None if the sum is infinite.
        undated: Whether it is charged to every period, because it names no `periods`.
    """

    release: str
    units: int
    share: Fraction | None
    undated: bool = False


def decisive(loss: RuleLoss) -> int:
    """Return the coordinate that decides a rule: own deltas, or a sum."""
    total, own_filter = loss.together, loss.own_filter
    nearest = own_filter.nearest(total)
    if nearest is None or total.units(DELTA) > own_filter.delta_cap:
        return DELTA
    return nearest[0]


class Spent(NamedTuple):
    """The charge of a release in a cell.

    Attributes:
        release: Its id.
        total: The charge.
        undated: Whether it is charged to every period, because it names no `periods`.
    """

    release: str
    total: Total
    undated: bool


def shares(spent: Iterable[Spent], coordinate: int) -> tuple[Contributor, ...]:
    """Return the contributions of releases to a sum, the largest first."""
    amounts = [(one, one.total.units(coordinate)) for one in spent]
    whole = sum(units for _, units in amounts)
    finite = whole < INFINITE
    found = [
        Contributor(
            one.release,
            units,
            Fraction(units, whole) if finite and whole else None,
            one.undated,
        )
        for one, units in amounts
    ]
    return tuple(sorted(found, key=lambda one: -one.units))


def contributors_text(
    spent: Sequence[Contributor], coordinate: int, most: int = 5
) -> str:
    """Return the largest contributors as text."""
    scale = DELTA_UNIT if coordinate == DELTA else LOSS_UNIT
    named = [
        f"{one.release} ({coordinate_name(coordinate)}"
        f" {amount_text(one.units, scale)}{_percent(one.share)})"
        for one in spent[:most]
    ]
    left = len(spent) - len(named)
    return ", ".join(named) + (f" and {left} more" if left else "")


def undated_text(spent: Iterable[Contributor], most: int = 5) -> str:
    """Return the releases that are charged to every period, with the remedy."""
    bare = [one.release for one in spent if one.undated]
    if not bare:
        return ""
    are, their = (" is", "its") if len(bare) == 1 else ("s are", "their")
    named = f": {shortened(bare, most)}" if most else ""
    return (
        f"{len(bare)} release{are} charged to every period, because {their} `periods`"
        f" are missing{named};"
        " correct what was recorded as past by  modicum release redescribe FILE"
        " --reason …"
    )


def spenders_view(found: Iterable[Contributor], coordinate: int) -> tuple[Spender, ...]:
    """Return the public form of contributions to a sum."""
    scale = DELTA_UNIT if coordinate == DELTA else LOSS_UNIT
    return tuple(
        Spender(
            release=one.release,
            coordinate=coordinate_name(coordinate),
            amount=amount(one.units, scale),
            share=None if one.share is None else float(one.share),
            undated=one.undated,
        )
        for one in found
    )


def _percent(share: Fraction | None) -> str:
    return "" if share is None else f", {share.numerator * 100 // share.denominator} %"
