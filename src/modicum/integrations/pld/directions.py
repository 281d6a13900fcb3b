"""Both directions of a privacy loss distribution, and their composition in floats.

dp-accounting convolves; results are checked, and the possible effect of floats is
bounded and counted as infinite loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from modicum.accounting.amounts import INFINITY, Amount
from modicum.core.errors import check
from modicum.core.rationals import LOSS_UNIT

Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

#: Mass that the library may cut off at each convolution, counted as infinite loss.
TAIL = 1e-15
#: Half the distance from 1 to the next float.
ULP = 2.0**-53
#: Relative and absolute surplus on every epsilon and delta that is reported.
SURPLUS = 1e-9, 1e-12


# --- one direction ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The privacy loss of one of two neighbors against the other.

    Attributes:
        losses: The finite losses, rising.
        mass: The probability of each; they may sum to a little more than 1.
        infinite: The mass of the infinite loss, with all that is not known.
    """

    losses: Floats
    mass: Floats
    infinite: float

    def delta(self, eps: float) -> float:
        """Return the hockey-stick divergence at `eps`, rounded up.

        All terms are positive, so floats err by at most one unit per term.
        """
        above = self.losses > eps
        beyond = self.mass[above] @ -np.expm1(eps - self.losses[above])
        return float(self.infinite + beyond) * (1 + SURPLUS[0])

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at `delta`, rounded up."""
        if self.infinite >= delta:
            return math.inf
        low, high = 0.0, max(0.0, self.largest)
        if self.delta(low) <= delta:
            return 0.0
        while high - low > SURPLUS[0] / 8 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high * (1 + SURPLUS[0]) + SURPLUS[1]

    @property
    def largest(self) -> float:
        """The largest finite loss; with a delta of `infinite`, a pure epsilon."""
        if self.infinite >= 1:
            return math.inf
        top = max(0.0, float(self.losses[-1])) * (1 + SURPLUS[0])
        return top + SURPLUS[1] - math.log1p(-self.infinite)

    def cut(self, infinite: float) -> Side:
        """Return the side whose largest losses count as infinite, up to a mass."""
        from_above = np.cumsum(self.mass[::-1]) * (1 + SURPLUS[0]) + self.infinite
        dropped = int(np.searchsorted(from_above, infinite, side="right"))
        if not dropped:
            return self
        kept = len(self.mass) - dropped
        return Side(
            self.losses[:kept], self.mass[:kept], float(from_above[dropped - 1])
        )

    def divergence(self, order: Fraction) -> float:
        """Return the Renyi divergence of the finite part, rounded up.

        Let m be the infinite mass. The pair on the grid is P = (1 - m) P' + m X and Q,
        where X lies where Q has no mass, and P'(l) = p(l) / (1 - m), Q(l) = p(l) e^-l
        on the grid. So (order - 1) D(P' || Q) is

            ln(sum of p(l) e^((order - 1) l)) - order * ln(1 - m).

        If the masses sum to more than 1, those of the lowest losses are too much: the
        true curve is convex in e^eps and starts at 1, so it stays below the chord from
        there when they are taken away. To leave them in only adds to the sum.

        A run that differs from P' with probability at most m is all that a filter with
        a delta needs: it is shown for each ordered pair of neighbors by itself.
        """
        less_one = not_below(order - 1)  # The divergence rises with the order.
        exponents = less_one * self.losses
        top = float(exponents.max())
        total = float(self.mass @ np.exp(exponents - top))
        logarithm = top + math.log(total) - (less_one + 1) * math.log1p(-self.infinite)
        # The sum errs by a unit per term, the exponents by four units each.
        slack = 4 * ULP * (len(self.losses) + abs(top)) + SURPLUS[1]
        found = (logarithm + slack) / less_one
        return max(0.0, found) * (1 + SURPLUS[0])


# --- both directions, and how they are composed -------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BatchLoss:
    """A composed distribution of the library, with its possible error.

    Attributes:
        distribution: The library's, of both directions.
        error: By how much floats may have made its (eps, delta) curve too low.
    """

    distribution: Any
    error: float

    @property
    def sides(self) -> tuple[Side, ...]:
        """Both directions, checked; one if they are the same."""
        return tuple(
            side_of(dense, self.error) for dense in directions(self.distribution)
        )

    def epsilon(self, delta: Fraction) -> Amount:
        """Return epsilon at `delta`, rounded up."""
        found = max(side.epsilon(below(delta)) for side in self.sides)
        if math.isinf(found):
            return INFINITY
        units = math.ceil(Fraction(found) * LOSS_UNIT)
        return Fraction(units, LOSS_UNIT)

    def delta(self, eps: Fraction) -> Fraction:
        """Return delta at `eps`, rounded up."""
        found = max(side.delta(below(eps)) for side in self.sides)
        return min(Fraction(1), Fraction(found))

    def joined(self, other: BatchLoss) -> BatchLoss:
        """Return the distribution of both losses together.

        Floats change each term of the Fourier transform of a probability by at most
        theta, and no term exceeds 1. So the convolution of a and b errs in the
        Euclidean norm by at most theta * (2 min(norm a, norm b) + norm a*b), and over
        n points in all by at most sqrt(n) times that.
        """
        whole = self.distribution.compose(other.distribution, TAIL)
        points, norm = _size_and_norm(whole)
        each = [_size_and_norm(one.distribution)[1] for one in (self, other)]
        transforms = math.sqrt(points) * _theta(points) * (2 * min(each) + norm)
        error = _growth(whole) * (self.error + other.error) + transforms
        return BatchLoss(whole, error)

    def repeated(self, times: int) -> BatchLoss:
        """Return the distribution of this many independent losses of this kind.

        Each term of the transform is raised to a power, so it errs by theta times
        `times` times the next lower power of it; for the rest see `joined`.
        """
        if times == 1:
            return self
        whole = self.distribution.self_compose(times, TAIL)
        points, norm = _size_and_norm(whole)
        lower = max(
            _norm_of_power(one, times - 1, points)
            for one in directions(self.distribution)
        )
        theta = _theta(points) + 8 * ULP
        transforms = math.sqrt(points) * theta * (times * lower + norm)
        error = _growth(whole) * times * self.error + transforms
        found = BatchLoss(whole, error)
        _check_count(self, found, times)
        return found


def _theta(points: int) -> float:
    # Each term is a sum of products with log2(n) factors: a few units for each (Higham
    # 2002, Sec. 24.1). The library takes lengths of small prime factors only; eight
    # units leave room for those that are not 2.
    return 8 * ULP * math.log2(4 * points + 4)


def directions(distribution: Any) -> list[Any]:
    """Return the library's dense distribution for each direction."""
    found = [distribution._pmf_remove]  # noqa: SLF001 - it has no other way out
    if not distribution._symmetric:  # noqa: SLF001
        found.append(distribution._pmf_add)  # noqa: SLF001
    return [one.to_dense_pmf() for one in found]


def _size_and_norm(distribution: Any) -> tuple[int, float]:
    dense = directions(distribution)
    norms = [float(np.linalg.norm(one._probs)) for one in dense]  # noqa: SLF001
    return max(one.size for one in dense), max(norms)


def _growth(whole: Any) -> float:
    """Return by how much an error grows that meets masses of a little more than 1."""
    masses = [float(one._probs.sum()) for one in directions(whole)]  # noqa: SLF001
    return 1.01 * max(1.0, *masses)


def _norm_of_power(dense: Any, power: int, points: int) -> float:
    """Return the Euclidean norm of a distribution convolved with itself."""
    length = max(points, dense.size)
    terms = np.abs(np.fft.rfft(dense._probs, length))  # noqa: SLF001
    return math.sqrt(2 * float((terms ** (2 * power)).sum()) / length)


def side_of(dense: Any, error: float) -> Side:
    """Return one direction; its unknown part becomes infinite mass."""
    mass: Floats = np.asarray(dense._probs, dtype=np.float64)  # noqa: SLF001
    first = dense._lower_loss  # noqa: SLF001
    losses = (np.arange(len(mass)) + first) * dense._discretization  # noqa: SLF001
    infinite = float(dense._infinity_mass) + error  # noqa: SLF001
    check(
        bool(np.isfinite(mass).all()) and math.isfinite(infinite),
        "PLD: a mass is a number",
    )
    check(bool((mass >= -error).all()), "PLD: a mass is not below 0")
    check(
        bool(infinite + mass.sum() >= 1 - SURPLUS[0]),
        "PLD: the masses sum to at least 1",
    )
    return Side(losses, np.maximum(mass, 0.0), infinite)


def _check_count(one: BatchLoss, many: BatchLoss, times: int) -> None:
    """Refuse a composition that forgot runs: the mean of the loss adds up."""
    for single, whole in zip(one.sides, many.sides, strict=True):
        surplus = float(single.mass.sum() + single.infinite)
        expected = times * float(single.losses @ single.mass) * surplus ** (times - 1)
        mean = float(whole.losses @ whole.mass)
        widest = float(np.abs(whole.losses).max())
        slack = 1e-3 * abs(expected) + 1e-6 + 2 * widest * whole.infinite
        check(abs(mean - expected) <= slack, "PLD: every run is counted")


# --- floats -------------------------------------------------------------------------


def below(value: Fraction) -> float:
    """Return the nearest float that is not above a number, >= 0."""
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, 0.0)


def not_below(value: Amount) -> float:
    """Return the nearest float that is not below a number."""
    exact, found = Fraction(value), float(value)
    return found if Fraction(found) >= exact else math.nextafter(found, math.inf)
