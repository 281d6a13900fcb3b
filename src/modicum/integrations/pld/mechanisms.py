"""Privacy loss distributions of single mechanisms, by dp-accounting.

The library's classes only, pessimistic estimates only. Parameters become floats on the
side on which the loss is larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from modicum.accounting.amounts import decimal_of, is_infinite
from modicum.accounting.batch_format import Part
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms import ACCOUNT_KINDS
from modicum.core.errors import Code, InputError, Problem
from modicum.core.extras import not_installed
from modicum.integrations.pld.directions import (
    SURPLUS,
    ULP,
    BatchLoss,
    below,
    directions,
    not_below,
    side_of,
)

#: The finest and the coarsest grid of losses.
FINEST, COARSEST = 1e-7, 1e-3
#: Larger losses overflow floats as exponents.
REACH_MAX = 600
#: Preferred and maximum number of points of a distribution.
POINTS, POINTS_MAX = 2**15, 2**22


def interval_for(parts: Sequence[Part]) -> float:
    """Return the distance of the losses on the grid that suits a batch.

    Connecting the dots adds at most interval**2 / 4 to the variance of a loss; here
    that is about one part in 4,000 of it.
    """
    singles = [_single_run(part) for part in parts]
    runs = sum(count for _, count in singles)
    variance = sum(count * _variance(curve) for curve, count in singles)
    if not variance:
        return COARSEST
    typical, range_ = math.sqrt(variance / runs), 40 * math.sqrt(variance)
    wanted = min(COARSEST, typical / 32, range_ / POINTS)
    widest = 2 * max(_reach(curve) for curve, _ in singles)
    return max(FINEST, wanted, max(range_, widest) / POINTS_MAX)


def _reach(curve: Curve) -> float:
    """Return the largest loss of one run that matters in floats."""
    if not is_infinite(curve.eps):
        return float(curve.eps)
    square = 2 * curve.rho if is_infinite(curve.mu2) else curve.mu2
    return float(square) / 2 + 10 * math.sqrt(square)


def _variance(curve: Curve) -> float:
    """Return roughly the variance of the loss of one run, at most 1."""
    at = curve.at(Fraction(2))
    return 1.0 if is_infinite(at) else min(1.0, float(at))


def _single_run(part: Part) -> tuple[Curve, int]:
    """Return the curve of the repeated part, and its number of repetitions."""
    inner = ACCOUNT_KINDS[part.kind].repeats
    values = dict(part.values)
    if inner not in values:  # A part that lacks it has no curve, which it reports.
        return part.curve, part.times
    repeated, values[inner] = int(values[inner]), Fraction(1)
    return Part(part.kind, tuple(values.items())).curve, part.times * repeated


@lru_cache(maxsize=256)
def loss_of(part: Part, interval: float) -> BatchLoss:
    """Return the distribution of all runs of one part of a batch."""
    curve, runs = _single_run(part)
    if curve.delta == 0 and curve.eps == 0:
        return identity(interval)
    if _reach(curve) > REACH_MAX:
        raise _unknown(part, f"its losses exceed {REACH_MAX}")
    build = _NATIVE.get(part.kind, _by_guarantee)
    distribution = build(part, curve, interval)
    roomy, error = _with_room(distribution)
    return BatchLoss(roomy, error + not_below(curve.delta)).repeated(runs)


def identity(interval: float) -> BatchLoss:
    """Return the distribution of no loss at all."""
    return BatchLoss(library().identity(interval), 0.0)


def _with_room(distribution: Any) -> tuple[Any, float]:
    """Return a distribution with room for float errors, and the remaining error.

    The mass at a loss l is a difference of slopes of the (eps, delta) curve. A slope
    there, over the interval, is at most min(e^l, mass above l), and floats make the
    mass err by a few units of that, which are added to it. The deltas themselves err
    by a few units of 1 and of the largest loss: that is returned.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    roomy, error = [], 0.0
    for dense in directions(distribution):
        side = side_of(dense, SURPLUS[0])
        above = np.cumsum(side.mass[::-1])[::-1] + side.infinite
        slopes = np.minimum(np.exp(np.minimum(side.losses, 0.0)), above)
        mass = side.mass + 16 * ULP * slopes
        widest = float(np.abs(side.losses).max())
        error = max(error, 16 * ULP * (4 * widest + 8))
        grid = dense._discretization, dense._lower_loss  # noqa: SLF001
        roomy.append(DensePLDPmf(*grid, mass, dense._infinity_mass, True))  # noqa: SLF001, FBT003
    return library().PrivacyLossDistribution(*roomy), error


_Builder: TypeAlias = Callable[[Part, Curve, float], Any]


def _laplace(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    return library().from_laplace_mechanism(
        below(v["scale"] / v["sensitivity"]), value_discretization_interval=interval
    )


def _discrete_laplace(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    return library().from_discrete_laplace_mechanism(
        float(not_below(1 / v["scale"])),
        sensitivity=int(v["sensitivity"]),
        value_discretization_interval=interval,
        use_connect_dots=True,
    )


def _discrete_gaussian(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    if v["sensitivity"].denominator != 1:
        raise _unknown(part, "its sensitivity is not an integer")
    return library().from_discrete_gaussian_mechanism(
        below(v["sigma"]),
        sensitivity=int(v["sensitivity"]),
        value_discretization_interval=interval,
        use_connect_dots=True,
    )


def _dp_sgd(part: Part, _: Curve, interval: float) -> Any:
    v = dict(part.values)
    return library().from_gaussian_mechanism(
        below(v["noise-multiplier"]),
        value_discretization_interval=interval,
        sampling_prob=min(1.0, not_below(v["sampling-rate"])),
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
        Pure epsilon: Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776). mu:
        Dong, Roth & Su 2022 (arXiv:1905.02383).
    """
    if not is_infinite(curve.eps):
        eps = not_below(curve.eps)
        likely = 1 / (1 + math.exp(-eps))
        return _on_grid({eps: likely, -eps: likely * math.exp(-eps)}, interval)
    if is_infinite(curve.mu2):
        raise _unknown(part, "neither epsilon nor mu is proven for it")
    sigma = precise(lambda: 1 / decimal_of(curve.mu2).sqrt())()
    return library().from_gaussian_mechanism(
        below(Fraction(sigma)), value_discretization_interval=interval
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

    grid = sorted({way(loss / interval) for loss in points for way in _BOTH_WAYS})

    def above(eps: float) -> float:
        return sum(p * max(0.0, -math.expm1(eps - x)) for x, p in points.items())

    # Nothing exceeds the largest loss, whichever way its grid point errs.
    deltas = [*(above(index * interval) for index in grid[:-1]), 0.0]
    pmf: Any = create_pmf_pessimistic_connect_dots
    return library().PrivacyLossDistribution(pmf(interval, grid, deltas))


def _before(place: float) -> int:
    return math.floor(place - 1e-9)


def _after(place: float) -> int:
    return math.ceil(place + 1e-9)


_BOTH_WAYS = (_before, _after)


# --- the library, and its errors ----------------------------------------------------


def library() -> Any:
    """Return the library's module of distributions."""
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError as error:
        what = "dp-accounting, which privacy loss distributions need,"
        raise InputError(not_installed(what, "modicum[pld]")) from error
    return privacy_loss_distribution


def _unknown(part: Part, why: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_SUPPORTED,
            f"no privacy loss distribution is known for this `{part.kind}`: {why}",
            help="use another measure, or declare a pure epsilon",
        )
    )


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn the library's failures into an error with a remedy."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (ArithmeticError, ValueError) as error:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "dp-accounting cannot put these mechanisms on a grid of losses",
                notes=(str(error)[:200],),
                help="use another measure for very large losses",
            )
        ) from error
