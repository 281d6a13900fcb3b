"""Random draws that are the same on every machine.

A workload draws its arrivals, its types, its widths and so on from separate streams, so
that another choice of one leaves all others unchanged. A stream is read from its
beginning, request by request: more rounds add requests and change none.

Only uniform numbers are taken from the generator, and transformed by correctly rounded
arithmetic alone, which is the same in every library and processor; except for one
logarithm, whose result is rounded much more coarsely than its error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from modicum.core.errors import Code, InputError, Problem

Reals: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

#: Number of uniform numbers per width, whatever its distribution.
UNIFORMS_PER_WIDTH = 10

#: Seeds and repetitions are at most this.
SEED_MAX = 2**63 - 1

# Of the squares that are drawn for a Beta(1/4, 1/4), more than nine in ten are kept.
_SURPLUS = 8


def stream(seed: int, repetition: int, role: str) -> np.random.Generator:
    """Return the generator of one role.

    Args:
        seed: From 0 to `SEED_MAX`.
        repetition: Which one of several workloads of this seed, as far.
        role: The drawn quantity.

    Raises:
        InputError: If a number is out of range.

    Examples:
        >>> first, again = (stream(1, 0, "widths").random() for _ in range(2))
        >>> first == again == stream(1, 0, "centers").random()
        False
    """
    for name, value in (("seed", seed), ("repetition", repetition)):
        if not 0 <= value <= SEED_MAX:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"the {name} is {value}",
                    help=f"it is an integer from 0 to {SEED_MAX}",
                )
            )
    entropy = int.from_bytes(f"{seed}/{repetition}/{role}".encode(), "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def numbers_below(uniforms: Reals, bound: int) -> Integers:
    """Return whole numbers from 0 on, all equally likely.

    Args:
        uniforms: From 0 to 1.
        bound: The numbers are below this.

    Examples:
        >>> numbers_below(np.array([0.0, 0.49, 0.5, 0.99]), 2).tolist()
        [0, 0, 1, 1]
    """
    return np.minimum((uniforms * bound).astype(np.int64), bound - 1)


def waits(uniforms: Reals, mean: int) -> Integers:
    """Return exponential waiting times, in whole units.

    Args:
        uniforms: From 0 to 1.
        mean: The mean, in units of which a thousandth does not matter.
    """
    found: Integers = np.rint(-mean * np.log1p(-uniforms)).astype(np.int64)
    return found


# --- betas ----------------------------------------------------------------------------


def _beta_1_10(uniforms: Reals) -> Reals:
    """Return the least of ten uniform numbers."""
    least: Reals = uniforms.min(axis=1)
    return least


def _beta_1_half(uniforms: Reals) -> Reals:
    """Return one less the square of a uniform number."""
    first = uniforms[:, 0]
    return 1 - first * first


def _beta_2_2(uniforms: Reals) -> Reals:
    """Return the middle one of three uniform numbers."""
    middle: Reals = np.sort(uniforms[:, :3], axis=1)[:, 1]
    return middle


#: Distributions of widths by their parameters, from rows of uniform numbers.
BETAS: Mapping[str, Callable[[Reals], Reals]] = MappingProxyType(
    {"1,10": _beta_1_10, "1,1/2": _beta_1_half, "2,2": _beta_2_2}
)


def beta_quarters(generator: np.random.Generator, count: int) -> Reals:
    """Return numbers with the distribution Beta(1/4, 1/4).

    Args:
        generator: Their generator; fewer numbers are a prefix of more.
        count: How many.

    Source:
        Jöhnk 1964: x/(x + y) for fourth powers x and y of uniform numbers, if x + y
        is at most 1.
    """
    kept = np.empty(0)
    while len(kept) < count:
        pairs = generator.random((count - len(kept) + _SURPLUS, 2))
        squares = pairs * pairs
        fourth = squares * squares
        total = fourth.sum(axis=1)
        usable = (total > 0) & (total <= 1)
        kept = np.concatenate((kept, fourth[usable, 0] / total[usable]))
    return kept[:count]
