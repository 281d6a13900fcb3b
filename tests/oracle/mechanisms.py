"""What mechanisms and samples of data reveal, by their definitions, at 50 digits.

Probabilities come from sums over all outcomes or from numeric integration; nothing
here knows a formula of the code under test, or rounds to ledger units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import TypeAlias

from oracle.accounting import MP, Real, real, renyi_discrete

Law = list[Real]
Density = Callable[[Real], Real]


def value(amount: Fraction | Decimal) -> Real:
    """Return an amount of the code under test as a number of ours."""
    if isinstance(amount, Fraction):
        return real(amount)
    return MP.inf if amount.is_infinite() else MP.mpf(str(amount))


def worse_way(p: Sequence[Real], q: Sequence[Real], alpha: Fraction) -> Real:
    """Return the larger of D_alpha(P || Q) and D_alpha(Q || P)."""
    return max(renyi_discrete(p, q, alpha), renyi_discrete(q, p, alpha))


def worse_ways(
    p: Sequence[Real], q: Sequence[Real], alphas: Sequence[Fraction]
) -> list[Real]:
    """Return `worse_way` at several orders; logarithms are taken once."""
    logs = [(MP.log(a), MP.log(b)) for a, b in zip(p, q, strict=True)]

    def one_way(order: Real, pairs: list[tuple[Real, Real]]) -> Real:
        powers = (MP.exp(order * u + (1 - order) * v) for u, v in pairs)
        return MP.log(MP.fsum(powers)) / (order - 1)

    swapped = [(v, u) for u, v in logs]
    orders = map(real, alphas)
    return [max(one_way(a, logs), one_way(a, swapped)) for a in orders]


def largest_ratio(p: Sequence[Real], q: Sequence[Real]) -> Real:
    """Return the least eps that a pair of laws satisfies, both ways."""
    return max(abs(MP.log(a / b)) for a, b in zip(p, q, strict=True))


def mixed(p: Sequence[Real], q: Sequence[Real], rate: Fraction) -> Law:
    """Return the law that is P with probability `rate` and Q otherwise."""
    r = real(rate)
    return [(1 - r) * b + r * a for a, b in zip(p, q, strict=True)]


def joint(laws: Iterable[Sequence[Real]]) -> Law:
    """Return the law of independent outcomes."""
    return [MP.fprod(outcome) for outcome in product(*laws)]


def normalized(weights: Sequence[Real]) -> Law:
    """Return weights as probabilities."""
    total = MP.fsum(weights)
    return [weight / total for weight in weights]


def hockey_stick(p: Sequence[Real], q: Sequence[Real], eps: Real) -> Real:
    """Return the least delta for which P is (eps, delta)-close to Q."""
    grown = MP.exp(eps)
    return MP.fsum(max(0, a - grown * b) for a, b in zip(p, q, strict=True))


def needed_mu(p: Sequence[Real], q: Sequence[Real]) -> Real:
    """Return the least mu of Gaussian DP that a pair of laws satisfies, both ways.

    The trade-off function of finite laws is a polygon, and that of Gaussian DP convex:
    the corners decide.
    """
    ratios = sorted(zip(p, q, strict=True), key=lambda pair: pair[0] / pair[1])
    needed = MP.mpf(0)
    for cut in range(1, len(ratios)):
        parts = ratios[:cut], ratios[cut:]
        before, after = (
            quantile(*(MP.fsum(pair[law] for pair in part) for part in parts))
            for law in (0, 1)
        )
        needed = max(needed, after - before)
    return needed


def quantile(below: Real, above: Real) -> Real:
    """Return where a standard normal number is below and above so likely."""
    if below > above:
        return -quantile(above, below)
    # The logarithm of the tail is concave, and this is left of its root: Newton's
    # method comes nearer from there.
    x = -MP.sqrt(-2 * MP.log(2 * below)) if 2 * below < 1 else MP.mpf(0)
    for _ in range(60):
        tail = MP.ncdf(x)
        density = MP.exp(-x * x / 2) / MP.sqrt(2 * MP.pi)
        step = MP.log(below / tail) * tail / density
        x += step
        if abs(step) < MP.mpf(10) ** -40:
            break
    return x


# --- noise on the integers --------------------------------------------------------


def discrete_laplace(scale: Fraction, shift: int, reach: int) -> Law:
    """Return the law on -reach..reach, unnormalized tails cut."""
    b = real(scale)
    constant = (1 - MP.exp(-1 / b)) / (1 + MP.exp(-1 / b))
    return [constant * MP.exp(-abs(k - shift) / b) for k in range(-reach, reach + 1)]


def discrete_gaussian(sigma: Fraction, shift: int, reach: int) -> Law:
    """Return the law on -reach..reach, unnormalized tails cut."""
    s2 = 2 * real(sigma) ** 2
    total = MP.fsum(MP.exp(-k * k / s2) for k in range(-reach, reach + 1))
    return [MP.exp(-((k - shift) ** 2) / s2) / total for k in range(-reach, reach + 1)]


# --- choosing one of several --------------------------------------------------------


def exponential(scores: Sequence[Fraction], eps: Fraction) -> Law:
    """Return the exponential mechanism's law for scores of sensitivity 1."""
    return normalized([MP.exp(real(eps * score) / 2) for score in scores])


def permute_and_flip(scores: Sequence[Fraction], eps: Fraction) -> Law:
    """Return the law by its definition: in random order, accept by a coin each."""
    best = max(scores)
    heads = [MP.exp(real(eps * (score - best)) / 2) for score in scores]

    def accepted(i: int) -> Real:
        # Those before i in the random order, as a set S, must all have shown tails.
        others = [j for j in range(len(scores)) if j != i]
        total = MP.mpf(0)
        for size in range(len(others) + 1):
            orders = MP.factorial(size) * MP.factorial(len(others) - size)
            share = orders / MP.factorial(len(scores))
            for before in combinations(others, size):
                total += share * heads[i] * MP.fprod(1 - heads[j] for j in before)
        return total

    return [accepted(i) for i in range(len(scores))]


def noisy_max(
    scores: Sequence[Real], density: Density, below: Density, reach: Real
) -> Law:
    """Return the law of the largest noisy score, by integrating over its value."""
    breaks = [-reach, *sorted(set(scores)), reach]

    def wins(i: int) -> Real:
        def integrand(x: Real) -> Real:
            rest = [below(x - s) for j, s in enumerate(scores) if j != i]
            return density(x - scores[i]) * MP.fprod(rest)

        return MP.quad(integrand, breaks)

    with MP.workdps(30):
        return [wins(i) for i in range(len(scores))]


def laplace_density(scale: Real) -> Density:
    """Return the density of Laplace noise."""
    return lambda x: MP.exp(-abs(x) / scale) / (2 * scale)


def laplace_below(scale: Real) -> Density:
    """Return the distribution function of Laplace noise."""

    def below(x: Real) -> Real:
        half = MP.exp(-abs(x) / scale) / 2
        return half if x < 0 else 1 - half

    return below


def gumbel_density(scale: Real) -> Density:
    """Return the density of Gumbel noise."""
    return lambda x: MP.exp(-x / scale - MP.exp(-x / scale)) / scale


def gumbel_below(scale: Real) -> Density:
    """Return the distribution function of Gumbel noise."""
    return lambda x: MP.exp(-MP.exp(-x / scale))


#: A sum of exponentials on an interval: each coefficient by its rate.
_Sum: TypeAlias = dict[Fraction, Real]


#: Digits, where integrals of large terms are small.
_SPARE = 120


@dataclass(frozen=True)
class _Piecewise:
    """A function of one sum of exponentials below a point, and another one above."""

    at: Fraction
    left: _Sum
    right: _Sum


def _noise(center: Fraction, rate: Fraction) -> _Piecewise:
    """Return the density of Laplace noise of scale 1/rate around a center."""
    up, half = MP.exp(real(rate * center)), real(rate) / 2
    return _Piecewise(center, {rate: half / up}, {-rate: half * up})


def _below(center: Fraction, rate: Fraction) -> _Piecewise:
    """Return the probability of such noise to be below a point."""
    up, zero = MP.exp(real(rate * center)), Fraction(0)
    right = {zero: MP.mpf(1), -rate: -up / 2}
    return _Piecewise(center, {rate: 1 / (2 * up)}, right)


def _above(center: Fraction, rate: Fraction) -> _Piecewise:
    """Return the probability of such noise to be above a point."""
    up, zero = MP.exp(real(rate * center)), Fraction(0)
    left = {zero: MP.mpf(1), rate: -1 / (2 * up)}
    return _Piecewise(center, left, {-rate: up / 2})


def _integral(factors: Sequence[_Piecewise]) -> Real:
    """Return the integral of a product over all numbers, exactly."""
    ends = sorted({one.at for one in factors})
    total = MP.mpf(0)
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        terms: _Sum = {Fraction(0): MP.mpf(1)}
        for one in factors:
            factor = one.left if high is not None and high <= one.at else one.right
            products = [
                (a + b, x * y) for a, x in terms.items() for b, y in factor.items()
            ]
            terms = dict.fromkeys([rate for rate, _ in products], MP.mpf(0))
            for rate, product_ in products:
                terms[rate] += product_
        for rate, weight in terms.items():
            total += weight * _piece(rate, low, high)
    return total


def _piece(rate: Fraction, low: Fraction | None, high: Fraction | None) -> Real:
    """Return the integral of exp(rate * x); at an open end it vanishes."""
    if rate == 0:
        assert low is not None
        assert high is not None
        return real(high - low)
    upper = 0 if high is None else MP.exp(real(rate * high))
    lower = 0 if low is None else MP.exp(real(rate * low))
    return (upper - lower) / real(rate)


def laplace_max(scores: Sequence[Fraction], rate: Fraction) -> Law:
    """Return the law of the largest score under Laplace noise of scale 1/rate."""

    def wins(i: int, score: Fraction) -> Real:
        others = [_below(s, rate) for j, s in enumerate(scores) if j != i]
        return _integral([_noise(score, rate), *others])

    with MP.workdps(_SPARE):
        return [wins(i, score) for i, score in enumerate(scores)]


def laplace_transcripts(
    answers: Callable[[str], Fraction],
    queries: int,
    rates: tuple[Fraction, Fraction],
    positives: int,
) -> Law:
    """Return the law of all transcripts of the sparse vector technique, exactly.

    Args:
        answers: The exact answer to the next query, less the threshold; it may depend
            on the signs before.
        queries: How many there are.
        rates: The inverse scales of the threshold's noise and of each query's.
        positives: It stops after so many, and draws the threshold again after each.
    """

    def chance(transcript: str) -> Real:
        whole, factors = MP.mpf(1), [_noise(Fraction(0), rates[0])]
        for place, sign in enumerate(transcript):
            tail = _below if sign == "-" else _above
            factors.append(tail(answers(transcript[:place]), rates[1]))
            if sign == "+":
                whole *= _integral(factors)
                factors = factors[:1]
        return whole * _integral(factors)

    with MP.workdps(_SPARE):
        return [chance(one) for one in transcripts(queries, positives)]


def gaussian_max(scores: Sequence[int], sigma: Fraction) -> Law:
    """Return the law of the largest score under Gaussian noise, to some 30 digits.

    By the trapezoid rule, which is that exact where the integrand is entire and falls
    like a normal density.
    """
    s = real(sigma)
    step, reach = s / 4, 13 * s
    low, high = min(scores) - reach, max(scores) + reach
    points = [low + step * i for i in range(int((high - low) / step) + 2)]

    with MP.workdps(40):
        tails = [[MP.ncdf((x - score) / s) for score in scores] for x in points]
        return normalized(
            [
                MP.fsum(
                    MP.exp(-(((x - score) / s) ** 2) / 2)
                    * MP.fprod(one for j, one in enumerate(tail) if j != i)
                    for x, tail in zip(points, tails, strict=True)
                )
                for i, score in enumerate(scores)
            ]
        )


def sparse_vector(
    answers: Sequence[int], threshold: Real, noise: Real, positives: int, *, fresh: bool
) -> dict[str, Real]:
    """Return the law of the transcripts: one character a query, until it stops.

    Args:
        answers: The exact answers less the threshold, of sensitivity 1.
        threshold: Scale of the threshold's noise.
        noise: Scale of each query's noise.
        positives: It stops after so many.
        fresh: Whether the threshold is drawn anew after each positive.
    """
    density, below = laplace_density(threshold), laplace_below(noise)

    def run(part: str, start: int) -> Real:
        def integrand(z: Real) -> Real:
            chances = [below(z - answers[start + i]) for i in range(len(part))]
            signs = zip(part, chances, strict=True)
            return density(z) * MP.fprod(c if s == "-" else 1 - c for s, c in signs)

        breaks = [-120 * threshold, *sorted({0, *answers}), 120 * threshold]
        return MP.quad(integrand, breaks)

    def chance(transcript: str) -> Real:
        if not fresh:
            return run(transcript, 0)
        parts = [part for part in transcript.replace("+", "+ ").split(" ") if part]
        starts = [sum(map(len, parts[:i])) for i in range(len(parts))]
        return MP.fprod(run(p, s) for p, s in zip(parts, starts, strict=True))

    with MP.workdps(30):
        return {t: chance(t) for t in transcripts(len(answers), positives)}


def transcripts(queries: int, positives: int) -> list[str]:
    """Return all that can be seen of so many queries, stopped after some positives."""
    found = []
    for signs in product("-+", repeat=queries):
        text = "".join(signs)
        stop = [i for i, sign in enumerate(text) if sign == "+"][positives - 1 :]
        if not stop or stop[0] == queries - 1:
            found.append(text)
        elif set(text[stop[0] + 1 :]) == {"-"}:
            found.append(text[: stop[0] + 1])
    return found


# --- noise on a sample ----------------------------------------------------------------


def sampled_ways(
    shifted: Density,
    plain: Density,
    rate: Fraction,
    alpha: Fraction,
    breaks: Sequence[Real],
) -> tuple[Real, Real]:
    """Return D(mixture || plain) and D(plain || mixture), by integration."""
    q, a = real(rate), real(alpha)

    def ratio(x: Real) -> Real:
        return 1 - q + q * shifted(x) / plain(x)

    adding = MP.quad(lambda x: plain(x) * ratio(x) ** a, list(breaks))
    removing = MP.quad(lambda x: plain(x) * ratio(x) ** (1 - a), list(breaks))
    return MP.log(adding) / (a - 1), MP.log(removing) / (a - 1)


def gaussian_step(
    rate: Fraction, noise: Fraction, alpha: Fraction
) -> tuple[Real, Real]:
    """Return both ways of one step of DP-SGD; the noise has scale `noise`."""
    s, a = real(noise), real(alpha)
    # Where the integrand may have its humps: near 0, and near alpha.
    points = {-15 * s, -5 * s, MP.mpf(0), 5 * s, a - 5 * s, a, a + 5 * s}
    last = a + 15 * s + MP.sqrt(a * a)
    breaks = [*sorted(point for point in points if point < last), last]
    return sampled_ways(
        lambda x: MP.exp(-((x - 1) ** 2) / (2 * s * s)) / (s * MP.sqrt(2 * MP.pi)),
        lambda x: MP.exp(-(x**2) / (2 * s * s)) / (s * MP.sqrt(2 * MP.pi)),
        rate,
        alpha,
        breaks,
    )


def laplace_step(rate: Fraction, eps: Fraction, alpha: Fraction) -> tuple[Real, Real]:
    """Return both ways of Laplace noise of scale 1, shifted by eps, on a sample."""
    e = real(eps)
    density = laplace_density(MP.mpf(1))
    return sampled_ways(
        lambda x: density(x - e), density, rate, alpha, [-MP.inf, 0, e, MP.inf]
    )


#: Gaussian noise around whole numbers: each of them, and how likely it is.
Mixture: TypeAlias = Sequence[tuple[int, Real]]


def mixtures_apart(p: Mixture, q: Mixture, noise: Fraction, alpha: Fraction) -> Real:
    """Return the divergence of two mixtures under Gaussian noise, the worse way.

    By the trapezoid rule: nearer to the real line than the step allows for, no density
    has a zero, and the rule errs by far less than 1e-20.
    """
    s, a = real(noise), real(alpha)
    shifts = [shift for shift, _ in (*p, *q)]
    spread = max(shifts) - min(shifts)
    step = min(s / 8, s * s / (8 * spread))
    reach = a * spread + 14 * s

    def log_density(mixture: Mixture, x: Real) -> Real:
        return MP.log(
            MP.fsum(w * MP.exp(-(((x - m) / s) ** 2) / 2) for m, w in mixture)
        )

    with MP.workdps(30):
        first, last = min(shifts) - reach, max(shifts) + reach
        points = [first + step * i for i in range(int((last - first) / step) + 2)]
        logs = [(log_density(p, x), log_density(q, x)) for x in points]
        scale = step / (s * MP.sqrt(2 * MP.pi))
        ways = [
            scale * MP.fsum(MP.exp(a * one + (1 - a) * other) for one, other in pairs)
            for pairs in (logs, [(other, one) for one, other in logs])
        ]
        return max(MP.log(way) for way in ways) / (a - 1)


def sampled_power(rate: Fraction, noise: Fraction, alpha: int) -> Real:
    """Return the divergence of one step of DP-SGD at a whole order, adding.

    The power of a mixture is multiplied out; each term is a normal integral.
    """
    r, s = real(rate), real(noise)
    terms = (
        MP.binomial(alpha, k)
        * (1 - r) ** (alpha - k)
        * r**k
        * MP.exp(k * (k - 1) / (2 * s * s))
        for k in range(alpha + 1)
    )
    return MP.log(MP.fsum(terms)) / (alpha - 1)
