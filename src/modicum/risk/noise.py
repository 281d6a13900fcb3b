"""Noise by its epsilon: how wide it is, and what it provably reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Literal, TypeAlias

from modicum.accounting.conversions.profiles import gaussian_delta, gaussian_sigma_for
from modicum.accounting.decimals import precise, significant, to_decimal
from modicum.core.errors import Code
from modicum.core.rationals import number_text
from modicum.risk.arguments import Number, above_zero, argument, count, mistake
from modicum.risk.profile import Norm

#: How the standard deviation of Gaussian noise follows from (epsilon, delta):
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
            of the answer; > 0. What is not public makes no promise.
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
            of the answer; > 0. What is not public makes no promise.
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
    """What is said of the noise; None is what nothing is said of.

    Attributes:
        mechanism: `laplace` or `gaussian`.
        sensitivity: How far one person can move the answer in any table.
        delta: For Gaussian noise.
        dimensions: How many numbers the answer has.
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
        """Return the noise; its answer is one number unless `dimensions` is said.

        Raises:
            InputError: If a part is missing, or out of its range.
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
