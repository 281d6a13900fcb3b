"""Attributes and categories of DPolicy's evaluation: 150 attributes, ten categories.

Which attributes belong to which categories was drawn there, and is drawn here, from a
seed of our own. The example policies and the workloads are made from the same schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from random import Random

SEED = 42
ATTRIBUTES = 150
CATEGORIES = ("low",) * 5 + ("medium",) * 4 + ("high",)
RISKS = ("low", "medium", "high")
#: After each category, an attribute joins another one with this probability.
ANOTHER = 0.6
#: Category number n is drawn with a weight of 1 / (n + 1) to this power.
SKEW = 0.1


def risk_of(attribute: int) -> str:
    """Return a risk level: of ten attributes, one is high and one medium.

    Args:
        attribute: Its number, from 0.
    """
    return {9: "high", 8: "medium"}.get(attribute % 10, "low")


@lru_cache(maxsize=1)
def all_memberships() -> tuple[dict[int, str], ...]:
    """Return the categories of every attribute, each with the level of membership."""
    random = Random(SEED)
    return tuple(memberships(random) for _ in range(ATTRIBUTES))


def memberships(random: Random) -> dict[int, str]:
    """Return the categories of an attribute: member of one, and what else it joins.

    Args:
        random: Decides; only its `random()` is used, which is the same everywhere.
    """
    joined: dict[int, str] = {}
    for category in _drawn(random):
        if joined:
            joined[category] = "strong" if random.random() < 0.5 else "weak"
        else:
            joined[category] = "member"
        if random.random() >= ANOTHER:
            break
    return joined


def _drawn(random: Random) -> Iterator[int]:
    """Yield all categories in a random order, the first ones more likely early."""
    left = {n: 1 / (n + 1) ** SKEW for n in range(len(CATEGORIES))}
    while left:
        at = random.random() * sum(left.values())
        sums = zip(left, accumulate(left.values()), strict=True)
        category = next((n for n, total in sums if at < total), max(left))
        del left[category]
        yield category
