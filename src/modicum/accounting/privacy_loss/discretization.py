"""Pairs on a grid, by connecting the dots of their curves.

Between the points of a grid, the curve delta(eps) of a pair is replaced by chords in
e**eps, which lie above it, as it is convex there; beyond the last point it stays what
it is there. What results is the curve of a pair on the grid, which dominates the first
one (Doroshenko et al. 2022, arXiv:2207.04380). With h the step, u = 1/(1 - e**-h) and
delta(i) the curve at i h, the mass at i h is

    u delta(i-1) - (2 u - 1) delta(i) + (u - 1) delta(i+1);

at the first point, whose chord begins at e**eps = 0 with delta 1, it is
1 - delta(i) - (u - 1) (delta(i) - delta(i+1)); and u (delta(i-1) - delta(i)) at the
last, where delta is infinite loss. Deltas are computed with errors of at most
`_ERROR`, and each mass is raised by what they amount to.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction

from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.privacy_loss.distribution import (
    DIGITS,
    POINTS_MAX,
    Distribution,
)
from modicum.accounting.privacy_loss.normal import tail as normal_tail
from modicum.accounting.privacy_loss.pairs import (
    DISCRETE_GAUSSIAN,
    DISCRETE_LAPLACE,
    GAUSSIAN,
    LAPLACE,
    MU_MAX,
    PURE,
    RESPONSE,
    SAMPLED_GAUSSIAN,
    Pair,
)

#: Steps of the grid in a standard deviation of the loss, at least.
_FINENESS = 32
_HALVINGS_MAX = 60
#: The largest loss that is put on a grid.
REACH_MAX = 100
#: Upper bound of the absolute error of each delta here.
_ERROR = Decimal("1e-34")
#: Where less than this tells a mixture from its rest, decimals do not.
_DIFFERENCE_LEAST = Decimal("1e-9")


class _Shape:
    """What a grid must fit: where losses lie, and their curve.

    Args:
        low: The least loss that matters.
        high: The largest.
        spread: Roughly the standard deviation of the loss.
    """

    def __init__(self, low: Decimal, high: Decimal, spread: Decimal) -> None:
        self.low, self.high = low, high
        self.halvings = 0
        finest = max(spread / _FINENESS, (high - low) / (POINTS_MAX // 2))
        while self.halvings < _HALVINGS_MAX and finest * 2**self.halvings < 1:
            self.halvings += 1
        self.step = Decimal(1) / 2**self.halvings
        self.scale = 1 / (1 - (-self.step).exp())

    def places(self) -> tuple[int, int]:
        """Return the first and the last point."""
        first = (self.low / self.step).to_integral_value(decimal.ROUND_FLOOR)
        last = (self.high / self.step).to_integral_value(decimal.ROUND_CEILING)
        return int(first), max(int(last), int(first) + 1)

    def mass(self, value: Decimal) -> int:
        """Return a mass in units, rounded up."""
        raised = value + 8 * self.scale * _ERROR
        up = raised.scaleb(DIGITS).to_integral_value(decimal.ROUND_CEILING)
        return max(0, int(up))


def _connected(
    shape: _Shape, delta: Callable[[Decimal, Decimal], Decimal]
) -> Distribution:
    """Return a distribution by its curve.

    Args:
        shape: The shape.
        delta: The curve at any epsilon, which is given with its power of e.
    """
    first, last = shape.places()
    power, times = (first * shape.step).exp(), shape.step.exp()
    deltas = []
    for place in range(first, last + 1):
        deltas.append(delta(place * shape.step, power))
        power *= times
    u = shape.scale
    mass = [1 - deltas[0] - (u - 1) * (deltas[0] - deltas[1])]
    mass += [
        u * (before - here) - (u - 1) * (here - after)
        for before, here, after in zip(deltas, deltas[1:], deltas[2:], strict=False)
    ]
    mass.append(u * (deltas[-2] - deltas[-1]))
    units = tuple(map(shape.mass, mass))
    return Distribution(shape.halvings, first, units, shape.mass(deltas[-1]))


def _listed(
    shape: _Shape, atoms: Iterable[tuple[Decimal, Decimal]], infinite: Decimal
) -> Distribution:
    """Return a distribution of few losses: each mass goes to the two points around.

    Args:
        shape: The shape; all losses are within.
        atoms: Losses, and the mass of each.
        infinite: The mass of infinite loss.
    """
    first, last = shape.places()
    mass = [Decimal(0)] * (last - first + 2)
    for loss, one in atoms:
        place = (loss / shape.step).to_integral_value(decimal.ROUND_FLOOR)
        up = (1 - (place * shape.step - loss).exp()) * shape.scale
        mass[int(place) - first] += one * (1 - up)
        mass[int(place) - first + 1] += one * up
    units = tuple(shape.mass(one) if one else 0 for one in mass)
    return Distribution(shape.halvings, first, units, shape.mass(infinite))


@precise
def discretized(pair: Pair, tail: int, *, adds: bool) -> Distribution | None:
    """Return a distribution that dominates a pair; None if it fits no grid.

    Args:
        pair: The pair.
        tail: The mass that may count as infinite loss, in units of 1e-24.
        adds: The direction: whether an instance is added, or removed.

    Examples:
        >>> answer = Pair(PURE, (Fraction(1),))
        >>> found = discretized(answer, 1, adds=False)
        >>> [mass // 10**21 for mass in found.mass if mass]
        [268, 731]
    """
    reach = _deviations(tail)
    found = BUILDERS[pair.law](pair.numbers, reach, adds)
    if found is None or len(found.mass) > 2 * POINTS_MAX:
        return None
    own = -(-pair.infinite.numerator * 10**DIGITS // pair.infinite.denominator)
    whole = Distribution(found.halvings, found.first, found.mass, found.infinite + own)
    return whole.trimmed(tail)


def _deviations(tail: int) -> Decimal:
    """Return a number of standard deviations beyond which a normal tail is smaller."""
    return (2 * (Decimal(10) ** DIGITS / max(tail, 1)).ln()).sqrt()


_Numbers = tuple[Fraction, ...]


def _gaussian(numbers: _Numbers, reach: Decimal, _: bool) -> Distribution | None:  # noqa: FBT001
    mu = to_decimal(numbers[0]).sqrt()
    if mu > MU_MAX:
        return None
    if not mu:
        return _NO_LOSS
    middle = mu * mu / 2
    shape = _Shape(middle - reach * mu, middle + reach * mu, mu)

    def delta(eps: Decimal, power: Decimal) -> Decimal:
        a = eps / mu - mu / 2
        return normal_tail(a) - power * normal_tail(a + mu)

    return _connected(shape, delta)


def _sampled_gaussian(
    numbers: _Numbers,
    reach: Decimal,
    adds: bool,  # noqa: FBT001
) -> Distribution | None:
    """N(0, 1) and its mixture with N(mu, 1); `adds` if the mixture comes second."""
    rate, mu = to_decimal(numbers[0]), 1 / to_decimal(numbers[1])
    if mu > MU_MAX or rate * mu < _DIFFERENCE_LEAST:
        return None
    rest = 1 - rate

    def loss(z: Decimal) -> Decimal:
        return (rest + rate * (mu * z - mu * mu / 2).exp()).ln()

    def cut(ratio: Decimal) -> Decimal | None:
        """Return where the mixture's density is so many times the other's."""
        odds = (ratio - rest) / rate
        return None if odds <= 0 else odds.ln() / mu + mu / 2

    def removal(_: Decimal, power: Decimal) -> Decimal:
        z = cut(power)
        if z is None:
            return 1 - power
        return rate * normal_tail(z - mu) + (rest - power) * normal_tail(z)

    def addition(_: Decimal, power: Decimal) -> Decimal:
        z = cut(1 / power)
        if z is None:
            return Decimal(0)
        alone, moved = normal_tail(-z), normal_tail(mu - z)
        return (1 - power * rest) * alone - power * rate * moved

    spread = min(mu, rate * ((mu * mu).exp() - 1).sqrt())
    low = rest.ln() if rest else loss(-reach)
    if adds:
        return _connected(
            _Shape(-loss(reach), min(-low, -loss(-reach)), spread), addition
        )
    return _connected(_Shape(low, loss(reach + mu), spread), removal)


def _laplace(numbers: _Numbers, _: Decimal, __: bool) -> Distribution | None:  # noqa: FBT001
    most = to_decimal(numbers[0])
    if most > REACH_MAX:
        return None
    spread = (2 * (most + (-most).exp() - 1)).sqrt()

    def delta(eps: Decimal, power: Decimal) -> Decimal:
        if eps >= most:
            return Decimal(0)
        return 1 - (power if eps < -most else ((eps - most) / 2).exp())

    return _connected(_Shape(-most, most, spread), delta)


def _discrete_laplace(numbers: _Numbers, _: Decimal, __: bool) -> Distribution | None:  # noqa: FBT001
    moved, scale = int(numbers[0]), to_decimal(numbers[1])
    most = moved / scale
    if most > REACH_MAX:
        return None
    t = (-1 / scale).exp()
    spread = (2 * (most + (-most).exp() - 1)).sqrt()
    end = 1 / (1 + t)
    atoms = [(most, end)]
    between, power = (1 - t) / (1 + t), Decimal(1)
    for z in range(1, moved):
        power *= t
        atoms.append(((moved - 2 * z) / scale, between * power))
    atoms.append((-most, power * t * end))
    return _listed(_Shape(-most, most, spread), atoms, Decimal(0))


def _discrete_gaussian(
    numbers: _Numbers,
    reach: Decimal,
    _: bool,  # noqa: FBT001
) -> Distribution | None:
    """Noise z against noise that is one step higher, at z."""
    sigma = to_decimal(numbers[0])
    variance = sigma * sigma
    # Beyond `edge` the weights fall by more than half at each step, or sigma is large
    # and they are below 1e-60 of what is kept.
    edge = int(17 * sigma) + 210
    kept = int(reach * sigma) + 2
    weights = [(-Decimal(z * z) / (2 * variance)).exp() for z in range(edge + 1)]
    total = weights[0] + 2 * sum(weights[1:])
    beyond = sum(weights[kept + 1 :]) / total

    def loss(z: int) -> Decimal:
        return (1 - 2 * Decimal(z)) / (2 * variance)

    if loss(-kept) > REACH_MAX:
        return None
    atoms = [(loss(z), weights[abs(z)] / total) for z in range(-kept, kept)]
    # All that is above becomes the least loss that is kept, which is larger.
    atoms.append((loss(kept), weights[kept] / total + beyond))
    shape = _Shape(loss(kept), loss(-kept), 1 / sigma)
    return _listed(shape, atoms, beyond)


def _response(numbers: _Numbers, _: Decimal, __: bool) -> Distribution | None:  # noqa: FBT001
    truth, values = numbers
    other = (1 - truth) / (values - 1)
    most = to_decimal(truth).ln() - to_decimal(other).ln()
    atoms = [
        (most, to_decimal(truth)),
        (Decimal(0), to_decimal(1 - truth - other)),
        (-most, to_decimal(other)),
    ]
    return _few(most, atoms)


def _pure(numbers: _Numbers, _: Decimal, __: bool) -> Distribution | None:  # noqa: FBT001
    most = to_decimal(numbers[0])
    likely = 1 / (1 + (-most).exp())
    return _few(most, [(most, likely), (-most, 1 - likely)])


def _few(most: Decimal, atoms: list[tuple[Decimal, Decimal]]) -> Distribution | None:
    if most > REACH_MAX:
        return None
    if not most:
        return _NO_LOSS
    spread = sum((x * x * p for x, p in atoms), Decimal(0)).sqrt()
    return _listed(_Shape(-most, most, spread), atoms, Decimal(0))


_NO_LOSS = Distribution(_HALVINGS_MAX, 0, (10**DIGITS,))

#: By law: from its numbers, how many deviations matter, and the direction.
BUILDERS: Mapping[str, Callable[[_Numbers, Decimal, bool], Distribution | None]] = {
    GAUSSIAN: _gaussian,
    SAMPLED_GAUSSIAN: _sampled_gaussian,
    LAPLACE: _laplace,
    DISCRETE_LAPLACE: _discrete_laplace,
    DISCRETE_GAUSSIAN: _discrete_gaussian,
    RESPONSE: _response,
    PURE: _pure,
}
