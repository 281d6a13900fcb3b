"""Arguments of `modicum account`, and the format of its numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modicum.accounting.budgets import Budget
    from modicum.accounting.conversions.guarantees import Guarantee

#: Significant digits of displayed numbers, rounded up.
SHOWN_DIGITS = 6


# --- reading --------------------------------------------------------------------


def number(text: str, where: str) -> Fraction:
    """Return the exact number of a text; leave with 2 if it is none."""
    from modicum.core.rationals import parse_number

    found = parse_number(text.strip())
    if found is None:
        raise typer.BadParameter(f"{where}: `{text}` is not a number")
    return found


def settings(arguments: Sequence[str]) -> dict[str, Fraction]:
    """Return the numbers of words such as ``sigma=4``."""
    found: dict[str, Fraction] = {}
    for setting in arguments:
        name, equals, value = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"`{setting}` is not of the form NAME=NUMBER")
        if name in found:
            raise typer.BadParameter(f"`{name}` is given twice")
        found[name] = number(value, name)
    return found


def guarantee(text: str, times: int) -> Guarantee:
    """Return the guarantee of a text such as ``rho=0.1`` or ``eps=1,delta=1e-6``."""
    from modicum.accounting.conversions.guarantees import Guarantee

    if text.startswith("rdp="):
        return Guarantee("rdp", points=_points(text), times=times)
    match settings(text.split(",")):
        case {"eps": eps, "delta": delta, **rest} if not rest:
            if delta == 0:
                return Guarantee("eps", eps, times=times)
            return Guarantee("eps-delta", eps, delta, times=times)
        case {"eps": eps, **rest} if not rest:
            return Guarantee("eps", eps, times=times)
        case {"rho": rho, **rest} if not rest:
            return Guarantee("rho", rho, times=times)
        case {"mu": mu, **rest} if not rest:
            return Guarantee("mu", mu, times=times)
    raise typer.BadParameter(
        f"`{text}` is not one of eps=E; eps=E,delta=D; rho=R; mu=M; rdp=ORDER:R,..."
    )


def budget(text: str) -> Budget:
    """Return the target of a text such as ``eps=1,delta=1e-6``."""
    from modicum.accounting.budgets import (
        ApproxBudget,
        GdpBudget,
        PureBudget,
        RenyiBudget,
        ZcdpBudget,
    )

    found = guarantee(text, times=1)
    match found.measure:
        case "eps":
            return PureBudget(found.value)
        case "eps-delta":
            return ApproxBudget(found.value, found.delta)
        case "rho":
            return ZcdpBudget(found.value)
        case "mu":
            return GdpBudget(found.value)
        case "rdp":
            return RenyiBudget(found.points)


def _points(text: str) -> tuple[tuple[Fraction, Fraction], ...]:
    points = []
    for pair in text.removeprefix("rdp=").split(","):
        order, colon, value = pair.partition(":")
        if not colon:
            raise typer.BadParameter(f"`{pair}` is not of the form ORDER:DIVERGENCE")
        points.append((number(order, "rdp"), number(value, "rdp")))
    return tuple(sorted(points))


# --- writing --------------------------------------------------------------------


def shown(value: Fraction | Decimal) -> str:
    """Return a loss for display: rounded up, ``inf`` if nothing finite is known."""
    from modicum.accounting.decimals import precise, significant
    from modicum.core.rationals import unpadded

    if isinstance(value, Decimal) and value.is_infinite():
        return "inf"
    rounded = precise(significant)(value, SHOWN_DIGITS, up=True)
    return unpadded(f"{float(rounded):.{SHOWN_DIGITS}g}")


def from_units(units: int) -> Fraction | Decimal:
    """Return a loss of the ledger as an amount."""
    from modicum.accounting.amounts import INFINITY
    from modicum.accounting.grid import INFINITE
    from modicum.core.rationals import LOSS_UNIT

    return INFINITY if units >= INFINITE else Fraction(units, LOSS_UNIT)


def json_amount(value: Fraction | Decimal) -> float | int | str:
    """Return a loss for programs: the nearest number, or ``"inf"``."""
    if isinstance(value, Decimal) and value.is_infinite():
        return "inf"
    exact = Fraction(value)
    return int(exact) if exact.denominator == 1 else float(exact)
