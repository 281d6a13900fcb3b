"""The final loss of a run, rule by rule, enforced or not.

Months are considered separately here, independent of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from modicum.accounting import COORDINATES, ApproxBudget, Filter, filter_for
from modicum.accounting.grid import DELTA, INFINITE
from modicum.core.errors import InputError, check
from modicum.planner.allocation.problem import Booleans, Integers
from modicum.planner.rounds.ring import Ranges, spent_on
from modicum.planner.simulation.labels import (
    is_timed,
    labels_of,
    matching,
    reads_static,
)
from modicum.planner.simulation.simulation import Run
from modicum.policy import CompiledPolicy

#: Resolution of losses: one over this, rounded up.
STEPS = 1000


class Meter:
    """Sums the charges of a run to each user group over its whole life.

    Args:
        run: The result of a workload; its requests have labels.
        policy: The policy with the rules.
        static_everywhere: Whether reading a static attribute is charged to every month,
            and not only to the month of the request.
    """

    def __init__(
        self, run: Run, policy: CompiledPolicy, *, static_everywhere: bool
    ) -> None:
        requests = run.workload.requests
        self._run, self._policy = run, policy
        self._month = labels_of(requests).month
        self._everywhere = static_everywhere & reads_static(policy, labels_of(requests))
        rules = range(len(policy.rules))
        found = matching(policy, labels_of(requests), rules)
        self._matches = np.zeros((len(policy.rules), len(requests)), np.bool_)
        for request, numbers in enumerate(found):
            self._matches[numbers, request] = True
        self._costs = _costs(run)

    def highest(self, rule: int, most: Fraction) -> Fraction:
        """Return the highest loss of any user group under a rule.

        Args:
            rule: Its number; its budget has an epsilon and a delta.
            most: It is not more than that.

        Returns:
            The least epsilon whose filter would admit the charge of each group, in each
            month, at each element; rounded up to a step.
        """
        budget = self._policy.rules[rule].budget
        check(isinstance(budget, ApproxBudget), "a scenario has (eps, delta) budgets")
        delta = budget.delta if isinstance(budget, ApproxBudget) else Fraction(0)
        rows = self.charged(rule)
        rows = rows[(rows > 0).any(axis=1)]
        low, high = 0, -(-most * STEPS // 1) if len(rows) else 0
        while low < high:
            middle = (low + high) // 2
            over = rows[~self._admits(rows, Fraction(middle, STEPS), delta)]
            # What fits now fits a larger budget; only the others remain to be checked.
            low, high, rows = (
                (middle + 1, high, over) if len(over) else (low, middle, rows)
            )
        return Fraction(low, STEPS)

    def violates(self, rule: int) -> bool:
        """Return whether some group was charged more than the rule's whole budget."""
        limit = self._policy.filter_of(self._policy.rules[rule].budget)
        return not bool(admitted(self.charged(rule), limit).all())

    def charged(self, rule: int) -> Integers:
        """Return the charges of groups under a rule at elements.

        Returns:
            (rows, coordinates of the grid): all that some group was charged in some
            month at some element, in its whole life.
        """
        found = [np.zeros((1, COORDINATES), np.int64)]
        for chosen in self._together(rule):
            if chosen.any():
                kept = np.flatnonzero(chosen)
                requests = self._run.workload.requests
                ranges = Ranges(
                    self._run.workload.domain,
                    requests.first[kept],
                    requests.width[kept],
                )
                everybody = np.ones(len(kept), np.bool_)
                found.append(spent_on(ranges, self._costs[kept], everybody).costs)
        return np.concatenate(found)

    def _together(self, rule: int) -> Iterator[Booleans]:
        """Yield the charges to one account in the life of one group."""
        timed = is_timed(self._policy, self._policy.rules[rule].unit)
        for life in _lives(self._run):
            chosen = self._matches[rule] & life
            if not timed:
                yield chosen
                continue
            for month in np.unique(self._month[chosen]).tolist():
                yield chosen & (self._everywhere | (self._month == month))

    def _admits(self, rows: Integers, eps: Fraction, delta: Fraction) -> Booleans:
        if eps == 0:
            return np.zeros(len(rows), np.bool_)
        name = self._policy.policy.filter_name
        try:
            limit = filter_for(ApproxBudget(eps, delta), name)
        except InputError:  # So little that no order is left.
            return np.zeros(len(rows), np.bool_)
        return admitted(rows, limit)


def admitted(rows: Integers, limit: Filter) -> Booleans:
    """Return which sums of losses are within a filter.

    Args:
        rows: (rows, coordinates of the grid).
        limit: The filter.
    """
    if not limit.enforced:
        return np.ones(len(rows), np.bool_)
    indices = [index for index, _ in limit.caps]
    caps = np.array([cap for _, cap in limit.caps], np.int64)
    within = rows[:, indices] <= caps
    enough = within.all(axis=1) if limit.every else within.any(axis=1)
    found: Booleans = enough & (rows[:, DELTA] <= limit.delta_cap)
    return found


def _lives(run: Run) -> Iterator[Booleans]:
    """Yield the accepted requests in the life of a group, for groups with whole lives.

    A user active only for a part of the run was charged no more than one of them.
    """
    numbers, rounds = run.workload.round_numbers, run.setting.schedule.rounds
    for first in range(numbers.start, max(numbers.stop - rounds, numbers.start) + 1):
        yield (run.accepted_in >= first) & (run.accepted_in < first + rounds)


def _costs(run: Run) -> Integers:
    """Return the costs of requests, bounded so that all of them can be summed."""
    setting, requests = run.setting, run.workload.requests
    types = requests.types
    kinds = types if setting.subsampling else [one.on_everybody() for one in types]
    losses = [kind.loss(setting.pricing).coordinates for kind in kinds]
    costs = np.array(losses, np.int64).reshape(len(types), COORDINATES)
    return np.minimum(costs, (INFINITE - 1) // (len(requests) + 1))[requests.type]
