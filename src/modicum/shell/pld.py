"""Privacy loss distributions, by dp-accounting, of batches fixed beforehand.

Only for parameters that were all fixed before the first output. The privacy loss of
such a batch is the sum of independent losses, so convolving their distributions gives
its exact (eps, delta) curve. Of a history whose mechanisms are chosen from earlier
answers this is *not* true: stopping when the distribution convolved so far reaches a
budget is no filter (Regehr et al. 2026, arXiv:2602.15815). To charge a batch to a
filter, use `batch_curve`.

Only the library's distributions are used, with explicit counts and pessimistic
estimates, and what comes back is checked. Errors are counted as mass at infinity:

- *Rounding of losses.* Each distribution is put on a grid by connecting the dots of
  its (eps, delta) curve (Doroshenko et al. 2022, arXiv:2207.04380). The curve, as a
  function of e^eps, is convex, so the chords lie above it: the pair on the grid
  dominates the true one. Domination survives convolution (Zhu, Dong & Wang 2022,
  arXiv:2106.08567).
- *Tails* that the library cuts go to infinity, or up to the lowest loss that is kept.
- *Floats.* A distribution whose (eps, delta) curve is too low by at most x everywhere
  dominates again when x of mass is added at infinity. What the floats of a single
  distribution and of the convolutions can amount to is bounded beside the code.

`eps` is evaluated at what is left of delta, then raised by one part in 1e9 and 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from modicum.accounting.amounts import INFINITY, Amount, decimal_of, is_infinite
from modicum.accounting.batch_format import Part, merged
from modicum.accounting.curves import Curve, composed
from modicum.accounting.decimals import precise
from modicum.core.errors import Code, InputError, Problem, check
from modicum.core.exact import LOSS_UNIT

Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

#: Mass that the library may cut off at each convolution, counted as infinite loss.
TAIL = 1e-15
#: Half the distance from 1 to the next float.
ULP = 2.0**-53
#: The finest and the coarsest grid of losses, and how many points one may have.
FINEST, COARSEST, POINTS_MAX = 1e-7, 1e-3, 2**22
#: Relative and absolute surplus on every epsilon and delta that is reported.
SURPLUS = 1e-9, 1e-12


# --- what is asked ------------------------------------------------------------------


def batch_epsilon(parts: Sequence[Part], delta: Fraction) -> Amount:
    """Return epsilon at `delta` of a batch, by its privacy loss distribution.

    Args:
        parts: Mechanisms under one neighboring relation, all of whose parameters were
            fixed before the first output. Laplace and discrete noise is on a single
            number.
        delta: Strictly between 0 and 1.

    Returns:
        Epsilon, rounded up to a multiple of 1e-12, the larger of both directions;
        infinite if the mass that cannot be bounded is not below `delta`.

    Raises:
        InputError: If dp-accounting is missing, or has no distribution for a mechanism.

    Neighboring relation:
        The one the parts hold under.

    Source:
        Sommer, Meiser & Mohammadi 2019 (doi:10.2478/popets-2019-0029); Zhu, Dong &
        Wang 2022, Thm 10 (arXiv:2106.08567); Doroshenko et al. 2022
        (arXiv:2207.04380).
    """
    _require(0 < delta < 1, f"delta {float(delta):g} is not between 0 and 1")
    return batch_loss(tuple(parts)).epsilon(delta)


def batch_delta(parts: Sequence[Part], eps: Fraction) -> Fraction:
    """Return delta at `eps` of a batch, by its privacy loss distribution.

    Args:
        parts: As for `batch_epsilon`.
        eps: >= 0.

    Returns:
        Delta, rounded up, at most 1, the larger of both directions.

    Raises:
        InputError: As `batch_epsilon`.

    Neighboring relation:
        The one the parts hold under.

    Source:
        As for `batch_epsilon`.
    """
    _require(eps >= 0, f"epsilon {float(eps):g} is negative")
    return batch_loss(tuple(parts)).delta(eps)


def batch_curve(
    parts: Sequence[Part], *, delta: Fraction = Fraction(1, 10**10)
) -> Curve:
    """Return the curve of a batch, so that it can be charged to a filter as one loss.

    The curve is fixed before the first output of the batch; batch after batch may be
    chosen from earlier answers, as long as each is charged before it starts.

    Args:
        parts: As for `batch_epsilon`.
        delta: How much of the largest losses may count as infinite: the curve's own
            delta, unless the mass that cannot be bounded is larger.

    Returns:
        At each order the lesser of the sum over the parts and of the distribution's
        divergence, the larger of both directions.

    Raises:
        InputError: As `batch_epsilon`.

    Neighboring relation:
        The one the parts hold under.

    Source:
        Feldman & Zrnic 2021 (arXiv:2008.11193) and Whitehouse et al. 2023
        (arXiv:2203.05481) for charging it; the formula is proven beside the code.
    """
    _require(0 <= delta < 1, f"delta {float(delta):g} is not between 0 and 1")
    summed = composed((part.curve, part.times) for part in merged(parts))
    loss = batch_loss(tuple(parts))
    cut = [side.cut(float(delta)) for side in loss.sides]
    lost = max(Fraction(side.infinite) for side in cut)
    if lost >= 1:
        return summed

    @lru_cache(maxsize=1024)
    def renyi(order: Fraction) -> Amount:
        return Fraction(max(side.divergence(float(order)) for side in cut))

    eps = min(decimal_of(summed.eps), decimal_of(_up(max(s.largest for s in cut))))
    return Curve(eps, summed.rho, summed.mu2, renyi, max(lost, summed.delta))


@lru_cache(maxsize=16)
def batch_loss(parts: tuple[Part, ...]) -> BatchLoss:
    """Return the distribution of a batch's privacy loss.

    Raises:
        InputError: As `batch_epsilon`.
    """
    found = merged(parts)
    interval = interval_for(found)
    with _library_errors():
        composed_loss = _identity(interval)
        for part in found:
            composed_loss = composed_loss.joined(_loss_of(part, interval))
    return composed_loss


# --- one direction ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The privacy loss of one of two neighbors against the other.

    Attributes:
        losses: The finite losses, rising.
        mass: The probability of each; they may sum to a little more than 1.
        infinite: The mass of the infinite loss, with all that is not known.
    """

    losses: Floats
    mass: Floats
    infinite: float

    def delta(self, eps: float) -> float:
        """Return the hockey-stick divergence at `eps`, rounded up.

        All terms are positive, so floats err by at most one unit per term.
        """
        above = self.losses > eps
        beyond = self.mass[above] @ -np.expm1(eps - self.losses[above])
        return float(self.infinite + beyond) * (1 + SURPLUS[0])

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at `delta`, rounded up."""
        if self.infinite >= delta:
            return math.inf
        low, high = 0.0, max(0.0, self.largest)
        if self.delta(low) <= delta:
            return 0.0
        while high - low > SURPLUS[0] / 8 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high * (1 + SURPLUS[0]) + SURPLUS[1]

    @property
    def largest(self) -> float:
        """The largest finite loss; with a delta of `infinite`, a pure epsilon."""
        top = float(self.losses[-1]) if len(self.losses) else 0.0
        return max(0.0, top) * (1 + SURPLUS[0]) - math.log1p(-min(self.infinite, 0.5))

    def cut(self, infinite: float) -> Side:
        """Return the side whose largest losses count as infinite, up to a mass."""
        from_above = np.cumsum(self.mass[::-1]) * (1 + SURPLUS[0]) + self.infinite
        dropped = int(np.searchsorted(from_above, infinite, side="right"))
        if not dropped:
            return self
        kept = len(self.mass) - dropped
        return Side(
            self.losses[:kept], self.mass[:kept], float(from_above[dropped - 1])
        )

    def divergence(self, order: float) -> float:
        """Return the Renyi divergence of what is not infinite, rounded up.

        Let m be the infinite mass. The pair on the grid is P = (1 - m) P' + m X and Q,
        where X lies where Q has no mass, and P'(l) = p(l) / (1 - m), Q(l) = p(l) e^-l
        on the grid. So (order - 1) D(P' || Q) is

            ln(sum of p(l) e^((order - 1) l)) - order * ln(1 - m).

        If the masses sum to more than 1, those of the lowest losses are too much: the
        true curve is convex in e^eps and starts at 1, so it stays below the chord from
        there when they are taken away. To leave them in only adds to the sum.

        A run that differs from P' with probability at most m is all that a filter with
        a delta needs: it is shown for each ordered pair of neighbors by itself.
        """
        exponents = (order - 1) * self.losses
        top = float(exponents.max())
        total = float(self.mass @ np.exp(exponents - top))
        logarithm = top + math.log(total) - order * math.log1p(-self.infinite)
        # The sum errs by a unit per term, the exponents by four units each.
        slack = 4 * ULP * (len(self.losses) + abs(top)) + SURPLUS[1]
        found = (logarithm + slack) / (order - 1)
        return max(0.0, found) * (1 + SURPLUS[0])


# --- both directions, and how they are composed -------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BatchLoss:
    """A composed distribution of the library, with what it may have missed.

    Attributes:
        distribution: The library's, of both directions.
        error: By how much floats may have made its (eps, delta) curve too low.
    """

    distribution: Any
    error: float

    @property
    def sides(self) -> tuple[Side, ...]:
        """Both directions, checked; one if they are the same."""
        return tuple(
            _side(dense, self.error) for dense in _directions(self.distribution)
        )

    def epsilon(self, delta: Fraction) -> Amount:
        """Return epsilon at `delta`, rounded up."""
        found = max(side.epsilon(_below(delta)) for side in self.sides)
        if math.isinf(found):
            return INFINITY
        units = math.ceil(Fraction(found) * LOSS_UNIT)
        return Fraction(units, LOSS_UNIT)

    def delta(self, eps: Fraction) -> Fraction:
        """Return delta at `eps`, rounded up."""
        found = max(side.delta(_below(eps)) for side in self.sides)
        return min(Fraction(1), Fraction(found))

    def joined(self, other: BatchLoss) -> BatchLoss:
        """Return the distribution of both losses together.

        With theta the relative error of a Fourier transform in the Euclidean norm, the
        convolution of a and b errs by at most theta (|a| + |b| + |a*b|) in that norm,
        since no transform of a probability exceeds 1; hence, over n points, by at most
        sqrt(n) times that in all.
        """
        whole = self.distribution.compose(other.distribution, TAIL)
        points, norm = _size_and_norm(whole)
        norms = norm + sum(_size_and_norm(x.distribution)[1] for x in (self, other))
        transforms = math.sqrt(points) * _theta(points) * norms
        error = 1.01 * (self.error + other.error) + transforms
        found = BatchLoss(whole, error)
        _check_mass(found)
        return found

    def repeated(self, times: int) -> BatchLoss:
        """Return the distribution of so many independent losses of this kind.

        The power of a transform errs by `times` as much as the transform, relative to
        at most 1; the rest is as for `joined`.
        """
        if times == 1:
            return self
        whole = self.distribution.self_compose(times, TAIL)
        points, norm = _size_and_norm(whole)
        one = _size_and_norm(self.distribution)[1]
        theta = _theta(points) + 8 * ULP
        transforms = math.sqrt(points) * theta * (times * one + norm)
        found = BatchLoss(whole, 1.01 * times * self.error + transforms)
        _check_mass(found)
        _check_count(self, found, times)
        return found


def _theta(points: int) -> float:
    # Higham 2002, Thm 24.2: log2(n) times a few units; eight leave room for lengths
    # that are not powers of two.
    return 8 * ULP * math.log2(4 * points + 4)


def _directions(distribution: Any) -> list[Any]:
    """Return the library's dense distribution for each direction."""
    found = [distribution._pmf_remove]  # noqa: SLF001 - it has no other way out
    if not distribution._symmetric:  # noqa: SLF001
        found.append(distribution._pmf_add)  # noqa: SLF001
    return [one.to_dense_pmf() for one in found]


def _size_and_norm(distribution: Any) -> tuple[int, float]:
    dense = _directions(distribution)
    norms = [float(np.linalg.norm(one._probs)) for one in dense]  # noqa: SLF001
    return max(one.size for one in dense), max(norms)


def _side(dense: Any, error: float) -> Side:
    """Return one direction; what is unknown of it becomes infinite mass."""
    mass: Floats = np.asarray(dense._probs, dtype=np.float64)  # noqa: SLF001
    first = dense._lower_loss  # noqa: SLF001
    losses = (np.arange(len(mass)) + first) * dense._discretization  # noqa: SLF001
    infinite = float(dense._infinity_mass) + error  # noqa: SLF001
    check(
        bool(np.isfinite(mass).all()) and math.isfinite(infinite),
        "PLD: a mass is a number",
    )
    check(bool((mass >= -error).all()), "PLD: a mass is not below 0")
    check(
        bool(infinite + mass.sum() >= 1 - SURPLUS[0]),
        "PLD: the masses sum to at least 1",
    )
    return Side(losses, np.maximum(mass, 0.0), infinite)


def _check_mass(found: BatchLoss) -> None:
    check(len(found.sides) in {1, 2}, "PLD: there are one or two directions")


def _check_count(one: BatchLoss, many: BatchLoss, times: int) -> None:
    """Refuse a composition that forgot runs: the mean of the loss adds up."""
    for single, whole in zip(one.sides, many.sides, strict=True):
        surplus = float(single.mass.sum() + single.infinite)
        expected = times * float(single.losses @ single.mass) * surplus ** (times - 1)
        mean = float(whole.losses @ whole.mass)
        widest = float(np.abs(whole.losses).max())
        slack = 1e-3 * abs(expected) + 1e-6 + 2 * widest * whole.infinite
        check(abs(mean - expected) <= slack, "PLD: every run is counted")


# --- single mechanisms ---------------------------------------------------------------


def interval_for(parts: Sequence[Part]) -> float:
    """Return the distance of the losses on the grid that suits a batch.

    Connecting the dots adds at most interval**2 / 4 to the variance of a loss; here
    that is one part in 40,000 of it.
    """
    runs = sum(part.times for part in parts)
    variance = sum(part.times * min(1.0, _variance(part)) for part in parts)
    if not variance:
        return COARSEST
    typical, whole = math.sqrt(variance / runs), math.sqrt(variance)
    return min(COARSEST, max(FINEST, typical / 100, 40 * whole / POINTS_MAX))


def _variance(part: Part) -> float:
    """Return roughly the variance of the loss of one run."""
    curve = _single_run(part)[0]
    at = curve.at(Fraction(2))
    return 1.0 if is_infinite(at) else float(at)


def _single_run(part: Part) -> tuple[Curve, int]:
    """Return the curve of what repeats in a part, and how often it does."""
    inner = {"dp-sgd": "steps", "randomized-response": "answers"}.get(part.kind)
    if inner is None:
        return part.curve, part.times
    values = dict(part.values)
    repeated, values[inner] = int(values[inner]), Fraction(1)
    return Part(part.kind, tuple(values.items())).curve, part.times * repeated


@lru_cache(maxsize=256)
def _loss_of(part: Part, interval: float) -> BatchLoss:
    curve, runs = _single_run(part)
    if curve.delta == 0 and curve.eps == 0:
        return _identity(interval)
    build = _NATIVE.get(part.kind, _by_guarantee)
    distribution = build(part, curve, interval)
    one = BatchLoss(distribution, _single_error(distribution) + float(curve.delta))
    return one.repeated(runs)


def _identity(interval: float) -> BatchLoss:
    return BatchLoss(_library().identity(interval), 0.0)


def _single_error(distribution: Any) -> float:
    """Return by how much floats may make the curve of one distribution too low.

    The mass at a loss l is a difference of slopes of the (eps, delta) curve. A slope
    there, over the interval, is at most min(e^l, mass above l), and floats make it err
    by a few units of that; negative masses are raised to 0, which only adds. The
    deltas themselves err by a few units of 1, and of the largest loss.
    """
    errors = []
    for dense in _directions(distribution):
        side = _side(dense, 1e-9)
        above = np.cumsum(side.mass[::-1])[::-1] + side.infinite
        slopes = np.minimum(np.exp(np.minimum(side.losses, 0.0)), above)
        widest = float(np.abs(side.losses).max())
        errors.append(16 * ULP * (float(slopes.sum()) + 4 * widest + 8))
    return max(errors)


_Builder: TypeAlias = Callable[[Part, Curve, float], Any]


def _laplace(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    return _library().from_laplace_mechanism(
        _below(v["scale"] / v["sensitivity"]), value_discretization_interval=interval
    )


def _discrete_laplace(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    return _library().from_discrete_laplace_mechanism(
        float(_up_to_float(1 / v["scale"])),
        sensitivity=int(v["sensitivity"]),
        value_discretization_interval=interval,
        use_connect_dots=True,
    )


def _discrete_gaussian(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    if v["sensitivity"].denominator != 1:
        raise _unknown(part, "its sensitivity is not a whole number")
    return _library().from_discrete_gaussian_mechanism(
        _below(v["sigma"]),
        sensitivity=int(v["sensitivity"]),
        value_discretization_interval=interval,
        use_connect_dots=True,
    )


def _dp_sgd(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    return _library().from_gaussian_mechanism(
        _below(v["noise-multiplier"]),
        value_discretization_interval=interval,
        sampling_prob=min(1.0, _up_to_float(v["sampling-rate"])),
    )


def _randomized_response(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    truth, other = v["truth"], (1 - v["truth"]) / (v["values"] - 1)
    eps = math.log(truth) - math.log(other)
    rest = 1 - truth - other
    return _on_grid({eps: float(truth), 0.0: float(rest), -eps: float(other)}, interval)


def _by_guarantee(part: Part, curve: Curve, interval: float) -> Any:
    """Return the distribution that dominates every mechanism of a guarantee.

    Source:
        Pure epsilon: Kairouz, Oh & Viswanath 2015, Thm 2.5 (arXiv:1311.0776). mu:
        Dong, Roth & Su 2022, Def. 2.6 (arXiv:1905.02383).
    """
    if not is_infinite(curve.eps):
        eps = _up_to_float(curve.eps)
        likely = 1 / (1 + math.exp(-eps))
        return _on_grid({eps: likely, -eps: likely * math.exp(-eps)}, interval)
    if is_infinite(curve.mu2):
        raise _unknown(part, "neither epsilon nor mu is proven of it")
    sigma = precise(lambda: 1 / decimal_of(curve.mu2).sqrt())()
    return _library().from_gaussian_mechanism(
        _below(Fraction(sigma)), value_discretization_interval=interval
    )


_NATIVE: Mapping[str, _Builder] = {
    "laplace": _laplace,
    "discrete-laplace": _discrete_laplace,
    "discrete-gaussian": _discrete_gaussian,
    "dp-sgd": _dp_sgd,
    "randomized-response": _randomized_response,
}


def _on_grid(points: Mapping[float, float], interval: float) -> Any:
    """Return a distribution of few losses, by connecting the dots around each."""
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots

    indices = {round_(loss / interval) for loss in points for round_ in _BOTH_WAYS}
    grid = sorted(indices)
    deltas = [
        sum(
            mass * max(0.0, -math.expm1(i * interval - l)) for l, mass in points.items()
        )
        for i in grid
    ]
    # Nothing is above the largest loss, whichever way its place on the grid errs.
    deltas[-1] = 0.0
    pmf = create_pmf_pessimistic_connect_dots(interval, grid, deltas)
    return _library().PrivacyLossDistribution(pmf)


_BOTH_WAYS = (lambda x: math.floor(x - 1e-9), lambda x: math.ceil(x + 1e-9))


# --- numbers, and what can go wrong ----------------------------------------------------


def _library() -> Any:
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError as error:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "privacy loss distributions need the library dp-accounting",
                help="pip install 'modicum[pld]'",
            )
        ) from error
    return privacy_loss_distribution


def _below(value: Fraction) -> float:
    """Return the nearest float that is not above a number, >= 0."""
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, 0.0)


def _up_to_float(value: Amount) -> float:
    """Return the nearest float that is not below a number."""
    exact, found = Fraction(value), float(value)
    return found if Fraction(found) >= exact else math.nextafter(found, math.inf)


def _up(value: float) -> Fraction:
    return Fraction(math.nextafter(value, math.inf))


def _require(condition: bool, message: str) -> None:  # noqa: FBT001
    if not condition:
        raise InputError(Problem(Code.OUT_OF_RANGE, message))


def _unknown(part: Part, why: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_SUPPORTED,
            f"no privacy loss distribution is known for this `{part.kind}`: {why}",
            help="use another measure, or declare a pure epsilon",
        )
    )


@contextmanager
def _library_errors() -> Iterator[None]:
    """Turn what the library cannot compute into a mistake with a remedy."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (ArithmeticError, ValueError) as error:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "dp-accounting cannot put these mechanisms on a grid of losses",
                notes=(str(error)[:200],),
                help="very large losses are known by other measures only",
            )
        ) from error
