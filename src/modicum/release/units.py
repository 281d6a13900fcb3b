"""Privacy units: their order, their calendar, and how many changes make another one.

A unit cuts a table into *instances*: all rows with one value of its `id` column and,
if it is timed, one period of its time column. A unit *covers* another if every
instance of the other lies in one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from modicum.release.periods import (
    PERIODS,
    Overlap,
    Overlaps,
    Period,
    nests,
    touches,
)

__all__ = [
    "INSIDE",
    "MOVING",
    "PERIODS",
    "RELATIONS",
    "SAME",
    "Period",
    "Reach",
    "Reaches",
    "Relation",
    "Unit",
    "all_steps",
    "changes",
    "clocks_of",
    "kinds",
    "larger",
    "nests",
    "owners",
    "steps",
    "touches",
]

Within: TypeAlias = Mapping[tuple[Period | None, Period | None], Overlap]

#: Which two tables are neighbors for a unit. In all of them an instance is known by
#: its key (id and period), and nothing outside one key changes.
#:
#: - `add-remove`: all rows of one instance are there in one table, none in the other.
#: - `substitute`: one instance has rows in both tables, and other ones in each. Who
#:   replaces somebody takes over the key.
#: - `any-change`: the rows of one instance are any in each table, also none. It
#:   includes the two others.
Relation: TypeAlias = Literal["add-remove", "substitute", "any-change"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)


class Unit(Struct, frozen=True):
    """The declaration of one privacy unit.

    Attributes:
        name: Its name.
        id: The column that identifies a row's instance.
        period: The period of time that an instance lasts; None for all of time.
        column: The column with the time of a row, if there is a period.
        within: Units that cover it, as declared.
        groups: By covering unit, how many instances of this one an instance of that
            one has at most, in any table.
        neighbors: The relation that its losses are proven under.
    """

    name: str
    id: str
    period: Period | None = None
    column: str | None = None
    within: tuple[str, ...] = ()
    groups: Mapping[str, int] = field(default_factory=dict)
    neighbors: Relation = "add-remove"


class Reach(Struct, frozen=True):
    """How an instance of one unit overlaps the instances of another.

    Attributes:
        size: How many instances it touches at most, in any one table.
        partly: How many of these may have rows outside it.
        fixed: Whether the keys that it can touch are themselves at most `size`, the
            same in every table; else other tables may have other keys.
        most_both: `size` and `partly` of one instance together, at most, if that is
            less than their sum, which may be that of two instances.
    """

    size: int
    partly: int
    fixed: bool
    most_both: int | None = None

    @property
    def both(self) -> int:
        """The maximum number it touches, those with rows outside counted twice."""
        return self.size + self.partly if self.most_both is None else self.most_both


#: The instance itself.
SAME = Reach(1, 0, fixed=True)
#: A larger instance that it lies in, the same one in every table.
INSIDE = Reach(1, 1, fixed=True)
#: A larger instance that it lies in, perhaps another one in another table: a device
#: that changes hands.
MOVING = Reach(1, 1, fixed=False)


def larger(units: Mapping[str, Unit]) -> dict[str, frozenset[str]]:
    """Return for every unit those that cover it, as declared, and the unit itself.

    Args:
        units: The units by name; others cover nothing.
    """
    covers: dict[str, frozenset[str]] = {}
    for name in units:
        found, waiting = {name}, [name]
        while waiting:
            new = set(units[waiting.pop()].within) & units.keys() - found
            found |= new
            waiting.extend(new)
        covers[name] = frozenset(found)
    return covers


def owners(units: Mapping[str, Unit]) -> dict[str, frozenset[str]]:
    """Return for every unit those that cover it with one and the same instance.

    That is so where both have the same `id`: the key of an instance determines the
    larger one that contains it. A device may belong to another user in another table.

    Args:
        units: The units by name; others cover nothing.
    """
    same_id = {
        name: replace(
            unit,
            within=tuple(
                wide
                for wide in unit.within
                if wide in units and units[wide].id == unit.id
            ),
        )
        for name, unit in units.items()
    }
    return larger(same_id)


def changes(reach: Reach, change_of: Relation, in_terms_of: Relation) -> int | None:
    """Return how many changes of other instances make any change of one instance.

    Only what the instance touches changes, before or after. Let that be k instances
    in each table, p of them with rows outside.

    - Of `any-change`, one step turns each touched key from what it was to what it
      will be. Adding or removing touches k keys; another change may touch k before
      and k others after, unless the keys are fixed.
    - Of `add-remove`, adding or removing the instance adds or removes whole those
      k - p that have no rows outside; each of the p others is removed whole and
      added with the rest of its rows, or the other way round. For another change,
      remove the k from before and add the k from after.
    - Of `substitute`, a step neither adds nor removes. Only a substitution inside
      one fixed instance is sure to leave rows in it: that is one step.

    Args:
        reach: How the one instance lies on the others.
        change_of: The relation of the one.
        in_terms_of: The relation of the others.

    Returns:
        The least number that is proven; None if none is.

    Examples:
        >>> changes(INSIDE, "add-remove", "any-change")
        1
        >>> changes(Reach(6, 2, fixed=True), "add-remove", "add-remove")
        8
    """
    if in_terms_of == "substitute":
        inside = reach.fixed and reach.size == 1
        return 1 if inside and change_of == "substitute" else None
    if in_terms_of == "add-remove":
        if change_of == "add-remove":
            return reach.both
        return 2 * (reach.size if reach.fixed else reach.both)
    return reach.size if reach.fixed or change_of == "add-remove" else 2 * reach.size


def clocks_of(units: Mapping[str, Unit]) -> frozenset[str]:
    """Return the time columns of units that have a period."""
    timed = (unit for unit in units.values() if unit.period is not None)
    return frozenset(unit.column for unit in timed if unit.column is not None)


def kinds(units: Mapping[str, Unit]) -> tuple[Period | None, ...]:
    """Return the kinds of periods of units, without duplicates; None for all time."""
    return tuple(dict.fromkeys(unit.period for unit in units.values()))


def all_steps(
    units: Mapping[str, Unit], within: Overlaps | None = None
) -> dict[tuple[str, str], int]:
    """Return `steps` for every pair of units for which a number is proven.

    A mechanism that reads the rows of some days only answers alike on a table and on
    what these days leave of it. So the changes may be those that lead from what is
    left before to what is left after, where fewer instances are touched. What is
    left of a substitution may be an arrival, a departure or nothing: any change.

    Args:
        units: The units by name, ordered without circles.
        within: How the `kinds` of periods of the units overlap on the days that are
            read; None if all days may be read.
    """
    found = _steps(units, None)
    if within is not None:
        for pair, count in _steps(units, dict(within)).items():
            found[pair] = min(count, found.get(pair, count))
    return found


def _steps(
    units: Mapping[str, Unit], within: Within | None
) -> dict[tuple[str, str], int]:
    reaches = Reaches(units, within)
    found: dict[tuple[str, str], int] = {}
    for change_of, one in units.items():
        partial = within is not None and one.neighbors == "substitute"
        change: Relation = "any-change" if partial else one.neighbors
        for in_terms_of, other in units.items():
            proven = [
                count
                for reach in reaches.of(change_of, in_terms_of)
                if (count := changes(reach, change, other.neighbors)) is not None
            ]
            if proven:
                found[change_of, in_terms_of] = min(proven)
    return found


def steps(
    units: Mapping[str, Unit],
    change_of: str,
    in_terms_of: str,
    within: Overlaps | None = None,
) -> int | None:
    """Return how many changes of one unit make any change of another.

    Each is meant under the unit's own relation; see `changes` for the proof.

    Returns:
        The least number that is proven; None if none is.
    """
    return all_steps(units, within).get((change_of, in_terms_of))


class Reaches:
    """The facts about every pair: by the declared order, group sizes, the calendar.

    Args:
        units: The units by name, ordered without circles.
        within: How the `kinds` of periods overlap on the days that are read; None if
            all days may be read.
    """

    def __init__(self, units: Mapping[str, Unit], within: Within | None) -> None:
        self._units = units
        self._within = within
        self._covers = larger(units)
        self._owners = owners(units)
        self._parts = self._all_parts()

    def of(self, one: str, other: str) -> Iterator[Reach]:
        """Yield how an instance of `one` may overlap those of `other`.

        All of them hold at once.

        Args:
            one: A unit.
            other: Another one, or the same.
        """
        if other == one:
            yield SAME
            return
        if other in self._covers[one]:
            yield INSIDE if other in self._owners[one] else MOVING
        yield from self._by_calendar(one, other)
        for fixed in (True, False):
            if (size := self._parts.get((one, other, fixed))) is not None:
                yield Reach(size, 0, fixed=fixed)

    def _all_parts(self) -> dict[tuple[str, str, bool], int]:
        """Return the sizes of groups, by whole, part and whether keys are fixed.

        Along a chain of covers sizes multiply: parts of parts are whole. The keys
        are fixed if they are so at every link.
        """
        covering = [
            (whole, part)
            for part in self._units
            for whole in self._covers[part] - {part}
        ]
        sizes: dict[tuple[str, str, bool], int] = {}
        for whole, part in covering:
            declared = self._units[part].groups.get(whole)
            if declared is not None:
                sizes[whole, part, False] = declared
            for reach in self._by_calendar(whole, part):
                if not reach.partly:
                    sizes[whole, part, True] = reach.size
        for middle in self._units:  # Floyd & Warshall: any order will do.
            self._join_at(middle, sizes)
        return sizes

    def _join_at(self, middle: str, sizes: dict[tuple[str, str, bool], int]) -> None:
        above = [(w, f, n) for (w, p, f), n in sizes.items() if p == middle]
        below = [(p, f, n) for (w, p, f), n in sizes.items() if w == middle]
        for whole, fixed_above, many in above:
            for part, fixed_below, few in below:
                key = (whole, part, fixed_above and fixed_below)
                sizes[key] = min(sizes.get(key, many * few), many * few)

    def _by_calendar(self, one: str, other: str) -> Iterator[Reach]:
        pair = self._units[one], self._units[other]
        yield from _always(*pair)
        if self._within is not None:
            yield from _on_days(*pair, self._within)


def _always(one: Unit, other: Unit) -> Iterator[Reach]:
    """Yield how two timed units of one id and one clock lie on each other."""
    if one.period is None or other.period is None:
        return
    if (one.id, one.column) != (other.id, other.column):
        return
    if one.period == other.period:
        yield SAME
    elif nests(one.period, other.period):
        yield INSIDE
    elif nests(other.period, one.period):
        yield Reach(touches(one.period, other.period), 0, fixed=True)
    else:
        # At most the first and the last of them reach over the border.
        size = touches(one.period, other.period)
        yield Reach(size, min(size, 2), fixed=True)


def _on_days(one: Unit, other: Unit, within: Within) -> Iterator[Reach]:
    """Yield how two units of one id overlap on the days that are read.

    A key is an id and a period. So an instance of one id touches at most as many keys
    as there are periods, the same in every table; one of the two may have no period.
    """
    clocks = {unit.column for unit in (one, other) if unit.period is not None}
    if one.id == other.id and len(clocks) == 1:
        size, both, partly = within[one.period, other.period]
        yield Reach(size, partly, fixed=True, most_both=both)
