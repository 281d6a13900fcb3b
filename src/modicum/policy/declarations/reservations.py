"""Reading what one identity may hold reserved and not started."""

from __future__ import annotations

from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, count, fail, number
from modicum.policy.model import RESERVATION_DAYS_MAX, ReservationBound


def read_reservations(
    node: Node | None, usual: ReservationBound | None = None
) -> ReservationBound | None:
    """Return what one identity may hold reserved; `usual` if nothing says so.

    Args:
        node: The `reservations` block; None if there is none.
        usual: What holds for a key that is left out; by default no bound.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return usual
    found = Problems()
    fields = Fields(node, "`reservations`")
    bound = usual or ReservationBound()
    share, days = bound.share, bound.days
    given = fields.take_optional("share")
    with found.guard():
        if given is not None:
            share = number(given, "`share`")
            if not 0 < share <= 1:
                message = "`share` must be a number above 0, and at most 1"
                raise fail(Code.OUT_OF_RANGE, message, given)
    last = fields.take_optional("days")
    with found.guard():
        if last is not None:
            days = count(last, "`days`", at_least=1, at_most=RESERVATION_DAYS_MAX)
    with found.guard():
        fields.finish()
    found.raise_any()
    return ReservationBound(share, days)
