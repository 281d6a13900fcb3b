"""What a named kind of mechanism costs on a secret sample."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting import amplification
from modicum.accounting.curves import Curve
from modicum.accounting.mechanism_registry import (
    Kind,
    Values,
    complete_values,
    curve_of_kind,
)
from modicum.core.errors import Code, InputError, Problem

#: How a sample may be drawn, and the neighboring relation that goes with it.
SAMPLINGS = {"poisson": "add-remove", "without-replacement": "substitute"}

# Their neighbors are not whole units that join, leave or are exchanged.
_OTHER_UNITS = ("randomized-response", "pate-gnmax")


def sampled_curve(kind: Kind, values: Values, rate: Fraction, sampling: str) -> Curve:
    """Return what one run of a mechanism on a fresh sample costs.

    Args:
        kind: The kind of mechanism.
        values: Its parameters.
        rate: The sampling rate, from 0 to 1.
        sampling: A key of `SAMPLINGS`.

    Raises:
        InputError: If the mechanism cannot be amplified so, or an argument is wrong.

    Neighboring relation:
        `SAMPLINGS[sampling]`, under which the parameters must hold.

    Source:
        As for the functions of `modicum.accounting.amplification`.

    Examples:
        >>> from modicum.accounting.mechanism_registry import kind_named
        >>> half = {"eps": Fraction(1)}
        >>> sampled = sampled_curve(
        ...     kind_named("pure"), half, Fraction(1, 10), "poisson"
        ... )
        >>> f"{sampled.eps:.9g}"
        '0.158565079'
    """
    _refuse(kind, sampling)
    base = curve_of_kind(kind, values)
    if sampling == "without-replacement":
        return amplification.without_replacement(base, sampling_rate=rate)
    known = complete_values(kind, values)
    if kind.name == "gaussian":
        noise = known["sigma"] / known["sensitivity"]
        return amplification.poisson_gaussian(
            sampling_rate=rate, noise_multiplier=noise
        )
    if kind.name == "laplace":
        return amplification.poisson_laplace(
            sensitivity_l1=known["sensitivity"],
            scale=known["scale"],
            sampling_rate=rate,
        )
    return amplification.poisson(base, sampling_rate=rate)


def _refuse(kind: Kind, sampling: str) -> None:
    if sampling not in SAMPLINGS:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"nothing is known about samples drawn by `{sampling}`",
                notes=("a shuffled batch is neither of the two",),
                help=f"choose {' or '.join(f'`{name}`' for name in SAMPLINGS)}",
            )
        )
    if kind.name == "dp-sgd":
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "the steps of `dp-sgd` are on samples already",
                help="change its sampling-rate, or sample `gaussian`",
            )
        )
    if kind.name in _OTHER_UNITS:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"`{kind.name}` holds for {kind.relation}, which no sample amplifies",
                help="leave it unsampled",
            )
        )
