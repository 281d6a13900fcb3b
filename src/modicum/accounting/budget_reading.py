"""Reading a guarantee or a limit from a file: the key names the measure."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    ZcdpBudget,
)
from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.exact import DELTA_UNIT
from modicum.core.reading import Fields, fail, positive, probability

_LATER = {"rdp": "guarantees by Renyi order come later; state eps, rho or mu"}


def read_measured(
    node: Node, what: str, read_delta: Callable[[Node], Fraction]
) -> Budget:
    """Return ``{eps: …}``, ``{eps: …, delta: …}``, ``{rho: …}`` or ``{mu: …}``.

    Args:
        node: The mapping.
        what: What it is, for messages.
        read_delta: Reads delta: `limit_delta` for a limit, `cost_delta` for a cost.

    Raises:
        InputError: If the measure is missing, mixed or unknown, or a number is out
            of its range.
    """
    if isinstance(node, Scalar) and node.kind is Kind.NUMBER:
        raise _no_measure(what, node)
    fields = Fields(node, what)
    measures = [key for key in ("eps", "rho", "mu") if key in fields]
    if len(measures) > 1:
        raise fail(
            Code.KEYS_CONFLICT,
            f"{what} is stated in {' and in '.join(measures)}; state it in one measure",
            node,
        )
    budget: Budget | None = None
    if "eps" in fields:
        eps = positive(fields.take("eps"), "eps")
        delta = fields.take_optional("delta")
        budget = PureBudget(eps)
        if delta is not None:
            budget = ApproxBudget(eps, read_delta(delta))
    elif "rho" in fields:
        budget = ZcdpBudget(positive(fields.take("rho"), "rho"))
    elif "mu" in fields:
        budget = GdpBudget(positive(fields.take("mu"), "mu"))
    else:
        for key in ("eps", "delta", "rho", "mu"):
            fields.take_optional(key)
    if budget is not None and "delta" in fields:
        raise fail(
            Code.KEYS_CONFLICT,
            f"only eps goes with a delta, in {what}",
            fields.key_node("delta"),
        )
    fields.finish(unsupported=_LATER)
    if budget is None:
        raise _no_measure(what, node)
    return budget


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
    """
    return probability(node, "delta")


def limit_delta(node: Node) -> Fraction:
    """Return the delta of a limit: at least one ledger unit, below 1.

    Raises:
        InputError: If it is not a number in that range.
    """
    value = probability(node, "delta")
    if value * DELTA_UNIT < 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"delta must be at least 1e-18, got {float(value):g}",
            node,
            notes=("the ledger counts delta in units of 1e-18, limits rounded down",),
        )
    return value
