"""Privacy profiles by definition: integrals and sums over all outcomes, at 50 digits.

Nothing here uses the closed forms of the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product

from oracle.accounting import MP, Real, answer_pair, pure_pair, real


def hockey_stick(p: Sequence[Real], q: Sequence[Real], eps: Real) -> Real:
    """Return the least delta at `eps`: sum over outcomes of max(0, p - e^eps q)."""
    pairs = zip(p, q, strict=True)
    return MP.fsum(max(MP.mpf(0), a - MP.exp(eps) * b) for a, b in pairs)


def composed(
    pairs: Sequence[tuple[Sequence[Real], Sequence[Real]]],
) -> tuple[list[Real], list[Real]]:
    """Return the joint distributions of independent answers; every outcome apart."""
    p = [MP.fprod(chosen) for chosen in product(*(first for first, _ in pairs))]
    q = [MP.fprod(chosen) for chosen in product(*(second for _, second in pairs))]
    return p, q


def pure_composition_delta(
    counts: Mapping[Fraction, int], eps: Fraction, deltas: Mapping[Fraction, int]
) -> Real:
    """Return the exact delta of truthful answers that fail with their own deltas.

    A mechanism that fails shows which of the two data sets it ran on.
    """
    pairs: list[tuple[Sequence[Real], Sequence[Real]]] = []
    for each, count in counts.items():
        pairs += [pure_pair(each)] * count
    for delta, count in deltas.items():
        d = real(delta)
        pairs += [([d, MP.mpf(0), 1 - d], [MP.mpf(0), d, 1 - d])] * count
    return hockey_stick(*composed(pairs), real(eps)) if pairs else MP.mpf(0)


def survey_delta(truth: Fraction, values: int, eps: Fraction) -> Real:
    """Return the exact delta of k-ary randomized response."""
    return hockey_stick(*answer_pair(truth, values), real(eps))


def integrated_delta(
    p: Callable[[Real], Real],
    q: Callable[[Real], Real],
    eps: Real,
    breaks: Sequence[Real],
) -> Real:
    """Return the integral of max(0, p - e^eps q), by quadrature between the breaks."""

    def above(x: Real) -> Real:
        return max(MP.mpf(0), p(x) - MP.exp(eps) * q(x))

    return MP.quad(above, list(breaks))


def gaussian_delta(mu: Real, eps: Real) -> Real:
    """Return delta of N(mu, 1) against N(0, 1), integrated where it is positive."""
    edge = eps / mu + mu / 2  # p > e^eps q exactly beyond.
    middle = max(edge, mu)
    breaks = [edge, *(middle + step for step in (1, 3, 6, 10, 16, 30))]

    def density(x: Real) -> Real:
        return MP.exp(-x * x / 2) / MP.sqrt(2 * MP.pi)

    return integrated_delta(lambda x: density(x - mu), density, eps, breaks)


def laplace_delta(shift: Real, eps: Real) -> Real:
    """Return delta of Laplace noise around `shift` against around 0, both scale 1."""
    edges = {MP.mpf(-60), MP.mpf(0), (eps + shift) / 2, shift, shift + 60}

    def density(x: Real) -> Real:
        return MP.exp(-abs(x)) / 2

    return integrated_delta(lambda x: density(x - shift), density, eps, sorted(edges))
