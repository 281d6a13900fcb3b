"""Why a request was not accepted: the obstacles, and the rivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modicum.planner.allocation.problem import Booleans, Integers, Problem


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A row that accepts a request at no coordinate.

    Attributes:
        place: The place it is at.
        line: The rule's line that the place lies on.
        block: The balance at that place: the group of users, for instance.
        before: The remainder before the round, by coordinate; negative if nothing
            passes there.
        left: The remainder after the accepted requests, by coordinate.
        needs: The cost of the request, by coordinate.
        rivals: The accepted requests that are charged there, those with the largest
            share of the remainder first.
        alone: Whether the request would not pass even if no other were accepted.
    """

    place: int
    line: int
    block: int
    before: tuple[int, ...]
    left: tuple[int, ...]
    needs: tuple[int, ...]
    rivals: tuple[int, ...]
    alone: bool

    @property
    def coordinate(self) -> int:
        """The coordinate at which the least is missing, relative to the cost."""
        shares = [
            left / cost if cost else float(left < 0) * -np.inf
            for left, cost in zip(self.left, self.needs, strict=True)
        ]
        return max(range(len(shares)), key=lambda a: (shares[a], a))


def why_not(
    problem: Problem, accepted: Booleans, request: int, *, most: int = 10
) -> tuple[Obstacle, ...]:
    """Return the obstacles of a request after others were accepted.

    Args:
        problem: The round.
        accepted: (n,) the accepted requests.
        request: The number of a request that was not.
        most: The maximum number of obstacles; those that the request meets alone come
            first, then those with the least remainder for it.

    Returns:
        Obstacles, at most one for each block at a place; none if it would still fit.
    """
    costs = problem.clamped()
    cost = costs[request]
    found: list[tuple[bool, float, Obstacle]] = []
    for place in _places(problem, request):
        rivals = _present(problem, accepted, place)
        taken = costs[rivals].sum(axis=0, dtype=np.int64)
        seen: set[int] = set()
        for row in range(problem.row_first[place], problem.row_first[place + 1]):
            before, block = problem.left[row], int(problem.block[row])
            left = before - taken
            if (cost <= left).any() or block in seen:
                continue
            seen.add(block)
            alone = not bool((cost <= before).any())
            obstacle = Obstacle(
                place=int(place),
                line=int(problem.line[place]),
                block=block,
                before=tuple(before.tolist()),
                left=tuple(left.tolist()),
                needs=tuple(problem.costs[request].tolist()),
                rivals=tuple(_by_share(costs[rivals], before, rivals)),
                alone=alone,
            )
            room = float((left / np.maximum(cost, 1)).max())
            found.append((not alone, room, obstacle))
    found.sort(key=lambda one: one[:2])
    return tuple(obstacle for _, _, obstacle in found[:most])


def _places(problem: Problem, request: int) -> Integers:
    first, last = problem.run_first[request], problem.run_first[request + 1]
    runs = [
        np.arange(problem.run_start[run], problem.run_stop[run])
        for run in range(first, last)
    ]
    return np.concatenate([np.empty(0, np.int64), *runs])


def _present(problem: Problem, accepted: Booleans, place: int) -> Integers:
    """Return the accepted requests that are charged at a place."""
    there = (problem.run_start <= place) & (place < problem.run_stop)
    owner = np.repeat(np.arange(problem.requests), np.diff(problem.run_first))
    return owner[there & accepted[owner]]


def _by_share(costs: Integers, before: Integers, rivals: Integers) -> list[int]:
    """Return the rivals with the largest share of the remainder first."""
    open_ = before > 0
    shares = (costs[:, open_] / before[open_]).min(axis=1, initial=np.inf)
    order = np.argsort(-shares, kind="stable")
    found: list[int] = rivals[order].tolist()
    return found
