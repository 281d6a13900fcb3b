"""Exact numbers: text to rationals, rationals to integer units, no floats between."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TypeAlias

#: A number, as Python code gives it; see `rational`.
Number: TypeAlias = int | float | Decimal | Fraction

#: One ledger unit of every loss coordinate but delta.
LOSS_UNIT = 10**12
#: One ledger unit of delta.
DELTA_UNIT = 10**18

_TEXT_CHARACTERS_MAX = 64
_EXPONENT_MAX = 400  # 1e-400 is below any float; a larger power only costs time.
_DECIMAL = re.compile(
    r"[-+]?(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[-+]?\d+))?", re.ASCII
)


def parse_number(text: str) -> Fraction | None:
    """Return the exact value of a finite decimal text, or None if it is not one.

    Args:
        text: Digits with an optional sign, point and exponent, as in YAML 1.2:
            ``1e-7``, ``1.0E-7``, ``.1e-6``. At most 64 characters, and a power
            of ten of at most 400.

    Examples:
        >>> parse_number("1e-7")
        Fraction(1, 10000000)
        >>> parse_number("nan") is None
        True
    """
    if len(text) > _TEXT_CHARACTERS_MAX:
        return None
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    exponent = match["exponent"]
    if exponent is not None and abs(int(exponent)) > _EXPONENT_MAX:
        return None
    return Fraction(text)


def rational(value: float | str | Decimal | Fraction) -> Fraction:
    """Return the exact rational of a Python number.

    A float stands for its shortest decimal text, so ``0.1`` means one tenth, as
    it would in a file.

    Raises:
        ValueError: If the value is not a finite number.
    """
    if isinstance(value, Fraction):
        return value
    exact = None if isinstance(value, bool) else parse_number(str(value))
    if exact is None:
        message = f"not a finite number: {value!r}"
        raise ValueError(message)
    return exact


def number_text(value: Fraction) -> str:
    """Return the one canonical text of a rational: a plain decimal or ``n/d``.

    Examples:
        >>> number_text(Fraction(1, 8)), number_text(Fraction(1, 3))
        ('0.125', '1/3')
    """
    denominator, twos, fives = value.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    sign = "-" if value < 0 else ""
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    if places == 0:
        return sign + digits
    digits = digits.zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def number_spelled(value: Fraction) -> str:
    """Return the one spelling of a number in a policy.

    Args:
        value: The number; one that no file can hold, such as a third, is written as
            a fraction.

    Examples:
        >>> number_spelled(Fraction("0.0010")), number_spelled(Fraction("0.00015"))
        ('0.001', '1.5e-4')
        >>> number_spelled(Fraction(10**9 - 1)), number_spelled(Fraction(10**9))
        ('999999999', '1e9')
    """
    spellings = _spellings(value)
    return next(
        (text for text in spellings if parse_number(text) == value), number_text(value)
    )


def _spellings(value: Fraction) -> Iterator[str]:
    """Yield spellings, the best first; the later ones are for freaks of 64 digits."""
    plain = number_text(value)
    if "/" in plain:
        return
    digits = plain.replace(".", "").lstrip("-0").rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    exponent = _exponent(abs(value)) if value else 0
    fraction = f".{digits[1:]}" if digits[1:] else ""
    scientific = f"{sign}{digits[0]}{fraction}e{exponent}"
    usual = value == 0 or Fraction(1, 1000) <= abs(value) < 10**9
    yield from (plain, scientific) if usual else (scientific, plain)
    yield plain.replace("0.", ".", 1)
    yield f"{sign}{digits}e{exponent - len(digits) + 1}"
    yield number_text(value * 10**400).replace("0.", ".", 1) + "e-400"
    yield number_text(value / 10**400).replace("0.", ".", 1) + "e400"


def _exponent(value: Fraction) -> int:
    """Return the power of ten of a positive number's first digit."""
    whole, _, places = number_text(value).partition(".")
    if whole != "0":
        return len(whole) - 1
    return -1 - (len(places) - len(places.lstrip("0")))


def ceil_units(value: Fraction, unit: int = LOSS_UNIT) -> int:
    """Return a loss in integer units, rounded up."""
    return math.ceil(value * unit)


def floor_units(value: Fraction, unit: int = LOSS_UNIT) -> int:
    """Return a limit in integer units, rounded down."""
    return math.floor(value * unit)


def rounded_up(value: Fraction) -> float:
    """Return the least float that is not below a number.

    Examples:
        >>> rounded_up(Fraction(1, 2))
        0.5
        >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3)
        True
    """
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if nearest < value else nearest


def brief(value: Fraction) -> str:
    """Return a number as text: six digits, whatever its size.

    Examples:
        >>> brief(Fraction(1, 3)), brief(Fraction(1, 10**7)), brief(Fraction(10) ** 500)
        ('0.333333', '1e-7', '1e+500')
    """
    try:
        shown = f"{float(value):g}"
    except OverflowError:
        shown = ""
    if shown and (float(shown) != 0 or value == 0):
        return unpadded(shown)
    with localcontext(Context(prec=6, Emax=10**6, Emin=-(10**6))):
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
        return f"{quotient.normalize():e}"


def unpadded(text: str) -> str:
    """Return the text of a number with ``e-7`` where Python writes ``e-07``.

    Examples:
        >>> unpadded("1.5e-07"), unpadded("1e-10")
        ('1.5e-7', '1e-10')
    """
    return _PADDING.sub("e-", text)


_PADDING = re.compile(r"e-0+(?=\d)")
