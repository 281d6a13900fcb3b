"""Bounds of composition by the mean and the range of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from modicum.accounting.amounts import ZERO
from modicum.accounting.conversions.profiles import check_delta, loss_above
from modicum.accounting.decimals import precise, to_decimal


def _squares(counts: Mapping[Fraction, int]) -> Fraction:
    return sum((count * eps**2 for eps, count in counts.items()), ZERO)


@precise
def mean_loss(counts: Mapping[Fraction, int]) -> Decimal:
    """Return the sum of eps * tanh(eps/2), the mean loss of truthful answers.

    Args:
        counts: The number of uses of each epsilon.

    Examples:
        >>> f"{mean_loss({Fraction(1): 10}):.6f}"  # of at most 10
        '4.621172'
    """
    total = Decimal(0)
    for eps, count in counts.items():
        shrink = to_decimal(-eps).exp()
        total += count * to_decimal(eps) * (1 - shrink) / (1 + shrink)
    return total


@precise
def advanced_epsilon(counts: Mapping[Fraction, int], delta: Fraction) -> Fraction:
    """Return epsilon of pure guarantees together, by advanced composition.

    Args:
        counts: The number of uses of each epsilon; fixed before the first output.
        delta: Strictly between 0 and 1, the remainder after the mechanisms' own deltas.

    Returns:
        sqrt(2 ln(1/delta) * sum eps**2) + sum eps*tanh(eps/2), a multiple of 1e-12,
        rounded up.

    Raises:
        InputError: If `delta` is out of range.

    Neighboring relation:
        The one that all guarantees hold under.

    Source:
        Dwork, Rothblum & Vadhan 2010, with the mean loss of Kairouz, Oh & Viswanath
        2015 (arXiv:1311.0776). Each loss lies within eps of 0, so Hoeffding's
        inequality bounds how far their sum exceeds its mean.

    Examples:
        >>> found = advanced_epsilon({Fraction(1, 10): 100}, Fraction(1, 10**6))
        >>> f"{float(found):.12g}"
        '5.75610551934'
    """
    return _up(mean_loss(counts) + _deviation(counts, delta))


@precise
def adaptive_epsilon(counts: Mapping[Fraction, int], delta: Fraction) -> Fraction:
    """Return the charge of pure guarantees in a filter of advanced composition.

    Args:
        counts: The number of uses of each epsilon; each may have been chosen after
            seeing earlier answers.
        delta: Strictly between 0 and 1, fixed before the start.

    Returns:
        sqrt(2 ln(1/delta) * sum eps**2) + sum eps**2 / 2, a multiple of 1e-12,
        rounded up. It is a guarantee if the filter's own epsilon, fixed before the
        start, was never exceeded.

    Raises:
        InputError: If `delta` is out of range.

    Neighboring relation:
        The one that all guarantees hold under.

    Source:
        Whitehouse, Ramdas, Rogers & Wu 2023, Thm 1 (arXiv:2203.05481).

    Examples:
        >>> found = adaptive_epsilon({Fraction(1, 10): 100}, Fraction(1, 10**6))
        >>> f"{float(found):.12g}"
        '5.75652176976'
    """
    return _up(to_decimal(_squares(counts)) / 2 + _deviation(counts, delta))


def _deviation(counts: Mapping[Fraction, int], delta: Fraction) -> Decimal:
    check_delta(delta)
    return (to_decimal(_squares(counts)) * -2 * to_decimal(delta).ln()).sqrt()


def _up(value: Decimal) -> Fraction:
    return loss_above(value) if value else ZERO
