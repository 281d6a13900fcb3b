"""The delta of a batch by its definition, at 40 digits: sums, formulas and integrals.

The delta of one more mechanism is the mean, over its privacy loss, of the delta that
the rest has at what is left of epsilon. `BUILDERS` of the product are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath

MP = mpmath.mp.clone()
MP.dps = 40

Real = Any
Delta = Callable[[Real], Real]
Atoms = dict[Real, Real]


def real(value: Fraction) -> Real:
    """Return a rational at this precision."""
    return MP.mpf(value.numerator) / value.denominator


def nothing(eps: Real) -> Real:
    """Return the delta of an answer that says nothing, at any epsilon."""
    return max(MP.mpf(0), -MP.expm1(eps))


# --- losses of discrete mechanisms, each with its mass -------------------------------


def pure_atoms(eps: Fraction) -> Atoms:
    """Return the losses of the worst mechanism of pure epsilon."""
    e = real(eps)
    return {e: 1 / (1 + MP.exp(-e)), -e: 1 / (1 + MP.exp(e))}


def response_atoms(truth: Fraction, values: int) -> Atoms:
    """Return the losses of an answer, seen from two true values."""
    p, q = real(truth), real((1 - truth) / (values - 1))
    return {MP.log(p / q): p, MP.mpf(0): (values - 2) * q, MP.log(q / p): q}


def noise_atoms(weight: Callable[[int], Real], moved: int, reach: int) -> Atoms:
    """Return the losses of noise on integers: its law at z, and at z less the move."""
    weights = [weight(z) for z in range(-reach - moved, reach + 1)]
    total = MP.fsum(weights[moved:])
    pairs = zip(weights[moved:], weights, strict=False)
    return _joined((MP.log(here / there), here / total) for here, there in pairs)


def _joined(atoms: Iterable[tuple[Real, Real]]) -> Atoms:
    """Return losses with their masses; those are one that agree in 30 digits."""
    found: dict[int, tuple[Real, Real]] = {}
    for loss, mass in atoms:
        key = int(MP.nint(loss * 10**30))
        known = found.get(key)
        found[key] = (loss, mass) if known is None else (known[0], known[1] + mass)
    return dict(found.values())


def laplace_weight(scale: Fraction) -> Callable[[int], Real]:
    """Return the weights of discrete Laplace noise."""
    return lambda z: MP.exp(-abs(z) / real(scale))


def gaussian_weight(sigma: Fraction) -> Callable[[int], Real]:
    """Return the weights of discrete Gaussian noise."""
    return lambda z: MP.exp(-MP.mpf(z * z) / (2 * real(sigma) ** 2))


def summed(parts: Sequence[Atoms]) -> Atoms:
    """Return the losses of discrete mechanisms together; equal ones are joined."""
    whole: Atoms = {MP.mpf(0): MP.mpf(1)}
    for part in parts:
        pairs = product(whole.items(), part.items())
        whole = _joined((x + y, p * q) for (x, p), (y, q) in pairs)
    return whole


def many_pure(eps: Fraction, runs: int) -> Atoms:
    """Return the losses of equal worst mechanisms of pure epsilon: a binomial law."""
    e, odds = real(eps), MP.exp(real(eps))
    mass = (1 / (1 + odds)) ** runs
    found: Atoms = {}
    for wins in range(runs + 1):
        found[(2 * wins - runs) * e] = mass
        mass *= odds * (runs - wins) / (wins + 1)
    return found


def of_atoms(atoms: Atoms, rest: Delta) -> Delta:
    """Return the delta of discrete mechanisms and the rest."""
    return lambda eps: MP.fsum(p * rest(eps - loss) for loss, p in atoms.items())


# --- continuous mechanisms, the last of a batch ---------------------------------------


def gaussian(mu2: Fraction) -> Delta:
    """Return the delta of Gaussian noise at any epsilon."""
    mu = MP.sqrt(real(mu2))
    return lambda eps: (
        MP.ncdf(mu / 2 - eps / mu) - MP.exp(eps) * MP.ncdf(-mu / 2 - eps / mu)
    )


def laplace(eps_of_noise: Fraction) -> Delta:
    """Return the delta of Laplace noise at any epsilon."""
    e = real(eps_of_noise)

    def at(eps: Real) -> Real:
        if eps >= e:
            return MP.mpf(0)
        return -MP.expm1(eps if eps <= -e else (eps - e) / 2)

    return at


def sampled_gaussian(rate: Fraction, noise: Fraction, *, adds: bool) -> Delta:
    """Return the delta of Gaussian noise on a sample: where one density is greater."""
    q, s = real(rate), real(noise)

    def at(eps: Real) -> Real:
        odds = (MP.exp(-eps if adds else eps) - 1 + q) / q
        if odds <= 0:
            return MP.mpf(0) if adds else nothing(eps)
        z = s * s * MP.log(odds) + MP.mpf(1) / 2
        if adds:
            mixed = (1 - q) * MP.ncdf(z / s) + q * MP.ncdf((z - 1) / s)
            return MP.ncdf(z / s) - MP.exp(eps) * mixed
        mixed = (1 - q) * MP.ncdf(-z / s) + q * MP.ncdf((1 - z) / s)
        return mixed - MP.exp(eps) * MP.ncdf(-z / s)

    return at


def after_laplace(eps_of_noise: Fraction, rest: Delta, kinks: Sequence[Real]) -> Delta:
    """Return the delta of Laplace noise and the rest, by quadrature.

    Args:
        eps_of_noise: The largest loss e of the noise; it is e and -e with masses 1/2
            and exp(-e)/2, and has the density exp((x - e)/2)/4 between.
        rest: The delta of the rest.
        kinks: Where `rest` is not smooth.
    """
    e = real(eps_of_noise)

    def at(eps: Real) -> Real:
        def inner(loss: Real) -> Real:
            return MP.exp((loss - e) / 2) / 4 * rest(eps - loss)

        breaks = sorted({-e, e, *(eps - k for k in kinks if -e < eps - k < e)})
        ends = rest(eps - e) / 2 + MP.exp(-e) / 2 * rest(eps + e)
        return ends + MP.quad(inner, breaks)

    return at


def many_laplace(eps_of_noise: Fraction, count: int) -> Delta:
    """Return the delta of one or two equal Laplace noises."""
    one = laplace(eps_of_noise)
    e = real(eps_of_noise)
    return one if count == 1 else after_laplace(eps_of_noise, one, (-e, e))


def sampled_twice(rate: Fraction, noise: Fraction, *, adds: bool) -> Delta:
    """Return the delta of two steps on samples: the one, integrated over the other."""
    q, s = real(rate), real(noise)
    rest = sampled_gaussian(rate, noise, adds=adds)

    def at(eps: Real) -> Real:
        def inner(z: Real) -> Real:
            grown = (1 - q) + q * MP.exp((2 * z - 1) / (2 * s * s))
            density = MP.npdf(z, 0, s)
            loss = MP.log(grown)
            if adds:
                return density * rest(eps + loss)
            return density * grown * rest(eps - loss)

        odds = (MP.exp(-eps if adds else eps) / (1 - q) - 1 + q) / q
        kink = [s * s * MP.log(odds) + MP.mpf(1) / 2] if odds > 0 else []
        ends = [-14 * s, -5 * s, 0, 1, 1 + 5 * s, 1 + 14 * s]
        return MP.quad(inner, sorted({*ends, *(k for k in kink if abs(k) < 14 * s)}))

    return at


def discrete_laplace_atoms(moved: int, scale: Fraction) -> Atoms:
    """Return the losses of discrete Laplace noise, from so far out that it is exact."""
    return noise_atoms(laplace_weight(scale), moved, int(100 * scale) + moved + 2)


def discrete_gaussian_atoms(sigma: Fraction) -> Atoms:
    """Return the losses of discrete Gaussian noise that moves by one step."""
    return noise_atoms(gaussian_weight(sigma), 1, int(12 * sigma) + 4)
