"""Events of dp-accounting as mechanisms of a release.

Events that cannot be priced fully are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modicum.accounting.amplification import poisson_gaussian
from modicum.accounting.curves import Curve, composed
from modicum.accounting.grid import FIRST_ORDER, INFINITE, ORDERS
from modicum.accounting.mechanisms import laplace
from modicum.accounting.mechanisms.declared import describe_declared
from modicum.accounting.mechanisms.gaussian import describe_gaussian
from modicum.accounting.mechanisms.laplace import describe_laplace
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, InputError
from modicum.core.rationals import LOSS_UNIT, ceil_units, floor_units
from modicum.release import approx_dp, l1, l2, pure_dp, zcdp

Described = dict[str, object]

_DEPTH_MAX = 100
_LEAVES_MAX = 10_000
# Maximum number of runs listed one by one; more are one curve.
_COPIES_MAX = 16


def from_dp_event(
    event: Any,
    *,
    unit: str,
    relation: str,
    attributes: Sequence[str],
    name: str = "event",
) -> list[Described]:
    """Return the mechanisms of an event, as a release describes them.

    Args:
        event: A `DpEvent` of dp-accounting.
        unit: The privacy unit whose neighbors the event speaks of.
        relation: The neighboring relation that its noise is relative to:
            `add-remove` or `substitute`. The unit must have the same in the policy.
        attributes: The attributes that were read.
        name: The name of the mechanisms; a number is added.

    Returns:
        None of them costs less than the event; of an event that does nothing, none.

    Raises:
        InputError: If it contains an event that cannot be priced, or the relation is
            another one.

    Examples:
        >>> class GaussianDpEvent:
        ...     noise_multiplier = 2.0
        >>> (found,) = from_dp_event(
        ...     GaussianDpEvent(), unit="user", relation="add-remove",
        ...     attributes=["age"])
        >>> found["mechanism"], found["sigma"], found["sensitivity"]
        ('gaussian', Fraction(2, 1), {'user': {'l2': 1}})
    """
    if relation not in ("add-remove", "substitute"):
        raise fail(
            Code.UNKNOWN_CHOICE,
            f"events do not support the relation `{relation[:100]}`",
            help="give  relation='add-remove'  or  relation='substitute'",
        )
    found: list[Described] = []
    request = _Request(unit, relation, tuple(attributes))
    for kind, leaf, count in _merged(event):
        described = _LEAVES[kind](_Leaf(leaf, count), request)
        found += [
            {**one, "name": f"{name}-{len(found) + index}"}
            for index, one in enumerate(described, start=1)
        ]
    return found


@dataclass(frozen=True, slots=True)
class _Request:
    unit: str
    relation: str
    attributes: tuple[str, ...]

    def declared(self, cost: dict[str, object]) -> list[Described]:
        return [describe_declared(attributes=self.attributes, cost={self.unit: cost})]

    def by_order(self, curve: Curve) -> list[Described]:
        """Return one mechanism that has the divergences of a curve."""
        units = curve.loss().coordinates[FIRST_ORDER : FIRST_ORDER + len(ORDERS)]
        known = {
            float(order): Fraction(value, LOSS_UNIT)  # The orders are quarters.
            for order, value in zip(ORDERS, units, strict=True)
            if 0 < value < INFINITE
        }
        return self.declared({"rdp": known})


@dataclass(frozen=True, slots=True)
class _Leaf:
    event: Any
    count: int

    def positive(self, field: str) -> Fraction:
        """Return a parameter exactly; it must be above 0."""
        value = getattr(self.event, field)
        try:
            exact = Fraction(value)
        except (TypeError, ValueError, OverflowError):
            exact = Fraction(0)
        if exact <= 0:
            raise fail(
                Code.OUT_OF_RANGE,
                f"`{field}` of `{type(self.event).__name__}` must be a number above 0",
                help="an event without noise is not differentially private",
            )
        return exact


# --- contents of an event -----------------------------------------------------------


def _merged(event: Any) -> list[tuple[str, Any, int]]:
    """Return the distinct events of an event, each with how often it happened."""
    counts: dict[str, tuple[str, Any, int]] = {}
    for number, (leaf, count) in enumerate(_leaves(event, 1, 0)):
        if number >= _LEAVES_MAX:
            raise fail(
                Code.TOO_LARGE,
                f"an event of more than {_LEAVES_MAX} events",
                help="combine equal ones with SelfComposedDpEvent",
            )
        kind = type(leaf).__name__
        if kind not in _LEAVES:
            raise _unpriced(kind)
        key = f"{kind}{leaf!r}"
        before = counts.get(key, (kind, leaf, 0))[2]
        counts[key] = (kind, leaf, before + count)
    return list(counts.values())


def _leaves(event: Any, times: int, depth: int) -> Iterator[tuple[Any, int]]:
    if depth > _DEPTH_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"an event with over {_DEPTH_MAX} levels",
            help="compose events side by side",
        )
    kind = type(event).__name__
    if kind == "ComposedDpEvent":
        for one in event.events:
            yield from _leaves(one, times, depth + 1)
    elif kind == "SelfComposedDpEvent":
        if type(event.count) is not int or event.count < 0:
            raise fail(
                Code.OUT_OF_RANGE,
                "`count` of `SelfComposedDpEvent` must be an integer of at least 0",
                help="give the number of repetitions",
            )
        if event.count:
            yield from _leaves(event.event, times * event.count, depth + 1)
    elif kind != "NoOpDpEvent":
        yield event, times


# --- their costs --------------------------------------------------------------------


def _gaussian(leaf: _Leaf, request: _Request) -> list[Described]:
    sigma = leaf.positive("noise_multiplier")
    if leaf.count == 1:
        return [
            describe_gaussian(
                attributes=request.attributes,
                sensitivity={request.unit: l2(1)},
                sigma=_down(sigma),
            )
        ]
    rho = _up(leaf.count / (2 * sigma * sigma))  # Gaussian noise adds up to such.
    return [
        describe_gaussian(attributes=request.attributes, cost={request.unit: zcdp(rho)})
    ]


def _laplace(leaf: _Leaf, request: _Request) -> list[Described]:
    scale = _down(leaf.positive("noise_multiplier"))
    if leaf.count > _COPIES_MAX:
        one = laplace(sensitivity_l1=Fraction(1), scale=scale)
        return request.by_order(composed([(one, leaf.count)]))
    described = describe_laplace(
        attributes=request.attributes, sensitivity={request.unit: l1(1)}, scale=scale
    )
    return [dict(described) for _ in range(leaf.count)]


def _discrete_laplace(leaf: _Leaf, request: _Request) -> list[Described]:
    change = leaf.positive("sensitivity")
    if change.denominator != 1:
        raise _unpriced("DiscreteLaplaceDpEvent with a sensitivity that is not whole")
    eps = leaf.positive("noise_parameter")
    if leaf.count > _COPIES_MAX:
        return request.declared(pure_dp(_up(eps * change * leaf.count)))
    described = describe_laplace(
        attributes=request.attributes,
        sensitivity={request.unit: l1(int(change))},
        scale=_down(1 / eps),
        discrete=True,
    )
    return [dict(described) for _ in range(leaf.count)]


def _zcdp(leaf: _Leaf, request: _Request) -> list[Described]:
    if getattr(leaf.event, "xi", 0) != 0:
        raise _unpriced("ZCDpEvent with xi")
    return request.declared(zcdp(_up(leaf.positive("rho") * leaf.count)))


def _epsilon_delta(leaf: _Leaf, request: _Request) -> list[Described]:
    eps = _up(leaf.positive("epsilon"))
    delta = Fraction(leaf.event.delta)
    if leaf.count > _COPIES_MAX and delta:
        raise _unpriced(f"EpsilonDeltaDpEvent, {leaf.count} times,")
    if not delta:
        copies = 1 if leaf.count > _COPIES_MAX else leaf.count
        total = eps if copies == leaf.count else eps * leaf.count
        return request.declared(pure_dp(total)) * copies
    return request.declared(approx_dp(eps, _up(delta, 10**18))) * leaf.count


def _poisson(leaf: _Leaf, request: _Request) -> list[Described]:
    inner = leaf.event.event
    if type(inner).__name__ != "GaussianDpEvent":
        raise _unpriced(f"PoissonSampledDpEvent of {type(inner).__name__}")
    if request.relation != "add-remove":
        raise _unpriced("PoissonSampledDpEvent where neighbors are substituted")
    rate = leaf.positive("sampling_probability")
    if rate > 1:
        raise fail(
            Code.OUT_OF_RANGE,
            "`sampling_probability` must be at most 1",
            help="give the probability that one unit is in the sample",
        )
    noise = _Leaf(inner, 1).positive("noise_multiplier")
    step = poisson_gaussian(sampling_rate=rate, noise_multiplier=noise)
    return request.by_order(composed([(step, leaf.count)]))


_LEAVES: Mapping[str, Callable[[_Leaf, _Request], list[Described]]] = {
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "EpsilonDeltaDpEvent": _epsilon_delta,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "PoissonSampledDpEvent": _poisson,
    "ZCDpEvent": _zcdp,
}


def _unpriced(what: str) -> InputError:
    return fail(
        Code.UNKNOWN_MECHANISM,
        f"no loss is known for {what[:200]}",
        notes=(f"supported are {', '.join(_LEAVES)}, alone and composed",),
        help="declare the guarantee that is proven for it:  mechanism: declared",
    )


def _up(value: Fraction, unit: int = LOSS_UNIT) -> Fraction:
    """Return a number of few digits that is not below."""
    return Fraction(ceil_units(value, unit), unit)


def _down(value: Fraction) -> Fraction:
    """Return noise in digits that a release can hold, and not more of it."""
    if value.denominator == 1:
        return value
    found = Fraction(floor_units(value), LOSS_UNIT)
    if found <= 0:
        raise fail(
            Code.OUT_OF_RANGE,
            "noise below 1e-12 of the sensitivity",
            help="an event without noise is not differentially private",
        )
    return found
