"""What an order between privacy units must not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from modicum.core.document import Node
from modicum.core.errors import Code, InputError
from modicum.core.reader import Problems, fail
from modicum.release.units import Unit, larger, nests, touches

#: Where each `within` of a unit stands, by unit, in the unit's own order.
Places: TypeAlias = Mapping[str, Sequence[Node]]

NOT_NEEDED = "leave it out: what the calendar says is used without it"


def refuse_circles(units: Mapping[str, Unit], places: Places) -> None:
    """Refuse units that lie within themselves; each circle is shown once.

    Args:
        units: The units by name.
        places: Where each `within` of a unit stands, in the unit's order.

    Raises:
        InputError: With every circle.
    """
    found = Problems()
    shown: set[str] = set()
    for start, unit in units.items():
        circle = None if start in shown else _way(units, start, start)
        if circle is None:
            continue
        shown.update(circle)
        first = unit.within.index(circle[1])
        with found.guard():
            raise fail(
                Code.UNIT_CYCLE,
                f"unit `{start}` lies within itself: " + " within ".join(circle),
                places[start][first],
                notes=("the order of units says which are larger; two cannot both be",),
                help="drop one of these `within`",
            )
    found.raise_any()


def _way(units: Mapping[str, Unit], start: str, goal: str) -> list[str] | None:
    """Return a shortest chain of `within` with at least one step, or None."""
    waiting = [[start]]
    seen: set[str] = set()
    for way in waiting:  # It grows while it is walked.
        for cover in units[way[-1]].within:
            if cover == goal:
                return [*way, cover]
            if cover not in seen:
                seen.add(cover)
                waiting.append([*way, cover])
    return None


def refuse_false_orders(units: Mapping[str, Unit], places: Places) -> None:
    """Refuse every claim that the calendar contradicts, or that nothing shows.

    What follows from several claims must not be false either: a month within a
    visit within a day would be a month within a day.

    Args:
        units: The units by name, ordered without circles.
        places: Where each `within` of a unit stands, in the unit's order.

    Raises:
        InputError: With every false claim.
    """
    found = Problems()
    covers = larger(units)
    for key, unit in units.items():
        for place, cover in zip(places[key], unit.within, strict=True):
            with found.guard():
                _refuse_unproven(unit, units[cover], place)
                for beyond in sorted(covers[cover] - {cover}):
                    _refuse_impossible(units, key, beyond, place)
    found.raise_any()


def _refuse_unproven(unit: Unit, cover: Unit, place: Node) -> None:
    if reason := impossible(unit, cover):
        raise _false(unit.name, cover.name, place, reason, _mended(unit, cover))
    if unit.period is None or cover.period is None:
        return  # What lies in what for all of time is for the author to know.
    if unit.id != cover.id:
        reason = (
            f"their instances are told apart by `{unit.id}` and by `{cover.id}`:"
            " nothing shows that the one lies in the other"
        )
    elif unit.column != cover.column:
        reason = (
            f"they are timed by `{unit.column}` and by `{cover.column}`: a row may"
            " fall in any period of the other"
        )
    if reason:
        remedy = "leave `within` out: the units are independent then"
        raise _false(unit.name, cover.name, place, reason, remedy)


def _mended(unit: Unit, cover: Unit) -> str:
    """Return what to write for an order that the calendar contradicts."""
    if impossible(cover, unit):
        return NOT_NEEDED
    return f"turn it round: `within: {unit.name}` belongs to `{cover.name}`"


def _refuse_impossible(
    units: Mapping[str, Unit], key: str, beyond: str, place: Node
) -> None:
    reason = impossible(units[key], units[beyond])
    if not reason:
        return
    way = _way(units, key, beyond) or [key, beyond]
    raise _false(
        key,
        beyond,
        place,
        f"that would follow: {' within '.join(way)}; but {reason}",
        "drop one of these `within`",
    )


def impossible(unit: Unit, cover: Unit) -> str:
    """Return why an instance of the one cannot be sure to lie in one of the other.

    Args:
        unit: The one.
        cover: The other, which is said to cover it.

    Returns:
        The reason, or nothing if the calendar does not contradict it.
    """
    if unit.id != cover.id or cover.period is None:
        return ""
    if unit.period is None:
        return f"an instance of `{unit.name}` may have rows in many {cover.period}s"
    if unit.column != cover.column or nests(unit.period, cover.period):
        return ""
    many = touches(unit.period, cover.period)
    return f"a {unit.period} can touch {many} {cover.period}s"


def _false(unit: str, cover: str, place: Node, reason: str, remedy: str) -> InputError:
    return fail(
        Code.FALSE_UNIT_ORDER,
        f"`{unit}` is not within `{cover}`",
        place,
        notes=(reason,),
        help=remedy,
    )
