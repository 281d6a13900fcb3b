"""What the cells of a rule are, in words: along what its sums are told apart.

And what part of its limits may have been used in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.core.rationals import number_spelled
from modicum.policy.model import Policy, Retired
from modicum.policy.user_groups import grouped_through
from modicum.release import Vocabulary


def cells_of(unit: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return along what the rules of a unit add up separately; nothing if nowhere.

    Args:
        unit: The unit.
        vocabulary: The words of the policy.
    """
    return tuple(_cells(unit, vocabulary))


def unlocking_of(unit: str, policy: Policy) -> str:
    """Return how the limits for a unit are unlocked; empty if they are whole at once.

    Args:
        unit: The unit.
        policy: The policy.
    """
    rotation = policy.rotation
    if rotation is None or not grouped_through(unit, policy.vocabulary):
        return ""
    rounds, slack = rotation.schedule.rounds, rotation.schedule.slack
    steps = "1 round" if rounds == 1 else f"{rounds} rounds"
    openers = rotation.opened_by
    by = "" if openers is None else f"; {' or '.join(openers)} may open rounds"
    rest = "nothing" if rotation.retired is Retired.CLOSED else "all that is left"
    return (
        f"in {steps} for which a user group is active, slack {number_spelled(slack)};"
        f" before, nothing, and {rest} once it is retired{by}"
    )


def _cells(unit: str, vocabulary: Vocabulary) -> Iterator[str]:
    population, facts = vocabulary.population, vocabulary.unit_facts.get(unit)
    around = vocabulary.covers.get(unit, frozenset()) | {unit}
    for partition in population.partitions.values():
        fixed = [one for one in partition.immutable if one in around]
        if fixed:
            yield f"{partition.name}, which no {_through(unit, fixed)} changes"
    if facts is not None and facts.period is not None:
        detail = population.time_detail.get(unit)
        near = "" if detail is None else f", {_near(facts.period, detail - 1)}"
        yield f"each {facts.period}{near}"
    grouped = grouped_through(unit, vocabulary)
    if grouped:
        yield f"each user group, which no {_through(unit, grouped)} leaves"


def _near(period: str, more: int) -> str:
    """Return which periods are told apart: the present one and some around it."""
    if not more:
        return f"the present {period} apart from all others"
    return f"the present {period} and {more} before and after it"


def _through(unit: str, fixed: Sequence[str]) -> str:
    """Return the unit for which something is declared; a smaller one inherits it."""
    return unit if unit in fixed else f"{unit}, being within one {fixed[0]},"
