"""The `units` block of a policy: instances, and how they are nested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.document import Items, Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.reader import Fields, Problems, choice, count, fail, name, text
from modicum.release.units import (
    PERIODS,
    RELATIONS,
    Period,
    Relation,
    Unit,
    larger,
    nests,
    touches,
)

#: The position of each `within` of a unit, by unit, in the unit's own order.
Places: TypeAlias = Mapping[str, Sequence[Node]]

NOT_NEEDED = "leave it out: the calendar applies without it"


def refuse_circles(units: Mapping[str, Unit], places: Places) -> None:
    """Refuse units that lie within themselves; each cycle is shown once.

    Args:
        units: The units by name.
        places: The position of each `within` of a unit, in the unit's order.

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
                f"unit `{start}` is within itself: " + " within ".join(circle),
                places[start][first],
                notes=("the order of units must have no cycles",),
                help="remove one of these `within`",
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
    """Refuse every claim that the calendar contradicts, or that nothing supports.

    Consequences of several claims must not be false either: a month within a visit
    within a day would be a month within a day.

    Args:
        units: The units by name, ordered without circles.
        places: The position of each `within` of a unit, in the unit's order.

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
        return  # Nesting over all of time is known only to the author.
    if unit.id != cover.id:
        reason = (
            f"their instances are identified by `{unit.id}` and by `{cover.id}`:"
            " nothing shows that one contains the other"
        )
    elif unit.column != cover.column:
        reason = (
            f"their time columns are `{unit.column}` and `{cover.column}`: a row may"
            " fall into any period of the other"
        )
    if reason:
        remedy = "leave `within` out: the units are independent then"
        raise _false(unit.name, cover.name, place, reason, remedy)


def _mended(unit: Unit, cover: Unit) -> str:
    """Return the rewrite of an order that the calendar contradicts."""
    if impossible(cover, unit):
        return NOT_NEEDED
    return f"reverse it: `within: {unit.name}` belongs to `{cover.name}`"


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
        "remove one of these `within`",
    )


def impossible(unit: Unit, cover: Unit) -> str:
    """Return why an instance of the one cannot be sure to lie in one of the other.

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


#: More privacy units in one policy are refused.
UNITS_MAX = 32
#: Larger group sizes are refused.
GROUP_MAX = 10**6


class _Draft(Struct, frozen=True):
    """A unit during parsing: its own facts, and its references to others.

    Attributes:
        unit: The facts so far.
        key: Its name, for its place.
        within: The names in its `within`, one for each unit.
        groups: Its `groups`, if it has any.
    """

    unit: Unit
    key: Scalar
    within: tuple[Node, ...]
    groups: Node | None


def read_relation(node: Node) -> Relation:
    """Return a neighboring relation.

    Raises:
        InputError: If it is none.
    """
    word = choice(node, "neighboring relation", RELATIONS, Code.UNKNOWN_CHOICE)
    return cast("Relation", word)


def read_units(node: Node, neighbors: Relation) -> dict[str, Unit]:
    """Return the privacy units of a policy, by name.

    Args:
        node: The `units` block.
        neighbors: The default relation.

    Raises:
        InputError: With every mistake found. Names are resolved when all units
            could be read, the order is checked when all names are known.
    """
    drafts = _drafts(node, neighbors)
    drafts = _with_order(drafts)
    units = {key: draft.unit for key, draft in drafts.items()}
    places = {key: draft.within for key, draft in drafts.items()}
    refuse_circles(units, places)
    refuse_false_orders(units, places)
    return _with_groups(drafts, units)


def _drafts(node: Node, neighbors: Relation) -> dict[str, _Draft]:
    found = Problems()
    drafts: dict[str, _Draft] = {}
    listed = Fields(node, "`units`").rest()
    if not listed:
        raise fail(Code.MISSING_KEY, "a policy needs at least one privacy unit", node)
    if len(listed) > UNITS_MAX:
        raise fail(
            Code.OUT_OF_RANGE,
            f"a policy has at most {UNITS_MAX} privacy units, not {len(listed)}",
            listed[UNITS_MAX][0],
        )
    for key, value in listed:
        with found.guard():
            unit = name(key, "a privacy unit")
            drafts[unit] = _draft(unit, key, value, neighbors)
    found.raise_any()
    return drafts


def _draft(unit: str, key: Scalar, value: Node, neighbors: Relation) -> _Draft:
    found = Problems()
    fields = Fields(value, f"unit `{unit}`")
    facts = Unit(unit, "?", neighbors=neighbors)
    with found.guard():
        column = text(fields.take("id"), f"the id column of `{unit}`")
        facts = replace(facts, id=column)
    with found.guard():
        if (time := fields.take_optional("time")) is not None:
            facts = _timed(facts, time)
    with found.guard():
        if (relation := fields.take_optional("neighbors")) is not None:
            facts = replace(facts, neighbors=read_relation(relation))
    covers = fields.take_optional("within")
    within = covers.items if isinstance(covers, Items) else (covers,)
    groups = fields.take_optional("groups")
    with found.guard():
        fields.finish()
    found.raise_any()
    relations = tuple(word for word in within if word is not None)
    return _Draft(facts, key, relations, groups)


def _timed(facts: Unit, node: Node) -> Unit:
    found = Problems()
    fields = Fields(node, f"`time` of unit `{facts.name}`")
    column, period = "?", PERIODS[0]
    with found.guard():
        column = text(fields.take("column"), f"the time column of `{facts.name}`")
    with found.guard():
        word = choice(fields.take("period"), "period", PERIODS, Code.UNKNOWN_CHOICE)
        period = cast("Period", word)
    with found.guard():
        fields.finish()
    found.raise_any()
    return replace(facts, column=column, period=period)


def _with_order(drafts: Mapping[str, _Draft]) -> dict[str, _Draft]:
    """Resolve every `within`."""
    found = Problems()
    ordered: dict[str, _Draft] = {}
    for key, draft in drafts.items():
        within: list[str] = []
        for word in draft.within:
            with found.guard():
                cover = choice(word, "privacy unit", drafts, Code.UNKNOWN_UNIT)
                if cover in within:
                    raise fail(
                        Code.DUPLICATE_NAME,
                        f"unit `{cover}` is given twice in `within`",
                        word,
                    )
                within.append(cover)
        ordered[key] = replace(draft, unit=replace(draft.unit, within=tuple(within)))
    found.raise_any()
    return ordered


# --- sizes of groups ------------------------------------------------------------------


def _with_groups(
    drafts: Mapping[str, _Draft], units: Mapping[str, Unit]
) -> dict[str, Unit]:
    found = Problems()
    covers = larger(units)
    complete = dict(units)
    for key, draft in drafts.items():
        if draft.groups is None:
            continue
        with found.guard():
            groups = _groups(draft, units, covers[key])
            complete[key] = replace(units[key], groups=groups)
    found.raise_any()
    return complete


def _groups(
    draft: _Draft, units: Mapping[str, Unit], covers: frozenset[str]
) -> dict[str, int]:
    found = Problems()
    own = draft.unit
    sizes: dict[str, int] = {}
    assert draft.groups is not None
    for key, value in Fields(draft.groups, f"`groups` of unit `{own.name}`").rest():
        with found.guard():
            cover = choice(key, "privacy unit", units, Code.UNKNOWN_UNIT)
            if cover == own.name or cover not in covers:
                could = cover != own.name and not impossible(own, units[cover])
                raise fail(
                    Code.FALSE_UNIT_ORDER,
                    f"`{own.name}` is not within `{cover}`, so it has no group size"
                    " there",
                    key,
                    help=f"add `within: {cover}` if that is true, or remove the size"
                    if could
                    else NOT_NEEDED,
                )
            sizes[cover] = _group_size(own, units[cover], value)
    found.raise_any()
    return sizes


def _group_size(own: Unit, cover: Unit, value: Node) -> int:
    what = f"the size of a group of `{own.name}` in `{cover.name}`"
    size = count(value, what, at_least=1, at_most=GROUP_MAX)
    same_clock = (own.id, own.column) == (cover.id, cover.column)
    if not same_clock or own.period is None or cover.period is None:
        return size
    least = touches(cover.period, own.period)
    if size < least:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be at least {least}, got {size}",
            value,
            notes=(
                f"a {cover.period} can touch {least} {own.period}s; a size is a fact"
                " about the data, not a limit on it",
            ),
            help="leave it out: it is built in; a limit that is enforced belongs to"
            " mechanisms, as `contribution_bound`",
        )
    return size
