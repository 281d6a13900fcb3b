"""d-privacy: the worst move of a record between two points of a given metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from modicum.accounting.amounts import INFINITY, is_infinite, times
from modicum.accounting.curves import NOTHING, UNKNOWN, Curve, concentrated, pure_curve
from modicum.accounting.decimals import precise
from modicum.accounting.losses import Loss, Total
from modicum.accounting.neighborhoods.entries import Entry, Relation
from modicum.accounting.neighborhoods.move_costs import (
    Steps,
    record_counts,
    record_steps,
)
from modicum.accounting.neighborhoods.moves import Charge, Move, Place
from modicum.accounting.neighborhoods.regions import Axis, Region, Span
from modicum.accounting.neighborhoods.target import Metric, Point
from modicum.accounting.neighborhoods.worst_case import Candidates, Worst
from modicum.core.rationals import number_text


@precise
def stretched(curve: Curve, distance: Fraction) -> Curve:
    """Return the cost of a distance, from that of one unit of distance.

    Args:
        curve: The proven cost: eps for each unit of distance; or, without eps, mu2 or
            rho for its square. With eps, nothing else is used of the curve: a rho that
            follows from eps shrinks more slowly than the square.
        distance: >= 0.

    Neighboring relation:
        Two databases at that distance.

    Source:
        Chatzikokolakis et al. 2013, Def. 1, for eps; for zCDP and GDP, which add up
        along paths as roots, the square of the distance.

    Examples:
        >>> from modicum.accounting.mechanisms import declared_zcdp
        >>> stretched(declared_zcdp(rho=Fraction(1, 10)), Fraction(3)).rho
        Fraction(9, 10)
    """
    if distance == 0:
        return NOTHING
    if curve.delta:
        return UNKNOWN
    if not is_infinite(curve.eps):
        return pure_curve(times(distance, curve.eps))
    square = distance * distance
    if not is_infinite(curve.mu2):
        mu2 = times(square, curve.mu2)
        return concentrated(times(Fraction(1, 2), mu2), mu2=mu2)
    return concentrated(times(square, curve.rho), mu2=INFINITY)


@lru_cache(maxsize=8192)
def _of_distance(curve: Curve, distance: Fraction) -> Loss:
    return stretched(curve, distance).loss()


@dataclass(frozen=True)
class MetricScene:
    """A record that moves between two of finitely many points.

    Attributes:
        entries: The entries.
        axes: The axes by name.
        target: The points and their distances.
    """

    entries: tuple[Entry, ...]
    axes: Mapping[str, Axis]
    target: Metric

    def worst(self, index: int) -> Worst:
        """Return the costliest pair of points in one coordinate of a loss."""
        if not self._moves:
            return Worst(0, lambda: Move("none: no two points are close enough"))
        units = [total.units(index) for total in self._totals]
        best = max(range(len(units)), key=units.__getitem__)
        return Worst(units[best], lambda: self._moves[best])

    def candidates(self) -> Candidates | None:
        """Return the cost of every pair of points."""
        if not self._moves:
            return None
        totals = self._totals
        return Candidates(
            finite=np.array([total.finite for total in totals], dtype=object),
            infinite=np.array([total.infinite for total in totals]),
            exact=True,
            move=lambda row: self._moves[row],
        )

    @cached_property
    def _moves(self) -> list[Move]:
        return list(self._every_move())

    @cached_property
    def _totals(self) -> list[Total]:
        return [move.total() for move in self._moves]

    def _every_move(self) -> Iterator[Move]:
        for before, after in combinations(self.target.points, 2):
            distance = self.target.distance(before, after)
            if distance is None:
                continue
            if self.target.within is None or distance <= self.target.within:
                yield self._move(before, after, distance)

    def _move(self, before: Point, after: Point, distance: Fraction) -> Move:
        charges = []
        for number, entry in enumerate(self.entries):
            held, then = _lies(entry.region, before), _lies(entry.region, after)
            if held or then:
                step = "changes inside" if held and then else "enters or leaves"
                loss = self._loss(number, distance, inside=held and then)
                charges.append(Charge(number, step, loss))
        return Move(
            text=f"a record at {_text(before)}: replaced by one at {_text(after)},"
            f" at distance {number_text(distance)}",
            before=_place(before),
            after=_place(after),
            charges=tuple(charges),
        )

    def _loss(self, number: int, distance: Fraction, *, inside: bool) -> Loss:
        entry = self.entries[number]
        if entry.native.relation is not Relation.METRIC:
            return self._steps[number].stay if inside else self._steps[number].cross
        return _of_distance(entry.curve, distance) if inside else UNKNOWN.loss()

    @cached_property
    def _steps(self) -> list[Steps]:
        return [
            record_steps(entry, record_counts(entry, self.axes))
            for entry in self.entries
        ]


def _lies(region: Region, point: Point) -> bool:
    return any(
        all(
            side.low <= value < side.high
            if isinstance(side, Span) and isinstance(value, Fraction)
            else not isinstance(side, Span) and value in side
            for name, side in box.items()
            for value in (point[name],)
        )
        for box in region
    )


def _place(point: Point) -> Place:
    return tuple(
        (name, number_text(value) if isinstance(value, Fraction) else value)
        for name, value in point.items()
    )


def _text(point: Point) -> str:
    return ", ".join(f"{name} {value}" for name, value in _place(point)) or "anywhere"
