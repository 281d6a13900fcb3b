"""Whether a run under rules kept every promise: added up element by element.

There are no segments here, no histories and no accounts that several months share. A
group of users is charged what was accepted while it was active; a rule must hold for
it in every month, at every element, after every round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Charge:
    """What one accepted request takes.

    Attributes:
        round: In which round it was accepted.
        start: The first element that it reads.
        width: How many it reads, on over the end of the ring.
        cost: By coordinate.
        rules: What it falls under.
        month: The month that it reads; None if it tells of every month.
    """

    round: int
    start: int
    width: int
    cost: Vector
    rules: frozenset[str]
    month: int | None


@dataclass(frozen=True)
class Limit:
    """A rule.

    Attributes:
        caps: By coordinate; those that it does not have are missing.
        every: Whether all of them must hold; else one is enough.
        delta: The coordinate of what mechanisms have of delta, and its cap.
        by_month: Whether there is one account for each month.
    """

    caps: Mapping[int, int]
    every: bool
    delta: tuple[int, int]
    by_month: bool


@dataclass(frozen=True)
class Told:
    """What happened.

    Attributes:
        size: How many elements the ring has.
        rounds: The numbers of the rounds.
        life: For how many rounds a group is active.
        slack: Of unlocking.
        limits: The rules.
        charges: What was accepted.
    """

    size: int
    rounds: range
    life: int
    slack: Fraction
    limits: Mapping[str, Limit]
    charges: tuple[Charge, ...]


class Overdrawn(NamedTuple):
    """Where a rule does not hold."""

    rule: str
    month: int | None
    group: int
    round: int


def overdrawn(told: Told) -> list[Overdrawn]:
    """Return every place where a rule does not hold after some round."""
    found = []
    for rule, limit in told.limits.items():
        own = [charge for charge in told.charges if rule in charge.rules]
        for month, charges in by_month(own, limit):
            for group, round_ in _broken(told, limit, charges):
                found.append(Overdrawn(rule, month, group, round_))
    return found


def by_month(
    own: list[Charge], limit: Limit
) -> Iterator[tuple[int | None, list[Charge]]]:
    """Yield the charges of each account of a rule."""
    if not limit.by_month:
        yield None, own
        return
    months = {charge.month for charge in own}
    # What tells of every month is charged to months that nobody names as well.
    named = sorted(month for month in months if month is not None)
    for month in named or months:
        yield month, [one for one in own if one.month in (None, month)]


def _broken(
    told: Told, limit: Limit, charges: list[Charge]
) -> Iterator[tuple[int, int]]:
    """Yield the group and the round in which one account was charged too much."""
    # Who is at an element reads it from some first element on: all that are there
    # are also where the last of them begins. So nowhere is more than where one begins.
    points = np.array(sorted({charge.start for charge in charges}), np.int64)
    taken = {
        round_: _at(
            points, [one for one in charges if one.round == round_], told, limit
        )
        for round_ in told.rounds
    }
    for group in range(told.rounds.start - told.life + 1, told.rounds.stop):
        total = np.zeros_like(next(iter(taken.values())))
        for age in range(1, told.life + 1):
            round_ = group + age - 1
            if round_ in told.rounds:
                total = total + taken[round_]
                if not _holds(total, limit, unlocked(told, age)):
                    yield group, round_


def _at(
    points: np.ndarray, charges: Iterable[Charge], told: Told, limit: Limit
) -> np.ndarray:
    """Return what charges take at each point together, coordinate by coordinate."""
    # One cost above a cap is above it in any sum, and need not be added up exactly.
    above = max([*limit.caps.values(), limit.delta[1], 0]) + 1
    indices = [*limit.caps, limit.delta[0]]
    total = np.zeros((len(points), len(indices)), np.int64)
    for charge in charges:
        there = (points - charge.start) % told.size < charge.width
        total[there] += np.array([min(charge.cost[i], above) for i in indices])
    return total


def unlocked(told: Told, age: int) -> Fraction:
    """Return which part of a budget is open at an age."""
    life, share = told.life, Fraction(0)
    for step in range(1, age + 1):
        ahead = (2 * step <= life) - (2 * step > life + 1)
        share += (1 + ahead * told.slack) / life
    return share


def _holds(total: np.ndarray, limit: Limit, share: Fraction) -> bool:
    caps = [math.floor(share * cap) for cap in limit.caps.values()]
    within = total[:, :-1] <= np.array(caps, np.int64)
    enough = within.all(axis=1) if limit.every else within.any(axis=1)
    delta = total[:, -1] <= math.floor(share * limit.delta[1])
    return bool((enough & delta).all())
