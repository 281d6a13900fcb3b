"""Numbers of four digits, as rungs of a ladder that can be searched."""

from __future__ import annotations

from fractions import Fraction

#: How many numbers of four digits there are from one power of ten to the next.
RUNGS = 9000

_TEN = Fraction(10)


def number_on(rung: int) -> Fraction:
    """Return the number on a rung; the next rung has the next larger one.

    Args:
        rung: Any whole number; 1 stands on rung 0.

    Examples:
        >>> number_on(0), number_on(1), number_on(-1)
        (Fraction(1, 1), Fraction(1001, 1000), Fraction(9999, 10000))
    """
    decade, place = divmod(rung, RUNGS)
    return (1000 + place) * _TEN ** (decade - 3)


def rung_below(value: Fraction) -> int:
    """Return the rung of the largest number of four digits that is not above a value.

    Args:
        value: A positive number.

    Examples:
        >>> number_on(rung_below(Fraction("8.02199")))
        Fraction(8021, 1000)
        >>> rung_below(Fraction("0.09999")), rung_below(Fraction(10))
        (-9001, 9000)
    """
    decade = len(str(value.numerator)) - len(str(value.denominator))
    while _TEN**decade > value:
        decade -= 1
    while _TEN ** (decade + 1) <= value:
        decade += 1
    return decade * RUNGS + int(value / _TEN ** (decade - 3)) - 1000


def rung_above(value: Fraction) -> int:
    """Return the rung of the least number of four digits that is not below a value.

    Args:
        value: A positive number.

    Examples:
        >>> number_on(rung_above(Fraction("8.02101")))
        Fraction(4011, 500)
    """
    rung = rung_below(value)
    return rung if number_on(rung) == value else rung + 1
