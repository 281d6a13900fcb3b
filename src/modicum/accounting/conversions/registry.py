"""Conversions of one guarantee to another measure, each by name and with its source.

Anything that no proof allows is refused, with the reason. In particular, zCDP never
implies the profile of Gaussian noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting.amounts import is_infinite
from modicum.accounting.conversions.guarantees import (
    WORDS,
    Conversion,
    Guarantee,
    Measure,
    Target,
)
from modicum.accounting.conversions.named_formulas import OF_EPSILON, OF_MOMENTS
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief

#: Every named conversion; of those between the same measures, the usual one first.
CONVERSIONS = (*OF_EPSILON, *OF_MOMENTS)


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of a conversion, and the conversion itself."""

    value: Fraction
    conversion: Conversion


def convert(
    guarantee: Guarantee, target: Target, method: str | None = None
) -> Converted:
    """Return a guarantee in another measure, never understated.

    Args:
        guarantee: The proven guarantee.
        target: The target.
        method: The name of a conversion; without one, whichever gives least.

    Returns:
        The value: a multiple of 1e-12 rounded up, or exact; a delta in 20
        significant digits, rounded up, at most 1.

    Raises:
        InputError: If no conversion exists, this one does not, or its result is
            vacuous.

    Neighboring relation:
        That of the guarantee.

    Source:
        That of the conversion.

    Examples:
        >>> rho = Guarantee("rho", Fraction("0.735"))
        >>> target = Target("eps", Fraction(1, 10**6))
        >>> found = convert(rho, target, "bun-steinke-lemma-3.6")
        >>> f"{float(found.value):.3g}"
        '6.72'
        >>> convert(rho, target).conversion.name
        'real-order'
    """
    found: list[Converted] = []
    refused: list[InputError] = []
    for conversion in _candidates(guarantee.measure, target, method):
        try:
            value = conversion.compute(guarantee, target.at)
        except InputError as error:
            refused.append(error)
        else:
            if not is_infinite(value):
                found.append(Converted(Fraction(value), conversion))
    if not found and refused:
        raise refused[0]
    if not found:
        raise _says_nothing(guarantee, target)
    return min(found, key=lambda converted: converted.value)


def conversions_from(measure: Measure) -> tuple[Conversion, ...]:
    """Return every conversion of a measure, the usual one of each target first.

    Examples:
        >>> sorted({found.target for found in conversions_from("rho")})  # never mu
        ['delta', 'eps', 'rdp', 'rho']
    """
    return tuple(c for c in CONVERSIONS if measure in c.sources)


def _candidates(
    measure: Measure, target: Target, method: str | None
) -> list[Conversion]:
    fitting = [c for c in conversions_from(measure) if c.target == target.measure]
    if not fitting:
        raise _refusal(measure, target)
    if method is None:
        return fitting
    named = [c for c in fitting if c.name == method]
    if not named:
        known = ", ".join(f"`{c.name}`" for c in fitting)
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"no conversion `{method}` from {WORDS[measure]} to"
                f" {WORDS[target.measure]}"
                if target.measure != "eps"
                else f"no conversion `{method}` from {WORDS[measure]} to epsilon",
                help=f"choose {known}",
            )
        )
    return named


_NO_PURE = "its privacy loss may be unbounded, so no epsilon is valid with delta 0"
_TAIL = "outside an event of probability delta nothing is bounded"

#: Why there is no conversion.
_REASONS: dict[tuple[str, str], str] = {
    ("rho", "pure"): _NO_PURE,
    ("mu", "pure"): _NO_PURE,
    ("rdp", "pure"): "a divergence at some orders does not bound the highest orders",
    ("rho", "mu"): "rho bounds moments of the loss, mu its whole distribution;"
    " only a mechanism known to be Gaussian has both",
    ("rdp", "rho"): "some orders do not bound all the others",
    ("rdp", "mu"): "some orders do not determine the distribution of the loss",
    ("eps-delta", "pure"): _TAIL,
    ("eps-delta", "rho"): _TAIL,
    ("eps-delta", "mu"): _TAIL,
    ("eps-delta", "rdp"): _TAIL,
}


def _refusal(measure: Measure, target: Target) -> InputError:
    existing = dict.fromkeys(WORDS_OF[c.target] for c in conversions_from(measure))
    return InputError(
        Problem(
            Code.NOT_SUPPORTED,
            f"{WORDS[measure]} does not imply any {WORDS_OF[target.measure]}",
            notes=(_REASONS[measure, target.measure],),
            help=f"it converts to {', '.join(existing)}",
        )
    )


#: The name of a result.
WORDS_OF = {
    "pure": "pure epsilon",
    "eps": "epsilon at a delta",
    "delta": "delta at an epsilon",
    "rho": "rho",
    "mu": "mu",
    "rdp": "Renyi divergence at an order",
}


def _says_nothing(guarantee: Guarantee, target: Target) -> InputError:
    highest = guarantee.points[-1][0] if guarantee.points else target.at
    return InputError(
        Problem(
            Code.NOT_SUPPORTED,
            f"no finite bound is known at order {brief(target.at)}",
            notes=(f"the highest order of the guarantee is {brief(highest)}",),
            help="use an order up to that one",
        )
    )
