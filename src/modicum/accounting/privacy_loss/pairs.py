"""Dominating pairs: two distributions at least as far apart as a mechanism's answers.

A pair (P, Q) dominates a mechanism if, for any two neighbors, no hockey-stick
divergence of its answers exceeds that of P from Q (Zhu, Dong & Wang 2022, Def. 7,
arXiv:2106.08567). Products of pairs that are fixed beforehand dominate mechanisms
that are chosen from earlier answers, in each direction of the neighbors by itself
(there, Thm 10).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import astuple

from modicum.accounting.grid import DELTA, EPS, INFINITE, MU2
from modicum.accounting.losses import Loss
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT

#: The atoms of discrete noise are listed one by one, up to this many.
ATOMS_MAX = 4096
#: Gaussian noise that is farther apart than this many standard deviations, or its
#: square, is not put on a grid.
MU_MAX = 4


class Pair(Struct, frozen=True):
    """A dominating pair of one run of a mechanism.

    Attributes:
        law: The name of its distributions, a key of `discretization.BUILDERS`.
        numbers: Their parameters, in the order of the functions below.
        infinite: The mass of infinite loss besides: the mechanism's own delta.
    """

    law: str
    numbers: tuple[Fraction, ...]
    infinite: Fraction = Fraction(0)

    @property
    def one_sided(self) -> bool:
        """Whether adding an instance differs from removing one."""
        return self.law == SAMPLED_GAUSSIAN


#: Pairs of a batch, each with its number of runs.
Batch = tuple[tuple[Pair, int], ...]

GAUSSIAN = "gaussian"
SAMPLED_GAUSSIAN = "sampled-gaussian"
LAPLACE = "laplace"
DISCRETE_LAPLACE = "discrete-laplace"
DISCRETE_GAUSSIAN = "discrete-gaussian"
RESPONSE = "randomized-response"
PURE = "pure"


def gaussian_pair(mu2: Fraction) -> Batch:
    """Return the pair of Gaussian noise, or of any mu-GDP mechanism.

    Args:
        mu2: The square of mu, >= 0.

    Source:
        Dong, Roth & Su 2022, Thm 2.7 (arXiv:1905.02383).

    Examples:
        >>> gaussian_pair(Fraction(0))
        ()
    """
    return ((Pair(GAUSSIAN, (mu2,)), 1),) if mu2 else ()


def sampled_gaussian_pair(
    rate: Fraction, noise_multiplier: Fraction, steps: int = 1
) -> Batch:
    """Return the pair of Gaussian noise on a Poisson sample, for `add-remove`.

    Source:
        Zhu, Dong & Wang 2022, Thm 11 (arXiv:2106.08567), for each direction.

    Examples:
        >>> ((pair, runs),) = sampled_gaussian_pair(Fraction(1, 9), Fraction(2), 30)
        >>> pair.one_sided, runs
        (True, 30)
    """
    return ((Pair(SAMPLED_GAUSSIAN, (rate, noise_multiplier)), steps),)


def laplace_pair(eps: Fraction) -> Batch:
    """Return the pair of Laplace noise: one number that moves by eps scales.

    It dominates a vector that moves by as much in L1. Go from one neighbor to the
    other coordinate by coordinate: the trade-off function of the whole is at least
    that of the steps, one after another (Dong, Roth & Su 2022, Lemma A.5,
    arXiv:1905.02383). Log-concave noise has a monotone likelihood ratio, so that the
    best tests of a step are thresholds, and moves a and b one after another have the
    trade-off function of one move a + b.

    Examples:
        >>> laplace_pair(Fraction(1, 9))[0][0].numbers
        (Fraction(1, 9),)
    """
    return ((Pair(LAPLACE, (eps,)), 1),) if eps else ()


def discrete_laplace_pair(sensitivity_l1: int, scale: Fraction) -> Batch | None:
    """Return the pair of Laplace noise on integers, if its atoms are few enough.

    One number is the worst case for the reasons of `laplace_pair`: this noise is
    log-concave, and moves by whole steps take thresholds to thresholds.

    Examples:
        >>> discrete_laplace_pair(10**9, Fraction(1)) is None
        True
    """
    if sensitivity_l1 >= ATOMS_MAX:
        return None
    numbers = Fraction(sensitivity_l1), scale
    return ((Pair(DISCRETE_LAPLACE, numbers), 1),) if sensitivity_l1 else ()


def discrete_gaussian_pair(sensitivity_l2: Fraction, sigma: Fraction) -> Batch | None:
    """Return the pairs of Gaussian noise on integers, for L2 sensitivities below 2.

    Integers whose squares sum to less than 4 are at most three ones: so many
    coordinates move by one step each. For larger moves no worst case is proven here.

    Examples:
        >>> discrete_gaussian_pair(Fraction(3, 2), Fraction(9))[0][1]
        2
        >>> discrete_gaussian_pair(Fraction(2), Fraction(9)) is None
        True
    """
    moved = int(sensitivity_l2**2)
    if moved >= 4 or sigma > ATOMS_MAX // 32:
        return None
    return ((Pair(DISCRETE_GAUSSIAN, (sigma,)), moved),) if moved else ()


def response_pair(truth: Fraction, values: int, answers: int) -> Batch:
    """Return the pair of one randomized response, and the number of answers.

    Examples:
        >>> response_pair(Fraction(1, 2), 2, 7)  # It says nothing.
        ()
    """
    if truth * values == 1:
        return ()
    return ((Pair(RESPONSE, (truth, Fraction(values))), answers),)


def pair_of_loss(loss: Loss) -> Batch | None:
    """Return a pair for any mechanism with a proven loss; None if none is known.

    Randomized response dominates pure epsilon; Gaussian noise dominates mu-GDP.

    Source:
        Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776); Dong, Roth & Su 2022
        (arXiv:1905.02383).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> pair_of_loss(gaussian(rho=Fraction(1, 8)).loss())[0][0].numbers
        (Fraction(1, 4),)
    """
    units = loss.coordinates
    own = Fraction(units[DELTA], DELTA_UNIT)
    if units[EPS] < INFINITE:
        pair = Pair(PURE, (Fraction(units[EPS], LOSS_UNIT),), own)
    elif units[MU2] < INFINITE:
        pair = Pair(GAUSSIAN, (Fraction(units[MU2], LOSS_UNIT),), own)
    else:
        return None
    return ((pair, 1),) if pair.numbers[0] or own else ()


def merged(pairs: Iterable[tuple[Pair, int]]) -> Batch:
    """Return a batch with equal pairs counted, and Gaussian ones added up.

    Source:
        Dong, Roth & Su 2022, Cor. 3.3 (arXiv:1905.02383): mu squared adds up.

    Examples:
        >>> found = merged([*gaussian_pair(Fraction(1)), *gaussian_pair(Fraction(2))])
        >>> found[0][0].numbers, found[0][1]
        ((Fraction(3, 1),), 1)
    """
    counts: dict[Pair, int] = {}
    mu2 = infinite = Fraction(0)
    for pair, count in pairs:
        if pair.law == GAUSSIAN:
            mu2 += count * pair.numbers[0]
            infinite += count * pair.infinite
        elif count:
            counts[pair] = counts.get(pair, 0) + count
    if mu2 or infinite:
        counts[Pair(GAUSSIAN, (mu2,), infinite)] = 1
    return tuple(sorted(counts.items(), key=lambda one: (*astuple(one[0]), one[1])))
