"""What is known of an expression's values: type, step and limits of numbers."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import Final

from msgspec import Struct

from modicum.query.tables import Column, ColumnType, Value

#: Integers of 64 bits.
WHOLE_MIN: Final = -(2**63)
WHOLE_MAX: Final = 2**63 - 1
#: The range of whole steps of numbers without bounds; a float holds them all.
STEPS_MAX: Final = 2**53
#: Steps within this are computed in 64 bits, others in 38 digits.
NARROW_MAX: Final = 2**62
#: Steps of more digits are refused.
WIDE_MAX: Final = 10**38 - 1
NUMERIC: Final[tuple[ColumnType, ...]] = ("integer", "number")
TIMES: Final[tuple[ColumnType, ...]] = ("date", "timestamp")
#: How types are named in messages.
A: Final[dict[ColumnType, str]] = {
    "text": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "date": "a date",
    "timestamp": "a timestamp",
}


class Misfit(Exception):  # noqa: N818 - the parser makes an `InputError` of it
    """An argument does not fit a function.

    Args:
        message: The mistake.
        why: The reason.
        remedy: The nearest expression that is read.
    """

    def __init__(self, message: str, why: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.why, self.remedy = why, remedy


#: Texts that are computed are no longer than so many columns in them, and so many
#: characters: else a row could make a run fail, and reveal itself.
COPIES_MAX: Final = 16
EXTRA_MAX: Final = 1_000


class Facts(Struct, frozen=True):
    """What is known of the values of an expression, besides that any may be NULL.

    Attributes:
        type: Their type.
        step: Numbers are integer multiples of it; 1 for integers.
        low: No number is less, in steps.
        high: No number is greater, in steps.
        constant: Whether it is the same in every row.
        value: The constant.
        nonzero: Whether no number is 0.
        endless: A column without bounds that it is computed from, if there is one.
        copies: A text is at most so many times as long as the columns in it.
        extra: And longer by so many characters at most.
    """

    type: ColumnType
    step: Fraction = Fraction(1)
    low: int = 0
    high: int = 0
    constant: bool = False
    value: Value | None = None
    nonzero: bool = False
    endless: str = ""
    copies: int = 0
    extra: int = 0

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.type in NUMERIC

    @property
    def narrow(self) -> bool:
        """Whether its steps are computed in 64 bits, with room to add two."""
        return max(abs(self.low), abs(self.high)) <= NARROW_MAX

    @property
    def farthest(self) -> int:
        """The largest number without its sign, in steps."""
        return max(abs(self.low), abs(self.high))


def of_column(column: Column) -> Facts:
    """Return the facts of a column: within its bounds, if it has some."""
    if column.type not in NUMERIC:
        return Facts(column.type, copies=int(column.type == "text"))
    if column.low is not None and column.high is not None:
        low, high = int(column.low / column.step), int(column.high / column.step)
        return Facts(column.type, column.step, low, high)
    name = column.name
    if column.type == "integer":
        return Facts("integer", low=WHOLE_MIN, high=WHOLE_MAX, endless=name)
    return Facts("number", column.step, -STEPS_MAX, STEPS_MAX, endless=name)


def of_constant(value: Value | None, kind: ColumnType) -> Facts:
    """Return the facts of a value."""
    if kind not in NUMERIC or value is None:
        extra = len(value) if isinstance(value, str) else 0
        return Facts(kind, constant=True, value=value, extra=extra)
    exact = Fraction(value)
    step = Fraction(1, exact.denominator)
    count, sure = exact.numerator, exact != 0
    return Facts(kind, step, count, count, constant=True, value=value, nonzero=sure)


def number(
    step: Fraction, low: int, high: int, *parts: Facts, whole: bool = False
) -> Facts:
    """Return the facts of a number that is computed.

    Args:
        step: Its step.
        low: The least one, in steps.
        high: The greatest one, in steps.
        parts: What it is computed from.
        whole: Whether it is an integer.

    Raises:
        Misfit: If it may have more digits than engines compute with.
    """
    endless = next((one.endless for one in parts if one.endless), "")
    if max(abs(low), abs(high)) > WIDE_MAX:
        raise too_large(endless)
    return Facts("integer" if whole else "number", step, low, high, endless=endless)


def too_large(endless: str = "") -> Misfit:
    """Return the mistake that a number may have too many digits."""
    remedy = "round it, or limit it: LEAST(GREATEST(column, 0), 1000)"
    if endless:
        remedy = f"declare `bounds` of `{endless}`, or {remedy}"
    return Misfit("numbers of this expression may have too many digits", "", remedy)


def common_step(*parts: Facts) -> Fraction:
    """Return the largest step of which the steps of all numbers are multiples."""
    tops = [one.step.numerator for one in parts]
    bottoms = [one.step.denominator for one in parts]
    below = lcm(*bottoms)
    whole = (top * (below // bottom) for top, bottom in zip(tops, bottoms, strict=True))
    return Fraction(gcd(*whole), below)


def at_step(part: Facts, step: Fraction) -> tuple[int, int]:
    """Return the limits of a number in other steps, of which its own is a multiple."""
    times = int(part.step / step)
    return part.low * times, part.high * times


def joined(*parts: Facts) -> Facts:
    """Return the facts of a value that is one of some; constant NULLs fit every type.

    Raises:
        Misfit: If they are of different types.
    """
    known = [one for one in parts if not is_null(one)] or list(parts[:1])
    types = {one.type for one in known}
    if types <= set(NUMERIC):
        step, whole = common_step(*known), types == {"integer"}
        ends = [at_step(one, step) for one in known]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return number(step, low, high, *known, whole=whole)
    if len(types) > 1:
        raise Misfit(
            "values of different types are mixed: "
            + " and ".join(sorted({A[one] for one in types}))
        )
    copies, extra = (max(ends) for ends in zip(*map(_length, known), strict=True))
    return of_text(copies, extra) if types == {"text"} else Facts(known[0].type)


def _length(text: Facts) -> tuple[int, int]:
    return text.copies, text.extra


def of_text(copies: int, extra: int) -> Facts:
    """Return the facts of a text that is computed.

    Args:
        copies: How many times as long as the columns in it it is, at most.
        extra: By how many characters it is longer, at most.

    Raises:
        Misfit: If it may be so long that a row could exhaust the memory.
    """
    if copies > COPIES_MAX or extra > EXTRA_MAX:
        raise Misfit(
            f"a text would be longer than {COPIES_MAX} times a column and"
            f" {EXTRA_MAX} characters",
            "join fewer texts, and replace by shorter ones",
        )
    return Facts("text", copies=copies, extra=extra)


def is_null(part: Facts) -> bool:
    """Return whether an expression is the constant NULL."""
    return part.constant and part.value is None
