"""OpenDP's Context under a reservation: one query, looked at before it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from modicum.accounting.budgets import ApproxBudget, PureBudget, ZcdpBudget
from modicum.api.ports.reservation import InUse, Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code
from modicum.integrations.library_errors import loaded, unquoted


def reserved_context(
    use: InUse,
    mechanism: Reserved,
    unit: str,
    privacy_unit: Any,
    given: Mapping[str, Any],
    check: Callable[..., Any],
) -> Any:
    """Return a context with the reserved budget, for one query."""
    library = loaded("opendp.context", "OpenDP", "modicum[query]")
    loss = library.loss_of(**_loss(mechanism, unit))
    context = unquoted(
        "OpenDP",
        "opening a context",
        lambda: library.Context.compositor(
            privacy_unit=privacy_unit, privacy_loss=loss, split_evenly_over=1, **given
        ),
    )

    base = library.Context

    def answered(self: Any, query: Any) -> Any:
        check(query, {unit: self.d_in})
        use.claim(mechanism.name)
        answer = unquoted("OpenDP", "measuring", lambda: base.__call__(self, query))
        return Once(use, answer) if hasattr(answer, "collect") else answer

    # Every release, by any method, goes through the context's call.
    guarded: Any = type("ReservedContext", (base,), {"__call__": answered})
    found = object.__new__(guarded)
    found.__dict__.update(context.__dict__)
    return found


class Once:
    """The result of a context's query: read when it is collected, once.

    Args:
        use: The reservation in use.
        frame: OpenDP's result.
    """

    def __init__(self, use: InUse, frame: Any) -> None:
        self._use = use
        self._frame = frame

    def collect(self) -> Any:
        """Return the noisy table."""
        self._use.must_run()
        return unquoted("OpenDP", "measuring", self._frame.collect)


def _loss(mechanism: Reserved, unit: str) -> dict[str, float]:
    """Return the reserved loss for OpenDP, no number above the reserved one."""
    match mechanism.cost(unit):
        case PureBudget(eps=eps):
            return {"epsilon": _below(eps)}
        case ApproxBudget(eps=eps, delta=delta):
            return {"epsilon": _below(eps), "delta": _below(delta)}
        case ZcdpBudget(rho=rho):
            return {"rho": _below(rho)}
        case _:
            raise fail(
                Code.NO_MEASURE,
                "OpenDP does not support the measure of the reservation",
            )


def _below(exact: Fraction) -> float:
    """Return the greatest float that is not above a number."""
    near = float(exact)
    return math.nextafter(near, 0) if Fraction(near) > exact else near
