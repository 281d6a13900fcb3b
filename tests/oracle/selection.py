"""The best of a random number of runs, by its definition, at 50 digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from oracle.accounting import MP, Real, real

Law = list[Real]
#: From x to the mean of x to the power of the number of runs.
Generating = Callable[[Real], Real]


def number_of_runs(eta: Fraction | None, size: Fraction, most: int) -> Law:
    """Return the probabilities of 0, 1, ..., `most` runs.

    Args:
        eta: The shape of a truncated negative binomial; None for Poisson.
        size: gamma, or the mean.
        most: The larger ones are left out.
    """
    s = real(size)
    if eta is None:
        return [MP.exp(-s) * s**k / MP.factorial(k) for k in range(most + 1)]
    if eta == 0:
        weights = [(1 - s) ** k / k for k in range(1, most + 1)]
        return [MP.mpf(0), *(w / MP.log(1 / s) for w in weights)]
    e = real(eta)
    law, weight = [MP.mpf(0)], MP.mpf(1)
    for k in range(most):
        weight *= (1 - s) * (k + e) / (k + 1)
        law.append(weight / (s**-e - 1))
    return law


def generating(eta: Fraction | None, size: Fraction) -> Generating:
    """Return the probability generating function of the number of runs."""
    s = real(size)
    if eta is None:
        return lambda x: MP.exp(s * (x - 1))
    if eta == 0:
        return lambda x: MP.log(1 - (1 - s) * x) / MP.log(s)
    e = real(eta)
    return lambda x: ((1 - (1 - s) * x) ** -e - 1) / (s**-e - 1)


def best(law: Sequence[Real], ranks: Sequence[int], f: Generating) -> Law:
    """Return the law of the best output, and last the probability of none, if any.

    Args:
        law: The probability of each output of one run.
        ranks: How good each output is; of equally good ones, one is taken at random.
        f: The generating function of the number of runs.
    """
    won = {}
    for level in set(ranks):
        known = list(zip(law, ranks, strict=True))
        worse = MP.fsum(p for p, rank in known if rank < level)
        equal = MP.fsum(p for p, rank in known if rank == level)
        won[level] = (f(worse + equal) - f(worse)) / equal if equal else MP.mpf(0)
    none = [f(MP.mpf(0))] if f(MP.mpf(0)) else []
    return [p * won[rank] for p, rank in zip(law, ranks, strict=True)] + none
