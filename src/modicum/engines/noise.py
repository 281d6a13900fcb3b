"""Noise on integers: discrete Laplace and discrete Gaussian, drawn exactly.

Many draws are made in batches by `noise_batches`, few by OpenDP's samplers. Both are
exact, with the entropy of the operating system, and cannot be seeded. Noise is drawn
around 0 and added here, to integers of any size: so nothing saturates, however large a
sum is, and neither the sample nor its duration depends on what it is added to. A sample
itself has 64 bits. At the largest accepted scale, it fails to fit with a probability
below 1e-1700; then nothing is released.

OpenDP takes 9 to 28 microseconds per sample, and a batch about 0.1. All noise is priced
by OpenDP, too, before any is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from modicum.core.errors import Code, InputError, Problem, check
from modicum.core.extras import not_installed
from modicum.core.rationals import brief
from modicum.core.redaction import scrubbed
from modicum.engines.noise_batches import DRAW_MAX, NoiseBatches
from modicum.engines.protocol import failed

if TYPE_CHECKING:
    from types import ModuleType

_NAME: Final = "opendp"

#: Noise of a larger scale than this could outgrow 64 bits.
SCALE_MAX: Final = 2**50
#: OpenDP draws fewer. A batch begins with a table, which is made in 2 to 10
#: milliseconds: OpenDP draws for as long, and fewer draws need no second sampler.
BATCHED_MIN: Final = 1000
#: OpenDP takes integer sensitivities up to this.
_WHOLE_MAX: Final = 2**63 - 1
#: OpenDP's computed privacy loss is rounded in floats, by much less than this.
_ROUNDING: Final = Fraction(1, 2**44)

_MEASURES: Final = {
    "laplace": "MaxDivergence",
    "gaussian": "ZeroConcentratedDivergence",
}


class NoiseSampler:
    """Draws noise; a `Sampler` of `modicum.api.ports.engine`."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Refuse noise that cannot be drawn exactly, or costs more than is priced."""
        measurement = _measurement(noise, scale)
        moved = _moved(noise, sensitivity)
        found = scrubbed(lambda: measurement.map(moved), failed(_NAME, "pricing noise"))
        measure = str(measurement.output_measure).removesuffix("()")
        price = priced(noise, scale, sensitivity)
        agrees = (
            measure == _MEASURES[noise]
            and math.isfinite(found)
            and abs(Fraction(found) - price) <= price * _ROUNDING
        )
        if not agrees:
            raise InputError(
                Problem(
                    Code.ENGINE_FAILED,
                    f"OpenDP prices {noise} noise of scale {brief(scale)} at {found:g}"
                    f" in {measure}, modicum at {brief(price)}",
                    notes=("no noise is drawn unless both agree",),
                    help="install the version of OpenDP that modicum requires",
                )
            )

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Add independent discrete noise to integers."""
        draws = self.draws(noise, scale, len(values))
        return [value + draw for value, draw in zip(values, draws, strict=True)]

    def draws(self, noise: str, scale: Fraction, number: int) -> Iterator[int]:
        """Yield noise around 0."""
        if number < BATCHED_MIN:
            yield from opendp_draws(noise, scale, number)
            return
        _as_float(scale)  # Both refuse the same scales.
        for batch in NoiseBatches(noise, scale).draws(number):
            yield from batch


def opendp_draws(noise: str, scale: Fraction, number: int) -> list[int]:
    """Return noise around 0, from OpenDP."""
    measurement = _measurement(noise, scale)
    failure = failed(_NAME, "drawing noise")
    drawn: list[int] = scrubbed(partial(measurement, [0] * number), failure)
    if len(drawn) != number or max(map(abs, drawn), default=0) > DRAW_MAX:
        raise failure
    return drawn


def priced(noise: str, scale: Fraction, sensitivity: Fraction) -> Fraction:
    """Return the loss of noise: ε of `laplace`, ρ of `gaussian`."""
    quotient = sensitivity / scale
    return quotient if noise == "laplace" else quotient * quotient / 2


def _measurement(noise: str, scale: Fraction) -> Any:
    """Return OpenDP's mechanism on vectors of whole numbers."""
    check(noise in _MEASURES, "noise is gaussian or laplace")
    exact = _as_float(scale)
    library = _opendp()

    def built() -> Any:
        domain = library.vector_domain(library.atom_domain(T="i64"))
        if noise == "laplace":
            metric = library.l1_distance(T="i64")
            return library.m.make_laplace(domain, metric, scale=exact)
        metric = library.l2_distance(T="f64")
        return library.m.make_gaussian(domain, metric, scale=exact)

    return scrubbed(built, failed(_NAME, "making noise"))


def _opendp() -> ModuleType:
    try:
        import opendp.prelude as library
    except ImportError:
        what = "OpenDP, which draws the noise,"
        raise InputError(not_installed(what, "modicum[query]")) from None
    library.enable_features("contrib")  # Its name for all that is not verified twice.
    return library


def _as_float(scale: Fraction) -> float:
    """Return a scale as a float that is exactly it."""
    if scale > SCALE_MAX:
        raise InputError(
            Problem(
                Code.DOES_NOT_FIT,
                f"noise of scale {brief(scale)} is too large to be drawn;"
                f" the largest is {SCALE_MAX}",
                help="give the column a coarser `step` or narrower `bounds` in the"
                " tables file, or spend more on the query",
            )
        )
    if scale <= 0 or Fraction(float(scale)) != scale:
        raise InputError(
            Problem(
                Code.DOES_NOT_FIT,
                f"the scale {brief(scale)} of noise is not a positive float",
                notes=("noise must be drawn with the priced scale",),
                help="round it up to fewer binary digits",
            )
        )
    return float(scale)


def _moved(noise: str, sensitivity: Fraction) -> int | float:
    """Return a sensitivity as OpenDP takes it, rounded up."""
    if noise == "laplace" and sensitivity <= _WHOLE_MAX:
        if sensitivity.denominator == 1:
            return int(sensitivity)
    elif noise != "laplace" and sensitivity <= 2**512:
        nearest = float(sensitivity)
        if nearest >= sensitivity:
            return nearest
        return math.nextafter(nearest, math.inf)
    raise InputError(
        Problem(
            Code.DOES_NOT_FIT,
            f"a sensitivity of {brief(sensitivity)} is too large for {noise}"
            " noise, or not an integer",
            help="give the column a coarser `step` or narrower `bounds` in the tables"
            " file",
        )
    )
