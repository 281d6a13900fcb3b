"""Running a workload whose requests carry labels under the rules of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from msgspec import structs

from modicum.accounting import Filter, Loss
from modicum.accounting.filters.unlock_schedule import Schedule
from modicum.accounting.grid import DELTA, EPS
from modicum.core.errors import check
from modicum.planner.allocation.engine import Engine, EngineOf
from modicum.planner.allocation.problem import Booleans, Integers, Problem, deciding
from modicum.planner.rounds.line_accounts import LineDemands, demands_of
from modicum.planner.rounds.periods import Slots, Tracked
from modicum.planner.rounds.ring import Ranges
from modicum.planner.rounds.rule_problem import (
    NEVER,
    Accounts,
    Batch,
    Clauses,
    RuledHistory,
    ruled_problem,
)
from modicum.planner.simulation.labels import Labeled
from modicum.planner.simulation.setting import Setting, refuse_overflow
from modicum.planner.simulation.simulation import Run, Watch, play
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_policy
from modicum.workloads.dpolicy import month_of
from modicum.workloads.model import Requests, Workload

#: Coordinates with their caps, of which one must hold.
Clause: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """The limits of rules, and the costs of request types.

    Attributes:
        coordinates: Of the ledger's grid.
        costs: (types, a) in ledger units.
        first: (rules + 1,) where each rule's clauses begin.
        total: (clauses, a) the limit of a group for its whole life.
    """

    coordinates: tuple[int, ...]
    costs: Integers
    first: Integers
    total: Integers

    def clauses(self, schedule: Schedule) -> Clauses:
        """Return the limits of groups by age."""
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
    """Return the limits of rules, and the costs of request types.

    Args:
        losses: Of each type.
        filters: Of each rule.

    Returns:
        Only coordinates that can be decisive for some rule, but at least one. The
        mechanisms' own delta is one of them if there is any.
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


#: The months that the original tracks one by one.
PUBLISHED_MONTHS = Tracked(before=0, after=3)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The enforced rules, and how periods are distinguished.

    Attributes:
        policy: The policy.
        rules: The numbers of the rules that are held; None for those that are kept
            when the policy is pruned.
        tracked: Which months have an account each.
        static_everywhere: Whether reading a static attribute is charged to every month,
            as in the ledger; if not, to the month of the request, as in the original.
    """

    policy: CompiledPolicy
    rules: tuple[int, ...] | None = None
    tracked: Tracked = PUBLISHED_MONTHS
    static_everywhere: bool = True

    def held(self) -> tuple[int, ...]:
        """Return the numbers of the rules that are held."""
        return self.policy.pruned.kept if self.rules is None else self.rules


def simulate_ruled(
    workload: Workload,
    setting: Setting,
    scenario: Scenario,
    engine_of: EngineOf,
    watch: Watch | None = None,
) -> Run:
    """Return the result of a workload under the rules of a policy.

    Args:
        workload: The requests; they have labels.
        setting: How it is planned. Its budget is not looked at: rules have their own.
        scenario: The enforced rules.
        engine_of: Makes the engine for each round's problem; all give the same run.
        watch: Called after each step.

    Raises:
        InputError: If the requests have no labels, or labels that the policy does not
            know; if a period of the policy is not a month, or the filter of the
            setting is not proven for some budget; if there are no requests, or
            budgets or utilities are too large to be added up.
    """
    world = RuledWorld(workload, setting, scenario)
    return play(workload, setting, world, engine_of, watch)


class RuledWorld:
    """User groups, each divided by a ring of elements, under many rules.

    Args:
        workload: The requests.
        setting: How it is planned.
        scenario: The enforced rules.
    """

    def __init__(
        self, workload: Workload, setting: Setting, scenario: Scenario
    ) -> None:
        scenario = replace(scenario, policy=filtered(scenario.policy, setting.filter))
        self._size = workload.domain if setting.partitioning else 1
        self._setting = setting
        self._labeled = Labeled(
            workload,
            scenario.policy,
            scenario.held(),
            static_everywhere=scenario.static_everywhere,
        )
        self._limits = limits_of(workload, setting, scenario)
        refuse_overflow(workload, setting, int(self._limits.total.max(initial=0)))
        self._clauses = self._limits.clauses(setting.schedule)
        rounds = workload.round_numbers
        own = month_of(np.concatenate([self._joined(one) for one in rounds]))
        self._slots = Slots(scenario.tracked, int(own.min()), int(own.max()))
        self._history = RuledHistory()
        self._batch: Batch | None = None

    def problem(self, requests: Requests, round_: int) -> Problem:
        """Return the problem of a round."""
        own = month_of(self._joined(round_))
        self._batch = Batch(
            asks=self._asks(requests, own),
            costs=self._limits.costs[requests.type],
            weights=requests.utility,
            fresh=requests.round == round_,
        )
        accounts = Accounts(self._size, self._slots.about(own))
        return ruled_problem(self._batch, self._clauses, accounts, self._history)

    def engine(self, problem: Problem, engine: Engine) -> Engine:
        """Return the engine for allocators: the given one."""
        del problem
        return engine

    def spend(self, problem: Problem, requests: Requests, accepted: Booleans) -> None:
        """Charge the accepted requests of the last problem's round."""
        del problem, requests
        check(self._batch is not None, "scenario: a round is planned, then charged")
        if self._batch is not None:
            self._history.add(self._batch, accepted, self._clauses)

    def unlocked(self, problem: Problem) -> Integers:
        """Return the total limit of each row of the last problem so far."""
        line = np.repeat(problem.line, np.diff(problem.row_first))
        group, number = np.divmod(problem.block, max(1, self._clauses.most))
        clause = self._clauses.first[line // len(self._slots)] + number
        return self._clauses.caps[clause, group]

    def _joined(self, round_: int) -> Integers:
        """Return the rounds in which groups became active, the youngest first.

        In the numbering of workloads, which is the published one: a group is active
        from the round in which it joins, and the first joins in round 0.
        """
        return round_ - np.arange(self._setting.schedule.rounds)

    def _asks(self, requests: Requests, own: Integers) -> LineDemands:
        owner, slot, rule = self._labeled.charged(requests, self._slots, np.unique(own))
        account = rule * len(self._slots) + slot
        return demands_of(self._ranges(requests), owner, account)

    def _ranges(self, requests: Requests) -> Ranges:
        if self._setting.partitioning:
            return Ranges(self._size, requests.first, requests.width)
        return Ranges(1, np.zeros_like(requests.first), np.ones_like(requests.first))


def filtered(policy: CompiledPolicy, name: str) -> CompiledPolicy:
    """Return a policy under a filter; pruning depends on it.

    Raises:
        InputError: If the filter is not proven for some budget.
    """
    if policy.policy.filter_name == name:
        return policy
    return compile_policy(structs.replace(policy.policy, filter_name=name))


def limits_of(workload: Workload, setting: Setting, scenario: Scenario) -> RuleLimits:
    """Return the limits of the enforced rules, and the costs of the requests."""
    rules = scenario.policy.rules
    types = workload.types
    kinds = types if setting.subsampling else [one.on_everybody() for one in types]
    return rule_limits(
        [kind.loss(setting.pricing) for kind in kinds],
        [scenario.policy.filter_of(rules[rule].budget) for rule in scenario.held()],
    )
