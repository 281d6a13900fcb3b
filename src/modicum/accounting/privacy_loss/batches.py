"""Epsilon and delta of a batch of mechanisms by certified distributions of its loss."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, reduce

from modicum.accounting.privacy_loss.discretization import discretized
from modicum.accounting.privacy_loss.distribution import UNIT, Distribution
from modicum.accounting.privacy_loss.pairs import (
    DISCRETE_GAUSSIAN,
    DISCRETE_LAPLACE,
    GAUSSIAN,
    SAMPLED_GAUSSIAN,
    Batch,
    Pair,
)

#: The work that is done for a batch, or for one release, at most, in convolutions.
WORK_MAX = 128
#: The work of putting a pair on a grid, where that is much.
_GRIDS = {SAMPLED_GAUSSIAN: 16, GAUSSIAN: 4, DISCRETE_GAUSSIAN: 4, DISCRETE_LAPLACE: 4}
# The part of delta that all tails together may take, as a power of 10.
_TAILS = 4


@lru_cache(maxsize=4096)
def batch_epsilon(batch: Batch, delta: Fraction) -> int | None:
    """Return epsilon of a batch at a delta in units of 1e-12, rounded up.

    Args:
        batch: Dominating pairs that are fixed before the first output, as from
            `merged`. The mechanisms may be chosen from earlier answers.
        delta: Strictly between 0 and 1.

    Returns:
        A proven bound, possibly `INFINITE`; None if the batch is too large, or its
        losses are, to be put on a grid.

    Neighboring relation:
        The one that the pairs hold under.

    Source:
        Zhu, Dong & Wang 2022, Thm 10 (arXiv:2106.08567); Doroshenko et al. 2022
        (arXiv:2207.04380).

    Examples:
        >>> from modicum.accounting.privacy_loss.pairs import laplace_pair
        >>> batch = ((laplace_pair(Fraction(1, 10))[0][0], 100),)
        >>> f"{batch_epsilon(batch, Fraction(1, 10**6)) / 1e12:.4f}"
        '4.6929'
    """
    sides = distributions(batch, tail_for(batch, delta))
    if sides is None:
        return None
    return max((side.epsilon(delta) for side in sides), default=0)


def batch_delta(batch: Batch, eps: Fraction, least: Fraction) -> Fraction | None:
    """Return delta of a batch at an epsilon, rounded up.

    Args:
        batch: As for `batch_epsilon`.
        eps: >= 0.
        least: A delta above 0 that is small enough to be neglected.

    Examples:
        >>> from modicum.accounting.privacy_loss.pairs import laplace_pair
        >>> batch = ((laplace_pair(Fraction(1, 10))[0][0], 100),)
        >>> f"{float(batch_delta(batch, Fraction(4), Fraction(1, 10**9))):.4g}"
        '2.674e-05'
    """
    sides = distributions(batch, tail_for(batch, least))
    if sides is None:
        return None
    return max((side.delta(eps) for side in sides), default=Fraction(0))


def tail_for(batch: Batch, delta: Fraction) -> int:
    """Return a mass in units of 1e-24 that each step may cut: a power of 10.

    Examples:
        >>> tail_for((), Fraction(1, 10**6))
        100000000000000
    """
    runs = sum(count for _, count in batch)
    most = delta * UNIT / (runs + 1) / 10**_TAILS
    power: int = 10 ** max(0, len(str(int(most))) - 1)
    return power


@lru_cache(maxsize=256)
def distributions(batch: Batch, tail: int) -> tuple[Distribution, ...] | None:
    """Return the distribution of a batch's loss, in each direction that differs.

    Examples:
        >>> from modicum.accounting.privacy_loss.pairs import laplace_pair
        >>> (side,) = distributions(laplace_pair(Fraction(1)), 1)
        >>> side.step, side.first, side.last
        (Fraction(1, 64), -64, 64)
    """
    if work(batch) > WORK_MAX:
        return None
    ways = (False, True) if any(pair.one_sided for pair, _ in batch) else (False,)
    found = [_composed(batch, tail, adds=adds) for adds in ways] if batch else []
    sides = tuple(one for one in found if one is not None)
    return sides if len(sides) == len(found) else None


def work(batch: Batch) -> int:
    """Return the work that a batch takes at most, in convolutions.

    Args:
        batch: Dominating pairs, as from `merged`.

    Examples:
        >>> from modicum.accounting.privacy_loss.pairs import laplace_pair
        >>> work(((laplace_pair(Fraction(1, 10))[0][0], 100),))
        10
    """
    return sum(_work(pair, runs) for pair, runs in batch)


def _work(pair: Pair, runs: int) -> int:
    """Return how many convolutions some runs take at most, and their grid."""
    count = runs.bit_length() + runs.bit_count()
    return _GRIDS.get(pair.law, 0) + (2 * count if pair.one_sided else count)


def _composed(batch: Batch, tail: int, *, adds: bool) -> Distribution | None:
    parts = []
    for pair, runs in batch:
        one = _repeated(pair, runs, tail, adds=adds and pair.one_sided)
        if one is None:
            return None
        parts.append(one)
    # The finest grids first: they lose the least by a coarser one.
    parts.sort(key=lambda one: (-one.halvings, one.first, one.mass))
    return reduce(lambda whole, one: whole.plus(one, tail), parts)


@lru_cache(maxsize=256)
def _repeated(pair: Pair, runs: int, tail: int, *, adds: bool) -> Distribution | None:
    one = discretized(pair, tail, adds=adds)
    return None if one is None else one.repeated(runs, tail)
