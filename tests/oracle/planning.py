"""The published allocator, by trying everything. Slow and obvious.

Every element of a partitioning attribute is, in every group of users, a *block* of its
own, with its own vector of what is left. Nothing is an interval, a row or a tree.

Where the paper and the published program differ, this follows the paper. The program
looks for requests that do not fit alone group by group, merges the segments of a group,
and only then learns what other groups reject. Here a request that does not fit in some
block is gone from all groups before any segment is formed.

Source:
    Küchler et al. 2024 (S&P), Section 4.3, and Section 4.2 for what is unlocked;
    Tholoniat et al. 2022 (arXiv:2212.13228) for the order of requests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

#: By coordinate. A cost of `INFINITE` fits nowhere.
Vector: TypeAlias = "tuple[int, ...]"
#: The line that an element lies on, and what tells it from others there.
Element: TypeAlias = "tuple[int, ...]"
#: An element, in one group of users.
Block: TypeAlias = "tuple[Element, int]"
#: A line, the requests that ask for the same elements of it, and a group.
Pair: TypeAlias = "tuple[int, frozenset[int], int]"

INFINITE = 2**62


@dataclass(frozen=True)
class Ask:
    """A request: what it is worth, what it costs, and the elements it asks for."""

    weight: int
    cost: Vector
    elements: frozenset[Element]


@dataclass(frozen=True)
class Contest:
    """What is left in a contested segment of a group, and where that holds the most."""

    capacity: Vector
    favored: int


@dataclass(frozen=True)
class World:
    """A round: who asks, in the order of arrival, and what every block has left."""

    asks: tuple[Ask, ...]
    left: Mapping[Block, Vector]

    def blocks_of(self, ask: Ask) -> list[Block]:
        """Return the blocks that a request is charged to."""
        return [block for block in self.left if block[0] in ask.elements]

    def asking(self, element: Element, among: Iterable[int]) -> frozenset[int]:
        """Return who asks for an element."""
        return frozenset(i for i in among if element in self.asks[i].elements)


# --- what fits ------------------------------------------------------------------------


def fits(cost: Vector, left: Vector) -> bool:
    """Return whether there is a coordinate with that much left."""
    return any(c < INFINITE and c <= have for c, have in zip(cost, left, strict=True))


def total(world: World, asks: Iterable[int]) -> Vector:
    """Return what some requests cost together."""
    coordinates = len(next(iter(world.left.values())))
    return tuple(sum(world.asks[i].cost[a] for i in asks) for a in range(coordinates))


def violations(world: World, accepted: Iterable[int]) -> list[Block]:
    """Return the charged blocks in which what is accepted fits at no coordinate."""
    accepted = list(accepted)
    found = []
    for block, left in world.left.items():
        here = sorted(world.asking(block[0], accepted))
        if here and not fits(total(world, here), left):
            found.append(block)
    return found


def alone(world: World) -> frozenset[int]:
    """Return who fits if nobody else is accepted."""
    return frozenset(i for i in range(len(world.asks)) if not violations(world, [i]))


def greedy(world: World, order: Iterable[int]) -> frozenset[int]:
    """Return who is accepted if requests are tried in an order."""
    accepted: frozenset[int] = frozenset()
    for i in order:
        blocks = world.blocks_of(world.asks[i])
        if all(
            fits(
                total(world, world.asking(block[0], accepted | {i})), world.left[block]
            )
            for block in blocks
        ):
            accepted |= {i}
    return accepted


# --- the order of the published allocator ---------------------------------------------


def contests(world: World, alive: frozenset[int]) -> dict[Pair, Contest]:
    """Return the segments of a group that cannot let all of the living pass."""
    segments: dict[Pair, list[Vector]] = {}
    for (element, group), left in world.left.items():
        asking = world.asking(element, alive)
        if asking:
            segments.setdefault((element[0], asking, group), []).append(left)
    found = {}
    for pair, lefts in segments.items():
        wanted = total(world, pair[1])
        if not all(fits(wanted, left) for left in lefts):
            capacity = tuple(max(0, min(least)) for least in zip(*lefts, strict=True))
            found[pair] = Contest(capacity, favored(world, pair[1], capacity))
    return found


def favored(world: World, asks: frozenset[int], capacity: Vector) -> int:
    """Return the coordinate whose knapsack holds the most; of several the last."""
    values = [
        best_filling(
            [(world.asks[i].cost[a], world.asks[i].weight) for i in sorted(asks)], room
        )
        for a, room in enumerate(capacity)
    ]
    return max(range(len(values)), key=lambda a: (values[a], a))


def best_filling(items: Sequence[tuple[int, int]], room: int) -> int:
    """Return the most weight that fits in a knapsack, by trying every subset.

    Args:
        items: The cost and the weight of each.
        room: What may be spent.
    """
    if not items:
        return 0
    (cost, weight), rest = items[0], items[1:]
    without = best_filling(rest, room)
    if cost > room:
        return without
    return max(without, weight + best_filling(rest, room - cost))


def efficiency(
    world: World, contested: Mapping[Pair, Contest], i: int
) -> Fraction | float:
    """Return what a request is worth for what it takes where there is not enough.

    Infinite if it takes nothing there, and 0 if it takes something where nothing is
    left. A cost of nothing takes nothing, even of nothing.
    """
    ask, takes = world.asks[i], Fraction(0)
    for (_, asking, _), contest in contested.items():
        cost, room = ask.cost[contest.favored], contest.capacity[contest.favored]
        if i not in asking or cost == 0:
            continue
        if room == 0:
            return Fraction(0)
        takes += Fraction(cost, room)
    return math.inf if takes == 0 else ask.weight / takes


def rounded(worth: Fraction | float) -> Fraction | float:
    """Return an efficiency to 34 significant bits: what agrees in them is a tie.

    The published program compares floats, whose last bits depend on the order in which
    it added them up.
    """
    if worth in {0, math.inf}:
        return worth
    scale = Fraction(1)
    while worth * scale < 2**33:
        scale *= 2
    while worth * scale >= 2**34:
        scale /= 2
    return round(Fraction(worth * scale)) / scale


def dpk_order(world: World) -> list[int]:
    """Return who fits alone, the most efficient first, else the first to come."""
    alive = alone(world)
    contested = contests(world, alive)
    worth = {i: rounded(efficiency(world, contested, i)) for i in alive}
    return sorted(alive, key=lambda i: (-worth[i], i))


def dpk(world: World) -> frozenset[int]:
    """Return who is accepted."""
    return greedy(world, dpk_order(world))


# --- round after round ----------------------------------------------------------------


def unlocked(budget: Vector, rounds: int, slack: Fraction, age: int) -> Vector:
    """Return what a group may have spent, all its rounds up to an age together."""
    share = Fraction(0)
    for k in range(1, age + 1):
        if 2 * k <= rounds:
            share += (1 + slack) / rounds
        elif 2 * k == rounds + 1:
            share += Fraction(1, rounds)
        else:
            share += (1 - slack) / rounds
    return tuple(math.floor(share * whole) for whole in budget)


@dataclass
class Life:
    """Round after round on a ring: all groups of a sliding window pay for every round.

    Attributes:
        size: How many elements the ring has.
        budget: Of every element, in every group, for all its rounds.
        rounds: For how many rounds a group is active; as many groups are active.
        slack: Of unlocking.
        past: What was accepted in each round so far, the first round first.
    """

    size: int
    budget: Vector
    rounds: int
    slack: Fraction
    past: list[list[Ask]] = field(default_factory=list)

    def elements(self, start: int, width: int) -> frozenset[Element]:
        """Return the elements of a range, which may wrap around."""
        return frozenset((0, (start + i) % self.size) for i in range(width))

    def world(self, asks: Sequence[Ask]) -> World:
        """Return the next round. Group 0 is the youngest, of age 1."""
        return World(tuple(asks), dict(self._left()))

    def _left(self) -> Iterator[tuple[Block, Vector]]:
        for group in range(self.rounds):
            open_ = unlocked(self.budget, self.rounds, self.slack, group + 1)
            lived = self.past[-group:] if group else []
            for point in range(self.size):
                element = (0, point)
                spent = [
                    ask.cost
                    for accepted in lived
                    for ask in accepted
                    if element in ask.elements
                ]
                yield (
                    (element, group),
                    tuple(
                        whole - sum(cost[a] for cost in spent)
                        for a, whole in enumerate(open_)
                    ),
                )

    def close(self, asks: Sequence[Ask], accepted: Iterable[int]) -> None:
        """Charge what was accepted, and go on to the next round."""
        self.past.append([asks[i] for i in accepted])
