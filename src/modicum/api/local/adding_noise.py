"""Noise for numbers that the caller computed: exactly what is reserved for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final, SupportsIndex

from modicum.api.ports.engine import Sampler
from modicum.api.ports.in_use import InUse
from modicum.api.ports.reservation import Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, InputError, Problem

#: The noise of a kind of mechanism, and what its scale is called.
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "discrete-gaussian": ("gaussian", "sigma"),
    "discrete-laplace": ("laplace", "scale"),
}
#: Far above any noise that is drawn, and within floats.
_FLOATS_MAX: Final = 10**300


def with_noise(
    use: InUse, mechanism: Reserved, sampler: Sampler, values: Iterable[SupportsIndex]
) -> list[int]:
    """Return whole numbers with the noise that is reserved for them.

    The scale is the reserved one, or the next float above it: more noise costs less.

    Args:
        use: The reservation in use.
        mechanism: The mechanism.
        sampler: Where noise comes from.
        values: The numbers.

    Raises:
        InputError: If the mechanism adds no discrete noise, runs on a sample, or
            something is no whole number.
        ConflictError: If it ran already, or rows may not be read now.
        UnavailableError: If the sampler fails.
    """
    use.must_run()  # What the numbers are computed from may be read only now.
    if mechanism.kind not in _KINDS:
        raise fail(
            Code.DOES_NOT_FIT,
            f"`{mechanism.name}` is `{mechanism.kind}`: modicum draws discrete noise",
            notes=("what is drawn must be what is priced",),
            help="reserve  discrete-gaussian  or  discrete-laplace,  in steps of a"
            " size that you choose",
        )
    if mechanism.sampled:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{mechanism.name}` runs on a secret sample, which nobody here draws",
            help="ask a private query: it draws the sample itself",
        )
    noise, called = _KINDS[mechanism.kind]
    scale = _float_above(mechanism.parameter(called))
    numbers = _whole(values)
    for moved in mechanism.sensitivities.values():
        sampler.check(noise, scale, moved)
    use.claim(mechanism.name)
    return sampler.add(noise, scale, numbers)


def _float_above(scale: Fraction) -> Fraction:
    """Return the least number that a float holds and that is not below a scale."""
    if scale > _FLOATS_MAX:
        return scale  # The sampler refuses it.
    near = float(scale)
    return Fraction(near if Fraction(near) >= scale else math.nextafter(near, math.inf))


def _whole(values: Iterable[SupportsIndex]) -> list[int]:
    try:
        return [one.__index__() for one in values]
    except (AttributeError, TypeError):
        pass
    # Outside of the handler: else the value would stay attached to the error.
    raise InputError(
        Problem(
            Code.DATA_NOT_AS_DECLARED,
            "noise is added to a list of whole numbers, and something else is in it",
            help="round to steps of a size that you choose, and count in these; the"
            " sensitivity is that of the rounded numbers",
        )
    )
