"""What the cells of rules have left, where that can turn a request away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from modicum.accounting import Filter
from modicum.accounting.grid import DELTA, INFINITE
from modicum.ledger import Balances
from modicum.ledger.cells.family import Charge, Inquiry, Spent
from modicum.ledger.cells.sums import nothing
from modicum.planner.allocation.problem import SUM_MAX, Booleans, Integers
from modicum.planner.ledger_round.presolve import filter_of
from modicum.planner.ledger_round.refusing import too_large
from modicum.planner.ledger_round.requests import Ask, UnitAsks

#: A coordinate that a clause does not have: nothing passes there.
NEVER = -1


@dataclass(frozen=True, slots=True)
class RuleRows:
    """What is left in the cells of a rule that cannot let everybody pass.

    A clause holds while some coordinate is within its cap, and all clauses must hold:
    what mechanisms have of delta is a clause of its own.

    Attributes:
        rule: The number of the rule.
        segments: (cells,) their segments; those that lie close together are close.
        cell: (rows,) which cell each row is of, rising.
        clause: (rows,) which clause.
        caps: (rows, a) what is unlocked, by coordinate of the unit; `NEVER` where the
            clause does not have it.
        left: (rows, a) what of that is left; `NEVER` where nothing passes.
        owner: (runs,) the requests that ask for cells, rising.
        start: (runs,) the first cell of each run of cells that a request asks for.
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
    balances: Balances, asked: UnitAsks, requests: int
) -> Iterator[RuleRows]:
    """Yield the rows of every rule of a unit that has some.

    Args:
        balances: What was charged, with the segments of the requests cut.
        asked: What requests ask.
        requests: How many requests there are.

    Raises:
        InputError: If a limit is so large that sums are no 64-bit integers.
    """
    cells = _Cells(balances, asked, requests)
    for asks, rules in asked.by_rules():
        yield from cells.rows(asks, rules)


class _Cells:
    """The cells of one unit that requests ask for."""

    def __init__(self, balances: Balances, asked: UnitAsks, requests: int) -> None:
        self._balances = balances
        self._asked = asked
        #: Costs and limits above this are cut down to just above it, and to it.
        self._room = (SUM_MAX - 1) // (requests + 1) - 1
        self._demand = asked.demand()
        self._order = _order(asked)
        family, then = asked.family, asked.then
        everybody = Inquiry(family.segments.everywhere(1), ())
        self._shares = balances.unlocked.pieces(
            family.space, everybody, then, np.arange(family.segments.count)
        )

    def rows(self, asks: list[Ask], rules: list[int]) -> Iterator[RuleRows]:
        """Yield the rows of rules that are asked for the very same.

        Args:
            asks: What they are asked for.
            rules: Their numbers.
        """
        count = self._asked.family.segments.count
        together = np.zeros((count, len(self._asked.coordinates)), np.int64)
        meets = np.zeros((len(asks), count), np.bool_)
        for line, ask in enumerate(asks):
            together[ask.segments] += np.minimum(ask.costs, self._room + 1)
            meets[line, ask.segments] = True
        touched = np.flatnonzero(meets.any(axis=0))
        segments = self._order[np.isin(self._order, touched)]
        owner = np.array([ask.request for ask in asks])
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
        """Return what is unlocked, by cell, clause and coordinate."""
        own = filter_of(self._balances.compiled, rule)
        by_share = np.array(
            [
                _clauses(own.unlocked(share), self._asked.coordinates)
                for share in self._shares.shares
            ],
            dtype=np.int64,
        )
        of_piece = self._shares.of_piece
        which = np.zeros_like(segments) if of_piece is None else of_piece[segments]
        return by_share[which]

    def _spent(self, rule: int, segments: Integers) -> Spent:
        """Return what the cells of a rule were charged."""
        family = self._asked.family
        one = (rule,)
        charge = Charge(one, family.rows(one), segments, nothing(0), everywhere=False)
        overlay = family.segments.everywhere(1)
        return family.spent(Inquiry(overlay, (charge,)), charge)

    def _left(self, caps: Integers, spent: Spent) -> Integers:
        """Return what is left, by cell, clause and coordinate."""
        coordinates, sums = self._asked.coordinates, spent.sums
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
        # Where more is left than all requests cost together, it is as good as that.
        return np.minimum(left, self._room)


def _fail(asked: Integers, left: Integers) -> Booleans:
    """Return, by cell and clause, whether every coordinate has less than is asked."""
    return np.asarray((asked > left).all(axis=2))


def _clauses(own: Filter, coordinates: Integers) -> list[list[int]]:
    """Return the caps of a filter, clause by clause."""
    capped = [(index, min(cap, INFINITE - 1)) for index, cap in own.caps]
    groups = [[one] for one in capped] if own.every else [capped]
    groups.append([(DELTA, min(own.delta_cap, INFINITE - 1))])
    return [
        [dict(group).get(index, NEVER) for index in coordinates.tolist()]
        for group in groups
    ]


def _order(asked: UnitAsks) -> Integers:
    """Return the segments such that those whose boxes are close together are close."""
    then = asked.then
    lows = then.ends[:, :, 0]
    if not lows.shape[1]:
        return np.arange(asked.family.segments.count)
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
