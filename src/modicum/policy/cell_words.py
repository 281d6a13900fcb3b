"""What the cells of a rule are, in words: along what its sums are told apart."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.release import Vocabulary


def cells_of(unit: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return along what the rules of a unit add up separately; nothing if nowhere.

    Args:
        unit: The unit.
        vocabulary: The words of the policy.
    """
    return tuple(_cells(unit, vocabulary))


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
    grouped = [one for one in vocabulary.units if one in population.grouped & around]
    if grouped:
        yield f"each user group, which no {_through(unit, grouped)} leaves"


def _near(period: str, more: int) -> str:
    """Return which periods are told apart: the present one and some around it."""
    if not more:
        return f"the present {period} apart from all others"
    return f"the present {period} and {more} before and after it"


def _through(unit: str, fixed: list[str]) -> str:
    """Return the unit for which something is declared; a smaller one inherits it."""
    return unit if unit in fixed else f"{unit}, being within one {fixed[0]},"
