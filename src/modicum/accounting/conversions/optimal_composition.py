"""The exact composition of (eps, delta) guarantees that are fixed in advance.

Any eps-DP mechanism is a post-processing of one that tells the truth with odds
e**eps, so the worst that several can do together is what these do together: a sum of
independent losses of +eps or -eps. Equal epsilons are grouped, and sums that meet are
merged, so the whole distribution is written down and nothing is approximated.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import ZERO
from modicum.accounting.conversions.profiles import (
    LEAST_DELTA,
    check_delta,
    check_eps,
    delta_above,
    loss_above,
)
from modicum.accounting.decimals import precise, to_decimal
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT, brief

#: The most multiplications that one distribution may take: about two seconds.
WORK_MAX = 500_000
#: The largest single epsilon: beyond it, e**-eps is 0 in every digit that is kept.
EPS_MAX = 10**6

#: Upper bound of the relative error of a sum of at most `WORK_MAX` positive terms of
#: 60 digits.
_SUM_ERROR = Decimal("1e-45")

# Maximum number of factors multiplied exactly.
_EXACT_FACTORS = 1000

_NOT_ENOUGH = "no delta is left for epsilon"


@dataclass(frozen=True, slots=True)
class _Losses:
    """The distribution of a composed loss, above its middle.

    Attributes:
        values: The losses that are possible, rising.
        above: For each index, the probability of this loss or a greater one; one more
            entry, 0, is at the end.
        weighted: The same sums, each term multiplied by e**-loss.
    """

    values: tuple[Fraction, ...]
    above: tuple[Decimal, ...]
    weighted: tuple[Decimal, ...]

    def sums(self, eps: Fraction) -> tuple[Decimal, Decimal]:
        """Return both sums over the losses greater than `eps`."""
        index = bisect_right(self.values, eps)
        return self.above[index], self.weighted[index]

    def delta(self, eps: Fraction) -> Decimal:
        """Return an upper bound of delta at `eps`."""
        if eps >= self.values[-1]:
            return Decimal(0)
        above, weighted = self.sums(eps)
        exact = above - to_decimal(eps).exp() * weighted
        return max(exact + above * _SUM_ERROR, LEAST_DELTA)


@lru_cache(maxsize=64)
@precise
def _losses(counts: tuple[tuple[Fraction, int], ...]) -> _Losses:
    weights: dict[Fraction, Decimal] = {ZERO: Decimal(1)}
    work = 0
    for eps, count in counts:
        work += len(weights) * (count + 1)
        if work > WORK_MAX:
            raise _too_much()
        merged: dict[Fraction, Decimal] = {}
        for shift, chance in _repeated(eps, count):
            for loss, weight in weights.items():
                at = loss + shift
                merged[at] = merged.get(at, Decimal(0)) + weight * chance
        weights = merged
    values = sorted(weights)
    above, weighted = [Decimal(0)], [Decimal(0)]
    for value in reversed(values):
        above.append(above[-1] + weights[value])
        # The other side of the worst pair has the opposite losses.
        weighted.append(weighted[-1] + weights[-value])
    return _Losses(tuple(values), tuple(reversed(above)), tuple(reversed(weighted)))


def _repeated(eps: Fraction, count: int) -> list[tuple[Fraction, Decimal]]:
    """Return the losses of equal truthful answers, and their probabilities."""
    odds = to_decimal(eps).exp()
    chance = (1 + odds) ** -count
    found = []
    for true in range(count + 1):
        found.append((eps * (2 * true - count), chance))
        chance = chance * odds * (count - true) / (true + 1)
    return found


def _too_much() -> InputError:
    return InputError(
        Problem(
            Code.OUT_OF_RANGE,
            f"these guarantees compose to more than {WORK_MAX} different losses",
            help="round the epsilons up to multiples of one step, or use `advanced`"
            " composition",
        )
    )


def _checked(counts: Mapping[Fraction, int]) -> tuple[tuple[Fraction, int], ...]:
    for eps, count in counts.items():
        check_eps(eps)
        if count < 0 or eps > EPS_MAX:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"{count} guarantees of epsilon {brief(eps)} cannot be composed",
                    help=f"give counts of at least 0 and epsilons up to {EPS_MAX}",
                )
            )
    return tuple(sorted((eps, n) for eps, n in counts.items() if eps and n))


def _lost(deltas: Mapping[Fraction, int]) -> Fraction:
    """Return an upper bound of the probability that some mechanism fails by its delta.

    Exact for a few; a product of many exact factors would have too many digits.
    """
    for delta, count in deltas.items():
        if not 0 <= delta < 1 or count < 0:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"{count} deltas of {brief(delta)} cannot be composed",
                    help="give deltas from 0 to below 1, and counts of at least 0",
                )
            )
    used = [(delta, count) for delta, count in deltas.items() if delta and count]
    if sum(count for _, count in used) <= _EXACT_FACTORS:
        kept = Fraction(1)
        for delta, count in used:
            kept *= (1 - delta) ** count
        return 1 - kept
    nearly = 1 - _SUM_ERROR
    for delta, count in used:
        nearly *= to_decimal(1 - delta) ** count
    return 1 - Fraction(nearly)


@precise
def optimal_pure_delta(
    counts: Mapping[Fraction, int],
    eps: Fraction,
    *,
    deltas: Mapping[Fraction, int] | None = None,
) -> Fraction:
    """Return the least delta of guarantees together, at an epsilon.

    Args:
        counts: The number of uses of each epsilon; parameters fixed before the first
            output.
        eps: The epsilon of the whole, >= 0.
        deltas: How often each of the mechanisms' own deltas is used, if any.

    Returns:
        1 - (1 - d) * product of (1 - delta), d the delta of the pure parts, in 20
        significant digits, rounded up.

    Raises:
        InputError: If an argument is out of range, or the losses are too many.

    Neighboring relation:
        The one that all guarantees hold under.

    Source:
        Kairouz, Oh & Viswanath 2015, Thm 3.3 (arXiv:1311.0776) for equal, Murtagh &
        Vadhan 2016, Thm 1.5 (arXiv:1507.03113) for different guarantees.

    Examples:
        >>> found = optimal_pure_delta({Fraction(1): 2}, Fraction("1.5"))
        >>> f"{float(found):.12g}"
        '0.21028836898'
    """
    check_eps(eps)
    pure = Fraction(_losses(_checked(counts)).delta(eps))
    lost = _lost(deltas or {})
    together = pure + lost - pure * lost
    return delta_above(together) if together else ZERO


@precise
def optimal_pure_epsilon(
    counts: Mapping[Fraction, int],
    delta: Fraction,
    *,
    deltas: Mapping[Fraction, int] | None = None,
) -> Fraction:
    """Return the least epsilon of guarantees together, at a delta.

    Args:
        counts: The number of uses of each epsilon; parameters fixed before the first
            output.
        delta: The delta of the whole, strictly between 0 and 1.
        deltas: How often each of the mechanisms' own deltas is used, if any.

    Returns:
        Epsilon, a multiple of 1e-12 or the sum of all epsilons, such that
        `optimal_pure_delta` there is at most `delta`.

    Raises:
        InputError: If an argument is out of range, the losses are too many, or the
            mechanisms' own deltas exceed `delta`.

    Neighboring relation:
        The one that all guarantees hold under.

    Source:
        The inverse of `optimal_pure_delta`.

    Examples:
        >>> ten = optimal_pure_epsilon({Fraction(1, 2): 10}, Fraction(1, 10**5))
        >>> f"{float(ten):.12g}"
        '4.99885412041'
    """
    check_delta(delta)
    losses, lost = _losses(_checked(counts)), _lost(deltas or {})
    if lost > delta:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the mechanisms' own deltas exceed {brief(delta)}: {_NOT_ENOUGH}",
                help="give a larger delta",
            )
        )
    left, most = (delta - lost) / (1 - lost), losses.values[-1]
    eps = loss_above(_epsilon(losses, to_decimal(left)))
    if Fraction(losses.delta(ZERO)) <= left:
        return ZERO
    while eps < most and losses.delta(eps) > left:
        eps += Fraction(1, LOSS_UNIT)
    return min(eps, most)


def _epsilon(losses: _Losses, delta: Decimal) -> Decimal:
    """Return where delta falls to a value: between two losses it is above - e^eps b."""
    low, high = bisect_right(losses.values, ZERO) - 1, len(losses.values) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if losses.delta(losses.values[middle]) > delta:
            low = middle
        else:
            high = middle
    above, weighted = losses.above[high], losses.weighted[high]
    if above <= delta:
        return Decimal(0)
    return ((above - delta) / weighted).ln()
