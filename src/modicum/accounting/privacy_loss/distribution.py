"""Distributions of privacy losses as integers that are never too small.

A loss is a multiple of a step that is a power of 2; a mass is an integer in units of
1e-24. One distribution is above another if at every real eps its

    delta(eps) = infinite + sum of mass(x) * max(0, 1 - e**(eps - x))

is. It rises with every mass and every loss, so masses are only ever rounded up, and
moved to larger losses or to infinity; they may sum to more than 1. Convolution with
any masses keeps the order: the delta of a sum of losses is the sum, over the masses of
the one at y, of the deltas of the other at eps - y, and of its whole mass where y is
infinite. So every step here leads to a distribution above that of the product of
dominating pairs, though not to one of probabilities.

Entries of the ledger follow from these numbers: another grid, another tail or another
order of rounding decides otherwise, and needs another version of the events.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from msgspec import Struct

from modicum.accounting.conversions.profiles import delta_above
from modicum.accounting.decimals import loss_units, precise, to_decimal
from modicum.accounting.grid import INFINITE

#: The unit of a mass, as a power of 10: 1e-24.
DIGITS = 24
UNIT = 10**DIGITS
#: A distribution with more points gets a coarser grid.
POINTS_MAX = 2048
#: Above the relative error of sums of 60-digit products of so many terms.
_ERROR = Decimal("1e-45")

# Products of integers are exact, or an error.
_EXACT = decimal.Context(
    prec=decimal.MAX_PREC,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.Inexact, decimal.Rounded, decimal.InvalidOperation],
)


class Distribution(Struct, frozen=True):
    """The privacy loss of one neighbor against the other.

    Attributes:
        halvings: The step is 2**-halvings.
        first: The least loss, in steps.
        mass: The mass of each loss from there on, in units of 1e-24; not empty.
        infinite: The mass of the infinite loss.
    """

    halvings: int
    first: int
    mass: tuple[int, ...]
    infinite: int = 0

    @property
    def step(self) -> Fraction:
        """The distance of two losses."""
        return Fraction(2) ** -self.halvings

    @precise
    def epsilon(self, delta: Fraction) -> int:
        """Return the least epsilon at `delta` in units of 1e-12, rounded up.

        Between two losses of the grid, delta(eps) is S - e**(eps - x) R, where S is
        the mass above, and R that mass with weights e**(x - loss).
        """
        allowed = to_decimal(delta * UNIT)
        if self.infinite > allowed:
            return INFINITE
        step = to_decimal(self.step)
        shrink = (-step).exp()
        above, weighted, place = Decimal(self.infinite), Decimal(0), self.last
        for mass in reversed(self.mass):
            # Delta at this place, from the masses above it alone.
            if above - weighted * shrink * (1 - _ERROR) > allowed:
                break
            weighted = weighted * shrink + mass
            above += mass
            place -= 1
            if place < 0:
                break
        if above <= allowed:
            return 0
        x = step * (place + 1)
        return loss_units(x + ((above - allowed) / (weighted * (1 - _ERROR))).ln())

    @precise
    def delta(self, eps: Fraction) -> Fraction:
        """Return delta at `eps`, in 20 significant digits, rounded up, at most 1."""
        total, at = Decimal(self.infinite), to_decimal(eps)
        step = to_decimal(self.step)
        for place in range(self.last, self.first - 1, -1):
            over = step * place - at
            if over <= 0:
                break
            total += self.mass[place - self.first] * (1 - (-over).exp() + _ERROR)
        return delta_above(total / UNIT) if total else Fraction(0)

    @property
    def last(self) -> int:
        """The largest finite loss, in steps."""
        return self.first + len(self.mass) - 1

    def trimmed(self, tail: int) -> Distribution:
        """Return it with little mass at both ends moved up.

        Args:
            tail: The mass that may go to infinity, and from the lowest losses to the
                least that is kept.
        """
        mass = self.mass
        low, high, lost, moved = 0, len(mass), 0, 0
        while high > 1 and lost + mass[high - 1] <= tail:
            high -= 1
            lost += mass[high]
        while low < high - 1 and moved + mass[low] <= tail:
            moved += mass[low]
            low += 1
        kept = (mass[low] + moved, *mass[low + 1 : high])
        return Distribution(self.halvings, self.first + low, kept, self.infinite + lost)

    @precise
    def coarser(self, times: int = 1) -> Distribution:
        """Return it on a grid of 2**times as large steps, by connecting the dots.

        A mass at a loss x between grid points a < b goes to both, so that its
        divergences become chords: (1 - e**(a - x)) / (1 - e**(a - b)) of it to b.

        Source:
            Doroshenko et al. 2022 (arXiv:2207.04380).
        """
        if not times:
            return self
        step = to_decimal(self.step)
        count = 2**times
        whole = 1 - (-step * count).exp()
        low, high = self.first // count, -(-self.last // count)
        parts = [0] * (high - low + 1)
        shares: dict[int, int] = {}  # In units of 1e-30, rounded up.
        for place, mass in enumerate(self.mass, self.first):
            below, rest = divmod(place, count)
            if not rest:
                parts[below - low] += mass
                continue
            if rest not in shares:
                shares[rest] = _up((1 - (-step * rest).exp()) / whole, 30)
            up = -(-mass * shares[rest] // 10**30)
            parts[below - low] += mass - up
            parts[below - low + 1] += up
        halvings = self.halvings - times
        return Distribution(halvings, low, tuple(parts), self.infinite)

    def plus(self, other: Distribution, tail: int) -> Distribution:
        """Return the distribution of the sum of independent losses.

        Args:
            other: The other loss.
            tail: As for `trimmed`.
        """
        one = self
        one = one.coarser(max(0, one.halvings - other.halvings))
        other = other.coarser(max(0, other.halvings - one.halvings))
        mass = _product(one.mass, other.mass)
        # One is infinite, or one is finite and the other infinite.
        each = one.infinite * (sum(other.mass) + other.infinite)
        infinite = -(-(each + sum(one.mass) * other.infinite) // UNIT)
        first = one.first + other.first
        whole = Distribution(one.halvings, first, mass, infinite).trimmed(tail)
        while len(whole.mass) > POINTS_MAX:
            whole = whole.coarser().trimmed(0)
        return whole

    def repeated(self, times: int, tail: int) -> Distribution:
        """Return the distribution of so many independent losses, by squaring.

        Args:
            times: How many, >= 1.
            tail: As for `trimmed`, at each convolution.
        """
        found: Distribution | None = None
        power = self
        while True:
            if times % 2:
                found = power if found is None else found.plus(power, tail)
            times //= 2
            if not times:
                assert found is not None
                return found
            power = power.plus(power, tail)


def _up(value: Decimal, digits: int) -> int:
    scaled = (value * (1 + _ERROR)).scaleb(digits)
    return int(scaled.to_integral_value(rounding=decimal.ROUND_CEILING))


def _product(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the convolution of masses, each rounded up to a unit.

    All masses of one side are written into one integer, far enough apart that no sum
    of products reaches the next one (Kronecker's substitution). `decimal` multiplies
    such integers exactly, or raises, in nearly linear time.
    """
    width = len(str(min(sum(one) * max(other), sum(other) * max(one))))
    length = len(one) + len(other) - 1
    digits = str(
        _EXACT.multiply(
            *(
                Decimal("".join([f"{mass:0{width}d}" for mass in side]))
                for side in (one, other)
            )
        )
    ).zfill(width * length)
    return tuple(
        [
            -(-int(digits[at : at + width]) // UNIT)
            for at in range(0, width * length, width)
        ]
    )
