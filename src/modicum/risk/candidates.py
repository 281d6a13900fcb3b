"""The epsilons that a choice is made from."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from modicum.accounting.decimals import precise, significant, to_decimal
from modicum.core.errors import Code
from modicum.core.rationals import brief
from modicum.risk.arguments import Number, above_zero, argument, count, mistake

#: The 37 candidates that the RDR paper's results were computed with: 1 to 9
#: thousandths, hundredths and tenths, and 1 to 10.
PUBLISHED = (
    *(Fraction(n, power) for power in (1000, 100, 10, 1) for n in range(1, 10)),
    Fraction(10),
)

_GRID_DIGITS = 4
#: The number of four-digit numbers per power of ten.
_BETWEEN_POWERS = 9000
# More than the error of an exponential in 60 digits: a number that should be short is
# not rounded down below it.
_NUDGE = Decimal(f"1.{'0' * 49}1")


def candidates(values: Iterable[Number]) -> tuple[Fraction, ...]:
    """Return candidates in ascending order.

    Args:
        values: Epsilons above 0, without duplicates, in any order; a float means
            its shortest decimal.

    Returns:
        The same, exact, rising.

    Raises:
        InputError: If there is none, one is not above 0, or one is repeated.

    Neighboring relation:
        None: candidates are fixed before a table is read.

    Source:
        The set of candidates of the RDR paper's Algorithm 1 (arXiv:2310.13104).

    Examples:
        >>> candidates([1, "0.5"])
        (Fraction(1, 2), Fraction(1, 1))
    """
    found = sorted(
        above_zero("the candidate", value, by="epsilons") for value in values
    )
    if not found:
        raise mistake("there are no candidates", "give at least one epsilon")
    for one, following in pairwise(found):
        if one == following:
            raise mistake(
                f"the candidate {brief(one)} is given twice",
                f"give each once in {argument('epsilons')}",
                Code.DUPLICATE_NAME,
            )
    return tuple(found)


@precise
def grid(low: Number, high: Number, n: int) -> tuple[Fraction, ...]:
    """Return candidates at equal ratios.

    Args:
        low: The least one; > 0.
        high: The greatest one; above `low`.
        n: How many; >= 2.

    Returns:
        `n` epsilons, rising. Those between the ends are rounded down to four digits.

    Raises:
        InputError: If an argument is out of range, or the number does not fit between
            the ends in four digits.

    Neighboring relation:
        None: candidates are fixed before a table is read.

    Source:
        A geometric sequence.

    Examples:
        >>> [float(epsilon) for epsilon in grid("0.01", 1, 5)]
        [0.01, 0.03162, 0.1, 0.3162, 1.0]
    """
    first, last = (
        above_zero("the low end", low, by="epsilons"),
        above_zero("the high end", high, by="epsilons"),
    )
    if first >= last:
        raise mistake(
            f"the low end {brief(first)} is not below {brief(last)}",
            f"give the smaller epsilon of {argument('epsilons')} first",
        )
    steps = count("the number of candidates", n, least=2, by="epsilons") - 1
    apart = mistake(
        f"{n} candidates from {brief(first)} on are not distinct in four digits",
        f"give fewer {argument('epsilons')}, or a wider range",
    )
    powers_of_ten = to_decimal(last / first).log10() + 1
    if steps > _BETWEEN_POWERS * powers_of_ten:
        raise apart
    ln_ratio = to_decimal(last / first).ln() / steps
    unit = to_decimal(first) * _NUDGE
    between = [
        significant(unit * (ln_ratio * step).exp(), _GRID_DIGITS, up=False)
        for step in range(1, steps)
    ]
    found = (first, *between, last)
    if any(one >= following for one, following in pairwise(found)):
        raise apart
    return found
