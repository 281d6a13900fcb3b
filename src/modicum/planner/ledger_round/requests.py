"""The demands of a round's requests by cell of one unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modicum.accounting import COORDINATES
from modicum.accounting.grid import DELTA, INFINITE
from modicum.core.errors import check
from modicum.ledger import Balances, RecordedRelease
from modicum.ledger.cells.family import Charge, Family
from modicum.ledger.cells.segments import SegmentsThen
from modicum.ledger.cells.sums import saturated
from modicum.planner.allocation.problem import Booleans, Integers
from modicum.planner.ledger_round.presolve import Binding, refuse_too_many
from modicum.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class RuleDemand:
    """The demand of a request on rules that the same of its mechanisms match.

    Attributes:
        request: Its number.
        rules: The numbers of the rules.
        segments: The segments in which it is charged.
        costs: The charge of each, by coordinate of the unit; one line, if all are
            charged alike.
    """

    request: int
    rules: tuple[int, ...]
    segments: Integers
    costs: Integers


@dataclass(frozen=True, slots=True)
class UnitDemands:
    """The demands of all requests on the rules of one unit.

    Attributes:
        unit: The unit.
        family: Its cells, cut so that each request covers whole segments.
        then: The segments.
        coordinates: Those of the ledger that some rule of the policy caps, and delta;
            rising.
        demands: By request, then by rules.
    """

    unit: str
    family: Family
    then: SegmentsThen
    coordinates: Integers
    demands: tuple[RuleDemand, ...]

    def by_rules(self) -> list[tuple[list[RuleDemand], list[int]]]:
        """Return the rules with identical demands, with these."""
        lines: dict[int, list[int]] = {}
        for place, demand in enumerate(self.demands):
            for rule in demand.rules:
                lines.setdefault(rule, []).append(place)
        alike: dict[tuple[int, ...], list[int]] = {}
        for rule in sorted(lines):
            alike.setdefault(tuple(lines[rule]), []).append(rule)
        return [
            ([self.demands[place] for place in places], rules)
            for places, rules in alike.items()
        ]

    def demand(self) -> list[int]:
        """Return what all requests cost at most, by coordinate, but for the infinite.

        Python's integers have no bound.
        """
        most: dict[int, Integers] = {}
        for demand in self.demands:
            finite = np.where(demand.costs < INFINITE, demand.costs, 0).max(axis=0)
            most[demand.request] = np.maximum(most.get(demand.request, 0), finite)
        columns = zip(*(one.tolist() for one in most.values()), strict=True)
        return [sum(column) for column in columns]


def demands_by_unit(
    balances: Balances, requests: Sequence[RecordedRelease], day: int
) -> tuple[tuple[UnitDemands, ...], Booleans]:
    """Return the demands of requests by unit; and which have exact charges.

    Args:
        balances: A scratch copy; its segments are cut.
        requests: The requests.
        day: The day on which they are decided, as an ordinal.

    Raises:
        InputError: If that is too much to hold.
    """
    for request in requests:
        balances.note(request, day)
    kept, coordinates = Binding(balances), _coordinates(balances.compiled)
    exact = np.ones(len(requests), np.bool_)
    found: dict[str, list[RuleDemand]] = {}
    numbers = 0
    for number, request in enumerate(requests):
        for family, inquiry in balances.charges_of(request, day):
            overlay = inquiry.overlay
            check(not overlay.pieces, "PLAN-4: a request covers whole segments")
            exact[number] &= not overlay.rounded
            for charge in inquiry.charges:
                rules = kept.among(charge.numbers)
                if rules and len(charge.places):
                    segments = overlay.segments[charge.places]
                    demand = RuleDemand(
                        number, rules, segments, _costs(charge, coordinates)
                    )
                    found.setdefault(family.space.unit, []).append(demand)
                    numbers += demand.segments.size + demand.costs.size
                    refuse_too_many(numbers)
    return tuple(
        _unit(balances, unit, coordinates, demands)
        for unit, demands in sorted(found.items())
    ), exact


def _unit(
    balances: Balances, unit: str, coordinates: Integers, demands: list[RuleDemand]
) -> UnitDemands:
    family = balances.family(unit)
    return UnitDemands(
        unit, family, family.segments.then(), coordinates, tuple(demands)
    )


def _costs(charge: Charge, coordinates: Integers) -> Integers:
    costs = saturated(charge.alone)[:, coordinates]
    return costs[:1].copy() if (costs == costs[0]).all() else costs


def _coordinates(compiled: CompiledPolicy) -> Integers:
    """Return the coordinates that some rule caps, and delta."""
    used = np.zeros(COORDINATES, np.bool_)
    used[DELTA] = True
    for budget, _, _ in compiled.rules.budgets():
        for index, _ in compiled.filter_of(budget).caps:
            used[index] = True
    return np.flatnonzero(used)
