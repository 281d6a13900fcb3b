"""Noise by its epsilon: its width, and its proven guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Literal, TypeAlias

import numpy as np

from modicum.accounting.conversions.profiles import gaussian_delta, gaussian_sigma_for
from modicum.accounting.decimals import precise, significant, to_decimal
from modicum.core.errors import Code
from modicum.core.rationals import number_text
from modicum.risk.arguments import Number, above_zero, argument, count, mistake
from modicum.risk.profile import Influence, Norm, Numbers

#: The formula of the standard deviation of Gaussian noise for (epsilon, delta):
#: `published` is the classical formula, `exact` the least that reaches them.
Calibration: TypeAlias = Literal["published", "exact"]
Mechanism: TypeAlias = Literal["laplace", "gaussian"]

# ln 20, and the 97.5 % point of the standard normal, both rounded up.
_LAPLACE_95 = 2.995732273553992
_GAUSSIAN_95 = 1.959963984540055
_DIGITS = 20


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Independent Laplace noise on each coordinate, of scale sensitivity_l1/epsilon.

    Attributes:
        sensitivity_l1: The largest L1 change of the answer between neighbors, in units
            of the answer; > 0. A value that is not public gives no guarantee.
        dimensions: How many coordinates the answer has; >= 1.
    """

    sensitivity_l1: Fraction
    dimensions: int = 1
    norm: ClassVar[Norm] = "l1"

    def __post_init__(self) -> None:
        above_zero("the sensitivity", self.sensitivity_l1, by="sensitivity")
        count("the number of coordinates", self.dimensions, least=1, by="dimensions")

    @property
    def sensitivity(self) -> Fraction:
        """The sensitivity, in the norm of this noise."""
        return self.sensitivity_l1

    def width(self, epsilon: Fraction) -> Fraction:
        """Return the scale of the noise, in units of the answer."""
        return self.sensitivity_l1 / epsilon

    def half_width(self, epsilon: Fraction) -> float:
        """Return half the width of a coordinate's 95 % interval."""
        return float(self.width(epsilon)) * _LAPLACE_95

    def proven(self, epsilon: Fraction) -> bool:
        """Return whether the noise reaches this epsilon: always."""
        return True

    def described(self, epsilon: Fraction) -> dict[str, str]:
        """Return the mechanism to be priced; its scale is rounded up."""
        scale = significant(self.width(epsilon), _DIGITS, up=True)
        l1, text = number_text(self.sensitivity_l1), number_text(scale)
        return {"kind": "laplace", "l1": l1, "scale": text}


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Independent Gaussian noise on each coordinate, for some (epsilon, delta).

    Attributes:
        sensitivity_l2: The largest L2 change of the answer between neighbors, in units
            of the answer; > 0. A value that is not public gives no guarantee.
        delta: Strictly between 0 and 1.
        dimensions: How many coordinates the answer has; >= 1.
        calibration: `exact`: the least standard deviation that is (epsilon, delta)-DP.
            `published`: sensitivity_l2 sqrt(2 ln(1.25/delta))/epsilon, which is proven
            for epsilon up to 1, and is too little for some above.
    """

    sensitivity_l2: Fraction
    delta: Fraction
    dimensions: int = 1
    calibration: Calibration = "exact"
    norm: ClassVar[Norm] = "l2"

    def __post_init__(self) -> None:
        above_zero("the sensitivity", self.sensitivity_l2, by="sensitivity")
        count("the number of coordinates", self.dimensions, least=1, by="dimensions")
        if not 0 < self.delta < 1:
            raise mistake(
                f"delta {float(self.delta):g} is not between 0 and 1",
                f"give {argument('delta')} such as 1e-6",
            )

    @property
    def sensitivity(self) -> Fraction:
        """The sensitivity, in the norm of this noise."""
        return self.sensitivity_l2

    def width(self, epsilon: Fraction) -> Fraction:
        """Return the standard deviation of the noise, in units of the answer."""
        if self.calibration == "exact":
            return gaussian_sigma_for(epsilon, self.delta, self.sensitivity_l2)
        return _classical(self.sensitivity_l2 / epsilon, self.delta)

    def half_width(self, epsilon: Fraction) -> float:
        """Return half the width of a coordinate's 95 % interval."""
        return float(self.width(epsilon)) * _GAUSSIAN_95

    def proven(self, epsilon: Fraction) -> bool:
        """Return whether the noise is (epsilon, delta)-DP for its delta."""
        mu2 = (self.sensitivity_l2 / self.width(epsilon)) ** 2
        return gaussian_delta(mu2, epsilon) <= self.delta

    def described(self, epsilon: Fraction) -> dict[str, str]:
        """Return the mechanism to be priced."""
        l2, sigma = self.sensitivity_l2, self.width(epsilon)
        return {"kind": "gaussian", "l2": number_text(l2), "sigma": number_text(sigma)}


Noise: TypeAlias = LaplaceNoise | GaussianNoise


@lru_cache(maxsize=4096)
@precise
def _classical(unit: Fraction, delta: Fraction) -> Fraction:
    # Rounded up, so that nothing is promised of less noise than the formula's.
    log = (Decimal("1.25") / to_decimal(delta)).ln()
    return significant(to_decimal(unit) * (2 * log).sqrt(), _DIGITS, up=True)


NORMS: Final[Mapping[str, Norm]] = {"laplace": "l1", "gaussian": "l2"}


@dataclass(frozen=True, slots=True)
class NoiseGiven:
    """The specified noise; None for what is not specified.

    Attributes:
        mechanism: `laplace` or `gaussian`.
        sensitivity: The maximum change of the answer by one person in any table.
        delta: For Gaussian noise.
        dimensions: The number of numbers in the answer.
        calibration: For Gaussian noise: `exact` or `published`.
    """

    mechanism: Mechanism
    sensitivity: Number | None = None
    delta: Number | None = None
    dimensions: int | None = None
    calibration: Calibration = "exact"

    def __post_init__(self) -> None:
        if self.mechanism not in NORMS:
            raise mistake(
                f"the mechanism is {self.mechanism!r}",
                f"give laplace or gaussian as {argument('mechanism')}",
                Code.UNKNOWN_CHOICE,
            )
        if self.dimensions is not None:
            count(
                "the number of coordinates", self.dimensions, least=1, by="dimensions"
            )

    def noise(self) -> Noise:
        """Return the noise; its answer is one number unless `dimensions` is given.

        Raises:
            InputError: If a part is missing, or out of range.
        """
        sensitivity = _stated("sensitivity", self.sensitivity)
        dimensions = self.dimensions or 1
        if self.mechanism == "laplace":
            return LaplaceNoise(sensitivity, dimensions)
        delta = _stated("delta", self.delta)
        return GaussianNoise(sensitivity, delta, dimensions, self.calibration)


def _stated(name: str, value: Number | None) -> Fraction:
    if value is None:
        raise mistake(f"the noise has no {name}", f"give {argument(name)}")
    return above_zero(name, value, by=name)


# The trapezoidal rule on the whole line, in the logarithm of the variable. The
# integrand is analytic and bounded in the strip of half-width pi/2, so steps of a
# quarter err by about exp(-pi**2/h) = 7e-18. Beyond 80 it is below exp(-40).
_STEP = 0.25
_NODES = np.exp(np.arange(-80.0, 80.0 + _STEP, _STEP))
_WEIGHTS = _STEP / (2 * np.sqrt(np.pi) * np.sqrt(_NODES))


def expected_l1(influence: Influence, *, scale: float, dimensions: int) -> Numbers:
    """Return the expected L1 distance from the answer without a person.

    Args:
        influence: How each kind of person moves the answer.
        scale: Scale of the Laplace noise on each coordinate, in units of the answer;
            > 0.
        dimensions: How many coordinates the answer has; >= 1.

    Returns:
        For each kind the sum over coordinates of d + b exp(-d/b), in units of the
        answer; shape (kinds,).

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        E abs(d + Z) = d + b exp(-d/b) for Laplace noise Z of scale b, by integration.

    Examples:
        >>> one = Influence(1, np.array([1.0]), np.array([0, 1]), np.array([1]))
        >>> float(expected_l1(one, scale=1.0, dimensions=1)[0])
        1.3678794411714423
    """
    d = np.abs(influence.moves)
    # Each coordinate has b from the noise alone: the effect of moves is summed.
    added = influence.by_kind(d + scale * np.expm1(-d / scale))
    return dimensions * scale + added


def expected_l2(distance: float, *, sigma: float, dimensions: int) -> float:
    """Return the expected L2 distance from the answer without a person.

    Args:
        distance: How far she moves the answer in the L2 norm, in its units; >= 0.
        sigma: Standard deviation of the noise on each coordinate, in units of the
            answer; > 0.
        dimensions: How many coordinates the answer has; >= 1.

    Returns:
        The mean of the norm of a Gaussian vector whose center has the norm `distance`,
        to about 14 digits, in units of the answer.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        sigma sqrt(pi/2) L(-distance**2 / (2 sigma**2)), with the Laguerre function L of
        order 1/2 and parameter dimensions/2 - 1. It is computed from the transform of
        the squared norm Y: E sqrt(Y) is the integral of
        (1 - E exp(-t Y)) t**(-3/2) / (2 sqrt(pi)) over t > 0, with
        E exp(-t Y) = (1 + 2 t)**(-k/2) exp(-lambda t / (1 + 2 t)) for sigma = 1. All
        terms are positive, for every size of every argument.

    Examples:
        >>> round(expected_l2(0.0, sigma=1.0, dimensions=1), 12)  # sqrt(2/pi)
        0.797884560803
        >>> round(expected_l2(3.0, sigma=1e-9, dimensions=1), 12)
        3.0
    """
    # In units of the root of the mean square everything is between 0 and 1.
    root = float(np.hypot(distance, np.sqrt(dimensions) * sigma))
    spread = (sigma / root) ** 2
    t = _NODES * spread
    exponent = dimensions / 2 * np.log1p(2 * t)
    exponent += (distance / root) ** 2 * _NODES / (1 + 2 * t)
    return root * float(-np.expm1(-exponent) @ _WEIGHTS)
