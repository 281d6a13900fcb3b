"""DP-SGD: steps of training, each with Gaussian noise on a fresh Poisson sample."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting.amplification import poisson_gaussian
from modicum.accounting.curves import Curve, composed
from modicum.accounting.mechanisms.kind import (
    Kind,
    Parameter,
    Values,
    noise_size,
    whole_number,
)


def _build(values: Values) -> Curve:
    step = poisson_gaussian(
        sampling_rate=values["sampling-rate"],
        noise_multiplier=values["noise-multiplier"],
    )
    return composed([(step, int(values["steps"]))])


KINDS = (
    Kind(
        "dp-sgd",
        (
            noise_size("noise-multiplier", "standard deviation over clipping norm"),
            Parameter("sampling-rate", "of each Poisson sample", most=Fraction(1)),
            whole_number("steps", "number of steps, each on a fresh sample", None),
        ),
        _build,
        relation="add-remove",
        repeats="steps",
    ),
)
