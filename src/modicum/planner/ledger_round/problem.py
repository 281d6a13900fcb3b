"""The problem of a round on the balances of a ledger.

A place is a cell: a segment, under one rule over history. Only cells that cannot accept
all requests of the round are places. Its rows are the clauses of the rule's filter, as
far as it is unlocked there, less the charge of the cell. A request has a different cost
for every unit, and so every unit has separate coordinates; at a place of one unit,
nothing passes at those of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from modicum.accounting import Filter
from modicum.accounting.grid import DELTA, EPS, INFINITE
from modicum.ledger import Balances, RecordedRelease
from modicum.ledger.cells.family import Charge, ReleaseCosts, Spent
from modicum.ledger.cells.sums import nothing
from modicum.planner.allocation.problem import SUM_MAX, Booleans, Integers, Problem
from modicum.planner.ledger_round.presolve import (
    LeftOut,
    filter_of,
    left_out,
    refuse_odd_weights,
    refuse_too_many,
    too_large,
)
from modicum.planner.ledger_round.requests import (
    RuleDemand,
    UnitDemands,
    demands_by_unit,
)
from modicum.policy import CompiledPolicy

#: A coordinate that a clause does not have: nothing passes there.
NEVER = -1


@dataclass(frozen=True, slots=True)
class RuleRows:
    """The remainders of a rule's cells that cannot accept all requests.

    A clause holds while some coordinate is within its cap, and all clauses must hold:
    the mechanisms' own delta is a separate clause.

    Attributes:
        rule: The number of the rule.
        segments: (cells,) their segments; those that lie close together are close.
        cell: (rows,) which cell each row is of, rising.
        clause: (rows,) which clause.
        caps: (rows, a) the unlocked limit, by coordinate of the unit; `NEVER` where the
            clause does not have it.
        left: (rows, a) its remainder; `NEVER` where nothing passes.
        owner: (runs,) the requests that cover cells, ascending.
        start: (runs,) the first cell of each run of cells that a request covers.
        stop: (runs,) the cell after its last.
    """

    rule: int
    segments: Integers
    cell: Integers
    clause: Integers
    caps: Integers
    left: Integers
    owner: Integers
    start: Integers
    stop: Integers


def limiting_rows(
    balances: Balances, demands: UnitDemands, requests: int
) -> Iterator[RuleRows]:
    """Yield the rows of every rule of a unit that has some.

    Args:
        balances: The charges, with the segments of the requests cut.
        demands: The demands of the requests.
        requests: The number of requests.

    Raises:
        InputError: If a limit is so large that sums are no 64-bit integers.
    """
    cells = _Cells(balances, demands, requests)
    for rule_demands, rules in demands.by_rules():
        yield from cells.rows(rule_demands, rules)


class _Cells:
    """The cells of one unit that requests cover."""

    def __init__(self, balances: Balances, demands: UnitDemands, requests: int) -> None:
        self._balances = balances
        self._demands = demands
        #: Costs and limits above this are cut down to just above it, and to it.
        self._room = (SUM_MAX - 1) // (requests + 1) - 1
        self._demand = demands.demand()
        self._order = _order(demands)
        family, then = demands.family, demands.then
        everybody = ReleaseCosts(family.segments.everywhere(1), ())
        self._shares = balances.unlocked.pieces(
            family.space, everybody, then, np.arange(family.segments.count)
        )

    def rows(
        self, rule_demands: list[RuleDemand], rules: list[int]
    ) -> Iterator[RuleRows]:
        """Yield the rows of rules with identical demands."""
        count = self._demands.family.segments.count
        together = np.zeros((count, len(self._demands.coordinates)), np.int64)
        meets = np.zeros((len(rule_demands), count), np.bool_)
        for line, demand in enumerate(rule_demands):
            together[demand.segments] += np.minimum(demand.costs, self._room + 1)
            meets[line, demand.segments] = True
        touched = np.flatnonzero(meets.any(axis=0))
        segments = self._order[np.isin(self._order, touched)]
        owner = np.array([demand.request for demand in rule_demands])
        for rule in rules:
            caps = self._caps(rule, segments)
            left = self._left(caps, self._spent(rule, segments))
            fails = _fail(together[segments, None], left)
            kept = np.unique(np.nonzero(fails)[0])
            if not len(kept):
                continue
            cell, clause = np.nonzero(fails[kept])
            at, start, stop = runs(meets[:, segments[kept]])
            yield RuleRows(
                rule=rule,
                segments=segments[kept],
                cell=cell,
                clause=clause,
                caps=caps[kept[cell], clause],
                left=left[kept[cell], clause],
                owner=owner[at],
                start=start,
                stop=stop,
            )

    def _caps(self, rule: int, segments: Integers) -> Integers:
        """Return the unlocked limit, by cell, clause and coordinate."""
        own = filter_of(self._balances.compiled, rule)
        by_share = np.array(
            [
                _clauses(own.unlocked(share), self._demands.coordinates)
                for share in self._shares.shares
            ],
            dtype=np.int64,
        )
        of_piece = self._shares.of_piece
        which = np.zeros_like(segments) if of_piece is None else of_piece[segments]
        return by_share[which]

    def _spent(self, rule: int, segments: Integers) -> Spent:
        """Return the charges of a rule's cells."""
        family = self._demands.family
        one = (rule,)
        charge = Charge(one, family.rows(one), segments, nothing(0), everywhere=False)
        overlay = family.segments.everywhere(1)
        return family.spent(ReleaseCosts(overlay, (charge,)), charge)

    def _left(self, caps: Integers, spent: Spent) -> Integers:
        """Return the remainder, by cell, clause and coordinate."""
        coordinates, sums = self._demands.coordinates, spent.sums
        left: Integers = (
            caps - sums.units(spent.lines[0][:, None], coordinates)[:, None]
        )
        if spent.everywhere is not None:
            # No difference with a cap leaves 64 bits: both sums are at most 2**62.
            left -= sums.units(spent.everywhere[:, None], coordinates)
        left = np.where(caps >= 0, np.maximum(left, NEVER), NEVER)
        most = left.max(axis=(0, 1), initial=NEVER).tolist()
        for highest, demand in zip(most, self._demand, strict=True):
            if highest > self._room < demand:
                raise too_large()
        # A remainder above the total cost of all requests is equivalent to that.
        return np.minimum(left, self._room)


def _fail(demands: Integers, left: Integers) -> Booleans:
    """Return, by cell and clause, whether every coordinate has less than requested."""
    return np.asarray((demands > left).all(axis=2))


def _clauses(own: Filter, coordinates: Integers) -> list[list[int]]:
    """Return the caps of a filter, clause by clause."""
    capped = [(index, min(cap, INFINITE - 1)) for index, cap in own.caps]
    groups = [[one] for one in capped] if own.every else [capped]
    groups.append([(DELTA, min(own.delta_cap, INFINITE - 1))])
    return [
        [dict(group).get(index, NEVER) for index in coordinates.tolist()]
        for group in groups
    ]


def _order(demands: UnitDemands) -> Integers:
    """Return the segments such that those whose boxes are close together are close."""
    then = demands.then
    lows = then.ends[:, :, 0]
    if not lows.shape[1]:
        return np.arange(demands.family.segments.count)
    by_place = then.owner[np.lexsort(lows.T[::-1])]
    _, first = np.unique(by_place, return_index=True)
    return by_place[np.sort(first)]


def runs(meets: Booleans) -> tuple[Integers, Integers, Integers]:
    """Return the runs of true entries of each line: the line, first and last + 1.

    Examples:
        >>> [one.tolist() for one in runs(np.array([[1, 1, 0, 1], [0, 0, 1, 0]]))]
        [[0, 0, 1], [0, 3, 2], [2, 4, 3]]
    """
    padded = np.zeros((len(meets), meets.shape[1] + 2), np.int8)
    padded[:, 1:-1] = meets
    steps = np.diff(padded, axis=1)
    line, start = np.nonzero(steps == 1)
    return line, start, np.nonzero(steps == -1)[1]


@dataclass(frozen=True, slots=True)
class RoundProblem:
    """A round, and the meaning of its numbers.

    Attributes:
        problem: The problem. Its requests are some of those of the round; the line of a
            place is the number of its rule, the block of a row its clause.
        numbers: (n,) which request of the round each request of the problem is.
        left_out: The other requests of the round.
        exact: (n,) for which requests the problem matches the ledger exactly. The
            others cost more at some place than they will be charged there, never less.
        coordinates: By coordinate of the problem, its unit and that of the ledger.
        segments: (p,) the segment of each place.
        demands: The demands of the requests, by unit.
        compiled: The policy.
    """

    problem: Problem
    numbers: Integers
    left_out: tuple[LeftOut, ...]
    exact: Booleans
    coordinates: tuple[tuple[str, int], ...]
    segments: Integers
    demands: tuple[UnitDemands, ...]
    compiled: CompiledPolicy

    def cell_text(self, place: int) -> str:
        """Return the cell of a place as text; empty if it is everything."""
        unit = self.compiled.rules[int(self.problem.line[place])].unit
        (demands,) = (one for one in self.demands if one.unit == unit)
        boxes = demands.then.boxes(int(self.segments[place]))
        return demands.family.space.text(boxes[0])


def problem_of(
    balances: Balances,
    requests: Sequence[RecordedRelease],
    weights: Sequence[int],
    day: int,
) -> RoundProblem:
    """Return the problem of a round.

    Args:
        balances: A scratch copy; its segments are cut.
        requests: The requests, in the order of arrival.
        weights: Their weights.
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
    units, exact = demands_by_unit(balances, kept, day)
    made = Assembled(_parts(balances, units, len(kept)), exact)
    worth = np.array([weights[number] for number in numbers], np.int64)
    return RoundProblem(
        problem=made.problem(worth),
        numbers=np.array(numbers, np.int64),
        left_out=out,
        exact=made.exact,
        coordinates=made.coordinates,
        segments=made.segments,
        demands=units,
        compiled=balances.compiled,
    )


@dataclass(frozen=True, slots=True)
class UnitPart:
    """The demand of one unit, and the rows that can reject it.

    Attributes:
        demands: The demand.
        rules: The rows, by rule.
    """

    demands: UnitDemands
    rules: tuple[RuleRows, ...]

    @property
    def width(self) -> int:
        """The number of coordinates of the unit."""
        return len(self.demands.coordinates)

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
        for demand in self.demands.demands:
            met = [
                places[rule][demand.segments] for rule in demand.rules if rule in places
            ]
            there = np.logical_or.reduce(met) if met else np.zeros(0, np.bool_)
            if not there.any():
                continue
            costs = demand.costs if len(demand.costs) == 1 else demand.costs[there]
            low, one = costs.min(axis=0), demand.request
            known = least[one, 0] != NEVER
            least[one] = np.minimum(least[one], low) if known else low
            most[one] = np.maximum(most[one], costs.max(axis=0))
        return least, most

    def _places(self) -> dict[int, Booleans]:
        """Return, by rule, which segments are places."""
        found = {}
        for one in self.rules:
            there = np.zeros(self.demands.family.segments.count, np.bool_)
            there[one.segments] = True
            found[one.rule] = there
        return found


class Assembled:
    """The parts of units, assembled into the arrays of one problem.

    Args:
        parts: By unit.
        read: (n,) which requests are charged for exactly what they read.

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
            part.demands.unit: column
            for part, column in zip(parts, before, strict=False)
        }
        left = self._spread(before[-1], [one.left for _, one in self._rows])
        used = _useful(left, most)
        names = [
            (part.demands.unit, index)
            for part in parts
            for index in part.demands.coordinates.tolist()
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
            column = self._column[part.demands.unit]
            spread[row : row + len(own), column : column + part.width] = own
            row += len(own)
        return spread

    def problem(self, weights: Integers) -> Problem:
        """Return the problem.

        Args:
            weights: (n,) the weights of the requests.
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
    """Return the coordinates at which any request may pass anywhere."""
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
    balances: Balances, units: Sequence[UnitDemands], requests: int
) -> list[UnitPart]:
    """Return the rows of all units, unless they are too many to hold.

    Raises:
        InputError: If they are; or a limit is too large.
    """
    width = sum(len(demands.coordinates) for demands in units)
    parts, numbers = [], 0
    for demands in units:
        kept = []
        for one in limiting_rows(balances, demands, requests):
            numbers += 2 * width * len(one.left) + 3 * len(one.owner)
            refuse_too_many(numbers)
            kept.append(one)
        parts.append(UnitPart(demands, tuple(kept)))
    return parts
