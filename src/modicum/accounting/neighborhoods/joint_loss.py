"""The joint loss of many releases under any neighboring relation.

Neighbors differ by a *move*; each release is charged for the step that the move makes
in its own native relation; the charges of one move add up, and the worst move counts.

Source:
    Guerra-Balboa, Miranda-Pascual, Parra-Arnau & Strufe 2024 (arXiv:2308.14649) for
    composition under general granularities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Protocol, assert_never

from modicum.accounting.conversions.epsilon_delta import best_epsilon
from modicum.accounting.grid import COORDINATES, EPS, INFINITE, RHO, coordinate_name
from modicum.accounting.losses import Loss, Total
from modicum.accounting.neighborhoods.entries import Entry
from modicum.accounting.neighborhoods.metric import MetricScene
from modicum.accounting.neighborhoods.move_costs import (
    Steps,
    record_counts,
    record_steps,
)
from modicum.accounting.neighborhoods.moves import Move
from modicum.accounting.neighborhoods.records import (
    USUAL_EFFORT,
    Effort,
    RecordScene,
)
from modicum.accounting.neighborhoods.regions import Axis, checked, segments
from modicum.accounting.neighborhoods.target import (
    AddRemove,
    Attributes,
    Group,
    Metric,
    Substitute,
    Target,
    Users,
    axes_by_name,
    check_target,
)
from modicum.accounting.neighborhoods.users import UserScene
from modicum.accounting.neighborhoods.worst_case import Candidates, Worst, worst_epsilon


class Scene(Protocol):
    """Some of the moves of a target, and the worst of them."""

    def worst(self, index: int) -> Worst:
        """Return the costliest move in one coordinate of a loss."""

    def candidates(self) -> Candidates | None:
        """Return the cost of every move in all coordinates, if they are few."""


@dataclass(frozen=True, slots=True)
class Joint:
    """The joint loss in one measure.

    Attributes:
        units: The loss in ledger units, rounded up; `INFINITE` if it is infinite.
        method: For an epsilon at a delta, how it was converted; else the coordinate.
        move: The move that costs most; its charges name the entries.
        exact: Whether that move costs just so much; else it is an upper bound.
    """

    units: int
    method: str
    move: Move
    exact: bool


class Engine:
    """Computes the joint loss of some releases.

    Args:
        entries: The releases, in any order; the engine names them by their number.
        axes: The partitioning attributes. They must be public, immutable, and chosen
            without looking at the data.
        target: The neighboring relation to answer for.
        effort: The effort of the search before an upper bound is returned.

    Raises:
        InputError: If a region does not fit the axes, or the target is ill-formed.

    Examples:
        >>> from modicum.accounting.mechanisms import laplace
        >>> from modicum.accounting.neighborhoods.regions import CategoryAxis
        >>> axis = CategoryAxis("region", ("north", "south"))
        >>> def counts(region):
        ...     curve = laplace(sensitivity_l1=Fraction(1), scale=Fraction(2))
        ...     return Entry(region, curve, ({"region": frozenset({region})},))
        >>> entries = [counts("north"), counts("south")]
        >>> Engine(entries, [axis], AddRemove()).worst(EPS).units
        500000000000
        >>> Engine(entries, [axis], Substitute()).worst(EPS).units
        1000000000000
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        axes: Sequence[Axis],
        target: Target,
        *,
        effort: Effort = USUAL_EFFORT,
    ) -> None:
        self._axes = axes_by_name(axes)
        self._entries = tuple(
            replace(entry, region=checked(entry.region, self._axes))
            for entry in entries
        )
        self._effort = effort
        check_target(target, self._axes)
        self._complete = True
        self._scenes: tuple[Scene, ...] = tuple(self._scenes_of(target))

    # --- results -----------------------------------------------------------------

    def worst(self, index: int) -> Joint:
        """Return the joint loss in one coordinate, such as `EPS` or `RHO`."""
        method = coordinate_name(index)
        found = [scene.worst(index) for scene in self._scenes]
        best = max(found, key=lambda worst: (worst.units, worst.exact))
        move = best.move()
        exact = best.exact and self._complete and move.possible
        return Joint(best.units, method, move, exact)

    def loss(self) -> Loss:
        """Return the worst cost in each coordinate, each of its own worst move."""
        return Loss(tuple(self.worst(index).units for index in range(COORDINATES)))

    def epsilon(self, delta: Fraction) -> Joint:
        """Return the joint epsilon at a delta, each move converted by itself.

        The maximum over moves is taken after the conversion, which can be less than
        converting the maxima: the best Renyi order may differ between moves.

        Args:
            delta: Strictly between 0 and 1.
        """
        found = [self._epsilon_of(scene, delta) for scene in self._scenes]
        best = max(found, key=lambda joint: (joint.units, joint.exact))
        exact = best.exact and self._complete and best.move.possible
        return replace(best, exact=exact)

    def _epsilon_of(self, scene: Scene, delta: Fraction) -> Joint:
        table = scene.candidates()
        if table is None:
            return self._of_maxima(scene, delta)
        epsilon, row, exact = worst_epsilon(table, delta)
        return Joint(epsilon.units, epsilon.method, table.move(row), exact)

    @staticmethod
    def _of_maxima(scene: Scene, delta: Fraction) -> Joint:
        """Convert the maxima over moves: sound, and loose if the moves differ."""
        found = [scene.worst(index) for index in range(COORDINATES)]
        total = Total(
            tuple(worst.units if worst.units < INFINITE else 0 for worst in found),
            tuple(int(worst.units >= INFINITE) for worst in found),
        )
        epsilon = best_epsilon(total, delta)
        move = found[EPS if epsilon.method == "pure" else RHO].move()
        return Joint(epsilon.units, epsilon.method, move, exact=False)

    # --- scenes ------------------------------------------------------------------

    def _scenes_of(self, target: Target) -> Iterator[Scene]:
        match target:
            case AddRemove():
                yield self._records(None, appears=True)
            case Substitute():
                yield self._records(frozenset(self._axes))
            case Group(size=size, of=AddRemove()):
                yield self._records(None, appears=True, size=size)
            case Group(size=size):
                yield self._records(frozenset(self._axes), size=size)
            case Attributes():
                yield from self._attribute_scenes(target)
            case Users():
                yield UserScene(self._entries, self._axes, target)
            case Metric():
                yield MetricScene(self._entries, self._axes, target)
            case _:
                assert_never(target)

    def _attribute_scenes(self, target: Attributes) -> Iterator[Scene]:
        """One scene for each choice of attributes that may change."""
        known = frozenset(self._axes).union(
            *(entry.reads or frozenset() for entry in self._entries)
        )
        # An entry that may read anything notices attributes without a name, too.
        hidden = any(entry.reads is None for entry in self._entries)
        unnamed = {f"{_UNNAMED}{n}" for n in range(target.at_most if hidden else 0)}
        names = sorted(target.among if target.among is not None else known | unnamed)
        count = min(target.at_most, len(names))
        if comb(len(names), count) > _CHOICES_MAX:
            # A change of a few attributes of a record also replaces it.
            self._complete = False
            yield self._records(frozenset(self._axes))
            return
        for chosen in combinations(names, count):
            changed = frozenset(chosen)
            yield self._records(changed & frozenset(self._axes), changed=changed)

    def _records(
        self,
        free: frozenset[str] | None,
        *,
        changed: frozenset[str] | None = None,
        appears: bool = False,
        size: int = 1,
    ) -> RecordScene:
        regions = tuple(entry.region for entry in self._entries)
        used = {name for region in regions for box in region for name in box}
        return RecordScene(
            axes=tuple(
                segments(axis, regions)
                for name, axis in self._axes.items()
                if name in used
            ),
            regions=regions,
            steps=tuple(
                self._steps(entry, changed=changed, appears=appears, size=size)
                for entry in self._entries
            ),
            free=None if free is None else free & used,
            changed=tuple(sorted(n for n in changed or () if n[:1] != _UNNAMED)),
            other_changes=bool(changed is None or changed - used),
            size=size,
            effort=self._effort,
        )

    def _steps(
        self,
        entry: Entry,
        *,
        changed: frozenset[str] | None,
        appears: bool,
        size: int,
    ) -> Steps:
        counts = record_counts(entry, self._axes, changed=changed, appears=appears)
        return record_steps(entry, counts, size)


# The prefix of unnamed attributes.
_UNNAMED = "\0"
#: Maximum number of choices of attributes before all may change.
_CHOICES_MAX = 2000
