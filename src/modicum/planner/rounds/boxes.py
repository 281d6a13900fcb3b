"""Requests over several partitioning attributes, and earlier charges there.

Each attribute is an axis of integers from 0 on. A request covers a union of boxes,
which may overlap; it is charged once wherever one of them is. Where only one attribute
is divided finely, and it has no ends, a ring is faster: see `ring`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from modicum.core.errors import Code, InputError, check
from modicum.core.errors import Problem as Mistake
from modicum.planner.allocation.problem import Booleans, Integers, Problem
from modicum.planner.rounds.history import History, check_adds_up, left_to_groups
from modicum.planner.rounds.ring import ascending

#: By axis, the first value and the one after the last.
Box: TypeAlias = tuple[tuple[int, int], ...]
#: By axis, where cells begin; ascending, the first of them 0.
Cuts: TypeAlias = tuple[Integers, ...]

#: Maximum number of cells of a round, with all earlier charges.
CELLS_MAX = 2_000_000


@dataclass(frozen=True, slots=True)
class Regions:
    """Unions of boxes, one for each request.

    Attributes:
        sizes: How many values each axis has.
        boxes: By request, its boxes.
    """

    sizes: tuple[int, ...]
    boxes: tuple[tuple[Box, ...], ...]

    def __post_init__(self) -> None:
        check(
            all(
                len(box) == len(self.sizes)
                and all(
                    0 <= low < high <= size
                    for (low, high), size in zip(box, self.sizes, strict=True)
                )
                for request in self.boxes
                for box in request
            ),
            "PLAN-1: a box has a span on every axis, within the axis and not empty",
        )

    def cuts(self) -> Cuts:
        """Return where cells begin that no box divides."""
        return tuple(
            ascending(
                np.array(
                    [0]
                    + [
                        bound
                        for request in self.boxes
                        for box in request
                        for bound in box[axis]
                        if bound < size
                    ],
                    dtype=np.int64,
                )
            )
            for axis, size in enumerate(self.sizes)
        )

    def covered(self, request: int, cuts: Cuts) -> Booleans:
        """Return which cells a request covers.

        Args:
            request: Its number.
            cuts: At least those of `cuts`.

        Returns:
            By cell, one axis for each attribute.
        """
        found = np.zeros([len(one) for one in cuts], np.bool_)
        for box in self.boxes[request]:
            found[
                tuple(
                    slice(*np.searchsorted(at, span).tolist())
                    for at, span in zip(cuts, box, strict=True)
                )
            ] = True
        return found


@dataclass(frozen=True, slots=True)
class SpentBoxes:
    """The charges of one round, cell by cell.

    Attributes:
        cuts: The start of each cell.
        costs: By cell, one axis for each attribute and the last for coordinates.
    """

    cuts: Cuts
    costs: Integers

    def at(self, cuts: Cuts) -> Integers:
        """Return the charges by finer cells."""
        place = [
            np.searchsorted(own, finer, side="right") - 1
            for own, finer in zip(self.cuts, cuts, strict=True)
        ]
        return self.costs[np.ix_(*place)]


def spent_in(regions: Regions, costs: Integers, accepted: Booleans) -> SpentBoxes:
    """Return the total charge of accepted requests.

    Args:
        regions: Of all requests of a round.
        costs: (n, a), each at most one more than a full balance: a larger one never
            fits either, and could overflow.
        accepted: (n,).

    Raises:
        InputError: If they are cut into too many cells.
    """
    check_adds_up(costs, accepted)
    chosen = np.flatnonzero(accepted).tolist()
    kept = Regions(regions.sizes, tuple(regions.boxes[one] for one in chosen))
    cuts = _few([kept.cuts()])
    total = np.zeros((*map(len, cuts), costs.shape[1]), np.int64)
    for number, request in enumerate(chosen):
        total[kept.covered(number, cuts)] += costs[request]
    return SpentBoxes(cuts, total)


BoxHistory: TypeAlias = History[SpentBoxes]


def box_problem(
    regions: Regions,
    costs: Integers,
    weights: Integers,
    caps: Integers,
    history: BoxHistory,
    fresh: Booleans | None = None,
) -> Problem:
    """Return the problem of a round over several attributes.

    Args:
        regions: Of the requests.
        costs: (n, a).
        weights: (n,).
        caps: (groups, a) the limit of each active group so far, the youngest first: a
            group of age k is charged the last k - 1 rounds. The oldest may have spent
            its whole budget.
        history: The earlier charges.
        fresh: Which requests are tried for the first time; None if all are.

    Raises:
        InputError: If all of it is cut into too many cells, or there would be too
            many balances to keep in memory.
    """
    own = regions.cuts()
    cuts = _few([own, *(past.cuts for past in history.rounds)])
    groups, coordinates = caps.shape
    place = _place_of_cell(own, cuts)
    in_order = np.argsort(place, kind="stable")
    spent = (past.at(cuts).reshape(-1, coordinates) for past in history.rounds)
    left = left_to_groups(caps, len(place), spent)
    places = prod(map(len, own))
    first = np.searchsorted(place[in_order], np.arange(places + 1))
    run_first, run_start, run_stop = _runs(regions, own)
    return Problem(
        weights=weights,
        costs=costs,
        run_first=run_first,
        run_start=run_start,
        run_stop=run_stop,
        row_first=first * groups,
        left=left[in_order].reshape(-1, coordinates),
        block=np.tile(np.arange(groups), len(place)),
        line=np.zeros(places, np.int64),
        full=np.broadcast_to(caps[-1], caps.shape),
        extent=_extent(own, regions.sizes),
        fresh=fresh,
    )


def _place_of_cell(own: Cuts, cuts: Cuts) -> Integers:
    """Return the place that each cell lies in, in the order of the axes."""
    place = np.zeros(1, np.int64)
    for of_places, of_cells in zip(own, cuts, strict=True):
        at = np.searchsorted(of_places, of_cells, side="right") - 1
        place = (place[:, None] * len(of_places) + at).reshape(-1)
    return place


def _runs(regions: Regions, cuts: Cuts) -> tuple[Integers, Integers, Integers]:
    """Return where requests' runs begin, where each run starts, and where it stops."""
    starts, stops, count = [], [], [0]
    for request in range(len(regions.boxes)):
        covered = regions.covered(request, cuts).reshape(-1)
        steps = np.diff(covered.astype(np.int8), prepend=0, append=0)
        starts.append(np.flatnonzero(steps > 0))
        stops.append(np.flatnonzero(steps < 0))
        count.append(len(starts[-1]))
    return np.cumsum(count), _joined(starts), _joined(stops)


def _joined(arrays: Sequence[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *arrays])


def _extent(
    cuts: Cuts, sizes: tuple[int, ...]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return which part of all values each place is."""
    extent = np.ones(1)
    for at, size in zip(cuts, sizes, strict=True):
        part = np.diff(np.append(at, size)) / size
        extent = (extent[:, None] * part).reshape(-1)
    return extent


def _few(several: Iterable[Cuts]) -> Cuts:
    """Return cuts together, axis by axis.

    Raises:
        InputError: If they make too many cells.
    """
    cuts = tuple(ascending(np.concatenate(axis)) for axis in zip(*several, strict=True))
    cells = prod(map(len, cuts))
    if cells > CELLS_MAX:
        raise InputError(
            Mistake(
                Code.OUT_OF_RANGE,
                f"the requests cut the population into {cells} cells",
                notes=(f"a plan takes at most {CELLS_MAX}",),
                help="use coarser parts, or plan with fewer attributes",
            )
        )
    return cuts
