"""The problem of a round under many rules: rules are one more dimension of the plan.

Every rule has separate accounts: one, or one for each period of time. A request is
charged, in its part of the ring, to all accounts of all rules that it matches. All
groups of users of an account are charged alike, so that a group's charge is that of the
rounds since its activation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from modicum.core.errors import check
from modicum.planner.allocation.problem import SUM_MAX, Booleans, Integers, Problem
from modicum.planner.rounds.history import refuse_too_many
from modicum.planner.rounds.line_accounts import Charged, LineDemands, charged_by

#: A coordinate that a clause does not have: nothing passes there.
NEVER = -1


@dataclass(frozen=True, slots=True)
class Clauses:
    """The limits of rules, as lists of clauses, all of which must hold.

    A clause holds while some coordinate is within its cap. A filter of which one
    coordinate suffices is one clause; one that needs every coordinate has a clause for
    each, and a limit on delta is a separate clause.

    Attributes:
        first: (rules + 1,) where each rule's clauses begin.
        caps: (clauses, ages, a) the limit of a group of each age so far, the youngest
            first; `NEVER` where a clause does not have the coordinate. It does not fall
            with age.
    """

    first: Integers
    caps: Integers

    @property
    def groups(self) -> int:
        """The number of simultaneously active groups."""
        return int(self.caps.shape[1])

    @property
    def most(self) -> int:
        """The maximum number of clauses of a rule."""
        return int(np.diff(self.first).max(initial=0))

    def most_charged(self, costs: Integers) -> Integers:
        """Return costs, those that pass nowhere cut down to one more than any cap."""
        most: Integers = self.caps.max(axis=(0, 1), initial=0) + 1
        return np.minimum(costs, most)


@dataclass(frozen=True, slots=True)
class Accounts:
    """The layout of accounts on the long line: those of a rule one after another.

    Attributes:
        size: How many elements an account has.
        about: (slots, ages) of which active groups the account in each slot of a
            rule is; account number `rule * slots + slot`.
    """

    size: int
    about: Booleans

    @property
    def slots(self) -> int:
        """The number of accounts per rule."""
        return len(self.about)


@dataclass(frozen=True, slots=True)
class Batch:
    """The requests of a round.

    Attributes:
        asks: Their demands.
        costs: (n, a).
        weights: (n,).
        fresh: Which of them are tried for the first time; None if all are.
    """

    asks: LineDemands
    costs: Integers
    weights: Integers
    fresh: Booleans | None = None


@dataclass
class RuledHistory:
    """The charges of the last rounds. Mutable, with one owner.

    Attributes:
        rounds: The latest first; no more than some group was active in.
    """

    rounds: deque[Charged] = field(default_factory=deque)

    def add(self, batch: Batch, accepted: Booleans, clauses: Clauses) -> None:
        """Charge the accepted requests of a round, and forget obsolete rounds."""
        costs = clauses.most_charged(batch.costs)
        self.rounds.appendleft(charged_by(batch.asks, costs, accepted))
        while len(self.rounds) >= clauses.groups:
            self.rounds.pop()


def ruled_problem(
    batch: Batch, clauses: Clauses, accounts: Accounts, history: RuledHistory
) -> Problem:
    """Return the problem of a round under many rules.

    A place is a range of one account that the same requests cover; uncovered ranges are
    no places. Its rows are those of each clause of its rule, for each group of the
    account, at each different history. The block of a row is its group and the number
    of its clause; the line of a place is its account.

    Args:
        batch: The requests.
        clauses: The limits of the rules.
        accounts: How accounts lie on the long line.
        history: The earlier charges.

    Raises:
        InputError: If there would be too many balances to keep in memory.
    """
    asks = batch.asks
    cuts, covered = _pieces(asks)
    place_of_piece = np.cumsum(covered) - 1
    run_last = place_of_piece[np.searchsorted(cuts, asks.stop) - 1]
    cells, piece = _cells(cuts, covered, history)
    rows = _Rows(clauses, accounts, cells)
    refuse_too_many(len(rows), clauses.caps.shape[2])
    at, block, left = rows.at(history)
    order = np.argsort(at, kind="stable")
    places = np.arange(int(covered.sum()) + 1)
    begins, ends = cuts[covered], cuts[1:][covered[:-1]]
    rules = max(1, len(clauses.first) - 1)
    return Problem(
        weights=batch.weights,
        costs=batch.costs,
        run_first=asks.first,
        run_start=place_of_piece[np.searchsorted(cuts, asks.start)],
        run_stop=run_last + 1,
        row_first=np.searchsorted(place_of_piece[piece][at[order]], places),
        left=left[order],
        block=block[order],
        line=begins // accounts.size,
        full=rows.full(),
        extent=(ends - begins) / (accounts.size * rules),
        fresh=batch.fresh,
    )


def _pieces(asks: LineDemands) -> tuple[Integers, Booleans]:
    """Return where pieces begin, and which of them are covered."""
    cuts = asks.cuts()
    steps = np.zeros(len(cuts), np.int64)
    np.add.at(steps, np.searchsorted(cuts, asks.start), 1)
    np.subtract.at(steps, np.searchsorted(cuts, asks.stop), 1)
    return cuts, np.cumsum(steps) > 0


def _cells(
    cuts: Integers, covered: Booleans, history: RuledHistory
) -> tuple[Integers, Integers]:
    """Return where ranges of one history begin, and the piece of each.

    Only those within covered pieces.
    """
    cells = np.unique(np.concatenate([cuts, *(past.cuts for past in history.rounds)]))
    piece = np.searchsorted(cuts, cells, side="right") - 1
    inside = piece >= 0
    inside[inside] = covered[piece[inside]]
    return cells[inside], piece[inside]


class _Rows:
    """Builds the rows of cells.

    Args:
        clauses: The limits of the rules.
        accounts: How accounts lie on the long line.
        cells: The start of each cell, ascending.
    """

    def __init__(self, clauses: Clauses, accounts: Accounts, cells: Integers) -> None:
        self._clauses = clauses
        self._about = accounts.about
        self._cells = cells
        self._rule, self._slot = np.divmod(cells // accounts.size, accounts.slots)

    def __len__(self) -> int:
        """Return how many rows there are."""
        groups = self._about.sum(axis=1)[self._slot]
        return int((groups * np.diff(self._clauses.first)[self._rule]).sum())

    def at(self, history: RuledHistory) -> tuple[Integers, Integers, Integers]:
        """Return the cell, the block and the remainder, row by row."""
        coordinates = self._clauses.caps.shape[2]
        found = list(self._by_block(history))
        nothing = np.empty(0, np.int64)
        return (
            np.concatenate([nothing, *(cell for cell, _, _ in found)]),
            np.concatenate(
                [nothing, *(np.full(len(cell), block) for cell, block, _ in found)]
            ),
            np.concatenate(
                [nothing.reshape(0, coordinates), *(left for _, _, left in found)]
            ),
        )

    def full(self) -> Integers:
        """Return, by block, the maximum of a clause over all rules.

        What is the same for all rules can be distinguished by block; their limits
        differ.
        """
        clauses = self._clauses
        whole = np.maximum(clauses.caps[:, -1:].max(axis=0, initial=0), 0)
        return np.repeat(whole, clauses.groups * max(1, clauses.most), axis=0)

    def _by_block(
        self, history: RuledHistory
    ) -> Iterator[tuple[Integers, int, Integers]]:
        clauses = self._clauses
        gone = np.zeros((len(self._cells), clauses.caps.shape[2]), np.int64)
        for group in range(clauses.groups):
            if 0 < group <= len(history.rounds):
                gone += history.rounds[group - 1].at(self._cells)
                check(
                    int(gone.max(initial=0)) < SUM_MAX,
                    "PLAN-3: what rounds spent adds up to an integer",
                )
            about = self._about[self._slot, group]
            for number in range(clauses.most):
                clause = clauses.first[self._rule] + number
                there = np.flatnonzero(about & (clause < clauses.first[self._rule + 1]))
                caps = clauses.caps[clause[there], group]
                left = np.where(caps >= 0, caps - gone[there], NEVER)
                yield there, group * clauses.most + number, left
