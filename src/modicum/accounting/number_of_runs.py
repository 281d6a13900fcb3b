"""Distributions of the number of runs, of which the best one is published."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct

from modicum.accounting.amounts import Amount, decimal_of, is_infinite, least, units
from modicum.accounting.argument_ranges import require_above_zero
from modicum.accounting.decimals import precise, significant, to_decimal
from modicum.core.rationals import LOSS_UNIT

#: More than the relative error of any number below.
_ERROR = Decimal("1e-38")
#: Closer to 0 or 1, `eta` and `gamma` are rounded to where more runs are likelier: the
#: mean would lose digits.
_LEAST = Fraction(1, 10**9)
_DIGITS = 20

#: From an epsilon to a delta that is proven there.
Profile: TypeAlias = Callable[[Fraction], Fraction]


class NegativeBinomial(Struct, frozen=True):
    """A truncated negative binomial number of runs, at least one.

    P(K = k) is in proportion to (1 - gamma)^k Gamma(k + eta) / k!.

    Attributes:
        eta: Its shape, above -1: 1 is geometric, 0 is logarithmic.
        gamma: Above 0 and below 1; with less, there are more runs.
    """

    eta: Fraction
    gamma: Fraction

    def __post_init__(self) -> None:
        require_above_zero("eta + 1", self.eta + 1)
        require_above_zero("gamma", self.gamma)
        require_above_zero("1 - gamma", 1 - self.gamma)

    @property
    @precise
    def mean(self) -> Decimal:
        """The mean number of runs, rounded up.

        Examples:
            >>> f"{NegativeBinomial(Fraction(1), Fraction(1, 20)).mean:.6f}"
            '20.000000'
            >>> f"{NegativeBinomial(Fraction(0), Fraction(1, 20)).mean:.6f}"
            '6.342356'
        """
        gamma = to_decimal(min(self.gamma, 1 - _LEAST))
        near = self.eta != 0 and abs(self.eta) < _LEAST
        eta = to_decimal(_LEAST if near else self.eta)
        missed = -gamma.ln() if eta == 0 else (1 - (eta * gamma.ln()).exp()) / eta
        return (1 - gamma) / (gamma * missed) * (1 + _ERROR)

    @property
    def none(self) -> Decimal:
        """The probability that there is no run."""
        return Decimal(0)

    def surplus(self, profile: Profile, eps: Amount) -> Callable[[Amount], Fraction]:
        """Return C of `private_selection` by the order.

        Args:
            profile: The privacy profile of one run.
            eps: Its pure epsilon, or infinity.
        """
        gamma = to_decimal(self.gamma)

        def enough(e: Fraction) -> bool:
            most = gamma * (to_decimal(e).exp() - 1) * (1 - _ERROR)
            return to_decimal((1 - self.gamma) * profile(e)) <= most

        low, high = 0, units(least(eps, -gamma.ln()))
        while high - low > max(1, high >> 24):
            middle = (low + high) // 2
            if enough(Fraction(middle, LOSS_UNIT)):
                high = middle
            else:
                low = middle
        found = (1 + self.eta) * Fraction(high, LOSS_UNIT)
        return lambda _: found


class Poisson(Struct, frozen=True):
    """A Poisson number of runs, which may be none.

    Attributes:
        mean: The mean number of runs, > 0.
    """

    mean: Fraction

    def __post_init__(self) -> None:
        require_above_zero("the mean number of runs", self.mean)

    @property
    @precise
    def none(self) -> Decimal:
        """The probability that there is no run."""
        return (-to_decimal(self.mean)).exp()

    def surplus(self, profile: Profile, eps: Amount) -> Callable[[Amount], Fraction]:
        """Return C of `private_selection` by the order.

        Args:
            profile: The privacy profile of one run.
            eps: Its pure epsilon, or infinity.
        """
        del eps

        def at(order: Amount) -> Fraction:
            if is_infinite(order):
                return self.mean * profile(Fraction(0))
            e = -(1 - 1 / decimal_of(order)).ln() * (1 - _ERROR)
            return self.mean * profile(significant(e, _DIGITS, up=False))

        return at


#: The number of runs.
Runs: TypeAlias = NegativeBinomial | Poisson
