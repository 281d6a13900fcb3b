"""Privacy units: their order, their calendar, and how many changes make another one.

A unit cuts a table into *instances*: all rows with one value of its `id` column and,
if it is timed, one period of its time column. A unit *covers* another if every
instance of the other lies in one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

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

Period: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
PERIODS: tuple[Period, ...] = get_args(Period)

#: How many of the second period one of the first touches at most, whichever day
#: weeks begin on.
_TOUCHED: Mapping[tuple[Period, Period], int] = MappingProxyType(
    {
        ("week", "day"): 7,
        ("month", "day"): 31,
        ("quarter", "day"): 92,
        ("year", "day"): 366,
        ("quarter", "month"): 3,
        ("year", "month"): 12,
        ("year", "quarter"): 4,
        ("month", "week"): 6,
        ("quarter", "week"): 14,
        ("year", "week"): 54,
        ("week", "month"): 2,
        ("week", "quarter"): 2,
        ("week", "year"): 2,
    }
)


@dataclass(frozen=True, slots=True)
class Unit:
    """What a policy says about one privacy unit.

    Attributes:
        name: Its name.
        id: The column that tells whose a row is.
        period: The period of time that an instance lasts; None for all of time.
        column: The column that tells when a row happened, if there is a period.
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


@dataclass(frozen=True, slots=True)
class Reach:
    """How an instance of one unit lies on the instances of another.

    Attributes:
        size: How many instances it touches at most, in any one table.
        partly: How many of these may have rows outside it.
        fixed: Whether the keys that it can touch are themselves at most `size`, the
            same in every table; else other tables may have other keys.
    """

    size: int
    partly: int
    fixed: bool


#: The instance itself.
SAME = Reach(1, 0, fixed=True)
#: A larger instance that it lies in, the same one in every table.
INSIDE = Reach(1, 1, fixed=True)
#: A larger instance that it lies in, perhaps another one in another table: a device
#: that changes hands.
MOVING = Reach(1, 1, fixed=False)


def nests(small: Period, large: Period) -> bool:
    """Return whether every `small` period lies in one `large` one.

    Args:
        small: A period.
        large: Another one, or the same.

    Examples:
        >>> nests("day", "week"), nests("week", "month"), nests("year", "month")
        (True, False, False)
    """
    # Only periods that cross each other touch several of each other.
    crossing = (small, large) in _TOUCHED
    return small == large or ((large, small) in _TOUCHED and not crossing)


def touches(one: Period, other: Period) -> int:
    """Return how many of the `other` periods one of the `one` touches at most.

    Args:
        one: A period.
        other: Another one, or the same.

    Examples:
        >>> touches("month", "week"), touches("week", "month"), touches("day", "week")
        (6, 2, 1)
    """
    return _TOUCHED.get((one, other), 1)


def larger(units: Mapping[str, Unit]) -> dict[str, frozenset[str]]:
    """Return for every unit those that cover it, as declared, and the unit itself.

    Args:
        units: The units by name; what is not among them covers nothing.
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

    That is so where both have the same `id`: the key of an instance tells the larger
    one that it lies in. A device may lie in another user in another table.

    Args:
        units: The units by name; what is not among them covers nothing.
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
            return reach.size + reach.partly
        return 2 * (reach.size if reach.fixed else reach.size + reach.partly)
    return reach.size if reach.fixed or change_of == "add-remove" else 2 * reach.size


def all_steps(units: Mapping[str, Unit]) -> dict[tuple[str, str], int]:
    """Return `steps` for every pair of units for which a number is proven.

    Args:
        units: The units by name, ordered without circles.
    """
    reaches = _Reaches(units)
    found: dict[tuple[str, str], int] = {}
    for change_of, one in units.items():
        for in_terms_of, other in units.items():
            proven = [
                count
                for reach in reaches.of(change_of, in_terms_of)
                if (count := changes(reach, one.neighbors, other.neighbors)) is not None
            ]
            if proven:
                found[change_of, in_terms_of] = min(proven)
    return found


def steps(units: Mapping[str, Unit], change_of: str, in_terms_of: str) -> int | None:
    """Return how many changes of one unit make any change of another.

    Each is meant under the unit's own relation; see `changes` for the proof.

    Args:
        units: The units by name, ordered without circles.
        change_of: The unit that changes.
        in_terms_of: The unit whose changes are the steps.

    Returns:
        The least number that is proven; None if none is.
    """
    return all_steps(units).get((change_of, in_terms_of))


class _Reaches:
    """What is known of every pair: by the declared order, group sizes, the calendar."""

    def __init__(self, units: Mapping[str, Unit]) -> None:
        self._units = units
        self._covers = larger(units)
        self._owners = owners(units)
        self._parts = self._all_parts()

    def of(self, one: str, other: str) -> Iterator[Reach]:
        """Yield the ways in which an instance of `one` lies on those of `other`."""
        if other == one:
            yield SAME
            return
        if other in self._covers[one]:
            yield INSIDE if other in self._owners[one] else MOVING
        yield from _by_calendar(self._units[one], self._units[other])
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
            for reach in _by_calendar(self._units[whole], self._units[part]):
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


def _by_calendar(one: Unit, other: Unit) -> Iterator[Reach]:
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
