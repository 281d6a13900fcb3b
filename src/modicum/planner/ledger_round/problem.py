"""The problem of a round on the balances of a ledger.

A place is a cell: a segment, under one rule over history. Only cells that cannot let
all requests of the round pass are places. Its rows are the clauses of the rule's
filter, as far as it is unlocked there, less what the cell was charged. A request costs
every unit something else, and so every unit has coordinates of its own; at a place of
one unit, nothing passes at those of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from modicum.accounting.grid import EPS
from modicum.ledger import Balances, RecordedRelease
from modicum.planner.allocation.problem import Booleans, Integers, Problem
from modicum.planner.ledger_round.beforehand import LeftOut, left_out
from modicum.planner.ledger_round.limiting import NEVER, RuleRows, limiting_rows
from modicum.planner.ledger_round.refusing import refuse_odd_weights, refuse_too_many
from modicum.planner.ledger_round.requests import UnitAsks, asked_by_unit
from modicum.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class RoundProblem:
    """A round, and what its numbers stand for.

    Attributes:
        problem: What may be accepted. Its requests are some of those of the round; the
            line of a place is the number of its rule, the block of a row its clause.
        numbers: (n,) which request of the round each request of the problem is.
        left_out: The other requests of the round.
        exact: (n,) for which requests the problem says just what the ledger will. The
            others cost more at some place than they will be charged there, never less.
        coordinates: By coordinate of the problem, its unit and that of the ledger.
        segments: (p,) the segment of each place.
        asked: What the requests ask, by unit.
        compiled: The policy.
    """

    problem: Problem
    numbers: Integers
    left_out: tuple[LeftOut, ...]
    exact: Booleans
    coordinates: tuple[tuple[str, int], ...]
    segments: Integers
    asked: tuple[UnitAsks, ...]
    compiled: CompiledPolicy

    def cell_words(self, place: int) -> str:
        """Return the cell of a place in words; empty if it is everything.

        Args:
            place: The number of the place.
        """
        unit = self.compiled.rules[int(self.problem.line[place])].unit
        (asked,) = (one for one in self.asked if one.unit == unit)
        boxes = asked.then.boxes(int(self.segments[place]))
        return asked.family.space.words(boxes[0])


def problem_of(
    balances: Balances,
    requests: Sequence[RecordedRelease],
    weights: Sequence[int],
    day: int,
) -> RoundProblem:
    """Return the problem of a round.

    Args:
        balances: A scratch copy; its segments are cut.
        requests: What is asked for, in the order in which it came.
        weights: What each of them is worth.
        day: The day on which they are decided, as an ordinal.

    Raises:
        InputError: If weights are negative, there is not one for each request, or
            numbers are too large or too many.
    """
    refuse_odd_weights(weights, len(requests))
    out = left_out(balances, requests, day)
    gone = {one.request for one in out}
    numbers = [number for number in range(len(requests)) if number not in gone]
    kept = [requests[number] for number in numbers]
    units, exact = asked_by_unit(balances, kept, day)
    made = Assembled(_parts(balances, units, len(kept)), exact)
    worth = np.array([weights[number] for number in numbers], np.int64)
    return RoundProblem(
        problem=made.problem(worth),
        numbers=np.array(numbers, np.int64),
        left_out=out,
        exact=made.exact,
        coordinates=made.coordinates,
        segments=made.segments,
        asked=units,
        compiled=balances.compiled,
    )


@dataclass(frozen=True, slots=True)
class UnitPart:
    """What is asked of one unit, and the rows that can turn it away.

    Attributes:
        asked: What is asked.
        rules: The rows, by rule.
    """

    asked: UnitAsks
    rules: tuple[RuleRows, ...]

    @property
    def width(self) -> int:
        """How many coordinates the unit has."""
        return len(self.asked.coordinates)

    def bounds(self, requests: int) -> tuple[Integers, Integers]:
        """Return the least and the most that each request costs at a place.

        Args:
            requests: How many there are.

        Returns:
            (requests, a) each; `NEVER` for a request that has no place.
        """
        places = self._places()
        least = np.full((requests, self.width), NEVER)
        most = least.copy()
        for ask in self.asked.asks:
            met = [places[rule][ask.segments] for rule in ask.rules if rule in places]
            there = np.logical_or.reduce(met) if met else np.zeros(0, np.bool_)
            if not there.any():
                continue
            costs = ask.costs if len(ask.costs) == 1 else ask.costs[there]
            low, one = costs.min(axis=0), ask.request
            known = least[one, 0] != NEVER
            least[one] = np.minimum(least[one], low) if known else low
            most[one] = np.maximum(most[one], costs.max(axis=0))
        return least, most

    def _places(self) -> dict[int, Booleans]:
        """Return, by rule, which segments are places."""
        found = {}
        for one in self.rules:
            there = np.zeros(self.asked.family.segments.count, np.bool_)
            there[one.segments] = True
            found[one.rule] = there
        return found


class Assembled:
    """The parts of units, put into the arrays of one problem.

    Args:
        parts: By unit.
        read: (n,) which requests are charged for what they read, and no more.

    Attributes:
        coordinates: By coordinate, its unit and that of the ledger.
        exact: (n,) which requests cost the same at all places of a unit.
        segments: (p,) the segment of each place.
    """

    def __init__(self, parts: Sequence[UnitPart], read: Booleans) -> None:
        self._rows = [(part, one) for part in parts for one in part.rules]
        bounds = [part.bounds(len(read)) for part in parts]
        nothing = np.zeros((len(read), 0), np.int64)
        least = np.concatenate([nothing, *(low for low, _ in bounds)], axis=1)
        most = np.concatenate([nothing, *(high for _, high in bounds)], axis=1)
        before = [0, *accumulate(part.width for part in parts)]
        self._column = {
            part.asked.unit: column for part, column in zip(parts, before, strict=False)
        }
        left = self._spread(before[-1], [one.left for _, one in self._rows])
        used = _useful(left, most)
        names = [
            (part.asked.unit, index)
            for part in parts
            for index in part.asked.coordinates.tolist()
        ]
        self.coordinates = tuple(names[a] for a in used.tolist()) or (("", EPS),)
        self.exact = read & (least[:, used] == most[:, used]).all(axis=1)
        self.segments = _joined(one.segments for _, one in self._rows)
        self._costs = _at_least_one_column(np.maximum(most[:, used], 0), 0)
        self._left = _at_least_one_column(left[:, used], NEVER)
        caps = self._spread(before[-1], [one.caps for _, one in self._rows])
        self._caps = _at_least_one_column(caps[:, used], NEVER)

    def _spread(self, width: int, found: Sequence[Integers]) -> Integers:
        """Return rows of the coordinates of one unit as rows of all coordinates."""
        spread = np.full((sum(map(len, found)), width), NEVER, np.int64)
        row = 0
        for (part, _), own in zip(self._rows, found, strict=True):
            column = self._column[part.asked.unit]
            spread[row : row + len(own), column : column + part.width] = own
            row += len(own)
        return spread

    def problem(self, weights: Integers) -> Problem:
        """Return the problem.

        Args:
            weights: (n,) what each request is worth.
        """
        rows = [one for _, one in self._rows]
        first = [0, *accumulate(len(one.segments) for one in rows)]
        pairs = list(zip(rows, first, strict=False))
        owner = _joined(one.owner for one in rows)
        by_owner = np.argsort(owner, kind="stable")
        place = _joined(one.cell + begin for one, begin in pairs)
        block = _joined(one.clause for one in rows)
        return Problem(
            weights=weights,
            costs=self._costs,
            run_first=_first(owner[by_owner], len(weights)),
            run_start=_joined(one.start + begin for one, begin in pairs)[by_owner],
            run_stop=_joined(one.stop + begin for one, begin in pairs)[by_owner],
            row_first=_first(place, first[-1]),
            left=self._left,
            block=block,
            line=_joined(np.full(len(one.segments), one.rule) for one in rows),
            full=_full(self._caps, block),
        )


def _useful(left: Integers, costs: Integers) -> Integers:
    """Return the coordinates at which somebody may pass somewhere."""
    most = left.max(axis=0, initial=NEVER)
    return np.flatnonzero(((costs >= 0) & (costs <= most)).any(axis=0))


def _at_least_one_column(table: Integers, value: int) -> Integers:
    if table.shape[1]:
        return np.ascontiguousarray(table)
    return np.full((len(table), 1), value, np.int64)


def _full(caps: Integers, block: Integers) -> Integers:
    """Return, by block, the most that is unlocked at any row."""
    full = np.zeros((int(block.max(initial=0)) + 1, caps.shape[1]), np.int64)
    np.maximum.at(full, block, caps)
    return full


def _first(group: Integers, groups: int) -> Integers:
    """Return where each group begins, of sorted ones; and the end."""
    return np.searchsorted(group, np.arange(groups + 1))


def _joined(found: Iterable[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *found])


def _parts(
    balances: Balances, units: Sequence[UnitAsks], requests: int
) -> list[UnitPart]:
    """Return the rows of all units, unless they are too many to hold.

    Raises:
        InputError: If they are; or a limit is too large.
    """
    width = sum(len(asked.coordinates) for asked in units)
    parts, numbers = [], 0
    for asked in units:
        kept = []
        for one in limiting_rows(balances, asked, requests):
            numbers += 2 * width * len(one.left) + 3 * len(one.owner)
            refuse_too_many(numbers)
            kept.append(one)
        parts.append(UnitPart(asked, tuple(kept)))
    return parts
