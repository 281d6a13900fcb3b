"""Reading a guarantee or a limit from a file: the key names the measure."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from msgspec.structs import replace

from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    ZcdpBudget,
)
from modicum.accounting.grid import ORDERS
from modicum.core.document import Entries, Kind, Node, Scalar, describe
from modicum.core.errors import Code, InputError
from modicum.core.rationals import DELTA_UNIT, brief, number_text, parse_number
from modicum.core.reader import Fields, fail, number, positive, probability

_MEASURES = ("eps", "rho", "mu", "rdp")


def read_measured(
    node: Node, what: str, read_delta: Callable[[Node], Fraction]
) -> Budget:
    """Return ``{eps: …}``, ``{eps: …, delta: …}``, ``{rho: …}`` and the like.

    Args:
        node: The mapping.
        what: Its name, for messages.
        read_delta: Reads delta: `limit_delta` for a limit, `cost_delta` for a cost.

    Raises:
        InputError: If the measure is missing, mixed or unknown, or a number is out of
            range.

    Examples:
        >>> from modicum.core.document import from_python
        >>> stated = from_python({"eps": 1, "delta": 1e-6})
        >>> read_measured(stated, "a limit", limit_delta)
        ApproxBudget(eps=Fraction(1, 1), delta=Fraction(1, 1000000))
        >>> read_measured(from_python(1), "a limit", limit_delta)
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: a limit has no measure
    """
    if isinstance(node, Scalar) and node.kind is Kind.NUMBER:
        raise _no_measure(what, node)
    fields = Fields(node, what)
    measures = [key for key in _MEASURES if key in fields]
    if len(measures) > 1:
        raise fail(
            Code.KEYS_CONFLICT,
            f"{what} mixes the measures {' and '.join(measures)}; use one measure",
            node,
        )
    budget = _read_one(fields, read_delta) if measures else None
    if budget is None:
        for key in ("eps", "delta", "rho", "mu", "rdp"):
            fields.take_optional(key)
    elif "delta" in fields:
        raise fail(
            Code.KEYS_CONFLICT,
            f"only eps takes a delta, in {what}",
            fields.key_node("delta"),
        )
    fields.finish()
    if budget is None:
        raise _no_measure(what, node)
    return budget


def _read_one(fields: Fields, read_delta: Callable[[Node], Fraction]) -> Budget:
    """Return the budget of a mapping that has exactly one measure."""
    if "eps" in fields:
        eps = positive(fields.take("eps"), "eps")
        delta = fields.take_optional("delta")
        return (
            PureBudget(eps) if delta is None else ApproxBudget(eps, read_delta(delta))
        )
    if "rho" in fields:
        return ZcdpBudget(positive(fields.take("rho"), "rho"))
    if "mu" in fields:
        return GdpBudget(positive(fields.take("mu"), "mu"))
    return RenyiBudget(_orders(fields.take("rdp")))


def _orders(node: Node) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return a mapping of orders to divergences, sorted by order."""
    if not isinstance(node, Entries) or not node.entries:
        raise fail(
            Code.WRONG_TYPE,
            f"`rdp` must map orders to divergences, got {describe(node)}",
            node,
            help="write {rdp: {8: 0.5, 32: 1.2}}",
        )
    found: dict[Fraction, Fraction] = {}
    for key, value in node.entries:
        order = _order(key)
        if order in found:
            raise fail(
                Code.DUPLICATE_KEY,
                f"`rdp` has the order {number_text(order)} twice",
                key,
            )
        found[order] = positive(value, f"the divergence of order {key.text}")
    return tuple(sorted(found.items()))


def _order(key: Scalar) -> Fraction:
    what = "an order of `rdp`"
    if key.quoted and parse_number(key.text) is not None:
        key = replace(key, kind=Kind.NUMBER)  # JSON knows no other keys.
    if key.kind is not Kind.NUMBER:
        raise fail(Code.NOT_A_NUMBER, f"{what} must be a number", key)
    order = number(key, what)
    if order not in ORDERS:
        raise fail(
            Code.OUT_OF_RANGE,
            f"the ledger does not store the Renyi order {key.text}",
            key,
            help="it keeps " + ", ".join(number_text(known) for known in ORDERS),
        )
    return order


def _no_measure(what: str, node: Node) -> InputError:
    return fail(
        Code.NO_MEASURE,
        f"{what} has no measure",
        node,
        help="write {eps: …}, {eps: …, delta: …}, {rho: …} or {mu: …}",
    )


def cost_delta(node: Node) -> Fraction:
    """Return the delta of a guarantee: strictly between 0 and 1.

    Raises:
        InputError: If it is not a number in that range.

    Examples:
        >>> from modicum.core.document import from_python
        >>> cost_delta(from_python(1e-20))  # below one unit of the ledger
        Fraction(1, 100000000000000000000)
    """
    return probability(node, "delta")


def limit_delta(node: Node) -> Fraction:
    """Return the delta of a limit: at least one ledger unit, below 1.

    Raises:
        InputError: If it is not a number in that range.

    Examples:
        >>> from modicum.core.document import from_python
        >>> limit_delta(from_python(1e-20))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: delta must be at least 1e-18, got 1e-20
    """
    value = probability(node, "delta")
    if value * DELTA_UNIT < 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"delta must be at least 1e-18, got {brief(value)}",
            node,
            notes=("the ledger counts delta in units of 1e-18, limits rounded down",),
        )
    return value
