"""Secret Poisson sampling of mechanisms, as values and as plain data.

A mechanism with sampling keeps each instance of a unit independently with one
probability, and reads the rows of those that are kept. The sample is drawn anew for
each mechanism, or in each step of one that has steps, and is never revealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.core.canonical import Plain
from modicum.core.errors import Mark
from modicum.core.rationals import number_text


@dataclass(frozen=True, slots=True)
class Sampling:
    """A Poisson sample of the instances of one unit.

    Attributes:
        unit: The privacy unit whose instances are drawn.
        rate: The probability of each, above 0 and below 1.
        mark: Its position.
    """

    unit: str
    rate: Fraction
    mark: Mark | None = field(default=None, compare=False)


def sampling_to_plain(sampling: Sampling) -> dict[str, Plain]:
    """Return a sample as plain data, with its exact rate as text."""
    return {"unit": sampling.unit, "rate": number_text(sampling.rate)}


def sampling_from_plain(plain: Plain) -> Sampling:
    """Return the sample that plain data encodes.

    Raises:
        ValueError: If it has another form.
    """
    if isinstance(plain, Mapping) and plain.keys() == {"unit", "rate"}:
        unit, rate = plain["unit"], plain["rate"]
        if isinstance(unit, str) and isinstance(rate, str):
            found = Sampling(unit, _exact(rate))
            if 0 < found.rate < 1 and number_text(found.rate) == rate:
                return found
    message = "its sampling is not a rate of a unit"
    raise ValueError(message)


def _exact(text: str) -> Fraction:
    """Return the number that a text spells; 0 if it spells none."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return Fraction(0)


def drawn_in_steps(description: Mapping[str, Plain]) -> int | None:
    """Return how many samples a described mechanism draws; None if it has no steps."""
    kind = RELEASE_KINDS.get(str(description.get("kind")))
    parameters = description.get("parameters")
    if kind is None or not kind.samples or not isinstance(parameters, Mapping):
        return None
    return int(_exact(str(parameters.get(kind.repeats))))


def sampling_note(description: Mapping[str, Plain]) -> str:
    """Return the sampling of a described mechanism, as text; "" if on all rows."""
    if "sampling" not in description:
        return ""
    try:
        text = sampling_text(sampling_from_plain(description["sampling"]))
    except ValueError:
        return "on a sample that this version does not support"
    steps = drawn_in_steps(description)
    return text if steps is None else f"{text} in each of {steps} steps"


def share_text(rate: Fraction) -> str:
    """Return a rate in per cent, exactly: `10 %`; or as a fraction, such as `1/3`."""
    percent = number_text(100 * rate)
    return number_text(rate) if "/" in percent else f"{percent} %"


def sampling_text(sampling: Sampling) -> str:
    """Return a sampling as text.

    Examples:
        >>> sampling_text(Sampling("user", Fraction(1, 10)))
        'on a fresh Poisson sample of 10 % by user'
    """
    return (
        f"on a fresh Poisson sample of {share_text(sampling.rate)} by {sampling.unit}"
    )
