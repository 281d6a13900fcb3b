"""The costliest few days of a user: which days to choose, of those that entries cover.

A *day* is a whole number on an axis. An entry is a set of days, as disjoint runs; it
costs `per[k]` if k of its days are chosen, where per[0] = 0 and per does not fall.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from modicum.accounting.neighborhoods.line_sweep import Integers, integers
from modicum.accounting.neighborhoods.regions import are_apart_or_equal, merged

#: Disjoint runs of days, each up to but not including its end.
Runs: TypeAlias = Sequence[tuple[int, int]]

# Beyond this number of steps, the choice of days is bounded instead of solved.
_WORK_MAX = 20_000_000
# Maximum number of choices of days tried to reach a bound.
_GUESSES_MAX = 200


@dataclass(frozen=True, slots=True)
class Demand:
    """One entry's days and costs.

    Attributes:
        runs: Its days: disjoint runs, in order.
        per: Its cost if 0, 1, 2, ... of its days are chosen; the last holds for any
            more.
        even: Whether it costs that whichever of its days they are; else that is an
            upper bound, reached by some.
    """

    runs: tuple[tuple[int, int], ...]
    per: tuple[int, ...]
    even: bool = True

    def cost(self, days: int) -> int:
        """Return its cost for a number of its days."""
        return self.per[min(days, len(self.per) - 1)]

    def days(self) -> int:
        """Return how many days it has."""
        return sum(right - left for left, right in self.runs)

    def is_flat(self) -> bool:
        """Return whether one day costs as much as all."""
        return self.per[1] == self.per[-1]

    def is_straight(self, at_most: int) -> bool:
        """Return whether each day up to a number adds the same."""
        counts = range(min(at_most, self.days()) + 1)
        return all(self.cost(days) == days * self.per[1] for days in counts)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The costliest choice of days.

    Attributes:
        cost: Its cost, or an upper bound.
        runs: The days, as disjoint runs in order; if the cost is a bound, the
            costliest that were found.
        exact: Whether these days cost just that.
    """

    cost: int
    runs: tuple[tuple[int, int], ...]
    exact: bool = True

    def count_in(self, runs: Runs) -> int:
        """Return how many of the days lie in some runs."""
        return sum(
            max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in self.runs for b in runs
        )


def costliest_days(demands: Sequence[Demand], at_most: int) -> Chosen:
    """Return the maximum joint cost of a number of days.

    Exact if the bound on days does not bind; for one day; if every entry costs the
    same for each day; if every entry is one run that costs the same however many of
    its days are chosen; or if any two entries have the same days or none in common.
    Otherwise an upper bound: these problems contain maximum coverage.

    Args:
        demands: The entries; those without days may be left out.
        at_most: The maximum number of days, >= 1.

    Examples:
        >>> a, b = Demand(((0, 7),), (0, 1, 4)), Demand(((7, 9),), (0, 2, 8))
        >>> costliest_days([a, b], 3)
        Chosen(cost=9, runs=((0, 1), (7, 9)), exact=True)
    """
    kept = [demand for demand in demands if demand.runs and demand.per[-1]]
    if not kept:
        return Chosen(0, ())
    everything = merged([run for demand in kept for run in demand.runs])
    if at_most >= sum(right - left for left, right in everything):
        cost = sum(demand.cost(demand.days()) for demand in kept)
        return Chosen(cost, tuple(everything))
    if at_most == 1:
        return _deepest_days(kept, 1)
    best = _best_choice(kept, at_most)
    return replace(best, exact=best.exact and all(demand.even for demand in kept))


def _best_choice(demands: Sequence[Demand], at_most: int) -> Chosen:
    if all(demand.is_straight(at_most) for demand in demands):
        return _deepest_days(demands, at_most)
    if any(len(demand.runs) > 1 for demand in demands):
        return _bounded(demands, at_most)
    starts = {demand.runs[0][0] for demand in demands}
    if are_apart_or_equal([demand.runs[0] for demand in demands]):
        if len(starts) * at_most**2 <= _WORK_MAX:
            return _filled_windows(demands, at_most)
    elif (
        all(demand.is_flat() for demand in demands)
        and len(starts) ** 2 * min(at_most, len(starts)) <= 10 * _WORK_MAX
    ):
        return _stabbed(demands, at_most)
    return _bounded(demands, at_most)


def _corners(demands: Sequence[Demand]) -> tuple[int, ...]:
    """Return days between which the set of entries does not change."""
    lefts = {left for demand in demands for left, _ in demand.runs}
    rights = {right for demand in demands for _, right in demand.runs}
    return tuple(sorted(lefts | rights))


def _depths(demands: Sequence[Demand], corners: Sequence[int]) -> list[int]:
    """Return the cost of one day at each corner, and the days up to the next."""
    place = {day: index for index, day in enumerate(corners)}
    changes = [0] * (len(corners) + 1)
    for demand in demands:
        for left, right in demand.runs:
            changes[place[left]] += demand.per[1]
            changes[place[right]] -= demand.per[1]
    depth, found = 0, []
    for change in changes[:-1]:
        depth += change
        found.append(depth)
    return found


def _deepest_days(demands: Sequence[Demand], at_most: int) -> Chosen:
    """Each day costs the sum of its entries: take the costliest ones."""
    corners = _corners(demands)
    depth = _depths(demands, corners)
    runs: list[tuple[int, int]] = []
    cost, room = 0, at_most
    for index in sorted(range(len(corners)), key=depth.__getitem__, reverse=True):
        if room and depth[index]:
            taken = min(room, corners[index + 1] - corners[index])
            runs.append((corners[index], corners[index] + taken))
            cost, room = cost + taken * depth[index], room - taken
    return Chosen(cost, tuple(merged(runs)))


def _filled_windows(demands: Sequence[Demand], at_most: int) -> Chosen:
    """Disjoint windows: a knapsack over the days given to each."""
    windows: dict[tuple[int, int], list[Demand]] = defaultdict(list)
    for demand in demands:
        windows[demand.runs[0]].append(demand)
    best = [0] + [-1] * at_most  # The maximum cost of exactly this many days.
    taken: list[list[int]] = []
    for (left, right), own in sorted(windows.items()):
        counts = range(min(at_most, right - left) + 1)
        costs = [sum(demand.cost(days) for demand in own) for days in counts]
        further, choice = [-1] * (at_most + 1), [0] * (at_most + 1)
        for used in range(at_most + 1):
            for days in counts:
                if days <= used and best[used - days] >= 0:
                    cost = best[used - days] + costs[days]
                    if cost > further[used]:
                        further[used], choice[used] = cost, days
        best = further
        taken.append(choice)
    used = max(range(at_most + 1), key=best.__getitem__)
    cost, runs = best[used], []
    lefts = sorted((left for left, _ in windows), reverse=True)
    for left, choice in zip(lefts, reversed(taken), strict=True):
        runs.append((left, left + choice[used]))
        used -= choice[used]
    return Chosen(cost, tuple(merged(runs)))


def _stabbed(demands: Sequence[Demand], at_most: int) -> Chosen:
    """Choose days one after the other; each counts the runs begun since the last."""
    days = sorted({demand.runs[0][0] for demand in demands})
    gained = _gains(demands, days)
    best, before = gained[0], []
    later = np.tri(len(days), k=-1, dtype=bool).T
    for _ in range(min(at_most, len(days)) - 1):
        # Row s + 1 of the gains: what a day adds if day s was the last one chosen.
        sums = np.where(later, best[:, None] + gained[1:], -1)
        reached = sums.max(axis=0)
        better = reached > best
        before.append(np.where(better, np.argmax(sums, axis=0), np.arange(len(days))))
        best = np.where(better, reached, best)
    place = int(np.argmax(best))
    chosen = {place}
    for step in reversed(before):
        place = int(step[place])
        chosen.add(place)
    runs = [(days[index], days[index] + 1) for index in chosen]
    return Chosen(int(best.max()), tuple(merged(runs)))


def _gains(demands: Sequence[Demand], days: Sequence[int]) -> Integers:
    """Return what each day adds to the cost, by the day chosen last before it.

    Shape (days + 1, days); the first row is for no day before.
    """
    total = sum(demand.per[-1] for demand in demands)
    size = len(days)
    gained = integers([0] * ((size + 2) * size), bound=2 * total).reshape(-1, size)
    for demand in demands:
        left, right = demand.runs[0]
        first, after = np.searchsorted(days, (left, right))
        gained[0, first:after] += demand.per[-1]
        gained[first + 1, first:after] -= demand.per[-1]
    return np.cumsum(gained, axis=0)[:-1]


def _bounded(demands: Sequence[Demand], at_most: int) -> Chosen:
    """Let every entry choose its days separately, or every day all its entries.

    The days named are the best of a few guesses; often they reach the bound.
    """
    bound = sum(demand.cost(min(at_most, demand.days())) for demand in demands)
    deepest = _deepest_days(demands, 1)
    if all(demand.is_flat() for demand in demands):
        bound = min(bound, at_most * deepest.cost)
    guesses = [_deepest_days(demands, at_most).runs]
    starts = {left for demand in demands for left, _ in demand.runs}
    starts |= {right - at_most for demand in demands for _, right in demand.runs}
    everywhere = merged([run for demand in demands for run in demand.runs])
    guesses += [_first_days(everywhere, start, at_most) for start in sorted(starts)]
    reached = [_cost_of(demands, guess) for guess in guesses[:_GUESSES_MAX]]
    best = max(range(len(reached)), key=reached.__getitem__)
    return Chosen(bound, guesses[best], exact=reached[best] == bound)


def _first_days(runs: Runs, start: int, count: int) -> tuple[tuple[int, int], ...]:
    """Return this many days of some runs, from a day on."""
    found = []
    for left, right in runs:
        first = max(left, start)
        if count and first < right:
            found.append((first, min(right, first + count)))
            count -= found[-1][1] - first
    return tuple(found)


def _cost_of(demands: Sequence[Demand], runs: Runs) -> int:
    chosen = Chosen(0, tuple(runs))
    return sum(demand.cost(chosen.count_in(demand.runs)) for demand in demands)
