"""Checks other than budgets: guards, reservations, unmatched ones, invariants."""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import replace

from modicum.core.document import Kind, Node
from modicum.core.errors import Code
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    line,
    name,
    number,
    optional_items,
    place,
)
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.model import (
    RESERVATION_DAYS_MAX,
    UNMATCHED,
    Guard,
    ReservationBound,
)
from modicum.release import Vocabulary


def read_guards(node: Node | None, vocabulary: Vocabulary) -> tuple[Guard, ...]:
    """Return the guards of a list.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    guards: dict[str, Guard] = {}
    for item in optional_items(node, "`guards`"):
        with found.guard():
            fields = Fields(item, "a guard")
            name_node = fields.take("name")
            own_name = name(name_node, "the guard's name")
            unless = parse_predicate(fields.take("unless"), "`unless`", vocabulary)
            message = line(fields.take("message"), "`message`")
            fields.finish()
            _refuse_second(guards.get(own_name), name_node)
            guards[own_name] = Guard(own_name, unless, message, item.mark)
    found.raise_any()
    return tuple(guards.values())


def _refuse_second(first: Guard | None, node: Node) -> None:
    if first is not None:
        raise fail(
            Code.DUPLICATE_NAME,
            f"two guards are named `{first.name}`",
            node,
            notes=(f"first at {place(first.mark)}",),
        )


def read_invariants(node: Node | None) -> tuple[str, ...]:
    """Return the facts that are published outside differential privacy.

    Raises:
        InputError: If it is not a list of different names.
    """
    found: dict[str, Node] = {}
    for item in optional_items(node, "`disclosed_invariants`"):
        invariant = name(item, "an invariant")
        if invariant in found:
            raise fail(
                Code.DUPLICATE_NAME, f"invariant `{invariant}` is given twice", item
            )
        found[invariant] = item
    return tuple(found)


def read_reservations(node: Node | None) -> ReservationBound | None:
    """Return the limits on reservations; None if there are none.

    Raises:
        InputError: With every mistake found.
    """
    return None if node is None else read_bounds(Fields(node, "`reservations`"))


def read_bounds(
    fields: Fields, usual: ReservationBound | None = None
) -> ReservationBound:
    """Return the limits on one actor's reservations, and on those of data sets.

    Args:
        fields: The keys.
        usual: The values of omitted keys; by default no limit.

    Raises:
        InputError: With every mistake found.
    """
    found, data_sets = Problems(), dict[str, Fraction]()
    given = fields.take_optional("data_sets")
    with found.guard():
        rows = Fields(given, "`data_sets`").rest() if given is not None else ()
        for key, value in rows:
            with found.guard():
                # As in grants: a data set may have a number as its name.
                called = name(replace(key, kind=Kind.TEXT), "a data set")
                own = Fields(value, f"`{called}`")
                data_sets[called] = _share(own.take("share"))
                own.finish()
    bound = usual or ReservationBound()
    with found.guard():
        bound = read_bound(fields, usual)
    found.raise_any()
    return replace(bound, data_sets=data_sets)


def read_bound(
    fields: Fields, usual: ReservationBound | None = None
) -> ReservationBound:
    """Return the limit on one actor's reservations.

    Args:
        fields: The keys.
        usual: The values of omitted keys; by default no limit.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    bound = usual or ReservationBound()
    share, days = bound.share, bound.days
    given = fields.take_optional("share")
    with found.guard():
        if given is not None:
            share = _share(given)
    last = fields.take_optional("days")
    with found.guard():
        if last is not None:
            days = count(last, "`days`", at_least=1, at_most=RESERVATION_DAYS_MAX)
    with found.guard():
        fields.finish()
    found.raise_any()
    return ReservationBound(share, days)


def _share(node: Node) -> Fraction:
    share = number(node, "`share`")
    if not 0 < share <= 1:
        message = "`share` must be a number above 0, and at most 1"
        raise fail(Code.OUT_OF_RANGE, message, node)
    return share


def read_unmatched(node: Node | None) -> bool:
    """Return whether a mechanism that matches no rule with a limit is allowed.

    Raises:
        InputError: If it is neither `deny` nor `allow`.
    """
    if node is None:
        return False
    chosen = choice(node, "`unmatched`", UNMATCHED, Code.UNKNOWN_CHOICE)
    return chosen == "allow"
