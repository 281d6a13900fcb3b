"""Discrete Laplace and discrete Gaussian noise in batches, drawn exactly.

Noise x has a probability in proportion to f(|x|), where f(m) is exp(-m / t) for
`laplace` of scale t and exp(-m² / (2 t²)) for `gaussian`. For a width w, a power of 2,
one trial is:

1. A cell j >= 0 with a probability in proportion to f(j w). This is the same kind of
   noise, of scale t / w, without its sign.
2. A place r of 0 to w - 1, and a sign; all are equally probable.
3. The trial counts with the probability f(j w + r) / f(j w), which is at most 1, as f
   falls. Minus zero does not count.

*Theorem.* What the trials that count yield, in their order, are independent draws of
exactly this noise.

*Proof.* Each m >= 0 is j w + r for one pair j, r. A trial yields m with a given sign
and counts with a probability in proportion to f(j w) * f(m) / f(j w) = f(m). Without
minus zero, each x is one pair of m and sign. Trials are independent, so those that
count are independent as well, and have the law of one trial under the condition that it
counts (von Neumann 1951, Various techniques used in connection with random digits).

Steps 1 and 3 compare a uniform U in [0, 1) with real numbers. U is never rounded: its
binary digits are drawn as they are needed, first `bits` of them, and the real numbers
are known by bounds. Digits that do not decide for all numbers between the bounds are
followed by as many again, with closer bounds, until they do (Knuth & Yao 1976, The
complexity of nonuniform random number generation). That ends with probability 1: at d
digits, less than 4 of 2**d values of U leave a comparison open.

- *Cells* are looked up in a table of integers with certified bounds (`noise_cells`).
- *Whether a trial counts* is compared in floats, by 1 - e <= exp(-e) <= 1 - e + e²/2
  for the exponent e >= 0. Floats only add, multiply and divide here, correctly rounded
  (IEEE 754), at most seven times for e: it is wrong by a factor of 1 ± 2**-50 at most.
  If e <= 2, each bound is wrong by less than 2**-47, so by less than one unit of
  2**-32; one whole unit is added on each side. For a larger e the lower bound is below
  0 and the upper one above 1, so nothing is decided. What is open is decided by
  integers.

A scale of at least twice `cells` has cells so wide that e is mostly below 1 / `cells`.
Then one trial in a hundred does not count, and one in 20,000 is decided by integers.

The entropy is the operating system's (`os.urandom`); none is stored. Only tests give
bytes of their own. How many trials do not count says nothing about the draws. Which
need more digits depends on the draws, never on what they are added to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from modicum.accounting.decimals import exp_bounds
from modicum.core.errors import check
from modicum.engines.noise_cells import Integers, cell, cell_table

Random = Callable[[int], bytes]
_Found = TypeVar("_Found")

#: A draw that is farther from 0 than this is none.
DRAW_MAX: Final = 2**62
#: Batch size of trials: their arrays stay in the processor's cache.
_AT_A_TIME: Final = 16_384
#: So many digits of U are drawn at first.
_BITS: Final = 32
#: A scale has at least so many cells, where they are wider than 1; less than twice.
_CELLS: Final = 64


class NoiseBatches:
    """Draws of one law of noise.

    Args:
        noise: The kind of noise.
        scale: Its scale, above 0 and at most 2**50.
        random: Returns so many random bytes.
        bits: How many digits of U are drawn at first, at most 32.
        cells: How many cells a scale has, where they are wider than 1.
    """

    def __init__(
        self,
        noise: str,
        scale: Fraction,
        random: Random = os.urandom,
        *,
        bits: int = _BITS,
        cells: int = _CELLS,
    ) -> None:
        check(noise in {"gaussian", "laplace"}, "noise is gaussian or laplace")
        self._noise, self._scale = noise, scale
        self._random, self._bits = random, bits
        self._width_bits = max(int(scale / cells).bit_length() - 1, 0)
        self._cell_scale = scale / 2**self._width_bits
        self._cells = cell_table(noise, self._cell_scale, bits)

    def draws(self, number: int) -> Iterator[list[int]]:
        """Yield noise around 0, so many draws, in batches."""
        missing = number
        while missing:
            found = self.trials(min(missing, _AT_A_TIME))
            missing -= len(found)
            yield found.tolist()

    def trials(self, number: int) -> Integers:
        """Return what counts of so many trials."""
        cells = self._drawn_cells(number)
        places = self._words(number, self._width_bits + 1)
        negative, places = (places & 1).astype(bool), places >> 1
        sizes = (cells << self._width_bits) + places
        counts = ~negative | (sizes > 0)
        if self._width_bits:
            counts &= self._accepted(cells, places)
        found: Integers = np.where(negative, -sizes, sizes)[counts]
        return found

    def _drawn_cells(self, number: int) -> Integers:
        words = self._words(number, self._bits)
        found, unknown = self._cells.cells(words)
        for place in unknown:
            sure = self._decided(
                int(words[place]),
                partial(cell, self._noise, self._cell_scale),
            )
            check(sure < DRAW_MAX >> self._width_bits, "noise of 62 bits never occurs")
            found[place] = sure
        return found

    def _accepted(self, cells: Integers, places: Integers) -> NDArray[np.bool_]:
        """Return which trials count by their distances from the starts of cells."""
        words = self._words(len(cells), self._bits)
        scale, units = float(self._scale), 2.0**self._bits
        exponents = places.astype(np.float64)
        if self._noise == "laplace":
            exponents /= scale
        else:
            starts = np.ldexp(cells.astype(np.float64), self._width_bits + 1)
            exponents *= starts + exponents
            exponents /= 2 * scale * scale
        least = 1 - exponents
        yes = words + 2 <= least * units
        no = words - 1 >= (least + exponents * exponents / 2) * units
        for place in np.flatnonzero(~(yes | no)):
            exact = self._exponent(int(cells[place]), int(places[place]))
            yes[place] = self._decided(int(words[place]), partial(_below, exact))
        return yes

    def _exponent(self, cell: int, place: int) -> Fraction:
        """Return e, where a trial counts with the probability exp(-e)."""
        if self._noise == "laplace":
            return place / self._scale
        start = cell << self._width_bits
        return place * (2 * start + place) / (2 * self._scale**2)

    def _decided(
        self, word: int, decide: Callable[[int, int], _Found | None]
    ) -> _Found:
        """Return what the digits of U decide, with as many more as it takes."""
        bits = self._bits
        while (found := decide(word, bits)) is None:
            for _ in range(bits // self._bits):
                word = word << self._bits | int(self._words(1, self._bits)[0])
            bits *= 2
        return found

    def _words(self, number: int, bits: int) -> Integers:
        """Return uniform numbers below 2**bits."""
        size = next(one for one in (1, 2, 4, 8) if 8 * one >= bits)
        drawn = self._random(number * size)
        check(len(drawn) == number * size, "as many bytes are drawn as are asked for")
        words = np.frombuffer(drawn, dtype=f"<u{size}").astype(np.int64)
        found: Integers = words & (2**bits - 1)
        return found


def _below(exponent: Fraction, word: int, bits: int) -> bool | None:
    """Return whether U is below exp(-exponent); None if its digits leave it open."""
    least, most = exp_bounds(exponent, bits)
    if word + 1 <= least:
        return True
    return False if word >= most else None
