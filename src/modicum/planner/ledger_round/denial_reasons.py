"""Why a request of a round was not accepted, by rules and cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from modicum.accounting.grid import INFINITE, coordinate_name
from modicum.core.errors import Code, UsageError
from modicum.core.errors import Problem as Mistake
from modicum.planner import obstacles as explaining
from modicum.planner.ledger_round.plan import RoundPlan


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A cell of a rule with too little left.

    Numbers are in ledger units of the coordinate at which the least is missing: at
    the others, even more is.

    Attributes:
        rule: The id of the rule.
        cell: The cell, as text; empty if it is everything.
        coordinate: The name of the coordinate.
        before: The remainder before the round.
        left: The remainder after the accepted requests; negative if they are counted
            for more than they are charged there.
        cost: The cost of the request; None if that is infinite.
        rivals: The ids of the accepted requests that are charged there, those that
            take the largest share first.
    """

    rule: str
    cell: str
    coordinate: str
    before: int
    left: int
    cost: int | None
    rivals: tuple[str, ...]


def obstacles(
    planned: RoundPlan, request: int, *, most: int = 10
) -> tuple[Obstacle, ...]:
    """Return where too little was left for a request, the nearest misses last.

    There is at least one: what fits beside all that is accepted was accepted, and the
    problem of a round is never looser than the ledger.

    Args:
        planned: The plan.
        request: The number of a request that was planned, and not accepted.
        most: The maximum number returned.

    Raises:
        UsageError: If there is no such request.
    """
    numbers = planned.round.numbers
    own = int(np.searchsorted(numbers, request))
    known = own < len(numbers) and numbers[own] == request
    if not known or request in planned.accepted:
        raise _not_rejected(request)
    accepted = np.isin(numbers, planned.accepted)
    found = explaining.why_not(planned.problem, accepted, own, most=most)
    return tuple(_obstacle(planned, one) for one in found)


def _obstacle(planned: RoundPlan, one: explaining.Obstacle) -> Obstacle:
    found, compiled = planned.round, planned.round.compiled
    a = _decisive(one)
    _, index = found.coordinates[a]
    return Obstacle(
        rule=compiled.rules.rule_id(one.line),
        cell=found.cell_text(one.place),
        coordinate=coordinate_name(index),
        before=one.before[a],
        left=one.left[a],
        cost=one.needs[a] if one.needs[a] < INFINITE else None,
        rivals=tuple(
            planned.requests[int(found.numbers[rival])].id for rival in one.rivals
        ),
    )


def _decisive(one: explaining.Obstacle) -> int:
    """Return the coordinate at which the least is missing, as a part of the cost.

    Nothing ever passes where less than nothing was left before.
    """
    open_ = [a for a, before in enumerate(one.before) if before >= 0]
    return max(open_, key=lambda a: (Fraction(one.left[a], max(one.needs[a], 1)), a))


def _not_rejected(request: int) -> UsageError:
    return UsageError(
        Mistake(
            Code.OUT_OF_RANGE,
            f"{request} is not the number of a rejected request",
            help="requests are numbered from 0",
        )
    )
