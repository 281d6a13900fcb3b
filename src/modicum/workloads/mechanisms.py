"""The six mechanisms of the workloads, calibrated by our own accounting.

Each comes in three sizes, by the epsilon that it is calibrated to at delta 1e-9.
Computing the noise takes seconds, so it is stored here; a test recomputes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from modicum.accounting.amplification import (
    poisson,
    poisson_gaussian,
)
from modicum.accounting.budgets import ApproxBudget
from modicum.accounting.calibration import Family, calibrate
from modicum.accounting.curves import Curve, composed
from modicum.accounting.mechanisms import (
    gaussian,
    gaussian_rho,
    laplace,
    pate_gnmax,
    poisson_laplace,
    randomized_response,
    sparse_vector,
)
from modicum.core.rationals import number_text

#: The sizes of requests, the cheapest first.
SIZES = ("mouse", "hare", "elephant")
#: The delta of a size's epsilon.
DELTA = Fraction(1, 10**9)
#: Average number of instances sampled by each step of DP-SGD.
STEP_RATE = Fraction(5, 1000)
#: Number of steps of DP-SGD.
STEPS = 1000
#: Number of answers of the teachers of PATE.
VOTES = 5000
#: Number of positive answers after which the sparse vector technique stops.
POSITIVES = 5

_ONE = Fraction(1)
# Together, the votes move counts by sqrt(2 * VOTES) in the L2 norm.
_VOTES_NORM = 100

#: The description of a mechanism in a release, except for its attributes.
Description = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One of the mechanisms, with free noise.

    Attributes:
        name: As it is written in files.
        eps: The epsilon of each size, at `DELTA`.
        parameter: The name of its noise parameter.
        noise: The noise of each size: the result of `calibrated`.
        curve: Maps the noise to the cost on all instances.
        sampled: From the noise and a rate to the best bound on a Poisson sample.
        exact: Whether the published bound on a sample is the exact one, and not that
            for any mechanism.
        described: Maps the unit and the noise to the description in a release; None
            where a release can only declare its cost.
    """

    name: str
    eps: tuple[Fraction, ...]
    parameter: str
    noise: tuple[Fraction, ...]
    curve: Callable[[Fraction], Curve]
    sampled: Callable[[Fraction, Fraction], Curve]
    exact: bool
    described: Callable[[str, Fraction], Description] | None = None

    def calibrated(self, eps: Fraction) -> Fraction:
        """Return the cheapest noise for an epsilon at `DELTA`; takes up to seconds.

        Args:
            eps: Above 0.
        """
        truth = self.parameter == "truth"
        family = Family(
            self.parameter,
            self.curve,
            rising=truth,
            low=Fraction(1, 2) if truth else Fraction(0),
            high=_ONE if truth else None,
        )
        return calibrate(family, ApproxBudget(eps, DELTA))


# --- the cost of each -------------------------------------------------------------


def _gaussian(sigma: Fraction) -> Curve:
    return gaussian(rho=gaussian_rho(sensitivity_l2=_ONE, sigma=sigma))


def _gaussian_sampled(sigma: Fraction, rate: Fraction) -> Curve:
    return poisson_gaussian(sampling_rate=rate, noise_multiplier=sigma)


def _laplace(scale: Fraction) -> Curve:
    return laplace(sensitivity_l1=_ONE, scale=scale)


def _laplace_sampled(scale: Fraction, rate: Fraction) -> Curve:
    return poisson_laplace(sensitivity_l1=_ONE, scale=scale, sampling_rate=rate)


def _sparse_vector(scale: Fraction) -> Curve:
    """Return the curve for a threshold's noise of this scale, drawn once.

    The noise of the queries has twice the scale. Given the threshold, five positive
    answers cost together as much as one with five times the epsilon, and negative ones
    nothing: so this is the curve of one positive answer at that epsilon.
    """
    return sparse_vector(
        eps_threshold=1 / scale, eps_queries=POSITIVES / scale, positives=1
    )


def _randomized_response(truth: Fraction) -> Curve:
    return randomized_response(truth=truth, values=2, answers=1)


def _dp_sgd(noise: Fraction) -> Curve:
    return _dp_sgd_sampled(noise, _ONE)


def _dp_sgd_sampled(noise: Fraction, rate: Fraction) -> Curve:
    """Return the curve of steps that each sample from everybody, at a lower rate.

    This is not a sample that is drawn once and trained on: its members are in it for
    all steps. That costs more, and its bound is the published one.
    """
    step = poisson_gaussian(sampling_rate=STEP_RATE * rate, noise_multiplier=noise)
    return composed([(step, STEPS)])


def _pate(sigma: Fraction) -> Curve:
    return composed([(pate_gnmax(sigma=sigma), VOTES)])


def _pate_sampled(sigma: Fraction, rate: Fraction) -> Curve:
    """Return the curve of all votes at once: one Gaussian answer of their norm."""
    noise = sigma / _VOTES_NORM
    return poisson_gaussian(sampling_rate=rate, noise_multiplier=noise)


def _by_curve(curve: Callable[[Fraction], Curve]) -> Callable[..., Curve]:
    def sampled(noise: Fraction, rate: Fraction) -> Curve:
        return poisson(curve(noise), sampling_rate=rate)

    return sampled


# --- descriptions in a release ------------------------------------------------------


def written(value: Fraction) -> Decimal:
    """Return a finite decimal as written in a file."""
    return Decimal(number_text(value))


def _describe_gaussian(unit: str, sigma: Fraction) -> Description:
    return {
        "mechanism": "gaussian",
        "sensitivity": {unit: {"l2": 1}},
        "sigma": written(sigma),
    }


def _describe_laplace(unit: str, scale: Fraction) -> Description:
    return {
        "mechanism": "laplace",
        "sensitivity": {unit: {"l1": 1}},
        "scale": written(scale),
    }


def _describe_response(unit: str, truth: Fraction) -> Description:
    return {
        "mechanism": "randomized-response",
        "truth": written(truth),
        "values": 2,
        "public_frame": True,
        "contribution_bound": {unit: 1},
    }


# --- the table ----------------------------------------------------------------------


def _numbers(*texts: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(text) for text in texts)


_TIGHT = _numbers("0.01", "0.1", "0.25")
_LOOSE = _numbers("0.05", "0.2", "0.75")

_TABLE = (
    Mechanism(
        "gaussian",
        _LOOSE,
        "sigma",
        _numbers("97.8188337", "25.76359642", "7.23537779"),
        _gaussian,
        _gaussian_sampled,
        exact=True,
        described=_describe_gaussian,
    ),
    Mechanism(
        "laplace",
        _TIGHT,
        "scale",
        _numbers("99.99998001", "9.999999801", "3.99999997"),
        _laplace,
        _laplace_sampled,
        exact=True,
        described=_describe_laplace,
    ),
    Mechanism(
        "sparse-vector",
        _TIGHT,
        "scale",
        _numbers("599.9998801", "59.99999881", "23.99999981"),
        _sparse_vector,
        _by_curve(_sparse_vector),
        exact=False,
    ),
    Mechanism(
        "randomized-response",
        _TIGHT,
        "truth",
        _numbers("0.5024999796", "0.5249791879", "0.562176501"),
        _randomized_response,
        _by_curve(_randomized_response),
        exact=False,
        described=_describe_response,
    ),
    Mechanism(
        "dp-sgd",
        _LOOSE,
        "noise-multiplier",
        _numbers("16.49632654", "4.447068043", "1.683160939"),
        _dp_sgd,
        _dp_sgd_sampled,
        exact=False,
    ),
    Mechanism(
        "pate",
        _LOOSE,
        "sigma",
        _numbers("9781.88337", "2576.359642", "723.537779"),
        _pate,
        _pate_sampled,
        exact=True,
    ),
)

#: Every mechanism by its name.
MECHANISMS: Mapping[str, Mechanism] = MappingProxyType({m.name: m for m in _TABLE})
