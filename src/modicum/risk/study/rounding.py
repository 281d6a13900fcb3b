"""Numbers as text, rounded to the conservative side."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from math import isinf

_DIGITS = 4
#: Numbers outside of this range are shown as a power of ten.
_SMALL, _LARGE = Decimal("1e-4"), Decimal("1e9")


def near(value: float) -> str:
    """Return a number in four digits.

    Args:
        value: A number, may be infinite.

    Returns:
        Its text, rounded to nearest.

    Neighboring relation:
        None.

    Source:
        None.

    Examples:
        >>> near(1234567.0), near(0.25), near(float("inf")), near(1e-7)
        ('1,235,000', '0.25', 'infinite', '1e-7')
    """
    return _rounded_text(value, ROUND_HALF_EVEN)


def at_most(value: float) -> str:
    """Return a number, such as a loss or an error, that is never understated.

    Args:
        value: At least 0, may be infinite.

    Returns:
        It in four digits, rounded up.

    Neighboring relation:
        None.

    Source:
        The house's rule: losses round up.

    Examples:
        >>> at_most(1.00001), at_most(0.0), at_most(1.0)
        ('1.001', '0', '1')
    """
    return _rounded_text(value, ROUND_CEILING)


def at_least(value: float) -> str:
    """Return a number, such as a similarity of people, that is never overstated.

    Args:
        value: At least 0, finite.

    Returns:
        It in four digits, rounded down.

    Neighboring relation:
        None.

    Source:
        The house rule: what is good rounds down.

    Examples:
        >>> at_least(0.949999), at_least(1.0)
        ('0.9499', '1')
    """
    return _rounded_text(value, ROUND_FLOOR)


def _rounded_text(value: float, rounding: str) -> str:
    if isinf(value):
        return "infinite"
    # A float means its shortest decimal, so that 0.1 stays 0.1.
    context = Context(prec=_DIGITS, rounding=rounding)
    cut = context.plus(Decimal(repr(float(value)))).normalize(context)
    if cut and not _SMALL <= cut < _LARGE:
        return f"{cut:e}".replace("e+", "e")
    return f"{cut:,f}"
