"""Sums over several sets of keys, measured with noise and made consistent.

Sums by all keys form a table with one axis for each key. Sums by fewer keys are its
*marginals*. From noisy marginals by some sets of keys follow those by others: each
marginal is a sum of orthogonal components, one for each subset T of its keys, and the
component of T is estimated from every measured set that contains T. Weights by inverse
variance make this the weighted least squares solution. All estimates are of one table,
so that parts add up to their totals.

Which sets are measured, and with how much noise, is chosen before any row is read, so
that the mean of the variances of the asked sets is small: the matrix mechanism (Li et
al., 2015) with marginals as its strategy (McKenna et al., HDMM, 2018, section 7).

A set of keys is written as a number: bit i is set if key i is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import fsum, prod, sqrt
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from modicum.query.intervals import Draws, width, width_of_sum
from modicum.query.request import Noise

if TYPE_CHECKING:
    import numpy as np

#: Weights are multiples of one over this: estimates are then exact in integers.
_WEIGHTS: Final = 2**24
#: Shares of a loss are multiples of one over this.
SHARES: Final = 2**20
#: A smaller share is not worth a mechanism.
_SHARE_MIN: Final = 1 / 512
#: With more keys, only the asked sets and their union are measured.
_KEYS_MAX: Final = 6
_ROUNDS: Final = 300


def set_of(places: Iterable[int]) -> int:
    """Return the set of some keys."""
    return sum(1 << place for place in places)


def subsets(keys: int) -> Iterator[int]:
    """Yield all subsets of a set of keys, the largest number first."""
    one = keys
    while one:
        yield one
        one = (one - 1) & keys
    yield 0


def _places(keys: int) -> list[int]:
    return [place for place in range(keys.bit_length()) if keys >> place & 1]


class Marginals(Struct, frozen=True, dict=True):
    """Noisy marginals of one table, and all that follows from them.

    Attributes:
        sizes: The number of values of each key.
        noise: The kind of noise.
        scales: By set of keys that is measured, the scale of its noise.
        alone: By set of keys that is asked, the scale if each of them were measured by
            itself, with an equal share of the loss.
    """

    sizes: tuple[int, ...]
    noise: Noise
    scales: Mapping[int, Fraction]
    alone: Mapping[int, Fraction]

    def cells(self, keys: int) -> int:
        """Return the number of cells of a marginal."""
        return prod(self.sizes[place] for place in _places(keys))

    @cached_property
    def _weights(self) -> dict[int, dict[int, int]]:
        return {}

    def weights(self, keys: int) -> dict[int, int]:
        """Return the weights of the measured sets in the component of a set.

        They are in units of 2⁻²⁴ and add up to 1. The best ones are rounded: others
        are as unbiased and consistent.
        """
        found = self._weights.get(keys)
        if found is None:
            precisions = {
                one: 1 / (scale * scale * self.cells(one & ~keys))
                for one, scale in self.scales.items()
                if one & keys == keys
            }
            every = sum(precisions.values())
            found = {
                one: int(precision * _WEIGHTS / every)
                for one, precision in precisions.items()
            }
            most = max(precisions, key=lambda one: precisions[one])
            found[most] += _WEIGHTS - sum(found.values())
            self._weights[keys] = found
        return found

    def width(self, keys: int, error: Fraction) -> Fraction:
        """Return how far an estimate strays with at most a given probability."""
        draws = self.draws(keys)
        if draws == (Draws(self.scales.get(keys, Fraction(0)), Fraction(1), 1),):
            return Fraction(width(self.noise, draws[0].scale, error))
        return width_of_sum(self.noise, draws, error / 2)

    def gain(self, keys: int) -> float:
        """Return the variance of an estimate, over that of measuring it alone."""
        squared = fsum(
            one.number * float(one.weight * one.scale) ** 2 for one in self.draws(keys)
        )
        return squared / float(self.alone[keys]) ** 2

    @cached_property
    def _draws(self) -> dict[int, tuple[Draws, ...]]:
        return {}

    def draws(self, keys: int) -> tuple[Draws, ...]:
        """Return of which draws the noise of each estimate of a set is the sum."""
        if keys not in self._draws:
            found: dict[tuple[Fraction, Fraction], int] = {}
            for one, scale in self.scales.items():
                for weight, number in self._coefficients(keys, one):
                    kind = scale, abs(weight)
                    found[kind] = found.get(kind, 0) + number
            self._draws[keys] = tuple(
                Draws(scale, weight, number)
                for (scale, weight), number in found.items()
            )
        return self._draws[keys]

    def _coefficients(self, keys: int, one: int) -> Iterator[tuple[Fraction, int]]:
        """Yield the weights of a measured marginal's cells in one cell of a set.

        A cell's weight follows from the keys that it has in common with the other. Of
        each component, a key within it contributes n - 1 if it is in common, and else
        -1, for n values; the sum over all components is taken key by key.
        """
        shared = keys & one
        found = {part: self.weights(part)[one] for part in subsets(shared)}
        for place in _places(shared):
            most, bit = self.sizes[place] - 1, 1 << place
            for part in [part for part in found if not part & bit]:
                without, within = found[part], found[part | bit]
                found[part], found[part | bit] = (
                    without - within,
                    without + most * within,
                )
        whole = _WEIGHTS * self.cells(keys)
        others = self.cells(one & ~keys)
        for common, weight in found.items():
            differing = _places(shared & ~common)
            number = others * prod(self.sizes[place] - 1 for place in differing)
            if weight and number:
                yield Fraction(weight, whole), number

    def estimate(
        self, keys: int, measured: Mapping[int, Sequence[int]]
    ) -> Iterator[Fraction]:
        """Yield the estimates of a marginal, cell by cell.

        Args:
            keys: The set of keys.
            measured: By set of keys, its noisy marginal, in the order of the product
                of the keys' values.
        """
        import numpy as np

        parts = (self._component(part, keys, measured) for part in subsets(keys))
        total = np.asarray(sum(parts), dtype=object)
        whole = _WEIGHTS * self.cells(keys)
        for number in total.ravel().tolist():
            yield Fraction(number, whole)

    def _component(
        self, part: int, keys: int, measured: Mapping[int, Sequence[int]]
    ) -> np.ndarray:
        """Return a component, with axes for some keys, in multiples of its unit."""
        import numpy as np

        total: np.ndarray | int = 0
        for one, weight in self.weights(part).items():
            shape = [self.sizes[place] for place in _places(one)]
            # Of integers of any size.
            table = np.array(measured[one], dtype=object).reshape(shape)
            outside = [
                n for n, place in enumerate(_places(one)) if not part >> place & 1
            ]
            total = total + weight * table.sum(axis=tuple(outside))
        found = np.asarray(total, dtype=object)
        for axis, place in enumerate(_places(part)):
            found = found * self.sizes[place] - found.sum(axis=axis, keepdims=True)
        shape = [
            self.sizes[place] if part >> place & 1 else 1 for place in _places(keys)
        ]
        return found.reshape(shape)


# --- which sets are measured ----------------------------------------------------------


def shares_of(
    sizes: Sequence[int], asked: Sequence[int], moved: Mapping[int, float], noise: Noise
) -> dict[int, Fraction]:
    """Return how a loss is divided among the marginals that are measured.

    Only floats are used that are rounded alike everywhere: the result is the same on
    each machine.

    Args:
        sizes: The number of values of each key.
        asked: The sets of keys whose marginals are asked.
        moved: By set of keys that may be measured, how far its marginal moves: in the
            L2 norm, squared, for `gaussian` noise, in the L1 norm for `laplace`.
        noise: The kind of noise.

    Returns:
        By set of keys, its share, in multiples of 2⁻²⁰; they add up to 1 at most.
    """
    search = _Search(sizes, asked, moved, noise)
    starts = [
        dict.fromkeys(moved, 1 / len(moved)),
        dict.fromkeys(asked, 1 / len(asked)),
        *({one: 1.0} for one in moved),
    ]
    found = [search.improved(start) for start in starts[:2]]
    found += [one for one in starts[1:] if search.covers(one)]
    best = min(found, key=search.variance)
    return {one: Fraction(int(share * SHARES), SHARES) for one, share in best.items()}


def may_be_measured(asked: Sequence[int]) -> list[int]:
    """Return the sets of keys that are worth looking at, in a fixed order."""
    union = 0
    for one in asked:
        union |= one
    if union.bit_count() <= _KEYS_MAX:
        return list(subsets(union))
    return list(dict.fromkeys((union, *asked)))


class _Search:
    """A search for shares, by a multiplicative rule from optimal design of experiments.

    With q the shares, the variance is the sum of A(T) / D(T) over components T, where
    D(T) is the sum of the precisions of T in the sets that contain it. A share grows if
    D falls faster by it than by others, relative to their average (Silvey, Titterington
    and Torsney, 1978).
    """

    def __init__(
        self,
        sizes: Sequence[int],
        asked: Sequence[int],
        moved: Mapping[int, float],
        noise: Noise,
    ) -> None:
        self._moved, self._laplace = moved, noise == "laplace"

        def cells(keys: int) -> float:
            return float(prod(sizes[place] for place in _places(keys)))

        #: By component, its weight in the mean of the variances of what is asked.
        self._of: dict[int, float] = {}
        for keys in asked:
            for part in subsets(keys):
                spread = 1.0
                for place in _places(part):
                    spread *= 1 - 1 / sizes[place]
                weight = spread / (cells(keys & ~part) * cells(keys & ~part))
                self._of[part] = self._of.get(part, 0.0) + weight / len(asked)
        #: By component, the sets that contain it, with the variance of adding them up.
        self._in = {
            part: [(one, cells(one & ~part)) for one in moved if one & part == part]
            for part in self._of
        }

    def covers(self, shares: Mapping[int, float]) -> bool:
        """Return whether every component is measured."""
        return all(
            any(shares.get(one, 0.0) > 0 for one, _ in sets)
            for sets in self._in.values()
        )

    def _precision(self, one: int, share: float) -> float:
        """Return the precision of one number, with a loss of 1, up to a factor."""
        if self._laplace:
            return share * share / (self._moved[one] * self._moved[one])
        return share / self._moved[one]

    def _known(self, shares: Mapping[int, float]) -> dict[int, float]:
        """Return by component how precisely it is known."""
        return {
            part: fsum(
                self._precision(one, shares[one]) / added
                for one, added in sets
                if one in shares
            )
            for part, sets in self._in.items()
        }

    def variance(self, shares: Mapping[int, float]) -> float:
        """Return the mean of the variances of what is asked, up to a factor."""
        known = self._known(shares)
        return fsum(weight / known[part] for part, weight in self._of.items() if weight)

    def improved(self, shares: dict[int, float]) -> dict[int, float]:
        """Return better shares, without those that are not worth a mechanism."""
        best = shares
        for _ in range(_ROUNDS):
            known = self._known(shares)
            slopes = dict.fromkeys(shares, 0.0)
            for part, sets in self._in.items():
                if not self._of[part]:
                    continue  # A key with one value adds nothing.
                gain = self._of[part] / (known[part] * known[part])
                for one, added in sets:
                    if one in slopes:
                        slopes[one] += gain / added
            grown = {
                one: share * sqrt(slopes[one] * self._steepness(one, share))
                for one, share in shares.items()
            }
            shares = _normal(grown)
        large = {one: share for one, share in shares.items() if share > _SHARE_MIN}
        if self.covers(large):
            best = min(best, _normal(large), key=self.variance)
        return best

    def _steepness(self, one: int, share: float) -> float:
        """Return the slope of a set's precision."""
        if self._laplace:
            return 2 * share / (self._moved[one] * self._moved[one])
        return 1 / self._moved[one]


def _normal(shares: Mapping[int, float]) -> dict[int, float]:
    every = fsum(shares.values())
    return {one: share / every for one, share in shares.items() if share > 0}
