"""Streams under correlated noise, slowly: whole matrices, and every set of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import comb

from oracle.accounting import MP, Real, real

#: A matrix as rows.
Rows = list[list[Real]]


def tree(steps: int) -> Rows:
    """A row for every block of 2^l steps, at a multiple of it, that fits."""
    rows = []
    for first in range(steps):
        for last in range(first, steps):
            size = last - first + 1
            if size & (size - 1) == 0 and first % size == 0:
                rows.append([MP.mpf(first <= t <= last) for t in range(steps)])
    return rows


def toeplitz(coefficients: Sequence[Real], steps: int) -> Rows:
    """The lower-triangular Toeplitz matrix of a first column."""
    column = [*coefficients, *[MP.mpf(0)] * steps]
    return [
        [column[row - col] if row >= col else MP.mpf(0) for col in range(steps)]
        for row in range(steps)
    ]


def square_root(steps: int) -> list[Real]:
    """The coefficients of (1-x)^(-1/2), by their closed form."""
    return [real(Fraction(comb(2 * m, m), 4**m)) for m in range(steps)]


def sets_of_steps(
    steps: int, participations: int, separation: int
) -> Iterator[tuple[int, ...]]:
    """Every set of at most so many steps, any two so far apart."""
    for size in range(1, participations + 1):
        for one in combinations(range(steps), size):
            if all(b - a >= separation for a, b in pairwise(one)):
                yield one


def moved(rows: Rows, change: dict[int, Real]) -> Real:
    """The square of how far C x moves, if single numbers change in some steps."""
    return MP.fsum(
        MP.fsum(row[step] * by for step, by in change.items()) ** 2 for row in rows
    )


def largest_by_signs(rows: Rows, participations: int, separation: int) -> Real:
    """The largest move by changes of 1 or -1 in each step of any set."""
    return max(
        moved(rows, dict(zip(one, map(MP.mpf, signs), strict=True)))
        for one in sets_of_steps(len(rows[0]), participations, separation)
        for signs in product((1, -1), repeat=len(one))
    )


def largest_by_entries(rows: Rows, participations: int, separation: int) -> Real:
    """The largest sum of absolute entries of C^T C: what vectors cannot exceed."""
    steps = range(len(rows[0]))
    gram = [
        [abs(MP.fsum(row[i] * row[j] for row in rows)) for j in steps] for i in steps
    ]
    return max(
        MP.fsum(gram[i][j] for i in one for j in one)
        for one in sets_of_steps(len(steps), participations, separation)
    )
