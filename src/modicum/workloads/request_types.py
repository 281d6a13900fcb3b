"""Types of requests: a mechanism of a size, on everybody or on a Poisson sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from modicum.accounting.curves import Curve
from modicum.accounting.grid import INFINITE, ORDERS, order_index
from modicum.accounting.losses import Loss
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT, brief
from modicum.workloads import published_prices
from modicum.workloads.known_losses import LOSSES, ONE_IN
from modicum.workloads.mechanisms import MECHANISMS, SIZES, Mechanism, written

#: The pricing of types: by the best proven bound, or as in the original.
Pricing: TypeAlias = Literal["tight", "as-published"]
PRICINGS: tuple[Pricing, ...] = get_args(Pricing)

#: The sampling rate of requests that read everybody.
EVERYBODY = Fraction(1)


@dataclass(frozen=True, slots=True, order=True)
class RequestType:
    """The type of a request, without its part of the data.

    Attributes:
        mechanism: A key of `MECHANISMS`.
        size: One of `SIZES`.
        sampling: The probability that a user is read, above 0, at most 1. One sample is
            drawn for the request; DP-SGD draws no separate one, its steps sample
            everybody at a rate that is lower by this factor.
    """

    mechanism: str
    size: str
    sampling: Fraction = EVERYBODY

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise _unknown(Code.UNKNOWN_MECHANISM, "mechanism", self.mechanism)
        if self.size not in SIZES:
            raise _unknown(Code.UNKNOWN_CHOICE, "size", self.size)
        if not 0 < self.sampling <= 1:
            problem = Problem(
                Code.OUT_OF_RANGE,
                f"the sampling rate is {brief(self.sampling)}",
                help="it is a number above 0, at most 1",
            )
            raise InputError(problem)

    @property
    def name(self) -> str:
        """Return its name: ``laplace hare``, with ``1/4`` after it if sampled."""
        sample = "" if self.sampling == 1 else f" {brief(self.sampling)}"
        return f"{self.mechanism} {self.size}{sample}"

    @property
    def eps(self) -> Fraction:
        """The epsilon that its mechanism is calibrated to, without a sample."""
        return _mechanism(self).eps[SIZES.index(self.size)]

    @property
    def noise(self) -> Fraction:
        """The parameter of its mechanism."""
        return _mechanism(self).noise[SIZES.index(self.size)]

    def on_everybody(self) -> RequestType:
        """Return the same without a sample."""
        return RequestType(self.mechanism, self.size)

    def loss(self, pricing: Pricing = "tight") -> Loss:
        """Return the cost for a user in the part of the data.

        Args:
            pricing: By the best bound we can prove, or as the original computed it.

        Returns:
            The loss, rounded up. `as-published` is infinite but at the fourteen
            orders of the original.
        """
        return _loss(self, pricing)

    def described(
        self, unit: str, attributes: Iterable[str] = (), pricing: Pricing = "tight"
    ) -> dict[str, object]:
        """Return the mechanism as in a release.

        Args:
            unit: The privacy unit whose instances it is calibrated for, under
                add-remove.
            attributes: The attributes that it reads.
            pricing: How a declared cost is computed.

        Returns:
            The mechanism with its noise where a release can describe it; else
            `declared`, with the finite divergences of `loss(pricing)` as its cost.
        """
        own = _mechanism(self).described
        read = {"attributes": list(attributes)}
        if own is not None and self.sampling == 1 and pricing == "tight":
            return {**own(unit, self.noise), **read}
        return {
            "mechanism": "declared",
            **read,
            "cost": {unit: {"rdp": _divergences(self.loss(pricing))}},
        }


def all_types(sampling: Iterable[Fraction] = (EVERYBODY,)) -> tuple[RequestType, ...]:
    """Return every mechanism in every size at each of some sampling rates."""
    return types_of(MECHANISMS, tuple(sampling))


def types_of(
    mechanisms: Iterable[str], sampling: tuple[Fraction, ...]
) -> tuple[RequestType, ...]:
    """Return some mechanisms in every size at each of some sampling rates.

    Args:
        mechanisms: Names of mechanisms.
        sampling: The rates, which vary fastest; sizes vary next.

    Raises:
        InputError: If a mechanism is unknown, or a rate is out of range.
    """
    return tuple(
        RequestType(mechanism, size, rate)
        for mechanism in mechanisms
        for size in SIZES
        for rate in sampling
    )


def pricing_named(name: str) -> Pricing:
    """Return a pricing method by its name.

    Args:
        name: One of `PRICINGS`.

    Raises:
        InputError: If there is none of that name.
    """
    for known in PRICINGS:
        if known == name:
            return known
    raise _unknown(Code.UNKNOWN_CHOICE, "pricing", name)


@lru_cache(maxsize=1024)
def curve_of(kind: RequestType, pricing: Pricing) -> Curve:
    """Return the cost of a type, before it is rounded.

    Args:
        kind: The type.
        pricing: By the best bound we can prove, or as the original computed it.
    """
    bound = tight_curve if pricing == "tight" else published_curve
    return bound(_mechanism(kind), kind.noise, kind.sampling)


@lru_cache(maxsize=1024)
def _loss(kind: RequestType, pricing: Pricing) -> Loss:
    known = LOSSES.get((kind.mechanism, kind.size))
    if known and pricing == "tight" and kind.sampling * ONE_IN == 1:
        return Loss(known)
    return curve_of(kind, pricing).loss()


def tight_curve(mechanism: Mechanism, noise: Fraction, rate: Fraction) -> Curve:
    """Return the best bound that we can prove."""
    return mechanism.curve(noise) if rate == 1 else mechanism.sampled(noise, rate)


def published_curve(mechanism: Mechanism, noise: Fraction, rate: Fraction) -> Curve:
    """Return the bound of the original."""
    base = mechanism.curve(noise)
    if mechanism.name == "dp-sgd":  # It is on samples itself.
        base = published_prices.at_whole_orders(base)
    if rate == 1:
        return published_prices.only_published(base)
    if mechanism.exact:
        sampled = published_prices.at_whole_orders(mechanism.sampled(noise, rate))
    else:
        sampled = published_prices.of_any_mechanism(base, rate)
    return published_prices.only_published(sampled)


def _mechanism(kind: RequestType) -> Mechanism:
    return MECHANISMS[kind.mechanism]


def _divergences(loss: Loss) -> dict[object, object]:
    """Return the finite divergences of a loss as a release writes them."""
    known = {order: loss.coordinates[order_index(order)] for order in ORDERS}
    return {
        written(order): written(Fraction(units, LOSS_UNIT))
        for order, units in known.items()
        if units < INFINITE
    }


def _unknown(code: Code, what: str, given: str) -> InputError:
    choices = {"mechanism": MECHANISMS, "size": SIZES, "pricing": PRICINGS}[what]
    return InputError(
        Problem(
            code,
            f"unknown {what} `{given[:40]}` of a request",
            help=f"choose one of {', '.join(choices)}",
        )
    )
