"""Streams under correlated Gaussian noise: matrix factorizations.

In step t of a stream, a vector x_t is added up from the rows of that step. Everything
that is published follows from C x + z: C has a column for each step, x the rows x_t,
and z independent Gaussian noise of standard deviation `sigma` in every coordinate. No
row of C x + z is used before the last step that it reads. For all prefix sums A x with
A = B C, the answers are B (C x + z) = A x + B z.

The loss. Let one change of the unit change x_t by d_t: by at most s in the L2 norm, in
at most `participations` steps, any two of them at least `separation` apart. Then
|C d|^2 is the sum of (C^T C)_ij <d_i, d_j>, so by Cauchy and Schwarz at most s^2
times the largest sum of |(C^T C)_ij| over the pairs of such a set of steps, in any
dimension. With this `square`, rho = square * s^2 / (2 sigma^2).

Adaptive streams. What was published may decide which data come next. Given all before,
each row of C x + z is Gaussian noise around a mean that moves by (C d)_r, and costs
rho_r = |(C d)_r|^2 / (2 sigma^2). Along every course of the stream the changes are as
above, so the rho_r add up to at most rho; and losses that are chosen adaptively, with a
sum that is bounded on every course, compose to that bound: Feldman & Zrnic 2021, Thm
3.1 (arXiv:2008.11193), at each Renyi order; Smith & Thakurta 2022 (arXiv:2210.17520),
in Gaussian DP. See Denisov et al. 2022, Thm 2.1 (arXiv:2202.08312), for square C.

The square, if C is lower-triangular and Toeplitz, with coefficients c_0 >= c_1 >= ...
>= 0: for steps i <= j, counted from 0, (C^T C)_ij is the sum of c_m c_(m+j-i) for m
from 0 to `steps` - 1 - j. It falls as j rises at the same distance, and as the distance
rises. In any set with separation b, no step is before, and no two are nearer than,
those of 0, b, 2b, ... So this set has the largest sum, which is exact (Kalinin &
Lampert 2024, arXiv:2405.13763; participation as in Choquette-Choo et al. 2023,
arXiv:2306.08153). Other coefficients are replaced by the largest absolute value from
there on: these are of this form, and no entry of C^T C is larger in absolute value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from modicum.accounting.argument_ranges import require_above_zero
from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms.gaussian import gaussian, gaussian_rho
from modicum.accounting.mechanisms.kind import (
    NUMBERS_MAX,
    Kind,
    Parameter,
    Values,
    change,
    description,
    noise_size,
    whole_number,
)
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import Number

#: Coefficients are rounded up to multiples of this part of the largest.
_ONE = 2**100


def stream_curve(
    square: Fraction | int, *, sensitivity_l2: Fraction, sigma: Fraction
) -> Curve:
    """Return the curve of a stream under correlated Gaussian noise.

    Args:
        square: Bound of the largest sum of the absolute entries of C^T C over the steps
            that one change may take part in.
        sensitivity_l2: Largest L2 change of one step.
        sigma: Standard deviation of the noise in each coordinate of C x + z.

    Returns:
        The curve of Gaussian noise with rho = square * s^2 / (2 sigma^2).

    Neighboring relation:
        That of the sensitivity.

    Source:
        The module's docstring.

    Examples:
        >>> half = stream_curve(4, sensitivity_l2=Fraction(1), sigma=Fraction(2))
        >>> half.rho
        Fraction(1, 2)
    """
    require_above_zero("sigma", sigma)
    rho = gaussian_rho(sensitivity_l2=sensitivity_l2, sigma=sigma)
    return gaussian(rho=square * rho)


def participations_within(steps: int, participations: int, separation: int) -> int:
    """Return how many of some steps one change takes part in, at most.

    Examples:
        >>> participations_within(10, 5, 4)
        3
    """
    return min(participations, -(-steps // separation))


@lru_cache(maxsize=1024)
def square_root(*, steps: int, participations: int, separation: int) -> Fraction:
    """Return the square of the square-root factorization of prefix sums.

    Args:
        steps: The number of steps, from 1 to 10 000.
        participations: In how many steps one change takes part, at most.
        separation: How far apart these steps are, at least.

    Returns:
        The square for the coefficients of (1-x)^(-1/2), each rounded up.

    Source:
        Fichtenberger, Henzinger & Upadhyay 2023 (arXiv:2202.11205): C is the square
        root of the matrix of prefix sums. Its coefficients c_m = c_(m-1) (2m-1) / (2m)
        fall.

    Examples:
        >>> square = square_root(steps=2, participations=1, separation=1)
        >>> square, square_root(steps=2, participations=2, separation=1)
        (Fraction(5, 4), Fraction(13, 4))
    """
    _require_few(steps)
    column = [_ONE]
    for m in range(1, steps):
        column.append(-(-column[-1] * (2 * m - 1) // (2 * m)))
    return Fraction(_largest(column, participations, separation), _ONE**2)


@lru_cache(maxsize=16)
def toeplitz(
    coefficients: tuple[Fraction, ...],
    *,
    steps: int,
    participations: int,
    separation: int,
) -> Fraction:
    """Return a bound of the square of a lower-triangular Toeplitz matrix.

    Args:
        coefficients: Those of its first column, one of them above 0 in absolute value;
            those left out are 0.
        steps: The number of steps, from 1 to 10 000.
        participations: In how many steps one change takes part, at most.
        separation: How far apart these steps are, at least.

    Returns:
        The square, with coefficients rounded up; if they are negative or rise, only a
        bound.

    Examples:
        >>> half = Fraction(1), Fraction(1, 2)
        >>> toeplitz(half, steps=3, participations=2, separation=2)
        Fraction(9, 4)
    """
    _require_few(steps)
    used = [abs(one) for one in coefficients[:steps]]
    falling = [*accumulate(reversed(used), max)][::-1]
    top = falling[0]
    require_above_zero("the largest coefficient", top)
    column = [-(-one * _ONE // top) for one in falling]
    column += [0] * (steps - len(column))
    return top**2 * Fraction(_largest(column, participations, separation), _ONE**2)


def _largest(column: list[int], participations: int, separation: int) -> int:
    """Return the largest sum over pairs of steps, for a column that falls.

    That is the squared norm of the sum of the columns of 0, b, 2b, ...: each is the
    first one, moved down. Those after the last participation are taken off again.
    """
    steps = len(column)
    count = participations_within(steps, participations, separation)
    every = column.copy()
    for row in range(separation, steps):
        every[row] += every[row - separation]
    after = count * separation
    return sum(
        (value - (every[row - after] if row >= after else 0)) ** 2
        for row, value in enumerate(every)
    )


def _require_few(steps: int) -> None:
    if not 1 <= steps <= NUMBERS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"steps is {steps}",
                help=f"a factorization has from 1 to {NUMBERS_MAX} steps; describe a"
                " longer stream as several",
            )
        )


def describe_matrix_factorization(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    steps: int | None = None,
    sigma: Number | None = None,
    coefficients: Sequence[Number] | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe a stream under the correlated noise of a matrix factorization.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `l2(…, participations=…)`: the largest L2 change of one
            step, in how many steps, and how far apart these are.
        steps: The number of steps.
        sigma: Standard deviation of the noise in each coordinate of C x + z.
        coefficients: The first column of C, in absolute values; those left out are 0.
            By default, C is the square root of the matrix of prefix sums.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> described = describe_matrix_factorization(attributes=[], steps=92, sigma=20)
        >>> described["mechanism"], described["steps"]
        ('square-root-factorization', 92)
    """
    root = coefficients is None
    return description(
        "square-root-factorization" if root else "matrix-factorization",
        attributes,
        more,
        sensitivity=sensitivity,
        steps=steps,
        sigma=sigma,
        coefficients=coefficients,
    )


def _pattern(values: Values) -> dict[str, int]:
    return {name: int(values[name]) for name in _PATTERN}


_PATTERN = ("steps", "participations", "separation")

#: The parameters of a stream, and their common mistakes.
STREAM = (
    noise_size("sigma", "standard deviation of each noise"),
    whole_number("steps", "number of steps of the stream", None),
    change("L2", "one step"),
    whole_number("participations", "number of steps that one change may touch", None),
    Parameter(
        "separation",
        "least distance of two of these steps",
        rising=False,
        default=Fraction(1),
        least=Fraction(1),
        whole=True,
        open_below=False,
    ),
)
_TARGETS = ("eps", "epsilon", "delta")
_SLIPS = dict.fromkeys((*_TARGETS, "scale", "std", "stddev"), "its noise is `sigma`")
SLIPS = {
    **_SLIPS,
    **dict.fromkeys(
        _TARGETS,
        "its noise is `sigma`, which  modicum account mechanism … --for eps=…,delta=…"
        "  finds",
    ),
}


def _square_root(values: Values) -> Curve:
    return stream_curve(
        square_root(**_pattern(values)),
        sensitivity_l2=values["sensitivity"],
        sigma=values["sigma"],
    )


def _of_list(coefficients: tuple[Fraction, ...], values: Values) -> Curve:
    return stream_curve(
        toeplitz(coefficients, **_pattern(values)),
        sensitivity_l2=values["sensitivity"],
        sigma=values["sigma"],
    )


KINDS = (
    Kind(
        "square-root-factorization",
        STREAM,
        _square_root,
        norm="l2",
        measure="rho",
        slips=SLIPS,
    ),
    Kind(
        "matrix-factorization",
        (*STREAM, Parameter("coefficients", "first column of C", listed=True)),
        lambda values: _of_list((values["coefficients"],), values),
        norm="l2",
        measure="rho",
        slips=_SLIPS,
        of_list=_of_list,
    ),
)
