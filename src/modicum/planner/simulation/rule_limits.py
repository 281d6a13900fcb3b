"""What rules limit and types of requests cost, at the coordinates that decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from modicum.accounting import Filter, Loss
from modicum.accounting.filters.unlock_schedule import Schedule
from modicum.accounting.grid import DELTA, EPS
from modicum.planner.allocation.coordinates import deciding
from modicum.planner.allocation.problem import Integers
from modicum.planner.rounds.rule_problem import NEVER, Clauses

#: Coordinates with their caps, of which one must hold.
Clause: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """What rules limit, and what types of requests cost.

    Attributes:
        coordinates: Of the ledger's grid.
        costs: (types, a) in ledger units.
        first: (rules + 1,) where each rule's clauses begin.
        total: (clauses, a) what a group may be charged in its whole life.
    """

    coordinates: tuple[int, ...]
    costs: Integers
    first: Integers
    total: Integers

    def clauses(self, schedule: Schedule) -> Clauses:
        """Return what groups may have been charged by each age."""
        caps = [
            [[_unlocked(schedule, int(cap), age) for cap in clause] for age in ages]
            for ages in [range(1, schedule.rounds + 1)]
            for clause in self.total
        ]
        shape = len(self.total), schedule.rounds, len(self.coordinates)
        return Clauses(self.first, np.array(caps, np.int64).reshape(shape))


def _unlocked(schedule: Schedule, cap: int, age: int) -> int:
    return NEVER if cap < 0 else schedule.cap(cap, age)


def rule_limits(losses: Sequence[Loss], filters: Sequence[Filter]) -> RuleLimits:
    """Return what rules limit, and what types of requests cost.

    Args:
        losses: Of each type.
        filters: Of each rule.

    Returns:
        Only coordinates that can decide for some rule, but at least one. What
        mechanisms have of delta is one of them if there is any.
    """
    found = [_clauses(losses, one) for one in filters]
    used = {index for rule in found for clause in rule for index, _ in clause}
    kept = sorted(used or {EPS})
    column = {index: a for a, index in enumerate(kept)}
    clauses = [clause for rule in found for clause in rule]
    total = np.full((len(clauses), len(kept)), NEVER, np.int64)
    for number, clause in enumerate(clauses):
        for index, cap in clause:
            total[number, column[index]] = cap
    return RuleLimits(
        coordinates=tuple(kept),
        costs=_at(losses, kept),
        first=np.cumsum([0, *map(len, found)]),
        total=total,
    )


def _clauses(
    losses: Sequence[Loss], limit: Filter
) -> list[tuple[tuple[int, int], ...]]:
    """Return the clauses of a filter, each as coordinates with their caps."""
    if not limit.enforced:
        return []
    clauses: list[Clause] = [_decisive(losses, limit)]
    if limit.every:
        clauses = [(cap,) for cap in limit.caps]
    if any(loss.coordinates[DELTA] for loss in losses):
        clauses.append(((DELTA, limit.delta_cap),))
    return clauses


def _decisive(losses: Sequence[Loss], limit: Filter) -> Clause:
    costs = _at(losses, [index for index, _ in limit.caps])
    kept = deciding(costs, np.array([cap for _, cap in limit.caps], np.int64))
    return tuple(limit.caps[a] for a in kept)


def _at(losses: Sequence[Loss], coordinates: Sequence[int]) -> Integers:
    rows = [[loss.coordinates[index] for index in coordinates] for loss in losses]
    return np.array(rows, np.int64).reshape(len(losses), len(coordinates))
