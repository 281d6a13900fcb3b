"""Numbers in words, rounded to the side that promises less."""

from __future__ import annotations

from fractions import Fraction
from math import isinf

from modicum.accounting.decimals import precise, significant
from modicum.core.exact import rational, unpadded

_DIGITS = 4
#: Four digits of what is larger may be no float.
_LARGEST = 1e308


def near(value: float) -> str:
    """Return a number in four digits.

    Args:
        value: A number, may be infinite.

    Returns:
        It in words, rounded to nearest.

    Neighboring relation:
        None.

    Source:
        None.

    Examples:
        >>> near(1234567.0), near(0.25), near(float("inf")), near(1e-7)
        ('1,235,000', '0.25', 'infinite', '1e-7')
    """
    return "infinite" if isinf(value) else _plain(float(f"{value:.{_DIGITS}g}"))


def at_most(value: float) -> str:
    """Return a number, such as a loss or an error, that is not told too low.

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
    if isinf(value) or value > _LARGEST:
        return "infinite"
    return _plain(_cut(value, up=True))


def at_least(value: float) -> str:
    """Return a number, such as how alike people are, that is not told too high.

    Args:
        value: At least 0, finite.

    Returns:
        It in four digits, rounded down.

    Neighboring relation:
        None.

    Source:
        The house's rule: what is good rounds down.

    Examples:
        >>> at_least(0.949999), at_least(1.0)
        ('0.9499', '1')
    """
    return _plain(_cut(value, up=False))


@precise
def _cut(value: float, *, up: bool) -> float:
    # A float stands for its shortest decimal, so that 0.1 stays 0.1.
    exact: Fraction = rational(float(value))
    return float(significant(exact, _DIGITS, up=up))


def _plain(value: float) -> str:
    if value and not 1e-4 <= value < 1e9:
        return unpadded(f"{value:.{_DIGITS}g}").replace("e+", "e")
    return f"{value:,.12f}".rstrip("0").rstrip(".")
