"""The `units` block of a policy: what instances are, and how they lie in each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from modicum.core.document import Items, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, choice, count, fail, name, text
from modicum.core.record import dataclass
from modicum.policy.declarations.unit_orders import (
    NOT_NEEDED,
    impossible,
    refuse_circles,
    refuse_false_orders,
)
from modicum.release.units import (
    PERIODS,
    RELATIONS,
    Period,
    Relation,
    Unit,
    larger,
    touches,
)

#: More privacy units in one policy are refused.
UNITS_MAX = 32
#: Larger group sizes are refused.
GROUP_MAX = 10**6


@dataclass(frozen=True, slots=True)
class _Draft:
    """A unit as it is being read: its own facts, and its words about others.

    Attributes:
        unit: What is known so far.
        key: Its name, for its place.
        within: The words of its `within`, one for each unit.
        groups: Its `groups`, if it has any.
    """

    unit: Unit
    key: Scalar
    within: tuple[Node, ...]
    groups: Node | None


def read_relation(node: Node) -> Relation:
    """Return a neighboring relation.

    Args:
        node: The word for it.

    Raises:
        InputError: If it is none.
    """
    word = choice(node, "neighboring relation", RELATIONS, Code.UNKNOWN_CHOICE)
    return cast("Relation", word)


def read_units(node: Node, neighbors: Relation) -> dict[str, Unit]:
    """Return the privacy units that a policy declares, by name.

    Args:
        node: The `units` block.
        neighbors: The relation of units that state none of their own.

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
    words = tuple(word for word in within if word is not None)
    return _Draft(facts, key, words, groups)


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
                        f"unit `{cover}` stands twice in `within`",
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
                    help=f"add `within: {cover}` if it is so, or drop the size"
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
