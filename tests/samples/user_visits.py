"""Releases about users and their visits, priced under a small vocabulary."""

from __future__ import annotations

from typing import Any

from modicum.core.document import from_python
from modicum.release import (
    PricedMechanism,
    Relation,
    Unit,
    Vocabulary,
    parse_release,
    price,
)


def words(
    user: Relation = "add-remove", visit: Relation = "add-remove", visits: int = 3
) -> Vocabulary:
    """Return a vocabulary with users of a few visits each.

    Args:
        user: The relation of users.
        visit: The relation of visits.
        visits: The largest number of visits of a user.
    """
    units = (
        Unit("user", "u", neighbors=user),
        Unit("visit", "v", None, None, ("user",), {"user": visits}, visit),
    )
    facts = {unit.name: unit for unit in units}
    return Vocabulary(frozenset({"page"}), {}, tuple(facts), "add-remove", facts)


#: Where everything is added or removed.
WORDS = words()


def priced(
    mechanism: dict[str, Any], vocabulary: Vocabulary = WORDS
) -> PricedMechanism:
    """Return a mechanism that is alone in its release, priced."""
    node = from_python({"release": "r", "mechanisms": [mechanism]})
    return price(parse_release(node, vocabulary), vocabulary).mechanisms[0]
