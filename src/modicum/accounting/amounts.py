"""Amounts: numbers that are exact, or known to 60 digits, or infinite.

A rational stays rational as long as it can, so that its units are exact; all else
is a 60-digit decimal. Call inside a function that is `precise`.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from modicum.accounting.decimals import loss_units, saturate, to_decimal
from modicum.accounting.grid import INFINITE
from modicum.core.rationals import ceil_units

#: A loss: a rational, a decimal that errs by less than `decimals.GUARD`, or infinity.
Amount: TypeAlias = Fraction | Decimal

#: The loss of which nothing finite is proven.
INFINITY = Decimal("Infinity")
ZERO = Fraction(0)


def is_infinite(amount: Amount) -> bool:
    """Return whether nothing finite is proven.

    Examples:
        >>> is_infinite(INFINITY), is_infinite(Fraction(10**30))
        (True, False)
    """
    return isinstance(amount, Decimal) and amount.is_infinite()


def decimal_of(amount: Amount) -> Decimal:
    """Return an amount as a decimal of the current precision.

    Examples:
        >>> from modicum.accounting.decimals import precise
        >>> precise(decimal_of)(Fraction(2, 3))
        Decimal('0.666666666666666666666666666666666666666666666666666666666667')
    """
    return to_decimal(amount) if isinstance(amount, Fraction) else amount


def plus(a: Amount, b: Amount) -> Amount:
    """Return the sum; exact if both are.

    Examples:
        >>> plus(Fraction(1, 3), Fraction(1, 6))
        Fraction(1, 2)
        >>> plus(Fraction(1, 3), INFINITY)
        Decimal('Infinity')
    """
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    return decimal_of(a) + decimal_of(b)


def times(factor: Fraction | int, amount: Amount) -> Amount:
    """Return a multiple; of infinity, infinity, unless the factor is 0.

    Examples:
        >>> times(3, INFINITY), times(0, INFINITY)
        (Decimal('Infinity'), Fraction(0, 1))
    """
    if factor == 0:
        return ZERO
    if isinstance(amount, Fraction):
        return factor * amount
    return to_decimal(Fraction(factor)) * amount


def least(*amounts: Amount) -> Amount:
    """Return the least of some amounts.

    Examples:
        >>> least(INFINITY, Fraction(2), Decimal("1.5"))
        Decimal('1.5')
    """
    return min(amounts)


def units(amount: Amount) -> int:
    """Return a loss in ledger units, rounded up; `INFINITE` if it is infinite.

    Examples:
        >>> units(Fraction(1, 3))
        333333333334
        >>> units(INFINITY) == INFINITE
        True
    """
    if isinstance(amount, Fraction):
        return saturate(ceil_units(amount))
    return INFINITE if amount.is_infinite() else saturate(loss_units(amount))
